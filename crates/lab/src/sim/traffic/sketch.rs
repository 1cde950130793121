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
        let known = self.exact.entry(key).or_default();
        if known.contains(element) {
            return;
        }
        self.is_cut |= self.kept >= MAX_EXACT;
        if !self.is_cut {
            known.insert(element.to_vec());
            self.kept += 1;
        }
    }

    /// Returns all reports, with what was seen in the current period.
    pub fn all_reports(&self) -> impl Iterator<Item = &SketchReport> {
        self.reports.iter().chain([self.sketch.current()])
    }
}
