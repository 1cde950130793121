//! A server with a switch behind it in one thread, held after every call against what must be true: what tests and
//! fuzzers run.
//!
//! - What the server says is written is what the switch has.
//! - What reads give is what a ledger has, which knows the specification and no server.
//! - A batch that failed under ROLLBACK_ON_ERROR or DATAPLANE_ATOMIC leaves nothing behind.

pub mod generate;
mod ledger;
pub mod script;

use std::sync::{Arc, OnceLock};

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::write_request::Atomicity;
use switch::{Device, Time};
use v1model::{Config, Executor, Switch};

use super::{ConfigAction, ConfigPlan, Server, Settings, State, reconcile};
use crate::arbitration::{Outbox, StreamId};
use crate::mirror::{Mirror, decode};
use crate::pipeline::{Pipeline, compile_source};
use crate::plane::Told;
use crate::read::Piece;
use crate::schema::Schema;
use crate::status::{Refusal, Status};
use generate::Random;
use ledger::Ledger;

/// The program with a table and an object of every kind.
pub const EVERY: &str = include_str!("../../../tests/p4/every.p4");

/// [`EVERY`], compiled once.
fn every() -> (Arc<ir::Program>, P4Info) {
    static COMPILED: OnceLock<(Arc<ir::Program>, P4Info)> = OnceLock::new();
    let compile = || {
        let (program, info) = compile_source(EVERY).expect("the program is right");
        (Arc::new(program), info)
    };
    COMPILED.get_or_init(compile).clone()
}

/// A server and its switch, and the primary of the default role, whose election id is 1.
pub struct World {
    pub(super) server: Server,
    pub(super) switch: Switch,
    /// For [`generate`].
    pub random: Random,
    ledger: Ledger,
    streams: Vec<StreamId>,
    now: Time,
}

impl World {
    /// A switch that runs [`EVERY`].
    pub fn new(seed: u64) -> World {
        let (program, info) = every();
        let config = Config { executor: Executor::Interpreter, ..Config::with_ports(4) };
        let switch = Switch::new(program.clone(), config).expect("the switch runs it");
        let pipeline = Pipeline::new(program, info, EVERY.as_bytes().to_vec());
        let server = Server::new(Settings::new(0..4, Some(510))).with_pipeline(pipeline, &switch);
        let mut world = World::of(server, switch, seed);
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

    fn of(server: Server, switch: Switch, seed: u64) -> World {
        let (ledger, streams) = (Ledger::default(), Vec::new());
        let mut world = World { server, switch, random: Random::new(seed), ledger, streams, now: Time::ZERO };
        world.ledger = world.written();
        world
    }

    /// A switch that has been started anew with what was kept.
    #[cfg(test)]
    pub(super) fn again(of: &World, updates: &[v1::Update]) -> World {
        let config = of.switch.config().clone();
        let mut switch = Switch::new(of.switch.program().clone(), config).expect("the switch runs it");
        let pipeline = of.state().pipeline.clone();
        let (server, lost) = Server::new(of.server.settings.clone()).with_kept(pipeline, updates, &mut switch);
        assert_eq!(lost, super::Lost::default());
        World::of(server, switch, 1)
    }

    /// What reads and writes are about.
    pub(super) fn state(&self) -> &State {
        self.server.state().expect("there is a pipeline")
    }

    /// What its names mean.
    pub(super) fn schema(&self) -> Arc<Schema> {
        self.state().pipeline.schema.clone()
    }

    /// The switch that reads and writes go to.
    fn behind(&self) -> &Switch {
        self.server.saved.as_ref().map_or(&self.switch, |(_, switch)| switch)
    }

    // ── Calls ──

    /// A write by the primary.
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

    /// Any write, in several pieces unless it is atomic.
    ///
    /// # Errors
    /// As the call.
    pub fn write_as(&mut self, request: v1::WriteRequest) -> Result<(), Status> {
        let before = (self.kept(), self.had());
        let result = self.run_write(&request);
        let after = (self.kept(), self.had());
        assert_eq!(after.0, after.1.0, "the switch has what the server says: {request:#?}");
        let all = match &result {
            Ok(()) => vec![0; request.updates.len()],
            Err(status) => status.details.iter().map(|detail| detail.canonical_code).collect(),
        };
        let is_told = result.is_ok() || !all.is_empty();
        if !is_told {
            assert_eq!(after, before, "a call that is refused changes nothing: {request:#?}");
        } else if result.is_err() && request.atomicity != i32::from(Atomicity::ContinueOnError) {
            assert_eq!(after, before, "a batch that failed leaves nothing behind: {request:#?}");
            assert!(all.iter().all(|code| *code != 0), "nothing of it was done: {request:#?}");
        } else if all.len() == request.updates.len() {
            let pairs = request.updates.iter().zip(all);
            pairs.for_each(|(update, code)| self.ledger.note(update, code));
        } else {
            self.ledger = self.written();
        }
        self.hold(&request);
        result
    }

    fn run_write(&mut self, request: &v1::WriteRequest) -> Result<(), Status> {
        let mut batch = self.server.begin_write(request)?;
        let count = if batch.is_atomic() { usize::MAX } else { 3 };
        while !batch.is_finished() {
            match self.server.saved_switch() {
                Some(switch) => batch.run(switch, count),
                None => batch.run(&mut self.switch, count),
            }
        }
        self.server.finish_write(batch, &mut Outbox::new())
    }

    /// Any read.
    ///
    /// # Errors
    /// As the call, when all that can be read has been.
    pub fn read(&self, request: v1::ReadRequest) -> (Vec<v1::Entity>, Result<(), Status>) {
        let mut reader = match self.server.begin_read(request) {
            Ok(reader) => reader,
            Err(status) => return (Vec::new(), Err(status)),
        };
        let mut all = Vec::new();
        while let Some(piece) = reader.next() {
            let entities = match piece {
                Piece::Ready(entities) => entities,
                Piece::Live(ask) => ask(self.behind(), self.now.as_ns()),
            };
            all.extend(reader.visible(entities));
        }
        (all, reader.status())
    }

    /// Opens a stream, if there is room for one more.
    pub fn open_stream(&mut self) {
        self.streams.extend(self.server.open_stream(None));
    }

    /// Ends one of the streams that are open.
    pub fn close_stream(&mut self, number: usize) {
        if !self.streams.is_empty() {
            let stream = self.streams.remove(number % self.streams.len());
            self.server.close_stream(stream, &mut Outbox::new());
        }
    }

    /// A message on one of the streams that are open. A packet goes through the switch, and what the switch tells to the
    /// server.
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

    /// A packet comes in, a second after what was before.
    pub fn packet(&mut self, port: u32, data: Vec<u8>) {
        self.now = self.now.after_ns(1_000_000_000);
        self.switch.step(self.now, &mut vec![switch::Frame::new(port, data)], &mut Vec::new());
        let (program, now_ns) = (self.switch.program().clone(), self.now.as_ns());
        let told = Told { program, notifications: self.switch.take_notifications() };
        let mut outbox = Outbox::new();
        self.server.told(told, now_ns, now_ns as i64, &mut outbox);
        self.server.tick(now_ns, now_ns as i64, &mut outbox);
    }

    /// A new pipeline, as the service sets it.
    ///
    /// # Errors
    /// As the call.
    pub fn set_config(&mut self, request: v1::SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let (admission, plan) = self.server.begin_config(request)?;
        let result = self.apply_config(plan);
        self.server.finish_config(admission, &mut Outbox::new());
        assert_eq!(self.kept(), self.had().0, "the switch has what the server says");
        self.ledger = self.written();
        result.map_err(Status::from)
    }

    fn apply_config(&mut self, plan: ConfigPlan) -> Result<(), Refusal> {
        let (config, action) = match plan {
            ConfigPlan::CommitSaved => {
                let (pipeline, mirror, switch) = self.server.take_saved().expect("the plan says so");
                self.switch = *switch;
                self.server.committed(pipeline, mirror);
                return Ok(());
            }
            ConfigPlan::Compile(config, action) => (config, action),
        };
        let pipeline = Pipeline::compile(*config)?;
        let switch = Switch::new(pipeline.program().clone(), self.switch.config().clone());
        let mut switch = switch.map_err(|error| Refusal::invalid(error.to_string()))?;
        let mirror = match action {
            ConfigAction::Reconcile => {
                let (updates, ports) = (self.server.replay(), self.server.settings().ports.clone());
                reconcile(&pipeline, &ports, &updates, &mut switch)?
            }
            _ => Mirror::of(&pipeline.schema, &switch),
        };
        match action {
            ConfigAction::Verify => {}
            ConfigAction::Save => self.server.save(pipeline, Box::new(switch)),
            ConfigAction::Commit | ConfigAction::Reconcile => {
                self.switch = switch;
                self.server.committed(pipeline, mirror);
            }
        }
        Ok(())
    }

    // ── What must be true ──

    /// What can be read is what the ledger has.
    fn hold(&self, request: &v1::WriteRequest) {
        if let Some(difference) = self.written().difference(&self.ledger) {
            panic!("reads give what was written: {difference}\n{request:#?}");
        }
    }

    /// Everything that a controller can have written, as reads give it.
    fn written(&self) -> Ledger {
        let entities = ledger::questions().into_iter().map(|entity| v1::Entity { entity: Some(entity) }).collect();
        let (all, result) = self.read(v1::ReadRequest { device_id: 1, entities, ..Default::default() });
        assert_eq!(result, Ok(()), "everything can be read");
        Ledger::of(all, self.state().mirror.initial.clone())
    }

    /// All that is written, as the server keeps it.
    pub(super) fn kept(&self) -> Vec<String> {
        let mirror = &self.state().mirror;
        let meter = |id: u32, _, index| {
            let single = mirror.meters.get(&(id, Some(index)));
            single.or_else(|| mirror.meters.get(&(id, None))).copied().flatten()
        };
        told(mirror).chain(self.meters(meter)).collect()
    }

    /// The meters of all arrays, as somebody says they are.
    fn meters(
        &self,
        config: impl Fn(u32, ir::MeterId, u64) -> Option<v1::MeterConfig>,
    ) -> impl Iterator<Item = String> {
        let arrays: Vec<_> = self.schema().meters.values().cloned().collect();
        let told = arrays
            .into_iter()
            .flat_map(|array| (0..array.size).map(move |index| (array.id, array.ir, index)).collect::<Vec<_>>());
        told.map(move |(id, ir, index)| format!("meter {id} {index} {:?}", config(id, ir, index)))
    }

    /// All that is written, as the switch has it, and its registers.
    pub(super) fn had(&self) -> (Vec<String>, Vec<String>) {
        let (schema, switch) = (self.schema(), self.behind());
        let registers = schema.registers.values().flat_map(|register| {
            let read = |at| switch.objects().register(register.array.ir, at).expect("it is there").to_string();
            (0..register.array.size).map(read)
        });
        let meter = |_, ir, index| {
            let config = switch.objects().meter_config(ir, index).expect("it is there");
            config.map(crate::translate::print_meter)
        };
        (told(&Mirror::of(&schema, switch)).chain(self.meters(meter)).collect(), registers.collect())
    }
}

fn told(mirror: &Mirror) -> impl Iterator<Item = String> {
    let entries = mirror.tables.iter().flat_map(|(table, entries)| {
        entries.iter().map(move |(_, entry)| {
            let entry = decode(entry);
            format!("{table} {:?} {} {:?}", entry.r#match, entry.priority, entry.action)
        })
    });
    let defaults = mirror.defaults.values().map(|entry| format!("default {} {:?}", entry.table_id, entry.action));
    let members = mirror.members.iter().map(|(key, action)| format!("member {key:?} {action:?}"));
    let groups = mirror.groups.iter().map(|(key, group)| format!("group {key:?} {:?}", group.members));
    let multicast = mirror.multicast.iter().map(|(id, group)| format!("multicast {id} {:?}", group.replicas));
    let clones = mirror.clones.iter().map(|(id, session)| format!("clone {id} {:?}", session.replicas));
    let all = entries.chain(defaults).chain(members).chain(groups).chain(multicast).chain(clones);
    all.collect::<Vec<_>>().into_iter()
}
