//! Generates topologies that need no file: line, ring, star, leaf-spine, fat tree, dumbbell, random.
//!
//! Switches run the built-in router with shortest paths. Host `n` has the address `10.a.b.c/8`, where `a.b.c` is `n`
//! counted from 1. All hosts are in one network and routers answer ARP for all of them, so hosts need no gateway.

use std::net::Ipv4Addr;

use diagnostics::Span;
use wire::ethernet::Address;

use crate::random::Random;
use crate::topology::{
    End, Entries, Host, HostShim, KernelUse, Link, MAX_NODES, Node, ProgramEdge, Shape, SwitchProgram, Topology,
    TopologySwitch,
};

/// A kind of topology and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// `switches` in a row, with `hosts` on each.
    Line {
        /// Number of switches.
        switches: u32,
        /// Number of hosts on each switch.
        hosts: u32,
    },
    /// A line whose ends are joined.
    Ring {
        /// Number of switches, at least 3.
        switches: u32,
        /// Number of hosts on each switch.
        hosts: u32,
    },
    /// One switch and its hosts.
    Star {
        /// Number of hosts.
        hosts: u32,
    },
    /// Every leaf linked to every spine, with hosts on the leaves.
    LeafSpine {
        /// Number of leaves.
        leaves: u32,
        /// Number of spines.
        spines: u32,
        /// Number of hosts on each leaf.
        hosts: u32,
    },
    /// The fat tree of `k`-port switches: `k` pods of `k/2` edge and `k/2` aggregation switches, `(k/2)^2` cores,
    /// `k^3/4` hosts.
    FatTree {
        /// Number of ports of a switch: even, 2 to 48.
        k: u32,
    },
    /// Two switches with a link between them, `hosts` on each.
    Dumbbell {
        /// Number of hosts on each side.
        hosts: u32,
    },
    /// A random tree of `switches` with `extra` additional links and `hosts` on each switch.
    Random {
        /// Number of switches.
        switches: u32,
        /// Number of links in addition to those of the tree.
        extra: u32,
        /// Number of hosts on each switch.
        hosts: u32,
        /// Seed from which the links are drawn.
        seed: u64,
    },
}

/// The reason that a topology cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// A number is out of its range.
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        /// Name of the parameter.
        what: &'static str,
        /// Value that was requested.
        value: u32,
        /// Range of valid values.
        range: &'static str,
    },
    /// A switch would have too many links.
    #[error("a switch would have {links} links, but has only {ports} ports")]
    Ports {
        /// Number of links of the switch.
        links: u32,
        /// Maximum number of links of a switch.
        ports: u32,
    },
    /// The topology would have too many hosts and switches.
    #[error("the network would have {0} hosts and switches; the maximum is {MAX_NODES}")]
    Nodes(u64),
}

/// Maximum number of links in addition to those of the tree.
const MAX_EXTRA: u32 = 100_000;

/// Generates a topology. Its links have `shape`, except the middle link of a dumbbell, which has `middle`.
/// `max_port` is the largest port number of a switch.
///
/// # Errors
/// Returns an error if the topology cannot be generated.
pub fn generate(kind: NetworkKind, shape: Shape, middle: Shape, max_port: u32) -> Result<Topology, Impossible> {
    check(kind)?;
    let mut build = Build { topology: Topology::default(), next_port: Vec::new(), shape };
    match kind {
        NetworkKind::Line { switches, hosts } => build.line(switches, hosts),
        NetworkKind::Ring { switches, hosts } => {
            build.line(switches, hosts);
            build.join(switches as usize - 1, 0, shape);
        }
        NetworkKind::Star { hosts } => build.line(1, hosts),
        NetworkKind::Dumbbell { hosts } => {
            build.switches("s", 2);
            (0..2).for_each(|switch| build.hosts(switch, hosts));
            build.join(0, 1, middle);
        }
        NetworkKind::LeafSpine { leaves, spines, hosts } => {
            build.switches("leaf", leaves);
            build.switches("spine", spines);
            for leaf in 0..leaves as usize {
                build.hosts(leaf, hosts);
                (0..spines as usize).for_each(|spine| build.join(leaf, leaves as usize + spine, shape));
            }
        }
        NetworkKind::FatTree { k } => build.fat_tree(k as usize),
        NetworkKind::Random { switches, extra, hosts, seed } => build.random(switches as usize, extra, hosts, seed),
    }
    let Build { topology, next_port, .. } = build;
    match next_port.into_iter().max() {
        Some(next) if next - 1 > max_port => Err(Impossible::Ports { links: next - 1, ports: max_port }),
        _ => Ok(topology),
    }
}

fn check(kind: NetworkKind) -> Result<(), Impossible> {
    let range =
        |what, value, fits: bool, range| if fits { Ok(()) } else { Err(Impossible::OutOfRange { what, value, range }) };
    let nodes = |switches: u32, hosts: u64| u64::from(switches) + hosts;
    let per = |switches: u32, hosts: u32| nodes(switches, u64::from(switches) * u64::from(hosts));
    let count = match kind {
        NetworkKind::Line { switches, hosts } | NetworkKind::Random { switches, hosts, .. } => {
            range("the number of switches", switches, switches >= 1, "1 or more")?;
            if let NetworkKind::Random { extra, .. } = kind {
                range("the number of extra links", extra, extra <= MAX_EXTRA, "100000 or fewer")?;
            }
            per(switches, hosts)
        }
        NetworkKind::Ring { switches, hosts } => {
            range("the number of switches", switches, switches >= 3, "3 or more")?;
            per(switches, hosts)
        }
        NetworkKind::Star { hosts } => nodes(1, hosts.into()),
        NetworkKind::Dumbbell { hosts } => per(2, hosts),
        NetworkKind::LeafSpine { leaves, spines, hosts } => {
            range("the number of leaves", leaves, leaves >= 1, "1 or more")?;
            range("the number of spines", spines, spines >= 1, "1 or more")?;
            per(leaves, hosts) + u64::from(spines)
        }
        NetworkKind::FatTree { k } => {
            range("k", k, k.is_multiple_of(2) && (2..=48).contains(&k), "an even number from 2 to 48")?;
            nodes(k * k * 5 / 4, u64::from(k).pow(3) / 4)
        }
    };
    if count > MAX_NODES as u64 { Err(Impossible::Nodes(count)) } else { Ok(()) }
}

struct Build {
    topology: Topology,
    /// The next free port of each switch.
    next_port: Vec<u32>,
    shape: Shape,
}

impl Build {
    fn switches(&mut self, prefix: &str, count: u32) {
        for number in 1..=count {
            self.topology.switches.push(TopologySwitch {
                name: format!("{prefix}{number}"),
                program: SwitchProgram::Router,
                entries: Entries::ShortestPaths,
                cpu_port: None,
                p4runtime: None,
                edge: ProgramEdge::default(),
                device_id: None,
                kernel: KernelUse::Off,
                span: Span::default(),
            });
            self.next_port.push(1);
        }
    }

    fn port(&mut self, switch: usize) -> End {
        let port = self.next_port[switch];
        self.next_port[switch] += 1;
        End { node: Node::Switch(switch), port }
    }

    fn join(&mut self, one: usize, other: usize, shape: Shape) {
        let ends = [self.port(one), self.port(other)];
        self.topology.links.push(Link { ends, shape, span: Span::default() });
    }

    fn hosts(&mut self, switch: usize, count: u32) {
        for _ in 0..count {
            let at = self.topology.hosts.len();
            let number = at as u32 + 1;
            let [_, a, b, c] = number.to_be_bytes();
            self.topology.hosts.push(Host {
                name: format!("h{number}"),
                address: Some((Ipv4Addr::new(10, a, b, c), 8)),
                mac: Address([0x02, 0x00, 0x00, a, b, c]),
                gateway: None,
                neighbours: Vec::new(),
                commands: Vec::new(),
                lacks_shim: false,
                shim: HostShim::default(),
                memory: None,
                is_store: false,
                is_durable: false,
                span: Span::default(),
            });
            let ends = [End { node: Node::Host(at), port: 0 }, self.port(switch)];
            self.topology.links.push(Link { ends, shape: self.shape, span: Span::default() });
        }
    }

    fn line(&mut self, switches: u32, hosts: u32) {
        self.switches("s", switches);
        for switch in 0..switches as usize {
            self.hosts(switch, hosts);
            if switch > 0 {
                self.join(switch - 1, switch, self.shape);
            }
        }
    }

    fn fat_tree(&mut self, k: usize) {
        let half = k / 2;
        for pod in 1..=k {
            self.switches(&format!("pod{pod}-edge"), half as u32);
            self.switches(&format!("pod{pod}-agg"), half as u32);
        }
        self.switches("core", (half * half) as u32);
        let core = k * k;
        for pod in 0..k {
            let (edge, aggregation) = (pod * k, pod * k + half);
            for at in 0..half {
                self.hosts(edge + at, half as u32);
                for other in 0..half {
                    self.join(edge + at, aggregation + other, self.shape);
                }
            }
            for at in 0..half {
                for other in 0..half {
                    self.join(aggregation + at, core + at * half + other, self.shape);
                }
            }
        }
    }

    fn random(&mut self, switches: usize, extra: u32, hosts: u32, seed: u64) {
        let mut random = Random::new(seed, 0);
        self.switches("s", switches as u32);
        for switch in 0..switches {
            self.hosts(switch, hosts);
            if switch > 0 {
                self.join(random.below(switch as u64) as usize, switch, self.shape);
            }
        }
        for _ in 0..if switches > 1 { extra } else { 0 } {
            let one = random.below(switches as u64) as usize;
            let other = (one + 1 + random.below(switches as u64 - 1) as usize) % switches;
            self.join(one, other, self.shape);
        }
    }
}
