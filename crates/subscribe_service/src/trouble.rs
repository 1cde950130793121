//! What goes wrong with a switch, from what its server says.

use p4runtime_proto::google;
use p4runtime_proto::v1;
use prost::Message;
use tonic::{Code, Status};

/// Why a call did nothing that can be relied on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// The switch said no.
    Refused(Refusal),
    /// As it is set up it cannot be used for these rules; what is wrong and what helps, for people.
    Unfit(String),
    /// Another controller has taken over.
    NotPrimary,
    /// The call is not for this switch.
    Unimplemented,
    /// It cannot be reached, or did not answer: what it did is unknown.
    Gone(String),
}

/// A no, and what it is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Refusal {
    /// Why, in the switch's words.
    pub why: String,
    /// Which update of the call was refused first, if that is told. Others of a batch are not done because of it.
    pub at: Option<usize>,
    /// That update.
    pub update: Option<Box<v1::Update>>,
}

impl Trouble {
    /// What the status of a call says.
    pub fn of(status: &Status) -> Trouble {
        let is_transport = std::error::Error::source(status).is_some();
        match status.code() {
            _ if is_transport => Trouble::Gone("the connection broke".to_owned()),
            Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => Trouble::Gone(words(status)),
            Code::PermissionDenied => Trouble::NotPrimary,
            Code::Unimplemented => Trouble::Unimplemented,
            _ => Trouble::Refused(Refusal::of(status)),
        }
    }

    /// The same of a write of these updates.
    pub fn about(self, updates: &[v1::Update]) -> Trouble {
        let Trouble::Refused(Refusal { why, at, .. }) = self else { return self };
        // A server may give no details where there is nothing to choose from.
        let at = at.or((updates.len() == 1).then_some(0));
        let update = at.and_then(|at| updates.get(at)).cloned().map(Box::new);
        Trouble::Refused(Refusal { why, at, update })
    }
}

impl Refusal {
    /// What a status says of the first update that failed by itself: the details have one for each update (specification 12.3),
    /// as far as there is room for them.
    fn of(status: &Status) -> Refusal {
        let details = google::rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
        let is_cause = |code: i32| ![0, Code::Aborted as i32].contains(&code);
        for (at, any) in details.iter().enumerate() {
            let Ok(error) = v1::Error::decode(&*any.value) else { continue };
            if is_cause(error.canonical_code) {
                let why = if error.message.is_empty() { words(status) } else { clean(&error.message) };
                return Refusal { why, at: Some(at), update: None };
            }
        }
        match beyond_details(status.message(), details.len()) {
            Some((at, why)) => Refusal { why: clean(why), at: Some(at), update: None },
            None => Refusal { why: words(status), at: None, update: None },
        }
    }
}

/// What Triplane's servers say of updates behind those there was room to give details of: `[700]: there is no such table; …`.
fn beyond_details(message: &str, details: usize) -> Option<(usize, &str)> {
    let (number, why) = message.split_once("Failed: [")?.1.split_once("]: ")?;
    let at = number.parse().ok().filter(|at| *at >= details)?;
    Some((at, why.split("; [").next().unwrap_or(why)))
}

/// Why a stream is over, or never began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Gone(String),
    /// Another has the election id (specification 5.3).
    Taken(String),
    /// There is no such device (specification 5.3).
    NoDevice(String),
}

impl End {
    /// What the status of a stream says.
    pub fn of(status: &Status) -> End {
        let is_about_election = || status.message().to_lowercase().contains("election");
        match Trouble::of(status) {
            Trouble::Gone(why) => End::Gone(why),
            // Other things are refused with this code, too, and another election id helps none of them.
            _ if status.code() == Code::InvalidArgument && is_about_election() => End::Taken(words(status)),
            _ if status.code() == Code::NotFound => End::NoDevice(words(status)),
            _ => End::Gone(words(status)),
        }
    }
}

/// What a switch said.
fn words(status: &Status) -> String {
    match status.message() {
        "" => status.code().description().to_owned(),
        message => clean(message),
    }
}

/// What a terminal may be told of foreign text, and as much of it as one reads.
pub(crate) fn clean(text: &str) -> String {
    const MOST: usize = 2_000;
    let text = diagnostics::visible(text.trim_end());
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Why a connection cannot be had: the innermost cause says it best.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(message: &str, details: &[(Code, &str)]) -> Status {
        let detail = |(code, message): &(Code, &str)| {
            let error =
                v1::Error { canonical_code: *code as i32, message: (*message).to_owned(), ..v1::Error::default() };
            prost_types::Any { type_url: String::new(), value: error.encode_to_vec() }
        };
        let code = Code::Unknown;
        let of = google::rpc::Status {
            code: code as i32,
            message: message.to_owned(),
            details: details.iter().map(detail).collect(),
        };
        Status::with_details(code, message, of.encode_to_vec().into())
    }

    #[test]
    fn the_update_that_failed_by_itself_is_the_one_that_is_told() {
        let updates: Vec<v1::Update> = (1..=4).map(|kind| v1::Update { r#type: kind, entity: None }).collect();
        let told = |message: &str, details: &[(Code, &str)]| {
            let Trouble::Refused(refusal) = Trouble::of(&status(message, details)).about(&updates) else {
                panic!("it was refused")
            };
            (refusal.why, refusal.update.map(|update| update.r#type))
        };
        let aborted = (Code::Aborted, "not done, since another update failed");
        let full = (Code::ResourceExhausted, "the table\u{1b} is full");
        let there = (Code::AlreadyExists, "it is there");
        assert_eq!(told("3 of 4 failed", &[aborted, aborted, full, there]), ("the table␛ is full".to_owned(), Some(3)));
        assert_eq!(told("1 of 4 failed", &[(Code::Ok, ""), there]), ("it is there".to_owned(), Some(2)));
        // Where there was no room for the details.
        let message =
            "1 of 4 updates failed; there is room for the details of the first 1. Failed: [3]: it is full; [4]: so";
        assert_eq!(told(message, &[aborted]), ("it is full".to_owned(), Some(4)));
        assert_eq!(told("no", &[]), ("no".to_owned(), None));
        assert_eq!(told("Failed: [99]: no", &[]).1, None, "there is no such update");
        let Trouble::Refused(only) = Trouble::of(&status("no", &[])).about(&updates[..1]) else {
            panic!("it was refused")
        };
        assert_eq!(only.update.map(|update| update.r#type), Some(1));
    }

    #[test]
    fn only_what_is_about_the_election_id_asks_for_another() {
        let end = |code, message: &str| End::of(&Status::new(code, message));
        assert!(matches!(end(Code::InvalidArgument, "Election id already exists"), End::Taken(_)));
        assert!(matches!(end(Code::InvalidArgument, "role.config is wrong"), End::Gone(_)));
        assert!(matches!(end(Code::NotFound, "there is no device 7"), End::NoDevice(_)));
        assert!(matches!(end(Code::Unavailable, "election"), End::Gone(_)));
    }
}
