//! Reads (specification chapter 13): each request becomes a source of pieces, so no response is held in memory
//! as a whole.
//!
//! A piece either comes from a snapshot of the shadow, or is queried from the switch with a bounded number of
//! elements.

mod tables;

use std::sync::Arc;

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use switch::SwitchControl;
use v1::entity::Entity;
use v1::packet_replication_engine_entry::Type as Replication;

use tables::{EntryView, key_only, tables};

use crate::caller::ObjectAccess;
use crate::cow_map::MapCursor;
use crate::role::RoleAccess;
use crate::schema::{RegisterSchema, Schema};
use crate::shadow::ShadowState;
use crate::status::{Code, Refusal, Status};
use crate::translate::{counter_data, no_colours, parse_index, print_meter, subject_id};

/// Number of entities in a piece from the shadow.
const PIECE: usize = 128;
/// Number of groups in a piece, since each may be long.
const LONG_PIECE: usize = 4;
/// Encoded size after which a part of a response is sent, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of elements queried from the switch at once, while packets wait.
const LIVE_PIECE: u64 = 256;

/// A query of the switch at a time of its clock, in nanoseconds.
pub(crate) type LiveQuery = Box<dyn FnOnce(&dyn SwitchControl, u64) -> Vec<Entity> + Send>;

/// A part of a response: entities, or the query that returns them.
pub(crate) enum ReadPiece {
    Ready(Vec<Entity>),
    Live(LiveQuery),
}

type PieceSource = Box<dyn FnMut() -> Option<ReadPiece> + Send>;

/// Collects entities into the parts of a response.
#[derive(Default)]
pub(crate) struct ResponseChunks {
    entities: Vec<v1::Entity>,
    bytes: usize,
}

impl ResponseChunks {
    /// Adds an entity. Returns the part if it is long enough.
    pub(crate) fn add(&mut self, entity: v1::Entity) -> Option<v1::ReadResponse> {
        self.bytes += entity.encoded_len();
        self.entities.push(entity);
        if self.bytes < CHUNK_BYTES { None } else { self.rest() }
    }

    /// Returns the last part, if any entities are left.
    pub(crate) fn rest(&mut self) -> Option<v1::ReadResponse> {
        self.bytes = 0;
        let entities = std::mem::take(&mut self.entities);
        (!entities.is_empty()).then_some(v1::ReadResponse { entities })
    }
}

/// A read in progress.
pub(crate) struct EntityReader {
    schema: Arc<Schema>,
    shadow: Arc<ShadowState>,
    access: RoleAccess,
    readable: ObjectAccess,
    requests: std::vec::IntoIter<v1::Entity>,
    current: Option<PieceSource>,
    results: Vec<Result<(), Refusal>>,
    failed: usize,
}

impl EntityReader {
    pub(crate) fn new(
        schema: Arc<Schema>,
        shadow: ShadowState,
        access: RoleAccess,
        readable: ObjectAccess,
        requests: Vec<v1::Entity>,
    ) -> EntityReader {
        let shadow = Arc::new(shadow);
        EntityReader {
            schema,
            shadow,
            access,
            readable,
            requests: requests.into_iter(),
            current: None,
            results: Vec::new(),
            failed: 0,
        }
    }

    /// Returns the program whose objects are read. Queries are valid only while the switch runs it.
    pub(crate) fn program(&self) -> &Arc<ir::Program> {
        &self.schema.program
    }

    /// Returns the next piece; `None` when all requests are answered.
    pub(crate) fn next(&mut self) -> Option<ReadPiece> {
        loop {
            if let Some(piece) = self.current.as_mut().and_then(|pieces| pieces()) {
                return Some(piece);
            }
            let request = self.requests.next()?;
            match self.pieces(request) {
                Ok(pieces) => {
                    self.results.push(Ok(()));
                    self.current = Some(pieces);
                }
                Err(refusal) => {
                    self.failed += 1;
                    self.results.push(Err(refusal.unless_many(self.failed)));
                    self.current = None;
                }
            }
        }
    }

    /// Filters entities by the rights of the role and of the caller.
    pub(crate) fn visible(&self, entities: Vec<Entity>) -> Vec<v1::Entity> {
        let is_visible = |entity: &Entity| self.access.allows(subject_id(entity)) && self.readable.allows(entity);
        let seen = entities.into_iter().filter(is_visible);
        seen.map(|entity| v1::Entity { entity: Some(entity) }).collect()
    }

    /// Returns the status of the whole read.
    pub(crate) fn status(&self) -> Result<(), Status> {
        Status::of_batch("requests", &self.results)
    }

    fn pieces(&self, request: v1::Entity) -> Result<PieceSource, Refusal> {
        let (schema, shadow) = (self.schema.clone(), self.shadow.clone());
        let request = request.entity.ok_or_else(|| Refusal::invalid("the request has no entity"))?;
        if !is_wildcard(&request) {
            self.readable.check(&schema, &request)?;
        }
        match request {
            Entity::TableEntry(entry) => tables(schema, shadow, entry, EntryView::Entry),
            Entity::DirectCounterEntry(entry) => {
                let wanted = entry.table_entry.ok_or_else(|| Refusal::invalid("table_entry is missing"))?;
                let wanted = v1::TableEntry { counter_data: Some(Default::default()), ..key_only(wanted) };
                tables(schema, shadow, wanted, EntryView::Counter)
            }
            Entity::DirectMeterEntry(entry) => {
                no_colours(entry.counter_data.is_some())?;
                let wanted = entry.table_entry.ok_or_else(|| Refusal::invalid("table_entry is missing"))?;
                let wanted = v1::TableEntry { meter_config: Some(Default::default()), ..key_only(wanted) };
                tables(schema, shadow, wanted, EntryView::Meter)
            }
            Entity::ActionProfileMember(member) => members(&schema, shadow, &member),
            Entity::ActionProfileGroup(group) => groups(&schema, shadow, &group),
            Entity::CounterEntry(entry) => counters(&schema, &entry),
            Entity::MeterEntry(entry) => meters(&schema, &entry),
            Entity::RegisterEntry(entry) => registers(&schema, &entry),
            Entity::PacketReplicationEngineEntry(entry) => replication(shadow, entry),
            Entity::ValueSetEntry(entry) => value_sets(&schema, &shadow, entry.value_set_id),
            Entity::DigestEntry(entry) => digests(&schema, &shadow, entry.digest_id),
            Entity::ExternEntry(entry) if entry.extern_type_id == 0 && entry.extern_id == 0 => Ok(once(Vec::new())),
            Entity::ExternEntry(_) => Err(Refusal::unimplemented("the program has no extern objects of this kind")),
        }
    }
}

/// Whether a request names no object: it reads all that the caller may read.
fn is_wildcard(request: &Entity) -> bool {
    match request {
        Entity::PacketReplicationEngineEntry(entry) => match &entry.r#type {
            Some(Replication::MulticastGroupEntry(group)) => group.multicast_group_id == 0,
            Some(Replication::CloneSessionEntry(session)) => session.session_id == 0,
            None => true,
        },
        request => subject_id(request).is_none_or(|id| id == 0),
    }
}

/// Returns a source of one piece.
fn once(entities: Vec<Entity>) -> PieceSource {
    let mut piece = Some(ReadPiece::Ready(entities));
    Box::new(move || piece.take())
}

fn members(
    schema: &Schema,
    shadow: Arc<ShadowState>,
    wanted: &v1::ActionProfileMember,
) -> Result<PieceSource, Refusal> {
    let (profile, id) = (wanted.action_profile_id, wanted.member_id);
    if profile != 0 {
        schema.profile(profile)?;
        if id != 0 {
            let found = shadow.members.get(&(profile, id));
            let action = found.ok_or_else(|| Refusal::not_found(format!("there is no member {id}")))?;
            let action = Some((**action).clone());
            let member = v1::ActionProfileMember { action_profile_id: profile, member_id: id, action };
            return Ok(once(vec![Entity::ActionProfileMember(member)]));
        }
    }
    let mut cursor = MapCursor::default();
    Ok(Box::new(move || {
        let piece = shadow.members.next(&mut cursor, PIECE);
        if piece.is_empty() {
            return None;
        }
        let chosen = piece
            .into_iter()
            .filter(|((of, member), _)| (profile == 0 || *of == profile) && (id == 0 || *member == id));
        let entity = |((action_profile_id, member_id), action): (&(u32, u32), &Arc<v1::Action>)| {
            let (action_profile_id, member_id) = (*action_profile_id, *member_id);
            let action = Some((**action).clone());
            Entity::ActionProfileMember(v1::ActionProfileMember { action_profile_id, member_id, action })
        };
        Some(ReadPiece::Ready(chosen.map(entity).collect()))
    }))
}

fn groups(schema: &Schema, shadow: Arc<ShadowState>, wanted: &v1::ActionProfileGroup) -> Result<PieceSource, Refusal> {
    let (profile, id) = (wanted.action_profile_id, wanted.group_id);
    if profile != 0 {
        schema.profile(profile)?;
        if id != 0 {
            let found = shadow.groups.get(&(profile, id));
            let group = found.ok_or_else(|| Refusal::not_found(format!("there is no group {id}")))?;
            return Ok(once(vec![Entity::ActionProfileGroup((**group).clone())]));
        }
    }
    let mut cursor = MapCursor::default();
    Ok(Box::new(move || {
        let piece = shadow.groups.next(&mut cursor, LONG_PIECE);
        if piece.is_empty() {
            return None;
        }
        let chosen =
            piece.into_iter().filter(|((of, group), _)| (profile == 0 || *of == profile) && (id == 0 || *group == id));
        Some(ReadPiece::Ready(chosen.map(|(_, group)| Entity::ActionProfileGroup((**group).clone())).collect()))
    }))
}

/// Returns the elements of arrays, a bounded number at a time. `ask` reads one element.
fn elements<T, A>(arrays: Vec<(T, u64, u64)>, ask: A) -> PieceSource
where
    T: Clone + Send + 'static,
    A: Fn(&dyn SwitchControl, &T, u64) -> Option<Entity> + Clone + Send + 'static,
{
    let mut arrays = arrays.into_iter().filter(|(_, from, to)| from < to);
    let mut current: Option<(T, u64, u64)> = None;
    Box::new(move || {
        let (array, from, to) = current.take().or_else(|| arrays.next())?;
        let until = to.min(from + LIVE_PIECE);
        if until < to {
            current = Some((array.clone(), until, to));
        }
        let ask = ask.clone();
        Some(ReadPiece::Live(Box::new(move |switch, _| {
            (from..until).filter_map(|at| ask(switch, &array, at)).collect()
        })))
    })
}

/// Returns the range of indices: one, or with `None` all.
fn range(size: u64, index: Option<u64>) -> (u64, u64) {
    index.map_or((0, size), |index| (index, index + 1))
}

fn at(index: u64) -> Option<v1::Index> {
    Some(v1::Index { index: index as i64 })
}

fn counters(schema: &Schema, wanted: &v1::CounterEntry) -> Result<PieceSource, Refusal> {
    let chosen = match wanted.counter_id {
        0 => schema.counters.values().map(|array| (array, 0, array.size)).collect(),
        id => {
            let array = schema.counter(id)?;
            let (from, to) = range(array.size, parse_index(array, wanted.index.as_ref())?);
            vec![(array, from, to)]
        }
    };
    let unit = |array: &crate::schema::ArraySchema<ir::CounterId>| schema.program.counters[array.ir].unit;
    let chosen = chosen.into_iter().map(|(array, from, to)| ((array.id, array.ir, unit(array)), from, to)).collect();
    Ok(elements(chosen, |switch, (counter_id, ir, unit), index| {
        let data = Some(counter_data(switch.objects().counter(*ir, index).ok()?.in_unit(*unit)));
        Some(Entity::CounterEntry(v1::CounterEntry { counter_id: *counter_id, index: at(index), data }))
    }))
}

fn meters(schema: &Schema, wanted: &v1::MeterEntry) -> Result<PieceSource, Refusal> {
    no_colours(wanted.counter_data.is_some())?;
    let chosen = match wanted.meter_id {
        0 => schema.meters.values().map(|array| (array, 0, array.size)).collect(),
        id => {
            let array = schema.meter(id)?;
            let (from, to) = range(array.size, parse_index(array, wanted.index.as_ref())?);
            vec![(array, from, to)]
        }
    };
    let chosen = chosen.into_iter().map(|(array, from, to)| ((array.id, array.ir), from, to)).collect();
    Ok(elements(chosen, |switch, (meter_id, ir), index| {
        let config = switch.objects().meter_config(*ir, index).ok()?.map(print_meter);
        let (meter_id, index) = (*meter_id, at(index));
        Some(Entity::MeterEntry(v1::MeterEntry { meter_id, index, config, counter_data: None }))
    }))
}

fn registers(schema: &Schema, wanted: &v1::RegisterEntry) -> Result<PieceSource, Refusal> {
    let chosen: Vec<(&RegisterSchema, u64, u64)> = match wanted.register_id {
        0 => schema.registers.values().map(|register| (register, 0, register.array.size)).collect(),
        id => {
            let register = schema.register(id)?;
            if register.ty.is_none() {
                let name = &register.array.name;
                return Err(Refusal::unimplemented(format!(
                    "register {name}: its elements are of a type that cannot be read"
                )));
            }
            let (from, to) = range(register.array.size, parse_index(&register.array, wanted.index.as_ref())?);
            vec![(register, from, to)]
        }
    };
    let known = chosen.into_iter().filter_map(|(register, from, to)| {
        Some(((register.array.id, register.array.ir, Arc::new(register.ty.clone()?)), from, to))
    });
    // A switch with resilient state has the values of its own rows only.
    Ok(elements(known.collect(), |switch, (register_id, ir, ty), index| {
        let objects = switch.objects();
        let value = objects.register(*ir, index).ok().filter(|_| objects.has_element(*ir, index))?;
        let data = Some(ty.print(&value));
        Some(Entity::RegisterEntry(v1::RegisterEntry { register_id: *register_id, index: at(index), data }))
    }))
}

fn replication(shadow: Arc<ShadowState>, wanted: v1::PacketReplicationEngineEntry) -> Result<PieceSource, Refusal> {
    let entity = |entry: Replication| {
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(entry) })
    };
    let missing = |what: &str, id: u32| Refusal::not_found(format!("there is no {what} {id}"));
    let mut cursor = MapCursor::default();
    match wanted.r#type {
        Some(Replication::MulticastGroupEntry(v1::MulticastGroupEntry { multicast_group_id: 0, .. })) => {
            Ok(Box::new(move || {
                let piece = shadow.multicast.next(&mut cursor, LONG_PIECE);
                let piece = piece.into_iter().map(|(_, it)| entity(Replication::MulticastGroupEntry((**it).clone())));
                let piece: Vec<_> = piece.collect();
                (!piece.is_empty()).then_some(ReadPiece::Ready(piece))
            }))
        }
        Some(Replication::CloneSessionEntry(v1::CloneSessionEntry { session_id: 0, .. })) => Ok(Box::new(move || {
            let piece = shadow.clones.next(&mut cursor, LONG_PIECE);
            let piece = piece.into_iter().map(|(_, it)| entity(Replication::CloneSessionEntry((**it).clone())));
            let piece: Vec<_> = piece.collect();
            (!piece.is_empty()).then_some(ReadPiece::Ready(piece))
        })),
        Some(Replication::MulticastGroupEntry(group)) => {
            let id = group.multicast_group_id;
            let found = shadow.multicast.get(&id).ok_or_else(|| missing("multicast group", id))?;
            Ok(once(vec![entity(Replication::MulticastGroupEntry((**found).clone()))]))
        }
        Some(Replication::CloneSessionEntry(session)) => {
            let id = session.session_id;
            let found = shadow.clones.get(&id).ok_or_else(|| missing("clone session", id))?;
            Ok(once(vec![entity(Replication::CloneSessionEntry((**found).clone()))]))
        }
        None => Err(Refusal::new(
            Code::InvalidArgument,
            "the entry is neither a multicast group nor a clone session; set one with the id 0 to read all",
        )),
    }
}

fn value_sets(schema: &Schema, shadow: &ShadowState, id: u32) -> Result<PieceSource, Refusal> {
    let chosen: Vec<u32> = match id {
        0 => schema.value_sets.keys().copied().collect(),
        id => vec![schema.value_set(id)?.id],
    };
    let members = |id: u32| shadow.value_sets.get(&id).cloned().unwrap_or_default();
    let entity = |id: u32| Entity::ValueSetEntry(v1::ValueSetEntry { value_set_id: id, members: members(id) });
    Ok(once(chosen.into_iter().map(entity).collect()))
}

fn digests(schema: &Schema, shadow: &ShadowState, id: u32) -> Result<PieceSource, Refusal> {
    let entity = |(id, config): (&u32, &v1::digest_entry::Config)| {
        Entity::DigestEntry(v1::DigestEntry { digest_id: *id, config: Some(*config) })
    };
    if id == 0 {
        return Ok(once(shadow.digests.iter().map(entity).collect()));
    }
    let digest = schema.digest(id)?;
    match shadow.digests.get_key_value(&id) {
        Some(found) => Ok(once(vec![entity(found)])),
        None => Err(Refusal::not_found(format!("digest {} is not enabled", digest.name))),
    }
}
