//! Arbitration: streams, roles and their primaries (specification chapter 5).
//!
//! ```text
//!             first update, accepted            election id >= highest ever
//!   open ───────────────────────────> backup ─────────────────────────────> primary
//!                                        ^  <─────────────────────────────     │
//!                                        │      lower id, or another wins      │
//!                                        └──────── stream ends: gone <─────────┘
//! ```
//!
//! When the stream of a primary ends, its role has no primary until a controller claims it with an election id that
//! is not lower than any seen so far. While writes of a role are in progress, a new primary is named but not
//! admitted: it is notified and may write once they are done. This module does the bookkeeping only and sends no
//! messages itself.

use std::collections::BTreeMap;

use p4runtime_proto::{google, v1};

use crate::role::RoleAccess;
use crate::status::{Code, Refusal, cut};

/// Identifies a stream of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Messages to streams, in the order in which they are to be sent.
pub type Outbox = Vec<(StreamId, v1::StreamMessageResponse)>;

/// A live controller: a stream that has sent an arbitration update.
#[derive(Clone, Debug)]
struct Controller {
    role: String,
    election: Option<u128>,
}

#[derive(Debug, Default)]
struct Role {
    /// The highest election id of any primary so far.
    highest: Option<u128>,
    primary: Option<StreamId>,
    /// Whether the primary may write: the writes of its predecessor are done.
    admitted: bool,
    config: Option<prost_types::Any>,
    access: RoleAccess,
    writes_under_way: u32,
}

/// The streams and roles of one device.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    max_streams_a_role: usize,
    clients: BTreeMap<StreamId, Controller>,
    roles: BTreeMap<String, Role>,
}

/// Proof that a write was admitted, returned when it is done.
#[derive(Debug)]
#[must_use]
pub struct Admission {
    role: String,
}

impl Arbitration {
    /// Maximum number of roles. Each is kept for the server's lifetime, because its highest election id must be.
    const MAX_ROLES: usize = 1024;
    /// Maximum length of a role's name, in bytes.
    const MAX_ROLE_NAME: usize = 1024;

    /// Creates the state of a device without streams.
    pub fn new(device_id: u64, max_streams_a_role: usize) -> Self {
        Arbitration { device_id, max_streams_a_role, clients: BTreeMap::new(), roles: BTreeMap::new() }
    }

    /// Handles an arbitration update from a stream.
    ///
    /// # Errors
    /// The status with which the stream must be ended.
    pub fn update(
        &mut self,
        stream: StreamId,
        update: &v1::MasterArbitrationUpdate,
        outbox: &mut Outbox,
    ) -> Result<(), Refusal> {
        let role_message = update.role.clone().unwrap_or_default();
        #[expect(deprecated, reason = "clients of P4Runtime 1.3 number their roles and get an error")]
        if role_message.id != 0 {
            return Err(Refusal::invalid("role.id is no longer used; name the role in role.name"));
        }
        let known = self.clients.get(&stream).cloned();
        if update.device_id != self.device_id {
            let code = if known.is_some() { Code::FailedPrecondition } else { Code::NotFound };
            return Err(Refusal::new(
                code,
                format!("there is no device {}; this server has device {}", update.device_id, self.device_id),
            ));
        }
        if let Some(client) = &known
            && client.role != role_message.name
        {
            return Err(Refusal::new(
                Code::FailedPrecondition,
                format!("this stream has the role `{}`; open another stream for `{}`", client.role, role_message.name),
            ));
        }
        let access = RoleAccess::of(role_message.config.as_ref())?;
        if let Some((other, id)) = self.live_roles(&role_message.name).find_map(|(name, role)| {
            let id = access.conflict(&role.access)?;
            Some((name, id))
        }) {
            return Err(Refusal::invalid(format!(
                "role.config and the config of the role `{other}` both list the id {id:#010x}, and one of them as \
                 exclusive"
            )));
        }
        let election = update.election_id.as_ref().map(number);
        let others = || self.clients.iter().filter(|(id, client)| **id != stream && client.role == role_message.name);
        if election.is_some() && others().any(|(_, client)| client.election == election) {
            return Err(Refusal::invalid("another live controller of this role has this election id"));
        }
        if known.is_none() {
            self.check_limits(&role_message.name, others().count())?;
        }
        self.clients.insert(stream, Controller { role: role_message.name.clone(), election });
        self.decide(stream, &role_message, election, access, outbox);
        Ok(())
    }

    fn check_limits(&self, name: &str, streams: usize) -> Result<(), Refusal> {
        let refuse = |message: String| Err(Refusal::new(Code::ResourceExhausted, message));
        if streams >= self.max_streams_a_role {
            return refuse(format!("this role has reached the limit of {streams} streams"));
        }
        if name.len() > Self::MAX_ROLE_NAME {
            return Err(Refusal::invalid(format!("a role's name has at most {} bytes", Self::MAX_ROLE_NAME)));
        }
        if self.roles.len() >= Self::MAX_ROLES && !self.roles.contains_key(name) {
            return refuse(format!("the limit of {} roles is reached", self.roles.len()));
        }
        Ok(())
    }

    /// Determines the primary after an accepted update (section 5.3).
    fn decide(
        &mut self,
        stream: StreamId,
        message: &v1::Role,
        election: Option<u128>,
        access: RoleAccess,
        outbox: &mut Outbox,
    ) {
        let role = self.roles.entry(message.name.clone()).or_default();
        let wins = election.is_some() && role.highest.is_none_or(|highest| election >= Some(highest));
        if wins {
            role.config = message.config.clone();
            role.access = access;
            role.highest = election;
            // A primary that stays primary does not wait for its own writes.
            role.admitted = role.writes_under_way == 0 || (role.primary == Some(stream) && role.admitted);
            role.primary = Some(stream);
            let admitted = role.admitted;
            for id in self.of_role(&message.name) {
                if id != stream || admitted {
                    self.advise(id, outbox);
                }
            }
        } else if role.primary == Some(stream) {
            role.primary = None;
            for id in self.of_role(&message.name) {
                self.advise(id, outbox);
            }
        } else {
            self.advise(stream, outbox);
        }
    }

    /// Removes a stream that has ended. No other stream is promoted.
    pub fn end(&mut self, stream: StreamId, outbox: &mut Outbox) {
        let Some(client) = self.clients.remove(&stream) else { return };
        let Some(role) = self.roles.get_mut(&client.role) else { return };
        let role_is_new = role.highest.is_none();
        if role.primary == Some(stream) {
            role.primary = None;
            for id in self.of_role(&client.role) {
                self.advise(id, outbox);
            }
        }
        // A role that never had a primary has no state to keep, and other roles may need its place.
        if role_is_new && self.of_role(&client.role).is_empty() {
            self.roles.remove(&client.role);
        }
    }

    /// Admits a write or a new pipeline if its client is the primary (section 12).
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown device or role, `PERMISSION_DENIED` if the client is not primary.
    pub fn admit(
        &mut self,
        device_id: u64,
        role_id: u64,
        role_name: &str,
        election_id: Option<&v1::Uint128>,
    ) -> Result<Admission, Refusal> {
        self.check_device(device_id)?;
        if role_id != 0 {
            return Err(Refusal::invalid("role_id is no longer used; name the role in `role`"));
        }
        let denied = |message: &str| Err(Refusal::denied(message));
        let Some(role) = self.roles.get_mut(role_name) else {
            return match role_name {
                "" => {
                    denied("no controller has claimed to be primary; open a StreamChannel and send arbitration first")
                }
                name => Err(unknown_role(name)),
            };
        };
        let Some(primary) = role.primary else {
            return denied("there is no primary: its stream has ended, and no other controller has claimed to be it");
        };
        let claimed = election_id.map(number);
        if claimed.is_none() {
            return denied("the request has no election_id; only the primary may write");
        }
        if self.clients.get(&primary).and_then(|client| client.election) != claimed {
            return denied("the election_id is not the primary's");
        }
        if !role.admitted {
            return denied("writes of the previous primary are still in progress");
        }
        role.writes_under_way += 1;
        Ok(Admission { role: role_name.to_owned() })
    }

    /// Completes an admitted write.
    pub fn done(&mut self, admission: Admission, outbox: &mut Outbox) {
        let Some(role) = self.roles.get_mut(&admission.role) else { return };
        role.writes_under_way -= 1;
        if role.writes_under_way == 0 && !role.admitted {
            role.admitted = true;
            if let Some(primary) = role.primary {
                self.advise(primary, outbox);
            }
        }
    }

    /// Checks a device id.
    ///
    /// # Errors
    /// `NOT_FOUND` for another device.
    pub fn check_device(&self, device_id: u64) -> Result<(), Refusal> {
        if device_id == self.device_id {
            Ok(())
        } else {
            Err(Refusal::not_found(format!(
                "there is no device {device_id}; this server has device {}",
                self.device_id
            )))
        }
    }

    /// Returns the access rights of a role.
    pub fn access(&self, role: &str) -> Option<&RoleAccess> {
        self.roles.get(role).map(|role| &role.access)
    }

    /// Returns the access rights of an admitted write.
    pub fn access_of(&self, admission: &Admission) -> RoleAccess {
        self.roles.get(&admission.role).map(|role| role.access.clone()).unwrap_or_default()
    }

    /// Returns the other roles that have controllers.
    fn live_roles<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a String, &'a Role)> {
        let is_live = |name: &String| self.clients.values().any(|client| client.role == *name);
        self.roles.iter().filter(move |(other, _)| *other != name && is_live(other))
    }

    /// Returns the ids that other roles have claimed exclusively, with the names of these roles.
    pub fn excluded_from(&self, admission: &Admission) -> BTreeMap<u32, &str> {
        let mut excluded = BTreeMap::new();
        for (name, role) in self.live_roles(&admission.role) {
            excluded.extend(role.access.exclusive_ids().map(|id| (id, name.as_str())));
        }
        excluded
    }

    /// Returns the access rights of a stream's role if the stream is its primary and admitted.
    pub fn primary_access(&self, stream: StreamId) -> Option<&RoleAccess> {
        let client = self.clients.get(&stream)?;
        let role = self.roles.get(&client.role)?;
        (role.primary == Some(stream) && role.admitted).then_some(&role.access)
    }

    /// Whether a stream has sent an arbitration update.
    pub fn is_live(&self, stream: StreamId) -> bool {
        self.clients.contains_key(&stream)
    }

    /// Returns the primaries of all roles with their access rights.
    pub fn primaries(&self) -> impl Iterator<Item = (StreamId, &RoleAccess)> {
        self.roles.values().filter_map(|role| Some((role.primary?, &role.access)))
    }

    fn of_role(&self, role: &str) -> Vec<StreamId> {
        self.clients.iter().filter(|(_, client)| client.role == role).map(|(id, _)| *id).collect()
    }

    /// Notifies a stream of its mastership status (section 5.4).
    fn advise(&self, stream: StreamId, outbox: &mut Outbox) {
        let client = &self.clients[&stream];
        let role = &self.roles[&client.role];
        let (code, message) = match role.primary {
            Some(primary) if primary == stream => (Code::Ok, "you are primary"),
            Some(_) => (Code::AlreadyExists, "you are backup"),
            None => (Code::NotFound, "you are backup, and there is no primary"),
        };
        let named = !client.role.is_empty() || role.config.is_some();
        let update = v1::MasterArbitrationUpdate {
            device_id: self.device_id,
            role: named.then(|| v1::Role {
                name: client.role.clone(),
                config: role.config.clone(),
                ..Default::default()
            }),
            election_id: role.highest.map(|id| v1::Uint128 { high: (id >> 64) as u64, low: id as u64 }),
            status: Some(google::rpc::Status {
                code: if code == Code::Ok { 0 } else { code as i32 },
                message: message.to_owned(),
                details: Vec::new(),
            }),
        };
        let update = v1::stream_message_response::Update::Arbitration(update);
        outbox.push((stream, v1::StreamMessageResponse { update: Some(update) }));
    }
}

/// Returns the refusal of a call by a role that no controller has claimed. A role's name is as long as a request.
pub(crate) fn unknown_role(name: &str) -> Refusal {
    /// Maximum length of the name in the message, in bytes.
    const SHOWN_BYTES: usize = 128;
    let mut name = name.to_owned();
    cut(&mut name, SHOWN_BYTES);
    Refusal::not_found(format!("there is no role `{name}`; arbitration on a StreamChannel creates it"))
}

fn number(id: &v1::Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

#[cfg(test)]
#[path = "arbitration_tests.rs"]
mod tests;
