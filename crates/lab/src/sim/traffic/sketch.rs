//! Counts the different elements that passed each link, from the programs that a host receives ([`tpp::sketch`]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use switch::Time;
use tpp::MemoryMap;
use tpp::shim::{CollectedProgram, PacketFlow};
use tpp::sketch::{HostSketch, LinkPlace, SketchHash, SketchReport};
use wire::tpp::Status;

/// Words of a program that tell the link: the number of the switch, and the port by any of its names.
const SWITCH: &str = "Switch:ID";
const PORTS: [&str; 2] = ["PacketMetadata:OutputPort", "Link:ID"];

/// Maximum number of elements of all links and periods that a host remembers to tell the exact numbers.
const MAX_EXACT: usize = 1_000_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedElement {
    /// Source addresses.
    Sources,
    /// Destination addresses.
    Destinations,
    /// Addresses, protocol and ports.
    Flows,
}

impl CountedElement {
    /// Returns the word for it in scenarios and reports.
    pub fn word(self) -> &'static str {
        match self {
            CountedElement::Sources => "sources",
            CountedElement::Destinations => "destinations",
            CountedElement::Flows => "flows",
        }
    }

    fn bytes(self, flow: &PacketFlow) -> Vec<u8> {
        let address = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        match self {
            CountedElement::Sources => address(flow.source),
            CountedElement::Destinations => address(flow.destination),
            CountedElement::Flows => {
                let (source, destination) = flow.ports.unwrap_or_default();
                let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
                [address(flow.source), address(flow.destination), vec![flow.protocol], ports].concat()
            }
        }
    }
}

/// Settings of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCount {
    /// What is counted.
    pub element: CountedElement,
    /// The hash, the same at all hosts.
    pub hash: SketchHash,
    /// Length of a period in nanoseconds.
    pub period_ns: u64,
}

/// Returns the places of the words of switch and port in a program's words of a hop; `None` if it lacks one of them.
pub fn link_words(names: &[&str]) -> Option<(usize, usize)> {
    let at = |wanted: &str| names.iter().position(|name| *name == wanted);
    Some((at(SWITCH)?, PORTS.iter().find_map(|port| at(port))?))
}

/// The sketch of a host, its reports, and for comparison the elements themselves.
#[derive(Clone, Debug)]
pub struct LinkCounter {
    settings: LinkCount,
    sketch: HostSketch,
    map: MemoryMap,
    /// Reports of past periods.
    pub reports: Vec<SketchReport>,
    /// The elements of each link in each period.
    pub exact: BTreeMap<(u64, LinkPlace), BTreeSet<Vec<u8>>>,
    kept: usize,
    /// Whether elements were not kept, as there are too many.
    pub is_cut: bool,
}

impl LinkCounter {
    /// Creates the counter of a host.
    pub fn new(settings: LinkCount) -> LinkCounter {
        LinkCounter {
            settings,
            sketch: HostSketch::new(settings.hash, settings.period_ns),
            map: MemoryMap::new(),
            reports: Vec::new(),
            exact: BTreeMap::new(),
            kept: 0,
            is_cut: false,
        }
    }

    /// Counts the packet of a program.
    pub fn count(&mut self, now: Time, flow: &PacketFlow, collected: &CollectedProgram) {
        let program = collected.program();
        // A word that a switch did not write is no link.
        if program.repr.hop <= 0 || program.repr.status.contains(Status::ABSENT) {
            return;
        }
        let element = self.settings.element.bytes(flow);
        for hop in program.words_by_hop(&self.map) {
            let names: Vec<&str> = hop.iter().map(|(name, _)| name.as_str()).collect();
            let Some((switch, port)) = link_words(&names) else { return };
            let link = LinkPlace { switch: hop[switch].1, port: hop[port].1 };
            self.reports.extend(self.sketch.observe(now.as_ns(), link, &element));
            self.remember((self.sketch.current().period, link), &element);
        }
    }

    fn remember(&mut self, key: (u64, LinkPlace), element: &[u8]) {
        if self.exact.get(&key).is_some_and(|known| known.contains(element)) {
            return;
        }
        self.is_cut |= self.kept >= MAX_EXACT;
        if !self.is_cut {
            self.exact.entry(key).or_default().insert(element.to_vec());
            self.kept += 1;
        }
    }

    /// Returns all reports, with what was seen in the current period.
    pub fn all_reports(&self) -> impl Iterator<Item = &SketchReport> {
        self.reports.iter().chain([self.sketch.current()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::{Diagnostics, SourceMap};
    use tpp::{AccessRights, SparseMemory, Tcpu};

    /// Executes a program at two switches. The second may lack its port.
    fn collected(text: &str, has_port: bool) -> CollectedProgram {
        let (map, mut sources, mut diagnostics) = (MemoryMap::new(), SourceMap::new(), Diagnostics::new());
        let program = tpp::assemble(&mut sources, "a.tpp", text, &map, &mut diagnostics).expect("it has no mistakes");
        let mut bytes = program.packet(&[]);
        for (switch, port) in [(7, Some(2)), (8, has_port.then_some(3))] {
            let mut memory = SparseMemory::new();
            let mut set = |name: &str, value| memory.fixed(map.find(name).expect("it is there").address, value);
            set("Switch:ID", switch);
            port.into_iter().for_each(|port| set("Link:ID", port));
            Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
        }
        CollectedProgram { flow: None, bytes }
    }

    fn counter(element: CountedElement) -> LinkCounter {
        LinkCounter::new(LinkCount { element, hash: SketchHash { bits: 64, seed: 1 }, period_ns: 1_000 })
    }

    fn flow(source: u8, port: u16) -> PacketFlow {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        PacketFlow { source: address(source), destination: address(9), protocol: 6, ports: Some((port, 80)) }
    }

    #[test]
    fn elements_are_flows_or_addresses() {
        for (element, expected) in
            [(CountedElement::Flows, 3), (CountedElement::Sources, 2), (CountedElement::Destinations, 1)]
        {
            let mut counter = counter(element);
            let program = collected("PUSH [Switch:ID]\nPUSH [Link:ID]", true);
            for flow in [flow(1, 5), flow(1, 6), flow(2, 5), flow(1, 5)] {
                counter.count(Time::from_ns(10), &flow, &program);
            }
            let links: Vec<_> =
                counter.exact.iter().map(|((_, link), known)| (link.switch, link.port, known.len())).collect();
            assert_eq!(links, [(7, 2, expected), (8, 3, expected)], "{element:?}");
        }
    }

    #[test]
    fn links_that_no_switch_told_are_not_counted() {
        let mut counter = counter(CountedElement::Flows);
        counter.count(Time::ZERO, &flow(1, 5), &collected("PUSH [Switch:ID]\nPUSH [Link:ID]", false));
        counter.count(Time::ZERO, &flow(1, 5), &collected("PUSH [Switch:ID]", true));
        assert!(counter.exact.is_empty() && counter.all_reports().all(|report| report.sketch.is_empty()));
        let names = ["Link:ID", "Switch:Clock", "Switch:ID"];
        assert_eq!((link_words(&names), link_words(&names[..2])), (Some((2, 0)), None));
    }

    #[test]
    fn periods_are_reported_when_they_are_over() {
        let mut counter = counter(CountedElement::Flows);
        let program = collected("PUSH [Switch:ID]\nPUSH [Link:ID]", true);
        for (at_ns, port) in [(10, 1), (20, 2), (2_500, 1)] {
            counter.count(Time::from_ns(at_ns), &flow(1, port), &program);
        }
        let periods: Vec<_> =
            counter.all_reports().map(|report| (report.period, report.sketch.links().count())).collect();
        assert_eq!(periods, [(0, 2), (2, 2)]);
        let known: Vec<_> = counter.exact.iter().map(|((period, _), known)| (*period, known.len())).collect();
        assert_eq!(known, [(0, 2), (0, 2), (2, 1), (2, 1)]);
    }

    #[test]
    fn elements_beyond_the_maximum_are_not_kept() {
        let mut counter = counter(CountedElement::Flows);
        counter.kept = MAX_EXACT;
        counter.count(Time::ZERO, &flow(1, 5), &collected("PUSH [Switch:ID]\nPUSH [Link:ID]", true));
        assert!(counter.is_cut && counter.exact.is_empty());
        assert_eq!(counter.all_reports().map(|report| report.sketch.links().count()).sum::<usize>(), 2);
    }
}
