//! Writes to the switch: the full set of rules, or one change of it.

use std::time::{Duration, Instant};

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::write_request::Atomicity;
use subscribe::UpdateMode;
use subscribe_p4::entries::{Entity, Update, UpdatePlan};

use super::{InstallError, LoadedProgram, SwitchSession, repair};
use crate::attribution::RejectedUpdate;
use crate::compatibility;
use crate::program_names::{MissingObject, ProgramNames};
use crate::rule_set::{RuleSet, WrittenProgram};
use crate::service_status::ServiceEvent;
use crate::switch_client::SwitchClient;
use crate::switch_content::{self, SwitchContent};
use crate::switch_error::{Incompatibility, SwitchError};

/// Maximum number of updates in a write that need not be atomic.
const BATCH_UPDATES: usize = 10_000;
/// Time in which every message has left a switch that applies updates one after the other.
const DRAIN_TIME: Duration = Duration::from_millis(100);

impl SwitchSession<'_> {
    /// Loads the program if the switch has another one, reads the forwarding state, and writes the differences.
    pub(super) fn try_reconcile(
        &mut self,
        rules: &mut RuleSet<'_>,
        report: &dyn Fn(ServiceEvent),
    ) -> Result<ServiceEvent, InstallError> {
        let client = self.client.as_ref().ok_or(SwitchError::NotPrimary)?;
        let (names, loaded) = self.load_program(client, rules, report)?;
        let atomic = client.is_atomic()?;
        if !atomic && let Some(field) = self.program.format.fields.iter().find(|field| field.codes.is_some()) {
            let field = field.name.to_string();
            return Err(SwitchError::from(Incompatibility::CodesNotAtomic { field }).into());
        }
        let incompatible = |why| SwitchError::from(Incompatibility::Compilation(why));
        let mode = if atomic { UpdateMode::Atomic } else { UpdateMode::PerMessageConsistent };
        rules.set_update_mode(mode).map_err(incompatible)?;
        let mut steps = rules.full_install().map_err(incompatible)?;
        let current = self.read(client, &names)?;
        let mut wanted = content(&names, &steps)?;
        // Another run of this service may have numbered the states in another order.
        if current != wanted && !current.is_empty() && !self.has_generation_of(rules) {
            let at_switch: Vec<Entity> = current.entities().filter_map(|entity| names.decode(entity)).collect();
            if rules.adopt_slots(&at_switch).map_err(incompatible)? {
                steps = rules.full_install().map_err(incompatible)?;
                wanted = content(&names, &steps)?;
            }
            if rules.adopt_states(&steps, &at_switch) {
                steps = rules.full_install().map_err(incompatible)?;
                wanted = content(&names, &steps)?;
            }
        }
        let updates = current.updates_to(&wanted);
        let (writes, mut cleanup) = (updates.len(), Vec::new());
        if current.is_empty() {
            // Nothing is delivered before the last step, and the first may be long.
            write_batches(client, &names, &encode(&names, &steps.prepare)?)?;
            self.activate(client, &names, atomic, &steps)?;
        } else if atomic {
            write(client, &names, updates, Atomicity::DataplaneAtomic)?;
        } else if updates.is_empty() {
        } else if let Some(steps) = self.repair_steps(&names, &current, &wanted, rules) {
            // Messages may still be on their way past entries that were written earlier.
            std::thread::sleep(DRAIN_TIME);
            self.prepare_and_activate(client, &names, &steps)?;
            cleanup = encode(&names, &steps.cleanup)?;
        } else {
            // The numbers of states may have new meanings, so delivery stops until all entries are written.
            let (entrances, rest) = current
                .updates_to(&SwitchContent::default())
                .into_iter()
                .partition(|update| is_entrance(&names, update));
            write(client, &names, entrances, Atomicity::ContinueOnError)?;
            std::thread::sleep(DRAIN_TIME);
            write(client, &names, rest, Atomicity::ContinueOnError)?;
            write_batches(client, &names, &encode(&names, &steps.prepare)?)?;
            self.activate(client, &names, atomic, &steps)?;
        }
        self.loaded = Some(LoadedProgram { names, atomic });
        self.schedule_cleanup(cleanup);
        Ok(ServiceEvent::Installed { rules: rules.len(), writes, loaded, atomic })
    }

    /// Reads the entities that belong to the rules. The tables of the format's own controls do not, nor do other clone
    /// sessions, nor other multicast groups if entries hold bitmaps of ports.
    fn read(&self, client: &SwitchClient, names: &ProgramNames) -> Result<SwitchContent, SwitchError> {
        let mut content = client.read_content(&names.tables())?;
        let (has_bitmaps, has_messages) =
            (self.program.options.bitmap.is_some(), self.program.format.messages.is_some());
        let is_group = |id| !has_bitmaps || has_messages && id == u32::from(subscribe_p4::EVERYONE);
        let is_session = |id| has_messages && id == u32::from(subscribe_p4::REST_SESSION);
        content.retain_replication(is_group, is_session);
        Ok(content)
    }

    /// Loads the program unless the switch has it. Returns the names of the switch's program, and whether it was
    /// loaded.
    fn load_program(
        &self,
        client: &SwitchClient,
        rules: &mut RuleSet<'_>,
        report: &dyn Fn(ServiceEvent),
    ) -> Result<(ProgramNames, bool), SwitchError> {
        let current = client.pipeline_config()?;
        if let Some(config) = &current {
            let info = config.p4info.clone().unwrap_or_default();
            let known_cookie = config.cookie.as_ref().map_or(0, |cookie| cookie.cookie);
            let is_loaded = |program: &WrittenProgram| {
                let has_same_objects = info.tables == program.info.tables && info.actions == program.info.actions;
                known_cookie == cookie(&program.text) || known_cookie == 0 && has_same_objects
            };
            if !is_loaded(rules.written()) {
                self.adopt_order(&info, is_loaded, rules, report)?;
            }
            if is_loaded(rules.written()) || self.keep_program {
                let is_of_format = subscribe_p4::order(&self.program.rules.format, table_names(&info)).is_some();
                return match compatibility::find_mismatch(&info, &rules.written().info, is_of_format) {
                    None => Ok((ProgramNames::new(&info), false)),
                    Some(difference) => Err(Incompatibility::Program(difference).into()),
                };
            }
        }
        if self.keep_program {
            return Err(Incompatibility::NoProgram.into());
        }
        let WrittenProgram { text, info, .. } = rules.written();
        client.set_pipeline_config(v1::ForwardingPipelineConfig {
            p4info: Some(info.clone()),
            p4_device_config: text.clone().into_bytes(),
            cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie: cookie(text) }),
        })?;
        Ok((ProgramNames::new(info), true))
    }

    /// Compiles the rules in the order of fields of the switch's program, if that program fits them in all other
    /// respects. Another program would lose the counters of this one.
    fn adopt_order(
        &self,
        info: &P4Info,
        is_loaded: impl Fn(&WrittenProgram) -> bool,
        rules: &mut RuleSet<'_>,
        report: &dyn Fn(ServiceEvent),
    ) -> Result<(), SwitchError> {
        if self.program.is_forced {
            return Ok(());
        }
        let order = subscribe_p4::order(&self.program.rules.format, table_names(info));
        let Some(order) = order.filter(|order| *order != rules.written().layout) else { return Ok(()) };
        if !self.keep_program && !is_loaded(&(self.program.write)(self.program, &order)) {
            return Ok(());
        }
        let better = (rules.written().layout.names(&self.program.rules.format), rules.entries());
        match rules.recompile_with(&order) {
            Ok(()) => report(ServiceEvent::OtherOrder { entries: rules.entries(), better }),
            Err(why) if self.keep_program => {
                return Err(Incompatibility::Order(why).into());
            }
            // The switch gets another program then.
            Err(_) => {}
        }
        Ok(())
    }

    /// Returns the steps that repair the switch where states have the same numbers as in the rules.
    fn repair_steps(
        &self,
        names: &ProgramNames,
        current: &SwitchContent,
        wanted: &SwitchContent,
        rules: &RuleSet<'_>,
    ) -> Option<UpdatePlan> {
        repair::steps(names, current, wanted, &self.attempted).filter(|_| self.has_generation_of(rules))
    }

    /// UpdateMode a change.
    pub fn write(&mut self, steps: &UpdatePlan) -> Result<(), InstallError> {
        if steps.is_empty() {
            return Ok(());
        }
        self.clean_up()?;
        if let Some(program) = self.loaded.as_ref().filter(|program| !program.atomic) {
            self.attempted = repair::attempted(&program.names, &steps.clone().all());
        }
        let (Some(client), Some(program)) = (&self.client, &self.loaded) else {
            return Err(SwitchError::NotPrimary.into());
        };
        if program.atomic {
            let updates = encode(&program.names, &steps.clone().all())?;
            write(client, &program.names, updates, Atomicity::DataplaneAtomic)?;
        } else {
            self.prepare_and_activate(client, &program.names, steps)?;
            let cleanup = encode(&program.names, &steps.cleanup)?;
            self.schedule_cleanup(cleanup);
        }
        self.changes += 1;
        Ok(())
    }

    /// UpdateMode the steps of a change except the cleanup, one after the other.
    fn prepare_and_activate(
        &self,
        client: &SwitchClient,
        names: &ProgramNames,
        steps: &UpdatePlan,
    ) -> Result<(), InstallError> {
        write_batches(client, names, &encode(names, &steps.prepare)?)?;
        self.activate(client, names, false, steps)
    }

    /// Schedules updates for the time when every message has left the old entries.
    fn schedule_cleanup(&mut self, updates: Vec<v1::Update>) {
        self.cleanup = (!updates.is_empty()).then(|| (Instant::now() + DRAIN_TIME, updates));
    }

    /// UpdateMode the updates that lead messages to the new rules.
    fn activate(
        &self,
        client: &SwitchClient,
        names: &ProgramNames,
        atomic: bool,
        steps: &UpdatePlan,
    ) -> Result<(), InstallError> {
        if atomic {
            return write(client, names, encode(names, &steps.transition.concat())?, Atomicity::DataplaneAtomic);
        }
        for (at, phase) in steps.transition.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(DRAIN_TIME);
            }
            // Within one write a switch may choose the order (specification 12.2).
            for update in encode(names, phase)? {
                write(client, names, vec![update], Atomicity::ContinueOnError)?;
            }
        }
        Ok(())
    }

    /// Deletes the entries that no other entry leads to any more. Waits until no message can meet them.
    pub(super) fn clean_up(&mut self) -> Result<(), InstallError> {
        let Some((due, updates)) = self.cleanup.take() else { return Ok(()) };
        let (Some(client), Some(program)) = (&self.client, &self.loaded) else {
            return Err(SwitchError::NotPrimary.into());
        };
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        write_batches(client, &program.names, &updates)
    }
}

/// UpdateMode updates. A rejection is described in the names of the program.
fn write(
    client: &SwitchClient,
    names: &ProgramNames,
    updates: Vec<v1::Update>,
    atomicity: Atomicity,
) -> Result<(), InstallError> {
    client.write(updates, atomicity).map_err(|error| match error {
        SwitchError::Rejected(rejection) => InstallError::Rejected(RejectedUpdate::new(&rejection, names)),
        other => other.into(),
    })
}

/// UpdateMode updates that need not be atomic, in batches.
fn write_batches(client: &SwitchClient, names: &ProgramNames, updates: &[v1::Update]) -> Result<(), InstallError> {
    updates.chunks(BATCH_UPDATES).try_for_each(|batch| write(client, names, batch.to_vec(), Atomicity::ContinueOnError))
}

/// Returns the content of an empty switch after these steps.
fn content(names: &ProgramNames, steps: &UpdatePlan) -> Result<SwitchContent, SwitchError> {
    let mut content = SwitchContent::default();
    for update in steps.clone().all() {
        let (Update::Insert(entity) | Update::Modify(entity)) = update else { continue };
        content.put(names.encode(&entity).map_err(missing)?);
    }
    Ok(content)
}

fn missing(MissingObject { object, table }: MissingObject) -> SwitchError {
    Incompatibility::MissingObject { object, table }.into()
}

fn encode(names: &ProgramNames, updates: &[Update]) -> Result<Vec<v1::Update>, SwitchError> {
    let mut encoded = Vec::with_capacity(updates.len());
    for update in updates {
        let (kind, entity) = match update {
            Update::Insert(entity) => (Type::Insert, entity),
            Update::Modify(entity) => (Type::Modify, entity),
            Update::Delete(entity) => (Type::Delete, entity),
        };
        encoded.push(switch_content::update(kind, names.encode(entity).map_err(missing)?));
    }
    Ok(encoded)
}

/// Whether an update is of an entry that messages meet first: one of the validity table, or of state 0.
fn is_entrance(names: &ProgramNames, update: &v1::Update) -> bool {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(v1::entity::Entity::TableEntry(entry)) => names.is_entrance(entry),
        _ => false,
    }
}

fn table_names(info: &P4Info) -> impl Iterator<Item = &str> + Clone {
    info.tables.iter().filter_map(|table| table.preamble.as_ref()).map(|preamble| preamble.name.as_str())
}

/// Returns a cookie that identifies the program: the FNV-1a hash of its text, and never 0.
fn cookie(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash.max(1)
}
