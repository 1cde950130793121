//! Mastership as a server reports it, and the messages of arbitration (specification 5.3).

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
    Other {
        /// The election id of that controller, if the server reports it.
        election_id: Option<u128>,
    },
    /// No controller is primary.
    Vacant {
        /// The highest election id that the server has seen, if there was any.
        highest: Option<u128>,
    },
}

impl Mastership {
    /// Parses the server's side of arbitration.
    ///
    /// While no controller is primary, BMv2's server reports OK to a controller without an election id. That controller
    /// cannot write, so this is `Vacant` as well.
    pub fn parse(update: &v1::MasterArbitrationUpdate) -> Mastership {
        let code = Code::from_i32(update.status.as_ref().map_or(0, |status| status.code));
        let election_id = update.election_id.as_ref().map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        match (code, election_id.filter(|id| *id > 0)) {
            (Code::Ok, Some(election_id)) => Mastership::Primary { election_id },
            (Code::Ok, None) => Mastership::Vacant { highest: None },
            (Code::NotFound, highest) => Mastership::Vacant { highest },
            (_, election_id) => Mastership::Other { election_id },
        }
    }

    /// Whether this controller is primary.
    pub fn is_primary(&self) -> bool {
        matches!(self, Mastership::Primary { .. })
    }

    /// Returns the election id that the server reports with it.
    pub fn election_id(&self) -> Option<u128> {
        match *self {
            Mastership::Primary { election_id } => Some(election_id),
            Mastership::Other { election_id } => election_id,
            Mastership::Vacant { highest } => highest,
        }
    }
}

/// Emits an election id.
pub(crate) fn emit_election_id(id: u128) -> v1::Uint128 {
    v1::Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

/// Emits the controller's side of arbitration. Without an election id the controller only listens.
pub(crate) fn emit_arbitration(device_id: u64, election_id: Option<u128>) -> v1::StreamMessageRequest {
    let election_id = election_id.map(emit_election_id);
    let update = v1::MasterArbitrationUpdate { device_id, election_id, ..Default::default() };
    v1::StreamMessageRequest { update: Some(v1::stream_message_request::Update::Arbitration(update)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_arbitration_has_one_meaning() {
        let parse = |code: Code, id: Option<u128>| {
            let status = Some(p4runtime_proto::google::rpc::Status { code: code as i32, ..Default::default() });
            let election_id = id.map(emit_election_id);
            Mastership::parse(&v1::MasterArbitrationUpdate { status, election_id, ..Default::default() })
        };
        let large = u128::from(u64::MAX) + 7;
        assert_eq!(parse(Code::Ok, Some(large)), Mastership::Primary { election_id: large });
        assert_eq!(parse(Code::AlreadyExists, Some(7)), Mastership::Other { election_id: Some(7) });
        assert_eq!(parse(Code::NotFound, Some(7)), Mastership::Vacant { highest: Some(7) });
        // BMv2's server, to a controller without an election id.
        assert_eq!(parse(Code::Ok, None), Mastership::Vacant { highest: None });
        assert_eq!(parse(Code::Ok, Some(0)), Mastership::Vacant { highest: None });
    }
}
