//! Defines the options of the originals that have no effect here: they are ignored with a note, or refused.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::output::Failure;

/// The sentence for everything that needs Thrift.
pub const NO_THRIFT: &str = "there is no Thrift server, which simple_switch_CLI needs; use a P4Runtime client, such as \
                             `triplane ctl`, and simple_switch_grpc instead of simple_switch";

/// The value of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// None.
    Nothing,
    /// One word.
    Value,
    /// One word after `=`, or none.
    Optional,
}

/// An option that has no meaning here.
pub struct Ignored {
    /// The option, without its dashes: one character for a short one.
    pub name: &'static str,
    /// Its value.
    pub takes: Takes,
}

/// An option whose effect would be missed.
pub struct Refused {
    /// The option, without its dashes.
    pub name: &'static str,
    /// Its value.
    pub takes: Takes,
    /// The remedy; the sentence begins with the option.
    pub why: &'static str,
}

/// Adds the options to a command. They are not listed in its help.
pub fn add(command: Command, ignored: &'static [Ignored], refused: &'static [Refused]) -> Command {
    let options = ignored.iter().map(|option| (option.name, option.takes));
    let options = options.chain(refused.iter().map(|option| (option.name, option.takes)));
    options.fold(command, |command, (name, takes)| {
        let arg = Arg::new(name).hide(true);
        let mut letters = name.chars();
        let arg = match (letters.next(), letters.next()) {
            (Some(letter), None) => arg.short(letter),
            _ => arg.long(name),
        };
        command.arg(match takes {
            Takes::Nothing => arg.action(ArgAction::Count),
            Takes::Value => arg.action(ArgAction::Append).value_name("VALUE"),
            Takes::Optional => {
                arg.action(ArgAction::Append).num_args(0..=1).require_equals(true).default_missing_value("")
            }
        })
    })
}

/// Returns the note that names the ignored options that were given; `None` if there are none.
pub fn note(matches: &ArgMatches, ignored: &'static [Ignored]) -> Option<String> {
    let given = ignored.iter().filter(|option| is_given(matches, option.name));
    let names: Vec<_> = given.map(|option| spelled(option.name)).collect();
    (!names.is_empty()).then(|| format!("ignored, without meaning here: {}", names.join(", ")))
}

/// Fails with the first refused option that was given.
pub fn check(matches: &ArgMatches, refused: &'static [Refused]) -> Result<(), Failure> {
    match refused.iter().find(|option| is_given(matches, option.name)) {
        Some(option) => Err(Failure::Usage(format!("{} is not supported: {}", spelled(option.name), option.why))),
        None => Ok(()),
    }
}

/// Whether an option is on the command line.
pub fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

fn spelled(name: &str) -> String {
    if name.len() == 1 { format!("-{name}") } else { format!("--{name}") }
}
