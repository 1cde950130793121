//! The wrapper: what happens around each step of the switch inside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use elastic::admission::CacheCounts;
use elastic::cell::CellSecret;
use elastic::lookups::LookupCounts;
use elastic::table::TableCounts;
use elastic::{ElasticDrop, ElasticTable, EntryKey, LookupOutcome, LookupStart, MemoryToken, TableEffect};
use engine::{Objects, RowState, StateRow};
use rdma::{NumberSource, SessionEvent};
use switch::{AwaitedRow, DropReason, Egress, Frame, FrameMut, PortId, RowSwitch, Time};

use crate::config::{ElasticConfig, ElasticError, MAX_REPLICAS, table_config};
use crate::entry_form::EntryForm;
use crate::membership::{MAX_SERVERS, Membership};
use crate::read_rate::ReadMeters;
use crate::servers::ServerSessions;

/// Cells that a step visits to place changes of a table: a few hundred changes.
const WORK_BUDGET: u32 = 1 << 12;

/// Maximum number of rounds of a step. What is left is done in the next one.
const MAX_ROUNDS: usize = 256;

/// Number of resident entries that are examined after each answer.
const SWEEP_PER_ANSWER: usize = 2;

/// A time that is never reached.
const NEVER: Time = Time::from_ns(u64::MAX);

/// The state of a table in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticCounts {
    /// Name of the table.
    pub table: String,
    /// Number of entries that the controller wrote.
    pub entries: usize,
    /// Number of those that stay in the switch: prefixes that would take too many cells.
    pub kept: usize,
    /// Number of changes whose writes have not begun.
    pub queued_changes: usize,
    /// READs, WRITEs and drops.
    pub table_counts: TableCounts,
    /// Lookups, and packets that joined them. The wrapper asks once for all packets of a key.
    pub lookups: LookupCounts,
    /// The cache.
    pub cache: CacheCounts,
    /// Whether every change is in all copies.
    pub is_settled: bool,
}

/// A table in the memory of servers.
pub(crate) struct RemoteTable {
    pub form: EntryForm,
    /// Its group among the rows of the switch inside.
    group: u32,
    pub table: ElasticTable<StateRow>,
    /// Keys whose answers have not come, by the indices of their rows.
    asked: Vec<bool>,
}

/// A key whose packets run next, or were dropped.
#[derive(Clone, Copy, Debug)]
struct AnsweredRow {
    row: StateRow,
    /// Whether the row has an answer, and packets run with it.
    has_answer: bool,
}

impl RemoteTable {
    /// Notes that a key was asked for. Returns whether its answer had not been awaited.
    fn ask(&mut self, row: StateRow) -> bool {
        let index = row.index as usize;
        if self.asked.len() <= index {
            self.asked.resize(index + 1, false);
        }
        !std::mem::replace(&mut self.asked[index], true)
    }
}

/// A switch with tables in the memory of servers.
pub struct ElasticSwitch<S> {
    pub(crate) inner: S,
    pub(crate) tables: Vec<RemoteTable>,
    pub(crate) servers: ServerSessions,
    pub(crate) membership: Membership,
    random: Box<dyn NumberSource + Send>,
    /// Entries in the tables inside, in the order in which they are looked at.
    residents: BTreeSet<StateRow>,
    sweep: VecDeque<StateRow>,
    /// Entries whose packets wait for further ones, with the number of these.
    awaited_keys: BTreeMap<StateRow, usize>,
    /// For each awaited key, the entries that are kept for its packets.
    kept_for: BTreeMap<StateRow, BTreeSet<StateRow>>,
    /// Answers whose packets have not run.
    answered: Vec<AnsweredRow>,
    /// Memory for the rows that packets began to wait for.
    awaited: Vec<AwaitedRow>,
    /// The next deadline; before it, only answers, waiting packets and changes of ledgers need work.
    quiet_until: Time,
}

impl<S: RowSwitch> ElasticSwitch<S> {
    /// Wraps a switch whose program has elastic tables. Their existing entries move to the servers. `secret`
    /// authenticates memory; it is random and known to nobody else. Numbers that others see are drawn from `random`,
    /// a cryptographic generator.
    ///
    /// # Errors
    /// If the program has no such tables, or the configuration does not fit.
    pub fn new(
        mut inner: S,
        config: &ElasticConfig,
        secret: [u64; 2],
        random: Box<dyn NumberSource + Send>,
    ) -> Result<ElasticSwitch<S>, ElasticError> {
        let program = std::sync::Arc::clone(inner.program());
        let forms = EntryForm::all(&program);
        if forms.is_empty() {
            return Err(ElasticError::NoTable);
        }
        let count = config.servers.len();
        if !(1..=MAX_SERVERS).contains(&count) {
            return Err(ElasticError::Servers(count));
        }
        if !(1..=MAX_REPLICAS).contains(&config.replicas) {
            return Err(ElasticError::Replicas(config.replicas));
        }
        forms.iter().try_for_each(|form| check_entries(form, inner.objects()))?;
        let secret = CellSecret { k0: secret[0], k1: secret[1] };
        inner.own_rows(config.max_parked);
        inner.objects_mut().hash_rows(secret.key_hash(b"rows"));
        let mut servers = ServerSessions::new(config.own, ReadMeters::new(config.read_rate, config.mtu));
        let membership = Membership::new(config, &forms, &mut servers);
        let mut tables = Vec::new();
        for (number, form) in forms.into_iter().enumerate() {
            let mut table = ElasticTable::new(table_config(&form, config), secret);
            table.set_servers(&membership.lent(number)).expect("each server lends what its share takes");
            let group = inner.objects().elastic_group(form.settings.table).expect("its rows are under ownership");
            tables.push(RemoteTable { form, group, table, asked: Vec::new() });
        }
        Ok(ElasticSwitch {
            inner,
            tables,
            servers,
            membership,
            random,
            residents: BTreeSet::new(),
            sweep: VecDeque::new(),
            awaited_keys: BTreeMap::new(),
            kept_for: BTreeMap::new(),
            answered: Vec::new(),
            awaited: Vec::new(),
            quiet_until: Time::ZERO,
        })
    }

    /// Gives the servers up, and returns the switch inside. Packets that wait are dropped and counted.
    pub fn into_inner(mut self) -> S {
        self.inner.drop_all_parked(DropReason::TableWaitEnded);
        self.inner
    }

    /// Returns the state of each table in numbers.
    pub fn counts(&self) -> Vec<ElasticCounts> {
        let counts = |remote: &RemoteTable| ElasticCounts {
            table: remote.form.name.clone(),
            entries: remote.form.settings.prefix.as_ref().map_or(remote.table.len(), |_| remote.table.prefixes().len()),
            kept: remote.table.prefixes().kept(),
            queued_changes: remote.table.queued_changes(),
            table_counts: remote.table.counts(),
            lookups: remote.table.lookup_counts(),
            cache: remote.table.cache_counts(),
            is_settled: remote.table.is_settled(),
        };
        self.tables.iter().map(counts).collect()
    }

    /// Returns the number of entries in the tables inside.
    pub fn residents(&self) -> usize {
        self.residents.len()
    }

    /// Takes a frame of a memory server, and counts it. Returns whether it is one.
    #[inline]
    pub(crate) fn take(&mut self, now: Time, port: PortId, frame: &[u8]) -> bool {
        let is_taken = self.servers.take(now, port, frame);
        if is_taken {
            self.inner.count_received(port, frame.len());
        }
        is_taken
    }

    /// Begins a step.
    #[inline]
    pub(crate) fn begin_step(&mut self, now: Time, output: &mut Vec<Frame>) {
        if now >= self.quiet_until || self.servers.is_sample_due(now) || self.inner.objects().has_ledger_changes() {
            self.advance(now, output);
        }
    }

    /// Ends a step of the switch inside. `has_answers` says that servers sent frames.
    #[inline]
    pub(crate) fn end_step(&mut self, now: Time, has_answers: bool, output: &mut Vec<Frame>) {
        if has_answers || self.inner.has_waiting() {
            self.advance(now, output);
        }
    }

    /// Processes packets of the program in place.
    #[inline]
    pub(crate) fn step_packets<F: FrameMut>(
        &mut self,
        now: Time,
        port: PortId,
        batch: &mut [F],
        output: &mut Vec<Egress>,
    ) {
        let mut made = Vec::new();
        self.begin_step(now, &mut made);
        self.inner.step_in_place(now, port, batch, output);
        self.end_step(now, false, &mut made);
        output.extend(made.into_iter().map(Egress::Owned));
    }

    /// Makes the next step do what can be done.
    pub(crate) fn wake(&mut self) {
        self.quiet_until = Time::ZERO;
    }

    /// Returns the time at which there is something to do.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let is_due = self.inner.objects().has_ledger_changes() || self.quiet_until == Time::ZERO;
        if is_due { Some(Time::ZERO) } else { self.servers.next_deadline() }
    }

    /// Does everything that can be done now.
    fn advance(&mut self, now: Time, output: &mut Vec<Frame>) {
        let (ports, registry) = (self.inner.ports(), self.inner.registry());
        self.servers.update_ports(
            now,
            |port| ports.is_up(port),
            |server, is_reachable| {
                self.tables.iter().all(|remote| remote.table.routes().can_spare(server, is_reachable))
            },
        );
        self.servers.tick(now, &mut *self.random);
        self.servers.meters().advance(now, |port| ports.bytes(registry, port));
        // Connections that ended are known before anything is looked up.
        self.take_completions(now);
        self.take_changes();
        let mut budget = WORK_BUDGET;
        for _ in 0..MAX_ROUNDS {
            self.take_awaited(now, output);
            // Further rounds write blocks of new copies only: packets do not wait for a large batch of changes.
            self.tables.iter_mut().for_each(|remote| remote.table.work(budget));
            budget = 0;
            let mut has_acted = self.take_completions(now);
            has_acted |= self.perform_effects(now, output);
            let before = output.len();
            has_acted |= self.advance_servers(output);
            // Frames that may be sent now may fail at once.
            self.servers.transmit(now, output);
            for frame in &output[before..] {
                self.inner.count_sent(frame.port, frame.data.len());
                self.servers.meters().count_sent(frame.port, frame.data.len());
            }
            // A copy that is complete now may replace that of a server behind a port that is down.
            has_acted |= self.servers.is_one_unspared() && self.update_ports(now);
            if !has_acted && !self.inner.has_waiting() {
                let has_work = self.tables.iter().any(|remote| remote.table.has_work());
                self.quiet_until = if has_work { Time::ZERO } else { self.servers.next_deadline().unwrap_or(NEVER) };
                return;
            }
        }
        self.quiet_until = Time::ZERO;
    }

    /// Notes which ports to servers are up. Returns whether a server was given up.
    fn update_ports(&mut self, now: Time) -> bool {
        let ports = self.inner.ports();
        self.servers.update_ports(
            now,
            |port| ports.is_up(port),
            |server, is_reachable| {
                self.tables.iter().all(|remote| remote.table.routes().can_spare(server, is_reachable))
            },
        )
    }

    /// Gives the changes of the control plane to the tables.
    fn take_changes(&mut self) {
        for change in self.inner.objects_mut().take_ledger_changes() {
            let remote = self.tables.iter_mut().find(|remote| remote.form.settings.table == change.table);
            let remote = remote.expect("each table with a ledger is remote");
            let key = EntryKey { bytes: &change.key, prefix_length: change.prefix_length };
            let result = match &change.call {
                None => remote.table.delete(key),
                Some(call) => {
                    let record = remote.form.record(call);
                    if remote.table.record(key).is_some() {
                        remote.table.modify(key, &record)
                    } else {
                        remote.table.insert(key, &record)
                    }
                }
            };
            // The ledger has checked everything, and the limits of the table are those of the ledger.
            result.unwrap_or_else(|fault| panic!("a change of the ledger was refused: {fault:?}"));
        }
    }

    /// Looks up the keys for which packets began to wait, and runs those that are answered at once.
    fn take_awaited(&mut self, now: Time, output: &mut Vec<Frame>) {
        let mut awaited = std::mem::take(&mut self.awaited);
        self.inner.swap_awaited(&mut awaited);
        awaited.iter().for_each(|awaited| self.look_up(now, awaited.row));
        self.awaited = awaited;
        self.run_answered(now, output);
    }

    /// Looks up a key for which packets wait.
    fn look_up(&mut self, now: Time, row: StateRow) {
        // The packets may have run meanwhile.
        if self.inner.parked(row) == 0 {
            return;
        }
        let Some(number) = self.tables.iter().position(|remote| remote.group == row.group) else { return };
        let Some(key) = self.inner.objects().row_key(row) else { return };
        let remote = &mut self.tables[number];
        if !remote.ask(row) {
            return;
        }
        match remote.table.lookup(key, row, self.servers.meters()) {
            LookupStart::Waiting => {}
            LookupStart::Answered { packet, outcome } => self.answer(now, number, packet, &outcome),
        }
    }

    /// Passes completions and connection changes to the tables. Returns whether there were any.
    fn take_completions(&mut self, now: Time) -> bool {
        let mut has_acted = false;
        let (sessions, meters) = self.servers.parts();
        for (server, session) in sessions {
            while let Some(event) = session.next_event(now) {
                has_acted = true;
                let (SessionEvent::Up(slot) | SessionEvent::Down(slot) | SessionEvent::Completed(slot, _)) = event;
                let table = &mut self.tables[slot as usize].table;
                match event {
                    SessionEvent::Up(_) => table.server_up(server, meters),
                    SessionEvent::Down(_) => table.server_down(server, meters),
                    SessionEvent::Completed(_, token) => {
                        table.completed(MemoryToken(token), session.answer(), meters);
                    }
                }
            }
        }
        has_acted
    }

    /// Performs the effects of the tables. Returns whether there were any.
    fn perform_effects(&mut self, now: Time, output: &mut Vec<Frame>) -> bool {
        let mut has_acted = false;
        for number in 0..self.tables.len() {
            let slot = number as u32;
            while let Some(effect) = self.tables[number].table.next_event() {
                has_acted = true;
                match effect {
                    // A table has given up the READs and WRITEs of a session that has ended.
                    TableEffect::Read { server, address, bytes, token } => {
                        if let Some(of_server) = self.servers.get_mut(server) {
                            of_server.reads += 1;
                            of_server.session.read(slot, token.0, address, bytes);
                        }
                    }
                    TableEffect::Write { server, address, data, token } => {
                        if let Some(of_server) = self.servers.get_mut(server) {
                            of_server.session.write(slot, token.0, address, data);
                        }
                    }
                    TableEffect::Distrust { server } => {
                        if let Some(of_server) = self.servers.get_mut(server) {
                            of_server.session.give_up(now, slot);
                        }
                    }
                    TableEffect::Answer { packet, outcome } => self.answer(now, number, packet, &outcome),
                }
            }
        }
        self.run_answered(now, output);
        has_acted
    }

    /// Lets the packets that wait for a key run next, or drops them.
    fn answer(&mut self, now: Time, number: usize, row: StateRow, outcome: &LookupOutcome) {
        let remote = &mut self.tables[number];
        if let Some(asked) = remote.asked.get_mut(row.index as usize) {
            *asked = false;
        }
        let objects = self.inner.objects_mut();
        let reason = match outcome {
            LookupOutcome::Hit(record) => {
                objects.advance_clock(now.as_ns());
                let has_answer = remote.form.call(record).is_some_and(|call| objects.set_row_answer(row, Some(call)));
                (!has_answer).then_some(DropReason::NoMemoryAnswer)
            }
            LookupOutcome::Miss => {
                objects.set_row_answer(row, None);
                None
            }
            LookupOutcome::Dropped(reason) => Some(drop_reason(*reason)),
        };
        match reason {
            None => self.inner.resume(row),
            Some(reason) => self.inner.drop_parked(row, reason),
        }
        self.answered.push(AnsweredRow { row, has_answer: reason.is_none() });
    }

    /// Runs the packets whose answers have come, together, and then those whose further keys are answered at once.
    fn run_answered(&mut self, now: Time, output: &mut Vec<Frame>) {
        while !self.answered.is_empty() {
            let (mut answered, mut awaited) = (std::mem::take(&mut self.answered), std::mem::take(&mut self.awaited));
            self.inner.step(now, &mut Vec::new(), output);
            self.inner.swap_awaited(&mut awaited);
            // Packets that were dropped, and those in queues, wait for nothing.
            awaited.sort_by_key(|awaited| awaited.after);
            for AnsweredRow { row, has_answer } in answered.drain(..) {
                let first = awaited.partition_point(|awaited| awaited.after < Some(row));
                let number = awaited[first..].partition_point(|awaited| awaited.after == Some(row));
                self.settle(row, has_answer, &awaited[first..first + number]);
                if !has_answer {
                    self.forget_unless_awaited(row);
                }
                self.sweep();
            }
            self.answered = answered;
            awaited.iter().for_each(|awaited| self.look_up(now, awaited.row));
            self.awaited = awaited;
        }
    }

    /// Ends the wait for a key. The answers that were kept for it, and its own if there is one, are kept as long as
    /// their packets wait for other keys.
    fn settle(&mut self, row: StateRow, has_answer: bool, awaited: &[AwaitedRow]) {
        if awaited.is_empty() && self.kept_for.is_empty() {
            // No packet waits for two keys.
            if has_answer {
                self.retain(row);
            }
            return;
        }
        let mut held = self.kept_for.remove(&row).unwrap_or_default();
        if has_answer && held.insert(row) {
            *self.awaited_keys.entry(row).or_default() += 1;
        }
        for other in awaited.iter().map(|awaited| awaited.row).filter(|other| *other != row) {
            let kept_for = self.kept_for.entry(other).or_default();
            for entry in held.iter().filter(|entry| kept_for.insert(**entry)) {
                *self.awaited_keys.entry(*entry).or_default() += 1;
            }
        }
        for entry in held {
            if let Some(count) = self.awaited_keys.get_mut(&entry) {
                *count -= 1;
                if *count == 0 {
                    self.awaited_keys.remove(&entry);
                }
            }
            self.retain(entry);
        }
    }

    /// Retains an answer if it is needed, else removes it. The entries of popular keys move to the tables inside.
    fn retain(&mut self, row: StateRow) {
        let is_cached = self.is_cached(row);
        if is_cached {
            self.inner.objects_mut().keep_answer(row);
        }
        if is_cached || self.awaited_keys.contains_key(&row) {
            if self.residents.insert(row) {
                self.sweep.push_back(row);
            }
            return;
        }
        self.residents.remove(&row);
        self.forget_unless_awaited(row);
    }

    fn forget_unless_awaited(&mut self, row: StateRow) {
        if self.inner.parked(row) == 0 {
            self.inner.objects_mut().forget_row(row);
        }
    }

    /// Examines some entries of the tables inside, and removes those that are no longer popular.
    fn sweep(&mut self) {
        for _ in 0..SWEEP_PER_ANSWER {
            let Some(row) = self.sweep.pop_front() else { return };
            if self.residents.remove(&row) {
                self.retain(row);
            }
        }
    }

    /// Whether the switch has the entry of a key, and the key is popular.
    fn is_cached(&self, row: StateRow) -> bool {
        let objects = self.inner.objects();
        let Some(key) = objects.row_key(row).filter(|_| objects.row_state(row) == RowState::Shared) else {
            return false;
        };
        self.tables.iter().any(|remote| remote.group == row.group && remote.table.is_cached(key))
    }
}

/// Checks that the entries of a table fit.
fn check_entries(form: &EntryForm, objects: &Objects) -> Result<(), ElasticError> {
    let entries = objects.entries(form.settings.table);
    form.check_cells(entries.map(|installed| form.cell_count(&installed.entry.keys)).sum())
}

fn drop_reason(reason: ElasticDrop) -> DropReason {
    match reason {
        ElasticDrop::Full => DropReason::TableQueueFull,
        ElasticDrop::NoServer => DropReason::NoMemoryServer,
        ElasticDrop::LinkBusy => DropReason::MemoryLinksBusy,
        ElasticDrop::NoAnswer | ElasticDrop::BadKey => DropReason::NoMemoryAnswer,
        ElasticDrop::Drained => DropReason::TableWaitEnded,
    }
}
