//! Limits of connections and streams, and timeouts of silent ones.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_server::{Settings, Tls};
use tokio::runtime::Runtime;
use tonic::codegen::tokio_stream::pending;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Response, Status, Streaming};

use crate::hostile::rig::{CLIENT_TIMEOUT, SOON, bare, channel};

/// Connects, if the server accepts: it speaks first.
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

fn runtime() -> Runtime {
    // Runs while a test does other things.
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts")
}

/// Limits the time of clients.
fn impatient(settings: Settings) -> Settings {
    Settings { client_timeout: CLIENT_TIMEOUT, ..settings }
}

/// Whether a connection is closed soon, whatever the server sends before.
fn ends(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(SOON)).expect("it has a timeout");
    match std::io::copy(stream, &mut std::io::sink()) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn idle_connections_give_way_and_busy_ones_do_not() {
    let (listening, _end) = bare(|settings| Settings { max_connections: 3, ..settings }, None);
    let address = listening.address();
    let runtime = runtime();
    let busy = channel(&runtime, address);
    let _stream = runtime.block_on(P4RuntimeClient::new(busy.clone()).stream_channel(pending())).expect("it opens");
    let mut silent: Vec<_> = (0..2).map(|_| connect(address).expect("there is a place")).collect();
    let _new = connect(address).expect("the oldest silent one gives way");
    assert!(ends(&mut silent[0]));
    assert_eq!(listening.refused_connections(), 1);
    for _ in 0..10 {
        connect(address).expect("each takes the place of another");
    }
    let mut client = P4RuntimeClient::new(busy.clone());
    runtime
        .block_on(client.capabilities(v1::CapabilitiesRequest::default()))
        .expect("whoever has a call under way stays");

    // Opens streams that last until their senders are dropped.
    let open = || {
        let (sender, requests) = tokio::sync::mpsc::channel(1);
        let mut client = P4RuntimeClient::new(channel(&runtime, address));
        let answers = runtime.block_on(client.stream_channel(ReceiverStream::new(requests))).expect("it opens");
        (sender, answers)
    };
    let streams = [open(), open()];
    assert!(connect(address).is_none(), "all others are busy");
    drop(streams);
    let start = Instant::now();
    while connect(address).is_none() {
        assert!(start.elapsed() < SOON, "the place that became free can be had");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_address_has_its_share_of_connections() {
    let limits = |settings| Settings { max_connections: 10, max_connections_a_peer: 2, ..settings };
    let (listening, _end) = bare(limits, None);
    let mut silent: Vec<_> = (0..3).map(|_| connect(listening.address()).expect("it comes in")).collect();
    assert!(ends(&mut silent[0]), "its own first one went");
}

#[test]
fn connections_that_do_not_speak_are_closed() {
    let (listening, _end) = bare(impatient, None);
    // Nothing, half of HTTP/2's preface, and all of it with settings, but no call.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let silent = [&b""[..], &preface[..12], preface].map(|said| {
        let mut stream = TcpStream::connect(listening.address()).expect("the listener takes it");
        stream.write_all(said).expect("a few bytes can be sent");
        (said, stream)
    });
    for (said, mut stream) in silent {
        assert!(ends(&mut stream), "{said:?}");
    }
}

#[test]
fn connections_that_do_not_speak_behind_tls_are_closed() {
    let name = std::env::temp_dir().join(format!("triplane-hostile-{}", std::process::id()));
    let path = |end: &str| format!("{}.{end}", name.display());
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=switch", "-keyout", &path("key"), "-out", &path("pem")]);
    let Ok(made) = openssl.output() else { return testing::skip("openssl is not installed") };
    assert!(made.status.success(), "{made:?}");
    let read = |end: &str| std::fs::read(path(end)).expect("it was made");
    let tls = Tls { certificate: read("pem"), key: read("key"), client_authority: None };
    let _ = (std::fs::remove_file(path("pem")), std::fs::remove_file(path("key")));
    // Time for the handshake, also on a busy machine.
    let client_timeout = Duration::from_secs(10);
    let (listening, _end) = bare(|settings| Settings { client_timeout, ..settings }, Some(tls));
    let mut client = Command::new("openssl")
        .args(["s_client", "-alpn", "h2", "-connect", &listening.address().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl was there");
    let _open = client.stdin.take();
    let start = Instant::now();
    while client.try_wait().expect("it can be asked").is_none() {
        if start.elapsed() > SOON {
            client.kill().expect("it can be ended");
            panic!("it is still connected");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    client.stdout.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert!(said.contains("ALPN protocol: h2"), "the handshake was done: {said}");
}

async fn open(channel: &Channel) -> Result<Streaming<v1::StreamMessageResponse>, Status> {
    let mut client = P4RuntimeClient::new(channel.clone());
    client.stream_channel(pending()).await.map(Response::into_inner)
}

/// Opens a stream as soon as another has made room.
async fn open_again(channel: &Channel) {
    let start = Instant::now();
    while let Err(refused) = open(channel).await {
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(start.elapsed() < SOON, "there is room again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn streams_per_address_are_limited() {
    let (listening, _end) = bare(|settings| Settings { max_streams_a_peer: 2, ..settings }, None);
    let runtime = runtime();
    let channel = channel(&runtime, listening.address());
    runtime.block_on(async {
        let _first = open(&channel).await.expect("there is room");
        let _second = open(&channel).await.expect("there is room");
        let third = open(&channel).await.map(|_| ()).expect_err("there is no room for a third");
        assert_eq!(third.code(), Code::ResourceExhausted);
    });
}

#[test]
fn silent_streams_are_closed_and_leave_room() {
    let (listening, _end) = bare(|settings| Settings { max_streams_a_peer: 1, ..impatient(settings) }, None);
    let runtime = runtime();
    let channel = channel(&runtime, listening.address());
    runtime.block_on(async {
        let mut silent = open(&channel).await.expect("there is room");
        let ended = silent.message().await.expect_err("it has said nothing");
        assert_eq!(ended.code(), Code::DeadlineExceeded);
        open_again(&channel).await;
    });
}
