//! Runs `triplane store operate`, and the commands that users give to the operator.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use ::privileges::{KeptAccess, directory_of};
use anyhow::{Context, anyhow};
use resilient_store::{
    FileKeeper, HistoryLine, OpenError, OperatorRequest, OperatorResponse, OperatorServer, OperatorStatus, StatusError,
    StatusSocket, StoreRole, StoreStatus, ask_operator, next_status,
};

use super::args::{DrainArgs, OperateArgs, ReplaceArgs, StatusArgs};
use super::read_cluster;
use crate::output::{Failure, Output};
use crate::{privileges, signals};

/// Time without a change after which a command reports what it waits for.
const PATIENCE: Duration = Duration::from_secs(5);

impl From<StatusError> for Failure {
    fn from(error: StatusError) -> Failure {
        match error {
            StatusError::NotRunning(_) => {
                Failure::Environment(anyhow!("{error}: start `triplane store operate`, or use the path it was given"))
            }
            error => Failure::Environment(error.into()),
        }
    }
}

/// Runs the operator until Ctrl-C.
pub fn operate(args: &OperateArgs, output: &Output) -> Result<(), Failure> {
    let cluster = read_cluster(&args.cluster)?;
    let Some(operator) = cluster.operator().cloned() else {
        let path = args.cluster.display();
        return Err(Failure::Input(format!("{path} has no operator: add [operator] with an address to it")));
    };
    let keeper = FileKeeper::open(&args.layout, &cluster).map_err(OpenError::from)?;
    let socket = StatusSocket::open(&args.layout)?;
    let mut server = OperatorServer::open(&cluster, keeper, Some(socket))?;
    let kept = KeptAccess::default().writing(directory_of(&args.layout));
    privileges::restrict(&kept, args.show_privileges, output)?;
    let stop = signals::stop_on_signals()?;
    output.note(&format!(
        "operator of {} stores at {}, with the layout in {}; press Ctrl-C to stop",
        cluster.stores().count(),
        operator.address,
        args.layout.display()
    ));
    let mut report = |line: &HistoryLine| output.note(&timed(line));
    Ok(server.run(&stop, &mut report).context("cannot use the operator's socket")?)
}

/// Returns a line of the history with its time of day.
fn timed(line: &HistoryLine) -> String {
    let second = line.time_s % 86_400;
    format!("{:02}:{:02}:{:02}Z {}", second / 3600, second / 60 % 60, second % 60, line.text)
}

/// Sends a request to the operator, and returns the status after it.
fn ask(layout: &Path, request: &OperatorRequest) -> Result<OperatorStatus, Failure> {
    status_in(ask_operator(layout, request)?)
}

fn status_in(response: OperatorResponse) -> Result<OperatorStatus, Failure> {
    match response {
        OperatorResponse::Status(status) => Ok(status),
        OperatorResponse::Refused(reason) => Err(Failure::Input(reason)),
    }
}

/// Shows the status.
pub fn status(args: &StatusArgs, output: &Output) -> Result<(), Failure> {
    let status = ask(&args.layout, &OperatorRequest::Status)?;
    if args.json {
        let text = serde_json::to_string_pretty(&status).context("cannot print the status")?;
        return output.print(&format!("{text}\n"));
    }
    output.print(&table(&status))
}

/// Drains a store, or ends that.
pub fn drain(args: &DrainArgs, output: &Output) -> Result<(), Failure> {
    let store = args.name.clone();
    if args.cancel {
        ask(&args.layout, &OperatorRequest::Undrain { store })?;
        return output.print(&format!("store `{}` may join the chain again\n", args.name));
    }
    leave(&args.layout, &args.name, &OperatorRequest::Drain { store }, output)
}

/// Replaces a store.
pub fn replace(args: &ReplaceArgs, output: &Output) -> Result<(), Failure> {
    let request = OperatorRequest::Replace { store: args.name.clone(), with: args.with.clone() };
    leave(&args.layout, &args.name, &request, output)
}

/// Sends a request after which a store leaves the chain, and shows what happens until it has left.
fn leave(layout: &Path, name: &str, request: &OperatorRequest, output: &Output) -> Result<(), Failure> {
    let before = ask(layout, &OperatorRequest::Status)?;
    let mut shown = before.history.last().map_or(0, |line| line.number);
    let mut status = ask(layout, request)?;
    let mut changed = Instant::now();
    loop {
        for line in status.history.iter().filter(|line| line.number > shown) {
            output.note(&timed(line));
        }
        let last = status.history.last().map_or(shown, |line| line.number);
        if std::mem::replace(&mut shown, last) != last {
            changed = Instant::now();
        }
        let is_in = status.chain.members.iter().chain(&status.chain.learner).any(|member| member == name);
        if !is_in {
            let chain = status.chain.members.join(" -> ");
            return output.print(&format!("store `{name}` is not in the chain {chain}, and can be stopped\n"));
        }
        if changed.elapsed() > PATIENCE {
            output.note(waits_for(&status));
            changed = Instant::now();
        }
        status = status_in(next_status(layout)?)?;
    }
}

/// Returns the reason that a draining store is still in the chain.
fn waits_for(status: &OperatorStatus) -> &'static str {
    match (&status.chain.learner, status.chain.members.len()) {
        (Some(_), _) => "waiting until the new store has copied the rows; Ctrl-C ends this command only",
        (None, 1) => "it is the only store with the rows: waiting for another one; Ctrl-C ends this command only",
        (None, _) => "waiting until another store is known to have all rows; Ctrl-C ends this command only",
    }
}

/// Returns the status as text.
fn table(status: &OperatorStatus) -> String {
    let mut text = match status.epoch {
        0 => format!("no chain yet; it will have {} stores\n", status.wanted),
        epoch => {
            let (chain, wanted) = (status.chain.members.join(" -> "), status.wanted);
            format!("chain {chain}: {} of {wanted} stores, layout {epoch}\n", status.chain.members.len())
        }
    };
    let is_in = |store: &&StoreStatus| status.chain.members.contains(&store.name);
    if status.epoch > 0 && !status.stores.iter().filter(is_in).any(|store| store.is_active && store.answers) {
        text.push_str("no store of the chain answers and has all rows: nothing is served\n");
    }
    let header = ["store", "role", "answers", "rows", "pending", "life"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(header).chain(status.stores.iter().map(row)).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    text.push('\n');
    for [name, role, answers, counts @ ..] in &rows {
        let [rows, pending, life] = counts;
        let [a, b, c, d, e, f] = widths;
        _ = writeln!(text, "{name:a$}  {role:b$}  {answers:c$}  {rows:>d$}  {pending:>e$}  {life:>f$}");
    }
    if !status.history.is_empty() {
        text.push('\n');
        status.history.iter().rev().take(10).rev().for_each(|line| _ = writeln!(text, "{}", timed(line)));
    }
    text
}

fn row(store: &StoreStatus) -> [String; 6] {
    let role = match (store.role, store.copied_percent) {
        (StoreRole::Head, _) => "head".to_owned(),
        (StoreRole::Middle, _) => "middle".to_owned(),
        (StoreRole::Tail, _) => "tail".to_owned(),
        (StoreRole::Only, _) => "only".to_owned(),
        (StoreRole::Learner, Some(percent)) => format!("learner, {percent} %"),
        (StoreRole::Learner, None) => "learner".to_owned(),
        (StoreRole::Spare, _) => "spare".to_owned(),
    };
    let is_out = store.is_drained && store.role == StoreRole::Spare;
    let role = match (is_out, store.is_drained) {
        (true, _) => "drained".to_owned(),
        (false, true) => format!("{role}, draining"),
        (false, false) => role,
    };
    let answers = if store.answers { "yes" } else { "no" };
    let lives = store.lives.map_or_else(|| "-".to_owned(), |lives| lives.to_string());
    [store.name.clone(), role, answers.to_owned(), store.rows.to_string(), store.pending.to_string(), lives]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_a_table() {
        let store = |name: &str, role, answers, rows| StoreStatus {
            name: name.to_owned(),
            role,
            answers,
            is_drained: name == "b",
            is_active: answers,
            lives: answers.then_some(1),
            rows,
            log: 0,
            pending: 3,
            copied_percent: (role == StoreRole::Learner).then_some(40),
        };
        let status = OperatorStatus {
            epoch: 7,
            wanted: 2,
            chain: resilient_store::ChainStatus {
                members: vec!["a".to_owned(), "b".to_owned()],
                learner: Some("c".to_owned()),
            },
            stores: vec![
                store("a", StoreRole::Head, true, 1200),
                store("b", StoreRole::Tail, false, 9),
                store("c", StoreRole::Learner, true, 480),
            ],
            history: vec![HistoryLine { number: 1, time_s: 86_400 + 3_661, text: "it began".to_owned() }],
        };
        let expected = "\
chain a -> b: 2 of 2 stores, layout 7

store  role            answers  rows  pending  life
a      head            yes      1200        3     1
b      tail, draining  no          9        3     -
c      learner, 40 %   yes       480        3     1

01:01:01Z it began
";
        assert_eq!(table(&status), expected);
    }
}
