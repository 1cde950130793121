//! Models the memory client and its servers: memory as bytes, delays, loss, READs in parts, malicious servers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use elastic::routes::{LinkMeter, ServerId};
use elastic::table::MemoryToken;
use rng::SplitMix64;

/// First address of each server's memory.
pub const BASE: u64 = 4096;

#[derive(Clone, Debug)]
pub enum SimEvent {
    ExecuteWrite { server: ServerId, connection: u64 },
    Read { server: ServerId, connection: u64, from: usize, to: usize, token: MemoryToken },
    Complete { server: ServerId, connection: u64, token: MemoryToken },
    TimeOut { server: ServerId, connection: u64, token: MemoryToken },
    Connect { server: ServerId },
}

#[derive(Debug)]
struct PendingRead {
    address: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub struct SimServer {
    pub memory: Vec<u8>,
    /// Number of the connection; events of earlier ones are ignored.
    pub connection: u64,
    pub is_connected: bool,
    pub is_liar: bool,
    /// Factor of its delays.
    slowness: u64,
    writes: VecDeque<(u64, Vec<u8>, MemoryToken, bool)>,
    last_write: u64,
}

/// Servers, and the messages to and from them.
#[derive(Debug)]
pub struct SimServers {
    pub servers: BTreeMap<ServerId, SimServer>,
    pub busy: BTreeSet<ServerId>,
    pub now: u64,
    queue: BTreeMap<(u64, u64), SimEvent>,
    reads: BTreeMap<MemoryToken, PendingRead>,
    next: u64,
    delay: u64,
    loss: u64,
    torn: u64,
}

impl LinkMeter for SimServers {
    fn is_busy(&mut self, server: ServerId, _bytes: u32) -> bool {
        self.busy.contains(&server)
    }
}

impl SimServers {
    pub fn new(delay: u64, loss: u64, torn: u64) -> SimServers {
        SimServers {
            servers: BTreeMap::new(),
            busy: BTreeSet::new(),
            now: 0,
            queue: BTreeMap::new(),
            reads: BTreeMap::new(),
            next: 0,
            delay,
            loss,
            torn,
        }
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        (self.loss, self.torn) = (0, 0);
        self.busy.clear();
        self.servers.values_mut().for_each(|server| server.is_liar = false);
    }

    pub fn add(&mut self, id: ServerId, bytes: u64, slowness: u64) {
        self.servers.entry(id).or_insert_with(|| SimServer {
            memory: vec![0; bytes as usize],
            connection: 0,
            is_connected: false,
            is_liar: false,
            slowness,
            writes: VecDeque::new(),
            last_write: 0,
        });
    }

    pub fn schedule(&mut self, after: u64, event: SimEvent) {
        self.next += 1;
        self.queue.insert((self.now + after, self.next), event);
    }

    fn delay(&self, random: &mut SplitMix64) -> u64 {
        1 + random.below(self.delay)
    }

    /// Closes the connection of a server: its outstanding requests have no effect. The server returns later.
    pub fn disconnect(&mut self, id: ServerId, random: &mut SplitMix64) {
        self.cut(id, random);
        let after = 1 + random.below(6 * self.delay);
        self.schedule(after, SimEvent::Connect { server: id });
    }

    /// Ends the connection of a server.
    pub fn cut(&mut self, id: ServerId, random: &mut SplitMix64) {
        let server = self.servers.get_mut(&id).expect("it exists");
        server.connection += 1;
        server.is_connected = false;
        // Some of the WRITEs under way were executed.
        let executed = random.below(server.writes.len() as u64 + 1);
        let writes: Vec<_> = server.writes.drain(..).take(executed as usize).collect();
        writes.into_iter().for_each(|(address, data, ..)| store(server, address, &data));
    }

    pub fn write(&mut self, id: ServerId, address: u64, data: Vec<u8>, token: MemoryToken, random: &mut SplitMix64) {
        let is_lost = random.below(1000) < self.loss;
        let delay = self.delay(random);
        let server = self.servers.get_mut(&id).expect("only known servers are written");
        if !server.is_connected {
            return;
        }
        assert!(address >= BASE && address - BASE + data.len() as u64 <= server.memory.len() as u64, "out of bounds");
        server.writes.push_back((address, data, token, is_lost));
        server.last_write = server.last_write.max(self.now + delay * server.slowness);
        let (after, connection) = (server.last_write - self.now, server.connection);
        self.schedule(after, SimEvent::ExecuteWrite { server: id, connection });
    }

    pub fn read(&mut self, id: ServerId, address: u64, bytes: u32, token: MemoryToken, random: &mut SplitMix64) {
        let server = &self.servers[&id];
        assert!(address >= BASE && address - BASE + u64::from(bytes) <= server.memory.len() as u64, "out of bounds");
        if !server.is_connected {
            return;
        }
        let connection = server.connection;
        self.reads.insert(token, PendingRead { address, bytes: vec![0; bytes as usize] });
        let size = bytes as usize;
        // A NIC reads lines of memory in any order.
        let is_torn = random.below(1000) < self.torn;
        let cut = if is_torn { random.below(u64::from(bytes)) as usize / 4 * 4 } else { size };
        let (first, second) = (self.delay(random), self.delay(random));
        let mut last = first;
        self.schedule(first, SimEvent::Read { server: id, connection, from: 0, to: cut, token });
        if is_torn {
            last = first.max(second);
            self.schedule(second, SimEvent::Read { server: id, connection, from: cut, to: size, token });
        }
        self.complete(id, connection, token, last, random.below(1000) < self.loss, random);
    }

    fn complete(
        &mut self,
        server: ServerId,
        connection: u64,
        token: MemoryToken,
        after: u64,
        is_lost: bool,
        random: &mut SplitMix64,
    ) {
        if is_lost {
            return self.schedule(after + 4 * self.delay, SimEvent::TimeOut { server, connection, token });
        }
        let after = after + self.delay(random);
        self.schedule(after, SimEvent::Complete { server, connection, token });
    }

    /// Returns the next event that is still valid and concerns the table, and executes the others on the way.
    pub fn next_event(&mut self, random: &mut SplitMix64) -> Option<SimEvent> {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            self.now = self.now.max(at);
            match event {
                SimEvent::ExecuteWrite { server: id, connection } => {
                    let server = self.servers.get_mut(&id).expect("it exists");
                    if server.connection != connection {
                        continue;
                    }
                    let (address, data, token, is_lost) = server.writes.pop_front().expect("one a WRITE");
                    store(server, address, &data);
                    self.complete(id, connection, token, 0, is_lost, random);
                }
                SimEvent::Read { server, connection, from, to, token } => {
                    let server = &self.servers[&server];
                    if server.connection == connection
                        && let Some(read) = self.reads.get_mut(&token)
                    {
                        let start = (read.address - BASE) as usize;
                        read.bytes[from..to].copy_from_slice(&server.memory[start + from..start + to]);
                        if server.is_liar {
                            read.bytes[from..to].iter_mut().for_each(|byte| *byte = random.next_u64() as u8);
                        }
                    }
                }
                SimEvent::Complete { server, connection, .. } | SimEvent::TimeOut { server, connection, .. } => {
                    if self.servers[&server].connection == connection {
                        return Some(event);
                    }
                }
                SimEvent::Connect { .. } => return Some(event),
            }
        }
        None
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the bytes of a completed READ; none for a WRITE.
    pub fn take_bytes(&mut self, token: MemoryToken) -> Vec<u8> {
        self.reads.remove(&token).map(|read| read.bytes).unwrap_or_default()
    }
}

fn store(server: &mut SimServer, address: u64, data: &[u8]) {
    let start = (address - BASE) as usize;
    server.memory[start..start + data.len()].copy_from_slice(data);
}
