//! A server that limits its clients, and calls with arbitrary bytes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use compiler::Source;
use http_body::Frame;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_server::{
    DataPlane, DataPlaneChannels, Listening, OperationReceiver, Pipeline, Server, Settings, Tls, listen, switch_builder,
};
use switch::Time;
use tokio::runtime::Runtime;
use tonic::Streaming;
use tonic::body::Body;
use tonic::codegen::tokio_stream::{StreamExt, iter, pending};
use tonic::codegen::{Bytes, Service, http};
use tonic::transport::{Channel, Endpoint};
use v1model::{Config, Switch, V1Model};

/// Timeout for everything that must come.
pub const SOON: Duration = Duration::from_secs(60);
/// The server's timeout for clients in the tests of that timeout. All other clients are faster, also on busy machines.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(3);
/// The server's timeout for clients in the other tests.
const LONG_CLIENT_TIMEOUT: Duration = Duration::from_secs(600);

/// A table whose entries may have everything.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct H {}
struct M { bit<32> x; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action a(bit<9> port) { s.egress_spec = port; }
    register<bit<8>>(4) r;
    table t { key = { m.x : exact; } actions = { a; NoAction; } size = 100000; }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Starts a server without a pipeline, whose clients have ten minutes. Also returns the packet thread's end.
pub fn bare(change: impl FnOnce(Settings) -> Settings, tls: Option<Tls>) -> (Listening, OperationReceiver) {
    let builder = |program| Switch::new(program, Config::with_ports(1));
    let DataPlaneChannels { handle, notifications, operations, .. } =
        DataPlaneChannels::new(switch_builder(builder), Arc::new(|| {}));
    let settings = Settings { client_timeout: LONG_CLIENT_TIMEOUT, ..Settings::new(&V1Model, [1], None) };
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let listening = listen(Server::new(change(settings)), handle, notifications, here, tls);
    (listening.expect("the server listens"), operations)
}

/// A server with a pipeline, and its switch, which the test runs.
pub struct Rig {
    pub runtime: Runtime,
    pub listening: Listening,
    table: u32,
    action: u32,
    switch: Switch,
    operations: OperationReceiver,
    /// Number of operations that the server has submitted.
    submitted: Arc<AtomicU64>,
}

impl Rig {
    /// Starts a server whose clients have ten minutes.
    pub fn new() -> Rig {
        Rig::with(LONG_CLIENT_TIMEOUT, 0)
    }

    /// Starts a server with this timeout for clients, and a program with `comments` bytes of comments.
    pub fn with(client_timeout: Duration, comments: usize) -> Rig {
        let source = format!("{PROGRAM}//{}", "x".repeat(comments));
        let compiled = compiler::expect_program(&Source::new("program.p4", &source), &V1Model);
        let (program, info) = (compiled.ir, compiled.p4info);
        let table = info.tables[0].preamble.as_ref().expect("it has an id").id;
        let action = info.tables[0].action_refs[0].id;
        let (program, config) = (Arc::new(program), Config::with_ports(1));
        let switch = Switch::new(program.clone(), config.clone()).expect("the switch runs it");
        let builder = move |program| Switch::new(program, config.clone());
        let submitted = Arc::new(AtomicU64::new(0));
        let counter = submitted.clone();
        let waker = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let DataPlaneChannels { handle, notifications, operations, .. } =
            DataPlaneChannels::new(switch_builder(builder), waker);
        let settings = Settings { client_timeout, ..Settings::new(&V1Model, [1], None) };
        let server = Server::new(settings).with_pipeline(Pipeline::new(program, info, source.into_bytes()), &switch);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let listening = listen(server, handle, notifications, here, None).expect("the server listens");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Rig { runtime: runtime.expect("a runtime starts"), listening, table, action, switch, operations, submitted }
    }

    /// Waits until the server has submitted an operation to the switch.
    pub async fn has_submitted(&self) {
        let submitted = async {
            while self.submitted.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, submitted).await.expect("an operation is submitted");
    }

    /// Opens a connection.
    pub fn channel(&self) -> Channel {
        channel(&self.runtime, self.listening.address())
    }

    /// Opens such a connection from 127.0.0.`host`, which counts as another client.
    pub fn channel_from(&self, host: u8) -> Channel {
        channel_from(&self.runtime, self.listening.address(), host)
    }

    /// Runs the switch until `done` completes.
    pub fn until<T>(&mut self, done: impl Future<Output = T> + Send + 'static) -> T
    where
        T: Send + 'static,
    {
        let done = self.runtime.spawn(done);
        let start = std::time::Instant::now();
        while !done.is_finished() {
            assert!(start.elapsed() < 6 * SOON, "it is done some time");
            let mut output = Vec::new();
            let now = Time::from_ns(start.elapsed().as_nanos() as u64);
            self.operations.poll(&mut DataPlane {
                switch: &mut self.switch,
                now,
                output: &mut output,
                stop_others: &|| (),
            });
            std::thread::sleep(Duration::from_micros(200));
        }
        self.runtime.block_on(done).expect("it does not panic")
    }

    /// Returns an insertion of the entry with this key.
    pub fn insert(&self, key: u32, metadata: Vec<u8>) -> v1::Update {
        let value = p4runtime_proto::bytestring::shortest(&key.to_be_bytes());
        let exact = v1::field_match::FieldMatchType::Exact(v1::field_match::Exact { value });
        let action =
            v1::Action { action_id: self.action, params: vec![v1::action::Param { param_id: 1, value: vec![1] }] };
        let entry = v1::TableEntry {
            table_id: self.table,
            r#match: vec![v1::FieldMatch { field_id: 1, field_match_type: Some(exact) }],
            action: Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) }),
            metadata,
            ..Default::default()
        };
        let entity = Some(v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) });
        v1::Update { r#type: v1::update::Type::Insert.into(), entity }
    }
}

/// Opens a connection on which the server may send 64 KiB ahead.
pub fn channel(runtime: &Runtime, address: SocketAddr) -> Channel {
    channel_from(runtime, address, 1)
}

/// Opens such a connection from 127.0.0.`host`, which counts as another client.
pub fn channel_from(runtime: &Runtime, address: SocketAddr, host: u8) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let endpoint = endpoint.initial_stream_window_size(65_535).local_address(Some([127, 0, 0, host].into()));
    runtime.block_on(endpoint.connect()).expect("the server answers")
}

/// Returns a message with gRPC's prefix.
pub fn framed(message: &[u8]) -> Bytes {
    let mut out = vec![0];
    out.extend((message.len() as u32).to_be_bytes());
    out.extend(message);
    out.into()
}

/// A body of these pieces that then ends, or stays open forever.
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    ends: bool,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        match self.pieces.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Makes a call with these bytes. Returns the start of the response.
pub async fn call(channel: Channel, name: &str, pieces: Vec<Bytes>, ends: bool) -> http::Response<Body> {
    call_as("application/grpc", channel, name, pieces, ends).await
}

/// Makes a call with these bytes and this content type. Returns the start of the response.
pub async fn call_as(
    content_type: &str,
    mut channel: Channel,
    name: &str,
    pieces: Vec<Bytes>,
    ends: bool,
) -> http::Response<Body> {
    let request = http::Request::post(format!("http://here/p4.v1.P4Runtime/{name}"))
        .header("content-type", content_type)
        .header("te", "trailers")
        .body(Body::new(Pieces { pieces: pieces.into(), ends }))
        .expect("a request");
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.expect("the connection lives");
    channel.call(request).await.expect("the server answers")
}

/// Returns the code of such a call, if it ends.
pub async fn status(channel: Channel, name: &str, pieces: Vec<Bytes>, ends: bool) -> tonic::Code {
    let whole = async {
        let answer = call(channel, name, pieces, ends).await;
        let (head, mut body) = answer.into_parts();
        let mut fields = head.headers;
        while let Some(frame) = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await {
            if let Ok(trailers) = frame.expect("the connection lives").into_trailers() {
                fields = trailers;
            }
        }
        tonic::Code::from_bytes(fields["grpc-status"].as_bytes())
    };
    tokio::time::timeout(SOON, whole).await.expect("it ends")
}

/// Returns an arbitration update with this election id.
pub fn claim(id: u64) -> v1::StreamMessageRequest {
    let update = v1::MasterArbitrationUpdate { device_id: 1, election_id: election(id), ..Default::default() };
    v1::StreamMessageRequest { update: Some(v1::stream_message_request::Update::Arbitration(update)) }
}

fn election(low: u64) -> Option<v1::Uint128> {
    Some(v1::Uint128 { high: 0, low })
}

/// Connects the primary with the election id 1, for as long as its stream is open.
pub async fn primary(channel: Channel) -> (P4RuntimeClient<Channel>, Streaming<v1::StreamMessageResponse>) {
    let mut client = P4RuntimeClient::new(channel);
    let requests = iter([claim(1)]).chain(pending());
    let mut answers = client.stream_channel(requests).await.expect("it opens").into_inner();
    answers.message().await.expect("the stream is open").expect("a message arrives");
    (client, answers)
}

/// Returns a write of these updates by that primary.
pub fn write(updates: Vec<v1::Update>) -> v1::WriteRequest {
    v1::WriteRequest { device_id: 1, election_id: election(1), updates, ..Default::default() }
}

/// Returns the framed bytes of a message.
pub fn bytes(message: &impl Message) -> Bytes {
    framed(&message.encode_to_vec())
}
