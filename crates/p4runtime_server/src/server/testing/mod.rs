//! A server and its switch in one thread, checked against invariants after every call. Tests and fuzzers use it.
//!
//! - The server's shadow equals the state of the switch.
//! - Reads return the state of a reference model that knows the specification and no server.
//! - A batch that failed under ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC leaves nothing behind.
//! - A new pipeline holds its program's own entries or the former contents, as the request's action says. Writes to a
//!   pipeline that is only saved do not affect the running one.

pub mod generate;
mod reference;
pub mod script;

use std::cell::Cell;
use std::sync::Arc;

use compiler::Architecture;
use ir::Program;
pub use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::write_request::Atomicity;
use switch::{BuildError, Device, PacketSwitch, SwitchControl, Time};

use super::{ConfigAction, ConfigPlan, PipelineState, Server, Settings, reconcile};
use crate::arbitration::{Outbox, StreamId};
use crate::caller::Caller;
use crate::data_plane::{DataPlane, NotificationBatch};
use crate::pipeline::Pipeline;
use crate::read::ReadPiece;
use crate::schema::Schema;
use crate::shadow::{ShadowChange, ShadowState, decode};
use crate::status::{Refusal, Status};
use crate::store::{Store, StoreChanges, StoredState};
use generate::RandomSource;
use reference::ReferenceModel;

/// The program with a table and an object of every kind.
pub const EVERY: &str = include_str!("../../../tests/p4/every.p4");

/// An architecture and its switch, for the server under test.
pub trait TestTarget {
    /// The switch.
    type Switch: PacketSwitch;

    /// Returns the architecture.
    fn architecture() -> &'static dyn Architecture;

    /// Returns [`EVERY`] and its P4Info, compiled once for this architecture.
    fn every() -> (Arc<Program>, P4Info);

    /// Builds a switch with the ports 0 to 3 and a CPU port.
    ///
    /// # Errors
    /// If the switch cannot run the program.
    fn build(program: Arc<Program>) -> Result<Self::Switch, BuildError>;
}

/// The contents of a pipeline, as the server's shadow and as the switch hold them.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenState {
    /// Contents of the shadow.
    pub kept: Vec<String>,
    /// Contents of the switch.
    pub had: Vec<String>,
}

/// A server, its switch, and the primary of the default role with election id 1.
pub struct TestServer<T: TestTarget> {
    server: Server,
    /// The switch that packets run on.
    pub switch: T::Switch,
    /// The source of random numbers for [`generate`].
    pub random: RandomSource,
    reference: ReferenceModel,
    /// While a pipeline is saved: the contents of the running one, which must not change.
    running: Option<WrittenState>,
    streams: Vec<StreamId>,
    now: Time,
    /// How often other threads had to stop for a write.
    pub stops: Cell<u64>,
}

impl<T: TestTarget> TestServer<T> {
    /// Starts a server whose switch runs [`EVERY`].
    pub fn new(seed: u64) -> TestServer<T> {
        let (program, info) = T::every();
        let switch = T::build(program.clone()).expect("the switch runs it");
        let pipeline = Pipeline::new(program, info, EVERY.as_bytes().to_vec());
        let cpu_port = switch.cpu_port().map(|port| port.0);
        let settings = Settings::new(T::architecture(), 0..4, cpu_port);
        let server = Server::new(settings).with_pipeline(pipeline, &switch);
        let mut world = TestServer::of(server, switch, seed);
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            ..Default::default()
        };
        let update = Some(v1::stream_message_request::Update::Arbitration(arbitration));
        world.open_stream();
        world.stream_message(0, v1::StreamMessageRequest { update });
        world
    }

    fn of(server: Server, switch: T::Switch, seed: u64) -> TestServer<T> {
        let (reference, streams) = (ReferenceModel::default(), Vec::new());
        let (random, running) = (RandomSource::new(seed), None);
        let mut world =
            TestServer { server, switch, random, reference, running, streams, now: Time::ZERO, stops: Cell::new(0) };
        world.reference = world.read_everything();
        world
    }

    /// Restarts from stored state. `store` holds the rows of `kept`.
    pub fn restart(&self, kept: &StoredState, store: &dyn Store) -> TestServer<T> {
        let server = Server::new(self.server.settings.clone());
        let mut switch = self.another_switch();
        let pipeline = self.server.committed.as_ref().expect("there is one").pipeline.clone();
        const READ: &str = "the store can be read";
        let (mut server, restored) = server.with_restored(pipeline.clone(), store, &mut switch).expect(READ);
        assert_eq!((restored.lost, restored.messages), (0, Vec::new()));
        if kept.saved.is_some() {
            let another = Box::new(self.another_switch());
            let (with_saved, restored) = server.with_saved(pipeline, store, another).expect(READ);
            assert_eq!((restored.lost, restored.messages), (0, Vec::new()));
            server = with_saved;
        }
        TestServer::of(server, switch, 1)
    }

    fn another_switch(&self) -> T::Switch {
        T::build(self.switch.program().clone()).expect("the switch runs it")
    }

    /// Saves the running pipeline once more.
    pub fn save(&mut self) {
        let switch = self.another_switch();
        self.server.save(self.state().pipeline.clone(), Box::new(switch));
        self.note_config(ConfigAction::Save, None);
    }

    /// Commits the saved pipeline, if there is one.
    pub fn commit(&mut self) {
        if self.server.saved.is_some() {
            self.commit_unnoticed();
            self.running = None;
        }
    }

    /// Commits the saved pipeline behind the model's back.
    pub fn commit_unnoticed(&mut self) {
        self.apply_config(ConfigPlan::CommitSaved).expect("there is one");
    }

    /// Removes a clone session from the shadow of the running pipeline, behind the model's back.
    pub fn forget_clone_session(&mut self, id: u32) {
        let state = self.server.committed.as_mut().expect("there is one");
        state.shadow.apply(ShadowChange::DropClone(id));
    }

    /// Starts recording changes for [`TestServer::take_changes`].
    pub fn record_changes(&mut self) {
        self.server.record_changes();
    }

    /// Returns the changes since the last call.
    pub fn take_changes(&mut self) -> StoreChanges {
        self.server.take_changes()
    }

    /// Returns the changes that store everything.
    pub fn everything(&self) -> StoreChanges {
        self.server.everything()
    }

    /// Returns the state that reads and writes refer to.
    pub(super) fn state(&self) -> &PipelineState {
        self.server.state().expect("there is a pipeline")
    }

    /// Returns the schema that reads and writes refer to.
    pub(super) fn schema(&self) -> Arc<Schema> {
        self.state().pipeline.schema.clone()
    }

    /// Returns the switch that reads and writes refer to.
    fn behind(&self) -> &dyn SwitchControl {
        self.server.saved.as_ref().map_or(&self.switch, |(_, switch)| &**switch)
    }

    // ── Calls ──

    /// Performs a write by the primary.
    ///
    /// # Errors
    /// As the call.
    pub fn write(&mut self, atomicity: Atomicity, updates: Vec<v1::Update>) -> Result<(), Status> {
        self.write_as(v1::WriteRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            atomicity: atomicity.into(),
            updates,
            ..Default::default()
        })
    }

    /// Performs any write, in several pieces unless it is atomic.
    ///
    /// # Errors
    /// As the call.
    pub fn write_as(&mut self, request: v1::WriteRequest) -> Result<(), Status> {
        let before = (self.written(), self.registers());
        let result = self.run_write(&request);
        let after = (self.written(), self.registers());
        let all = match &result {
            Ok(()) => vec![0; request.updates.len()],
            Err(status) => status.details.iter().map(|detail| detail.canonical_code).collect(),
        };
        let is_reported = result.is_ok() || !all.is_empty();
        if !is_reported {
            assert_eq!(after, before, "a call that is refused changes nothing: {request:#?}");
        } else if result.is_err() && request.atomicity != i32::from(Atomicity::ContinueOnError) {
            assert_eq!(after, before, "a batch that failed leaves nothing behind: {request:#?}");
            assert!(all.iter().all(|code| *code != 0), "nothing of it was done: {request:#?}");
        } else if all.len() == request.updates.len() {
            let pairs = request.updates.iter().zip(all);
            pairs.for_each(|(update, code)| self.reference.note(update, code));
        } else {
            // The details of a huge batch do not fit into the response, so its effect is not known.
            self.reference = self.read_everything();
        }
        self.check(&request);
        result
    }

    fn run_write(&mut self, request: &v1::WriteRequest) -> Result<(), Status> {
        let mut batch = self.server.begin_write(request, &Caller::Anyone)?;
        let count = if batch.is_atomic() { usize::MAX } else { 3 };
        while !batch.is_finished() {
            match self.server.saved_switch() {
                Some(switch) => batch.run(switch, count, &|| ()),
                None => batch.run(&mut self.switch, count, &|| self.stops.set(self.stops.get() + 1)),
            }
        }
        self.server.finish_write(batch, &mut Outbox::new())
    }

    /// Returns the P4Info of the pipeline that reads and writes refer to.
    pub fn p4info(&self) -> P4Info {
        self.state().pipeline.config.p4info.clone().unwrap_or_default()
    }

    /// Returns a read of everything but arrays and direct resources.
    pub fn everything_request(&self) -> v1::ReadRequest {
        everything()
    }

    /// Performs any read.
    ///
    /// # Errors
    /// As the call, after everything that can be read.
    pub fn read(&self, request: v1::ReadRequest) -> (Vec<v1::Entity>, Result<(), Status>) {
        read(&self.server, self.behind(), self.now, request)
    }

    /// Opens a stream, if the limit allows it.
    pub fn open_stream(&mut self) {
        self.streams.extend(self.server.open_stream(None, Caller::Anyone));
    }

    /// Closes one of the open streams.
    pub fn close_stream(&mut self, number: usize) {
        if !self.streams.is_empty() {
            let stream = self.streams.remove(number % self.streams.len());
            self.server.close_stream(stream, &mut Outbox::new());
        }
    }

    /// Sends a message on one of the open streams. A packet passes through the switch, and its notifications go to
    /// the server.
    pub fn stream_message(&mut self, number: usize, message: v1::StreamMessageRequest) {
        let Some(stream) = self.streams.get(number % self.streams.len().max(1)).copied() else { return };
        let mut outbox = Outbox::new();
        match self.server.stream_message(stream, message, &mut outbox) {
            Ok(None) => {}
            Ok(Some(frame)) => self.packet(frame.port.0, frame.data),
            Err(_) => {
                self.streams.retain(|other| *other != stream);
                self.server.close_stream(stream, &mut outbox);
            }
        }
        for (to, _) in outbox {
            assert!(self.streams.contains(&to) || to == stream, "messages are for streams that are open");
        }
    }

    /// Receives a packet, a second after the last event.
    pub fn packet(&mut self, port: u32, data: Vec<u8>) {
        self.now = self.now.after_ns(1_000_000_000);
        self.switch.step(self.now, &mut vec![switch::Frame::new(port, data)], &mut Vec::new());
        let (program, now_ns) = (self.switch.program().clone(), self.now.as_ns());
        let batch = NotificationBatch { program, notifications: self.switch.take_notifications() };
        let mut outbox = Outbox::new();
        self.server.notify(batch, now_ns, now_ns as i64, &mut outbox);
        self.server.tick(now_ns, now_ns as i64, &mut outbox);
    }

    /// Sets a pipeline as the service does.
    ///
    /// # Errors
    /// As the call.
    pub fn set_config(&mut self, request: v1::SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let before = self.state().pipeline.clone();
        let (admission, plan) = self.server.begin_config(request.clone(), &Caller::Anyone)?;
        let action = match &plan {
            ConfigPlan::Compile(_, action) => Some(*action),
            ConfigPlan::CommitSaved => None,
        };
        let result = self.apply_config(plan);
        self.server.finish_config(admission, &mut Outbox::new());
        match (&result, action) {
            (Ok(()), Some(action)) => self.note_config(action, Some(&before)),
            (Ok(()), None) => self.running = None,
            (Err(_), _) => {}
        }
        self.check(&request);
        result.map_err(Status::from)
    }

    /// Updates the model for a pipeline that was accepted.
    fn note_config(&mut self, action: ConfigAction, before: Option<&Pipeline>) {
        let is_same = before.is_some_and(|before| *before.program() == *self.state().pipeline.program());
        match action {
            ConfigAction::Verify => return,
            ConfigAction::Save => {
                let running = self.server.committed.as_ref().map(|state| written(state, &self.switch));
                self.running = self.running.take().or(running);
            }
            ConfigAction::Commit | ConfigAction::Reconcile => self.running = None,
        }
        self.reference = match action {
            ConfigAction::Reconcile if is_same => return,
            // Only the server knows which of these the other program has as well.
            ConfigAction::Reconcile => self.read_everything(),
            _ => self.brought(),
        };
    }

    /// Returns the initial contents of the pipeline that reads refer to.
    fn brought(&self) -> ReferenceModel {
        let pipeline = self.state().pipeline.clone();
        let switch = T::build(pipeline.program().clone()).expect("the switch runs it already");
        let server = Server::new(self.server.settings.clone()).with_pipeline(pipeline, &switch);
        let all = read(&server, &switch, self.now, everything()).0;
        ReferenceModel::of(all, server.state().expect("it has one").shadow.initial.clone())
    }

    fn apply_config(&mut self, plan: ConfigPlan) -> Result<(), Refusal> {
        let (config, action) = match plan {
            ConfigPlan::CommitSaved => {
                let (pipeline, shadow, switch) = self.server.take_saved().expect("the plan says so");
                self.swap(switch, false);
                self.server.committed(pipeline, shadow);
                return Ok(());
            }
            ConfigPlan::Compile(config, action) => (config, action),
        };
        let pipeline = Pipeline::compile(*config, T::architecture())?;
        let switch = T::build(pipeline.program().clone());
        let mut switch = switch.map_err(|error| Refusal::invalid(error.to_string()))?;
        let shadow = match action {
            ConfigAction::Reconcile => {
                let (updates, ports) = (self.server.replay(), self.server.settings().ports.clone());
                reconcile(&pipeline, &ports, &updates, &mut switch)?
            }
            _ => ShadowState::of(&pipeline.schema, &switch),
        };
        match action {
            ConfigAction::Verify => {}
            ConfigAction::Save => self.server.save(pipeline, Box::new(switch)),
            ConfigAction::Commit | ConfigAction::Reconcile => {
                self.swap(Box::new(switch), action == ConfigAction::Reconcile);
                self.server.committed(pipeline, shadow);
            }
        }
        Ok(())
    }

    fn swap(&mut self, next: Box<dyn SwitchControl>, keep: bool) {
        let mut plane =
            DataPlane { switch: &mut self.switch, now: self.now, output: &mut Vec::new(), stop_others: &|| () };
        crate::exchange::exchange(&mut plane, next, keep);
    }

    // ── Invariants ──

    /// Checks that the switch equals the shadow, and reads equal the reference model.
    pub fn check(&self, request: &impl std::fmt::Debug) {
        let WrittenState { kept, had } = self.written();
        assert_eq!(kept, had, "the switch has what the server says: {request:#?}");
        if let Some(difference) = self.read_everything().difference(&self.reference) {
            panic!("reads give what was written: {difference}\n{request:#?}");
        }
        assert_eq!(self.server.saved.is_some(), self.running.is_some(), "{request:#?}");
        if let (Some(before), Some(committed)) = (&self.running, &self.server.committed) {
            let running = written(committed, &self.switch);
            assert_eq!(running, *before, "what packets run stays until COMMIT: {request:#?}");
        }
    }

    /// Reads everything that a controller can have written.
    fn read_everything(&self) -> ReferenceModel {
        let (all, result) = self.read(everything());
        assert_eq!(result, Ok(()), "everything can be read");
        ReferenceModel::of(all, self.state().shadow.initial.clone())
    }

    /// Returns the contents of the pipeline that reads and writes refer to.
    fn written(&self) -> WrittenState {
        written(self.state(), self.behind())
    }

    /// Returns the contents of the running pipeline and of the saved one.
    pub fn contents(&self) -> Vec<WrittenState> {
        let committed = self.server.committed.iter().map(|state| written(state, &self.switch));
        let saved = self.server.saved.iter().map(|(state, switch)| written(state, &**switch));
        committed.chain(saved).collect()
    }

    fn registers(&self) -> Vec<String> {
        let (schema, switch) = (self.schema(), self.behind());
        let registers = schema.registers.values().flat_map(|register| {
            let read = |at| switch.objects().register(register.array.ir, at).expect("it is there").to_string();
            (0..register.array.size).map(read)
        });
        registers.collect()
    }
}

fn read(
    server: &Server,
    switch: &dyn SwitchControl,
    now: Time,
    request: v1::ReadRequest,
) -> (Vec<v1::Entity>, Result<(), Status>) {
    let mut reader = match server.begin_read(request, &Caller::Anyone) {
        Ok(reader) => reader,
        Err(status) => return (Vec::new(), Err(status)),
    };
    let mut all = Vec::new();
    while let Some(piece) = reader.next() {
        let entities = match piece {
            ReadPiece::Ready(entities) => entities,
            ReadPiece::Live(ask) => ask(switch, now.as_ns()),
        };
        all.extend(reader.visible(entities));
    }
    (all, reader.status())
}

/// Returns a request for everything that the reference model holds.
fn everything() -> v1::ReadRequest {
    let entities = reference::questions().into_iter().map(|entity| v1::Entity { entity: Some(entity) }).collect();
    v1::ReadRequest { device_id: 1, entities, ..Default::default() }
}

/// Returns the contents of a pipeline, as the shadow and as its switch hold them.
fn written(state: &PipelineState, switch: &dyn SwitchControl) -> WrittenState {
    let PipelineState { pipeline: Pipeline { schema, .. }, shadow, .. } = state;
    let kept = |id, _, index| {
        let single = shadow.meters.get(&(id, Some(index)));
        single.or_else(|| shadow.meters.get(&(id, None))).copied().flatten()
    };
    let had = |_, ir, index| {
        let config = switch.objects().meter_config(ir, index).expect("it is there");
        config.map(crate::translate::print_meter)
    };
    let (kept, had) = (meters(schema, kept), meters(schema, had));
    WrittenState {
        kept: shared_state(shadow).into_iter().chain(kept).collect(),
        had: shared_state(&ShadowState::of(schema, switch)).into_iter().chain(had).collect(),
    }
}

/// Renders the meters of all arrays, with configs from `config`.
fn meters(schema: &Schema, config: impl Fn(u32, ir::MeterId, u64) -> Option<v1::MeterConfig>) -> Vec<String> {
    let cells = schema.meters.values().flat_map(|array| (0..array.size).map(move |index| (array, index)));
    cells.map(|(array, index)| format!("meter {} {index} {:?}", array.id, config(array.id, array.ir, index))).collect()
}

/// Renders the part of a shadow that the switch holds too. Metadata and digest configs, which only the server keeps,
/// are left out.
fn shared_state(shadow: &ShadowState) -> Vec<String> {
    let entries = shadow.tables.values().flat_map(|entries| entries.iter()).map(|(_, entry)| {
        let v1::TableEntry { table_id, r#match, priority, action, idle_timeout_ns, meter_config, is_const, .. } =
            decode(entry);
        let meter = meter_config.map(|config| format!("{config:?}"));
        format!("{table_id} {match:?} {priority} {action:?} {idle_timeout_ns} {meter:?} {is_const}")
    });
    let defaults = shadow.defaults.values().map(|entry| format!("default {} {:?}", entry.table_id, entry.action));
    let members = shadow.members.iter().map(|(key, action)| format!("member {key:?} {action:?}"));
    let groups = shadow.groups.iter().map(|(_, group)| format!("{group:?}"));
    let multicast = shadow.multicast.iter().map(|(id, group)| {
        let mut replicas = group.replicas.clone();
        for replica in &mut replicas {
            // Port 0 may be left out; the switch does not know whether it was.
            replica.port_kind.get_or_insert(v1::replica::PortKind::Port(vec![0]));
        }
        format!("multicast {id} {replicas:?}")
    });
    let clones = shadow.clones.iter().map(|(_, session)| format!("{session:?}"));
    let value_sets = shadow.value_sets.iter().filter(|(_, members)| !members.is_empty()).map(|(id, members)| {
        let mut members: Vec<_> = members.iter().map(|member| format!("{member:?}")).collect();
        members.sort();
        format!("value set {id} {members:?}")
    });
    let all = entries.chain(defaults).chain(members).chain(groups).chain(multicast).chain(clones).chain(value_sets);
    all.collect()
}
