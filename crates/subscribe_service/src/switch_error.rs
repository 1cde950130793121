//! Failures of a switch, with their facts. Their texts are read by clients of the service and by its operator.

use std::time::Duration;

use p4runtime_client::{CallError, Code, ConnectError, HandshakeFailure, Rejection};
use p4runtime_proto::v1;

use crate::compatibility::ProgramDifference;
use crate::rule_set::RuleSetError;

/// A call without a reliable effect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SwitchError {
    /// The switch rejected the call.
    Rejected(SwitchRejection),
    /// The switch as it is configured cannot be used for these rules.
    Incompatible(Incompatibility),
    /// Another controller has become primary.
    NotPrimary,
    /// The switch does not implement the call.
    Unimplemented,
    /// The switch cannot be reached or did not answer. Whether it executed the call is unknown.
    Unreachable(Unreachable),
}

/// A rejected call, and the update that caused it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SwitchRejection {
    /// The switch's message, safe to print.
    pub reason: String,
    /// The first update that failed by itself, if the switch reports it. Others of the batch may have failed because of
    /// it.
    pub update: Option<Box<v1::Update>>,
}

/// A switch whose configuration does not fit the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatibility {
    /// The switch holds more than the service reads.
    #[error(
        "the switch holds more than {max_entities} entries, or takes more than {minutes} minutes to send one table"
    )]
    TooMuchToRead {
        /// Maximum number of entries that the service reads.
        max_entities: usize,
        /// Maximum time for one table, in minutes.
        minutes: u64,
    },
    /// The switch applies updates one after the other, and the codes of a field change together.
    #[error(
        "the switch does not apply a batch of writes atomically, as codes require: generate the program without \
         `@query_codes` for `{field}`"
    )]
    CodesNotAtomic {
        /// The field.
        field: String,
    },
    /// The rules cannot be compiled for the switch.
    #[error("the rules cannot be compiled for this switch: {0}")]
    Compilation(RuleSetError),
    /// The rules cannot be compiled in the order of fields of the switch's program, which has to stay.
    #[error("the rules cannot be compiled with the field order of the switch's program: {}", .0.to_string().trim_end())]
    Order(RuleSetError),
    /// The switch runs a program for other rules.
    #[error(transparent)]
    Program(#[from] ProgramDifference),
    /// The program has no table, field, action or parameter that an entry needs.
    #[error("the switch's program has no {object} of `{table}`")]
    MissingObject {
        /// The table, field, action or parameter.
        object: String,
        /// The table.
        table: String,
    },
    /// The switch has no program, and the service must not load one.
    #[error("the switch has no program yet, and the service is set to load none")]
    NoProgram,
}

/// The reason why a switch cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// Nothing answered while the connection was established.
    #[error("no response")]
    ConnectTimeout,
    /// A call was not answered in time.
    #[error("no response within {} s", .0.as_secs())]
    CallTimeout(Duration),
    /// The calls of one change took too long together.
    #[error("a change took too long")]
    ChangeTimeout,
    /// The connection attempt failed, with the innermost cause.
    #[error("{0}")]
    Connect(String),
    /// The service uses TLS and the switch does not.
    #[error("the server does not use TLS")]
    NotTls,
    /// The TLS handshake failed.
    #[error("{0}")]
    Handshake(HandshakeFailure),
    /// The connection ended before the first answer of the switch.
    #[error("the connection was closed before the first response")]
    BrokenAtStart {
        /// Whether the service uses TLS.
        is_tls: bool,
    },
    /// The connection ended.
    #[error("the connection was closed")]
    Broken,
    /// The switch ended the stream without an error.
    #[error("the switch closed the stream")]
    StreamEnded,
    /// The switch reported this itself.
    #[error("{0}")]
    Reported(String),
}

impl From<Incompatibility> for SwitchError {
    fn from(why: Incompatibility) -> SwitchError {
        SwitchError::Incompatible(why)
    }
}

impl SwitchError {
    /// Converts the error of a call.
    pub fn from_call(error: CallError) -> SwitchError {
        match error {
            CallError::Timeout(after) => SwitchError::Unreachable(Unreachable::CallTimeout(after)),
            CallError::Transport(_) => SwitchError::Unreachable(Unreachable::Broken),
            CallError::StreamEnded => SwitchError::Unreachable(Unreachable::StreamEnded),
            CallError::Rejected(rejection) => SwitchError::from_write(&rejection, &[]),
        }
    }

    /// Converts the rejection of a write of these updates.
    pub fn from_write(rejection: &Rejection, updates: &[v1::Update]) -> SwitchError {
        match rejection.code {
            Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => {
                SwitchError::Unreachable(Unreachable::Reported(reason(rejection)))
            }
            Code::PermissionDenied => SwitchError::NotPrimary,
            Code::Unimplemented => SwitchError::Unimplemented,
            _ => SwitchError::Rejected(SwitchRejection::new(rejection, updates)),
        }
    }
}

impl SwitchRejection {
    fn new(rejection: &Rejection, updates: &[v1::Update]) -> SwitchRejection {
        let cause = rejection.first_cause();
        let reason = match cause {
            Some(cause) if !cause.message.is_empty() => sanitize(&cause.message),
            _ => reason(rejection),
        };
        // A server may send no details about the only update of a write.
        let index = cause.map(|cause| cause.index).or((updates.len() == 1).then_some(0));
        let update = index.and_then(|index| updates.get(index)).cloned().map(Box::new);
        SwitchRejection { reason, update }
    }
}

/// The reason why a stream ended, or was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The switch cannot be reached any more.
    Lost(Unreachable),
    /// Another controller has the election id (specification 5.3).
    ElectionIdTaken(String),
    /// The server has no such device (specification 5.3).
    NoDevice(String),
}

impl StreamEnd {
    /// Converts the error that a stream ended with.
    pub fn from_call(error: CallError) -> StreamEnd {
        let CallError::Rejected(rejection) = error else {
            let SwitchError::Unreachable(why) = SwitchError::from_call(error) else { unreachable!("it has no status") };
            return StreamEnd::Lost(why);
        };
        let is_about_election = || rejection.message.to_lowercase().contains("election");
        match rejection.code {
            // INVALID_ARGUMENT has other causes too, and another election id helps with none of them.
            Code::InvalidArgument if is_about_election() => StreamEnd::ElectionIdTaken(reason(&rejection)),
            Code::NotFound => StreamEnd::NoDevice(reason(&rejection)),
            _ => StreamEnd::Lost(Unreachable::Reported(reason(&rejection))),
        }
    }
}

impl Unreachable {
    /// Converts a failed connection attempt.
    pub fn from_connect(error: &ConnectError) -> Unreachable {
        match error {
            ConnectError::Timeout { .. } => Unreachable::ConnectTimeout,
            ConnectError::NotTls { .. } => Unreachable::NotTls,
            ConnectError::Handshake { failure, .. } => Unreachable::Handshake(failure.clone()),
            other => Unreachable::Connect(innermost_cause(other)),
        }
    }
}

/// Returns the message of a rejection, or the description of its code.
fn reason(rejection: &Rejection) -> String {
    if rejection.message.is_empty() { rejection.code.description().to_owned() } else { sanitize(&rejection.message) }
}

/// Makes text from the network safe for a terminal, and cuts it at 2,000 characters.
pub(crate) fn sanitize(text: &str) -> String {
    const MAX_CHARS: usize = 2_000;
    let text = diagnostics::visible(text.trim_end());
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns the innermost cause of a failed connection attempt, which is the most specific.
fn innermost_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use p4runtime_client::UpdateError;

    use super::*;

    fn rejection(code: Code, message: &str, updates: &[(usize, Code, &str)]) -> Rejection {
        let update = |(index, code, message): &(usize, Code, &str)| UpdateError {
            index: *index,
            code: *code,
            message: (*message).to_owned(),
        };
        Rejection { code, message: message.to_owned(), updates: updates.iter().map(update).collect() }
    }

    #[test]
    fn the_update_that_failed_by_itself_is_the_one_that_is_reported() {
        let updates: Vec<v1::Update> = (1..=4).map(|kind| v1::Update { r#type: kind, entity: None }).collect();
        let reported = |message: &str, failed: &[(usize, Code, &str)]| {
            let rejection = rejection(Code::Unknown, message, failed);
            let SwitchError::Rejected(rejection) = SwitchError::from_write(&rejection, &updates) else {
                panic!("it was rejected")
            };
            (rejection.reason, rejection.update.map(|update| update.r#type))
        };
        let aborted = |index| (index, Code::Aborted, "not done, since another update failed");
        let full = (2, Code::ResourceExhausted, "the table\u{1b} is full");
        let there = |index| (index, Code::AlreadyExists, "it is there");
        let expected = ("the table␛ is full".to_owned(), Some(3));
        assert_eq!(reported("3 of 4 failed", &[aborted(0), aborted(1), full, there(3)]), expected);
        assert_eq!(reported("1 of 4 failed", &[there(1)]), ("it is there".to_owned(), Some(2)));
        assert_eq!(reported("1 of 4 failed", &[(1, Code::NotFound, "")]), ("1 of 4 failed".to_owned(), Some(2)));
        assert_eq!(reported("no", &[]), ("no".to_owned(), None));
        assert_eq!(reported("no", &[(99, Code::Unknown, "no")]).1, None, "there is no such update");
        let only = SwitchError::from_write(&rejection(Code::Unknown, "no", &[]), &updates[..1]);
        let SwitchError::Rejected(only) = only else { panic!("it was rejected") };
        assert_eq!(only.update.map(|update| update.r#type), Some(1));
    }

    #[test]
    fn only_a_message_about_the_election_id_asks_for_another() {
        let end = |code, message: &str| StreamEnd::from_call(CallError::Rejected(rejection(code, message, &[])));
        assert!(matches!(end(Code::InvalidArgument, "Election id already exists"), StreamEnd::ElectionIdTaken(_)));
        assert!(matches!(end(Code::InvalidArgument, "role.config is wrong"), StreamEnd::Lost(_)));
        assert!(matches!(end(Code::NotFound, "there is no device 7"), StreamEnd::NoDevice(_)));
        assert!(matches!(end(Code::Unavailable, "election"), StreamEnd::Lost(_)));
    }
}
