//! Runs `triplane store operate`, and the commands of users to the operator.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::privileges::{KeptAccess, directory_of};
use anyhow::{Context, anyhow};
use local_socket::SocketError;
use resilient_store::{
    ChainStatus, Cluster, ClusterMember, FileKeeper, GroupRows, HistoryLine, LayoutKeeper, OpenError, OperatorRequest,
    OperatorResponse, OperatorServer, OperatorStatus, StatusError, StatusSocket, StoreRole, StoreStatus, ask_operator,
    next_status, random_number,
};

use super::args::{DrainArgs, OperateArgs, OperatorArgs, ReplaceArgs, StatusArgs};
#[cfg(feature = "etcd")]
use super::etcd;
use super::{read_cluster, unknown};
use crate::load::{Loader, ProgramArgs};
use crate::output::{Failure, Output, aligned, grouped, socket_failure};
use crate::{privileges, signals};

/// Time without a change after which a command reports the reason of its wait.
const PATIENCE: Duration = Duration::from_secs(5);

fn failed(error: SocketError) -> Failure {
    socket_failure(error, "start `triplane store operate`, or use the file it was given")
}

impl From<StatusError> for Failure {
    fn from(error: StatusError) -> Failure {
        match error {
            StatusError::InUse(_) => Failure::Environment(anyhow!("{error}: give this one another path with --socket")),
            StatusError::Socket(error) => error.into(),
        }
    }
}

/// Runs the operator until Ctrl-C or SIGTERM, and calls `ready` once it serves.
pub fn operate(
    args: &OperateArgs,
    output: &Output,
    ready: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cluster = read_cluster(&args.cluster)?;
    let member = member(args, &cluster)?;
    #[cfg(feature = "etcd")]
    if args.layout.is_none() {
        return operate_with_etcd(args, &cluster, member, output, ready);
    }
    let layout = args.layout.as_ref().expect("a layout file is required without --etcd");
    if cluster.operators().count() > 1 {
        let path = args.cluster.display();
        let message = format!("{path} has several operators, which cannot share a layout file: pass --etcd to each");
        return Err(Failure::Input(message));
    }
    let keeper = FileKeeper::open(layout, &cluster).map_err(OpenError::from)?;
    let place = layout.display().to_string();
    let socket = args.socket.clone().unwrap_or_else(|| StatusSocket::beside(layout));
    let kept = KeptAccess::default().writing(directory_of(layout));
    OperatorStart { args, cluster: &cluster, member, place, socket, kept, output }.run(keeper, ready)
}

/// Runs an operator whose layout is in etcd.
#[cfg(feature = "etcd")]
fn operate_with_etcd(
    args: &OperateArgs,
    cluster: &Cluster,
    member: &ClusterMember,
    output: &Output,
    ready: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (keeper, kept) = etcd::keeper(&args.etcd, cluster)?;
    let place = format!("the key {} of etcd", keeper.key());
    let socket = args.socket.clone().unwrap_or_else(|| StatusSocket::beside(&args.cluster));
    OperatorStart { args, cluster, member, place, socket, kept, output }.run(keeper, ready)
}

/// Returns the operator that the arguments name, or the only one.
fn member<'c>(args: &OperateArgs, cluster: &'c Cluster) -> Result<&'c ClusterMember, Failure> {
    let path = args.cluster.display();
    let mut operators = cluster.operators();
    match (&args.operator, operators.next(), operators.next()) {
        (_, None, _) => {
            let section = if args.layout.is_some() { "[operator]" } else { "[operators.NAME]" };
            Err(Failure::Input(format!("{path} has no operator: add {section} with an address to it")))
        }
        (Some(name), ..) => cluster
            .operators()
            .find(|member| member.name == *name)
            .ok_or_else(|| unknown(&args.cluster, "operator", name, cluster.operators())),
        (None, Some(only), None) => Ok(only),
        (None, ..) => {
            let names: Vec<&str> = cluster.operators().map(|member| member.name.as_str()).collect();
            let names = names.join(", ");
            Err(Failure::Usage(format!("{path} has several operators: pass --operator with one of {names}")))
        }
    }
}

/// An operator that is about to start.
struct OperatorStart<'a> {
    args: &'a OperateArgs,
    cluster: &'a Cluster,
    member: &'a ClusterMember,
    /// The place of the layout, in words.
    place: String,
    socket: PathBuf,
    /// Access that the keeper needs.
    kept: KeptAccess,
    output: &'a Output,
}

impl OperatorStart<'_> {
    fn run(
        self,
        keeper: impl LayoutKeeper + Send + 'static,
        ready: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let OperatorStart { args, cluster, member, place, socket, kept, output } = self;
        let status = StatusSocket::open(&socket)?;
        let udp = OperatorServer::bind(member)?;
        // The socket's file is removed at the end.
        privileges::restrict(&kept.writing(directory_of(&socket)), args.show_privileges, output)?;
        let server = OperatorServer::new(cluster.clone(), member.peer, keeper, udp, Some(status), random_number());
        let mut server = server.map_err(OpenError::from)?;
        let stop = signals::stop_on_signals()?;
        output.note(&format!(
            "{} of {} stores at {}, with the layout in {place}; press Ctrl-C to stop",
            if args.operator.is_some() { format!("operator `{}`", member.name) } else { "operator".to_owned() },
            cluster.stores().count(),
            member.address,
        ));
        ready()?;
        let mut report = |line: &HistoryLine| output.note(&timed(line));
        Ok(server.run(&stop, &mut report).context("cannot use the operator's socket")?)
    }
}

/// Returns a line of the history with its time of day.
fn timed(line: &HistoryLine) -> String {
    let second = line.time_s % 86_400;
    format!("{:02}:{:02}:{:02}Z {}", second / 3600, second / 60 % 60, second % 60, line.text)
}

impl OperatorArgs {
    /// Returns the operator's socket.
    fn path(&self) -> PathBuf {
        let file = self.layout.as_ref().or(self.cluster.as_ref());
        self.socket.clone().unwrap_or_else(|| StatusSocket::beside(file.expect("one of them is required")))
    }
}

/// Sends a request to the operator, and returns the status after it.
pub fn ask(socket: &Path, request: &OperatorRequest) -> Result<OperatorStatus, Failure> {
    status_in(ask_operator(socket, request).map_err(failed)?)
}

fn status_in(response: OperatorResponse) -> Result<OperatorStatus, Failure> {
    match response {
        OperatorResponse::Status(status) => Ok(status),
        OperatorResponse::Refused(reason) => Err(Failure::Input(reason)),
    }
}

/// Shows the status.
pub fn status(args: &StatusArgs, output: &Output) -> Result<(), Failure> {
    let status = ask(&args.operator.path(), &OperatorRequest::Status)?;
    if args.json {
        let text = serde_json::to_string_pretty(&status).context("cannot print the status")?;
        return output.print(&format!("{text}\n"));
    }
    let names = args.program.as_deref().map(|path| group_names(path, output)).transpose()?.unwrap_or_default();
    output.print(&format!("{}{}", table(&status), groups(&status, &names)))
}

/// Returns the groups of a program by their numbers.
fn group_names(path: &Path, output: &Output) -> Result<BTreeMap<u64, String>, Failure> {
    let args = ProgramArgs { program: path.to_owned(), include: vec![], define: vec![], allow: vec![] };
    let program = Loader::open(&args)?.program(output)?;
    Ok(resilient_switch::group_numbers(&program).into_iter().collect())
}

/// Returns the rows of each group, as text: those of all shards at one store, which is a member of all chains if there
/// is such a store.
fn groups(status: &OperatorStatus, names: &BTreeMap<u64, String>) -> String {
    let heads = status.chains.iter().filter_map(|chain| chain.members.first());
    let heads = heads.filter_map(|head| status.stores.iter().find(|store| store.name == *head));
    let chains = |store: &&StoreStatus| store.roles.iter().filter(|role| role.is_member()).count();
    let head = heads.rev().max_by_key(chains);
    let mut text = String::new();
    for GroupRows { group, rows, range } in head.into_iter().flat_map(|store| &store.groups) {
        if text.is_empty() {
            text.push_str("\ngroup\n");
        }
        let name = names.get(group).map_or_else(|| format!("{group:016x}"), |name| format!("\"{name}\""));
        let what = if *rows == 1 { "row" } else { "rows" };
        let rows = grouped(*rows);
        _ = match range {
            Some((first, last)) => {
                let all = grouped(last.saturating_sub(*first).saturating_add(1));
                writeln!(text, "{name}  {rows} of {all} numbers are taken ({first}-{last})")
            }
            None => writeln!(text, "{name}  {rows} {what} with values"),
        };
    }
    text
}

/// Drains a store, or ends a drain.
pub fn drain(args: &DrainArgs, output: &Output) -> Result<(), Failure> {
    let store = args.name.clone();
    if args.cancel {
        settle(&args.operator.path(), &OperatorRequest::Undrain { store }, output, |_| true)?;
        return output.print(&format!("store `{}` may join the chain again\n", args.name));
    }
    leave(&args.operator.path(), &args.name, &OperatorRequest::Drain { store }, output)
}

/// Replaces a store.
pub fn replace(args: &ReplaceArgs, output: &Output) -> Result<(), Failure> {
    let request = OperatorRequest::Replace { store: args.name.clone(), with: args.with.clone() };
    leave(&args.operator.path(), &args.name, &request, output)
}

/// Sends a request after which a store leaves the chain, and shows the progress until it has left.
fn leave(socket: &Path, name: &str, request: &OperatorRequest, output: &Output) -> Result<(), Failure> {
    let status = settle(socket, request, output, |status| !status.is_in_a_chain(name))?;
    let chain = match &status.chains[..] {
        [chain] => format!("not in the chain {}", chain.members.join(" -> ")),
        _ => "in no chain".to_owned(),
    };
    output.print(&format!("store `{name}` is {chain}, and can be stopped\n"))
}

/// Sends a request, and shows the progress until its changes are made and the status is as requested.
fn settle(
    socket: &Path,
    request: &OperatorRequest,
    output: &Output,
    is_wanted: impl Fn(&OperatorStatus) -> bool,
) -> Result<OperatorStatus, Failure> {
    let before = ask(socket, &OperatorRequest::Status)?;
    let mut shown = before.history.last().map_or(0, |line| line.number);
    let mut status = ask(socket, request)?;
    let mut changed = Instant::now();
    loop {
        for line in status.history.iter().filter(|line| line.number > shown) {
            output.note(&timed(line));
        }
        let last = status.history.last().map_or(shown, |line| line.number);
        if std::mem::replace(&mut shown, last) != last {
            changed = Instant::now();
        }
        if is_wanted(&status) && !status.is_changing {
            return Ok(status);
        }
        if changed.elapsed() > PATIENCE {
            output.note(&waits_for(&status));
            changed = Instant::now();
        }
        status = status_in(next_status(socket).map_err(failed)?)?;
    }
}

/// Returns the reason for which a draining store is still in the chain.
fn waits_for(status: &OperatorStatus) -> String {
    if let Some(blocked_reason) = &status.blocked_reason {
        return format!("waiting until the layout can be changed ({blocked_reason}); Ctrl-C ends this command only");
    }
    let reason = if status.chains.iter().any(|chain| chain.learner.is_some()) {
        "waiting until the new store has copied the rows; Ctrl-C ends this command only"
    } else if status.chains.iter().any(|chain| chain.members.len() == 1) {
        "it is the only store with the rows: waiting for another one; Ctrl-C ends this command only"
    } else {
        "waiting until another store is known to have all rows; Ctrl-C ends this command only"
    };
    reason.to_owned()
}

/// Returns the status as text.
fn table(status: &OperatorStatus) -> String {
    let mut text = match status.epoch {
        0 => format!("no chain yet; it will have {} stores\n", status.wanted),
        _ => (0..).zip(&status.chains).map(|(shard, chain)| chain_line(status, shard, chain)).collect(),
    };
    if let Some(blocked_reason) = &status.blocked_reason {
        _ = writeln!(text, "the layout cannot be changed: {blocked_reason}");
    }
    let header = ["store", "role", "answers", "rows", "pending", "life"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(header).chain(status.stores.iter().map(row)).collect();
    text.push('\n');
    text.push_str(&aligned(&rows, &[3, 4, 5]));
    if !status.history.is_empty() {
        text.push('\n');
        status.history.iter().rev().take(10).rev().for_each(|line| _ = writeln!(text, "{}", timed(line)));
    }
    text
}

/// Returns the chain of a shard as a line, and whether it serves.
fn chain_line(status: &OperatorStatus, shard: usize, chain: &ChainStatus) -> String {
    let (members, wanted, epoch) = (chain.members.join(" -> "), status.wanted, status.epoch);
    let name = if status.chains.len() > 1 { format!("shard {shard}: ") } else { String::new() };
    let mut text = format!("{name}chain {members}: {} of {wanted} stores, layout {epoch}\n", chain.members.len());
    let is_in = |store: &&StoreStatus| chain.members.contains(&store.name);
    if !status.stores.iter().filter(is_in).any(|store| store.is_active && store.answers) {
        _ = writeln!(text, "{name}no store of the chain answers and has all rows: nothing is served");
    }
    text
}

/// Returns the role of a store in words.
pub fn role(store: &StoreStatus) -> String {
    let roles = roles_text(&store.roles, store.copied_percent);
    let is_spare = store.roles.iter().all(|role| *role == StoreRole::Spare);
    match (is_spare, store.is_drained) {
        (true, true) => "drained".to_owned(),
        (true, false) => "spare".to_owned(),
        (false, true) => format!("{roles}, draining"),
        (false, false) => roles,
    }
}

/// Returns the roles of a store for all shards in words: `head`, or `head 0,3; tail 1,2` if they differ.
pub fn roles_text(roles: &[StoreRole], copied_percent: Option<u8>) -> String {
    let mut shards: BTreeMap<StoreRole, Vec<String>> = BTreeMap::new();
    for (shard, role) in roles.iter().enumerate() {
        shards.entry(*role).or_default().push(shard.to_string());
    }
    let text = |(role, shards): (&StoreRole, &Vec<String>)| {
        let shards = if shards.len() == roles.len() { String::new() } else { format!(" {}", shards.join(",")) };
        match (role, copied_percent) {
            (StoreRole::Head, _) => format!("head{shards}"),
            (StoreRole::Middle, _) => format!("middle{shards}"),
            (StoreRole::Tail, _) => format!("tail{shards}"),
            (StoreRole::Only, _) => format!("only{shards}"),
            (StoreRole::Learner, Some(percent)) => format!("learner{shards}, {percent} %"),
            (StoreRole::Learner, None) => format!("learner{shards}"),
            (StoreRole::Spare, _) => format!("spare{shards}"),
        }
    };
    shards.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn row(store: &StoreStatus) -> [String; 6] {
    let role = role(store);
    let answers = if store.answers { "yes" } else { "no" };
    let lives = store.lives.map_or_else(|| "-".to_owned(), |lives| lives.to_string());
    [store.name.clone(), role, answers.to_owned(), store.rows.to_string(), store.pending.to_string(), lives]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_name_their_shards_if_they_differ() {
        let shown = |roles: &[StoreRole], is_drained| {
            role(&StoreStatus {
                name: "a".to_owned(),
                roles: roles.to_vec(),
                answers: true,
                is_drained,
                is_active: true,
                lives: Some(1),
                rows: 0,
                log: 0,
                pending: 0,
                copied_percent: roles.contains(&StoreRole::Learner).then_some(40),
                groups: vec![],
            })
        };
        use StoreRole::{Head, Learner, Spare, Tail};
        assert_eq!(shown(&[Head, Tail, Head], false), "head 0,2; tail 1");
        assert_eq!(shown(&[Head, Head], true), "head, draining");
        assert_eq!(shown(&[Learner, Tail], false), "tail 1; learner 0, 40 %");
        assert_eq!(shown(&[Spare, Spare], true), "drained");
        assert_eq!(shown(&[], false), "spare");
    }

    #[test]
    fn the_status_is_a_table() {
        let store = |name: &str, role, answers, rows| StoreStatus {
            name: name.to_owned(),
            roles: vec![role],
            answers,
            is_drained: name == "b",
            is_active: answers,
            lives: answers.then_some(1),
            rows,
            log: 0,
            pending: 3,
            groups: vec![
                GroupRows { group: 7, rows: 1200, range: None },
                GroupRows { group: 8, rows: 50, range: Some((1, 100)) },
            ],
            copied_percent: (role == StoreRole::Learner).then_some(40),
        };
        let status = OperatorStatus {
            epoch: 7,
            wanted: 2,
            chains: vec![ChainStatus { members: vec!["a".to_owned(), "b".to_owned()], learner: Some("c".to_owned()) }],
            stores: vec![
                store("a", StoreRole::Head, true, 1200),
                store("b", StoreRole::Tail, false, 9),
                store("c", StoreRole::Learner, true, 480),
            ],
            is_changing: true,
            blocked_reason: Some("etcd is away".to_owned()),
            history: vec![HistoryLine { number: 1, time_s: 86_400 + 3_661, text: "it began".to_owned() }],
        };
        let expected = "\
chain a -> b: 2 of 2 stores, layout 7
the layout cannot be changed: etcd is away

store  role            answers  rows  pending  life
a      head            yes      1200        3     1
b      tail, draining  no          9        3     -
c      learner, 40 %   yes       480        3     1

01:01:01Z it began
";
        assert_eq!(table(&status), expected);
        let names = BTreeMap::from([(7, "keys".to_owned())]);
        let expected = "\ngroup\n\"keys\"  1,200 rows with values\n\
                        0000000000000008  50 of 100 numbers are taken (1-100)\n";
        assert_eq!(groups(&status, &names), expected);
    }
}
