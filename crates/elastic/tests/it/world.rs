//! Simulates a table, its servers, packets and a controller, and compares every answer with a model.

use std::collections::{BTreeMap, BTreeSet};

use elastic::ElasticMutant;
use elastic::cell::CellSecret;
use elastic::keys::KeyForm;
use elastic::layout::{AnswerContext, WindowAnswer};
use elastic::placement::{PlacementRule, least_stash};
use elastic::routes::{MemoryServer, ServerId};
use elastic::table::{ElasticTable, EntryKey, LookupOutcome, LookupStart, TableEffect, WriteFault};
use rng::SplitMix64;

use crate::scenario::Scenario;
use crate::servers::{BASE, SimEvent, SimServers};

/// A packet: its number and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimPacket {
    pub number: u64,
    pub key: Vec<u8>,
}

/// Kinds of violations, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimViolation {
    /// A packet got another record than its key has.
    WrongAnswer(String),
    /// A packet missed, though its key has an entry.
    FalseMiss(String),
    /// A packet was answered before an earlier one of its key.
    Overtaken(String),
    /// A packet did not end, or ended twice, or was not counted.
    Uncounted(String),
    /// The final state is wrong.
    EndState(String),
}

/// Numbers of a run.
#[derive(Clone, Debug, Default)]
pub struct SimReport {
    pub violations: Vec<SimViolation>,
    pub packets: u64,
    pub hits: u64,
    pub misses: u64,
    pub drops: u64,
    pub remote: u64,
    pub writes: u64,
    pub moves: u64,
    pub stashed: u64,
    pub evicted: u64,
    pub rereads: u64,
    pub repairs: u64,
    pub restarts: u64,
    pub distrusted: u64,
    pub failures: u64,
}

const SECRET: CellSecret = CellSecret { k0: 0x0123_4567_89ab_cdef, k1: 0xfedc_ba98_7654_3210 };

struct World {
    scenario: Scenario,
    random: SplitMix64,
    table: ElasticTable<SimPacket>,
    servers: SimServers,
    lent: Vec<MemoryServer>,
    /// Records by masked key and prefix length (of the field's width for exact keys).
    model: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    open: BTreeSet<u64>,
    last: BTreeMap<Vec<u8>, u64>,
    report: SimReport,
}

/// Runs the simulation of a seed, with an error if `mutant` names one.
pub fn simulate(seed: u64, mutant: Option<ElasticMutant>) -> SimReport {
    let mut random = SplitMix64::new(seed);
    let scenario = Scenario::draw(&mut random, mutant);
    let mut world = World::new(scenario, random);
    for _ in 0..world.scenario.inputs {
        world.input();
        if !world.report.violations.is_empty() {
            return world.report;
        }
    }
    world.finish();
    world.report
}

impl World {
    fn new(scenario: Scenario, random: SplitMix64) -> World {
        let table = ElasticTable::new(scenario.config.clone(), SECRET);
        let servers = SimServers::new(scenario.delay, scenario.rates.loss, scenario.rates.torn);
        let mut world = World {
            scenario,
            random,
            table,
            servers,
            lent: Vec::new(),
            model: BTreeMap::new(),
            open: BTreeSet::new(),
            last: BTreeMap::new(),
            report: SimReport::default(),
        };
        for id in 0..world.scenario.servers {
            world.lend(ServerId(id));
        }
        world.table.set_servers(&world.lent.clone()).expect("each server lends enough for the whole table");
        for server in world.lent.clone() {
            world.servers.schedule(0, SimEvent::Connect { server: server.id });
        }
        world
    }

    fn lend(&mut self, id: ServerId) {
        let layout = self.table.layout();
        // Enough for two copies of the table on the smallest set of servers.
        let whole = 2 * layout.copy_bytes(layout.cells()) + 64;
        let bytes = whole * (1 + self.random.below(3));
        let slowness = self.random.pick(&[(6, 1), (2, 3), (2, 8)]);
        self.servers.add(id, bytes, slowness);
        let bytes = self.servers.servers[&id].memory.len() as u64;
        self.lent.push(MemoryServer { id, base: BASE, bytes });
    }

    fn input(&mut self) {
        if self.random.below(1000) < self.fault_rate() {
            self.fault();
        }
        match self.random.below(100) {
            0..40 => self.event(),
            40..55 => self.table.work(1 + self.random.below(20) as u32),
            55..75 => self.write(),
            // Several packets before the effects are carried out.
            75..85 => (0..1 + self.random.below(4)).for_each(|_| self.lookup_random()),
            _ => self.lookup_random(),
        }
        self.effects();
    }

    fn event(&mut self) {
        let Some(event) = self.servers.next_event(&mut self.random) else { return };
        match event {
            SimEvent::Complete { token, .. } => {
                let bytes = self.servers.take_bytes(token);
                self.table.completed(token, &bytes, &mut self.servers);
            }
            SimEvent::TimeOut { server, token, .. } => {
                self.report.failures += 1;
                self.servers.disconnect(server, &mut self.random);
                self.table.failed(token, &mut self.servers);
            }
            SimEvent::Connect { server } => self.connect(server),
            _ => unreachable!("executed by the servers"),
        }
        self.notice();
    }

    fn connect(&mut self, id: ServerId) {
        let server = self.servers.servers.get_mut(&id).expect("it exists");
        if server.is_connected || !self.lent.iter().any(|lent| lent.id == id) {
            return;
        }
        server.is_connected = true;
        server.is_liar = false;
        if self.random.percent(40) {
            server.memory.fill(0);
        }
        self.table.server_up(id, &mut self.servers);
    }

    /// Disconnects servers that the table has given up by itself.
    fn notice(&mut self) {
        let lent = self.lent.iter().map(|lent| lent.id);
        let given_up: Vec<ServerId> =
            lent.filter(|id| self.servers.servers[id].is_connected && !self.table.routes().is_up(*id)).collect();
        given_up.into_iter().for_each(|id| self.servers.disconnect(id, &mut self.random));
    }

    fn fault_rate(&self) -> u64 {
        let rates = &self.scenario.rates;
        rates.blank + rates.scribble + rates.liar + rates.port_down + rates.busy + rates.membership + rates.drain
    }

    fn fault(&mut self) {
        let rates = self.scenario.rates;
        let id = ServerId(self.random.below(self.servers.servers.len() as u64) as u16);
        let kind = self.random.pick(&[
            (rates.blank, 0),
            (rates.scribble, 1),
            (rates.liar, 2),
            (rates.port_down, 3),
            (rates.busy, 4),
            (rates.membership, 5),
            (rates.drain, 6),
        ]);
        let server = self.servers.servers.get_mut(&id).expect("numbered from 0");
        match kind {
            0 => server.memory.fill(0),
            1 => {
                let at = self.random.below(server.memory.len() as u64) as usize;
                server.memory[at] ^= 1 << self.random.below(8);
            }
            2 => server.is_liar = true,
            3 if server.is_connected => {
                self.servers.disconnect(id, &mut self.random);
                self.table.server_down(id, &mut self.servers);
            }
            4 if !self.servers.busy.remove(&id) => _ = self.servers.busy.insert(id),
            5 => self.change_servers(),
            6 => self.table.drain(),
            _ => {}
        }
        self.effects();
        self.notice();
    }

    /// Adds or removes a server.
    fn change_servers(&mut self) {
        let absent = (0..5).map(ServerId).find(|id| !self.lent.iter().any(|lent| lent.id == *id));
        if let Some(id) = absent.filter(|_| self.lent.len() == 1 || self.random.percent(50)) {
            self.lend(id);
        } else {
            let at = self.random.below(self.lent.len() as u64) as usize;
            self.lent.remove(at);
        }
        // A server that was removed and is added again may still be in use.
        self.table.set_servers(&self.lent.clone()).expect("each server lends enough for the whole table");
        for server in self.lent.clone() {
            if !self.servers.servers[&server.id].is_connected || !self.table.routes().is_up(server.id) {
                self.servers.cut(server.id, &mut self.random);
                self.connect(server.id);
            }
        }
    }

    fn is_prefix(&self) -> bool {
        matches!(self.scenario.config.keys, KeyForm::Prefix { .. })
    }

    fn random_key(&mut self) -> Vec<u8> {
        // Some keys are much more popular than others.
        let number = self.random.below(self.scenario.keys);
        let number = if self.random.percent(60) { self.random.below(number + 1) } else { number };
        if self.is_prefix() { vec![(number % 64) as u8] } else { vec![0, number as u8] }
    }

    fn lookup_random(&mut self) {
        let key = self.random_key();
        self.lookup(key);
    }

    fn lookup(&mut self, key: Vec<u8>) {
        let packet = SimPacket { number: self.report.packets, key: key.clone() };
        self.report.packets += 1;
        self.open.insert(packet.number);
        if let LookupStart::Answered { packet, outcome } = self.table.lookup(&key, packet, &mut self.servers) {
            self.answer(&packet, &outcome);
        }
    }

    /// Returns the record that the model has for a packet's key.
    fn expected(&self, key: &[u8]) -> Option<&[u8]> {
        let longest = if self.is_prefix() { 6 } else { 16 };
        (0..=longest).rev().find_map(|length| self.model.get(&self.entry(key, length))).map(Vec::as_slice)
    }

    fn entry(&self, key: &[u8], length: u32) -> (u32, Vec<u8>) {
        if !self.is_prefix() {
            return (length, key.to_vec());
        }
        (length, vec![key[0] & 0x3f & (0x3f << (6 - length))])
    }

    fn answer(&mut self, packet: &SimPacket, outcome: &LookupOutcome) {
        if !self.open.remove(&packet.number) {
            self.violate(SimViolation::Uncounted(format!("{packet:?} ended twice")));
        }
        let expected = self.expected(&packet.key).map(<[u8]>::to_vec);
        match outcome {
            LookupOutcome::Dropped(_) => {
                self.report.drops += 1;
                return;
            }
            LookupOutcome::Hit(record) => {
                self.report.hits += 1;
                if expected.as_deref() != Some(record) {
                    self.violate(SimViolation::WrongAnswer(format!("{packet:?}: {record:?}, not {expected:?}")));
                }
            }
            LookupOutcome::Miss => {
                self.report.misses += 1;
                if expected.is_some() {
                    self.violate(SimViolation::FalseMiss(format!("{packet:?}: a miss, not {expected:?}")));
                }
            }
        }
        let last = self.last.insert(packet.key.clone(), packet.number);
        if last.is_some_and(|last| last > packet.number) {
            self.violate(SimViolation::Overtaken(format!("{packet:?} after {last:?}")));
        }
    }

    fn violate(&mut self, violation: SimViolation) {
        self.report.violations.push(violation);
    }

    fn write(&mut self) {
        let key = self.random_key();
        let (length, prefix_length) = match self.is_prefix() {
            true => {
                let length = self.random.below(7) as u32;
                (length, Some(length))
            }
            false => (16, None),
        };
        let entry = self.entry(&key, length);
        let record = vec![0, self.random.next_u64() as u8, self.random.next_u64() as u8];
        let is_there = self.model.contains_key(&entry);
        let key = EntryKey { bytes: &key, prefix_length };
        let (result, change) = match self.random.below(3) {
            0 if is_there => (self.table.delete(key), None),
            1 | 0 if !is_there => (self.table.insert(key, &record), Some(record)),
            2 if !is_there => {
                assert_eq!(self.table.modify(key, &record), Err(WriteFault::NotFound));
                return;
            }
            _ => (self.table.modify(key, &record), Some(record)),
        };
        match (result, change) {
            (Ok(()), Some(record)) => _ = self.model.insert(entry, record),
            (Ok(()), None) => _ = self.model.remove(&entry),
            (Err(WriteFault::Full | WriteFault::Busy), _) => return,
            (fault, _) => self.violate(SimViolation::EndState(format!("a write was refused: {fault:?}"))),
        }
        self.report.writes += 1;
    }

    /// Carries out the effects.
    fn effects(&mut self) {
        while let Some(effect) = self.table.next_event() {
            match effect {
                TableEffect::Read { server, address, bytes, token } => {
                    self.servers.read(server, address, bytes, token, &mut self.random);
                }
                TableEffect::Write { server, address, data, token } => {
                    self.servers.write(server, address, data, token, &mut self.random);
                }
                TableEffect::Distrust { server } => {
                    if self.servers.servers[&server].is_connected {
                        self.servers.disconnect(server, &mut self.random);
                    }
                }
                TableEffect::Answer { packet, outcome } => self.answer(&packet, &outcome),
            }
        }
    }

    /// Runs until nothing is in progress.
    fn quiesce(&mut self) {
        for _ in 0..20_000 {
            self.table.work(1000);
            self.effects();
            if self.servers.is_idle() {
                break;
            }
            self.event();
            self.effects();
        }
        if !self.table.is_settled() || self.table.waiting() > 0 {
            let state = format!("settled {}, {} wait", self.table.is_settled(), self.table.waiting());
            self.violate(SimViolation::EndState(format!("no rest: {state}, {:?}", self.table.routes())));
        }
    }

    fn finish(&mut self) {
        self.servers.heal();
        self.quiesce();
        if !self.report.violations.is_empty() {
            return;
        }
        self.check_packets();
        self.check_memory();
        if self.report.violations.is_empty() {
            self.check_lookups();
        }
        if self.report.violations.is_empty() && self.random.percent(15) {
            self.check_ageing();
        }
        let (counts, cache) = (self.table.counts(), self.table.cache_counts());
        self.report.remote = counts.reads;
        self.report.moves = self.table.placement().counts().moves;
        self.report.stashed = self.table.placement().stashed() as u64;
        self.report.evicted = cache.evicted;
        self.report.rereads = counts.rereads;
        self.report.repairs = counts.repairs;
        self.report.restarts = counts.restarts;
        self.report.distrusted = counts.distrusted;
    }

    fn check_packets(&mut self) {
        if !self.open.is_empty() {
            self.violate(SimViolation::Uncounted(format!("packets {:?} did not end", self.open)));
        }
        let dropped: u64 = self.table.counts().dropped.iter().sum();
        if dropped != self.report.drops {
            self.violate(SimViolation::Uncounted(format!("{dropped} counted, {} dropped", self.report.drops)));
        }
    }

    /// Compares every copy, the stash and the overlay with the model.
    fn check_memory(&mut self) {
        let mut homes = Vec::new();
        let mut found = Vec::new();
        let placement = self.table.placement();
        if self.table.overlay_len() != placement.stashed() {
            found.push(format!("{} in the overlay, {} stashed", self.table.overlay_len(), placement.stashed()));
        }
        let layout = self.table.layout();
        for (key, record) in self.cells() {
            let home = layout.home(SECRET.key_hash(&key));
            homes.push(home);
            let copies: Vec<_> =
                self.table.routes().copies().filter(|copy| layout.serves(copy.arc, home)).cloned().collect();
            if copies.is_empty() {
                found.push(format!("no copy serves {key:?}"));
            }
            for copy in copies {
                let start = (copy.base - BASE + layout.read_offset(copy.arc, home)) as usize;
                let memory = &self.servers.servers[&copy.server].memory;
                let records = &self.scenario.config.records;
                let mutation = self.scenario.config.mutation;
                let context = AnswerContext { secret: &SECRET, epoch: copy.epoch, records, mutation };
                let bytes = &memory[start..start + layout.read_bytes() as usize];
                let answer = layout.parse(context, home, &key, bytes);
                let is_damaged = matches!(answer, WindowAnswer::Torn | WindowAnswer::Invalid);
                // Damage that no lookup has read remains, and is detected.
                let is_stashed = answer == WindowAnswer::Miss && self.is_stashed(&key);
                if answer != WindowAnswer::Hit(&record) && !is_damaged && !is_stashed {
                    found.push(format!("{key:?} in {:?}: {answer:?}, not {record:?}", copy.id));
                }
            }
        }
        if matches!(self.scenario.config.rule, PlacementRule::ShortestPath { .. }) {
            found.extend(self.check_optimum(&homes));
        }
        found.into_iter().for_each(|text| self.violate(SimViolation::EndState(text)));
    }

    fn check_optimum(&self, homes: &[u32]) -> Option<String> {
        let layout = self.table.layout();
        // The sweep cuts the circle at any cell, but the windows of two buckets begin only at buckets.
        let least = least_stash(homes, layout.cells(), layout.window()).filter(|_| layout.home_distance() == 1)?;
        let stashed = self.table.placement().stashed();
        (stashed != least).then(|| format!("{stashed} stashed, and {least} is the least"))
    }

    fn is_stashed(&self, key: &[u8]) -> bool {
        let placement = self.table.placement();
        placement.stashed() > 0 && {
            let layout = self.table.layout();
            let home = layout.home(SECRET.key_hash(key));
            // Nothing is in flight, so an entry that no cell holds is in the stash.
            (0..layout.window())
                .filter_map(|ahead| placement.occupant(layout.wrap(home, ahead)))
                .all(|entry| self.table.cell_key(entry) != key)
        }
    }

    /// Returns the cell keys that the model implies, with their records.
    fn cells(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        if !self.is_prefix() {
            return self.model.iter().map(|((_, key), record)| (key.clone(), record.clone())).collect();
        }
        let KeyForm::Prefix { lengths, expansion_bits, .. } = &self.scenario.config.keys else { unreachable!() };
        let mut cells = Vec::new();
        for (at, &served) in lengths.iter().enumerate() {
            let after_before = at.checked_sub(1).map_or(0, |before| lengths[before] + 1);
            let lowest = after_before.max(served.saturating_sub(*expansion_bits));
            for number in 0..1u8 << served {
                let key = number << (6 - served);
                let owner = (lowest..=served).rev().find_map(|length| self.model.get(&self.entry(&[key], length)));
                if let Some(record) = owner {
                    cells.push((vec![served as u8, key], record.clone()));
                }
            }
        }
        cells
    }

    /// Without faults every key is answered.
    fn check_lookups(&mut self) {
        let drops = self.report.drops;
        for number in 0..self.scenario.keys {
            let key = if self.is_prefix() { vec![(number % 64) as u8] } else { vec![0, number as u8] };
            self.lookup(key);
            self.effects();
            self.quiesce();
        }
        // Damage that is first read now may still cost a packet, so the lookup is repeated.
        if self.report.drops > drops && self.report.violations.is_empty() {
            self.check_once_more();
        }
    }

    fn check_once_more(&mut self) {
        let drops = self.report.drops;
        for number in 0..self.scenario.keys {
            let key = if self.is_prefix() { vec![(number % 64) as u8] } else { vec![0, number as u8] };
            self.lookup(key);
            self.effects();
            self.quiesce();
        }
        let limit = self.scenario.keys / 2;
        if self.report.drops - drops > limit {
            let drops = self.report.drops - drops;
            self.violate(SimViolation::EndState(format!("{drops} of {} keys got no answer", self.scenario.keys)));
        }
    }

    /// A key that was popular gives way to one that is.
    fn check_ageing(&mut self) {
        if self.is_prefix() || self.scenario.config.cache.entries == 0 {
            return;
        }
        let stored: Vec<Vec<u8>> = self.cells().into_iter().map(|(key, _)| key).collect();
        let stored: Vec<Vec<u8>> = stored.into_iter().filter(|key| !self.is_stashed(key)).collect();
        let Some((popular, earlier)) = stored.split_first() else { return };
        let entries = self.scenario.config.cache.entries;
        if earlier.len() < entries {
            return;
        }
        for turn in 0..entries * 120 {
            self.lookup(earlier[turn % entries].clone());
            self.effects();
            self.quiesce();
        }
        for _ in 0..100 {
            self.lookup(popular.clone());
            self.effects();
            self.quiesce();
        }
        if !self.table.is_cached(popular) {
            self.violate(SimViolation::EndState("a popular key is not cached".to_owned()));
        }
    }
}
