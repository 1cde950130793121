//! How many connections the listener takes.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use p4runtime::{Both, Server, Settings, listen, plane};
use v1model::{Config, Switch};

/// How long anything that has to come may take.
const SOON: Duration = Duration::from_secs(10);

/// A connection, if it was let in: the server speaks first.
fn connect(address: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).expect("the listener takes it");
    stream.set_read_timeout(Some(SOON)).expect("it has a timeout");
    match stream.read(&mut [0; 1]) {
        Ok(0) => None,
        Ok(_) => Some(stream),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
        Err(error) => panic!("neither let in nor turned away: {error}"),
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_and_places_become_free_again() {
    let builder = |program| Switch::new(program, Config::with_ports(1));
    let Both { handle, notified, end: _end, teller: _teller } = plane(Arc::new(builder), Arc::new(|| {}));
    let server = Server::new(Settings { max_connections: 3, ..Settings::new([1], None) });
    let listening = listen(server, handle, notified, "127.0.0.1:0".parse().expect("an address"), None);
    let listening = listening.expect("the server listens");
    let address = listening.address();

    let mut inside: Vec<_> = (0..3).map(|_| connect(address).expect("there is a place")).collect();
    assert!(connect(address).is_none(), "a fourth is closed");
    assert_eq!(listening.refused_connections(), 1);

    inside.pop();
    let start = Instant::now();
    while connect(address).is_none() {
        assert!(start.elapsed() < SOON, "the place that became free can be had");
        std::thread::sleep(Duration::from_millis(10));
    }
}
