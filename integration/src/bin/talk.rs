//! Both ends of a conversation that tells who was seen: a server answers `NAME PEER`, PEER being the client's address as
//! the server sees it.
//!
//! - `talk serve tcp,udp,sctp ADDRESS:PORT NAME` says `ready` and answers until it is killed;
//! - `talk ask PROTOCOL ADDRESS:PORT [MILLISECONDS]` prints one answer;
//! - `talk flow ADDRESS:PORT` sends datagrams from one socket and prints a line for each: `NUMBER NAME PEER`, or
//!   `NUMBER -` when there was no answer;
//! - `talk has PROTOCOL` tells by its exit status whether the kernel has such sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrStorage, sockopt};
use nix::sys::time::TimeVal;

/// How long an answer is waited for when nothing else is said.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long one datagram is waited for before another is sent.
const DATAGRAM: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", protocols, address, name] => serve(protocols, address.parse().unwrap(), name),
        ["ask", protocol, address] => ask(protocol, address.parse().unwrap(), PATIENCE),
        ["ask", protocol, address, limit] => {
            ask(protocol, address.parse().unwrap(), Duration::from_millis(limit.parse().unwrap()))
        }
        ["flow", address] => flow(address.parse().unwrap()),
        ["has", protocol] => has(protocol),
        _ => Err(Error::other("talk serve|ask|flow|has …")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("talk: {error}");
            ExitCode::FAILURE
        }
    }
}

fn sctp_socket(address: &SocketAddr) -> Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    Ok(socket::socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, SockProtocol::Sctp)?)
}

fn has(protocol: &str) -> Result<()> {
    if protocol == "sctp" { sctp_socket(&SocketAddr::from(([0; 4], 0))).map(drop) } else { Ok(()) }
}

/// One-to-one SCTP sockets are used as TCP's are.
fn listen(protocol: &str, address: SocketAddr) -> Result<TcpListener> {
    if protocol == "tcp" {
        return TcpListener::bind(address);
    }
    let socket = sctp_socket(&address)?;
    socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    socket::listen(&socket, Backlog::new(16)?)?;
    Ok(TcpListener::from(socket))
}

fn connect(protocol: &str, address: SocketAddr, limit: Duration) -> Result<TcpStream> {
    if protocol == "tcp" {
        return TcpStream::connect_timeout(&address, limit);
    }
    let socket = sctp_socket(&address)?;
    // Limits connect(2) as well (socket(7)).
    socket::setsockopt(
        &socket,
        sockopt::SendTimeout,
        &TimeVal::new(limit.as_secs() as i64, limit.subsec_micros().into()),
    )?;
    socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(TcpStream::from(socket))
}

fn answer(name: &str, peer: SocketAddr) -> Vec<u8> {
    format!("{name} {}", peer.ip().to_canonical()).into_bytes()
}

fn serve(protocols: &str, address: SocketAddr, name: &str) -> Result<()> {
    let mut servers = Vec::new();
    for protocol in protocols.split(',') {
        let name = name.to_owned();
        servers.push(if protocol == "udp" {
            let socket = UdpSocket::bind(address)?;
            thread::spawn(move || serve_datagrams(&socket, &name))
        } else {
            let listener = listen(protocol, address)?;
            thread::spawn(move || serve_connections(&listener, &name))
        });
    }
    println!("ready");
    servers.into_iter().for_each(|server| server.join().unwrap());
    Ok(())
}

fn serve_connections(listener: &TcpListener, name: &str) {
    loop {
        let Ok((mut stream, peer)) = listener.accept() else { continue };
        // A client that has gone is no error.
        let _ = stream.write_all(&answer(name, peer));
        let _ = stream.shutdown(Shutdown::Write);
    }
}

fn serve_datagrams(socket: &UdpSocket, name: &str) {
    let mut buffer = [0; 100];
    loop {
        let Ok((_, peer)) = socket.recv_from(&mut buffer) else { continue };
        let _ = socket.send_to(&answer(name, peer), peer);
    }
}

fn ask(protocol: &str, address: SocketAddr, limit: Duration) -> Result<()> {
    let text = if protocol == "udp" {
        let socket = datagrams_to(address)?;
        let start = Instant::now();
        loop {
            match exchange(&socket) {
                Ok(text) => break text,
                Err(error) if start.elapsed() > limit => return Err(error),
                // Refused comes at once; it may be a neighbour that is not there yet.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    } else {
        let mut stream = connect(protocol, address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        text
    };
    println!("{text}");
    Ok(())
}

fn datagrams_to(address: SocketAddr) -> Result<UdpSocket> {
    let any = if address.is_ipv4() { SocketAddr::from(([0; 4], 0)) } else { SocketAddr::from(([0u16; 8], 0)) };
    let socket = UdpSocket::bind(any)?;
    socket.set_read_timeout(Some(DATAGRAM))?;
    socket.connect(address)?;
    Ok(socket)
}

/// One datagram and its answer.
fn exchange(socket: &UdpSocket) -> Result<String> {
    let mut buffer = [0; 100];
    socket.send(b"?")?;
    let length = socket.recv(&mut buffer)?;
    String::from_utf8(buffer[..length].to_vec()).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

fn flow(address: SocketAddr) -> Result<()> {
    let socket = datagrams_to(address)?;
    for number in 0.. {
        let start = Instant::now();
        println!("{number} {}", exchange(&socket).unwrap_or_else(|_| "-".to_owned()));
        thread::sleep(DATAGRAM.saturating_sub(start.elapsed()) / 2);
    }
    Ok(())
}
