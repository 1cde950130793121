//! Tests single faults without randomness: the answers, and the counts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use elastic::ElasticMutation;
use elastic::admission::{CacheConfig, SketchConfig};
use elastic::cell::CellSecret;
use elastic::keys::KeyForm;
use elastic::layout::LayoutKind;
use elastic::lookups::LookupLimits;
use elastic::placement::PlacementRule;
use elastic::record::RecordFault;
use elastic::routes::{LinkMeter, MemoryServer, ServerId};
use elastic::table::{
    ElasticDrop, ElasticTable, EntryKey, LookupOutcome, LookupStart, MemoryToken, TableConfig, TableEffect,
    TableLimits, WriteFault,
};

use crate::scenario::records;

const BYTES: u64 = 100_000;

/// A table with servers that answer when the test lets them.
struct TableRig {
    table: ElasticTable<u32>,
    memory: BTreeMap<ServerId, Vec<u8>>,
    /// READs and WRITEs that were not yet executed, in order.
    pending: VecDeque<TableEffect<u32>>,
    answers: Vec<(u32, LookupOutcome)>,
    distrusted: Vec<ServerId>,
    links: BusyServers,
}

#[derive(Default)]
struct BusyServers(BTreeSet<ServerId>);

impl LinkMeter for BusyServers {
    fn is_busy(&mut self, server: ServerId, _bytes: u32) -> bool {
        self.0.contains(&server)
    }
}

fn config() -> TableConfig {
    TableConfig {
        table: 1,
        keys: KeyForm::Exact { bytes: 2 },
        records: records(),
        layout: LayoutKind::Windows { cells: 4 },
        rule: PlacementRule::default(),
        cells: 120,
        entries: 100,
        replicas: 2,
        first_epoch: 1,
        sketch: SketchConfig::default(),
        cache: CacheConfig { entries: 0, threshold: 1 },
        limits: TableLimits::default(),
        mutation: ElasticMutation::default(),
    }
}

fn hit(number: u8) -> LookupOutcome {
    LookupOutcome::Hit([0, 0, number].as_slice().into())
}

fn key(bytes: &[u8; 2]) -> EntryKey<'_> {
    EntryKey { bytes, prefix_length: None }
}

impl TableRig {
    fn new(config: TableConfig) -> TableRig {
        let mut table = ElasticTable::new(config, CellSecret { k0: 5, k1: 6 });
        let ids = [0, 1].map(ServerId);
        let servers = ids.map(|id| MemoryServer { id, base: 0, bytes: BYTES });
        table.set_servers(&servers).expect("there is room");
        let memory = ids.into_iter().map(|id| (id, vec![0; BYTES as usize])).collect();
        let (pending, answers, distrusted) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut rig = TableRig { table, memory, pending, answers, distrusted, links: BusyServers::default() };
        ids.iter().for_each(|id| rig.table.server_up(*id, &mut rig.links));
        rig.settle();
        rig
    }

    fn collect(&mut self) {
        while let Some(effect) = self.table.next_event() {
            match effect {
                TableEffect::Answer { packet, outcome } => self.answers.push((packet, outcome)),
                TableEffect::Distrust { server } => self.distrusted.push(server),
                effect => self.pending.push_back(effect),
            }
        }
    }

    /// Executes and completes everything.
    fn settle(&mut self) {
        loop {
            self.table.work(10_000);
            self.collect();
            let Some(effect) = self.pending.pop_front() else { return };
            let (token, bytes) = self.execute(&effect);
            self.complete(token, &bytes);
        }
    }

    fn execute(&mut self, effect: &TableEffect<u32>) -> (MemoryToken, Vec<u8>) {
        match effect {
            TableEffect::Read { server, address, bytes, token } => {
                let start = *address as usize;
                (*token, self.memory[server][start..start + *bytes as usize].to_vec())
            }
            TableEffect::Write { server, address, data, token } => {
                let start = *address as usize;
                self.memory.get_mut(server).expect("it exists")[start..start + data.len()].copy_from_slice(data);
                (*token, Vec::new())
            }
            TableEffect::Answer { .. } | TableEffect::Distrust { .. } => unreachable!("collected"),
        }
    }

    fn complete(&mut self, token: MemoryToken, bytes: &[u8]) {
        self.table.completed(token, bytes, &mut self.links);
        self.collect();
    }

    fn lookup(&mut self, key: &[u8], packet: u32) {
        if let LookupStart::Answered { packet, outcome } = self.table.lookup(key, packet, &mut self.links) {
            self.answers.push((packet, outcome));
        }
        self.collect();
    }

    fn insert(&mut self, bytes: &[u8; 2], number: u8) {
        self.table.insert(key(bytes), &[0, 0, number]).expect("there is room");
    }

    fn take(&mut self) -> Vec<(u32, LookupOutcome)> {
        std::mem::take(&mut self.answers)
    }

    fn next_read(&mut self) -> TableEffect<u32> {
        let at = self.pending.iter().position(|effect| matches!(effect, TableEffect::Read { .. }));
        self.pending.remove(at.expect("a READ")).expect("it is there")
    }
}

fn server_of(effect: &TableEffect<u32>) -> ServerId {
    match effect {
        TableEffect::Read { server, .. } | TableEffect::Write { server, .. } => *server,
        TableEffect::Answer { .. } | TableEffect::Distrust { .. } => unreachable!("collected"),
    }
}

#[test]
fn one_read_a_lookup_whether_it_hits_or_misses() {
    let mut rig = TableRig::new(config());
    rig.insert(b"\0\0", 1);
    rig.settle();
    let before = rig.table.counts().reads;
    rig.lookup(b"\0\0", 1);
    rig.lookup(b"zz", 2);
    rig.settle();
    assert_eq!(rig.take(), [(1, hit(1)), (2, LookupOutcome::Miss)]);
    assert_eq!(rig.table.counts().reads, before + 2);
}

#[test]
fn a_server_that_lost_its_memory_costs_a_read_and_no_packet_and_is_repaired() {
    let mut rig = TableRig::new(config());
    rig.insert(b"\0\0", 1);
    rig.settle();
    rig.lookup(b"\0\0", 1);
    let server = server_of(&rig.pending[0]);
    rig.memory.get_mut(&server).expect("it exists").fill(0);
    rig.settle();
    rig.lookup(b"\0\0", 2);
    rig.settle();
    assert_eq!(rig.take(), [(1, hit(1)), (2, hit(1))]);
    let counts = rig.table.counts();
    assert_eq!((counts.invalid, counts.repairs, counts.retries), (1, 1, 1));
}

#[test]
fn a_read_before_an_insert_that_is_answered_after_it_sees_the_entry() {
    let mut rig = TableRig::new(config());
    rig.lookup(b"ab", 1);
    let read = rig.next_read();
    let (token, bytes) = rig.execute(&read);
    rig.insert(b"ab", 7);
    rig.settle();
    assert_eq!(rig.table.overlay_len(), 1, "the grace period lasts");
    rig.lookup(b"ab", 2);
    rig.complete(token, &bytes);
    assert_eq!(rig.take(), [(1, hit(7)), (2, hit(7))]);
    assert_eq!(rig.table.overlay_len(), 0);
}

#[test]
fn packets_of_a_key_share_a_read_and_miss_once_each_in_order() {
    let mut rig = TableRig::new(config());
    (1..=4).for_each(|packet| rig.lookup(b"ab", packet));
    assert_eq!(rig.pending.len(), 1);
    rig.settle();
    let numbers: Vec<u32> = rig
        .take()
        .into_iter()
        .filter(|(_, outcome)| *outcome == LookupOutcome::Miss)
        .map(|(packet, _)| packet)
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(rig.table.lookup_counts().coalesced, 3);
}

#[test]
fn nobody_overtakes_a_packet_that_waits_when_the_entry_becomes_known() {
    let mut rig = TableRig::new(config());
    rig.lookup(b"ab", 1);
    let read = rig.next_read();
    rig.insert(b"ab", 7);
    rig.lookup(b"ab", 2);
    assert!(rig.take().is_empty(), "the overlay knows the entry, but packet 1 waits");
    let (token, bytes) = rig.execute(&read);
    rig.complete(token, &bytes);
    assert_eq!(rig.take(), [(1, hit(7)), (2, hit(7))]);
}

#[test]
fn an_answer_among_the_effects_is_not_overtaken() {
    let mut rig = TableRig::new(config());
    rig.lookup(b"ab", 1);
    let read = rig.next_read();
    rig.insert(b"ab", 7);
    let (token, bytes) = rig.execute(&read);
    rig.table.completed(token, &bytes, &mut rig.links);
    assert_eq!(rig.table.lookup(b"ab", 2, &mut rig.links), LookupStart::Waiting);
    rig.collect();
    assert_eq!(rig.take(), [(1, hit(7)), (2, hit(7))]);
}

#[test]
fn a_port_that_goes_down_moves_its_reads_in_the_same_step() {
    let mut rig = TableRig::new(config());
    rig.insert(b"ab", 7);
    rig.settle();
    (1..=3).for_each(|packet| rig.lookup(b"ab", packet));
    let lost = rig.next_read();
    rig.table.server_down(server_of(&lost), &mut rig.links);
    rig.collect();
    let moved = rig.next_read();
    assert_ne!(server_of(&moved), server_of(&lost));
    let (token, bytes) = rig.execute(&moved);
    rig.complete(token, &bytes);
    assert_eq!(rig.take(), [(1, hit(7)), (2, hit(7)), (3, hit(7))]);
}

#[test]
fn one_timeout_moves_all_reads_of_a_dead_server_and_none_is_lost() {
    let mut rig = TableRig::new(config());
    for number in 0..40 {
        rig.insert(&[1, number], number);
    }
    rig.settle();
    (0..40).for_each(|number| rig.lookup(&[1, number], u32::from(number)));
    let read = rig.next_read();
    let dead = server_of(&read);
    let TableEffect::Read { token, .. } = read else { unreachable!() };
    rig.pending.retain(|effect| server_of(effect) != dead);
    rig.table.failed(token, &mut rig.links);
    rig.collect();
    assert!(rig.pending.iter().all(|effect| server_of(effect) != dead));
    rig.settle();
    let mut answers = rig.take();
    answers.sort_by_key(|(packet, _)| *packet);
    let expected: Vec<_> = (0..40).map(|number| (number, hit(number as u8))).collect();
    assert_eq!(answers, expected);
}

#[test]
fn busy_links_and_missing_servers_drop_by_name_and_count() {
    let mut rig = TableRig::new(config());
    rig.links.0.extend([ServerId(0), ServerId(1)]);
    rig.lookup(b"ab", 1);
    rig.links.0.clear();
    (0..2).for_each(|id| rig.table.server_down(ServerId(id), &mut rig.links));
    rig.lookup(b"ab", 2);
    rig.lookup(b"abc", 3);
    let dropped = [ElasticDrop::LinkBusy, ElasticDrop::NoServer, ElasticDrop::BadKey];
    let expected: Vec<_> = (1..).zip(dropped.map(LookupOutcome::Dropped)).collect();
    assert_eq!(rig.take(), expected);
    assert_eq!(rig.table.counts().dropped.iter().sum::<u64>(), 3);
}

#[test]
fn a_flood_of_keys_is_bounded_and_every_packet_is_counted() {
    let limits = LookupLimits { lookups: 10, packets: 15 };
    let mut rig =
        TableRig::new(TableConfig { limits: TableLimits { lookups: limits, ..Default::default() }, ..config() });
    for number in 0..=255u8 {
        rig.lookup(&[9, number], u32::from(number));
        rig.lookup(&[9, 0], 1000 + u32::from(number));
    }
    assert_eq!((rig.table.waiting(), rig.pending.len()), (15, 8));
    assert_eq!(rig.table.counts().dropped[ElasticDrop::Full as usize], 512 - 15);
    rig.table.drain();
    rig.collect();
    assert_eq!(rig.table.counts().dropped[ElasticDrop::Drained as usize], 15);
    assert_eq!(rig.take().len(), 512);
    // Answers after the drain have no packet.
    rig.settle();
    assert!(rig.take().is_empty());
}

#[test]
fn a_server_that_lies_is_given_up_and_the_other_answers() {
    let limits = TableLimits { rereads: 1, repairs: 1, restarts: 1, ..Default::default() };
    let mut rig = TableRig::new(TableConfig { limits, ..config() });
    (0..40).for_each(|number| rig.insert(&[1, number], number));
    rig.settle();
    for turn in 0..2000u32 {
        rig.lookup(&[1, (turn % 40) as u8], turn);
        while let Some(effect) = rig.pending.pop_front() {
            let (token, mut bytes) = rig.execute(&effect);
            if server_of(&effect) == ServerId(0) {
                bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at as u32 * 31 + turn) as u8);
            }
            rig.complete(token, &bytes);
            rig.table.work(1000);
            rig.collect();
        }
    }
    let answers = rig.take();
    assert!(answers.iter().all(|(turn, outcome)| *outcome == hit((turn % 40) as u8)), "{answers:?}");
    assert_eq!((answers.len(), rig.table.counts().distrusted), (2000, 1));
    assert!(!rig.table.routes().is_up(ServerId(0)));
    assert_eq!(rig.distrusted, [ServerId(0)], "its connection is to be closed, and may be opened again");
    rig.table.server_up(ServerId(0), &mut rig.links);
    rig.settle();
    assert!(rig.table.is_settled());
}

#[test]
fn damage_is_forgotten_after_enough_valid_reads() {
    let limits = TableLimits { repairs: 1, restarts: 0, valid_reads: 5, ..Default::default() };
    let mut rig = TableRig::new(TableConfig { limits, replicas: 1, ..config() });
    rig.insert(b"ab", 1);
    rig.settle();
    let damage = |rig: &mut TableRig| rig.memory.values_mut().for_each(|memory| memory.fill(0));
    for turn in 1..=4 {
        damage(&mut rig);
        (0..6).for_each(|packet| {
            rig.lookup(b"ab", packet);
            rig.settle();
        });
        let counts = rig.table.counts();
        assert_eq!((counts.repairs, counts.distrusted), (turn, 0), "turn {turn}");
    }
    // Damage that returns at once is not forgotten.
    (0..2).for_each(|packet| {
        damage(&mut rig);
        rig.lookup(b"ab", packet);
        rig.settle();
    });
    assert_eq!((rig.table.counts().distrusted, rig.distrusted.len()), (1, 1));
}

#[test]
fn writes_are_refused_by_reason_and_change_nothing() {
    let mut rig = TableRig::new(TableConfig { entries: 2, ..config() });
    assert_eq!(rig.table.insert(key(b"ab"), &[1, 0, 1]), Err(WriteFault::Record(RecordFault::Trailing)));
    assert_eq!(rig.table.insert(EntryKey { bytes: b"ab", prefix_length: Some(3) }, &[1, 0, 0]), Err(WriteFault::Key));
    assert_eq!(rig.table.modify(key(b"ab"), &[1, 0, 0]), Err(WriteFault::NotFound));
    assert_eq!(rig.table.delete(key(b"ab")), Err(WriteFault::NotFound));
    rig.insert(b"ab", 1);
    assert_eq!(rig.table.insert(key(b"ab"), &[1, 0, 0]), Err(WriteFault::Exists));
    rig.insert(b"cd", 1);
    assert_eq!(rig.table.insert(key(b"ef"), &[1, 0, 0]), Err(WriteFault::Full));
    assert_eq!((rig.table.len(), rig.table.record(key(b"ab"))), (2, Some(&[0, 0, 1][..])));
}

#[test]
fn accepted_writes_in_progress_are_bounded() {
    let limits = TableLimits { changes: 2, ..Default::default() };
    let mut rig = TableRig::new(TableConfig { limits, ..config() });
    rig.insert(b"ab", 1);
    rig.insert(b"cd", 1);
    assert_eq!(rig.table.insert(key(b"ef"), &[1, 0, 0]), Err(WriteFault::Busy));
    rig.settle();
    rig.insert(b"ef", 1);
}

#[test]
fn changes_that_a_server_does_not_acknowledge_are_bounded_by_the_entries() {
    let limits = TableLimits { changes: usize::MAX, operations: 4, ..Default::default() };
    let mut rig = TableRig::new(TableConfig { limits, ..config() });
    (0..50).for_each(|number| rig.insert(&[0, number], 0));
    rig.settle();
    for round in 1..=200u8 {
        for number in 0..50 {
            rig.table.modify(key(&[0, number]), &[0, 0, round]).expect("it exists");
            rig.insert(&[round, number], number);
        }
        rig.table.work(10_000);
        rig.collect();
        for number in (0..50).filter(|number| round < 200 || *number > 0) {
            rig.table.delete(key(&[round, number])).expect("it exists");
        }
        rig.table.delete(key(&[0, 49])).expect("it exists");
        rig.insert(&[0, 49], round);
        let waiting = (rig.table.queued_changes(), rig.table.overlay_len());
        assert!(waiting.0 <= 200 && waiting.1 <= 200, "{waiting:?} in round {round}");
    }
    rig.settle();
    assert_eq!((rig.table.queued_changes(), rig.table.is_settled(), rig.table.len()), (0, true, 51));
    (0..50).for_each(|number| rig.lookup(&[0, number], number.into()));
    [[200, 0], [200, 1], [7, 0]].iter().zip(50..).for_each(|(key, packet)| rig.lookup(key, packet));
    rig.settle();
    let mut answers = rig.take();
    answers.sort_by_key(|(packet, _)| *packet);
    let (old, new) = answers.split_at(50);
    assert!(old.iter().all(|(_, outcome)| *outcome == hit(200)), "{old:?}");
    assert_eq!(new, [(50, hit(0)), (51, LookupOutcome::Miss), (52, LookupOutcome::Miss)]);
}

#[test]
fn a_torn_cell_is_read_again_a_bounded_number_of_times() {
    let limits = TableLimits { rereads: 2, ..Default::default() };
    let mut rig = TableRig::new(TableConfig { limits, ..config() });
    rig.insert(b"ab", 1);
    rig.settle();
    rig.lookup(b"ab", 1);
    for turn in 0..3 {
        let read = rig.next_read();
        let (token, mut bytes) = rig.execute(&read);
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        rig.complete(token, &bytes);
        assert_eq!(rig.table.counts().rereads, (turn + 1).min(2));
    }
    rig.settle();
    assert_eq!(rig.take(), [(1, hit(1))], "the other copy answers");
    assert_eq!((rig.table.counts().retries, rig.table.counts().repairs), (1, 1));
}

fn prefix(bytes: &[u8; 2], length: u32) -> EntryKey<'_> {
    EntryKey { bytes, prefix_length: Some(length) }
}

fn prefix_config(lengths: &[u32]) -> TableConfig {
    let keys = KeyForm::Prefix { exact_bytes: 0, bits: 16, lengths: lengths.to_vec(), expansion_bits: 2 };
    TableConfig { keys, ..config() }
}

/// Links that take this number of further READs.
#[derive(Default)]
struct CountedLinks {
    left: u32,
    saved: u32,
}

impl LinkMeter for CountedLinks {
    fn is_busy(&mut self, _server: ServerId, _bytes: u32) -> bool {
        let is_busy = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_busy
    }

    fn save(&mut self) {
        self.saved = self.left;
    }

    fn restore(&mut self) {
        self.left = self.saved;
    }
}

#[test]
fn a_lookup_that_is_refused_makes_none_of_its_reads() {
    let mut rig = TableRig::new(prefix_config(&[8, 12, 16]));
    for (bytes, length, number) in [([0xab, 0], 8, 1), ([0xab, 0xc0], 12, 2), ([0xab, 0xcd], 16, 3)] {
        rig.table.insert(prefix(&bytes, length), &[0, 0, number]).expect("there is room");
    }
    rig.settle();
    let before = rig.table.counts();
    let mut links = CountedLinks { left: 2, saved: 0 };
    let start = rig.table.lookup(&[0xab, 0xcd], 1, &mut links);
    let dropped = LookupOutcome::Dropped(ElasticDrop::LinkBusy);
    assert!(matches!(start, LookupStart::Answered { packet: 1, outcome } if outcome == dropped));
    rig.collect();
    let counts = rig.table.counts();
    assert_eq!((rig.pending.len(), counts.reads - before.reads, links.left), (0, 0, 2), "others may use the links");
    assert_eq!(counts.dropped[ElasticDrop::LinkBusy as usize], 1);
    links.left = 3;
    assert!(matches!(rig.table.lookup(&[0xab, 0xcd], 2, &mut links), LookupStart::Waiting));
    rig.settle();
    assert_eq!((rig.take(), links.left), (vec![(2, hit(3))], 0));
}

#[test]
fn a_lookup_of_prefixes_reads_a_window_for_each_length_in_use() {
    let mut rig = TableRig::new(prefix_config(&[8, 12, 16]));
    let mut expect = |change: &dyn Fn(&mut ElasticTable<u32>), reads: u64, outcome: LookupOutcome| {
        change(&mut rig.table);
        rig.settle();
        let before = rig.table.counts().reads;
        rig.lookup(&[0xab, 0xcd], 1);
        rig.settle();
        assert_eq!((rig.table.counts().reads - before, rig.take()), (reads, vec![(1, outcome)]));
    };
    let insert = |bytes: [u8; 2], length, number| {
        move |table: &mut ElasticTable<u32>| {
            table.insert(prefix(&bytes, length), &[0, 0, number]).expect("there is room")
        }
    };
    let delete = |bytes: [u8; 2], length| {
        move |table: &mut ElasticTable<u32>| table.delete(prefix(&bytes, length)).expect("it exists")
    };
    expect(&|_| {}, 0, LookupOutcome::Miss);
    // A default route would take too many cells, and stays in the switch.
    expect(&insert([0, 0], 0, 1), 0, hit(1));
    expect(&insert([0xab, 0xcd], 16, 2), 1, hit(2));
    expect(&insert([0xab, 0xc0], 10, 3), 2, hit(2));
    expect(&delete([0xab, 0xcd], 16), 1, hit(3));
    // Another key of a length that is read finds nothing in its window.
    expect(&insert([0x12, 0x34], 16, 4), 2, hit(3));
    expect(&delete([0xab, 0xc0], 10), 1, hit(1));
    expect(&delete([0, 0], 0), 1, LookupOutcome::Miss);
    assert_eq!((rig.table.prefixes().len(), rig.table.len()), (1, 1));
}

#[test]
fn windows_that_are_read_before_and_after_changes_give_the_answer_of_one_moment() {
    let mut rig = TableRig::new(prefix_config(&[8, 16]));
    rig.table.insert(prefix(&[0xab, 0], 8), &[0, 0, 1]).expect("there is room");
    rig.table.insert(prefix(&[0xab, 0xcd], 16), &[0, 0, 2]).expect("there is room");
    rig.settle();
    rig.lookup(&[0xab, 0xcd], 1);
    let (long, short) = (rig.next_read(), rig.next_read());
    let (token, bytes) = rig.execute(&short);
    rig.complete(token, &bytes);
    rig.table.modify(prefix(&[0xab, 0], 8), &[0, 0, 3]).expect("it exists");
    rig.table.delete(prefix(&[0xab, 0xcd], 16)).expect("it exists");
    rig.settle();
    let (token, bytes) = rig.execute(&long);
    rig.complete(token, &bytes);
    assert_eq!(rig.take(), [(1, hit(3))], "there was no moment with the first record of the shorter prefix");
}

#[test]
fn a_cached_address_follows_the_prefixes_over_it() {
    for length in [12, 14, 16] {
        let cache = CacheConfig { entries: 4, threshold: 1 };
        let mut rig = TableRig::new(TableConfig { cache, ..prefix_config(&[8, 16]) });
        let expect = |rig: &mut TableRig, numbers: [u8; 2]| {
            rig.settle();
            for (packet, key) in [[0xab, 0xcd], [0xab, 0xff]].into_iter().enumerate() {
                rig.lookup(&key, packet as u32);
                rig.settle();
                rig.lookup(&key, packet as u32);
                let number = hit(numbers[packet]);
                assert_eq!(rig.take(), [(packet as u32, number.clone()), (packet as u32, number)]);
                // The prefix of 12 bits is in the switch, so the cache is not needed.
                assert!(rig.pending.is_empty() && (length == 12 || rig.table.is_cached(&key)));
            }
        };
        rig.table.insert(prefix(&[0xab, 0], 8), &[0, 0, 1]).expect("there is room");
        expect(&mut rig, [1, 1]);
        let longer = prefix(&[0xab, 0xcd], length);
        rig.table.insert(longer, &[0, 0, 2]).expect("there is room");
        assert!(rig.table.is_cached(&[0xab, 0xff]) && !rig.table.is_cached(&[0xab, 0xcd]));
        expect(&mut rig, [2, 1]);
        rig.table.delete(longer).expect("it exists");
        expect(&mut rig, [1, 1]);
        rig.table.modify(prefix(&[0xab, 0], 8), &[0, 0, 3]).expect("it exists");
        expect(&mut rig, [3, 3]);
    }
}

#[test]
fn prefixes_count_as_the_cells_that_they_may_take() {
    let mut rig = TableRig::new(TableConfig { entries: 6, ..prefix_config(&[8, 16]) });
    rig.table.insert(prefix(&[0, 0], 0), &[0, 0, 1]).expect("one that stays in the switch");
    rig.table.insert(prefix(&[0xab, 0xc0], 14), &[0, 0, 2]).expect("four cells");
    assert_eq!(rig.table.insert(prefix(&[0xab, 0xc8], 15), &[0, 0, 3]), Err(WriteFault::Full));
    rig.table.insert(prefix(&[0xab, 0xc0], 16), &[0, 0, 4]).expect("its cell is that of the longer prefix");
    assert_eq!(rig.table.insert(prefix(&[0, 0], 17), &[0, 0, 4]), Err(WriteFault::Key));
    assert_eq!((rig.table.len(), rig.table.prefixes().kept()), (4, 1));
}
