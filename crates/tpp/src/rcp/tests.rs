mod network;
mod paths;

use super::*;
use crate::hop_words::program;
use crate::{AccessRights, MemoryMap, SparseMemory, Tcpu};

const RTT_NS: u64 = 10_000_000;
const CAPACITY: u32 = 12_500_000;

/// A switch with one link, whose memory programs read and write.
struct OneLink {
    map: MemoryMap,
    memory: SparseMemory,
}

impl OneLink {
    fn new() -> OneLink {
        let (map, mut memory) = (MemoryMap::new(), SparseMemory::new());
        let address = |name: &str| map.find(name).expect("it is in the map").address;
        memory.fixed(address("Switch:ID"), 1);
        memory.fixed(address("Link:Capacity"), CAPACITY.into());
        for word in ["Link:AppSpecific_0", "Link:AppSpecific_1"] {
            memory.word(address(word) as u16, 0);
        }
        OneLink { map, memory }
    }

    fn set(&mut self, name: &str, value: u64) {
        self.memory.fixed(self.map.find(name).expect("it is in the map").address, value);
    }

    /// Sets the clock, the bytes that were offered, and those that wait.
    fn at(&mut self, clock_ns: u64, offered: u64, queued: u64) -> &mut OneLink {
        let values = [("Switch:Clock", clock_ns), ("Link:RX-Bytes", offered), ("Link:Queued-Bytes", queued)];
        values.into_iter().for_each(|(name, value)| self.set(name, value));
        self
    }

    /// Executes programs, and returns them with their words.
    fn execute_all(&mut self, programs: &[TinyProgram]) -> Vec<TinyProgram> {
        programs.iter().map(|program| self.execute(program)).collect()
    }

    /// Executes a program, and returns it with its words.
    fn execute(&mut self, program: &TinyProgram) -> TinyProgram {
        let mut packet = program.packet(&[]);
        Tcpu::execute(&mut packet, &mut self.memory, &AccessRights::all());
        TinyProgram::decode(&wire::tpp::Packet::new_checked(&packet[..]).expect("it stays well-formed"))
    }

    /// Returns fair rate and version.
    fn words(&mut self) -> [u32; 2] {
        let read = self.execute(&program(".hops 1\nPUSH [Link:AppSpecific_0]\nPUSH [Link:AppSpecific_1]"));
        let [rate, version] = [0, 4].map(|at| u32::from_be_bytes(read.memory[at..at + 4].try_into().expect("a word")));
        [rate_of(rate).unwrap_or(0.0) as u32, version]
    }
}

fn controller(link: &mut OneLink) -> RcpController {
    let mut controller = RcpController::new(RcpSettings::new(Fairness::MaxMin));
    assert!(!controller.has_path());
    let echoes = link.execute_all(&controller.discovery());
    assert!(controller.discovered(&echoes));
    assert!(controller.has_path());
    controller
}

/// Lets a controller collect a sample, and returns its update.
fn collect(controller: &mut RcpController, link: &mut OneLink, now_ns: u64) -> Option<TinyProgram> {
    let echoes = link.execute_all(&controller.collection());
    controller.collected(now_ns, RTT_NS, &echoes).pop()
}

#[test]
fn a_link_without_a_rate_gets_a_first_one_and_grows() {
    let mut link = OneLink::new();
    let mut flow = controller(&mut link);
    let mut now = 5_000_000_000;
    let update = collect(&mut flow, link.at(now, 0, 0), now).expect("a first rate");
    link.execute(&update);
    assert_eq!(link.words(), [125_000, now as u32]);
    assert_eq!(flow.rate(), 125_000.0);
    // A sample each round trip makes a delay of two round trips, so the rate grows by 20 %: 1.2^25 < 100 < 1.2^26.
    for round in 0..26 {
        assert!(link.words()[0] < CAPACITY, "{round}");
        now += RTT_NS;
        let update = collect(&mut flow, link.at(now, 0, 0), now).expect("a new rate");
        link.execute(&update);
    }
    assert_eq!(link.words()[0], CAPACITY, "an idle link offers everything");
    // The switch restarts: its clock and all words begin at zero.
    let mut restarted = OneLink::new();
    now += RTT_NS;
    let update = collect(&mut flow, restarted.at(1_000, 0, 0), now).expect("a first rate");
    restarted.execute(&update);
    assert_eq!((restarted.words(), flow.counts().first_rates), ([125_000, 1_000], 2));
    now += RTT_NS;
    let update = collect(&mut flow, restarted.at(1_000 + RTT_NS, 0, 0), now).expect("it grows again");
    restarted.execute(&update);
    assert_eq!(restarted.words()[0], 150_000);
}

#[test]
fn many_senders_together_have_the_gain_of_one() {
    let settings = RcpSettings::new(Fairness::MaxMin);
    let state = |rate, since_s| {
        let capacity = f64::from(CAPACITY);
        LinkState { rate, capacity, load: 1.2 * capacity, queued: 50_000.0, since_s, delay_s: 0.01, path_links: 1 }
    };
    let one = settings.next_rate(&state(1e6, 0.01));
    let many = (0..99).fold(1e6, |rate, _| settings.next_rate(&state(rate, 0.01 / 99.0)));
    assert!((many / one - 1.0).abs() < 0.02, "{one} and {many}");
    let late = settings.next_rate(&state(1e6, 1.0));
    assert_eq!(late, one, "a link that was idle for long takes one step");
}

#[test]
fn of_two_updates_from_the_same_version_the_first_is_stored() {
    let mut link = OneLink::new();
    let (mut one, mut other) = (controller(&mut link), controller(&mut link));
    let mut now = 1_000_000;
    for flow in [&mut one, &mut other] {
        collect(flow, link.at(now, 0, 0), now).into_iter().for_each(|update| _ = link.execute(&update));
    }
    now += RTT_NS;
    let load = CAPACITY as u64 / 100;
    let first = collect(&mut one, link.at(now, load, 0), now).expect("an update");
    let second = collect(&mut other, link.at(now + 50, load + 9_000, 0), now).expect("an update");
    link.execute(&first);
    let stored = link.words();
    link.execute(&second);
    assert_eq!(link.words(), stored);
    // Even if the rate is the same again, the version is another.
    let third = collect(&mut one, link.at(now + RTT_NS, 2 * load, 0), now + RTT_NS).expect("an update");
    let stale = TinyProgram { memory: second.memory.clone(), ..third.clone() };
    link.execute(&third);
    let stored = link.words();
    link.execute(&stale);
    assert_eq!(link.words(), stored);
}

#[test]
fn flows_get_the_share_of_their_fairness() {
    let rate = |fairness: Fairness, links: &[f64]| fairness.rate(links.iter().copied());
    assert_eq!(rate(Fairness::MaxMin, &[3.0, 2.0, 5.0]), Some(2.0));
    assert_eq!(rate(Fairness::Alpha(1.0), &[2.0, 2.0]), Some(1.0));
    let nearly = rate(Fairness::Alpha(200.0), &[3e9, 2e9, 5e9]).expect("there are links");
    assert!((nearly / 2e9 - 1.0).abs() < 1e-3, "{nearly}");
    assert_eq!(rate(Fairness::MaxMin, &[]), None);
}

#[test]
fn silence_slows_a_sender_down_and_another_path_is_discovered() {
    let mut link = OneLink::new();
    let mut flow = controller(&mut link);
    collect(&mut flow, link.at(7, 0, 0), 0);
    assert_eq!(flow.rate(), 125_000.0);
    (0..SILENCE).for_each(|_| _ = flow.collection());
    assert_eq!(flow.rate(), 125_000.0);
    flow.collection();
    assert_eq!((flow.rate(), flow.counts().lost), (62_500.0, 1));
    let mut echoes = link.execute_all(&flow.collection());
    echoes[0].repr.hop = 0;
    assert!(flow.collected(1, RTT_NS, &echoes).is_empty() && !flow.has_path());
}

#[test]
fn no_echo_makes_a_controller_panic() {
    let mut random = rng::SplitMix64::new(1);
    let mut link = OneLink::new();
    let mut flow = controller(&mut link);
    for _ in 0..5_000 {
        let is_discovery = random.percent(10);
        let mut echoes = link.execute_all(&if is_discovery { flow.discovery() } else { flow.collection() });
        for echo in &mut echoes {
            let is_damaged = random.percent(50);
            // Damaged identities end the sample, so some stay.
            let first = if random.percent(50) { 8 } else { 0 };
            let damaged = echo.memory.iter_mut().skip(first).filter(|_| is_damaged);
            damaged.for_each(|byte| *byte = random.next_u64() as u8);
            if random.percent(10) {
                echo.repr.hop = random.next_u64() as i8;
            }
        }
        if is_discovery {
            flow.discovered(&echoes);
        } else {
            flow.collected(random.next_u64() >> 20, random.next_u64() >> 40, &echoes);
        }
        assert!(flow.rate().is_finite() && flow.rate() >= 0.0);
    }
}
