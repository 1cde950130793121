//! Defines mirror sessions: destinations of clones.

use std::collections::BTreeMap;

use crate::{MAX_REPLICAS, Replica};

/// A mirror session. A clone becomes a copy for each replica, and one for each replica of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorSession {
    /// Replicas, at most [`MAX_REPLICAS`].
    pub replicas: Vec<Replica>,
    /// A multicast group whose replicas are added.
    pub group: Option<u32>,
    /// Maximum length of each copy in bytes, to which it is truncated.
    pub max_bytes: Option<u32>,
    /// Egress queue of the copies, if their port has it; 0 leaves the choice to the program, as for other packets.
    pub class_of_service: u8,
}

impl MirrorSession {
    /// Makes a session with one copy to this port.
    pub fn to_port(port: u32) -> MirrorSession {
        MirrorSession { replicas: vec![Replica::new(port, 0)], ..Default::default() }
    }

    /// Makes a session with the copies of a multicast group.
    pub fn to_group(group: u32) -> MirrorSession {
        MirrorSession { group: Some(group), ..Default::default() }
    }

    /// Truncates each copy to `bytes`.
    pub fn truncated(mut self, bytes: u32) -> MirrorSession {
        self.max_bytes = Some(bytes);
        self
    }
}

/// The mirror sessions of a switch, by number.
#[derive(Clone, Debug, Default)]
pub struct MirrorSessions {
    sessions: BTreeMap<u32, MirrorSession>,
}

impl MirrorSessions {
    /// Creates, replaces or (with `None`) removes a session. Returns false and changes nothing if it has more than
    /// [`MAX_REPLICAS`] replicas.
    pub fn set(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        match session {
            Some(session) if session.replicas.len() > MAX_REPLICAS => return false,
            Some(session) => drop(self.sessions.insert(id, session)),
            None => drop(self.sessions.remove(&id)),
        }
        true
    }

    /// Returns the session with this number.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&MirrorSession> {
        self.sessions.get(&id)
    }

    /// Returns the sessions in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &MirrorSession)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }
}
