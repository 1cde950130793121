//! Runs `triplane ctl`: a P4Runtime client for people, by the names of the program that runs.
//!
//! ```text
//!   words ── text ──> EntryText ── entry (by names of the live P4Info) ──> TableEntry ── p4runtime_client ──> server
//!   words <── show ── entities <──────────────────────────────────────────────────────── p4runtime_client <── server
//! ```
//!
//! The connection, mastership and the calls are the library's (`p4runtime_client`); [`failure`] renders its errors.

pub mod args;
pub mod complete;
mod entry;
pub mod failure;
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

use std::cell::Cell;

use args::{CtlArgs, CtlCommand, ServerArgs};
use entry::Change;
use p4runtime_client::{BlockingClient, CallError};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{Entity, Update};

use crate::output::{Failure, Output};

/// Runs a subcommand.
pub fn run(args: &CtlArgs, output: &Output) -> Result<(), Failure> {
    let client = connect(&args.server)?;
    let info = read_p4info(&client, &args.server)?;
    let (election_id, json) = (args.server.election_id, args.server.json);
    let session = SwitchConnection { client, info, election_id, json, output, denied: Cell::new(0) };
    let done = match &args.command {
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
    };
    session.note_denied();
    done
}

/// Connects to the server that the options name.
///
/// # Errors
/// If no server answers there, or it does not use TLS as the options say.
pub fn connect(args: &ServerArgs) -> Result<BlockingClient, Failure> {
    let options = args.server_options();
    let target = options.target()?;
    BlockingClient::connect(&target, args.device_id)
        .map_err(|error| failure::from_connect(&error, target.address(), &options))
}

/// Reads the P4Info of the program that the switch runs. This is the first call on a connection.
///
/// # Errors
/// If the switch has no program, the server does not admit the client, or the call fails.
pub fn read_p4info(client: &BlockingClient, args: &ServerArgs) -> Result<P4Info, Failure> {
    let config = client.pipeline_config();
    let config = config.map_err(|error| failure::from_first_call(&error, &args.server_options()))?;
    config.and_then(|config| config.p4info).ok_or_else(|| Failure::Input("the switch has no program yet".to_owned()))
}

/// A connected switch, the P4Info of its program, and the output of the command.
struct SwitchConnection<'a> {
    client: BlockingClient,
    info: P4Info,
    election_id: Option<u128>,
    json: bool,
    output: &'a Output,
    /// Objects that were left out of a list, since this user may not read them.
    denied: Cell<usize>,
}

/// The failure of a read.
enum ReadFailure {
    /// The server rejected the call, or the connection was lost.
    Call(CallError),
    /// What was read could not be used.
    Use(Failure),
}

impl From<CallError> for ReadFailure {
    fn from(error: CallError) -> ReadFailure {
        ReadFailure::Call(error)
    }
}

impl SwitchConnection<'_> {
    /// Reads entities, and calls `each` for every one as it arrives.
    fn read(&self, wanted: Vec<Kind>, each: impl FnMut(Kind) -> Result<(), Failure>) -> Result<(), Failure> {
        self.client.read(wanted, each)
    }

    /// Reads the entities of an object, as [`Self::read`] does. An object of a list (`is_listed`) that this user may
    /// not read is left out and counted. Returns whether the object was read.
    fn read_object(
        &self,
        wanted: Vec<Kind>,
        is_listed: bool,
        mut each: impl FnMut(Kind) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        match self.client.read(wanted, |entity| each(entity).map_err(ReadFailure::Use)) {
            Ok(()) => Ok(true),
            Err(ReadFailure::Call(error)) if is_listed && failure::is_denied(&error) => {
                self.denied.set(self.denied.get() + 1);
                Ok(false)
            }
            Err(ReadFailure::Call(error)) => Err(error.into()),
            Err(ReadFailure::Use(failure)) => Err(failure),
        }
    }

    /// Says how many objects were left out.
    fn note_denied(&self) {
        match self.denied.get() {
            0 => {}
            1 => self.output.note("1 object is left out: this user may not read it"),
            count => self.output.note(&format!("{count} objects are left out: this user may not read them")),
        }
    }

    /// Writes one update as the primary with this election id.
    fn send(&self, election_id: u128, kind: Type, entity: Kind) -> Result<(), Failure> {
        let update = Update { r#type: kind.into(), entity: Some(Entity { entity: Some(entity) }) };
        Ok(self.client.write(election_id, vec![update], Atomicity::default())?)
    }

    /// Prints a value as JSON.
    fn print_json(&self, value: &serde_json::Value) -> Result<(), Failure> {
        self.output.print(&format!("{value:#}\n"))
    }
}
