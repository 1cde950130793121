//! `triplane ctl`: a P4Runtime client for people, by the names of the program that runs.
//!
//! ```text
//!   words ── text ──> Entry ── entry (by names of the live P4Info) ──> TableEntry ── client ──> server
//!   words <── show ── entities <──────────────────────────────────────────────────── client <── server
//! ```

pub mod args;
pub mod client;
pub mod complete;
mod entry;
mod meters;
pub mod names;
mod objects;
mod profiles;
mod replication;
mod set;
mod show;
mod tables;
mod text;
mod value;
mod value_sets;
mod watch;

#[cfg(test)]
mod tests;

use args::{CtlArgs, CtlCommand};
use client::Client;
use entry::Change;

use crate::output::{Failure, Output};

/// Does what is asked.
pub fn run(args: &CtlArgs, output: &Output) -> Result<(), Failure> {
    let client = Client::connect(&args.server)?;
    let info = client.info()?;
    let session = Live { client, info, json: args.server.json, output };
    match &args.command {
        CtlCommand::Tables => session.tables(),
        CtlCommand::Entries { table } => session.entries(table.as_deref()),
        CtlCommand::Insert(entry) => session.change(Change::Insert, entry),
        CtlCommand::Modify(entry) => session.change(Change::Modify, entry),
        CtlCommand::Delete(entry) => session.change(Change::Delete, entry),
        CtlCommand::Set(args) => session.set(args),
        CtlCommand::Profiles { name } => session.profiles(name.as_deref()),
        CtlCommand::Meters { name } => session.meters(name.as_deref()),
        CtlCommand::ValueSets { name } => session.value_sets(name.as_deref()),
        CtlCommand::Counters { name } => session.counters(name.as_deref()),
        CtlCommand::Registers { name, index } => session.registers(name.as_deref(), *index),
        CtlCommand::Sessions => session.sessions(),
        CtlCommand::Watch => session.watch(),
    }
}

/// A switch, its program as controllers know it, and whom to tell.
struct Live<'a> {
    client: Client,
    info: p4runtime_proto::config::P4Info,
    json: bool,
    output: &'a Output,
}

impl Live<'_> {
    /// Prints a value as JSON.
    fn print_json(&self, value: &serde_json::Value) -> Result<(), Failure> {
        self.output.print(&format!("{value:#}\n"))
    }
}
