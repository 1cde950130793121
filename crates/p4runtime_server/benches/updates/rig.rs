//! The threads of the switch, the server and the client.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_server::store::{DiskStore, Store};
use p4runtime_server::{
    DataPlane, DataPlaneChannels, KeptArrays, Listening, Pipeline, Server, Settings, listen_with_store, switch_builder,
};
use switch::{PacketSwitch, Time};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::codegen::tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use v1model::{CPU_PORT, Config, Switch};

use crate::program;

/// Work of the packet thread between its polls of the control plane, such as processing packets. Returns false if
/// there was nothing to do, so that the thread may sleep.
pub type Work<S = Switch> = Box<dyn FnMut(&mut S, Time) -> bool + Send>;

pub struct Rig<S = Switch> {
    pub info: P4Info,
    pub runtime: Runtime,
    pub client: P4RuntimeClient<Channel>,
    /// Dropping this ends the stream.
    _requests: mpsc::UnboundedSender<v1::StreamMessageRequest>,
    pub messages: Streaming<v1::StreamMessageResponse>,
    pub listening: Arc<Listening>,
    packets: Option<JoinHandle<()>>,
    work: Arc<Mutex<Work<S>>>,
    stop: Arc<AtomicBool>,
}

impl Rig {
    /// Starts an idle switch and its primary controller.
    pub fn new() -> Rig {
        Rig::of(program::UPDATES, None)
    }

    /// Starts an idle switch with a program, and with a store of its state if there is one. Beside it are the arrays to
    /// keep and the interval.
    pub fn of(source: &str, store: Option<(DiskStore, KeptArrays, Duration)>) -> Rig {
        let (program, info) = program::compile(source);
        let switch = Switch::new(Arc::new(program), config()).expect("the switch runs the program");
        Rig::start(switch, info, store)
    }
}

/// Returns the settings of the switch.
pub fn config() -> Config {
    Config::with_ports(4)
}

impl<S: PacketSwitch + Send + 'static> Rig<S> {
    /// Starts a switch and its primary controller, as [`Rig::of`] does.
    pub fn start(mut switch: S, info: P4Info, store: Option<(DiskStore, KeptArrays, Duration)>) -> Rig<S> {
        let program = switch.program().clone();
        let thread: Arc<OnceLock<Thread>> = Arc::default();
        let (rung, sleeper) = (Arc::new(AtomicBool::new(false)), thread.clone());
        let ring = {
            let rung = rung.clone();
            move || {
                rung.store(true, Relaxed);
                sleeper.get().inspect(|thread| thread.unpark());
            }
        };
        let DataPlaneChannels { handle, mut operations, notifier, notifications } =
            DataPlaneChannels::new(switch_builder(|program| Switch::new(program, config())), Arc::new(ring));
        let pipeline = Pipeline::new(program, info.clone(), b"the program".to_vec());
        let mut settings = Settings::new(&v1model::V1Model, 0..4, Some(CPU_PORT));
        let store = store.map(|(store, kept_arrays, keep_interval)| {
            (settings.kept_arrays, settings.keep_interval) = (kept_arrays, keep_interval);
            Box::new(store) as Box<dyn Store>
        });
        let server = Server::new(settings).with_pipeline(pipeline, &switch);
        let address = "127.0.0.1:0".parse().expect("an address");
        let listening = listen_with_store(server, handle, notifications, address, None, store);
        let listening = Arc::new(listening.expect("the server listens"));
        let address = listening.address();

        let stop = Arc::new(AtomicBool::new(false));
        let idle: Work<S> = Box::new(|_, _| false);
        let work = Arc::new(Mutex::new(idle));
        let (stopped, todo) = (stop.clone(), work.clone());
        let packets = std::thread::spawn(move || {
            thread.set(std::thread::current()).expect("nobody else does");
            let (started, mut output) = (Instant::now(), Vec::new());
            while !stopped.load(Relaxed) {
                let now = Time::from_ns(started.elapsed().as_nanos() as u64);
                let more = rung.swap(false, Relaxed)
                    && operations.poll(&mut DataPlane {
                        switch: &mut switch,
                        now,
                        output: &mut output,
                        stop_others: &|| (),
                    });
                if more {
                    rung.store(true, Relaxed);
                }
                let busy = todo.lock().expect("the work does not panic")(&mut switch, now);
                if switch.has_notifications() {
                    let program = switch.program().clone();
                    notifier.send(&program, switch.take_notifications());
                }
                if !busy && !more {
                    std::thread::park_timeout(std::time::Duration::from_millis(10));
                }
            }
        });

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let (requests, receiver) = mpsc::unbounded_channel();
        let (client, messages) = runtime.block_on(async {
            let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
            let mut client = P4RuntimeClient::new(endpoint.connect().await.expect("the server answers"));
            let arbitration = v1::MasterArbitrationUpdate {
                device_id: 1,
                election_id: Some(v1::Uint128 { high: 0, low: 1 }),
                ..Default::default()
            };
            let update = Some(v1::stream_message_request::Update::Arbitration(arbitration));
            requests.send(v1::StreamMessageRequest { update }).expect("the stream is open");
            let stream = client.stream_channel(UnboundedReceiverStream::new(receiver)).await;
            let mut messages = stream.expect("the stream opens").into_inner();
            messages.message().await.expect("arbitration succeeds").expect("the stream goes on");
            (client, messages)
        });
        Rig { info, runtime, client, _requests: requests, messages, listening, packets: Some(packets), work, stop }
    }

    /// Sets the packet thread's work.
    pub fn work(&self, work: Work<S>) {
        *self.work.lock().expect("the work does not panic") = work;
        self.packets.iter().for_each(|packets| packets.thread().unpark());
    }
}

impl<S> Drop for Rig<S> {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.packets.take().map(JoinHandle::join);
    }
}

/// Returns a write of these updates by the primary.
pub fn request(updates: Vec<v1::Update>) -> v1::WriteRequest {
    v1::WriteRequest { device_id: 1, election_id: Some(v1::Uint128 { high: 0, low: 1 }), updates, ..Default::default() }
}

/// Returns an update of a table entry.
pub fn update(kind: v1::update::Type, entry: v1::TableEntry) -> v1::Update {
    let entity = Some(v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) });
    v1::Update { r#type: kind.into(), entity }
}
