//! The client of a call, and its rights where an authorization file restricts them.
//!
//! These rights are independent of the role's config: a call needs both. Denials name the user, the action and the
//! object.

use std::collections::BTreeSet;

use authorization::{CLONE, MULTICAST, Policy, User, certificate_names};
use p4runtime_proto::v1;
use v1::entity::Entity;
use v1::packet_replication_engine_entry::Type as Replication;

use crate::schema::Schema;
use crate::status::Refusal;
use crate::translate::subject_id;

/// The client of a call.
#[derive(Clone, Debug, Default)]
pub enum Caller {
    /// Any client, where no authorization file is used. It has every right.
    #[default]
    Anyone,
    /// A user of the authorization file.
    User(User),
}

impl Caller {
    /// Returns the caller with this certificate (DER).
    ///
    /// # Errors
    /// `PERMISSION_DENIED` if there is a policy and it has no entry for the certificate's names.
    pub(crate) fn of(policy: Option<&Policy>, certificate: Option<&[u8]>) -> Result<Caller, Refusal> {
        let Some(policy) = policy else { return Ok(Caller::Anyone) };
        let Some(certificate) = certificate else {
            return Err(Refusal::denied("the client has no certificate, so it is no user of the authorization file"));
        };
        let user = policy.user(&certificate_names(certificate));
        user.map(Caller::User).map_err(|unknown| Refusal::denied(unknown.to_string()))
    }

    /// Returns the user if it lacks a right.
    fn without(&self, has_right: impl FnOnce(&User) -> bool) -> Option<&User> {
        match self {
            Caller::Anyone => None,
            Caller::User(user) => (!has_right(user)).then_some(user),
        }
    }

    fn require(&self, has_right: impl FnOnce(&User) -> bool, action: impl FnOnce() -> String) -> Result<(), Refusal> {
        self.without(has_right).map_or(Ok(()), |user| Err(Refusal::denied(user.denial(&action()))))
    }

    /// Checks that the caller may hold a role, or act in it.
    pub(crate) fn check_role(&self, role: &str) -> Result<(), Refusal> {
        let action = || match role {
            "" => "hold the default role".to_owned(),
            role => format!("hold the role `{}`", &role[..role.floor_char_boundary(128)]),
        };
        self.require(|user| user.may_hold(role), action)
    }

    /// Checks that the caller may write objects, by their ids in P4Info, that a role of it claims for itself. Ids that
    /// no object has could be those of any later program.
    pub(crate) fn check_exclusive(
        &self,
        schema: Option<&Schema>,
        ids: impl Iterator<Item = u32>,
    ) -> Result<(), Refusal> {
        for id in ids {
            let name = schema.and_then(|schema| schema.objects().find(|(other, _)| *other == id));
            let has_right = |user: &User| match name {
                Some((_, name)) => user.may_write(name),
                None => user.may_write_all(),
            };
            let object = || name.map_or_else(|| format!("the id {id:#010x}"), |(_, name)| format!("`{name}`"));
            self.require(has_right, || format!("claim {} exclusively", object()))?;
        }
        Ok(())
    }

    /// Checks that the caller may write anything at all.
    pub(crate) fn check_write(&self) -> Result<(), Refusal> {
        self.require(User::may_write_any, || "write any object".to_owned())
    }

    /// Checks that the caller may set the pipeline.
    pub(crate) fn check_pipeline(&self) -> Result<(), Refusal> {
        self.require(User::may_set_pipeline, || "set the pipeline".to_owned())
    }

    /// Checks that the caller may read the pipeline, and the program in it.
    pub(crate) fn check_pipeline_read(&self, with_program: bool) -> Result<(), Refusal> {
        self.require(User::has_switch_rights, || "read the pipeline".to_owned())?;
        self.require(
            |user| user.may_set_pipeline() || !with_program,
            || "read the program in the pipeline; ask for P4INFO_AND_COOKIE or COOKIE_ONLY".to_owned(),
        )
    }

    /// Checks that the caller may send packets.
    pub(crate) fn check_packets(&self) -> Result<(), Refusal> {
        self.require(User::has_packets, || "send packets".to_owned())
    }

    /// Checks that the caller receives the lists of a digest, so that it may acknowledge them.
    pub(crate) fn check_digest(&self, digest: &str) -> Result<(), Refusal> {
        self.require(|user| user.may_read(digest), || format!("read digest `{digest}`"))
    }

    /// Whether the caller receives packets.
    pub(crate) fn receives_packets(&self) -> bool {
        self.without(User::has_packets).is_none()
    }

    /// Whether the caller may read the object with this name of P4Info.
    pub(crate) fn may_read(&self, object: &str) -> bool {
        self.without(|user| user.may_read(object)).is_none()
    }

    /// Returns the objects of a program that the caller may read.
    pub(crate) fn readable(&self, schema: &Schema) -> ObjectAccess {
        self.access(schema, "read", User::may_read)
    }

    /// Returns the objects of a program that the caller may write.
    pub(crate) fn writable(&self, schema: &Schema) -> ObjectAccess {
        self.access(schema, "write", User::may_write)
    }

    fn access(&self, schema: &Schema, verb: &'static str, may: fn(&User, &str) -> bool) -> ObjectAccess {
        let Caller::User(user) = self else { return ObjectAccess(None) };
        let objects = schema.objects().filter(|(_, name)| may(user, name));
        ObjectAccess(Some(ObjectGrants {
            user: user.clone(),
            verb,
            ids: objects.map(|(id, _)| id).collect(),
            multicast: may(user, MULTICAST),
            clones: may(user, CLONE),
        }))
    }
}

/// The objects of a program that a call may read or write; all of them with `None`.
#[derive(Clone, Debug)]
pub(crate) struct ObjectAccess(Option<ObjectGrants>);

#[derive(Clone, Debug)]
struct ObjectGrants {
    user: User,
    verb: &'static str,
    ids: BTreeSet<u32>,
    multicast: bool,
    clones: bool,
}

impl ObjectAccess {
    /// Whether an entity is of an object that is granted.
    pub(crate) fn allows(&self, entity: &Entity) -> bool {
        let Some(grants) = &self.0 else { return true };
        match entity {
            Entity::PacketReplicationEngineEntry(entry) => match entry.r#type {
                Some(Replication::MulticastGroupEntry(_)) => grants.multicast,
                Some(Replication::CloneSessionEntry(_)) => grants.clones,
                // It names nothing, and is refused as such.
                None => true,
            },
            entity => subject_id(entity).is_none_or(|id| grants.ids.contains(&id)),
        }
    }

    /// Checks an entity that names its object. One that names none, or none of the program, is left to the
    /// translation, which refuses it or reads all.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` with the user and the object.
    pub(crate) fn check(&self, schema: &Schema, entity: &Entity) -> Result<(), Refusal> {
        let Some(grants) = self.0.as_ref().filter(|_| !self.allows(entity)) else { return Ok(()) };
        let object = match entity {
            Entity::PacketReplicationEngineEntry(entry) => match &entry.r#type {
                Some(Replication::MulticastGroupEntry(_)) => "multicast groups".to_owned(),
                _ => "clone sessions".to_owned(),
            },
            entity => {
                let id = subject_id(entity);
                let Some((_, name)) = schema.objects().find(|(other, _)| Some(*other) == id) else { return Ok(()) };
                format!("{} `{name}`", noun(entity))
            }
        };
        Err(Refusal::denied(grants.user.denial(&format!("{} {object}", grants.verb))))
    }
}

fn noun(entity: &Entity) -> &'static str {
    match entity {
        Entity::TableEntry(_) | Entity::DirectCounterEntry(_) | Entity::DirectMeterEntry(_) => "table",
        Entity::ActionProfileMember(_) | Entity::ActionProfileGroup(_) => "action profile",
        Entity::CounterEntry(_) => "counter",
        Entity::MeterEntry(_) => "meter",
        Entity::RegisterEntry(_) => "register",
        Entity::ValueSetEntry(_) => "value set",
        Entity::DigestEntry(_) => "digest",
        Entity::ExternEntry(_) => "extern",
        Entity::PacketReplicationEngineEntry(_) => "replication",
    }
}
