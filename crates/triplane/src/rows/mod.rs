//! Runs `triplane resilient`: lists the rows of a running switch, and moves them away from it.

pub mod args;

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use local_socket::SocketError;
use resilient_store::{
    ListedRows, MAX_AWAY_MS, MoveStatus, NamedValue, RowStatus, RowsRequest, RowsResponse, ask_switch, malformed,
    next_progress,
};
use serde_json::json;

use crate::output::{Failure, Output, aligned, grouped, socket_failure};
use args::{MoveArgs, ResilientArgs, ResilientCommand, RowsArgs};

/// Number of polls after which progress is shown: about a second.
const QUIET_TURNS: u32 = 10;

fn failed(error: SocketError) -> Failure {
    socket_failure(error, "start the switch with `triplane run … --store FILE --switch NAME --socket FILE`")
}

/// Runs a command of `triplane resilient`.
pub fn run(args: &ResilientArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        ResilientCommand::Rows(args) => rows(args, output),
        ResilientCommand::Move(args) => move_rows(args, output),
    }
}

/// Lists rows.
fn rows(args: &RowsArgs, output: &Output) -> Result<(), Failure> {
    let (limit, mut from) = (args.limit as usize, (0, 0));
    let mut rows: Vec<RowStatus> = Vec::new();
    let mut last: ListedRows;
    loop {
        let most = limit - rows.len();
        let request = RowsRequest::Rows { group: args.group.clone(), key: args.key.clone(), from, most };
        last = match ask_switch(&args.socket, &request).map_err(failed)? {
            RowsResponse::Rows(listed) => listed,
            other => return Err(unexpected(&args.socket, other)),
        };
        rows.append(&mut last.rows);
        match last.next.filter(|_| rows.len() < limit) {
            // An answer without progress would cause an endless loop.
            Some(next) if next > from => from = next,
            _ => break,
        }
    }
    let has_more = last.next.is_some();
    if args.json {
        let ListedRows { granted, asked, releasing, .. } = last;
        let found = json!({
            "rows": rows, "has_more": has_more, "granted": granted, "asked": asked, "releasing": releasing,
        });
        return output.print(&format!("{found:#}\n"));
    }
    output.print(&table(&rows, has_more, &last))
}

/// Returns rows as text.
fn table(rows: &[RowStatus], has_more: bool, counts: &ListedRows) -> String {
    let header = ["group", "key", "values", "state", "epoch", "acknowledged"].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(header).chain(rows.iter().map(line)).collect();
    let mut text = aligned(&lines, &[4]);
    let more = if has_more { ", and there may be more: --limit shows them" } else { "" };
    let count = |count: u64| grouped(count);
    // Writing to a string cannot fail.
    _ = writeln!(
        text,
        "\n{} shown{more}; the switch has {} rows, asks for {} and gives {} back",
        count(rows.len() as u64),
        count(counts.granted),
        count(counts.asked),
        count(counts.releasing)
    );
    text
}

fn line(row: &RowStatus) -> [String; 6] {
    let key: Vec<&str> = row.key.iter().map(|value| value.shown.as_str()).collect();
    let named = |value: &NamedValue| {
        let name = value.name.rsplit('.').next().unwrap_or_default();
        format!("{name}={}", value.shown)
    };
    let values: Vec<String> = row.values.iter().map(named).collect();
    let state = if row.is_pending { format!("{}, writing", row.state) } else { row.state.clone() };
    let acknowledged = row.acknowledged_ms.map_or_else(|| "-".to_owned(), |ms| format!("{} ago", age(ms)));
    [row.group.clone(), key.join(","), values.join(" "), state, row.epoch.to_string(), acknowledged]
}

/// Returns a time in words.
fn age(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min", ms / 60_000),
    }
}

/// Moves rows away from a switch, and shows the progress.
fn move_rows(args: &MoveArgs, output: &Output) -> Result<(), Failure> {
    let away_ms = args.away.map(away_ms).transpose()?;
    let request = RowsRequest::Move { group: args.group.clone(), away_ms };
    let mut status = move_status(&args.socket, ask_switch(&args.socket, &request).map_err(failed)?)?;
    let mut turns = 0;
    while !status.is_done {
        turns += 1;
        if turns % QUIET_TURNS == 0 {
            let (moved, left) = (grouped(status.moved), grouped(status.granted + status.under_way));
            output.note(&format!("{moved} rows were given back, {left} are left; Ctrl-C ends this command only"));
        }
        status = move_status(&args.socket, next_progress(&args.socket).map_err(failed)?)?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(&status).context("cannot print the result")?;
        return output.print(&format!("{text}\n"));
    }
    let rows = if status.moved == 1 { "row was" } else { "rows were" };
    let after = match away_ms {
        Some(ms) => format!("packets that need such rows are dropped for {} s", ms as f64 / 1e3),
        None => "the switch asks for a row again when a packet needs it".to_owned(),
    };
    output.print(&format!("{} {rows} given back; {after}\n", grouped(status.moved)))
}

/// Returns the value of `--away` in milliseconds.
fn away_ms(seconds: f64) -> Result<u64, Failure> {
    let wrong = || {
        let most = MAX_AWAY_MS / 1000;
        Failure::Usage(format!(
            "--away {seconds} is not a valid time: expected more than 0 and up to {most} seconds, such as 30 or 0.5"
        ))
    };
    let away = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    u64::try_from(away.as_millis()).ok().filter(|ms| (1..=MAX_AWAY_MS).contains(ms)).ok_or_else(wrong)
}

fn move_status(socket: &Path, response: RowsResponse) -> Result<MoveStatus, Failure> {
    match response {
        RowsResponse::Move(status) => Ok(status),
        other => Err(unexpected(socket, other)),
    }
}

fn unexpected(socket: &Path, response: RowsResponse) -> Failure {
    match response {
        RowsResponse::Refused(reason) => Failure::Input(reason),
        RowsResponse::Rows(_) | RowsResponse::Move(_) => malformed(socket).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_table() {
        let value = |name: &str, shown: &str| NamedValue {
            name: name.to_owned(),
            value: "0x0".to_owned(),
            shown: shown.to_owned(),
        };
        let rows = [
            RowStatus {
                group: "keys".to_owned(),
                key: vec![value("index", "7")],
                values: vec![value("I.values", "49"), value("I.changes", "3")],
                state: "owned".to_owned(),
                is_pending: true,
                epoch: 12,
                acknowledged_ms: Some(61_000),
            },
            RowStatus {
                group: "I.outbound".to_owned(),
                key: vec![value("hdr.ipv4.protocol", "6"), value("hdr.ipv4.src", "10.0.0.1")],
                values: Vec::new(),
                state: "asked".to_owned(),
                is_pending: false,
                epoch: 0,
                acknowledged_ms: None,
            },
        ];
        let counts = ListedRows { rows: Vec::new(), next: None, granted: 1_000, asked: 1, releasing: 0 };
        let expected = "\
group       key         values               state           epoch  acknowledged
keys        7           values=49 changes=3  owned, writing     12  61 s ago
I.outbound  6,10.0.0.1                       asked               0  -

2 shown, and there may be more: --limit shows them; the switch has 1,000 rows, asks for 1 and gives 0 back
";
        assert_eq!(table(&rows, true, &counts), expected);
    }

    #[test]
    fn a_time_away_is_bounded() {
        assert_eq!((away_ms(0.5).ok(), away_ms(3600.0).ok()), (Some(500), Some(3_600_000)));
        for wrong in [-1.0, 3600.5, f64::NAN, f64::INFINITY, 1e300] {
            assert!(matches!(away_ms(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
