//! Answers users of a switch about its rows, and gives rows back on their request, on a Unix domain socket.

use std::os::fd::RawFd;
use std::path::Path;

use local_socket::{LocalSocket, Peer, SocketError, ask, ask_again};
use resilient::RowProgress;
use resilient_switch::{ListedRow, MoveProgress, ResilientSwitch, RowCursor, RowQuery};
use runtime::{Hook, HookContext};
use serde::{Deserialize, Serialize};
use switch::{RowSwitch, Time};

/// Maximum number of rows in an answer.
const MAX_LISTED: usize = 500;

/// Maximum time for which a switch can be away, in milliseconds.
pub const MAX_AWAY_MS: u64 = 3_600_000;

/// Minimum interval between two polls of connections and moves: between most batches, the socket costs no system call.
const INTERVAL_NS: u64 = 1_000_000;

/// A request to a switch: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum RowsRequest {
    /// Asks for rows.
    Rows {
        /// The group; all groups if omitted.
        group: Option<String>,
        /// The key as it is shown, or its beginning and `*`; all keys if empty.
        key: String,
        /// The position of the first row: a group and a place in it.
        from: (u32, u64),
        /// Maximum number of rows.
        most: usize,
    },
    /// Gives rows back.
    Move {
        /// The group; all groups if omitted.
        group: Option<String>,
        /// Time for which packets do not ask for such rows, in milliseconds.
        away_ms: Option<u64>,
    },
    /// Asks for the progress of the last move.
    Progress,
}

/// The answer of a switch: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowsResponse {
    /// Some rows.
    Rows(ListedRows),
    /// The progress of the last move.
    Move(MoveStatus),
    /// The reason for which the request was refused.
    Refused(String),
}

/// Some rows of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRows {
    /// The rows.
    pub rows: Vec<RowStatus>,
    /// The position after the last row that was visited, if there are more.
    pub next: Option<(u32, u64)>,
    /// Number of rows granted to the switch, owned or shared, of all groups.
    pub granted: u64,
    /// Number of rows that it asks for, including pages of snapshots.
    pub asked: u64,
    /// Number of rows that it gives back, or has lost with writes under way, including pages of snapshots.
    pub releasing: u64,
}

/// A row of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowStatus {
    /// The group.
    pub group: String,
    /// The elements of the key: an index, or the fields of the tables.
    pub key: Vec<NamedValue>,
    /// The newest values, if the row has any.
    pub values: Vec<NamedValue>,
    /// `owned`, `asked` or `releasing`.
    pub state: String,
    /// Whether writes are not acknowledged.
    pub is_pending: bool,
    /// The epoch of the grant; 0 without one.
    pub epoch: u64,
    /// Time since the grant, or since the last acknowledgement after it, in milliseconds.
    pub acknowledged_ms: Option<u64>,
}

/// A value with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedValue {
    /// The name in the program.
    pub name: String,
    /// The value in hexadecimal.
    pub value: String,
    /// The value in its usual notation.
    pub shown: String,
}

/// The progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveStatus {
    /// Rows that were given back.
    pub moved: u64,
    /// Rows that are being given back.
    pub under_way: u64,
    /// Rows of the groups that are still granted to the switch.
    pub granted: u64,
    /// Whether the move is complete.
    pub is_done: bool,
    /// Remaining time for which packets do not ask for such rows, in milliseconds.
    pub away_ms: u64,
}

/// The switch, as errors name it.
const SWITCH: Peer = Peer { name: "switch", described: "a switch with resilient state" };

/// Returns the error about a switch whose answer is not that to the request.
pub fn malformed(path: &Path) -> SocketError {
    SocketError::Malformed { path: path.to_owned(), peer: SWITCH }
}

/// The socket of a switch.
#[derive(Debug)]
pub struct RowsSocket {
    socket: LocalSocket,
    /// Time before which nothing is done.
    next: Time,
    is_busy: bool,
}

impl RowsSocket {
    /// Listens at a path.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn open(path: &Path) -> Result<RowsSocket, SocketError> {
        Ok(RowsSocket { socket: LocalSocket::open(path)?, next: Time::ZERO, is_busy: false })
    }
}

/// Sends a request to a switch, and returns its answer.
///
/// # Errors
/// If no switch listens, or it does not answer.
pub fn ask_switch(path: &Path, request: &RowsRequest) -> Result<RowsResponse, SocketError> {
    ask(path, request, SWITCH)
}

/// Waits for an interval, and asks a switch for the progress of its move.
///
/// # Errors
/// As [`ask_switch`].
pub fn next_progress(path: &Path) -> Result<RowsResponse, SocketError> {
    ask_again(path, &RowsRequest::Progress, SWITCH)
}

impl<S: RowSwitch> Hook<ResilientSwitch<S>> for RowsSocket {
    fn poll(&mut self, context: &mut HookContext<'_, ResilientSwitch<S>>) {
        let (now, switch) = (context.now, &mut *context.switch);
        if now < self.next {
            return;
        }
        self.next = now.after_ns(INTERVAL_NS);
        self.socket.serve(|request| request.map_or_else(RowsResponse::Refused, |request| answer(switch, now, request)));
        let is_moving = switch.move_progress(now).is_some_and(|progress| !progress.is_done);
        if is_moving {
            switch.continue_move(now, context.output);
        }
        self.is_busy = is_moving || self.socket.is_connected();
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.fd())
    }

    fn next_deadline(&self) -> Option<Time> {
        self.is_busy.then_some(self.next)
    }
}

/// Answers a request.
fn answer<S: RowSwitch>(switch: &mut ResilientSwitch<S>, now: Time, request: RowsRequest) -> RowsResponse {
    let group = match &request {
        RowsRequest::Rows { group, .. } | RowsRequest::Move { group, .. } => group.as_deref(),
        RowsRequest::Progress => None,
    };
    let group = match group.map(|name| group_named(switch, name)).transpose() {
        Ok(group) => group,
        Err(reason) => return RowsResponse::Refused(reason),
    };
    match request {
        RowsRequest::Rows { key, from, most, .. } => {
            let from = RowCursor { group: from.0, index: from.1 };
            RowsResponse::Rows(listed_rows(switch, now, &RowQuery { group, key, from, most: most.min(MAX_LISTED) }))
        }
        RowsRequest::Move { away_ms, .. } => {
            if away_ms.is_some_and(|away_ms| away_ms > MAX_AWAY_MS) {
                return RowsResponse::Refused(format!("a switch is away for at most {} s", MAX_AWAY_MS / 1000));
            }
            switch.start_move(now, group, away_ms.map(|away_ms| away_ms * 1_000_000));
            progress(switch.move_progress(now))
        }
        RowsRequest::Progress => progress(switch.move_progress(now)),
    }
}

fn group_named<S: RowSwitch>(switch: &ResilientSwitch<S>, name: &str) -> Result<u32, String> {
    let place = switch.group_names().position(|group| group == name);
    place.map(|place| place as u32).ok_or_else(|| {
        let all: Vec<String> = switch.group_names().map(|group| format!("\"{group}\"")).collect();
        format!("the program has no resilient group \"{name}\": it has {}", all.join(", "))
    })
}

fn progress(progress: Option<MoveProgress>) -> RowsResponse {
    match progress {
        None => RowsResponse::Refused("no rows were moved since the switch started".to_owned()),
        Some(MoveProgress { moved, under_way, granted, is_done, away_ns }) => RowsResponse::Move(MoveStatus {
            moved,
            under_way: under_way as u64,
            granted,
            is_done,
            away_ms: away_ns.div_ceil(1_000_000),
        }),
    }
}

fn listed_rows<S: RowSwitch>(switch: &ResilientSwitch<S>, now: Time, query: &RowQuery) -> ListedRows {
    let listing = switch.list_rows(now, query);
    let counts = switch.counts(now);
    ListedRows {
        rows: listing.rows.into_iter().map(row_status).collect(),
        next: listing.next.map(|next| (next.group, next.index)),
        granted: counts.groups.iter().map(|(_, rows)| rows).sum(),
        asked: counts.replica.asked as u64,
        releasing: counts.replica.releasing as u64,
    }
}

fn row_status(row: ListedRow) -> RowStatus {
    let ListedRow { group, key, values, epoch, progress, is_pending, acknowledged_ns } = row;
    let named = |values: Vec<switch::trace::TracedValue>| {
        values.into_iter().map(|it| NamedValue { name: it.name, value: it.value, shown: it.shown }).collect()
    };
    let state = match progress {
        RowProgress::Owned => "owned",
        RowProgress::Shared => "shared",
        RowProgress::Asked => "asked",
        RowProgress::Releasing => "releasing",
    };
    let acknowledged_ms = acknowledged_ns.map(|ns| ns / 1_000_000);
    let (key, values, state) = (named(key), named(values), state.to_owned());
    RowStatus { group, key, values, state, is_pending, epoch, acknowledged_ms }
}
