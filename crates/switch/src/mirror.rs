//! Mirror sessions: where clones of packets go.

use std::collections::BTreeMap;

use crate::{MAX_REPLICAS, Replica};

/// What a clone with this session's number becomes: a copy for each replica, and one for each of the group's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorSession {
    /// Copies, at most [`MAX_REPLICAS`].
    pub replicas: Vec<Replica>,
    /// A multicast group that makes further copies.
    pub group: Option<u32>,
    /// Only the first so many bytes of each copy leave.
    pub max_bytes: Option<u32>,
    /// In which queue of their ports copies wait, as far as there is one; 0 leaves that to the program, as for other packets.
    pub class_of_service: u8,
}

impl MirrorSession {
    /// One copy, to this port.
    pub fn to_port(port: u32) -> MirrorSession {
        MirrorSession { replicas: vec![Replica::new(port, 0)], ..Default::default() }
    }

    /// The copies that a multicast group makes.
    pub fn to_group(group: u32) -> MirrorSession {
        MirrorSession { group: Some(group), ..Default::default() }
    }

    /// The same, but only the first `bytes` of each copy leave.
    pub fn truncated(mut self, bytes: u32) -> MirrorSession {
        self.max_bytes = Some(bytes);
        self
    }
}

/// Every mirror session of a switch, by its number.
#[derive(Clone, Debug, Default)]
pub struct MirrorSessions {
    sessions: BTreeMap<u32, MirrorSession>,
}

impl MirrorSessions {
    /// Makes or replaces a session, or removes it (`None`). False, and no change, for sessions of more than
    /// [`MAX_REPLICAS`].
    pub fn set(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        match session {
            Some(session) if session.replicas.len() > MAX_REPLICAS => return false,
            Some(session) => drop(self.sessions.insert(id, session)),
            None => drop(self.sessions.remove(&id)),
        }
        true
    }

    /// The session with this number.
    pub fn get(&self, id: u32) -> Option<&MirrorSession> {
        self.sessions.get(&id)
    }

    /// Sessions and their numbers, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &MirrorSession)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }
}
