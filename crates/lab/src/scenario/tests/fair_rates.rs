//! Flows of RCP* on long paths.

use std::collections::BTreeMap;

use super::*;
use tpp::rcp::MAX_HOPS;
use tpp::{AccessRights, MemoryMap, SparseMemory, Tcpu};

/// Capacity of all links, in bytes a second.
const CAPACITY: u64 = 5_000_000;

/// A hub that executes programs at each port, whose words they may write.
struct FairHub {
    hub: Hub,
    number: u64,
    map: MemoryMap,
    /// The memory of each port, and the bytes that were offered to it.
    ports: BTreeMap<u32, (SparseMemory, u64)>,
}

impl FairHub {
    fn new(place: usize) -> FairHub {
        let (number, map) = (place as u64 + 1, MemoryMap::new());
        FairHub { hub: Hub(vec![1, 2, 3]), number, map, ports: BTreeMap::new() }
    }

    /// Counts a frame, and executes its program.
    fn leave(&mut self, now: Time, frame: &mut Frame) {
        let (map, port) = (&self.map, frame.port.0);
        let address = |name: &str| map.find(name).expect("it is in the map").address;
        let (memory, offered) = self.ports.entry(port).or_insert_with(|| {
            let mut memory = SparseMemory::new();
            for word in ["Link:AppSpecific_0", "Link:AppSpecific_1"] {
                memory.word(address(word) as u16, 0);
            }
            (memory, 0)
        });
        *offered += frame.data.len() as u64;
        let Some(place) = wire::tpp::find(&frame.data) else { return };
        let words = [
            ("Switch:ID", self.number),
            ("Link:ID", port.into()),
            ("Link:Capacity", CAPACITY),
            ("Switch:Clock", now.as_ns()),
            ("Link:RX-Bytes", *offered),
        ];
        words.into_iter().for_each(|(name, value)| memory.fixed(address(name), value));
        Tcpu::execute(&mut frame.data[place.start..place.end], memory, &AccessRights::all());
    }
}

impl Device for FairHub {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        let before = output.len();
        self.hub.step(now, input, output);
        output[before..].iter_mut().for_each(|frame| self.leave(now, frame));
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl Element for FairHub {
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// Returns a row of switches with a host on each.
pub fn line(switches: u32) -> Topology {
    let rate = Some(Rate::from_bps(CAPACITY * 8));
    let shape = Shape { rate, delay: Delay::from_us(50), ..Shape::default() };
    generate(NetworkKind::Line { switches, hosts: 1 }, shape, shape, 510).expect("it can be made")
}

/// Reads a scenario for a topology.
pub fn read_for(topology: &Topology, text: &str) -> (Option<Scenario>, String) {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("scenario.toml", text);
    let scenario = crate::scenario::read(file, text, topology, 510, &mut diagnostics);
    (scenario, diagnostics.render(&map, false))
}

#[test]
fn flows_fill_paths_of_one_and_of_several_programs() {
    for switches in [2, 13, 30] {
        let topology = line(switches);
        let text = format!(
            "duration = \"1s\"\n[[traffic]]\nkind = \"rcp\"\nfrom = \"h1\"\nto = \"h{switches}\"\nsize = 1000\n\
             interval = \"5ms\"\n"
        );
        let (scenario, findings) = read_for(&topology, &text);
        let scenario = scenario.unwrap_or_else(|| panic!("{findings}"));
        let make: MakeElement = Arc::new(|place| Box::new(FairHub::new(place)));
        let mut run = prepare(&topology, &scenario, 1, &ScenarioFiles::default(), make);
        run.run(1, &mut |_| {});
        let results = run.results(&topology, &scenario);
        let (flow, rcp) = (&results.traffic[0], results.traffic[0].rcp.as_ref().expect("it has controllers"));
        let share = (flow.measured.received * 1000 + rcp.program_bytes) as f64 / CAPACITY as f64;
        // The rate grows from a fortieth of the capacity.
        assert!((0.6..=1.0).contains(&share), "{switches} switches: {share}, {rcp:?}");
        // Several samples are under way when the first comes back.
        let is_right = rcp.counts.lost == 0 && rcp.counts.first_rates >= u64::from(switches);
        assert!(is_right, "{switches} switches: {rcp:?}");
    }
}

#[test]
fn paths_and_intervals_beyond_the_words_of_programs_are_refused() {
    let topology = line(MAX_HOPS as u32 + 1);
    let findings = |to: usize, interval: &str| {
        let text = format!("[[traffic]]\nkind = \"rcp\"\nfrom = \"h1\"\nto = \"h{to}\"\ninterval = \"{interval}\"\n");
        read_for(&topology, &text).1
    };
    assert_eq!(findings(MAX_HOPS, "2s"), "");
    let long = findings(MAX_HOPS + 1, "5ms");
    assert!(long.contains("127 switches from `h1` to `h127`; the maximum for fair rates is 126"), "{long}");
    let rare = findings(MAX_HOPS, "2001ms");
    assert!(rare.contains("samples its links every 2.001s; the maximum is 2s"), "{rare}");
}
