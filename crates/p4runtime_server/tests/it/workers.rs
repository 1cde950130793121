//! A switch with several workers: what is acknowledged is in the switch for each of them.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use compiler::Source;
use engine::ActionCall;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_server::{Listening, Pipeline, RunChannels, Server, Settings, listen, switch_builder};
use ports::{Port, PortError, PortStats, Received, Sent};
use runtime::{Hook, HookContext, PortDrivers, RunConfig, RunHandle};
use switch::{Device, Frame, PortId, SwitchControl, Time};
use tokio::runtime::Runtime;
use tonic::codegen::tokio_stream::{StreamExt, iter, pending};
use tonic::transport::{Channel, Endpoint};
use v1model::{Config, Switch, V1Model};

/// Time within which everything comes that must come.
const SOON: Duration = Duration::from_secs(60);
/// The port that every frame leaves by.
const OUT: u32 = 1;

/// Every frame leaves with the mark of the default action in its type, and with that of the register at the end of its
/// source.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct H { ethernet_t ethernet; }
struct M {}
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {
    state start { b.extract(h.ethernet); transition accept; }
}
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<16>>(262144) all_marks;
    action mark(bit<16> value) { h.ethernet.type = value; }
    table marks { key = { h.ethernet.dst : exact; } actions = { mark; } default_action = mark(0); }
    apply {
        bit<16> value;
        all_marks.read(value, 0);
        h.ethernet.src[15:0] = value;
        s.egress_spec = 1;
        marks.apply();
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn pipeline() -> (Switch, Pipeline) {
    let compiled = compiler::expect_program(&Source::without_files("marks.p4", PROGRAM), &V1Model);
    let program = Arc::new(compiled.ir);
    let switch = Switch::new(program.clone(), Config::with_ports(2)).expect("the switch runs it");
    (switch, Pipeline::new(program, compiled.p4info, PROGRAM.into()))
}

fn channels() -> RunChannels {
    let builder = switch_builder(|program| Switch::new(program, Config::with_ports(2)));
    RunChannels::new(builder).expect("there are descriptors")
}

/// Returns the mark of a frame.
fn mark_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}

/// Sends a frame through a switch and returns its mark.
fn mark_by(switch: &mut Switch) -> u16 {
    let mut output = Vec::new();
    switch.step(Time::ZERO, &mut vec![Frame::new(0, vec![0; 60])], &mut output);
    assert_eq!(output.len(), 1);
    mark_of(&output[0].data)
}

/// Sets the mark.
fn set_mark(switch: &mut dyn SwitchControl, value: u16) {
    let table = switch.program().table_named("I.marks").expect("it is in the program");
    let ActionCall { action, .. } = switch.objects().default_action(table).clone();
    let args = vec![bits::Bits::new(value.into(), 16)];
    switch.objects_mut().set_default_action(table, ActionCall { action, args }).expect("it is an action of the table");
}

#[test]
fn a_result_is_delivered_after_every_worker_has_the_change() {
    let (mut owner, _) = pipeline();
    let RunChannels { handle, mut hook, .. } = channels();
    let workers: Vec<_> = owner.workers(2).into_iter().map(Mutex::new).collect();
    let workers = Arc::new(workers);
    assert_eq!(mark_by(&mut workers[1].lock().unwrap()), 0);
    let executor = Runtime::new().expect("a runtime starts");
    for value in 1..=20 {
        let (handle, workers) = (handle.clone(), workers.clone());
        let (answered, answer) = std::sync::mpsc::channel();
        // The first operation of a poll changes the mark. The second one gives its caller time to act too early.
        let change = executor.spawn({
            let handle = handle.clone();
            async move {
                handle.run(move |plane| set_mark(plane.switch, value)).await.expect("the switch runs");
                let marks: Vec<_> = workers.iter().map(|worker| mark_by(&mut worker.lock().unwrap())).collect();
                let _ = answered.send(());
                marks
            }
        });
        while !hook.is_due() {
            std::thread::yield_now();
        }
        let waits = move |_: &mut p4runtime_server::DataPlane<'_>| {
            let _ = answer.recv_timeout(Duration::from_millis(20));
        };
        assert!(handle.post(waits));
        let mut output = Vec::new();
        let mut injected = Vec::new();
        let mut context = HookContext {
            now: Time::ZERO,
            switch: &mut owner,
            output: &mut output,
            injected: &mut injected,
            stop_others: &|| (),
        };
        hook.poll(&mut context);
        assert_eq!(executor.block_on(change).expect("nothing panics"), [value; 2]);
    }
}

/// A driver that is one end of a pair of sockets.
struct SocketPort(UnixDatagram);

/// Returns a driver and its other end.
fn socket_port() -> (Box<dyn Port>, UnixDatagram) {
    let (port, cable) = UnixDatagram::pair().expect("there are descriptors");
    port.set_nonblocking(true).expect("a socket can be set up");
    cable.set_read_timeout(Some(SOON)).expect("a socket can be set up");
    (Box::new(SocketPort(port)), cable)
}

impl Port for SocketPort {
    fn name(&self) -> &str {
        "socket"
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let mut buffer = [0; 256];
        let frames = std::iter::from_fn(|| {
            let len = self.0.recv(&mut buffer).ok()?;
            Some(Received { data: buffer[..len].to_vec(), time_ns: None })
        });
        let before = batch.len();
        batch.extend(frames.take(max));
        Ok(batch.len() - before)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        self.0.send(frame).expect("there is room");
        Ok(Sent::Sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        PortStats::default()
    }
}

/// A hook with a long turn. Between the turn of the operations and the end of the round, packets go on.
struct LongTurn;

impl Hook<Switch> for LongTurn {
    fn poll(&mut self, _: &mut HookContext<'_, Switch>) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn election() -> Option<v1::Uint128> {
    Some(v1::Uint128 { high: 0, low: 1 })
}

/// Returns a write that sets the mark.
fn write_of(value: u16, ids: (u32, u32)) -> v1::WriteRequest {
    let value = p4runtime_proto::bytestring::shortest(&value.to_be_bytes());
    let action = v1::Action { action_id: ids.1, params: vec![v1::action::Param { param_id: 1, value }] };
    let entry = v1::TableEntry {
        table_id: ids.0,
        is_default_action: true,
        action: Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) }),
        ..Default::default()
    };
    let entity = Some(v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) });
    let updates = vec![v1::Update { r#type: v1::update::Type::Modify.into(), entity }];
    v1::WriteRequest { device_id: 1, election_id: election(), updates, ..Default::default() }
}

/// Connects the primary, for as long as its stream is kept.
async fn primary(
    address: std::net::SocketAddr,
) -> (P4RuntimeClient<Channel>, tonic::Streaming<v1::StreamMessageResponse>) {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let mut client = P4RuntimeClient::new(endpoint.connect().await.expect("the server answers"));
    let update = v1::MasterArbitrationUpdate { device_id: 1, election_id: election(), ..Default::default() };
    let update = v1::StreamMessageRequest { update: Some(v1::stream_message_request::Update::Arbitration(update)) };
    let mut stream = client.stream_channel(iter([update]).chain(pending())).await.expect("it opens").into_inner();
    stream.message().await.expect("the stream is open").expect("a message arrives");
    (client, stream)
}

/// A switch with two workers, each with its own queue of both ports, and a server.
struct WorkerRig {
    inputs: Vec<UnixDatagram>,
    outputs: Vec<UnixDatagram>,
    running: RunHandle<Switch>,
    listening: Listening,
    info: p4runtime_proto::config::P4Info,
}

impl WorkerRig {
    fn new() -> WorkerRig {
        let (switch, pipeline) = pipeline();
        let info = compiler::expect_program(&Source::without_files("marks.p4", PROGRAM), &V1Model).p4info;
        let RunChannels { handle, hook, notifications, .. } = channels();
        let server = Server::new(Settings::new(&V1Model, [0, 1], None)).with_pipeline(pipeline, &switch);
        let here = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let listening = listen(server, handle, notifications, here, None).expect("the server listens");
        let (ins, inputs): (Vec<_>, Vec<_>) = (0..2).map(|_| socket_port()).unzip();
        let (outs, outputs): (Vec<_>, Vec<_>) = (0..2).map(|_| socket_port()).unzip();
        let ports = vec![PortDrivers { id: PortId(0), drivers: ins }, PortDrivers { id: PortId(OUT), drivers: outs }];
        let hooks: Vec<Box<dyn Hook<Switch>>> = vec![Box::new(hook), Box::new(LongTurn)];
        let config = RunConfig { workers: 2, hooks, limit: Some(2 * SOON), ..RunConfig::new(switch, ports) };
        let running = config.spawn_live("switch").expect("a thread starts");
        WorkerRig { inputs, outputs, running, listening, info }
    }

    /// Sends a frame through each worker, and returns those that leave.
    fn send(&self) -> Vec<Vec<u8>> {
        let through = |(input, output): (&UnixDatagram, &UnixDatagram)| {
            input.send(&[0; 60]).expect("the port is there");
            let mut frame = [0; 256];
            let len = output.recv(&mut frame).expect("the frame leaves");
            frame[..len].to_vec()
        };
        self.inputs.iter().zip(&self.outputs).map(through).collect()
    }

    /// Returns a write that sets the mark of the default action.
    fn write_of(&self, value: u16) -> v1::WriteRequest {
        let table = &self.info.tables[0];
        let ids = (
            table.preamble.as_ref().expect("it has one").id,
            table.action_refs.iter().map(|action| action.id).next().expect("it has an action"),
        );
        write_of(value, ids)
    }
}

#[test]
fn a_packet_after_an_acknowledged_write_meets_it_on_every_worker() {
    const WRITES: u16 = 300;
    let rig = WorkerRig::new();
    let executor = Runtime::new().expect("a runtime starts");
    let (mut client, _stream) = executor.block_on(primary(rig.listening.address()));
    for value in 1..=WRITES {
        executor.block_on(client.write(rig.write_of(value))).expect("it is written");
        for frame in rig.send() {
            assert_eq!(mark_of(&frame), value, "a frame meets what an acknowledged write replaced");
        }
    }
    rig.running.stop().expect("there are descriptors");
}

/// Registers are written in place, and tables are published. An atomic write keeps packets out meanwhile.
#[test]
fn no_worker_sees_registers_of_an_atomic_write_without_its_tables() {
    const WRITES: u16 = 40;
    let rig = WorkerRig::new();
    let executor = Runtime::new().expect("a runtime starts");
    let (mut client, _stream) = executor.block_on(primary(rig.listening.address()));
    let register_id = rig.info.registers[0].preamble.as_ref().expect("it has one").id;
    let write = |value: u16| {
        let bytes = p4runtime_proto::bytestring::shortest(&value.to_be_bytes());
        let data = Some(v1::P4Data { data: Some(v1::p4_data::Data::Bitstring(bytes)) });
        let all = v1::RegisterEntry { register_id, index: None, data };
        let entity = Some(v1::Entity { entity: Some(v1::entity::Entity::RegisterEntry(all)) });
        let mut request = rig.write_of(value);
        // All elements take long enough for packets to come in between.
        request.updates.insert(0, v1::Update { r#type: v1::update::Type::Modify.into(), entity });
        request.set_atomicity(v1::write_request::Atomicity::DataplaneAtomic);
        request
    };
    let writes: Vec<v1::WriteRequest> = (1..=WRITES).map(write).collect();
    let writer = executor.spawn(async move {
        for request in writes {
            client.write(request).await.expect("it is written");
        }
    });
    let mut last = 0;
    while !writer.is_finished() {
        for frame in rig.send() {
            last = u16::from_be_bytes([frame[10], frame[11]]);
            assert_eq!(last, mark_of(&frame), "a frame meets a part of a write");
        }
    }
    executor.block_on(writer).expect("it is written");
    assert!(last > 0, "packets went on during the writes");
    rig.running.stop().expect("there are descriptors");
}
