//! A server and its switch, driven by a client over the loopback interface.
//!
//! Ports are 1 to 4; packets enter with [`Rig::send`] and leave with [`Rig::sent`]. Names are those of P4Info, in
//! full or their last part.

pub mod build;
pub mod session;
mod start;

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
pub use p4runtime_proto::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
pub use p4runtime_proto::v1::set_forwarding_pipeline_config_request::Action;
use switch::Frame;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

pub use build::*;
pub use session::*;

/// The program with a table and an object of every kind.
pub const EVERY: &str = include_str!("../../../p4/every.p4");

/// The id of the only device.
pub const DEVICE: u64 = 1;

/// Timeout for everything that must come.
pub const SOON: Duration = Duration::from_secs(60);
/// Time to wait for what must not come.
pub const NEVER: Duration = Duration::from_millis(150);

/// A running server and switch, and the primary of the default role.
pub struct Rig {
    pub runtime: Runtime,
    pub channel: Channel,
    pub info: P4Info,
    /// The primary's stream.
    primary: Mutex<Option<Session>>,
    frames: mpsc::Sender<Frame>,
    sent: Mutex<mpsc::Receiver<Sent>>,
}

/// Events of the switch.
#[derive(Debug)]
pub enum Sent {
    /// A frame was transmitted.
    Frame(Frame),
    /// A received frame was processed.
    Done,
}

impl Rig {
    /// Starts a server without a program and without controllers.
    pub fn bare() -> Rig {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (frames, input) = mpsc::channel();
        let (output, sent) = mpsc::channel();
        let address = start::start(input, output);
        let channel = runtime.block_on(async {
            let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
            endpoint.connect().await.unwrap()
        });
        Rig { runtime, channel, info: P4Info::default(), primary: Mutex::new(None), frames, sent: Mutex::new(sent) }
    }

    /// Starts a server with a primary of election id 1, which sets this program.
    pub fn with(source: &str) -> Rig {
        let mut rig = Rig::bare();
        rig.primary = Mutex::new(Some(rig.session(Some(1))));
        rig.set(Action::VerifyAndCommit, Some(config(source))).unwrap();
        rig.info = rig.get().p4info.unwrap();
        rig
    }

    /// Starts a server with [`EVERY`].
    pub fn new() -> Rig {
        Rig::with(EVERY)
    }

    /// Returns the primary's stream.
    pub fn primary(&mut self) -> &mut Session {
        self.primary.get_mut().unwrap().as_mut().expect("there is a primary")
    }

    /// Opens another stream that claims the default role with this election id.
    pub fn session(&self, election: Option<u128>) -> Session {
        let mut session = self.open();
        session.arbitrate(DEVICE, "", election);
        let answer = session.recv().expect("the update is answered");
        assert!(answer.update.is_some(), "{answer:?}");
        session
    }

    /// Opens another stream without arbitration.
    pub fn open(&self) -> Session {
        Session::open(self)
    }

    /// Returns the client for unary calls.
    pub fn client(&self) -> P4RuntimeClient<Channel> {
        P4RuntimeClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    /// Writes as the primary.
    pub fn write(&self, updates: Vec<v1::Update>) -> Result<(), Failed> {
        self.write_as(v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(uint128(1)),
            updates,
            ..Default::default()
        })
    }

    /// Sends any write request.
    pub fn write_as(&self, request: v1::WriteRequest) -> Result<(), Failed> {
        let mut client = self.client();
        self.runtime.block_on(client.write(request)).map(drop).map_err(Failed::of)
    }

    /// Writes one update as the primary.
    fn one(&self, kind: v1::update::Type, entity: v1::Entity) -> Result<(), Refused> {
        let update = v1::Update { r#type: kind.into(), entity: Some(entity) };
        self.write(vec![update]).map_err(|failed| {
            let mut errors = failed.errors;
            assert_eq!(errors.len(), 1, "{:?} {}", failed.code, failed.message);
            errors.remove(0)
        })
    }

    pub fn insert(&self, entity: impl IntoEntity) -> Result<(), Refused> {
        self.one(v1::update::Type::Insert, entity.entity())
    }

    pub fn modify(&self, entity: impl IntoEntity) -> Result<(), Refused> {
        self.one(v1::update::Type::Modify, entity.entity())
    }

    pub fn delete(&self, entity: impl IntoEntity) -> Result<(), Refused> {
        self.one(v1::update::Type::Delete, entity.entity())
    }

    /// Reads all entities of a request.
    pub fn read_all(&self, entities: Vec<v1::Entity>) -> Result<Vec<v1::Entity>, Failed> {
        self.read_as(v1::ReadRequest { device_id: DEVICE, entities, ..Default::default() }).1
    }

    /// Returns the entities and the status of any read request.
    pub fn read_as(&self, request: v1::ReadRequest) -> (Vec<v1::Entity>, Result<Vec<v1::Entity>, Failed>) {
        let mut client = self.client();
        self.runtime.block_on(async {
            let mut found = Vec::new();
            let mut stream = match client.read(request).await {
                Ok(stream) => stream.into_inner(),
                Err(status) => return (found, Err(Failed::of(status))),
            };
            loop {
                match stream.message().await {
                    Ok(Some(response)) => found.extend(response.entities),
                    Ok(None) => return (found.clone(), Ok(found)),
                    Err(status) => return (found, Err(Failed::of(status))),
                }
            }
        })
    }

    /// Reads one entity. The read must succeed.
    #[track_caller]
    pub fn read(&self, entity: impl IntoEntity) -> Vec<v1::Entity> {
        self.read_all(vec![entity.entity()]).unwrap()
    }

    /// Returns the code of a read that fails.
    #[track_caller]
    pub fn read_code(&self, entity: impl IntoEntity) -> Code {
        let failed = self.read_all(vec![entity.entity()]).expect_err("this read fails");
        failed.errors.first().map_or(failed.code, |refused| refused.code)
    }

    /// Reads the table entries of one request.
    #[track_caller]
    pub fn entries(&self, entry_filter: v1::TableEntry) -> Vec<v1::TableEntry> {
        let entry = |entity: v1::Entity| match entity.entity {
            Some(v1::entity::Entity::TableEntry(entry)) => entry,
            other => panic!("no table entry: {other:?}"),
        };
        self.read(entry_filter).into_iter().map(entry).collect()
    }

    /// Sets the pipeline as the primary.
    pub fn set(&self, action: Action, config: Option<v1::ForwardingPipelineConfig>) -> Result<(), Failed> {
        self.set_as(v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(uint128(1)),
            action: action.into(),
            config,
            ..Default::default()
        })
    }

    /// Sends any request for a pipeline.
    pub fn set_as(&self, request: v1::SetForwardingPipelineConfigRequest) -> Result<(), Failed> {
        let mut client = self.client();
        self.runtime.block_on(client.set_forwarding_pipeline_config(request)).map(drop).map_err(Failed::of)
    }

    /// Returns the whole pipeline.
    pub fn get(&self) -> v1::ForwardingPipelineConfig {
        self.get_as(DEVICE, ResponseType::All).unwrap().unwrap_or_default()
    }

    /// Returns the requested part of the pipeline.
    pub fn get_as(
        &self,
        device_id: u64,
        response_type: ResponseType,
    ) -> Result<Option<v1::ForwardingPipelineConfig>, Failed> {
        let mut client = self.client();
        let request = v1::GetForwardingPipelineConfigRequest { device_id, response_type: response_type.into() };
        let answer = self.runtime.block_on(client.get_forwarding_pipeline_config(request)).map_err(Failed::of)?;
        Ok(answer.into_inner().config)
    }

    /// Sends a frame to a port.
    pub fn send(&self, port: u32, data: &[u8]) {
        self.frames.send(Frame::new(port, data)).unwrap();
    }

    /// Returns the next transmitted frame: port and bytes.
    #[track_caller]
    pub fn sent(&self) -> (u32, Vec<u8>) {
        loop {
            if let Sent::Frame(frame) = self.sent.lock().unwrap().recv_timeout(SOON).expect("a frame leaves") {
                return (frame.port.0, frame.data);
            }
        }
    }

    /// Returns the ports by which copies of a frame leave, in order.
    #[track_caller]
    pub fn copies(&self, port: u32, data: &[u8]) -> Vec<u32> {
        self.send(port, data);
        let mut ports = Vec::new();
        loop {
            match self.sent.lock().unwrap().recv_timeout(SOON).expect("the frame is dealt with") {
                Sent::Frame(frame) => ports.push(frame.port.0),
                Sent::Done => return ports,
            }
        }
    }

    /// Returns the port by which a frame leaves, if it does.
    #[track_caller]
    pub fn through(&self, port: u32, data: &[u8]) -> Option<u32> {
        self.copies(port, data).first().copied()
    }

    /// Checks that no frame leaves.
    #[track_caller]
    pub fn sends_nothing(&self) {
        if let Ok(Sent::Frame(frame)) = self.sent.lock().unwrap().recv_timeout(NEVER) {
            panic!("{frame:?} leaves");
        }
    }
}
