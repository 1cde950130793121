mod law;

use super::*;
use crate::{AccessRights, MemoryMap, SparseMemory, Tcpu};

const MS: u64 = 1_000_000;
const RTT_NS: u64 = 10 * MS;
const CAPACITY: u64 = 12_500_000;

/// Bytes that the path holds, and the additive increase.
const PIPE: f64 = 125_000.0;
const INCREASE: f64 = PIPE * 0.05 / 16.0;

/// A switch on a path, and the link by which it is left.
#[derive(Clone, Copy)]
struct ModelSwitch {
    number: u64,
    capacity: u64,
    clock_ns: u64,
    sent_bytes: u64,
    queued_bytes: u64,
    /// Time that programs wait in the queue.
    queue_ns: u64,
}

impl ModelSwitch {
    fn new(number: u64) -> ModelSwitch {
        ModelSwitch { number, capacity: CAPACITY, clock_ns: 0, sent_bytes: 0, queued_bytes: 0, queue_ns: 0 }
    }

    /// Lets time pass, in which the link sends these bytes, and sets its queue.
    fn pass(&mut self, ns: u64, bytes: u64, queued_bytes: u64) {
        self.clock_ns += ns;
        self.sent_bytes += bytes;
        self.queued_bytes = queued_bytes;
    }

    fn memory(&self) -> SparseMemory {
        let (map, mut memory) = (MemoryMap::new(), SparseMemory::new());
        let words = [
            ("Switch:ID", self.number),
            ("Link:ID", self.number + 10),
            ("Link:Capacity", self.capacity),
            ("Switch:Clock", self.clock_ns),
            ("Link:TX-Bytes", self.sent_bytes),
            ("Link:Queued-Bytes", self.queued_bytes),
            ("PacketMetadata:QueueTime", self.queue_ns),
        ];
        words.into_iter().for_each(|(name, value)| memory.fixed(map.find(name).expect("it is there").address, value));
        memory
    }
}

/// Executes a program at the switches of a path, and returns it with its words.
fn execute(program: &TinyProgram, switches: &[ModelSwitch]) -> TinyProgram {
    let mut packet = program.packet(&[]);
    for switch in switches {
        // Permit to write is not needed.
        Tcpu::execute(&mut packet, &mut switch.memory(), &AccessRights::read_only());
    }
    TinyProgram::decode(&wire::tpp::Packet::new_checked(&packet[..]).expect("it stays well-formed"))
}

/// Creates the controller of a flow whose path was discovered.
fn controller(switches: &[ModelSwitch]) -> HpccController {
    let mut flow = HpccController::new(HpccSettings::new(HpccSettings::TARGET));
    assert!(!flow.has_path() && !flow.may_send() && flow.rate() == 0.0);
    let echo = execute(&flow.discovery(), switches);
    assert!(flow.discovered(RTT_NS, &echo) && flow.has_path());
    flow
}

/// Sends data and a sample, whose echo returns a round trip later. Returns whether the path changed.
fn sample(flow: &mut HpccController, switches: &[ModelSwitch], now_ns: u64) -> bool {
    flow.sent(1_000);
    let (mark, program) = flow.sample(now_ns);
    flow.echoed(now_ns + RTT_NS, RTT_NS, mark, &execute(&program, switches))
}

/// Creates a controller that took a first sample, whose echo came at 0.1 s.
fn sampled(switches: &[ModelSwitch]) -> HpccController {
    let mut flow = controller(switches);
    assert!(!sample(&mut flow, switches, 100 * MS - RTT_NS));
    assert_eq!((flow.utilization(), flow.window()), (1.0, flow.bandwidth_delay()), "one sample has no rate");
    flow
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn utilization_is_the_rate_and_the_smaller_queue() {
    // A frame of 1,518 bytes that waits is no queue, and neither is one of the longest length that the flow sent.
    for (before, after, frame) in [(26_518, 50_000, 0), (50_000, 26_518, 1_000), (34_000, 90_000, 9_000)] {
        let mut path = [ModelSwitch::new(1)];
        path[0].queued_bytes = before;
        let mut flow = sampled(&path);
        flow.sent(frame);
        // 90 % of 25,000 bytes in 2 ms, and a queue of 20 % of the pipe.
        path[0].pass(2 * MS, 22_500, after);
        sample(&mut flow, &path, 92 * MS);
        let expected = 1.0 + 0.2 * (0.9 + 0.2 - 1.0);
        close(flow.utilization(), expected);
        close(flow.window(), PIPE * 0.95 / expected + INCREASE);
        close(flow.rate(), flow.window() * 100.0);
    }
}

#[test]
fn the_busiest_link_counts() {
    for busy in 0..3 {
        let mut path = [1, 2, 3].map(ModelSwitch::new);
        let mut flow = sampled(&path);
        path.iter_mut().for_each(|switch| switch.pass(2 * MS, 5_000, 0));
        // Its clock shows another interval, which counts for the smoothing.
        path[busy].pass(2 * MS, 35_000, 0);
        sample(&mut flow, &path, 94 * MS);
        close(flow.utilization(), 1.0 + 0.4 * (0.8 - 1.0));
    }
}

#[test]
fn words_of_32_bits_begin_again() {
    let mut path = [ModelSwitch::new(1)];
    (path[0].clock_ns, path[0].sent_bytes) = ((7 << 32) - MS, (9 << 32) - 10_000);
    let mut flow = sampled(&path);
    path[0].pass(2 * MS, 20_000, 0);
    sample(&mut flow, &path, 92 * MS);
    close(flow.utilization(), 1.0 + 0.2 * (0.8 - 1.0));
    assert_eq!(flow.counts().implausible, 0);
}

#[test]
fn fast_links_have_their_utilization() {
    // 400 Gbit/s: the capacity needs two words, and bytes begin again after 86 ms.
    let mut path = [ModelSwitch { capacity: 50_000_000_000, ..ModelSwitch::new(1) }];
    let mut flow = sampled(&path);
    close(flow.window(), 500e6);
    path[0].pass(80 * MS, 3_600_000_000, 0);
    sample(&mut flow, &path, 170 * MS);
    close(flow.utilization(), 0.9);
    path[0].pass(90 * MS, 4_050_000_000, 0);
    sample(&mut flow, &path, 260 * MS);
    assert_eq!(flow.counts().implausible, 1, "the bytes may have begun again");
    close(flow.utilization(), 0.9);
}

#[test]
fn a_switch_that_restarts_changes_no_window() {
    let mut path = [ModelSwitch::new(1), ModelSwitch::new(2)];
    path.iter_mut().for_each(|switch| switch.pass(3_000 * MS, 30_000_000, 0));
    let mut flow = sampled(&path);
    // The bytes begin again, and then the clock alone, which went back.
    for (sent_bytes, clock_ns) in [(0, 3_002 * MS), (30_000, 5 * MS), (0, 4_000 * MS)] {
        let implausible = flow.counts().implausible;
        let mut restarted = path;
        restarted[0].pass(2 * MS, 20_000, 0);
        (restarted[1].sent_bytes, restarted[1].clock_ns) = (sent_bytes, clock_ns);
        let window = flow.window();
        sample(&mut flow, &restarted, 92 * MS);
        assert_eq!((flow.window(), flow.counts().implausible), (window, implausible + 1));
        // The next sample is compared with this one.
        restarted.iter_mut().for_each(|switch| switch.pass(2 * MS, 24_000, 0));
        let utilization = flow.utilization();
        sample(&mut flow, &restarted, 94 * MS);
        close(flow.utilization(), utilization + 0.2 * (0.96 - utilization));
        path = restarted;
    }
    // A clock that stands still shows no rate.
    let (window, implausible) = (flow.window(), flow.counts().implausible);
    sample(&mut flow, &path, 96 * MS);
    assert_eq!((flow.window(), flow.counts().implausible), (window, implausible + 1));
    // Neither do samples that are far from each other.
    path.iter_mut().for_each(|switch| switch.pass(1_001 * MS, 1_000_000, 0));
    sample(&mut flow, &path, 1_097 * MS);
    assert_eq!((flow.window(), flow.counts().implausible), (window, implausible + 2));
}

#[test]
fn links_without_a_rate_do_not_count() {
    let mut path = [1, 2].map(ModelSwitch::new);
    path[0].capacity = 0;
    let mut flow = sampled(&path);
    path[0].pass(2 * MS, u64::from(u32::MAX), 1 << 31);
    path[1].pass(2 * MS, 20_000, 0);
    sample(&mut flow, &path, 92 * MS);
    close(flow.utilization(), 1.0 + 0.2 * (0.8 - 1.0));
    close(flow.window(), PIPE * 0.95 / 0.96 + INCREASE);
    // A flow without any such link does not send.
    let unlimited = [ModelSwitch { capacity: 0, ..ModelSwitch::new(1) }];
    let mut flow = controller(&unlimited);
    assert!(flow.window() == 0.0 && !flow.may_send() && !flow.is_sample_due(u64::MAX));
    sample(&mut flow, &unlimited, 0);
    assert_eq!((flow.window(), flow.rate()), (0.0, 0.0));
    // The link gets a rate, and another one.
    for (capacity, window) in [(CAPACITY, INCREASE), (2 * CAPACITY, 2.0 * INCREASE)] {
        let echo = execute(&flow.discovery(), &[ModelSwitch { capacity, ..ModelSwitch::new(1) }]);
        assert!(flow.discovered(RTT_NS, &echo));
        close(flow.window(), window);
    }
}

#[test]
fn windows_are_updated_once_a_round_trip() {
    let mut path = [ModelSwitch::new(1)];
    let mut flow = sampled(&path);
    // Ten samples are sent in a round trip, before the first of them comes back.
    let mut next = |flow: &mut HpccController| {
        path[0].pass(MS, 15_000, 0);
        let (mark, program) = flow.sample(100 * MS);
        (mark, execute(&program, &path))
    };
    let echoes: Vec<_> = (0..10).map(|_| next(&mut flow)).collect();
    for (number, (mark, echo)) in (1..).zip(&echoes) {
        flow.echoed(100 * MS + RTT_NS + number * MS, RTT_NS, *mark, echo);
        // The reference is that of the first of them.
        let first = PIPE * 0.95 / 1.02 + INCREASE;
        let reference = if number == 1 { PIPE } else { first };
        close(flow.window(), reference * 0.95 / flow.utilization() + INCREASE);
    }
    let (mark, echo) = next(&mut flow);
    let window = flow.window();
    flow.echoed(100 * MS + RTT_NS + 11 * MS, RTT_NS, mark, &echo);
    let (mark, echo) = next(&mut flow);
    flow.echoed(100 * MS + RTT_NS + 12 * MS, RTT_NS, mark, &echo);
    assert!(flow.window() < 0.9 * window, "the next round trip has another reference");
}

#[test]
fn late_echoes_and_copies_change_nothing() {
    let mut path = [ModelSwitch::new(1)];
    let mut flow = sampled(&path);
    let mut send = |flow: &mut HpccController| {
        flow.sent(5_000);
        path[0].pass(MS, 10_000, 0);
        let (mark, program) = flow.sample(100 * MS);
        (mark, execute(&program, &path))
    };
    let (first, second, third) = (send(&mut flow), send(&mut flow), send(&mut flow));
    assert_eq!(flow.in_flight(), 15_000);
    flow.echoed(111 * MS, RTT_NS, second.0, &second.1);
    assert_eq!(flow.in_flight(), 5_000, "the first one is acknowledged, too");
    let (window, utilization) = (flow.window(), flow.utilization());
    for (mark, echo) in [&first, &second, &first] {
        assert!(!flow.echoed(112 * MS, MS, *mark, echo));
    }
    assert_eq!((flow.window(), flow.utilization(), flow.in_flight()), (window, utilization, 5_000));
    assert_eq!((flow.counts().stale, flow.counts().samples, flow.counts().implausible), (3, 2, 0));
    flow.echoed(113 * MS, RTT_NS, third.0, &third.1);
    assert_eq!(flow.in_flight(), 0);
}

#[test]
fn the_shortest_round_trip_is_the_base() {
    let path = [ModelSwitch::new(1)];
    let mut flow = controller(&path);
    let mut echoed = |rtt_ns: u64| {
        let (mark, program) = flow.sample(0);
        flow.echoed(0, rtt_ns, mark, &execute(&program, &path));
        (flow.window(), flow.rate())
    };
    assert_eq!(echoed(4 * RTT_NS), (PIPE, CAPACITY as f64));
    let (window, rate) = echoed(RTT_NS / 2);
    close(window, PIPE / 2.0);
    close(rate, CAPACITY as f64);
    assert!(echoed(0).1.is_finite());
}

#[test]
fn queues_before_a_discovery_are_no_part_of_the_base() {
    let mut path = [1, 2].map(ModelSwitch::new);
    (path[0].queue_ns, path[1].queue_ns) = (300 * MS, 2 * MS);
    let mut flow = HpccController::new(HpccSettings::new(HpccSettings::TARGET));
    let echo = execute(&flow.discovery(), &path);
    assert!(flow.discovered(RTT_NS + 302 * MS, &echo));
    close(flow.window(), PIPE);
    // A later one may find a shorter round trip, and no longer one.
    for (waited_ns, expected) in [(301 * MS, PIPE), (304 * MS, 0.8 * PIPE), (0, 0.8 * PIPE)] {
        path[0].queue_ns = waited_ns;
        let echo = execute(&flow.discovery(), &path);
        assert!(flow.discovered(RTT_NS + 304 * MS, &echo));
        close(flow.window(), expected);
    }
    path[0].queue_ns = u64::from(u32::MAX);
    let echo = execute(&flow.discovery(), &path);
    assert!(flow.discovered(RTT_NS, &echo) && flow.rate().is_finite() && flow.window() > 0.0);
}

#[test]
fn a_new_path_is_sampled_at_once() {
    let mut flow = controller(&[ModelSwitch::new(1)]);
    assert!(flow.is_sample_due(0) && flow.next_deadline() == Some(0));
    flow.sample(0);
    assert!(!flow.is_sample_due(0));
}

#[test]
fn a_flow_that_sends_less_than_a_packet_a_second_finds_that_its_link_is_idle() {
    // 2 Mbit/s: the least window allows a packet of 1,500 bytes every 1.92 s.
    let mut path = [ModelSwitch { capacity: 250_000, ..ModelSwitch::new(1) }];
    let mut flow = controller(&path);
    (0..20).for_each(|_| flow.law.halve());
    assert!(1_500.0 / flow.rate() > 1.9);
    let (mut now_ns, mut next_packet_ns) = (0, 0);
    for _ in 0..30 {
        now_ns = flow.next_deadline().expect("a sample follows").min(next_packet_ns).max(now_ns);
        flow.poll(now_ns);
        if now_ns >= next_packet_ns && flow.may_send() {
            flow.sent(1_500);
            path[0].sent_bytes += 1_500;
            next_packet_ns = now_ns + (1_500.0 / flow.rate() * 1e9) as u64;
        }
        if flow.is_sample_due(now_ns) {
            path[0].clock_ns = now_ns;
            let (mark, program) = flow.sample(now_ns);
            now_ns += RTT_NS;
            flow.echoed(now_ns, RTT_NS, mark, &execute(&program, &path));
        }
    }
    assert_eq!((flow.window(), flow.counts().implausible), (2_500.0, 0), "it has all that the path holds");
}

#[test]
fn a_window_is_in_flight_and_eight_samples_in_it() {
    let path = [ModelSwitch::new(1)];
    let mut flow = sampled(&path);
    let (mut now_ns, mut samples) = (100 * MS, 0);
    let alone_ns = 90 * MS + MAX_PAUSE_NS;
    assert!(!flow.is_sample_due(alone_ns - 1), "there is nothing to acknowledge");
    assert!(flow.is_sample_due(alone_ns) && flow.next_deadline() == Some(alone_ns));
    while flow.may_send() {
        flow.sent(1_000);
        now_ns += 1_000;
        if flow.is_sample_due(now_ns) {
            flow.sample(now_ns);
            samples += 1;
        }
    }
    // The window, and what one sample acknowledges: an eighth.
    assert_eq!((flow.in_flight(), samples), (141_000, 9));
    assert!(!flow.is_sample_due(now_ns));
    let mut small = sampled(&path);
    (0..20).for_each(|_| small.law.halve());
    close(small.window(), INCREASE);
    small.sent(1_000);
    assert!(small.may_send() && !small.is_sample_due(100 * MS));
    // A sample takes 3 % of the data, or comes after eight round trips.
    let until_ns = small.next_deadline().expect("a sample follows");
    assert_eq!(until_ns, 90 * MS + 8 * RTT_NS);
    assert!(small.is_sample_due(until_ns) && !small.is_sample_due(until_ns - 1));
    small.sent(3_000);
    assert!(small.is_sample_due(100 * MS));
}

#[test]
fn silence_halves_the_window_and_gives_up_what_is_in_flight() {
    let path = [ModelSwitch::new(1)];
    let mut flow = sampled(&path);
    while flow.may_send() {
        flow.sent(1_000);
    }
    let late = [flow.sample(100 * MS).0, flow.sample(100 * MS).0];
    let silent_ns = flow.next_deadline().expect("it waits for an echo");
    assert_eq!(silent_ns, 100 * MS + 16 * RTT_NS);
    flow.poll(silent_ns - 1);
    assert!(!flow.may_send());
    flow.poll(silent_ns);
    assert_eq!((flow.window(), flow.in_flight(), flow.counts().silences), (PIPE / 2.0, 0, 1));
    assert!(flow.may_send());
    flow.poll(u64::MAX);
    assert_eq!(flow.counts().silences, 1, "nothing is awaited");
    // What was sent before is no answer to the new window: the reference stays.
    let mut moved = path;
    for mark in late {
        moved[0].pass(2 * MS, 15_000, 0);
        let echo = execute(&flow.programs.sample(1), &moved);
        flow.echoed(silent_ns + MS, 17 * RTT_NS, mark, &echo);
        close(flow.window(), PIPE / 2.0 + INCREASE);
    }
    for round in 1..=9 {
        flow.sent(1_000);
        flow.sample(silent_ns + round * 1_000 * MS);
        flow.poll(silent_ns + round * 1_000 * MS + 16 * RTT_NS);
    }
    close(flow.window(), INCREASE);
}

#[test]
fn another_path_is_discovered_and_keeps_no_words() {
    let path = [ModelSwitch::new(1), ModelSwitch::new(2)];
    for other in [vec![ModelSwitch::new(1), ModelSwitch::new(3)], vec![ModelSwitch::new(1)], Vec::new()] {
        let mut flow = sampled(&path);
        flow.law.halve();
        flow.sent(9_000);
        let (before, program) = flow.sample(100 * MS);
        let stray = execute(&program, &path);
        assert!(sample(&mut flow, &other, 101 * MS), "it is not the path that was discovered");
        assert!(!flow.has_path() && !flow.may_send() && flow.counts().changed_paths == 1);
        assert_eq!((flow.in_flight(), flow.next_deadline()), (0, None), "nothing of it is awaited");
        let ignored = (before, &stray);
        assert!(!flow.echoed(112 * MS, RTT_NS, ignored.0, ignored.1), "one discovery is enough");
        let echo = execute(&flow.discovery(), &other);
        assert_eq!(flow.discovered(2 * RTT_NS, &echo), !other.is_empty());
        if !other.is_empty() {
            assert_eq!((flow.window(), flow.in_flight(), flow.counts().stale), (PIPE / 2.0, 0, 1));
            assert!(flow.is_sample_due(112 * MS), "a new path is sampled at once");
            assert!(!flow.echoed(113 * MS, RTT_NS, ignored.0, ignored.1));
            assert!(!sample(&mut flow, &other, 114 * MS));
            assert_eq!(flow.counts().implausible, 0);
        }
    }
}

#[test]
fn no_echo_makes_a_controller_panic() {
    let mut random = rng::SplitMix64::new(1);
    let mut path = [ModelSwitch::new(1), ModelSwitch::new(2)];
    let mut flow = controller(&path);
    let mut marks = Vec::new();
    for _ in 0..20_000 {
        path.iter_mut().for_each(|switch| switch.pass(random.next_u64() >> 44, random.next_u64() >> 48, 0));
        let is_discovery = random.percent(20);
        let program = if is_discovery {
            flow.discovery()
        } else {
            let (mark, program) = flow.sample(random.next_u64());
            marks.push(mark);
            program
        };
        let mut echo = execute(&program, &path);
        let (is_damaged, first) = (random.percent(50), if random.percent(60) { 8 } else { 0 });
        let damaged = echo.memory.iter_mut().skip(first).take(12).filter(|_| is_damaged);
        damaged.for_each(|byte| *byte = random.next_u64() as u8);
        if random.percent(5) {
            echo.repr.hop = random.next_u64() as i8;
            echo.memory.truncate(random.below(60) as usize);
        }
        let (now_ns, rtt_ns) = (random.next_u64() >> random.below(64), random.next_u64() >> random.below(64));
        if is_discovery {
            flow.discovered(rtt_ns, &echo);
        } else {
            let at = marks.len() - 1 - random.below(marks.len().min(3) as u64) as usize;
            flow.echoed(now_ns, rtt_ns, marks[at], &echo);
        }
        flow.poll(now_ns);
        flow.next_deadline();
        if flow.may_send() {
            flow.sent(random.next_u64() >> 50);
        }
        flow.is_sample_due(now_ns);
        assert!(flow.window().is_finite() && flow.window() >= 0.0 && flow.rate().is_finite(), "{flow:?}");
        assert!(flow.in_flight() <= flow.sent_bytes);
    }
    let HpccCounts { samples, stale, implausible, changed_paths, .. } = flow.counts();
    assert!([samples, stale, implausible, changed_paths].iter().all(|count| *count > 100), "{:?}", flow.counts());
}
