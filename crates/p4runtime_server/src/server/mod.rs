//! The server without sockets, clocks and threads: what each message changes, and what is answered.

mod config;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use compiler::Architecture;
use p4_constraints::References;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use switch::{Frame, PortId, SwitchControl};
use v1::stream_message_response::Update as Response;

use crate::arbitration::{Admission, Arbitration, Outbox, StreamId};
use crate::asked;
use crate::digests::Digests;
use crate::keep::Changes;
use crate::mirror::Mirror;
use crate::pipeline::Pipeline;
use crate::place::Place;
use crate::read::Reader;
use crate::role::Access;
use crate::status::{Code, Refusal, Status, cut};
use crate::translate::{Overlay, Translator, subject_id};
use crate::write::Batch;

pub use config::Lost;
pub(crate) use config::reconcile;

/// The version of the specification that is served.
pub const API_VERSION: &str = "1.5.0";

/// What a server is told when it is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The architecture that programs are compiled for.
    pub architecture: &'static dyn Architecture,
    /// The device that its clients ask for.
    pub device_id: u64,
    /// The ports of the switch.
    pub ports: BTreeSet<u32>,
    /// The port of packets to and from the controller.
    pub cpu_port: Option<u32>,
    /// Updates of one write, or requests of one read.
    pub max_batch: usize,
    /// Streams of one role.
    pub max_streams_a_role: usize,
    /// Streams from one address.
    pub max_streams_a_peer: usize,
    /// Connections of all clients together.
    pub max_connections: usize,
    /// Connections from one address.
    pub max_connections_a_peer: usize,
    /// How long a connection may take until its first call, a message until it is complete, a stream until it says who it
    /// is, and a client until it takes the next part of an answer.
    pub patience: Duration,
}

impl Settings {
    /// Device 1 with these ports, for programs of this architecture.
    pub fn new(
        architecture: &'static dyn Architecture,
        ports: impl IntoIterator<Item = u32>,
        cpu_port: Option<u32>,
    ) -> Settings {
        let ports = ports.into_iter().chain(cpu_port).collect();
        Settings {
            architecture,
            device_id: 1,
            ports,
            cpu_port,
            max_batch: 1 << 20,
            max_streams_a_role: 16,
            max_streams_a_peer: 64,
            max_connections: 256,
            max_connections_a_peer: 64,
            patience: Duration::from_secs(20),
        }
    }
}

/// A pipeline and what was written to it.
#[derive(Debug)]
struct State {
    pipeline: Pipeline,
    mirror: Mirror,
    /// What refers to what in the mirror; a write that is under way has them.
    references: References,
}

impl State {
    fn new(pipeline: Pipeline, mirror: Mirror) -> State {
        let references = asked::references(&pipeline.schema, &mirror);
        State { pipeline, mirror, references }
    }
}

/// What a new pipeline is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigAction {
    Verify,
    Save,
    Commit,
    Reconcile,
}

/// What is to be done about a request for a pipeline.
pub(crate) enum ConfigPlan {
    /// Compile this, and do that with it.
    Compile(Box<v1::ForwardingPipelineConfig>, ConfigAction),
    /// Let packets run what was saved.
    CommitSaved,
}

/// Bytes of a client's own message that an error about it gives back at most (16.6 leaves that to the server).
const ECHO_BYTES: usize = 2 << 10;

/// As much of a packet as an error gives back: its payload is cut, and metadata that are too long leave nothing of it.
fn echo(mut packet: v1::PacketOut) -> Option<v1::PacketOut> {
    let long = packet.encoded_len().saturating_sub(ECHO_BYTES);
    packet.payload.truncate(packet.payload.len().checked_sub(long)?);
    // What is cut off is not kept.
    packet.payload.shrink_to_fit();
    Some(packet)
}

/// A P4Runtime server for one device.
pub struct Server {
    settings: Settings,
    arbitration: Arbitration,
    /// What packets run.
    committed: Option<State>,
    /// What was saved and not committed: reads and writes go there, to a switch that no packet sees.
    saved: Option<(State, Box<dyn SwitchControl>)>,
    digests: Digests,
    /// What is to be kept of what was done lately, if anybody keeps it.
    changes: Option<Changes>,
    last_stream: u64,
    /// Streams that are open, and where they come from, as far as that is known.
    open_streams: BTreeMap<StreamId, Option<IpAddr>>,
}

impl Server {
    /// A server without a pipeline.
    pub fn new(settings: Settings) -> Server {
        Server {
            arbitration: Arbitration::new(settings.device_id, settings.max_streams_a_role),
            settings,
            committed: None,
            saved: None,
            digests: Digests::default(),
            changes: None,
            last_stream: 0,
            open_streams: BTreeMap::new(),
        }
    }

    /// The same with the pipeline that `switch` runs already, and what it was given.
    #[must_use]
    pub fn with_pipeline(mut self, pipeline: Pipeline, switch: &dyn SwitchControl) -> Server {
        let mirror = Mirror::of(&pipeline.schema, switch);
        self.committed = Some(State::new(pipeline, mirror));
        self
    }

    /// From now on [`Server::take_changes`] says what is to be kept of each write and pipeline.
    pub(crate) fn start_keeping(&mut self) {
        self.changes = Some(Changes::default());
    }

    /// What is to be kept of what was done since this was called last.
    pub(crate) fn take_changes(&mut self) -> Changes {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Everything there is to keep, pipelines included.
    pub(crate) fn everything(&self) -> Changes {
        let all = |state: &State| state.mirror.all(&state.pipeline.config);
        Changes {
            committed: self.committed.as_ref().map(all).unwrap_or_default(),
            saved: self.saved.as_ref().map(|(state, _)| all(state)).unwrap_or_default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What reads and writes refer to.
    fn state(&self) -> Result<&State, Refusal> {
        let state = self.saved.as_ref().map(|(state, _)| state).or(self.committed.as_ref());
        state.ok_or_else(|| {
            Refusal::new(Code::FailedPrecondition, "no pipeline is set; SetForwardingPipelineConfig sets one")
        })
    }

    /// `Capabilities`.
    ///
    /// # Errors
    /// `NOT_FOUND` for another device.
    pub fn capabilities(&self, request: &v1::CapabilitiesRequest) -> Result<v1::CapabilitiesResponse, Status> {
        if request.device_id != 0 {
            self.arbitration.check_device(request.device_id)?;
        }
        Ok(v1::CapabilitiesResponse { p4runtime_api_version: API_VERSION.to_owned(), experimental: None })
    }

    /// How long `GetForwardingPipelineConfig`'s answer is at most, in bytes.
    pub(crate) fn pipeline_bytes(&self) -> usize {
        self.state().map_or(0, |state| state.pipeline.config.encoded_len())
    }

    // ── Streams ──

    /// A stream was opened, from this address if it is known.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there are too many.
    pub fn open_stream(&mut self, peer: Option<IpAddr>) -> Result<StreamId, Status> {
        /// Streams at most, over all roles.
        const MAX_STREAMS: usize = 256;
        let exhausted = |message: String| Err(Refusal::new(Code::ResourceExhausted, message).into());
        if self.open_streams.len() >= MAX_STREAMS {
            return exhausted(format!("there are {MAX_STREAMS} streams, and may be no more"));
        }
        if let Some(peer) = peer
            && self.open_streams.values().filter(|other| **other == Some(peer)).count()
                >= self.settings.max_streams_a_peer
        {
            let most = self.settings.max_streams_a_peer;
            return exhausted(format!("{peer} has {most} streams, and may have no more"));
        }
        self.last_stream += 1;
        let stream = StreamId(self.last_stream);
        self.open_streams.insert(stream, peer);
        Ok(stream)
    }

    /// Whether a stream has said who it is.
    pub(crate) fn is_live(&self, stream: StreamId) -> bool {
        self.arbitration.is_live(stream)
    }

    /// A stream ended.
    pub fn close_stream(&mut self, stream: StreamId, outbox: &mut Outbox) {
        self.open_streams.remove(&stream);
        self.arbitration.end(stream, outbox);
    }

    /// Handles a message of a stream. A packet for the switch is returned.
    ///
    /// # Errors
    /// The stream has to be ended with this status.
    pub fn stream_message(
        &mut self,
        stream: StreamId,
        message: v1::StreamMessageRequest,
        outbox: &mut Outbox,
    ) -> Result<Option<Frame>, Status> {
        use v1::stream_error::Details;
        use v1::stream_message_request::Update;
        let (refusal, details) = match message.update {
            Some(Update::Arbitration(update)) => {
                self.arbitration.update(stream, &update, outbox)?;
                return Ok(None);
            }
            Some(Update::Packet(packet)) => match self.packet_out(stream, &packet) {
                Ok(frame) => return Ok(Some(frame)),
                Err(refusal) => (refusal, Details::PacketOut(v1::PacketOutError { packet_out: echo(packet) })),
            },
            Some(Update::DigestAck(ack)) => match self.digest_ack(stream, &ack) {
                Ok(()) => return Ok(None),
                Err(refusal) => {
                    (refusal, Details::DigestListAck(v1::DigestListAckError { digest_list_ack: Some(ack) }))
                }
            },
            Some(Update::Other(other)) => (
                Refusal::unimplemented("the architecture has no stream messages of its own"),
                Details::Other(v1::StreamOtherError { other: Some(other).filter(|it| it.encoded_len() <= ECHO_BYTES) }),
            ),
            None => (
                Refusal::invalid("the message is empty, or of a kind that this server does not know"),
                Details::Other(v1::StreamOtherError { other: None }),
            ),
        };
        self.stream_error(stream, refusal, details, outbox);
        Ok(None)
    }

    /// Tells a client that a message of its stream came to nothing.
    pub(crate) fn stream_error(
        &self,
        stream: StreamId,
        mut refusal: Refusal,
        details: v1::stream_error::Details,
        outbox: &mut Outbox,
    ) {
        cut(&mut refusal.message, ECHO_BYTES);
        let error = v1::StreamError {
            canonical_code: refusal.code as i32,
            message: refusal.message,
            details: Some(details),
            ..Default::default()
        };
        outbox.push((stream, v1::StreamMessageResponse { update: Some(Response::Error(error)) }));
    }

    fn primary(&self, stream: StreamId) -> Result<&Access, Refusal> {
        self.arbitration.primary_access(stream).ok_or_else(|| match self.arbitration.is_live(stream) {
            true => Refusal::denied("only the primary may send this"),
            false => Refusal::denied("the stream has not said who it is; send arbitration first"),
        })
    }

    fn packet_out(&self, stream: StreamId, packet: &v1::PacketOut) -> Result<Frame, Refusal> {
        if !self.primary(stream)?.has_packets() {
            return Err(Refusal::denied("the role's config allows no packets"));
        }
        let committed = self.committed.as_ref();
        let committed = committed.ok_or_else(|| Refusal::new(Code::FailedPrecondition, "no pipeline runs yet"))?;
        let port = self.settings.cpu_port;
        let port = port.ok_or_else(|| Refusal::new(Code::FailedPrecondition, "the switch has no CPU port"))?;
        let data = match &committed.pipeline.schema.packet_out {
            Some(header) => header.join(&packet.metadata, &packet.payload)?,
            None if packet.metadata.is_empty() => packet.payload.clone(),
            None => {
                return Err(Refusal::invalid("the program has no packet_out header; packets go without metadata"));
            }
        };
        Ok(Frame { port: PortId(port), data })
    }

    fn digest_ack(&mut self, stream: StreamId, ack: &v1::DigestListAck) -> Result<(), Refusal> {
        self.primary(stream)?;
        let committed = self.committed.as_ref();
        let committed = committed.ok_or_else(|| Refusal::new(Code::FailedPrecondition, "no pipeline runs yet"))?;
        let known = committed.pipeline.schema.digest(ack.digest_id);
        known.map_err(|refusal| Refusal::invalid(refusal.message))?;
        self.digests.acknowledge(ack.digest_id, ack.list_id);
        Ok(())
    }

    // ── Writes ──

    /// Admits and translates a write.
    ///
    /// # Errors
    /// How the call ends, if its updates are not even tried.
    pub(crate) fn begin_write(&mut self, request: &v1::WriteRequest) -> Result<Batch, Status> {
        #[expect(deprecated, reason = "clients that use it are told")]
        let role_id = request.role_id;
        let admission =
            self.arbitration.admit(request.device_id, role_id, &request.role, request.election_id.as_ref())?;
        match self.plan(request, &admission) {
            Ok(plan) => {
                let state = self.saved.as_mut().map(|(state, _)| state).or(self.committed.as_mut());
                let references = state.map(|state| std::mem::take(&mut state.references));
                Ok(plan(admission, references.unwrap_or_default()))
            }
            Err(refusal) => {
                self.arbitration.done(admission, &mut Outbox::new());
                Err(refusal.into())
            }
        }
    }

    fn plan(
        &self,
        request: &v1::WriteRequest,
        admission: &Admission,
    ) -> Result<impl FnOnce(Admission, References) -> Batch + use<>, Refusal> {
        let state = self.state()?;
        let atomicity = v1::write_request::Atomicity::try_from(request.atomicity)
            .map_err(|_| Refusal::invalid(format!("unknown atomicity {}", request.atomicity)))?;
        self.check_batch(request.updates.len(), "updates")?;
        let access = self.arbitration.access_of(admission);
        let schema = &state.pipeline.schema;
        let mut translator =
            Translator { schema, mirror: &state.mirror, ports: &self.settings.ports, overlay: Overlay::default() };
        let mut plan = |update: &v1::Update| {
            let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
            match entity {
                Some(entity) if !access.allows(subject_id(entity)) => {
                    Err(Refusal::denied("the role's config does not list this object"))
                }
                _ => translator.update(update),
            }
        };
        let mut failed = 0;
        let plans = request.updates.iter().map(|update| {
            plan(update).map_err(|refusal| {
                failed += 1;
                refusal.unless_many(failed)
            })
        });
        let plans = plans.collect();
        let program = schema.program.clone();
        Ok(move |admission, references| Batch::new(admission, program, atomicity, plans, references))
    }

    fn check_batch(&self, count: usize, what: &str) -> Result<(), Refusal> {
        match count <= self.settings.max_batch {
            true => Ok(()),
            false => Err(Refusal::new(
                Code::ResourceExhausted,
                format!("{count} {what}; one call may have {}", self.settings.max_batch),
            )),
        }
    }

    /// The switch that reads and writes go to while a pipeline is saved and not committed.
    pub(crate) fn saved_switch(&mut self) -> Option<&mut dyn SwitchControl> {
        self.saved.as_mut().map(|(_, switch)| &mut **switch)
    }

    /// Keeps what a write did, and says how the call ends.
    pub(crate) fn finish_write(&mut self, batch: Batch, outbox: &mut Outbox) -> Result<(), Status> {
        let (admission, results, changes, references) = batch.into_results();
        let (state, kept) = match &mut self.saved {
            Some((state, _)) => (Some(state), self.changes.as_mut().map(|kept| &mut kept.saved)),
            None => (self.committed.as_mut(), self.changes.as_mut().map(|kept| &mut kept.committed)),
        };
        if let Some(state) = state {
            let places: Vec<_> = match kept {
                Some(_) => changes.iter().flat_map(|change| Place::of(change, &state.mirror)).collect(),
                None => Vec::new(),
            };
            changes.into_iter().for_each(|change| state.mirror.apply(change));
            state.references = references;
            if let Some(kept) = kept {
                kept.extend(state.mirror.changes(places));
            }
        }
        self.arbitration.done(admission, outbox);
        Status::of_batch("updates", &results)
    }

    // ── Reads ──

    /// Begins a read, with a snapshot of what was written.
    ///
    /// # Errors
    /// How the call ends, if its requests are not even looked at.
    pub(crate) fn begin_read(&self, request: v1::ReadRequest) -> Result<Reader, Status> {
        self.arbitration.check_device(request.device_id)?;
        let state = self.state()?;
        self.check_batch(request.entities.len(), "requests")?;
        let access = match (self.arbitration.access(&request.role), request.role.as_str()) {
            (Some(access), _) => access.clone(),
            (None, "") => Access::default(),
            (None, name) => return Err(Refusal::not_found(format!("there is no role `{name}`")).into()),
        };
        Ok(Reader::new(state.pipeline.schema.clone(), state.mirror.clone(), access, request.entities))
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
