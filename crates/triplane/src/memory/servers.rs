//! Lists the memory servers of a running switch, and adds and removes servers.

use std::path::Path;

use anyhow::Context;
use local_socket::SocketError;
use v1model_runtime::memory_socket::{
    ListedServers, MemoryRequest, MemoryResponse, ServerStatus, ask_switch, next_servers,
};

use super::args::{MemoryAddArgs, MemoryRemoveArgs, MemorySwitchArgs};
use crate::output::{Failure, Output, aligned, grouped, socket_failure};

/// Number of polls after which progress is shown: about a second.
const QUIET_TURNS: u32 = 10;

fn failed(error: SocketError) -> Failure {
    socket_failure(error, "start the switch with `triplane run … --memory ADDRESS@PORT --socket FILE`")
}

/// Prints the servers of a switch.
pub fn list(args: &MemorySwitchArgs, output: &Output) -> Result<(), Failure> {
    let listed = servers(ask_switch(&args.socket, &MemoryRequest::List))?;
    print(&listed, args.json, output)
}

/// Adds a server, and waits until it serves.
pub fn add(args: &MemoryAddArgs, output: &Output) -> Result<(), Failure> {
    let request = MemoryRequest::Add { address: args.server.address, port: args.server.port };
    change(&request, &args.switch, output, |listed| {
        let added = listed.servers.iter().find(|server| server.address == args.server.address);
        added.is_some_and(|server| server.state == "serving")
    })
}

/// Removes a server, and waits until it is not used any more.
pub fn remove(args: &MemoryRemoveArgs, output: &Output) -> Result<(), Failure> {
    change(&MemoryRequest::Remove { address: args.address }, &args.switch, output, |listed| {
        listed.servers.iter().all(|server| server.address != args.address)
    })
}

/// Requests a change, shows its progress, and prints the servers at the end. `is_done` looks at them: another command
/// may have reversed the change, or the switch may have been restarted with other servers.
fn change(
    request: &MemoryRequest,
    args: &MemorySwitchArgs,
    output: &Output,
    is_done: impl Fn(&ListedServers) -> bool,
) -> Result<(), Failure> {
    let path: &Path = &args.socket;
    let mut listed = servers(ask_switch(path, request))?;
    let mut turns = 0;
    while listed.is_changing {
        turns += 1;
        if turns % QUIET_TURNS == 0 {
            output.note(&format!("{}; Ctrl-C ends this command only", progress(&listed)));
        }
        listed = servers(next_servers(path))?;
    }
    print(&listed, args.json, output)?;
    if is_done(&listed) {
        return Ok(());
    }
    let reason = "the change was not made: another command reversed it, or the switch was restarted meanwhile";
    Err(Failure::Input(format!("{reason}; start `triplane run` with the servers that it is to have, or repeat it")))
}

fn servers(response: Result<MemoryResponse, SocketError>) -> Result<ListedServers, Failure> {
    match response.map_err(failed)? {
        MemoryResponse::Servers(listed) => Ok(listed),
        MemoryResponse::Refused(reason) => Err(Failure::Input(reason)),
    }
}

/// Describes the progress of a change: the servers for which it waits, or the bytes that are missing.
fn progress(listed: &ListedServers) -> String {
    let waits = |server: &&ServerStatus| server.state != "leaving" && (!server.answers || server.refusal.is_some());
    if let Some(server) = listed.servers.iter().find(waits) {
        let reason =
            server.refusal.as_ref().map_or_else(|| "does not answer".to_owned(), |why| format!("refuses: {why}"));
        return format!("the change waits for memory server {}, which {reason}", server.address);
    }
    let missing: u64 = listed.servers.iter().map(|server| server.missing_bytes).sum();
    format!("{} bytes are still to be written to the servers", grouped(missing))
}

fn print(listed: &ListedServers, is_json: bool, output: &Output) -> Result<(), Failure> {
    if is_json {
        let text = serde_json::to_string_pretty(listed).context("cannot print the result")?;
        return output.print(&format!("{text}\n"));
    }
    output.print(&table(listed))
}

/// Returns the servers as text.
fn table(listed: &ListedServers) -> String {
    let header = ["server", "port", "state", "entries", "bytes", "missing", "READs"].map(str::to_owned);
    let lines: Vec<[String; 7]> = std::iter::once(header).chain(listed.servers.iter().map(line)).collect();
    aligned(&lines, &[1, 3, 4, 5, 6])
}

fn line(server: &ServerStatus) -> [String; 7] {
    let mut state = server.state.clone();
    match &server.refusal {
        Some(refusal) => state.push_str(&format!(": {refusal}")),
        None if !server.answers => state.push_str(": does not answer"),
        None => {}
    }
    [
        server.address.to_string(),
        server.port.to_string(),
        state,
        grouped(server.entries),
        grouped(server.bytes),
        grouped(server.missing_bytes),
        grouped(server.reads),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(last: u8, state: &str) -> ServerStatus {
        ServerStatus {
            address: [10, 9, 0, last].into(),
            port: 3,
            state: state.to_owned(),
            answers: true,
            refusal: None,
            entries: 5_000,
            bytes: 179_304,
            missing_bytes: 0,
            reads: 12,
        }
    }

    #[test]
    fn servers_are_a_table_and_the_one_that_delays_a_change_is_named() {
        let silent = ServerStatus {
            answers: false,
            entries: 0,
            bytes: 0,
            missing_bytes: 1_000,
            reads: 0,
            ..server(2, "joining")
        };
        let mut listed = ListedServers { servers: vec![server(1, "serving"), silent], is_changing: true };
        let expected = "\
server    port  state                     entries    bytes  missing  READs
10.9.0.1     3  serving                     5,000  179,304        0     12
10.9.0.2     3  joining: does not answer        0        0    1,000      0
";
        assert_eq!(table(&listed), expected);
        assert_eq!(progress(&listed), "the change waits for memory server 10.9.0.2, which does not answer");
        listed.servers[1].answers = true;
        assert_eq!(progress(&listed), "1,000 bytes are still to be written to the servers");
        listed.servers[1].refusal = Some("full".to_owned());
        assert_eq!(progress(&listed), "the change waits for memory server 10.9.0.2, which refuses: full");
    }
}
