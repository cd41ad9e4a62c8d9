//! Servers and clients in the namespaces of a machine: threads of this process, so that a question costs no program.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};

use crate::Sandbox;

/// Longer than any answer in here takes, retransmissions of lost first packets aside.
const PATIENCE: Duration = Duration::from_millis(1200);
/// How often a server looks whether it is to end.
const TICK: Duration = Duration::from_millis(10);

/// A server of one port in both families: it answers with its name and the client's address. It holds the
/// namespace until it is dropped.
#[derive(Debug)]
pub struct Server {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) threads: Vec<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a [`Server`] answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The server's name.
    pub server: String,
    /// Whom the server took for its client.
    pub client: IpAddr,
}

fn line(server: &str, client: SocketAddr) -> String {
    format!("{server} {}\n", client.ip().to_canonical())
}

fn read(text: &str) -> Option<Answer> {
    let (server, client) = text.trim().split_once(' ')?;
    Some(Answer { server: server.to_owned(), client: client.parse().ok()? })
}

impl Sandbox {
    /// Does something in a network namespace: the machine's own, or the one at this path. Sockets stay where they were made.
    ///
    /// # Panics
    /// There is no such namespace.
    #[track_caller]
    pub fn within<T: Send>(&self, netns: Option<&str>, work: impl FnOnce() -> T + Send) -> T {
        let path = netns.map_or_else(|| proc_of(&self.path("/")).join("ns/net"), |path| self.path(path));
        let namespace = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let done = thread::scope(|scope| {
            let work = || {
                setns(&namespace, CloneFlags::CLONE_NEWNET).expect("root enters namespaces");
                work()
            };
            scope.spawn(work).join()
        });
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a [`Server`] of TCP and UDP in a namespace.
    #[track_caller]
    pub fn answer(&self, netns: &str, port: u16, name: &str) -> Server {
        let mut server = self.answer_udp(netns, port, name);
        let tcp = self.within(Some(netns), || TcpListener::bind(("::", port)).expect("the server's port is free"));
        tcp.set_nonblocking(true).expect("a socket can be switched");
        let (stop, name) = (Arc::clone(&server.stop), name.to_owned());
        server.threads.push(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                match tcp.accept() {
                    Ok((mut stream, client)) => drop(stream.write_all(line(&name, client).as_bytes())),
                    Err(_) => thread::sleep(TICK),
                }
            }
        }));
        server
    }

    /// Starts a [`Server`] of UDP in a namespace.
    #[track_caller]
    pub fn answer_udp(&self, netns: &str, port: u16, name: &str) -> Server {
        let udp = self.within(Some(netns), || UdpSocket::bind(("::", port)).expect("the server's port is free"));
        udp.set_read_timeout(Some(TICK)).expect("a socket has a time limit");
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, name) = (Arc::clone(&stop), name.to_owned());
        let thread = thread::spawn(move || {
            let mut buffer = [0; 64];
            while !flag.load(Ordering::Relaxed) {
                if let Ok((_, client)) = udp.recv_from(&mut buffer) {
                    let _ = udp.send_to(line(&name, client).as_bytes(), client);
                }
            }
        });
        Server { stop, threads: vec![thread] }
    }

    /// Connects by TCP; none if nobody answers in time.
    #[track_caller]
    pub fn connect_to(&self, from: Option<&str>, to: &str) -> Option<Answer> {
        let mut stream = self.connect(from, to)?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        read(&text)
    }

    /// A page by HTTP; none if nobody answers in time.
    #[track_caller]
    pub fn page(&self, from: Option<&str>, to: &str) -> Option<String> {
        let mut stream = self.connect(from, to)?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.").then_some(text)
    }

    fn connect(&self, from: Option<&str>, to: &str) -> Option<TcpStream> {
        let to: SocketAddr = to.parse().expect("an address with a port");
        let stream = self.within(from, || TcpStream::connect_timeout(&to, PATIENCE)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(stream)
    }

    /// A UDP client of its own source port: one flow.
    #[track_caller]
    pub fn datagrams(&self, from: Option<&str>, to: &str) -> Datagrams {
        let to: SocketAddr = to.parse().expect("an address with a port");
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = self.within(from, || UdpSocket::bind(any)).expect("a port is free");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket has a time limit");
        Datagrams { socket, to }
    }
}

/// `/proc/PID` of `/proc/PID/root/…`.
fn proc_of(path: &std::path::Path) -> std::path::PathBuf {
    path.components().take(3).collect()
}

/// A UDP client that keeps its source port.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    to: SocketAddr,
}

impl Datagrams {
    /// Sends a packet; none if nobody answers in time.
    pub fn ask(&self) -> Option<Answer> {
        self.socket.send_to(b"?\n", self.to).ok()?;
        let mut buffer = [0; 128];
        let (length, _) = self.socket.recv_from(&mut buffer).ok()?;
        read(std::str::from_utf8(&buffer[..length]).ok()?)
    }
}
