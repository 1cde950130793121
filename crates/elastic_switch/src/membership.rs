//! Memory servers that join and leave a running switch.
//!
//! ```text
//!   add, remove ──> next ── all have lent memory ──> current ── all copies are filled ──> serves alone
//!                   (asks)                           (fills)  └── meanwhile `old` serves, then gives its memory back
//! ```
//!
//! A *division* is a set of servers, each with a loan: memory for its share of all tables. Each change of the set makes
//! another division with new loans, also at servers that remain. So a server needs memory for two shares during a
//! change, and none of the old copies has to be moved or dropped before the new ones are complete. A change during
//! another one begins at the last complete division, so that copies which are of no use any more take neither memory
//! nor WRITEs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use elastic::routes::{MemoryServer, ServerId, target_arcs};
use ir::Program;
use rdma::setup::ConnectRefusal;
use rdma::{MemorySessionConfig, RequesterCounts};
use switch::{Frame, PortId, RowSwitch};

use crate::config::ElasticConfig;
use crate::entry_form::EntryForm;
use crate::servers::{MemoryServerPort, ServerSessions, SwitchAddress};
use crate::wrapper::{ElasticSwitch, RemoteTable};

/// Maximum number of servers.
pub const MAX_SERVERS: usize = 64;

/// The reason that a server cannot be added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// It is in use, or joins.
    #[error("{0} is a memory server of this switch already")]
    Present(Ipv4Addr),
    /// It is not in use.
    #[error("{0} is not a memory server of this switch, or leaves already")]
    Unknown(Ipv4Addr),
    /// The switch would have no server.
    #[error("{0} is the only memory server: add another one first, which then takes over its entries")]
    Last(Ipv4Addr),
    /// No such port, or that of the CPU.
    #[error("the switch has no port {0} to a server")]
    Port(PortId),
    /// There are too many.
    #[error("there are {MAX_SERVERS} memory servers, which is the maximum")]
    TooMany,
}

/// Membership of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Its share is being filled, or it has not lent the memory yet. Others answer.
    Joining,
    /// It has had its share, and answers.
    Serving,
    /// It serves until others have its part.
    Leaving,
}

/// The state of a server in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCounts {
    /// Its address.
    pub address: Ipv4Addr,
    /// The port that leads to it.
    pub port: u32,
    /// Its membership.
    pub state: ServerState,
    /// Number of open connections: one for each table, and twice as many while servers join or leave.
    pub connections: usize,
    /// Entries in its complete copies, estimated from the sizes of its parts.
    pub entries: u64,
    /// Bytes of its copies that are written.
    pub held_bytes: u64,
    /// Bytes of its share that are still to be written.
    pub missing_bytes: u64,
    /// READs of tables.
    pub reads: u64,
    /// Packets of READs and WRITEs.
    pub requests: RequesterCounts,
    /// The reason for which it refused memory, if it has not lent any since.
    pub refusal: Option<ConnectRefusal>,
}

/// A server with the number under which the tables know its loan.
#[derive(Clone, Copy, Debug)]
struct ServerLoan {
    id: ServerId,
    place: MemoryServerPort,
    /// Number of the division among those that are in use at a time.
    division: u32,
}

/// A set of servers that divide the tables among them.
#[derive(Debug)]
struct Division {
    loans: Vec<ServerLoan>,
    /// Bytes of each loan by table.
    sizes: Vec<u64>,
    /// Whether all copies have been live at the same time since they were first needed.
    was_complete: bool,
}

impl Division {
    fn places(&self) -> impl Iterator<Item = MemoryServerPort> {
        self.loans.iter().map(|loan| loan.place)
    }

    fn has(&self, address: Ipv4Addr) -> bool {
        self.loans.iter().any(|loan| loan.place.address == address)
    }

    /// Whether its servers are these, in any order.
    fn is_of(&self, places: &[MemoryServerPort]) -> bool {
        places.len() == self.loans.len() && places.iter().all(|place| self.places().any(|own| own == *place))
    }
}

/// The servers of a switch.
#[derive(Debug)]
pub(crate) struct Membership {
    session: MemorySessionConfig,
    replicas: u32,
    /// The division that the tables fill, or have filled.
    current: Division,
    /// The division whose servers are asked for memory.
    next: Option<Division>,
    /// Earlier divisions, which serve until the current one is complete.
    old: Vec<Division>,
    /// The servers in use that have been part of a complete division.
    joined: BTreeSet<Ipv4Addr>,
    /// Counts of sessions that have ended, of addresses in use.
    ended: BTreeMap<Ipv4Addr, (u64, RequesterCounts)>,
    next_id: u16,
    /// Frames that release memory.
    releases: Vec<Frame>,
}

impl Membership {
    /// Begins with the servers of a configuration.
    pub fn new(config: &ElasticConfig, forms: &[EntryForm], sessions: &mut ServerSessions) -> Membership {
        let ElasticConfig { own, mtu, retry_ns, requester, replicas, .. } = *config;
        let SwitchAddress { mac, address } = own;
        let server = Ipv4Addr::UNSPECIFIED;
        let session = MemorySessionConfig { mac, address, server, mtu, first_slot: 0, retry_ns, requester };
        let mut membership = Membership {
            session,
            replicas,
            current: Division { loans: Vec::new(), sizes: Vec::new(), was_complete: false },
            next: None,
            old: Vec::new(),
            joined: BTreeSet::new(),
            ended: BTreeMap::new(),
            next_id: 0,
            releases: Vec::new(),
        };
        membership.current = membership.division(config.servers.clone(), forms.iter(), sessions);
        // These servers do not join: there are no others before them.
        membership.complete();
        membership
    }

    /// Asks servers for the memory of a division.
    fn division<'a>(
        &mut self,
        places: Vec<MemoryServerPort>,
        forms: impl Iterator<Item = &'a EntryForm>,
        sessions: &mut ServerSessions,
    ) -> Division {
        let sizes: Vec<u64> = forms.map(|form| needed_bytes(form, self.replicas, places.len())).collect();
        let used: Vec<u32> = self.loans().map(|loan| loan.division).collect();
        let number = (0..).find(|number| !used.contains(number)).expect("few divisions are in use at a time");
        let mut loans = Vec::with_capacity(places.len());
        for place in places {
            while sessions.has(ServerId(self.next_id)) {
                self.next_id = self.next_id.wrapping_add(1);
            }
            let id = ServerId(self.next_id);
            // It is not used again soon: a table may still know the loan of a division that it has not completed.
            self.next_id = self.next_id.wrapping_add(1);
            let first_slot = number * sizes.len() as u32;
            let config = MemorySessionConfig { server: place.address, first_slot, ..self.session };
            sessions.begin(id, place.port, config, &sizes);
            loans.push(ServerLoan { id, place, division: number });
        }
        Division { loans, sizes, was_complete: false }
    }

    /// Returns the current division as the tables need it, with the memory of the table with this number.
    pub fn lent(&self, table: usize) -> Vec<MemoryServer> {
        let bytes = self.current.sizes[table];
        self.current.loans.iter().map(|loan| MemoryServer { id: loan.id, base: 0, bytes }).collect()
    }

    /// Returns the servers that there are to be.
    fn wanted(&self) -> Vec<MemoryServerPort> {
        self.next.as_ref().unwrap_or(&self.current).places().collect()
    }

    fn loans(&self) -> impl Iterator<Item = &ServerLoan> {
        let next = self.next.iter().flat_map(|next| &next.loans);
        self.current.loans.iter().chain(next).chain(self.old.iter().flat_map(|old| &old.loans))
    }

    /// Whether servers join or leave.
    fn is_changing(&self) -> bool {
        self.next.is_some() || !self.old.is_empty() || !self.current.was_complete
    }

    /// Notes that all copies of the current division are live.
    fn complete(&mut self) {
        self.current.was_complete = true;
        self.joined.extend(self.current.loans.iter().map(|loan| loan.place.address));
    }

    /// Ends the session of a loan, which is no longer among the loans.
    fn end(&mut self, loan: ServerLoan, sessions: &mut ServerSessions) {
        if let Some(ended) = sessions.get(loan.id) {
            let (reads, requests) = self.ended.entry(loan.place.address).or_default();
            *reads += ended.reads;
            *requests += *ended.session.counts();
        }
        sessions.end(loan.id, &mut self.releases);
        let used: Vec<Ipv4Addr> = self.loans().map(|loan| loan.place.address).collect();
        self.ended.retain(|address, _| used.contains(address));
        self.joined.retain(|address| used.contains(address));
    }

    fn state(&self, address: Ipv4Addr) -> ServerState {
        if !self.next.as_ref().unwrap_or(&self.current).has(address) {
            ServerState::Leaving
        } else if self.joined.contains(&address) {
            ServerState::Serving
        } else {
            ServerState::Joining
        }
    }
}

impl<S: RowSwitch> ElasticSwitch<S> {
    /// Adds a server. It gets its share of the tables while the others serve, and then serves, too.
    ///
    /// # Errors
    /// If it is in use, or there is no such port, or there are too many servers.
    pub fn add_server(&mut self, place: MemoryServerPort) -> Result<(), MembershipError> {
        let mut places = self.membership.wanted();
        if places.iter().any(|other| other.address == place.address) {
            return Err(MembershipError::Present(place.address));
        }
        if !self.inner.ports().contains(place.port) || self.inner.cpu_port() == Some(place.port) {
            return Err(MembershipError::Port(place.port));
        }
        if places.len() == MAX_SERVERS {
            return Err(MembershipError::TooMany);
        }
        places.push(place);
        self.divide(places);
        Ok(())
    }

    /// Removes a server. It serves until the others have its share of the tables. One that has not joined yet is
    /// forgotten at once.
    ///
    /// # Errors
    /// If it is not in use, or the only one.
    pub fn remove_server(&mut self, address: Ipv4Addr) -> Result<(), MembershipError> {
        let mut places = self.membership.wanted();
        let Some(at) = places.iter().position(|place| place.address == address) else {
            return Err(MembershipError::Unknown(address));
        };
        if places.len() == 1 {
            return Err(MembershipError::Last(address));
        }
        places.remove(at);
        self.divide(places);
        Ok(())
    }

    /// Whether servers join or leave.
    pub fn is_changing_servers(&self) -> bool {
        self.membership.is_changing()
    }

    /// Returns the state of each server in numbers.
    pub fn server_counts(&self) -> Vec<ServerCounts> {
        let mut places: Vec<MemoryServerPort> = Vec::new();
        for loan in self.membership.loans() {
            if !places.iter().any(|place| place.address == loan.place.address) {
                places.push(loan.place);
            }
        }
        places.into_iter().map(|place| self.counts_of(place)).collect()
    }

    fn counts_of(&self, place: MemoryServerPort) -> ServerCounts {
        let MemoryServerPort { address, port } = place;
        let (mut reads, mut requests) = self.membership.ended.get(&address).copied().unwrap_or_default();
        let (mut connections, mut refusal, mut held_bytes, mut entries) = (0, None, 0, 0);
        for loan in self.membership.loans().filter(|loan| loan.place.address == address) {
            if let Some(of_server) = self.servers.get(loan.id) {
                reads += of_server.reads;
                requests += *of_server.session.counts();
                connections += of_server.session.open_connections();
                refusal = refusal.or(of_server.session.refusal());
            }
            held_bytes += self.tables.iter().map(|remote| remote.table.held_bytes(loan.id)).sum::<u64>();
            entries += self.tables.iter().map(|remote| entries_at(remote, loan.id)).sum::<u64>();
        }
        let is_of = |loan: &&ServerLoan| loan.place.address == address;
        let missing_bytes = match &self.membership.next {
            Some(next) => next.loans.iter().find(is_of).map_or(0, |_| next.sizes.iter().sum()),
            None => self.membership.current.loans.iter().find(is_of).map_or(0, |loan| self.missing_bytes(loan.id)),
        };
        let (port, state) = (port.0, self.membership.state(address));
        ServerCounts { address, port, state, connections, entries, held_bytes, missing_bytes, reads, requests, refusal }
    }

    fn missing_bytes(&self, id: ServerId) -> u64 {
        let missing =
            |remote: &RemoteTable| remote.table.routes().planned_bytes(id).saturating_sub(remote.table.held_bytes(id));
        self.tables.iter().map(missing).sum()
    }

    /// Divides the tables among these servers. The division replaces one for which memory is still asked. An earlier
    /// one with the same servers is used again, as it has its copies.
    fn divide(&mut self, places: Vec<MemoryServerPort>) {
        self.wake();
        for loan in self.membership.next.take().into_iter().flat_map(|next| next.loans) {
            self.membership.end(loan, &mut self.servers);
        }
        let last_complete = self.membership.old.iter().position(|old| old.was_complete);
        if let Some(at) = last_complete.filter(|_| !self.membership.current.was_complete) {
            let earlier = self.membership.old.swap_remove(at);
            self.use_division(earlier);
        }
        if self.membership.current.is_of(&places) {
            return;
        }
        if let Some(at) = self.membership.old.iter().position(|old| old.is_of(&places)) {
            let earlier = self.membership.old.swap_remove(at);
            return self.use_division(earlier);
        }
        let forms = self.tables.iter().map(|remote| &remote.form);
        self.membership.next = Some(self.membership.division(places, forms, &mut self.servers));
    }

    /// Uses the next division once all its servers have lent their memory, and gives back the memory of loans that
    /// have no copy any more. Returns whether the tables changed.
    pub(crate) fn advance_servers(&mut self, frames: &mut Vec<Frame>) -> bool {
        if !self.membership.current.was_complete
            && self.tables.iter().all(|remote| remote.table.routes().is_planned_live())
        {
            self.membership.complete();
        }
        let is_changed = self.membership.is_changing() && (self.use_next() | self.release_old());
        frames.append(&mut self.membership.releases);
        is_changed
    }

    fn use_next(&mut self) -> bool {
        let tables = self.tables.len();
        let is_open = |loan: &ServerLoan| {
            self.servers.get(loan.id).is_some_and(|of_server| of_server.session.open_connections() == tables)
        };
        let ready = self.membership.next.take_if(|next| next.loans.iter().all(is_open));
        let is_ready = ready.is_some();
        ready.into_iter().for_each(|next| self.use_division(next));
        is_ready
    }

    fn use_division(&mut self, division: Division) {
        let before = std::mem::replace(&mut self.membership.current, division);
        self.membership.old.push(before);
        for (number, remote) in self.tables.iter_mut().enumerate() {
            let lent = self.membership.lent(number);
            remote.table.set_servers(&lent).expect("each server lends what its share takes");
            let is_open = |id| self.servers.get(id).is_some_and(|of_server| of_server.session.is_open(number as u32));
            let open: Vec<ServerId> = lent.iter().map(|server| server.id).filter(|id| is_open(*id)).collect();
            open.into_iter().for_each(|id| remote.table.server_up(id, self.servers.meters()));
        }
    }

    fn release_old(&mut self) -> bool {
        let has_copy = |remote: &RemoteTable, id| remote.table.routes().copies().any(|copy| copy.server == id);
        let is_needed = |loan: &ServerLoan| self.tables.iter().any(|remote| has_copy(remote, loan.id));
        let is_over = |division: &mut Division| !division.loans.iter().any(is_needed);
        let released: Vec<Division> = self.membership.old.extract_if(.., is_over).collect();
        for loan in released.iter().flat_map(|division| &division.loans) {
            // READs under way are sent to other copies.
            let meters = self.servers.meters();
            self.tables.iter_mut().for_each(|remote| remote.table.server_down(loan.id, meters));
            self.membership.end(*loan, &mut self.servers);
        }
        !released.is_empty()
    }
}

/// Returns about the number of a table's entries in the complete copies of a loan.
fn entries_at(remote: &RemoteTable, id: ServerId) -> u64 {
    let cells = u64::from(remote.table.layout().cells()).max(1);
    let copies = remote.table.routes().copies().filter(|copy| copy.server == id && copy.is_live);
    let held: u64 = copies.map(|copy| u64::from(copy.arc.cells)).sum();
    remote.table.len() as u64 * held / cells
}

/// Returns the bytes that the tables of a valid program need of each server, with these numbers of copies and servers.
pub fn bytes_per_server(program: &Program, replicas: u32, servers: usize) -> u64 {
    EntryForm::all(program).iter().map(|form| needed_bytes(form, replicas, servers)).sum()
}

/// Returns the bytes that a table needs of each server.
fn needed_bytes(form: &EntryForm, replicas: u32, servers: usize) -> u64 {
    let layout = form.layout();
    // Servers with the same memory have about the same shares.
    let lent: Vec<MemoryServer> =
        (0..servers).map(|id| MemoryServer { id: ServerId(id as u16), base: 0, bytes: 1 << 48 }).collect();
    let arcs = target_arcs(&layout, replicas, &lent).expect("each server lends more than the whole table");
    let of = |server: &MemoryServer| {
        let own = arcs.iter().filter(|target| target.server == server.id);
        own.map(|target| layout.copy_bytes(target.arc.cells)).sum::<u64>()
    };
    lent.iter().map(of).max().unwrap_or(0)
}
