//! Looks up objects of a program by the names that users write: in full, or by what follows a dot.

use diagnostics::names::{Endings, NoName, find, listed, nearest};
pub use p4runtime_client::names::{action, actions, id, match_type, name, needs_priority, tables};
use subscribe_p4::ProgramMismatch;

/// Finds the object with this name, in full or by an ending of the name.
///
/// # Errors
/// The mistake in the name, and a remedy with the names that exist.
pub fn look<T: Copy>(kind: &str, wanted: &str, all: &[(T, &str)]) -> Result<T, (String, String)> {
    find(wanted, all, Endings::BehindDot).map_err(|why| {
        let names = || all.iter().map(|(_, name)| *name);
        match why {
            NoName::Ambiguous(one, other) => {
                (format!("`{wanted}` is ambiguous: `{one}` or `{other}`"), "write more of the name".to_owned())
            }
            NoName::Unknown
                if let Some(ProgramMismatch::OtherOrder(there)) = subscribe_p4::mismatch(wanted, names()) =>
            {
                (
                    format!("there is no {kind} `{wanted}`: the program was generated with a different field order"),
                    format!("this field's {kind} is `{there}`, and its states differ"),
                )
            }
            NoName::Unknown => match nearest(wanted, names()) {
                Some(name) => (format!("there is no {kind} `{wanted}`"), format!("did you mean `{name}`?")),
                None => (format!("there is no {kind} `{wanted}`"), format!("there is {}", listed(names()))),
            },
        }
    })
}

/// Finds an object as [`look`] does, with an error in one sentence.
///
/// # Errors
/// As [`look`].
pub fn look_up<T: Copy>(kind: &str, wanted: &str, all: &[(T, &str)]) -> Result<T, crate::output::Failure> {
    look(kind, wanted, all).map_err(|(what, help)| crate::output::Failure::Input(format!("{what}; {help}")))
}
