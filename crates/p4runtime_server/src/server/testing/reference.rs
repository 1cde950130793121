//! The expected state by the specification alone: a map that each update changes according to its response.

use std::collections::BTreeMap;

use p4runtime_proto::bytestring::shortest;
use p4runtime_proto::v1;
use v1::entity::Entity;
use v1::field_match::FieldMatchType;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::table_action::Type as Target;
use v1::update::Type;

use crate::status::Code;

/// Written entities by their identity, in canonical form.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReferenceModel {
    entities: BTreeMap<String, Entity>,
    /// Default entries of the program.
    initial: BTreeMap<u32, v1::TableEntry>,
}

/// Returns entities that request everything that the model holds.
pub(super) fn questions() -> Vec<Entity> {
    let replication =
        |kind| Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) });
    vec![
        Entity::TableEntry(v1::TableEntry::default()),
        Entity::TableEntry(v1::TableEntry { is_default_action: true, ..Default::default() }),
        Entity::ActionProfileMember(v1::ActionProfileMember::default()),
        Entity::ActionProfileGroup(v1::ActionProfileGroup::default()),
        replication(Replication::MulticastGroupEntry(v1::MulticastGroupEntry::default())),
        replication(Replication::CloneSessionEntry(v1::CloneSessionEntry::default())),
        Entity::ValueSetEntry(v1::ValueSetEntry::default()),
        Entity::DigestEntry(v1::DigestEntry::default()),
    ]
}

impl ReferenceModel {
    /// Creates a model of existing contents, in a program with these default entries.
    pub(super) fn of(all: Vec<v1::Entity>, initial: BTreeMap<u32, v1::TableEntry>) -> ReferenceModel {
        let mut reference = ReferenceModel { entities: BTreeMap::new(), initial };
        for entity in all.into_iter().filter_map(|entity| entity.entity) {
            let (key, entity) = canonical(entity).expect("nothing else was asked for");
            let before = reference.entities.insert(key, entity);
            assert_eq!(before, None, "nothing is read twice");
        }
        reference
    }

    /// Describes a difference between two models. Returns `None` if they are equal.
    pub(super) fn difference(&self, other: &ReferenceModel) -> Option<String> {
        let keys = self.entities.keys().chain(other.entities.keys());
        let mut pairs = keys.map(|key| (key, self.entities.get(key), other.entities.get(key)));
        let (key, one, another) = pairs.find(|(_, one, another)| one != another)?;
        Some(format!("{key}: {one:#?} is not {another:#?}"))
    }

    /// Applies an update that was answered with this code. Panics if the code is not a possible response.
    pub(super) fn note(&mut self, update: &v1::Update, code: i32) {
        let entity = update.entity.as_ref().and_then(|entity| entity.entity.clone());
        let Some((key, entity)) = entity.and_then(canonical) else { return };
        let kind = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
        let exists = self.entities.contains_key(&key);
        if kind == Type::Insert && code == Code::AlreadyExists as i32 && !matches!(entity, Entity::ValueSetEntry(_)) {
            assert!(exists, "it is not there: {update:#?}");
        }
        if kind == Type::Delete && code == Code::NotFound as i32 {
            assert!(!exists, "it is there: {update:#?}");
        }
        if code != 0 {
            return;
        }
        match kind {
            Type::Insert => assert!(!exists, "it is there already: {update:#?}"),
            Type::Modify => assert!(exists, "there is none to modify: {update:#?}"),
            Type::Delete => assert!(exists, "there is none to delete: {update:#?}"),
            Type::Unspecified => panic!("this cannot have worked: {update:#?}"),
        }
        let before = self.entities.remove(&key);
        if let (Entity::TableEntry(new), Some(Entity::TableEntry(old))) = (&entity, &before)
            && old.is_const
        {
            assert!(kind == Type::Modify && new.action.is_none(), "the program's own entry stays: {update:#?}");
        }
        let entity = match (entity, before) {
            _ if kind == Type::Delete => return,
            (Entity::TableEntry(new), Some(Entity::TableEntry(old))) => Entity::TableEntry(match new.action {
                Some(_) => new,
                None if new.is_default_action => self.initial[&new.table_id].clone(),
                None => v1::TableEntry { action: old.action, is_const: old.is_const, ..new },
            }),
            (entity, _) => entity,
        };
        self.entities.insert(key, entity);
    }
}

/// Returns the identity of an entity and its canonical form, or `None` if the entity is not inserted or deleted.
fn canonical(entity: Entity) -> Option<(String, Entity)> {
    Some(match entity {
        Entity::TableEntry(entry) => {
            let entry = table_entry(entry);
            let key = if entry.is_default_action {
                format!("default {}", entry.table_id)
            } else {
                format!("entry {} {} {:?}", entry.table_id, entry.priority, entry.r#match)
            };
            (key, Entity::TableEntry(entry))
        }
        Entity::ActionProfileMember(mut member) => {
            member.action.iter_mut().for_each(action);
            (format!("member {} {}", member.action_profile_id, member.member_id), Entity::ActionProfileMember(member))
        }
        Entity::ActionProfileGroup(mut group) => {
            use v1::action_profile_group::member::WatchKind;
            for member in &mut group.members {
                if let Some(WatchKind::WatchPort(port)) = &mut member.watch_kind {
                    *port = shortest(port);
                }
            }
            (format!("group {} {}", group.action_profile_id, group.group_id), Entity::ActionProfileGroup(group))
        }
        Entity::PacketReplicationEngineEntry(entry) => {
            let (key, kind) = match entry.r#type? {
                Replication::MulticastGroupEntry(mut group) => {
                    group.replicas.iter_mut().for_each(replica);
                    (format!("multicast {}", group.multicast_group_id), Replication::MulticastGroupEntry(group))
                }
                Replication::CloneSessionEntry(mut session) => {
                    session.replicas.iter_mut().for_each(replica);
                    (format!("clone {}", session.session_id), Replication::CloneSessionEntry(session))
                }
            };
            (key, Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) }))
        }
        Entity::ValueSetEntry(mut set) => {
            set.members.iter_mut().for_each(|member| matches(&mut member.r#match));
            set.members.sort_by_key(|member| format!("{member:?}"));
            (format!("value set {}", set.value_set_id), Entity::ValueSetEntry(set))
        }
        Entity::DigestEntry(digest) => (format!("digest {}", digest.digest_id), Entity::DigestEntry(digest)),
        _ => return None,
    })
}

/// Removes the parts that packets change and that only the server reports.
fn table_entry(mut entry: v1::TableEntry) -> v1::TableEntry {
    matches(&mut entry.r#match);
    if let Some(v1::TableAction { r#type: Some(target) }) = &mut entry.action {
        match target {
            Target::Action(call) => action(call),
            Target::ActionProfileActionSet(set) => {
                use v1::action_profile_action::WatchKind;
                for element in &mut set.action_profile_actions {
                    element.action.iter_mut().for_each(action);
                    if let Some(WatchKind::WatchPort(port)) = &mut element.watch_kind {
                        *port = shortest(port);
                    }
                }
            }
            _ => {}
        }
    }
    v1::TableEntry {
        meter_config: None,
        counter_data: None,
        meter_counter_data: None,
        time_since_last_hit: None,
        ..entry
    }
}

fn matches(all: &mut [v1::FieldMatch]) {
    for value in all.iter_mut().filter_map(|field| field.field_match_type.as_mut()) {
        match value {
            FieldMatchType::Exact(exact) => exact.value = shortest(&exact.value),
            FieldMatchType::Optional(optional) => optional.value = shortest(&optional.value),
            FieldMatchType::Lpm(lpm) => lpm.value = shortest(&lpm.value),
            FieldMatchType::Ternary(ternary) => {
                (ternary.value, ternary.mask) = (shortest(&ternary.value), shortest(&ternary.mask));
            }
            FieldMatchType::Range(range) => (range.low, range.high) = (shortest(&range.low), shortest(&range.high)),
            FieldMatchType::Other(_) => {}
        }
    }
    all.sort_by_key(|field| field.field_id);
}

fn action(call: &mut v1::Action) {
    call.params.iter_mut().for_each(|param| param.value = shortest(&param.value));
    call.params.sort_by_key(|param| param.param_id);
}

fn replica(replica: &mut v1::Replica) {
    if let Some(v1::replica::PortKind::Port(port)) = &mut replica.port_kind {
        *port = shortest(port);
    }
    replica.backup_replicas.iter_mut().for_each(|backup| backup.port = shortest(&backup.port));
}
