//! Stands in for the programs of BMv2 and p4c: the same names and options, run by Triplane.
//!
//! A tool is chosen by the name under which the command is called (`simple_switch_grpc`, by a link that `triplane
//! shims` makes) or by a subcommand (`triplane simple-switch-grpc`). Its options are translated to those of `triplane
//! run` and `triplane build`. Options without a meaning here are named in one line and ignored; options whose effect
//! would be missed are refused. As in the originals, every failure has exit code 1. docs/bmv2.md lists the options.

mod compile;
mod options;
pub mod shims;
mod switch;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use crate::output::{Failure, Output, exit};

/// A program that this command stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// BMv2 with P4Runtime.
    SimpleSwitchGrpc,
    /// BMv2 with Thrift only.
    SimpleSwitch,
    /// BMv2's Thrift client.
    SimpleSwitchCli,
    /// The driver of p4c, which writes into a directory.
    P4c,
    /// The compiler for BMv2, which writes one file.
    P4cBm2Ss,
}

impl Tool {
    /// Every tool.
    pub const ALL: [Tool; 5] =
        [Tool::SimpleSwitchGrpc, Tool::SimpleSwitch, Tool::SimpleSwitchCli, Tool::P4c, Tool::P4cBm2Ss];

    /// Returns the name of its executable.
    pub fn name(self) -> &'static str {
        match self {
            Tool::SimpleSwitchGrpc => "simple_switch_grpc",
            Tool::SimpleSwitch => "simple_switch",
            Tool::SimpleSwitchCli => "simple_switch_CLI",
            Tool::P4c => "p4c",
            Tool::P4cBm2Ss => "p4c-bm2-ss",
        }
    }

    /// Returns the tool under whose name the command was called.
    pub fn called_as(command: &OsStr) -> Option<Tool> {
        let name = Path::new(command).file_name()?;
        Tool::ALL.into_iter().find(|tool| name == tool.name())
    }
}

/// The reason why a tool ends before it has done anything.
enum Refusal {
    /// The options are wrong, or ask for help.
    Options(clap::Error),
    /// Anything else.
    Failure(Failure),
}

impl From<clap::Error> for Refusal {
    fn from(error: clap::Error) -> Refusal {
        Refusal::Options(error)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::Failure(failure)
    }
}

/// Runs a tool with the words that follow its name, and returns its exit code.
pub fn run(tool: Tool, words: &[OsString], output: &Output) -> ExitCode {
    let result = match tool {
        Tool::SimpleSwitchGrpc | Tool::SimpleSwitch => switch::run(tool, words, output),
        Tool::P4c | Tool::P4cBm2Ss => compile::run(tool, words, output),
        Tool::SimpleSwitchCli => Err(Failure::Usage(options::NO_THRIFT.to_owned()).into()),
    };
    match result {
        Ok(()) | Err(Refusal::Failure(Failure::Closed)) => ExitCode::from(exit::OK),
        Err(Refusal::Options(error)) => {
            let is_mistake = error.use_stderr();
            output.refusal(&error);
            ExitCode::from(if is_mistake { exit::INPUT } else { exit::OK })
        }
        Err(Refusal::Failure(failure)) => {
            output.failure(&failure);
            ExitCode::from(exit::INPUT)
        }
    }
}
