//! Performs the operations of a write on the switch: checked and translated, ready to run between two batches of
//! packets.
//!
//! Each operation takes effect as a whole or not at all, and returns the [`Undo`] that reverts it.

use bits::Bits;
use engine::{ActionCall, ActionSpec, CounterValue, EntryError, GroupMember, MeterConfig, Objects, TableEntry};
use ir::{CounterId, KeyValue, MeterId, ProfileId, RegisterId, TableId, ValueSetId};
use switch::{MirrorSession, MulticastGroup, SwitchControl};

/// A table entry and the counter and meter written with it.
#[derive(Clone, Debug)]
pub(crate) struct EntryWrite {
    pub table: TableId,
    pub keys: Vec<KeyValue>,
    pub priority: i32,
    /// `None` leaves the action unchanged.
    pub action: Option<ActionSpec>,
    pub idle_timeout_ns: u64,
    /// `None` leaves the counter unchanged.
    pub counter: Option<CounterValue>,
    /// `None` leaves the meter unchanged.
    pub meter: Option<Option<MeterConfig>>,
    /// Whether the entry is a `const` entry of the program: only its counter and meter can be written.
    pub constant: bool,
}

/// A single change of the switch.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Changes nothing in the switch: only the server's shadow changes.
    Nothing,
    InsertEntry(EntryWrite),
    ModifyEntry(EntryWrite),
    DeleteEntry {
        table: TableId,
        keys: Vec<KeyValue>,
        priority: i32,
    },
    /// `None` restores the program's default action.
    SetDefault(TableId, Option<ActionCall>),
    SetEntryCounter {
        table: TableId,
        keys: Vec<KeyValue>,
        priority: i32,
        value: Option<CounterValue>,
    },
    SetEntryMeter {
        table: TableId,
        keys: Vec<KeyValue>,
        priority: i32,
        config: Option<MeterConfig>,
    },
    InsertMember(ProfileId, u32, ActionCall),
    ModifyMember(ProfileId, u32, ActionCall),
    DeleteMember(ProfileId, u32),
    InsertGroup(ProfileId, u32, Vec<GroupMember>, u32),
    ModifyGroup(ProfileId, u32, Vec<GroupMember>),
    DeleteGroup(ProfileId, u32),
    /// One element, or all elements with `None`.
    SetCounter(CounterId, Option<u64>, CounterValue),
    SetMeter(MeterId, Option<u64>, Option<MeterConfig>),
    SetRegister(RegisterId, Option<u64>, Bits),
    InsertMulticast(u32, MulticastGroup),
    ModifyMulticast(u32, MulticastGroup),
    DeleteMulticast(u32),
    InsertMirror(u32, MirrorSession),
    ModifyMirror(u32, MirrorSession),
    DeleteMirror(u32),
    SetValueSet(ValueSetId, Vec<Vec<KeyValue>>),
}

/// A table entry before a change.
#[derive(Debug)]
pub(crate) struct EntryBefore {
    entry: TableEntry,
    constant: bool,
    counter: CounterValue,
    meter: Option<MeterConfig>,
}

impl EntryBefore {
    fn of(objects: &Objects, table: TableId, keys: &[KeyValue], priority: i32) -> Result<Box<EntryBefore>, EntryError> {
        let installed = objects.get(table, keys, priority)?;
        Ok(Box::new(EntryBefore {
            entry: installed.entry,
            constant: installed.constant,
            counter: installed.counter,
            meter: installed.meter_config,
        }))
    }
}

/// The inverse of an operation.
#[derive(Debug)]
pub(crate) enum Undo {
    Nothing,
    RemoveEntry {
        table: TableId,
        keys: Vec<KeyValue>,
        priority: i32,
    },
    /// An entry as it was before it was modified or removed.
    Entry {
        table: TableId,
        before: Box<EntryBefore>,
        removed: bool,
    },
    Op(Op),
    Group(ProfileId, u32, Vec<GroupMember>, u32),
    Counters(CounterId, Vec<CounterValue>),
    Meters(MeterId, Vec<Option<MeterConfig>>),
    /// The words of all elements of this width; none if none was ever written.
    Registers(RegisterId, u32, Vec<u64>),
    Multicast(u32, Option<MulticastGroup>),
    ShadowState(u32, Option<MirrorSession>),
}

impl Op {
    /// Returns the number of elements that an operation on a whole array writes; 0 for any other operation.
    pub(crate) fn array_elements(&self, objects: &Objects) -> u64 {
        match self {
            Op::SetCounter(id, None, _) => objects.counter_size(*id).unwrap_or(0),
            Op::SetMeter(id, None, _) => objects.meter_size(*id).unwrap_or(0),
            Op::SetRegister(id, None, _) => objects.register_size(*id),
            _ => 0,
        }
    }

    /// Whether the operation sets a counter.
    fn sets_counter(&self) -> bool {
        match self {
            Op::SetCounter(..) | Op::SetEntryCounter { .. } => true,
            Op::ModifyEntry(write) => write.counter.is_some(),
            _ => false,
        }
    }

    /// Whether the operation sets a register or a meter of an array. Packets see the effect at once, and no other
    /// operation depends on it.
    pub(crate) fn sets_shared_array(&self) -> bool {
        matches!(self, Op::SetRegister(..) | Op::SetMeter(..))
    }

    /// Whether packets see the effect at once, and not when it is published.
    pub(crate) fn is_seen_at_once(&self, objects: &Objects) -> bool {
        match self {
            Op::SetEntryMeter { .. } => true,
            Op::ModifyEntry(EntryWrite { table, keys, priority, meter: Some(meter), .. }) => {
                objects.get(*table, keys, *priority).is_ok_and(|present| present.meter_config != *meter)
            }
            // The entry may get the meter of one that is removed by the same write.
            Op::InsertEntry(write) => matches!(write.meter, Some(Some(_))),
            _ => self.sets_shared_array(),
        }
    }

    /// Runs the operation.
    pub(crate) fn run(self, switch: &mut dyn SwitchControl) -> Result<Undo, EntryError> {
        if self.sets_counter() {
            switch.collect_counts();
        }
        match self {
            Op::InsertMulticast(id, _) if switch.multicast_groups().get(id).is_some() => Err(EntryError::Duplicate),
            Op::ModifyMulticast(id, _) | Op::DeleteMulticast(id) if switch.multicast_groups().get(id).is_none() => {
                Err(EntryError::NotFound)
            }
            Op::InsertMulticast(id, group) | Op::ModifyMulticast(id, group) => {
                let before = switch.multicast_groups().get(id).cloned();
                assert!(switch.set_multicast_group(id, Some(group)), "translation checks groups");
                Ok(Undo::Multicast(id, before))
            }
            Op::DeleteMulticast(id) => {
                let before = switch.multicast_groups().get(id).cloned();
                switch.set_multicast_group(id, None);
                Ok(Undo::Multicast(id, before))
            }
            Op::InsertMirror(id, _) if switch.mirror_sessions().get(id).is_some() => Err(EntryError::Duplicate),
            Op::ModifyMirror(id, _) | Op::DeleteMirror(id) if switch.mirror_sessions().get(id).is_none() => {
                Err(EntryError::NotFound)
            }
            Op::InsertMirror(id, session) | Op::ModifyMirror(id, session) => {
                let before = switch.mirror_sessions().get(id).cloned();
                assert!(switch.set_mirror_session(id, Some(session)), "translation checks sessions");
                Ok(Undo::ShadowState(id, before))
            }
            Op::DeleteMirror(id) => {
                let before = switch.mirror_sessions().get(id).cloned();
                switch.set_mirror_session(id, None);
                Ok(Undo::ShadowState(id, before))
            }
            other => other.run_on(switch.objects_mut()),
        }
    }

    /// Runs an operation on a table, or any other operation on an object of the program.
    fn run_on(self, objects: &mut Objects) -> Result<Undo, EntryError> {
        match self {
            Op::InsertEntry(write) => insert(objects, write),
            Op::ModifyEntry(write) => modify(objects, write),
            Op::DeleteEntry { table, keys, priority } => {
                let before = EntryBefore::of(objects, table, &keys, priority)?;
                objects.delete(table, &keys, priority)?;
                Ok(Undo::Entry { table, before, removed: true })
            }
            Op::SetDefault(table, call) => {
                let before = objects.default_action(table).clone();
                match call {
                    Some(call) => objects.set_default_action(table, call)?,
                    None => objects.reset_default_action(table),
                }
                Ok(Undo::Op(Op::SetDefault(table, Some(before))))
            }
            Op::SetEntryCounter { table, keys, priority, value } => {
                objects.check_not_rows(table)?;
                let before = objects.get(table, &keys, priority)?.counter;
                if let Some(value) = value {
                    objects.set_entry_counter(table, &keys, priority, value)?;
                }
                Ok(Undo::Op(Op::SetEntryCounter { table, keys, priority, value: Some(before) }))
            }
            Op::SetEntryMeter { table, keys, priority, config } => {
                objects.check_not_rows(table)?;
                let before = objects.get(table, &keys, priority)?.meter_config;
                objects.configure_entry_meter(table, &keys, priority, config)?;
                Ok(Undo::Op(Op::SetEntryMeter { table, keys, priority, config: before }))
            }
            other => other.run_on_profile(objects),
        }
    }

    /// Runs an operation on an action profile, or any other one on an object besides tables.
    fn run_on_profile(self, objects: &mut Objects) -> Result<Undo, EntryError> {
        match self {
            Op::InsertMember(profile, id, call) => {
                objects.insert_member(profile, id, call)?;
                Ok(Undo::Op(Op::DeleteMember(profile, id)))
            }
            Op::ModifyMember(profile, id, call) => {
                let before = objects.member(profile, id).cloned().ok_or(EntryError::NotFound)?;
                objects.modify_member(profile, id, call)?;
                Ok(Undo::Op(Op::ModifyMember(profile, id, before)))
            }
            Op::DeleteMember(profile, id) => {
                let before = objects.member(profile, id).cloned().ok_or(EntryError::NotFound)?;
                objects.delete_member(profile, id)?;
                Ok(Undo::Op(Op::InsertMember(profile, id, before)))
            }
            Op::InsertGroup(profile, id, members, max_size) => {
                objects.insert_group(profile, id, members, max_size)?;
                Ok(Undo::Op(Op::DeleteGroup(profile, id)))
            }
            Op::ModifyGroup(profile, id, members) => {
                let before = objects.group(profile, id).ok_or(EntryError::NotFound)?.to_vec();
                objects.modify_group(profile, id, members)?;
                Ok(Undo::Op(Op::ModifyGroup(profile, id, before)))
            }
            Op::DeleteGroup(profile, id) => {
                let before = objects.group(profile, id).ok_or(EntryError::NotFound)?.to_vec();
                let max_size = objects.groups(profile).find(|(other, ..)| *other == id).map_or(0, |(_, _, max)| max);
                objects.delete_group(profile, id)?;
                Ok(Undo::Group(profile, id, before, max_size))
            }
            other => other.run_on_array(objects),
        }
    }

    /// Runs an operation on a counter, meter or register array, or on a value set.
    fn run_on_array(self, objects: &mut Objects) -> Result<Undo, EntryError> {
        match self {
            Op::SetCounter(id, Some(index), value) => {
                let before = objects.counter(id, index)?;
                objects.set_counter(id, index, value)?;
                Ok(Undo::Op(Op::SetCounter(id, Some(index), before)))
            }
            Op::SetCounter(id, None, value) => {
                let all = 0..objects.counter_size(id).ok_or(EntryError::NoSuchResource)?;
                let before = all.clone().map(|index| objects.counter(id, index)).collect::<Result<_, _>>()?;
                all.into_iter().try_for_each(|index| objects.set_counter(id, index, value))?;
                Ok(Undo::Counters(id, before))
            }
            Op::SetMeter(id, Some(index), config) => {
                let before = objects.meter_config(id, index)?;
                objects.configure_meter(id, index, config)?;
                Ok(Undo::Op(Op::SetMeter(id, Some(index), before)))
            }
            Op::SetMeter(id, None, config) => {
                let all = 0..objects.meter_size(id).ok_or(EntryError::NoSuchResource)?;
                let before = all.map(|index| objects.meter_config(id, index)).collect::<Result<_, _>>()?;
                objects.configure_meters(id, config)?;
                Ok(Undo::Meters(id, before))
            }
            Op::SetRegister(id, Some(index), value) => {
                objects.check_not_in_rows(id)?;
                let before = objects.register(id, index)?;
                objects.set_register(id, index, value)?;
                Ok(Undo::Op(Op::SetRegister(id, Some(index), before)))
            }
            Op::SetRegister(id, None, value) => {
                objects.check_not_in_rows(id)?;
                let (width, mut before) = (value.width(), Vec::new());
                objects.read_register_words(id, 0..objects.register_size(id), &mut before);
                objects.fill_register(id, value)?;
                Ok(Undo::Registers(id, width, before))
            }
            Op::SetValueSet(id, members) => {
                let before = objects.value_set(id).to_vec();
                objects.clear_value_set(id);
                let result = members.into_iter().try_for_each(|member| objects.insert_value_set_member(id, member));
                if let Err(error) = result {
                    refill(objects, id, before);
                    return Err(error);
                }
                Ok(Undo::Op(Op::SetValueSet(id, before)))
            }
            Op::Nothing => Ok(Undo::Nothing),
            other => unreachable!("{other:?} is run on the switch"),
        }
    }
}

fn refill(objects: &mut Objects, id: ValueSetId, members: Vec<Vec<KeyValue>>) {
    objects.clear_value_set(id);
    for member in members {
        objects.insert_value_set_member(id, member).expect("it was there before");
    }
}

fn insert(objects: &mut Objects, write: EntryWrite) -> Result<Undo, EntryError> {
    let EntryWrite { table, keys, priority, action, idle_timeout_ns, counter, meter, .. } = write;
    let action = action.expect("translation asks for the action of an insert");
    let entry = TableEntry { keys: keys.clone(), priority, action, metadata: Vec::new(), idle_timeout_ns };
    objects.insert(table, entry)?;
    let attached = attach(objects, table, &keys, priority, counter, meter);
    if let Err(error) = attached {
        objects.delete(table, &keys, priority).expect("it was just inserted");
        return Err(error);
    }
    Ok(Undo::RemoveEntry { table, keys, priority })
}

fn modify(objects: &mut Objects, write: EntryWrite) -> Result<Undo, EntryError> {
    let EntryWrite { table, keys, priority, action, idle_timeout_ns, counter, meter, constant } = write;
    let before = EntryBefore::of(objects, table, &keys, priority)?;
    if !constant {
        let action = action.unwrap_or_else(|| before.entry.action.clone());
        let entry = TableEntry { keys: keys.clone(), priority, action, metadata: Vec::new(), idle_timeout_ns };
        objects.modify(table, entry)?;
    }
    if let Err(error) = attach(objects, table, &keys, priority, counter, meter) {
        restore(objects, table, *before, false);
        return Err(error);
    }
    Ok(Undo::Entry { table, before, removed: false })
}

fn attach(
    objects: &mut Objects,
    table: TableId,
    keys: &[KeyValue],
    priority: i32,
    counter: Option<CounterValue>,
    meter: Option<Option<MeterConfig>>,
) -> Result<(), EntryError> {
    if let Some(value) = counter {
        objects.set_entry_counter(table, keys, priority, value)?;
    }
    match meter {
        // A meter whose configuration does not change keeps its buckets.
        Some(config) if config != objects.get(table, keys, priority)?.meter_config => {
            objects.configure_entry_meter(table, keys, priority, config)
        }
        _ => Ok(()),
    }
}

/// Restores an entry. Its meter's buckets start full if the entry was removed or the rates were changed; all else is as
/// before.
fn restore(objects: &mut Objects, table: TableId, before: EntryBefore, removed: bool) {
    let EntryBefore { entry, constant, counter, meter } = before;
    let (keys, priority) = (entry.keys.clone(), entry.priority);
    let result = if removed {
        objects.insert(table, entry)
    } else if constant {
        Ok(())
    } else {
        objects.modify(table, entry)
    };
    result.expect("the entry was there before");
    // Tables without counters refuse this call; that is expected.
    let _ = objects.set_entry_counter(table, &keys, priority, counter);
    attach(objects, table, &keys, priority, None, Some(meter)).expect("the entry had this meter");
}

impl Undo {
    /// Whether packets see the effect at once, although they did not see that of the operation: an entry that returns
    /// uses its former meter again, as another entry. Until it is published, packets match the former entry, which
    /// would have no meter.
    pub(crate) fn is_seen_at_once(&self) -> bool {
        matches!(self, Undo::Entry { before, removed: true, .. } if before.meter.is_some())
    }

    /// Reverts the operation. In reverse order this cannot fail, since each step leads back to an earlier state.
    pub(crate) fn run(self, switch: &mut dyn SwitchControl) {
        const WAS: &str = "this state was there before";
        match self {
            Undo::Nothing => {}
            Undo::Op(op) => drop(op.run(switch).expect(WAS)),
            Undo::Multicast(id, before) => drop(switch.set_multicast_group(id, before)),
            Undo::ShadowState(id, before) => drop(switch.set_mirror_session(id, before)),
            other => other.run_on(switch.objects_mut(), WAS),
        }
    }

    /// Runs an operation on a table, or any other operation on an object of the program.
    fn run_on(self, objects: &mut Objects, was: &str) {
        match self {
            Undo::RemoveEntry { table, keys, priority } => objects.delete(table, &keys, priority).expect(was),
            Undo::Entry { table, before, removed } => restore(objects, table, *before, removed),
            Undo::Group(profile, id, members, max) => objects.insert_group(profile, id, members, max).expect(was),
            Undo::Counters(id, values) => {
                (0..).zip(values).for_each(|(at, value)| objects.set_counter(id, at, value).expect(was));
            }
            Undo::Meters(id, values) => {
                (0..).zip(values).for_each(|(at, config)| objects.configure_meter(id, at, config).expect(was));
            }
            Undo::Registers(id, width, words) if words.is_empty() => {
                objects.fill_register(id, Bits::zero(width)).expect(was);
            }
            Undo::Registers(id, width, words) => {
                let elements = words.chunks_exact(width.div_ceil(64) as usize);
                (0..).zip(elements).for_each(|(at, words)| {
                    objects.set_register(id, at, Bits::from_words(words, width)).expect(was);
                });
            }
            other => unreachable!("{other:?} is run on the switch"),
        }
    }
}
