use super::*;
use crate::{AccessRights, MemoryMap, SparseMemory, Tcpu};

const MS: u64 = 1_000_000;
const INTERVAL_NS: u64 = MS;
const RTT_NS: u64 = 200_000;
const CAPACITY: u64 = 12_500_000;

/// A switch on a path, and the link by which it is left.
struct ModelSwitch {
    words: Vec<(&'static str, u64)>,
}

impl ModelSwitch {
    fn new(number: u64, port: u64) -> ModelSwitch {
        let words = vec![("Switch:ID", number), ("Link:ID", port), ("Link:Capacity", CAPACITY)];
        ModelSwitch { words: [words, vec![("Link:TX-Utilization", 0)]].concat() }
    }

    fn set(&mut self, name: &'static str, value: u64) {
        self.words.retain(|(other, _)| *other != name);
        self.words.push((name, value));
    }
}

/// Returns a path of two switches with a host behind the second: one link between switches.
fn path(number: u64) -> Vec<ModelSwitch> {
    vec![ModelSwitch::new(number, number + 10), ModelSwitch::new(100, 1)]
}

/// Executes a program at switches, whose clocks show this time.
fn execute(program: &TinyProgram, switches: &[ModelSwitch], clock_ns: u64) -> TinyProgram {
    let map = MemoryMap::new();
    let mut packet = program.packet(&[]);
    for switch in switches {
        let mut memory = SparseMemory::new();
        for (name, value) in switch.words.iter().copied().chain([("Switch:Clock", clock_ns)]) {
            memory.fixed(map.find(name).expect("it is in the map").address, value);
        }
        Tcpu::execute(&mut packet, &mut memory, &AccessRights::all());
    }
    TinyProgram::decode(&wire::tpp::Packet::new_checked(&packet[..]).expect("it stays well-formed"))
}

fn settings(paths: usize) -> CongaSettings {
    CongaSettings::new(paths, PathMetric::Max, 500_000, INTERVAL_NS)
}

/// Sends the next program on a path, and passes its echo one round trip later. Returns whether another should follow.
fn probe(balancer: &mut CongaBalancer, number: usize, switches: &[ModelSwitch], now_ns: u64) -> bool {
    let program = balancer.program(number, now_ns);
    let echo = execute(&program, switches, now_ns + RTT_NS / 2);
    balancer.echoed(number, now_ns + RTT_NS, RTT_NS, &echo)
}

/// Creates a balancer whose paths were sampled once, with these utilizations in 1/10,000. Its time is [`MS`].
fn balancer(utilizations: &[u64]) -> (CongaBalancer, Vec<Vec<ModelSwitch>>) {
    let mut balancer = CongaBalancer::new(settings(utilizations.len()));
    let mut paths: Vec<_> = (0..utilizations.len() as u64).map(path).collect();
    for (number, utilization) in utilizations.iter().enumerate() {
        paths[number][0].set("Link:TX-Utilization", *utilization);
        paths[number][0].set("Link:TX-Bytes", 0);
        assert!(probe(&mut balancer, number, &paths[number], MS - 2 * RTT_NS), "the path is known");
        assert!(!probe(&mut balancer, number, &paths[number], MS - RTT_NS));
    }
    (balancer, paths)
}

fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-6)
}

#[test]
fn links_between_switches_make_the_load_and_the_last_one_does_not() {
    let mut balancer = CongaBalancer::new(settings(1));
    let mut switches = vec![ModelSwitch::new(1, 4), ModelSwitch::new(2, 5), ModelSwitch::new(3, 6)];
    for (switch, utilization) in switches.iter_mut().zip([2_000, 3_000, 9_000]) {
        switch.set("Link:TX-Utilization", utilization);
    }
    assert!(probe(&mut balancer, 0, &switches, 0));
    assert_eq!(balancer.load(0, RTT_NS), None, "nothing was sampled");
    assert!(!probe(&mut balancer, 0, &switches, RTT_NS));
    let places: Vec<_> = balancer.links(0).map(|place| (place.switch, place.port)).collect();
    assert_eq!(places, [(1, 4), (2, 5)]);
    assert!(close(balancer.load(0, 2 * RTT_NS), 0.3), "{:?}", balancer.load(0, 2 * RTT_NS));
    let mut sum = CongaBalancer::new(CongaSettings { metric: PathMetric::Sum, ..settings(1) });
    probe(&mut sum, 0, &switches, 0);
    probe(&mut sum, 0, &switches, RTT_NS);
    assert!(close(sum.load(0, 2 * RTT_NS), 0.5), "{:?}", sum.load(0, 2 * RTT_NS));
}

#[test]
fn loads_are_the_bytes_between_samples_over_32_bits_too() {
    let settings = CongaSettings { smoothing_ns: 1, ..settings(1) };
    let mut balancer = CongaBalancer::new(settings);
    let mut switches = path(1);
    switches[0].set("Link:TX-Bytes", (1 << 32) - 1_000);
    probe(&mut balancer, 0, &switches, 0);
    probe(&mut balancer, 0, &switches, MS);
    // 60 % of 12,500 bytes in a millisecond; the utilization is that of another millisecond.
    switches[0].set("Link:TX-Bytes", (1 << 32) + 6_500);
    switches[0].set("Link:TX-Utilization", 100);
    probe(&mut balancer, 0, &switches, 2 * MS);
    assert!(close(balancer.load(0, 3 * MS), 0.6), "{:?}", balancer.load(0, 3 * MS));
    // A switch that restarted counts from 0: its bytes do not fit, its utilization does.
    switches[0].set("Link:TX-Bytes", 300);
    switches[0].set("Link:TX-Utilization", 2_500);
    probe(&mut balancer, 0, &switches, 3 * MS);
    assert!(close(balancer.load(0, 4 * MS), 0.25), "{:?}", balancer.load(0, 4 * MS));
}

#[test]
fn links_of_more_than_34_gbps_have_their_load() {
    let settings = CongaSettings { smoothing_ns: 1, ..settings(1) };
    let mut balancer = CongaBalancer::new(settings);
    let mut switches = path(1);
    switches[0].set("Link:Capacity", 50_000_000_000);
    switches[0].set("Link:TX-Bytes", 0);
    probe(&mut balancer, 0, &switches, 0);
    probe(&mut balancer, 0, &switches, MS);
    switches[0].set("Link:TX-Bytes", 25_000_000);
    probe(&mut balancer, 0, &switches, 2 * MS);
    assert!(close(balancer.load(0, 3 * MS), 0.5), "{:?}", balancer.load(0, 3 * MS));
}

#[test]
fn links_without_a_limit_add_no_load() {
    let mut balancer = CongaBalancer::new(settings(1));
    let mut switches = path(1);
    switches[0].set("Link:Capacity", 0);
    switches[0].set("Link:TX-Utilization", 9_000);
    switches[0].set("Link:TX-Bytes", 0);
    probe(&mut balancer, 0, &switches, 0);
    probe(&mut balancer, 0, &switches, MS);
    switches[0].set("Link:TX-Bytes", 12_500);
    probe(&mut balancer, 0, &switches, 2 * MS);
    assert_eq!((balancer.links(0).count(), balancer.load(0, 3 * MS)), (1, Some(0.0)));
    // Neither do the sender's own packets.
    balancer.choose(0, 1_000, 3 * MS);
    assert_eq!(balancer.load(0, 3 * MS), Some(0.0));
}

#[test]
fn a_packet_keeps_the_path_of_its_flowlet_and_the_next_flowlet_takes_the_least_loaded() {
    let (mut balancer, mut paths) = balancer(&[2_000, 5_000]);
    assert_eq!(balancer.choose(1, 100, MS), 0, "flow 1 begins on path 1 only if that is as good");
    // The link of path 0 becomes full, that of path 1 idle.
    let (mut now_ns, mut sent_bytes) = (MS, 0);
    while now_ns < 20 * MS {
        now_ns += 499_000;
        sent_bytes += 499 * CAPACITY / 1_000_000;
        paths[0][0].set("Link:TX-Bytes", sent_bytes);
        probe(&mut balancer, 0, &paths[0], now_ns - RTT_NS);
        probe(&mut balancer, 1, &paths[1], now_ns - RTT_NS);
        assert_eq!(balancer.choose(1, 100, now_ns), 0, "the flowlet goes on at {now_ns} ns");
    }
    assert!(balancer.load(0, now_ns) > balancer.load(1, now_ns));
    assert_eq!(balancer.choose(1, 100, now_ns + 500_001), 1);
    assert_eq!((balancer.counts().flowlets, balancer.counts().moves), (2, 1));
}

#[test]
fn flowlets_that_take_another_port_of_the_same_path_do_not_move() {
    let mut balancer = CongaBalancer::new(settings(3));
    let numbered = [path(0), path(0), path(1)];
    for at in [0, MS] {
        (0..3).for_each(|number| _ = probe(&mut balancer, number, &numbered[number], at));
    }
    assert_eq!(balancer.choose(0, 100_000, 2 * MS), 0);
    // The sender's own bytes make the first number look busier than the second, which has the same links.
    assert_eq!((balancer.choose(0, 100_000, 3 * MS), balancer.counts().moves), (1, 0));
    // The third one has others.
    assert_eq!((balancer.choose(0, 100, 4 * MS), balancer.counts().moves), (2, 1));
}

#[test]
fn discoveries_of_a_path_that_stays_unknown_become_rare() {
    let mut balancer = CongaBalancer::new(settings(2));
    let mut now_ns = 0;
    let mut waits = Vec::new();
    while now_ns < 60_000 * MS {
        // The host echoes the program, and no switch executes it.
        assert!(!probe(&mut balancer, 0, &[], now_ns));
        waits.push(balancer.wait_ns(0, INTERVAL_NS) / MS);
        now_ns += balancer.wait_ns(0, INTERVAL_NS);
    }
    assert_eq!(waits[..10], [1; 10]);
    assert_eq!(waits[10..20], [2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000]);
    assert!(waits[20..].iter().all(|wait| *wait == 1_000) && waits.len() < 80, "{waits:?}");
    // Longer intervals stay as they are, and so does the other path.
    assert_eq!((balancer.wait_ns(0, 2_000 * MS), balancer.wait_ns(1, INTERVAL_NS)), (2_000 * MS, INTERVAL_NS));
    // The switches begin to execute programs: samples have their interval again.
    assert!(probe(&mut balancer, 0, &path(0), now_ns));
    probe(&mut balancer, 0, &path(0), now_ns + MS);
    assert_eq!((balancer.wait_ns(0, INTERVAL_NS), balancer.load(0, now_ns + 2 * MS)), (INTERVAL_NS, Some(0.0)));
    // So they have after a change of the path.
    assert!(probe(&mut balancer, 0, &path(1), now_ns + 2 * MS));
    balancer.program(0, now_ns + 3 * MS);
    assert_eq!(balancer.wait_ns(0, INTERVAL_NS), INTERVAL_NS);
}

#[test]
fn flowlets_of_one_round_trip_do_not_all_take_the_same_path() {
    let (mut balancer, _) = balancer(&[0, 0]);
    let chosen: Vec<usize> = (0..100).map(|flow| balancer.choose(2 * flow, 1_000, MS + flow * 100)).collect();
    let first = chosen.iter().filter(|path| **path == 0).count();
    assert!((45..=55).contains(&first), "{first} of 100 took the first path");
}

#[test]
fn what_a_sample_counted_does_not_count_twice() {
    let settings = CongaSettings { smoothing_ns: 1_000 * MS, ..settings(2) };
    let mut balancer = CongaBalancer::new(settings);
    let mut switches = path(0);
    switches[0].set("Link:TX-Bytes", 0);
    probe(&mut balancer, 0, &switches, 0);
    probe(&mut balancer, 0, &switches, MS);
    for at in 0..100 {
        balancer.choose(7, 1_250, 2 * MS + at);
    }
    // 125,000 bytes are 1 % of what the link sends in the time constant.
    let now_ns = 3 * MS;
    assert!((balancer.load(0, now_ns).expect("it is fresh") - 0.01).abs() < 1e-4, "{:?}", balancer.load(0, now_ns));
    switches[0].set("Link:TX-Bytes", 125_000);
    // The bytes took ten milliseconds.
    let echo = execute(&balancer.program(0, 10 * MS), &switches, 11 * MS);
    balancer.echoed(0, 11 * MS, MS, &echo);
    let load = balancer.load(0, 11 * MS).expect("it is fresh");
    assert!((load - 0.01).abs() < 2e-4, "{load}");
}

#[test]
fn a_silent_path_is_left_at_once_and_used_only_if_all_are_silent() {
    let (mut balancer, paths) = balancer(&[0, 9_000]);
    assert_eq!(balancer.choose(0, 100, MS), 0);
    // Path 0 does not answer any more; it is silent after ten intervals.
    let mut now_ns = MS;
    while now_ns + 400_000 <= 11 * MS {
        probe(&mut balancer, 1, &paths[1], now_ns);
        now_ns += 400_000;
        assert_eq!(balancer.choose(0, 100, now_ns), 0, "at {now_ns} ns");
    }
    probe(&mut balancer, 1, &paths[1], now_ns);
    now_ns += 400_000;
    assert_eq!(balancer.choose(0, 100, now_ns), 1, "although the flowlet is not over");
    assert_eq!((balancer.load(0, now_ns), balancer.counts().flowlets), (None, 2));
    // Then none does: flows stay, and new ones spread.
    assert_eq!(balancer.choose(0, 100, now_ns + 100 * MS), 1);
    assert_eq!([2, 3, 4].map(|flow| balancer.choose(flow, 100, now_ns + 100 * MS)), [0, 1, 0]);
}

#[test]
fn another_path_is_noticed_and_discovered() {
    let (mut balancer, mut paths) = balancer(&[1_000]);
    let old = balancer.program(0, MS);
    paths[0][0].set("Link:ID", 3);
    let echo = execute(&old, &paths[0], MS);
    assert!(balancer.echoed(0, MS, RTT_NS, &echo), "discovery follows at once");
    assert_eq!((balancer.links(0).count(), balancer.load(0, MS)), (0, None));
    // A sample that was under way says nothing of the path.
    assert!(!balancer.echoed(0, MS, RTT_NS, &echo));
    assert!(probe(&mut balancer, 0, &paths[0], 2 * MS));
    assert_eq!(balancer.links(0).map(|place| place.port).collect::<Vec<_>>(), [3]);
    // A detour over one more switch, whose first links are the same.
    paths[0].insert(1, ModelSwitch::new(50, 2));
    assert!(probe(&mut balancer, 0, &paths[0], 3 * MS));
    assert_eq!(balancer.counts().changed_paths, 2);
}

#[test]
fn flows_beyond_the_table_do_not_grow_it() {
    let (mut balancer, _) = balancer(&[0, 0]);
    let most = MAX_FLOWS as u64;
    (0..most + 10).for_each(|flow| _ = balancer.choose(flow, 1, MS));
    assert!(balancer.flowlets.last(most + 9).is_none() && balancer.flowlets.last(0).is_some());
    // After a gap, flows that are silent make room.
    balancer.choose(0, 1, 2 * MS);
    balancer.choose(most + 9, 1, 3 * MS);
    assert!(balancer.flowlets.last(most + 9).is_some() && balancer.flowlets.last(5).is_none());
}

#[test]
fn no_echo_makes_a_balancer_panic() {
    let mut random = rng::SplitMix64::new(1);
    let mut balancer = CongaBalancer::new(settings(3));
    let mut switches: Vec<_> = (0..3).map(path).collect();
    let mut now_ns = 0;
    for _ in 0..5_000 {
        now_ns += random.next_u64() >> 40;
        let number = random.below(4) as usize;
        if random.percent(5) {
            switches[number % 3][0].set("Link:ID", random.below(3));
        }
        let mut echo = execute(&balancer.program(number, now_ns), &switches[number % 3], random.next_u64());
        let is_damaged = random.percent(30);
        echo.memory.iter_mut().filter(|_| is_damaged).for_each(|byte| *byte = random.next_u64() as u8);
        if random.percent(5) {
            echo.repr.hop = random.next_u64() as i8;
        }
        if random.percent(5) {
            echo.memory.truncate(random.below(40) as usize);
        }
        balancer.echoed(number, random.next_u64() >> 30, random.next_u64() >> 40, &echo);
        assert!(balancer.choose(random.below(5), random.next_u64(), now_ns) < 3);
        let loads = (0..3).filter_map(|path| balancer.load(path, now_ns));
        loads.for_each(|load| assert!(load.is_finite() && load >= 0.0, "{load}"));
    }
    assert!(balancer.counts().samples > 100 && balancer.counts().changed_paths > 10, "{:?}", balancer.counts());
}
