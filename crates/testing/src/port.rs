//! Reserves TCP ports of the loopback interface that a test needs to know before a server listens on them.
//!
//! A server that can be asked for its address listens on port 0. These functions are for the other cases: a server that
//! starts late, one that stops and starts again, or none at all.
//!
//! A reserved port belongs to a socket of this process that is bound and does not listen. The kernel never assigns such
//! a port to a socket that binds port 0 or connects. A server can still listen on it: Linux lets a socket with
//! `SO_REUSEADDR`, which servers set, bind a port whose other sockets have that option and do not listen. A connection
//! is refused until then.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use socket2::{Domain, Socket, Type};

/// The sockets that hold the reserved ports, until the process ends.
static HELD: Mutex<Vec<Socket>> = Mutex::new(Vec::new());

/// Reserves a port and returns its address, 127.0.0.1:PORT. The port stays reserved until the process ends.
///
/// # Panics
/// If the machine has no port left.
pub fn reserved_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, reserved_ports(1)).into()
}

/// Reserves `count` consecutive ports of 127.0.0.1 and returns the first. They stay reserved until the process ends.
///
/// # Panics
/// If the machine has no such ports left.
pub fn reserved_ports(count: u16) -> u16 {
    for _ in 0..1000 {
        let first = bind(0).expect("the kernel has a free port");
        let port = local_port(&first);
        let others: Option<Vec<Socket>> = (1..count).map(|at| bind(port.checked_add(at)?)).collect();
        if let Some(others) = others {
            let mut held = HELD.lock().unwrap();
            held.push(first);
            held.extend(others);
            return port;
        }
    }
    panic!("there are no {count} consecutive free ports");
}

fn local_port(socket: &Socket) -> u16 {
    socket.local_addr().ok().and_then(|address| address.as_socket()).expect("the socket is bound").port()
}

/// A socket bound to a port that nobody else has.
fn bind(port: u16) -> Option<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).ok()?;
    // After the bind, which would otherwise also succeed on a port that another test has reserved.
    socket.set_reuse_address(true).expect("a socket takes its options");
    Some(socket)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_server_can_listen_on_a_reserved_port_again_and_again() {
        let address = reserved_address();
        for _ in 0..3 {
            let refused = TcpStream::connect(address).expect_err("nobody listens");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(address).expect("the port is free for a server");
            let second = TcpListener::bind(address).expect_err("one server listens already");
            assert_eq!(second.kind(), ErrorKind::AddrInUse);
            let client = TcpStream::connect(address).expect("the server listens");
            drop((listener.accept().expect("a connection"), client));
        }
    }

    #[test]
    fn a_reserved_port_is_given_only_once() {
        let first = reserved_ports(3);
        let mut taken = Vec::new();
        for port in first..first + 3 {
            assert!(bind(port).is_none(), "{port} is reserved");
        }
        for _ in 0..2000 {
            let socket = bind(0).expect("a free port");
            assert!(!(first..first + 3).contains(&local_port(&socket)));
            taken.push(socket);
        }
    }
}
