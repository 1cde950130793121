//! Defines the reasons why the switch cannot be used for a time.

use std::fmt;

use crate::switch_error::{Incompatibility, Unreachable, sanitize};

/// The reason why the switch cannot be used now. As text it is safe for a terminal: names from the switch's program and
/// its messages are made visible. The owner of the service knows the remedies ([`crate::Settings::remedy`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AwayReason {
    /// The switch cannot be reached.
    NotReached(Unreachable),
    /// The connection to the switch was lost.
    WentAway(Unreachable),
    /// Another controller is primary.
    OtherPrimary {
        /// Its election id, if the switch reports it.
        election_id: Option<u128>,
    },
    /// Another controller has the election id; with the switch's message.
    ElectionIdTaken(String),
    /// The switch has no such device.
    NoDevice {
        /// The number of the device.
        device_id: u64,
        /// The switch's message.
        message: String,
    },
    /// The switch refused a call, with its message.
    Refused(String),
    /// The switch rejected an update; the text names the rule that it belongs to, if it is known.
    RejectedUpdate(String),
    /// The configuration of the switch does not fit the rules.
    Incompatible(Incompatibility),
    /// The switch does not implement a call that the service needs.
    Unimplemented,
}

impl fmt::Display for AwayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            AwayReason::NotReached(why) => format!("the switch cannot be reached: {why}"),
            AwayReason::WentAway(why) => format!("the connection to the switch was lost: {why}"),
            AwayReason::OtherPrimary { election_id: None } => "another controller is primary".to_owned(),
            AwayReason::OtherPrimary { election_id: Some(id) } => {
                format!("another controller is primary, with election id {id}")
            }
            AwayReason::ElectionIdTaken(message) => format!("the switch rejected the election id: {message}"),
            AwayReason::NoDevice { device_id, message } => {
                format!("there is no device {device_id} at the switch's address ({message})")
            }
            AwayReason::Refused(message) => format!("the switch rejected the request: {message}"),
            AwayReason::RejectedUpdate(text) => text.clone(),
            AwayReason::Incompatible(why) => why.to_string(),
            AwayReason::Unimplemented => "the switch does not implement an RPC that the service needs".to_owned(),
        };
        f.write_str(&sanitize(&text))
    }
}
