//! Implements the server without sockets, clocks and threads: a state machine from messages to changes and responses.

mod arrays;
mod config;
mod notifications;
mod restore;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use authorization::Policy;
use compiler::Architecture;
use p4_constraints::References;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use switch::{Frame, PortId, SwitchControl};
use v1::stream_message_response::Update as Response;

use crate::arbitration::{Admission, Arbitration, Outbox, StreamId, unknown_role};
use crate::array_mirror::{ArrayMirror, ChunkChanges, KeptArrays};
use crate::caller::Caller;
use crate::digests::DigestLists;
use crate::entity_key::EntityKey;
use crate::pipeline::Pipeline;
use crate::read::EntityReader;
use crate::restrictions;
use crate::role::RoleAccess;
use crate::shadow::ShadowState;
use crate::status::{Code, Refusal, Status, cut};
use crate::store::StoreChanges;
use crate::translate::{EntityTranslator, Overlay, subject_id};
use crate::write::WriteBatch;

pub(crate) use arrays::TouchedElements;
pub use restore::RestoredUpdates;
pub(crate) use restore::reconcile;

/// The version of the specification that the server implements.
pub const API_VERSION: &str = "1.5.0";

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The architecture that programs are compiled for.
    pub architecture: &'static dyn Architecture,
    /// The device id that clients use.
    pub device_id: u64,
    /// The ports of the switch.
    pub ports: BTreeSet<u32>,
    /// The port of packets to and from the controller.
    pub cpu_port: Option<u32>,
    /// Maximum number of updates of one write, or of requests of one read.
    pub max_batch: usize,
    /// Maximum number of streams of one role.
    pub max_streams_a_role: usize,
    /// Maximum number of streams from one address.
    pub max_streams_a_peer: usize,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// Maximum number of connections from one address.
    pub max_connections_a_peer: usize,
    /// Timeout of a connection until its first call, of a message until it is complete, of a stream until its first
    /// arbitration update, and of a client until it takes the next part of a response.
    pub client_timeout: Duration,
    /// The arrays whose elements are kept, if there is a store.
    pub kept_arrays: KeptArrays,
    /// Interval at which changed elements of kept arrays are stored.
    pub keep_interval: Duration,
    /// The users and their rights; without it every client has every right.
    pub policy: Option<Arc<Policy>>,
}

impl Settings {
    /// Returns settings for device 1 with these ports and this architecture.
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
            client_timeout: Duration::from_secs(20),
            kept_arrays: KeptArrays::default(),
            keep_interval: Duration::from_secs(1),
            policy: None,
        }
    }
}

/// A pipeline and its contents.
#[derive(Debug)]
struct PipelineState {
    pipeline: Pipeline,
    shadow: ShadowState,
    /// References between entities of the shadow. A write in progress borrows them.
    references: References,
}

impl PipelineState {
    fn new(pipeline: Pipeline, shadow: ShadowState) -> PipelineState {
        let references = restrictions::references(&pipeline.schema, &shadow);
        PipelineState { pipeline, shadow, references }
    }
}

/// The action of a request to set a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigAction {
    Verify,
    Save,
    Commit,
    Reconcile,
}

/// The plan for a request to set a pipeline.
pub(crate) enum ConfigPlan {
    /// Compile a config, then take the action.
    Compile(Box<v1::ForwardingPipelineConfig>, ConfigAction),
    /// Run the saved pipeline.
    CommitSaved,
}

/// Maximum size of a client's message that is echoed in an error, in bytes (16.6 leaves this to the server).
const ECHO_BYTES: usize = 2 << 10;

/// Cuts a packet for an error: its payload is truncated. Returns `None` if the metadata alone are too long.
fn echo(mut packet: v1::PacketOut) -> Option<v1::PacketOut> {
    let long = packet.encoded_len().saturating_sub(ECHO_BYTES);
    packet.payload.truncate(packet.payload.len().checked_sub(long)?);
    // Releases the memory of the part that was cut off.
    packet.payload.shrink_to_fit();
    Some(packet)
}

/// A P4Runtime server for one device.
pub struct Server {
    settings: Settings,
    arbitration: Arbitration,
    /// The running pipeline.
    committed: Option<PipelineState>,
    /// The pipeline that is saved and not committed. Reads and writes go to it and to its switch, which processes no
    /// packets.
    saved: Option<(PipelineState, Box<dyn SwitchControl>)>,
    digests: DigestLists,
    /// Changes that must be stored, if there is a store.
    changes: Option<StoreChanges>,
    /// The stored content of the running pipeline's arrays, if it is kept.
    mirror: Option<ArrayMirror>,
    /// Stored rows whose keys have changed since they were stored, until they are moved.
    moved_rows: StoreChanges,
    /// Stored chunks that do not fit the program, until they are deleted.
    gone_arrays: ChunkChanges,
    last_stream: u64,
    open_streams: BTreeMap<StreamId, OpenStream>,
}

/// The client at the other end of a stream.
#[derive(Debug)]
struct OpenStream {
    /// Its address, where known.
    peer: Option<IpAddr>,
    caller: Caller,
}

impl Server {
    /// Creates a server without a pipeline.
    pub fn new(settings: Settings) -> Server {
        Server {
            arbitration: Arbitration::new(settings.device_id, settings.max_streams_a_role),
            settings,
            committed: None,
            saved: None,
            digests: DigestLists::default(),
            changes: None,
            mirror: None,
            moved_rows: StoreChanges::default(),
            gone_arrays: ChunkChanges::new(),
            last_stream: 0,
            open_streams: BTreeMap::new(),
        }
    }

    /// Sets the pipeline that `switch` already runs. The shadow starts with the switch's contents.
    #[must_use]
    pub fn with_pipeline(mut self, pipeline: Pipeline, switch: &dyn SwitchControl) -> Server {
        let shadow = ShadowState::of(&pipeline.schema, switch);
        self.committed = Some(PipelineState::new(pipeline, shadow));
        self
    }

    /// Starts recording changes for [`Server::take_changes`].
    pub(crate) fn record_changes(&mut self) {
        let mut changes = std::mem::take(&mut self.moved_rows);
        changes.committed.arrays = std::mem::take(&mut self.gone_arrays);
        self.changes = Some(changes);
        if self.mirror.is_none() {
            self.mirror = self.committed.as_ref().and_then(|state| self.new_mirror(state.pipeline.program()));
        }
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> StoreChanges {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the changes that store everything, pipelines included.
    pub(crate) fn everything(&self) -> StoreChanges {
        let all = |state: &PipelineState| state.shadow.all(&state.pipeline.config);
        StoreChanges {
            committed: self.committed.as_ref().map(all).unwrap_or_default(),
            saved: self.saved.as_ref().map(|(state, _)| all(state)).unwrap_or_default(),
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the pipeline that reads and writes refer to.
    fn state(&self) -> Result<&PipelineState, Refusal> {
        let state = self.saved.as_ref().map(|(state, _)| state).or(self.committed.as_ref());
        state.ok_or_else(|| {
            Refusal::new(Code::FailedPrecondition, "no pipeline is set; use SetForwardingPipelineConfig to set one")
        })
    }

    /// Handles `Capabilities`.
    ///
    /// # Errors
    /// `NOT_FOUND` for another device.
    pub fn capabilities(&self, request: &v1::CapabilitiesRequest) -> Result<v1::CapabilitiesResponse, Status> {
        if request.device_id != 0 {
            self.arbitration.check_device(request.device_id)?;
        }
        Ok(v1::CapabilitiesResponse { p4runtime_api_version: API_VERSION.to_owned(), experimental: None })
    }

    /// Returns the maximum length of a response to `GetForwardingPipelineConfig`, in bytes.
    pub(crate) fn pipeline_bytes(&self) -> usize {
        self.state().map_or(0, |state| state.pipeline.config.encoded_len())
    }

    // ── Streams ──

    /// Opens a stream of a caller, from this address if it is known.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there are too many.
    pub fn open_stream(&mut self, peer: Option<IpAddr>, caller: Caller) -> Result<StreamId, Status> {
        /// Maximum number of streams over all roles.
        const MAX_STREAMS: usize = 256;
        let exhausted = |message: String| Err(Refusal::new(Code::ResourceExhausted, message).into());
        if self.open_streams.len() >= MAX_STREAMS {
            return exhausted(format!("the limit of {MAX_STREAMS} streams is reached"));
        }
        if let Some(peer) = peer
            && self.open_streams.values().filter(|other| other.peer == Some(peer)).count()
                >= self.settings.max_streams_a_peer
        {
            let most = self.settings.max_streams_a_peer;
            return exhausted(format!("{peer} has reached the limit of {most} streams"));
        }
        self.last_stream += 1;
        let stream = StreamId(self.last_stream);
        self.open_streams.insert(stream, OpenStream { peer, caller });
        Ok(stream)
    }

    /// Whether a stream has sent an arbitration update.
    pub(crate) fn is_live(&self, stream: StreamId) -> bool {
        self.arbitration.is_live(stream)
    }

    /// Closes a stream.
    pub fn close_stream(&mut self, stream: StreamId, outbox: &mut Outbox) {
        self.end_stream(stream, outbox);
        self.release_stream(stream);
    }

    /// Ends a stream: it is no controller any more. It keeps its place until [`Server::release_stream`].
    pub(crate) fn end_stream(&mut self, stream: StreamId, outbox: &mut Outbox) {
        self.arbitration.end(stream, outbox);
    }

    /// Releases the place of a stream, when none of its messages is in memory any more.
    pub(crate) fn release_stream(&mut self, stream: StreamId) {
        self.open_streams.remove(&stream);
    }

    /// Handles a message of a stream. Returns a packet for the switch.
    ///
    /// # Errors
    /// The status with which the stream must be ended.
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
                self.check_arbitration(stream, &update)?;
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
                Refusal::unimplemented("the architecture has no stream messages"),
                Details::Other(v1::StreamOtherError { other: Some(other).filter(|it| it.encoded_len() <= ECHO_BYTES) }),
            ),
            None => (
                Refusal::invalid("the message is empty or of an unknown kind"),
                Details::Other(v1::StreamOtherError { other: None }),
            ),
        };
        self.stream_error(stream, refusal, details, outbox);
        Ok(None)
    }

    /// Checks that the caller of a stream may hold the role, and may write what its config claims for the role alone:
    /// no other role may write these objects.
    fn check_arbitration(&self, stream: StreamId, update: &v1::MasterArbitrationUpdate) -> Result<(), Refusal> {
        let caller = self.caller_of(stream)?;
        if matches!(caller, Caller::Anyone) {
            return Ok(());
        }
        let role = update.role.as_ref();
        caller.check_role(role.map_or("", |role| &role.name))?;
        let access = RoleAccess::of(role.and_then(|role| role.config.as_ref()))?;
        let schema = self.state().ok().map(|state| &*state.pipeline.schema);
        caller.check_exclusive(schema, access.exclusive_ids())
    }

    /// Reports an error about a message to the client of its stream.
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

    /// Returns the caller of a stream.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` if the stream is not open.
    fn caller_of(&self, stream: StreamId) -> Result<&Caller, Refusal> {
        let open = self.open_streams.get(&stream).map(|open| &open.caller);
        open.ok_or_else(|| Refusal::denied("the stream has ended"))
    }

    fn primary(&self, stream: StreamId) -> Result<&RoleAccess, Refusal> {
        self.arbitration.primary_access(stream).ok_or_else(|| {
            if self.arbitration.is_live(stream) {
                Refusal::denied("only the primary may send this")
            } else {
                Refusal::denied("the stream has no role yet; send arbitration first")
            }
        })
    }

    fn packet_out(&self, stream: StreamId, packet: &v1::PacketOut) -> Result<Frame, Refusal> {
        if !self.primary(stream)?.has_packets() {
            return Err(Refusal::denied("the role's config does not allow packet I/O"));
        }
        self.caller_of(stream)?.check_packets()?;
        let committed = self.committed.as_ref();
        let committed =
            committed.ok_or_else(|| Refusal::new(Code::FailedPrecondition, "no pipeline is running yet"))?;
        let port = self.settings.cpu_port;
        let port = port.ok_or_else(|| Refusal::new(Code::FailedPrecondition, "the switch has no CPU port"))?;
        let data = match &committed.pipeline.schema.packet_out {
            Some(header) => header.join(&packet.metadata, &packet.payload)?,
            None if packet.metadata.is_empty() => packet.payload.clone(),
            None => {
                return Err(Refusal::invalid("the program has no packet_out header; send packets without metadata"));
            }
        };
        Ok(Frame { port: PortId(port), data })
    }

    fn digest_ack(&mut self, stream: StreamId, ack: &v1::DigestListAck) -> Result<(), Refusal> {
        let access = self.primary(stream)?;
        let committed = self.committed.as_ref();
        let committed =
            committed.ok_or_else(|| Refusal::new(Code::FailedPrecondition, "no pipeline is running yet"))?;
        let known = committed.pipeline.schema.digest(ack.digest_id);
        let name = &known.map_err(|refusal| Refusal::invalid(refusal.message))?.name;
        // Those that receive no list must not acknowledge one for others.
        if !access.allows(Some(ack.digest_id)) {
            return Err(Refusal::denied("the role's config does not list this digest"));
        }
        self.caller_of(stream)?.check_digest(name)?;
        self.digests.acknowledge(ack.digest_id, ack.list_id);
        Ok(())
    }

    // ── Writes ──

    /// Admits and translates a write.
    ///
    /// # Errors
    /// The status of the call, if no update is tried.
    pub(crate) fn begin_write(&mut self, request: &v1::WriteRequest, caller: &Caller) -> Result<WriteBatch, Status> {
        caller.check_role(&request.role)?;
        #[expect(deprecated, reason = "reports the use of a deprecated field")]
        let role_id = request.role_id;
        let admission =
            self.arbitration.admit(request.device_id, role_id, &request.role, request.election_id.as_ref())?;
        match self.plan(request, &admission, caller) {
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
        caller: &Caller,
    ) -> Result<impl FnOnce(Admission, References) -> WriteBatch + use<>, Refusal> {
        let state = self.state()?;
        let atomicity = v1::write_request::Atomicity::try_from(request.atomicity)
            .map_err(|_| Refusal::invalid(format!("unknown atomicity {}", request.atomicity)))?;
        self.check_batch(request.updates.len(), "updates")?;
        let access = self.arbitration.access_of(admission);
        let excluded = self.arbitration.excluded_from(admission);
        let schema = &state.pipeline.schema;
        let writable = caller.writable(schema);
        let mut translator = EntityTranslator {
            schema,
            shadow: &state.shadow,
            ports: &self.settings.ports,
            overlay: Overlay::default(),
        };
        let mut plan = |update: &v1::Update| {
            let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
            entity.map_or(Ok(()), |entity| writable.check(schema, entity))?;
            let id = entity.map(subject_id);
            if id.is_some_and(|id| !access.allows(id)) {
                return Err(Refusal::denied("the role's config does not list this object"));
            }
            if let Some(owner) = id.flatten().and_then(|id| excluded.get(&id)) {
                return Err(Refusal::denied(format!("the role `{owner}` has claimed this object exclusively")));
            }
            translator.update(update)
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
        Ok(move |admission, references| WriteBatch::new(admission, program, atomicity, plans, references))
    }

    fn check_batch(&self, count: usize, what: &str) -> Result<(), Refusal> {
        if count <= self.settings.max_batch {
            Ok(())
        } else {
            Err(Refusal::new(
                Code::ResourceExhausted,
                format!("{count} {what} in one call; the limit is {}", self.settings.max_batch),
            ))
        }
    }

    /// Returns the switch that reads and writes go to while a pipeline is saved and not committed.
    pub(crate) fn saved_switch(&mut self) -> Option<&mut dyn SwitchControl> {
        self.saved.as_mut().map(|(_, switch)| &mut **switch)
    }

    /// Records the effects of a write and returns the status of the call.
    pub(crate) fn finish_write(&mut self, batch: WriteBatch, outbox: &mut Outbox) -> Result<(), Status> {
        let (admission, results, changes, references) = batch.into_results();
        let (state, kept) = match &mut self.saved {
            Some((state, _)) => (Some(state), self.changes.as_mut().map(|kept| &mut kept.saved)),
            None => (self.committed.as_mut(), self.changes.as_mut().map(|kept| &mut kept.committed)),
        };
        if let Some(state) = state {
            let keys: Vec<_> = match kept {
                Some(_) => changes.iter().flat_map(|change| EntityKey::of(change, &state.shadow)).collect(),
                None => Vec::new(),
            };
            changes.into_iter().for_each(|change| state.shadow.apply(change));
            state.references = references;
            if let Some(kept) = kept {
                kept.extend(state.shadow.changes(keys));
            }
        }
        self.arbitration.done(admission, outbox);
        Status::of_batch("updates", &results)
    }

    // ── Reads ──

    /// Begins a read on a snapshot of the shadow.
    ///
    /// # Errors
    /// The status of the call, if no request is processed.
    pub(crate) fn begin_read(&self, request: v1::ReadRequest, caller: &Caller) -> Result<EntityReader, Status> {
        self.arbitration.check_device(request.device_id)?;
        let state = self.state()?;
        self.check_batch(request.entities.len(), "requests")?;
        let access = match (self.arbitration.access(&request.role), request.role.as_str()) {
            (Some(access), _) => access.clone(),
            (None, "") => RoleAccess::default(),
            (None, name) => return Err(unknown_role(name).into()),
        };
        let schema = state.pipeline.schema.clone();
        let readable = caller.readable(&schema);
        Ok(EntityReader::new(schema, state.shadow.clone(), access, readable, request.entities))
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
