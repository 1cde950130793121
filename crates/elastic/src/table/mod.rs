//! The state machine of a table whose entries are in the memory of servers.
//!
//! ```text
//!   write ──> ledger, overlay ──> placement ──> operations ── Write ──┐
//!   lookup ──> cache, overlay ──> waiting list ──> routes ── Read ────┤ memory client ──> servers
//!      ▲                                                              │
//!      └── Answer <── overlay <── parse <──────────── completed ──────┘
//! ```
//!
//! The memory client is a requester of RDMA, or a model of one. The table relies on it for this:
//! - WRITEs to one server are executed in the order of their effects. READs may overtake them.
//! - A WRITE completes after it was executed. A READ may be executed in parts, at any time before it completes.
//! - After [`ElasticTable::failed`] or [`ElasticTable::server_down`], no earlier WRITE to that server is executed after
//!   [`ElasticTable::server_up`].
//!
//! The table needs no clock: the client has the timeouts, and the sketch ages with lookups.

mod answer;
mod change;
mod fill;
mod lookup;
mod operation;

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::admission::{CacheConfig, CacheCounts, CountMinSketch, PopularCache, SketchConfig};
use crate::cell::{CellForm, CellSecret};
use crate::keys::KeyForm;
use crate::layout::{LayoutKind, TableLayout};
use crate::ledger::EntryLedger;
use crate::lookups::{LookupCounts, LookupLimits, WaitingLookups};
use crate::mutant::{ElasticMutant, ElasticMutation};
use crate::overlay::{LookupNumbers, Overlay};
use crate::placement::{EntryId, PlacementMap, PlacementRule};
use crate::prefixes::PrefixSet;
use crate::record::RecordForm;
use crate::routes::{LinkMeter, MemoryServer, RouteFault, RouteMap, ServerId};
use crate::slots::SlotArena;
use answer::TicketKind;
use change::ChangeQueue;
pub use change::{EntryKey, WriteFault};
use fill::FillState;
pub use lookup::LookupStart;
use lookup::LookupState;
use operation::OperationSet;

/// A record: the index of the action and its parameters.
pub type RecordBytes = SmallVec<[u8; 32]>;

/// Identifies a READ or WRITE of a table. A token is not reused before 2^32 later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryToken(pub u64);

/// Result of a lookup for one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupOutcome {
    /// The key has this record.
    Hit(RecordBytes),
    /// The key has no entry: the default action runs.
    Miss,
    /// The packet is dropped, and counted.
    Dropped(ElasticDrop),
}

/// Reasons for which a lookup drops its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElasticDrop {
    /// Too many packets or lookups wait.
    Full,
    /// No server with this part of the table is up.
    NoServer,
    /// The links to all such servers are above their rates.
    LinkBusy,
    /// No server gave a valid answer.
    NoAnswer,
    /// The table was drained.
    Drained,
    /// The key has a wrong width.
    BadKey,
}

impl ElasticDrop {
    /// All reasons.
    pub const ALL: [ElasticDrop; 6] = [
        ElasticDrop::Full,
        ElasticDrop::NoServer,
        ElasticDrop::LinkBusy,
        ElasticDrop::NoAnswer,
        ElasticDrop::Drained,
        ElasticDrop::BadKey,
    ];
}

/// An effect of the table, to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableEffect<P> {
    /// Reads remote memory.
    Read {
        /// The server.
        server: ServerId,
        /// First address.
        address: u64,
        /// Size in bytes.
        bytes: u32,
        /// Token of the completion.
        token: MemoryToken,
    },
    /// Writes remote memory.
    Write {
        /// The server.
        server: ServerId,
        /// First address.
        address: u64,
        /// The bytes.
        data: Vec<u8>,
        /// Token of the completion.
        token: MemoryToken,
    },
    /// Closes the connection with a server, whose memory differed from what was written. The table does not use the
    /// server until [`ElasticTable::server_up`], for which another connection with other memory may be opened.
    Distrust {
        /// The server.
        server: ServerId,
    },
    /// Ends the lookup of a packet.
    Answer {
        /// The packet.
        packet: P,
        /// Its result.
        outcome: LookupOutcome,
    },
}

/// Bounds on the work in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Packets and lookups that wait.
    pub lookups: LookupLimits,
    /// Accepted changes that are not yet placed.
    pub changes: usize,
    /// Changes whose writes may be in progress at the same time.
    pub operations: usize,
    /// Entries without a cell.
    pub stash: usize,
    /// READs of one copy for a lookup that finds torn cells.
    pub rereads: u32,
    /// Blocks of one copy that are written at the same time.
    pub blocks: u32,
    /// Windows that are repaired before a copy is rewritten.
    pub repairs: u32,
    /// Times that a copy is rewritten before its server is given up.
    pub restarts: u32,
    /// Valid READs in a row of a copy after which its earlier damage is forgotten.
    pub valid_reads: u32,
}

impl Default for TableLimits {
    fn default() -> Self {
        TableLimits {
            lookups: LookupLimits::default(),
            changes: 65_536,
            operations: 256,
            stash: 65_536,
            rereads: 3,
            blocks: 8,
            repairs: 16,
            restarts: 3,
            valid_reads: 4096,
        }
    }
}

/// Configuration of a table.
#[derive(Clone, Debug)]
pub struct TableConfig {
    /// Number of the table in its switch.
    pub table: u32,
    /// Form of its keys.
    pub keys: KeyForm,
    /// Form of its records.
    pub records: RecordForm,
    /// Layout in remote memory.
    pub layout: LayoutKind,
    /// Rule of placement.
    pub rule: PlacementRule,
    /// Number of cells, about the entries divided by the load.
    pub cells: u32,
    /// Largest number of entries; prefixes count as their expansions.
    pub entries: u32,
    /// Number of copies of each cell, from 1 to 4.
    pub replicas: u32,
    /// First epoch of copies, larger than any before under the same secret.
    pub first_epoch: u64,
    /// The sketch of keys.
    pub sketch: SketchConfig,
    /// The cache.
    pub cache: CacheConfig,
    /// Bounds.
    pub limits: TableLimits,
    /// The mutant that is switched on, if any.
    pub mutation: ElasticMutation,
}

/// Numbers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Packets answered by the cache or the overlay.
    pub local: u64,
    /// READs, including repeated ones.
    pub reads: u64,
    /// READs repeated for a torn cell.
    pub rereads: u64,
    /// READs sent to another copy.
    pub retries: u64,
    /// Windows with invalid contents.
    pub invalid: u64,
    /// Windows that were rewritten.
    pub repairs: u64,
    /// Copies that were rewritten.
    pub restarts: u64,
    /// Servers that were given up because their memory differed from what was written.
    pub distrusted: u64,
    /// WRITEs of changes.
    pub writes: u64,
    /// WRITEs of blocks of new copies.
    pub blocks: u64,
    /// Packets dropped, by [`ElasticDrop::ALL`].
    pub dropped: [u64; 6],
}

/// A READ or WRITE under way.
#[derive(Clone, Debug)]
struct Ticket {
    server: ServerId,
    kind: TicketKind,
}

/// A table in remote memory. `P` is a packet that waits.
#[derive(Debug)]
pub struct ElasticTable<P> {
    config: TableConfig,
    secret: CellSecret,
    layout: TableLayout,
    ledger: EntryLedger,
    prefixes: PrefixSet,
    overlay: Overlay,
    placement: PlacementMap,
    routes: RouteMap,
    sketch: CountMinSketch,
    cache: PopularCache,
    lookups: WaitingLookups<P, LookupState>,
    numbers: LookupNumbers,
    changes: ChangeQueue,
    operations: OperationSet,
    fills: FillState,
    tickets: SlotArena<Ticket>,
    generation: u32,
    effects: VecDeque<TableEffect<P>>,
    /// Answers among the effects.
    answers: usize,
    counts: TableCounts,
}

impl<P> ElasticTable<P> {
    /// Creates an empty table without servers. `secret` is random and known to the switch only.
    pub fn new(config: TableConfig, secret: CellSecret) -> ElasticTable<P> {
        let form = CellForm::new(config.keys.probe_bytes(), config.records.record_bytes());
        let layout = TableLayout::new(config.layout, form, config.table, config.cells).mutated(config.mutation);
        let routes = RouteMap::new(layout.clone(), config.replicas, config.first_epoch);
        ElasticTable {
            ledger: EntryLedger::new(secret, form.key_bytes(), form.record_bytes()),
            prefixes: PrefixSet::new(config.keys.clone()).mutated(config.mutation),
            overlay: Overlay::mutated(config.mutation),
            placement: PlacementMap::new(layout.clone(), config.rule, secret.k0).mutated(config.mutation),
            routes: routes.mutated(config.mutation),
            sketch: CountMinSketch::new(config.sketch).mutated(config.mutation),
            cache: match config.keys {
                KeyForm::Exact { .. } => PopularCache::new(config.cache, secret.k1),
                KeyForm::Prefix { .. } => PopularCache::with_ranges(config.cache, secret.k1),
            },
            lookups: WaitingLookups::new(config.limits.lookups),
            numbers: LookupNumbers::default(),
            changes: ChangeQueue::default(),
            operations: OperationSet::default(),
            fills: FillState::default(),
            tickets: SlotArena::default(),
            generation: 0,
            effects: VecDeque::new(),
            answers: 0,
            counts: TableCounts::default(),
            config,
            secret,
            layout,
        }
    }

    /// Returns the layout.
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> TableCounts {
        self.counts
    }

    /// Returns the counts of waiting packets.
    pub fn lookup_counts(&self) -> LookupCounts {
        self.lookups.counts()
    }

    /// Returns the counts of the cache.
    pub fn cache_counts(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// Returns the entries in their cells.
    pub fn placement(&self) -> &PlacementMap {
        &self.placement
    }

    /// Returns the copies.
    pub fn routes(&self) -> &RouteMap {
        &self.routes
    }

    /// Returns the number of entries that have cells or are in the stash, where a prefix counts as its expansions.
    pub fn len(&self) -> usize {
        self.ledger.len()
    }

    /// Whether no entry has a cell or is in the stash.
    pub fn is_empty(&self) -> bool {
        self.ledger.is_empty()
    }

    /// Returns the prefixes as they were written. It is empty if the keys are exact.
    pub fn prefixes(&self) -> &PrefixSet {
        &self.prefixes
    }

    /// Returns the number of packets that wait.
    pub fn waiting(&self) -> usize {
        self.lookups.waiting()
    }

    /// Returns the number of entries and tombstones in the overlay, including the stash.
    pub fn overlay_len(&self) -> usize {
        self.overlay.len()
    }

    /// Returns the number of accepted changes whose writes have not begun.
    pub fn queued_changes(&self) -> usize {
        self.changes.len()
    }

    /// Whether a key is cached.
    pub fn is_cached(&self, key: &[u8]) -> bool {
        self.cache.get(key).is_some()
    }

    /// Returns the cell key of an entry of the placement.
    pub fn cell_key(&self, entry: EntryId) -> &[u8] {
        self.ledger.key(entry)
    }

    /// Whether every accepted change is in all copies, and every copy is complete.
    pub fn is_settled(&self) -> bool {
        self.changes.is_empty() && self.operations.is_empty() && self.fills.is_empty() && self.routes.is_planned_live()
    }

    /// Returns the next effect.
    pub fn next_event(&mut self) -> Option<TableEffect<P>> {
        let effect = self.effects.pop_front();
        self.answers -= usize::from(matches!(effect, Some(TableEffect::Answer { .. })));
        effect
    }

    /// Sets the servers that lend memory. New ones are used after [`ElasticTable::server_up`]. Copies move in the
    /// background; copies of servers that are left out serve meanwhile.
    ///
    /// # Errors
    /// If the table does not fit.
    pub fn set_servers(&mut self, servers: &[MemoryServer]) -> Result<(), RouteFault> {
        self.routes.set_servers(servers)?;
        self.update_fills();
        Ok(())
    }

    /// Takes a server into use, with memory of any contents. READs and WRITEs of an earlier connection count as lost.
    pub fn server_up(&mut self, server: ServerId, links: &mut dyn LinkMeter) {
        if self.routes.is_up(server) {
            return;
        }
        self.lose_tickets(server, links);
        self.routes.server_up(server);
        self.update_fills();
    }

    /// Gives up a server, for example because its port is down. Its unanswered lookups are sent to other copies.
    pub fn server_down(&mut self, server: ServerId, links: &mut dyn LinkMeter) {
        self.routes.server_down(server);
        self.update_fills();
        self.lose_tickets(server, links);
    }

    /// Gives up the READs and WRITEs under way to a server.
    fn lose_tickets(&mut self, server: ServerId, links: &mut dyn LinkMeter) {
        let of_server = self.tickets.iter().filter(|(_, ticket)| ticket.server == server);
        let lost: Vec<u64> = of_server.map(|(token, _)| token).collect();
        let lost: Vec<Ticket> = lost.into_iter().filter_map(|token| self.tickets.remove(token)).collect();
        for ticket in lost {
            self.lose(ticket, links);
        }
    }

    /// Works on accepted changes and on copies that fill, for at most about `budget` cells. Call it between batches of
    /// packets.
    pub fn work(&mut self, budget: u32) {
        self.plan_changes(budget);
        self.write_blocks();
    }

    /// Whether another call of [`ElasticTable::work`] would make progress at once.
    pub fn has_work(&self) -> bool {
        !self.changes.is_empty() && self.operations.len() < self.config.limits.operations
    }

    /// Ends all lookups: their packets are answered with [`ElasticDrop::Drained`].
    pub fn drain(&mut self) {
        for id in self.lookups.ids() {
            if self.config.mutation.is(ElasticMutant::DrainForgets) {
                self.lookups.finish(id);
                continue;
            }
            self.end_lookup(id, LookupOutcome::Dropped(ElasticDrop::Drained));
        }
    }

    fn ticket(&mut self, server: ServerId, kind: TicketKind) -> MemoryToken {
        MemoryToken(self.tickets.add(Ticket { server, kind }))
    }

    fn drop_reason(&mut self, reason: ElasticDrop) -> LookupOutcome {
        self.counts.dropped[reason as usize] += 1;
        LookupOutcome::Dropped(reason)
    }
}
