//! A client and a server, where only one of them uses TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use p4runtime_client::{CallError, Client, ClientTls, ConnectError, ServerTarget, TargetError};

use crate::server::{FakeServer, run};

/// A certificate of an authority, valid until 2125. No server has a certificate of it.
const AUTHORITY: &str = include_str!("authority.pem");

fn tls() -> ClientTls {
    ClientTls { authority: AUTHORITY.to_owned(), identity: None, server_name: None }
}

/// Starts a server that answers as TLS servers do to a client without TLS: with the alert `unexpected_message`.
fn tls_server() -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it listens");
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(&[21, 3, 1, 0, 2, 2, 10]);
    });
    (address, thread)
}

#[test]
fn a_tls_client_recognizes_a_server_without_tls() {
    run(async {
        let server = FakeServer::default().start().await.to_string();
        let target = ServerTarget::new(&server, Some(&tls())).expect("the authority is in PEM form");
        assert!(target.is_tls() && !target.has_identity());
        match Client::connect(&target, 1).await {
            Err(ConnectError::NotTls { address }) => assert_eq!(address, server),
            other => panic!("it has no TLS: {other:?}"),
        }
    });
}

#[test]
fn a_client_without_tls_loses_the_connection_to_a_tls_server_at_the_first_call() {
    let (address, server) = tls_server();
    run(async {
        let target = ServerTarget::new(&address.to_string(), None).expect("an address");
        let client = Client::connect(&target, 1).await.expect("the handshake comes with the first call");
        let failed = client.pipeline_config().await;
        assert!(matches!(failed, Err(CallError::Transport(_))), "{failed:?}");
    });
    server.join().expect("the server ends");
}

#[test]
fn an_address_without_a_server_is_unreachable() {
    run(async {
        let target = ServerTarget::new(&testing::port::reserved_address().to_string(), None).expect("an address");
        let failed = Client::connect(&target, 1).await;
        assert!(matches!(failed, Err(ConnectError::Unreachable { .. })), "{failed:?}");
    });
}

#[test]
fn a_key_that_is_none_is_refused_before_anything_is_sent() {
    let identity = Some((AUTHORITY.to_owned(), "no key".to_owned()));
    let refused = ServerTarget::new("127.0.0.1:1", Some(&ClientTls { identity, ..tls() }));
    assert!(matches!(refused, Err(TargetError::Tls(_))), "{refused:?}");
    let shown = format!("{:?}", ClientTls { identity: Some(("certificate".into(), "secret".into())), ..tls() });
    assert!(!shown.contains("secret"), "{shown}");
}
