//! Maps parts of a table to servers: copies, replicas, and the plan by which they change.
//!
//! A *copy* is an arc of the circle of homes in the memory of one server, with an epoch of its own. It is *filling*
//! while it is written from the ledger, then *live*; only live copies are read, and all copies are written. A copy
//! whose server failed is gone: when the server returns, its memory may lack writes, so a copy with a new epoch is
//! filled. The old contents of the memory are then invalid.
//!
//! When the set of servers changes, each server keeps the part of its copies that it is to hold in the new division,
//! and fills the rest. Once every new copy is live, the old ones shrink. So each home has a live copy at each moment,
//! unless all its servers fail.

mod memory;
mod plan;

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::layout::{CellArc, TableLayout};
use crate::mutant::{ElasticMutant, ElasticMutation};
use memory::MemoryMap;
pub use plan::{TargetArc, target_arcs};

/// Identifies a server that lends memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

/// Memory that a server lends to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryServer {
    /// The server.
    pub id: ServerId,
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Identifies a copy. Numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(pub u64);

/// A part of the table in the memory of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCopy {
    /// Its number.
    pub id: CopyId,
    /// The server.
    pub server: ServerId,
    /// Number of the replica to which it belongs.
    pub replica: u32,
    /// The homes that it serves.
    pub arc: CellArc,
    /// Address of its first byte.
    pub base: u64,
    /// Epoch that the checks of its cells cover.
    pub epoch: u64,
    /// Whether it is complete, so that it may be read.
    pub is_live: bool,
    /// The homes that it serves once all copies of the current plan are live.
    kept: Option<CellArc>,
}

/// A place to read the window of a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRoute {
    /// The copy.
    pub copy: CopyId,
    /// Its server.
    pub server: ServerId,
    /// Address of the window.
    pub address: u64,
    /// Epoch of the copy.
    pub epoch: u64,
}

/// A place to write a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRoute {
    /// The copy.
    pub copy: CopyId,
    /// Its server.
    pub server: ServerId,
    /// Address of the cell.
    pub address: u64,
    /// Epoch of the copy.
    pub epoch: u64,
}

/// Reasons for which a lookup cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteRefusal {
    /// No live copy serves the home.
    NoServer,
    /// The links to all live copies are above their rates.
    LinkBusy,
}

/// Reasons for which a set of servers is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteFault {
    /// The server's share takes more memory than it lends.
    TooSmall {
        /// The server.
        server: ServerId,
        /// Bytes of its share.
        needed: u64,
        /// Bytes that it lends.
        available: u64,
    },
    /// A server is listed twice.
    Duplicate(ServerId),
}

impl std::fmt::Display for RouteFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RouteFault::TooSmall { server, needed, available } => write!(
                f,
                "memory server {} lends {available} bytes, and its share of the table takes {needed}: lend more, or \
                 add servers",
                server.0
            ),
            RouteFault::Duplicate(server) => write!(f, "memory server {} is listed twice", server.0),
        }
    }
}

/// Rates of links, such as the meters of RFC 2698 that the switch has for its ports.
pub trait LinkMeter {
    /// Whether a READ of this number of bytes would exceed the rate of the server's link (the colour red). Counts the
    /// bytes if it would not.
    fn is_busy(&mut self, server: ServerId, bytes: u32) -> bool;

    /// Remembers the counts, for [`LinkMeter::restore`].
    fn save(&mut self) {}

    /// Returns to the counts that were saved last: the READs since then are not made.
    fn restore(&mut self) {}
}

/// Links without rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnmeteredLinks;

impl LinkMeter for UnmeteredLinks {
    fn is_busy(&mut self, _server: ServerId, _bytes: u32) -> bool {
        false
    }
}

#[derive(Debug)]
struct RouteServer {
    lent: MemoryServer,
    memory: MemoryMap,
    is_up: bool,
    targets: Vec<TargetArc>,
}

/// The copies of a table.
#[derive(Debug)]
pub struct RouteMap {
    layout: TableLayout,
    replicas: u32,
    servers: BTreeMap<ServerId, RouteServer>,
    copies: BTreeMap<CopyId, TableCopy>,
    /// Live copies by the first cell from which they serve, ascending; the part after the last begins at 0.
    ranges: Vec<(u32, SmallVec<[CopyId; 2]>)>,
    /// Copies that lost their server, for a mutant.
    stale: Vec<TableCopy>,
    next_copy: u64,
    next_epoch: u64,
    mutation: ElasticMutation,
}

impl RouteMap {
    /// Creates a map without servers. `first_epoch` is larger than any epoch under the same secret before.
    pub fn new(layout: TableLayout, replicas: u32, first_epoch: u64) -> RouteMap {
        RouteMap {
            layout,
            replicas,
            servers: BTreeMap::new(),
            copies: BTreeMap::new(),
            ranges: Vec::new(),
            stale: Vec::new(),
            next_copy: 0,
            next_epoch: first_epoch,
            mutation: ElasticMutation::default(),
        }
    }

    pub(crate) fn mutated(mut self, mutation: ElasticMutation) -> RouteMap {
        self.mutation = mutation;
        self
    }

    /// Returns the copies.
    pub fn copies(&self) -> impl Iterator<Item = &TableCopy> {
        self.copies.values()
    }

    /// Returns a copy that still exists.
    pub fn copy(&self, id: CopyId) -> Option<&TableCopy> {
        self.copies.get(&id)
    }

    /// Returns the number of range rules: parts of the circle with different live copies.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Whether a server is up.
    pub fn is_up(&self, server: ServerId) -> bool {
        self.servers.get(&server).is_some_and(|server| server.is_up)
    }

    /// Whether each home that a live copy of a server serves has another live copy on a server for which `is_reachable`
    /// holds.
    pub fn can_spare(&self, server: ServerId, is_reachable: &dyn Fn(ServerId) -> bool) -> bool {
        self.ranges.iter().all(|(_, holders)| {
            let mut holders = holders.iter().map(|id| self.copies[id].server);
            let is_held = holders.clone().any(|holder| holder == server);
            !is_held || holders.any(|holder| holder != server && is_reachable(holder))
        })
    }

    /// Sets the servers. New ones count as down until [`RouteMap::server_up`]; those that are left out serve until the
    /// others have taken over. A server that remains keeps the memory that it lent at first.
    ///
    /// # Errors
    /// If a share does not fit, or a server is listed twice. Nothing changes then.
    pub fn set_servers(&mut self, servers: &[MemoryServer]) -> Result<(), RouteFault> {
        for (at, server) in servers.iter().enumerate() {
            if servers[..at].iter().any(|other| other.id == server.id) {
                return Err(RouteFault::Duplicate(server.id));
            }
        }
        let targets = target_arcs(&self.layout, self.replicas, servers)?;
        self.servers.values_mut().for_each(|server| server.targets.clear());
        for lent in servers {
            let new = || RouteServer {
                lent: *lent,
                memory: MemoryMap::new(lent.base, lent.bytes),
                is_up: false,
                targets: Vec::new(),
            };
            self.servers.entry(lent.id).or_insert_with(new);
        }
        for target in targets {
            self.servers.get_mut(&target.server).expect("it was added").targets.push(target);
        }
        self.plan();
        Ok(())
    }

    /// Makes a server usable, with memory of any contents. Its copies begin to fill.
    pub fn server_up(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id).filter(|server| !server.is_up) else { return };
        server.is_up = true;
        if self.mutation.is(ElasticMutant::StaleCopyReturns) {
            let returned = self.stale.extract_if(.., |copy| copy.server == id);
            self.copies.extend(returned.map(|copy| (copy.id, copy)));
        }
        self.plan();
    }

    /// Gives up a server and its copies. Returns the copies.
    pub fn server_down(&mut self, id: ServerId) -> Vec<CopyId> {
        let Some(server) = self.servers.get_mut(&id) else { return Vec::new() };
        server.is_up = false;
        server.memory = MemoryMap::new(server.lent.base, server.lent.bytes);
        let lost: Vec<TableCopy> = self.copies.extract_if(.., |_, copy| copy.server == id).map(|lost| lost.1).collect();
        let ids = lost.iter().map(|copy| copy.id).collect();
        if self.mutation.is(ElasticMutant::StaleCopyReturns) {
            self.stale.extend(lost.into_iter().filter(|copy| copy.is_live));
        }
        self.index();
        ids
    }

    /// Restarts a copy with another epoch, because its memory differs from what was written.
    pub fn restart(&mut self, id: CopyId) {
        let epoch = self.next_epoch;
        if let Some(copy) = self.copies.get_mut(&id) {
            copy.is_live = false;
            copy.epoch = epoch;
            self.next_epoch += 1;
        }
        self.index();
    }

    /// Marks a copy as complete. Once all copies of the plan are, the old ones shrink.
    pub fn set_live(&mut self, id: CopyId) {
        if let Some(copy) = self.copies.get_mut(&id) {
            copy.is_live = true;
        }
        self.settle();
    }

    /// Chooses the part of each copy that is kept, and adds the missing copies.
    fn plan(&mut self) {
        let mut missing: Vec<TargetArc> = Vec::new();
        self.copies.values_mut().for_each(|copy| copy.kept = None);
        let up = self.servers.values().filter(|server| server.is_up);
        let targets: Vec<TargetArc> = up.flat_map(|server| server.targets.iter().copied()).collect();
        for target in targets {
            let mut open = vec![target.arc];
            let own = self.copies.values_mut().filter(|copy| copy.server == target.server && copy.kept.is_none());
            for copy in own {
                let Some(at) = open.iter().position(|arc| overlap(&self.layout, copy.arc, *arc).is_some()) else {
                    continue;
                };
                let kept = overlap(&self.layout, copy.arc, open[at]).expect("they overlap");
                let arc = open.swap_remove(at);
                (copy.kept, copy.replica) = (Some(kept), target.replica);
                open.extend(rest(&self.layout, arc, kept));
            }
            missing.extend(open.into_iter().map(|arc| TargetArc { arc, ..target }));
        }
        for target in missing {
            // Restarting a server adds all its copies.
            let covered = |copy: &TableCopy| copy.server == target.server && covers(&self.layout, copy, target.arc);
            if !self.copies.values().any(covered) {
                self.add(target);
            }
        }
        self.settle();
    }

    /// Adds a copy. If its server lacks memory, the server's old copies shrink now, though others do not yet serve
    /// their homes; if its memory is in pieces, all its copies restart.
    fn add(&mut self, target: TargetArc) {
        let bytes = self.layout.copy_bytes(target.arc.cells);
        let allocate =
            |map: &mut RouteMap| map.servers.get_mut(&target.server).and_then(|server| server.memory.allocate(bytes));
        let base = allocate(self).or_else(|| {
            let own = self.copies.values().filter(|copy| copy.server == target.server);
            let ids: Vec<CopyId> = own.map(|copy| copy.id).collect();
            ids.into_iter().for_each(|id| self.shrink(id));
            allocate(self)
        });
        let Some(base) = base else { return self.start_anew(target.server) };
        self.add_at(target, base);
    }

    /// Replaces all copies of a server by new ones, without gaps.
    fn start_anew(&mut self, id: ServerId) {
        self.copies.retain(|_, copy| copy.server != id);
        let server = self.servers.get_mut(&id).expect("a target has a server");
        server.memory = MemoryMap::new(server.lent.base, server.lent.bytes);
        for target in server.targets.clone() {
            let bytes = self.layout.copy_bytes(target.arc.cells);
            let server = self.servers.get_mut(&id).expect("a target has a server");
            if let Some(base) = server.memory.allocate(bytes) {
                self.add_at(target, base);
            }
        }
    }

    fn add_at(&mut self, target: TargetArc, base: u64) {
        let id = CopyId(self.next_copy);
        let copy = TableCopy {
            id,
            server: target.server,
            replica: target.replica,
            arc: target.arc,
            base,
            epoch: self.next_epoch,
            is_live: false,
            kept: Some(target.arc),
        };
        self.next_copy += 1;
        self.next_epoch += 1;
        self.copies.insert(id, copy);
    }

    /// Shrinks the copies to what the plan keeps, if the plan is complete.
    fn settle(&mut self) {
        let is_complete = self.is_planned_live();
        if is_complete {
            let ids: Vec<CopyId> = self.copies.keys().copied().collect();
            ids.into_iter().for_each(|id| self.shrink(id));
            self.servers.retain(|_, server| !server.targets.is_empty());
        }
        self.index();
    }

    /// Returns the bytes that the plan assigns to a server; 0 for one that is left out.
    pub fn planned_bytes(&self, server: ServerId) -> u64 {
        let targets = self.servers.get(&server).into_iter().flat_map(|server| &server.targets);
        targets.map(|target| self.layout.copy_bytes(target.arc.cells)).sum()
    }

    /// Whether each home that the plan assigns has a live copy on its server.
    pub fn is_planned_live(&self) -> bool {
        let planned: u64 =
            self.servers.values().flat_map(|server| &server.targets).map(|target| u64::from(target.arc.cells)).sum();
        let live = self.copies.values().filter(|copy| copy.is_live).filter_map(|copy| copy.kept);
        planned > 0 && live.map(|arc| u64::from(arc.cells)).sum::<u64>() == planned
    }

    fn shrink(&mut self, id: CopyId) {
        let copy = self.copies.get_mut(&id).expect("it is listed");
        let memory = &mut self.servers.get_mut(&copy.server).expect("a copy has a server").memory;
        let (base, end) = (copy.base, copy.base + self.layout.copy_bytes(copy.arc.cells));
        let Some(kept) = copy.kept else {
            memory.release(base, end - base);
            self.copies.remove(&id);
            return;
        };
        let start = base + self.layout.read_offset(copy.arc, kept.start);
        memory.release(base, start - base);
        let kept_end = start + self.layout.copy_bytes(kept.cells);
        memory.release(kept_end, end - kept_end);
        if !copy.is_live && copy.arc != kept {
            // The blocks of a shrunk copy differ.
            copy.epoch = self.next_epoch;
            self.next_epoch += 1;
        }
        (copy.arc, copy.base) = (kept, start);
    }

    /// Computes the range rules.
    fn index(&mut self) {
        let live = || self.copies.values().filter(|copy| copy.is_live);
        let mut starts: Vec<u32> =
            live().flat_map(|copy| [copy.arc.start, self.layout.wrap(copy.arc.start, copy.arc.cells)]).collect();
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let holders = |start: u32| {
            let mut holders: SmallVec<[CopyId; 2]> =
                live().filter(|copy| self.layout.serves(copy.arc, start)).map(|copy| copy.id).collect();
            holders.sort_by_key(|id| (self.copies[id].replica, *id));
            holders
        };
        self.ranges = starts.into_iter().map(|start| (start, holders(start))).collect();
    }

    /// Chooses a live copy for a READ, none of `tried`: the first whose link is not busy.
    ///
    /// # Errors
    /// If there is none.
    pub fn route(&self, home: u32, tried: &[CopyId], links: &mut dyn LinkMeter) -> Result<ReadRoute, RouteRefusal> {
        let at = self.ranges.partition_point(|(start, _)| *start <= home);
        let holders = at.checked_sub(1).map_or(&[][..], |at| &self.ranges[at].1);
        let mut refusal = RouteRefusal::NoServer;
        for copy in holders.iter().filter(|id| !tried.contains(id)).map(|id| &self.copies[id]) {
            if links.is_busy(copy.server, self.layout.read_bytes()) {
                refusal = RouteRefusal::LinkBusy;
                continue;
            }
            let address = copy.base + self.layout.read_offset(copy.arc, home);
            return Ok(ReadRoute { copy: copy.id, server: copy.server, address, epoch: copy.epoch });
        }
        Err(refusal)
    }

    /// Returns the places of a cell in all copies.
    pub fn writes(&self, cell: u32) -> SmallVec<[WriteRoute; 4]> {
        let mut routes = SmallVec::new();
        for copy in self.copies.values() {
            for offset in self.layout.cell_offsets(copy.arc, cell) {
                if self.mutation.is(ElasticMutant::RepeatsForgotten) && self.layout.is_repeat(copy.arc, offset) {
                    continue;
                }
                let address = copy.base + offset;
                routes.push(WriteRoute { copy: copy.id, server: copy.server, address, epoch: copy.epoch });
            }
        }
        routes
    }
}

/// Whether the part of a copy that is kept covers the arc.
fn covers(layout: &TableLayout, copy: &TableCopy, arc: CellArc) -> bool {
    let ahead = |kept: CellArc| layout.distance(kept.start, arc.start);
    copy.kept.is_some_and(|kept| ahead(kept) < kept.cells && ahead(kept) + arc.cells <= kept.cells)
}

/// Returns the larger part of `a` that is in `b`.
fn overlap(layout: &TableLayout, a: CellArc, b: CellArc) -> Option<CellArc> {
    let part = |start: u32, first: CellArc, second: CellArc| {
        if !layout.serves(first, start) || !layout.serves(second, start) {
            return None;
        }
        let left = |arc: CellArc| arc.cells - layout.distance(arc.start, start);
        Some(CellArc { start, cells: left(first).min(left(second)) })
    };
    let parts = [part(a.start, a, b), part(b.start, a, b)];
    parts.into_iter().flatten().max_by_key(|arc| arc.cells)
}

/// Returns the rest of `arc` without `part`, which is within it.
fn rest(layout: &TableLayout, arc: CellArc, part: CellArc) -> impl Iterator<Item = CellArc> + use<> {
    let before = layout.distance(arc.start, part.start);
    let after = arc.cells - before - part.cells;
    let first = CellArc { start: arc.start, cells: before };
    let second = CellArc { start: layout.wrap(part.start, part.cells), cells: after };
    [first, second].into_iter().filter(|arc| arc.cells > 0)
}
