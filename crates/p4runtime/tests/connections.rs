//! How many connections and streams the listener takes, and for how long those that say nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use p4runtime::{Both, Listening, PlaneEnd, Server, Settings, listen, plane};
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use tonic::codegen::tokio_stream::pending;
use tonic::transport::Endpoint;
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

/// A server whose guests have to speak soon, and the switch's end, which nobody looks at.
fn impatient(max_streams_a_peer: usize) -> (Listening, PlaneEnd) {
    let builder = |program| Switch::new(program, Config::with_ports(1));
    let Both { handle, notified, end, .. } = plane(Arc::new(builder), Arc::new(|| {}));
    let patience = Duration::from_millis(200);
    let server = Server::new(Settings { patience, max_streams_a_peer, ..Settings::new([1], None) });
    let listening = listen(server, handle, notified, "127.0.0.1:0".parse().expect("an address"), None);
    (listening.expect("the server listens"), end)
}

#[test]
fn connections_that_do_not_speak_are_closed() {
    let (listening, _end) = impatient(1);
    for said in [&b""[..], b"PRI * HTTP/2"] {
        let mut stream = TcpStream::connect(listening.address()).expect("the listener takes it");
        stream.write_all(said).expect("a few bytes can be sent");
        stream.set_read_timeout(Some(SOON)).expect("it has a timeout");
        // What the server sends of its own accord, and then the end.
        let ended = std::io::copy(&mut stream, &mut std::io::sink());
        let reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(ended.as_ref().map_or_else(reset, |_| true), "{ended:?}");
    }
}

#[test]
fn streams_that_do_not_speak_end_and_one_address_has_so_many() {
    let (listening, _end) = impatient(2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let endpoint = Endpoint::from_shared(format!("http://{}", listening.address())).expect("an address");
        let channel = endpoint.connect().await.expect("the server answers");
        let open = || async {
            let mut client = P4RuntimeClient::new(channel.clone());
            client.stream_channel(pending()).await.map(tonic::Response::into_inner)
        };
        let mut first = open().await.expect("there is room");
        let _second = open().await.expect("there is room");
        let third = open().await.map(|_| ()).expect_err("there is no room for a third");
        assert_eq!(third.code(), tonic::Code::ResourceExhausted);
        let ended = first.message().await.expect_err("it has said nothing");
        assert_eq!(ended.code(), tonic::Code::DeadlineExceeded);
        open().await.map(|_| ()).expect("there is room again");
    });
}
