//! Bulk data by TCP, in segments as long as the way allows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};

use crate::Sandbox;
use crate::within::Server;

/// Longer than a transfer takes, one lost packet included.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a server looks whether it is to end.
const TICK: Duration = Duration::from_millis(10);

/// What came of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that came there, and back.
    pub bytes: usize,
    /// Data of a segment at most, in bytes: what the client's kernel found out.
    pub segment: u32,
}

impl Sandbox {
    /// Starts a server that sends back what it is sent, byte for byte.
    #[track_caller]
    pub fn echo(&self, netns: &str, port: u16) -> Server {
        let tcp = self.within(Some(netns), || TcpListener::bind(("::", port)).expect("the server's port is free"));
        tcp.set_nonblocking(true).expect("a socket can be switched");
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let accept = move || {
            while !flag.load(Ordering::Relaxed) {
                match tcp.accept() {
                    Ok((stream, _)) => drop(thread::spawn(move || send_back(stream))),
                    Err(_) => thread::sleep(TICK),
                }
            }
        };
        Server { stop, threads: vec![thread::spawn(accept)] }
    }

    /// Sends that many bytes to an [`Self::echo`] and reads them again; none if that does not work in time.
    #[track_caller]
    pub fn transfer(&self, from: Option<&str>, to: &str, bytes: usize) -> Option<Transfer> {
        let to: SocketAddr = to.parse().expect("an address with a port");
        let mut stream = self.within(from, || TcpStream::connect_timeout(&to, PATIENCE)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut writer = stream.try_clone().ok()?;
        // It ends with the connection, whether all is sent or not.
        let writing = thread::spawn(move || writer.write_all(&vec![0x55; bytes]));
        let mut back = vec![0; bytes];
        let read = stream.read_exact(&mut back);
        let segment = getsockopt(&stream, sockopt::TcpMaxSeg).ok()?;
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let _ = writing.join();
        read.ok()?;
        back.iter().all(|byte| *byte == 0x55).then_some(Transfer { bytes, segment })
    }
}

fn send_back(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut buffer = [0; 8192];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}
