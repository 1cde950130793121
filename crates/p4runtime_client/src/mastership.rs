//! Interprets the mastership that a server reports, and builds arbitration requests (P4Runtime specification, section
//! 5.3).

use p4runtime_proto::v1;
use tonic::Code;

/// The state of the election, seen from one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mastership {
    /// This controller is primary.
    Primary {
        /// Its election id.
        election_id: u128,
    },
    /// Another controller is primary.
    Backup {
        /// The election id of that controller, if the server reports it.
        election_id: Option<u128>,
    },
    /// No controller is primary.
    NoPrimary {
        /// The highest election id that the server has seen, if there was any.
        highest: Option<u128>,
    },
}

impl Mastership {
    /// Interprets the server's `MasterArbitrationUpdate`. Any status other than OK and NOT_FOUND means that another
    /// controller is primary; the specification uses ALREADY_EXISTS.
    ///
    /// While no controller is primary, BMv2's server reports OK to a controller without an election id. That controller
    /// cannot write, so this is `NoPrimary` as well.
    pub fn parse(update: &v1::MasterArbitrationUpdate) -> Mastership {
        let code = Code::from_i32(update.status.as_ref().map_or(0, |status| status.code));
        let election_id = update.election_id.as_ref().map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        match (code, election_id.filter(|id| *id > 0)) {
            (Code::Ok, Some(election_id)) => Mastership::Primary { election_id },
            (Code::Ok, None) => Mastership::NoPrimary { highest: None },
            (Code::NotFound, highest) => Mastership::NoPrimary { highest },
            (_, election_id) => Mastership::Backup { election_id },
        }
    }

    /// Whether this controller is primary.
    pub fn is_primary(&self) -> bool {
        matches!(self, Mastership::Primary { .. })
    }

    /// Returns the election id reported along with this state.
    pub fn election_id(&self) -> Option<u128> {
        match *self {
            Mastership::Primary { election_id } => Some(election_id),
            Mastership::Backup { election_id } => election_id,
            Mastership::NoPrimary { highest } => highest,
        }
    }
}

/// Encodes an election id.
pub(crate) fn encode_election_id(id: u128) -> v1::Uint128 {
    v1::Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

/// Builds the controller's arbitration request. Without an election id the controller remains a backup.
pub(crate) fn arbitration_request(device_id: u64, election_id: Option<u128>) -> v1::StreamMessageRequest {
    let election_id = election_id.map(encode_election_id);
    let update = v1::MasterArbitrationUpdate { device_id, election_id, ..Default::default() };
    v1::StreamMessageRequest { update: Some(v1::stream_message_request::Update::Arbitration(update)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arbitration_reply_is_understood() {
        let parse = |code: Code, id: Option<u128>| {
            let status = Some(p4runtime_proto::google::rpc::Status { code: code as i32, ..Default::default() });
            let election_id = id.map(encode_election_id);
            Mastership::parse(&v1::MasterArbitrationUpdate { status, election_id, ..Default::default() })
        };
        let large = u128::from(u64::MAX) + 7;
        assert_eq!(parse(Code::Ok, Some(large)), Mastership::Primary { election_id: large });
        assert_eq!(parse(Code::AlreadyExists, Some(7)), Mastership::Backup { election_id: Some(7) });
        assert_eq!(parse(Code::NotFound, Some(7)), Mastership::NoPrimary { highest: Some(7) });
        // BMv2's server, to a controller without an election id.
        assert_eq!(parse(Code::Ok, None), Mastership::NoPrimary { highest: None });
        assert_eq!(parse(Code::Ok, Some(0)), Mastership::NoPrimary { highest: None });
    }
}
