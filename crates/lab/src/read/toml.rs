//! Reads `lab.toml`.
//!
//! ```toml
//! [defaults]                        # apply where a host, switch or link does not override them
//! program = "router.p4"             # or "builtin:router"
//! entries = "shortest-paths"        # or a file's name
//! link = { rate = "1Gbps", delay = "10us" }
//! lease = "1s"                      # of the stores
//! shards = 2                        # of the stores: each has a chain with another head
//! hold = "piggyback"                # of the resilient switches; "local" if omitted
//! tpp = "read"                      # tiny packet programs: "off" (the default), "read", "write", "write-registers"
//! tpp_limit = 1000                  # programs executed a second for each input port
//! memory_rate = "8Gbps"             # of answers to READs, on each link to a memory server
//! int = "sink"                      # INT: "off" (the default), "transit", or "sink" at the ports to hosts
//!
//! [hosts.h1]
//! ip = "10.0.1.1/24"
//! mac = "02:00:00:00:01:01"         # generated if left out
//! gateway = "10.0.1.254"
//! neighbours = { "10.0.1.254" = "02:00:00:00:01:fe" }
//! commands = ["sysctl -q -w net.ipv6.conf.all.disable_ipv6=1"]
//! shim = false                      # has no shim for tiny packet programs; or its rules, live only:
//!                                   # { insert = ["queues.tpp to 10.0.0.0/8 tcp"], policy = "policy" }
//!
//! [hosts.m1]                        # a memory server for the @elastic tables of the switch at its link
//! ip = "10.9.0.1/24"
//! memory = "64MiB"                  # also B, KiB, GiB
//!
//! [switches.s1]
//! program = "firewall.p4"
//! entries = "s1.json"
//! cpu_port = 510
//! p4runtime = true                  # serve controllers; or an address: "127.0.0.1:50051"
//! device_id = 7
//! kernel = "auto"                   # kernel ports: "off" (the default), "auto" or "require"; live only
//! tpp_strip = [1, 2]                # ports to hosts without a shim
//! tpp_refuse = [2]                  # ports to hosts that are not trusted
//!
//! [stores.a]                        # stores of resilient state; all form one chain, in the order of their names
//! durable = true                    # keeps its rows on disk; live only
//! [operator]                        # optional: removes stores that crash from the chain, and adds others
//! chain = 3                         # the length of the chain; other stores are spares
//!
//! [[links]]
//! ends = ["h1", "s1:1"]
//! rate = "10Mbps"                   # bits per second; "unlimited": no serialisation time
//! delay = "1ms"
//! queue = 64                        # frames that wait at each end
//! loss = 0.01                       # probability, 0 to 1; also corruption, duplication, reordering
//! reorder_by = "1ms"
//! mtu = 1500
//! ```

use std::collections::BTreeSet;

use diagnostics::{Diagnostic, Diagnostics, FileId, Span, names};
use toml::de::{DeTable, DeValue};

use super::document::{self, Reader};
use super::shim::ShimValue;
use super::{default_mac, field};
use crate::topology::{
    Delay, End, Endpoint, Entries, Hold, Host, HostShim, IntRole, KernelUse, Lease, Link, Node, ProgramEdge, Rate,
    Shape, Size, SwitchProgram, TinyAccess, Topology, TopologySwitch,
};

/// The name of the built-in router in a file.
const ROUTER: &str = "builtin:router";

/// The name of computed entries in a file.
const SHORTEST_PATHS: &str = "shortest-paths";

/// The rate in a file of a link without serialisation time.
pub const UNLIMITED: &str = "unlimited";

/// The settings that enable tiny packet programs.
pub(super) const TPP_ON: &str = "tpp = \"read\", \"write\" or \"write-registers\"";

/// Maximum number of stores of a chain.
const MAX_STORES: usize = 5;

/// Maximum number of stores with an operator, including spare ones.
const MAX_OPERATED_STORES: usize = 16;

/// Maximum memory that a host lends, in bytes: 64 GiB.
const MAX_MEMORY: u64 = 64 << 30;

/// Maximum number of shards of resilient state.
const MAX_SHARDS: u32 = 8;

/// Length of the chain with an operator, if the file gives none and there are that many stores.
const CHAIN_LENGTH: usize = 3;

const DEFAULT_KEYS: [&str; 13] = [
    "program",
    "entries",
    "p4runtime",
    "kernel",
    "link",
    "lease",
    "shards",
    "hold",
    "tpp",
    "tpp_limit",
    "int",
    "memory_rate",
    "shim",
];

const LINK_KEYS: [&str; 9] =
    ["rate", "delay", "loss", "corruption", "duplication", "reordering", "reorder_by", "queue", "mtu"];

/// Reads as much as possible; every mistake becomes a diagnostic.
pub fn read(file: FileId, text: &str, max_port: u32, diagnostics: &mut Diagnostics) -> Topology {
    let mut topology = Topology::default();
    let Some(document) = document::parse(file, text, diagnostics) else { return topology };
    let mut reader = Reader { file, diagnostics, max_port };
    let top = document.get_ref();
    reader.known(top, "a topology", &["defaults", "hosts", "switches", "stores", "operator", "links"]);
    let defaults = reader.defaults(top);
    (topology.lease, topology.shards) = (defaults.lease, defaults.shards);
    (topology.hold, topology.tpp, topology.tpp_limit) = (defaults.hold, defaults.tpp, defaults.tpp_limit);
    topology.int = defaults.int;
    reader.hosts(top, &defaults, &mut topology);
    reader.memory_rate(top, &mut topology);
    reader.stores(top, &mut topology);
    reader.operator(top, &mut topology);
    reader.switches(top, &defaults, &mut topology);
    reader.links(top, &defaults, &mut topology);
    topology
}

struct Defaults {
    program: SwitchProgram,
    entries: Entries,
    p4runtime: Option<Endpoint>,
    kernel: KernelUse,
    shape: Shape,
    lease: Lease,
    shards: Option<u16>,
    hold: Hold,
    tpp: TinyAccess,
    tpp_limit: Option<u32>,
    int: IntRole,
    shim: HostShim,
}

impl Reader<'_> {
    fn defaults(&mut self, top: &DeTable<'_>) -> Defaults {
        let mut defaults = Defaults {
            program: SwitchProgram::Unsaid,
            entries: Entries::None,
            p4runtime: None,
            kernel: KernelUse::default(),
            shape: Shape::default(),
            lease: Lease::default(),
            shards: None,
            hold: Hold::default(),
            tpp: TinyAccess::default(),
            tpp_limit: None,
            int: IntRole::default(),
            shim: HostShim::default(),
        };
        if let Some(table) = self.table(top, "defaults") {
            self.known(table, "`defaults`", &DEFAULT_KEYS);
            defaults.program = self.program(table).unwrap_or(defaults.program);
            defaults.entries = self.entries(table).unwrap_or(defaults.entries);
            defaults.p4runtime = self.endpoint(table).unwrap_or_default();
            if let Some(Endpoint::At(_)) = defaults.p4runtime {
                let span = self.get(table, "p4runtime").map_or(Span::new(self.file, 0, 0), |(_, span)| span);
                self.wrong(span, "several switches cannot share an address: write p4runtime = true here");
            }
            defaults.kernel = self.word(table, "kernel", &KernelUse::WORDS).unwrap_or(defaults.kernel);
            defaults.lease = self.lease(table).unwrap_or(defaults.lease);
            defaults.shards = self.integer(table, "shards", 1..=MAX_SHARDS).map(|shards| shards as u16);
            defaults.hold = self.word(table, "hold", &Hold::WORDS).unwrap_or(defaults.hold);
            defaults.tpp = self.word(table, "tpp", &TinyAccess::WORDS).unwrap_or(defaults.tpp);
            defaults.tpp_limit = self.integer(table, "tpp_limit", 1..=u32::MAX);
            if let Some((_, span)) = self.get(table, "tpp_limit").filter(|_| defaults.tpp == TinyAccess::Off) {
                self.wrong(span, format!("`tpp_limit` has no effect without {TPP_ON}"));
            }
            defaults.int = self.word(table, "int", &IntRole::WORDS).unwrap_or(defaults.int);
            match self.shim(table, defaults.tpp) {
                Some(ShimValue::Own(shim)) => defaults.shim = shim,
                Some(ShimValue::None) => {
                    let span = self.get(table, "shim").map_or(Span::new(self.file, 0, 0), |(_, span)| span);
                    self.wrong(span, "`shim = false` is not allowed below [defaults]: write it below [hosts.NAME]");
                }
                Some(ShimValue::Default) | None => {}
            }
            if let Some(link) = self.table(table, "link") {
                self.known(link, "a link", &LINK_KEYS);
                defaults.shape = self.shape(link, defaults.shape);
            }
        }
        defaults
    }

    /// The named tables inside the table `key`, in the order of the file.
    fn named<'a>(&mut self, top: &'a DeTable<'a>, key: &str) -> Vec<(&'a str, Span, &'a DeTable<'a>)> {
        let Some(things) = self.table(top, key) else { return Vec::new() };
        let mut found = Vec::new();
        for (name, value) in things.iter() {
            let span = self.span(name.span());
            let name: &str = name.get_ref();
            if let Some(what) = field::name_problem(name) {
                self.wrong(span, format!("the name `{name}` {what}"));
            }
            match value.get_ref().as_table() {
                Some(table) => found.push((name, span, table)),
                None => self.wrong(span, format!("`{name}` must be a table: write [{key}.{name}]")),
            }
        }
        found.sort_by_key(|(_, span, _)| span.start);
        found
    }

    fn hosts(&mut self, top: &DeTable<'_>, defaults: &Defaults, topology: &mut Topology) {
        for (name, span, table) in self.named(top, "hosts") {
            self.known(table, "a host", &["ip", "mac", "gateway", "neighbours", "commands", "shim", "memory"]);
            let address = self.text(table, "ip").and_then(|(text, span)| {
                let address = field::cidr(text);
                if address.is_none() {
                    self.wrong(span, format!("`{text}` is not an address with a prefix length: write 10.0.1.1/24"));
                }
                address
            });
            let mac = self.parsed(table, "mac").unwrap_or(default_mac(topology.hosts.len()));
            let gateway = self.text(table, "gateway").and_then(|(text, span)| self.address(text, span));
            let neighbours = self.neighbours(table);
            let commands = self.commands(table);
            let memory = self.memory(table);
            let (lacks_shim, shim) = match self.shim(table, defaults.tpp) {
                Some(ShimValue::None) => (true, HostShim::default()),
                Some(ShimValue::Own(shim)) => (false, shim),
                // A memory server has no packets of its own.
                Some(ShimValue::Default) | None if memory.is_some() => (false, HostShim::default()),
                Some(ShimValue::Default) | None => (false, defaults.shim.clone()),
            };
            if memory.is_some() && address.is_none() {
                self.wrong(span, format!("`{name}` lends memory, so it needs an address: write ip = \"10.9.0.1/24\""));
            }
            let name = name.to_owned();
            let (is_store, is_durable) = (false, false);
            topology.hosts.push(Host {
                name,
                address,
                mac,
                gateway,
                neighbours,
                commands,
                lacks_shim,
                shim,
                memory,
                is_store,
                is_durable,
                span,
            });
        }
    }

    /// `memory_rate = "8Gbps"` of the defaults.
    fn memory_rate(&mut self, top: &DeTable<'_>, topology: &mut Topology) {
        let Some((table, span)) = self.table(top, "defaults").and_then(|it| Some((it, self.get(it, "memory_rate")?.1)))
        else {
            return;
        };
        topology.memory_rate = self.parsed(table, "memory_rate");
        if topology.hosts.iter().all(|host| host.memory.is_none()) {
            self.wrong(span, "`memory_rate` has no effect without hosts with `memory`");
        }
    }

    /// `memory = "64MiB"`.
    fn memory(&mut self, table: &DeTable<'_>) -> Option<Size> {
        let (text, span) = self.text(table, "memory")?;
        let size: Size = self.parsed(table, "memory")?;
        let fits = size.bytes() <= MAX_MEMORY;
        if !fits {
            self.wrong(span, format!("`{text}` is too much: the maximum is {}GiB", MAX_MEMORY >> 30));
        }
        fits.then_some(size)
    }

    /// `[stores.a]`, with `durable = true` or without. They are in the order of their names, as in a cluster file.
    fn stores(&mut self, top: &DeTable<'_>, topology: &mut Topology) {
        let mut stores = self.named(top, "stores");
        stores.sort_by_key(|(name, ..)| *name);
        for (name, span, table) in stores {
            self.known(table, "a store", &["durable"]);
            let is_durable = self.boolean(table, "durable").unwrap_or(false);
            topology.hosts.push(store(name, topology.hosts.len(), is_durable, span));
        }
        let is_operated = top.contains_key("operator");
        let max = if is_operated { MAX_OPERATED_STORES } else { MAX_STORES };
        if let Some(extra) = topology.hosts.get(topology.machines() + max) {
            let what = if is_operated { "an operator" } else { "a chain" };
            self.wrong(extra.span, format!("{what} has at most {max} stores"));
        }
    }

    /// `[operator]`, with `chain = 3` or without: it follows the stores.
    fn operator(&mut self, top: &DeTable<'_>, topology: &mut Topology) {
        let Some(table) = self.table(top, "operator") else { return };
        let span = top.get_key_value("operator").map_or(Span::new(self.file, 0, 0), |(key, _)| self.span(key.span()));
        self.known(table, "the operator", &["chain"]);
        let stores = topology.stores().len();
        if stores == 0 {
            return self.wrong(span, "an operator needs stores: add [stores.NAME]");
        }
        let most = stores.min(MAX_STORES);
        let chain = self.integer(table, "chain", 1..=most as u32);
        topology.chain = Some(chain.map_or(most.min(CHAIN_LENGTH), |chain| chain as usize));
        topology.hosts.push(store("operator", topology.hosts.len(), false, span));
    }

    /// `lease = "100ms"`, from 1 ms to 1 minute.
    fn lease(&mut self, table: &DeTable<'_>) -> Option<Lease> {
        let span = self.get(table, "lease").map(|(_, span)| span);
        let lease: Delay = self.parsed(table, "lease")?;
        if !(1_000_000..=60_000_000_000).contains(&lease.as_ns()) {
            self.wrong(span.expect("it was read"), "`lease` must be from 1ms to 60s");
            return None;
        }
        Some(Lease(lease))
    }

    fn address(&mut self, text: &str, span: Span) -> Option<std::net::Ipv4Addr> {
        text.parse().map_err(|_| self.wrong(span, format!("`{text}` is not an IPv4 address: write 10.0.1.254"))).ok()
    }

    fn neighbours(&mut self, table: &DeTable<'_>) -> Vec<(std::net::Ipv4Addr, wire::ethernet::Address)> {
        let Some(neighbours) = self.table(table, "neighbours") else { return Vec::new() };
        let mut found = Vec::new();
        for (address, _) in neighbours.iter() {
            let span = self.span(address.span());
            let text: &str = address.get_ref();
            if let (Some(address), Some(mac)) = (self.address(text, span), self.parsed(neighbours, text)) {
                found.push((address, mac));
            }
        }
        found
    }

    fn commands(&mut self, table: &DeTable<'_>) -> Vec<String> {
        let Some((value, span)) = self.get(table, "commands") else { return Vec::new() };
        let commands = value.as_array().and_then(|list| {
            list.iter().map(|command| command.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        if commands.is_none() {
            self.wrong(span, "`commands` must be a list of strings: [\"ip route add …\", \"…\"]");
        }
        commands.unwrap_or_default()
    }

    fn program(&mut self, table: &DeTable<'_>) -> Option<SwitchProgram> {
        let (name, span) = self.text(table, "program")?;
        if name == ROUTER {
            return Some(SwitchProgram::Router);
        }
        if name.starts_with("builtin:") {
            self.wrong(span, format!("there is no program `{name}`; the built-in one is \"{ROUTER}\""));
        }
        Some(SwitchProgram::File(name.to_owned(), span))
    }

    fn entries(&mut self, table: &DeTable<'_>) -> Option<Entries> {
        let (name, span) = self.text(table, "entries")?;
        Some(if name == SHORTEST_PATHS { Entries::ShortestPaths } else { Entries::File(name.to_owned(), span) })
    }

    /// `key = true` or `key = false`.
    pub(crate) fn boolean(&mut self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        let (value, span) = self.get(table, key)?;
        if value.as_bool().is_none() {
            self.wrong(span, format!("`{key}` must be true or false"));
        }
        value.as_bool()
    }

    /// `p4runtime = true`, `false`, or an address.
    fn endpoint(&mut self, table: &DeTable<'_>) -> Option<Option<Endpoint>> {
        let (value, span) = self.get(table, "p4runtime")?;
        if let Some(asked) = value.as_bool() {
            return Some(asked.then_some(Endpoint::Allotted));
        }
        let address = value.as_str().and_then(|text| text.parse().ok());
        if address.is_none() {
            self.wrong(span, "`p4runtime` must be true, false, or an address and port: \"127.0.0.1:50051\"");
        }
        Some(address.map(Endpoint::At))
    }

    fn switches(&mut self, top: &DeTable<'_>, defaults: &Defaults, topology: &mut Topology) {
        for (name, span, table) in self.named(top, "switches") {
            let known =
                ["program", "entries", "cpu_port", "p4runtime", "device_id", "kernel", "tpp_strip", "tpp_refuse"];
            self.known(table, "a switch", &known);
            let program = self.program(table).unwrap_or_else(|| defaults.program.clone());
            let entries = self.entries(table).unwrap_or_else(|| defaults.entries.clone());
            let cpu_port = self.integer(table, "cpu_port", 1..=self.max_port);
            let p4runtime = self.endpoint(table).unwrap_or(defaults.p4runtime);
            let device_id = self.integer(table, "device_id", 0..=u32::MAX).map(u64::from);
            let kernel = self.word(table, "kernel", &KernelUse::WORDS).unwrap_or(defaults.kernel);
            let edge = self.edge(table, defaults.tpp);
            let name = name.to_owned();
            topology.switches.push(TopologySwitch {
                name,
                program,
                entries,
                cpu_port,
                p4runtime,
                edge,
                device_id,
                kernel,
                span,
            });
        }
    }

    /// `tpp_strip = [1, 2]` and `tpp_refuse = [3]`.
    fn edge(&mut self, table: &DeTable<'_>, tpp: TinyAccess) -> ProgramEdge {
        let [strip, refuse] = ["tpp_strip", "tpp_refuse"].map(|key| {
            let Some((value, span)) = self.get(table, key) else { return BTreeSet::new() };
            if tpp == TinyAccess::Off {
                self.wrong(span, format!("`{key}` has no effect without {TPP_ON} below [defaults]"));
            }
            let most = self.max_port;
            let port = |number: &toml::Spanned<DeValue<'_>>| {
                let number = number.get_ref().as_integer()?;
                u32::from_str_radix(number.as_str(), number.radix()).ok().filter(|port| (1..=most).contains(port))
            };
            let ports = value.as_array().and_then(|list| list.iter().map(port).collect());
            if ports.is_none() {
                self.wrong(span, format!("`{key}` must be a list of ports from 1 to {most}: [1, 2]"));
            }
            ports.unwrap_or_default()
        });
        ProgramEdge { strip, refuse }
    }

    fn links(&mut self, top: &DeTable<'_>, defaults: &Defaults, topology: &mut Topology) {
        let Some((value, span)) = self.get(top, "links") else { return };
        let Some(links) = value.as_array() else {
            return self.wrong(span, "`links` must be a list: write [[links]] before each link");
        };
        for link in links.iter() {
            let span = self.span(link.span());
            let Some(table) = link.get_ref().as_table() else {
                self.wrong(span, "a link must be a table: write [[links]] and `ends` below");
                continue;
            };
            self.known(table, "a link", &[&["ends"], &LINK_KEYS[..]].concat());
            let shape = self.shape(table, defaults.shape);
            if let Some((ends, span)) = self.ends(table, span, topology) {
                topology.links.push(Link { ends, shape, span });
            }
        }
    }

    fn ends(&mut self, table: &DeTable<'_>, span: Span, topology: &Topology) -> Option<([End; 2], Span)> {
        let Some((value, span)) = self.get(table, "ends") else {
            self.wrong(span, "a link must have two ends: ends = [\"h1\", \"s1:1\"]");
            return None;
        };
        let texts: Option<Vec<_>> = value
            .as_array()
            .and_then(|ends| ends.iter().map(|end| Some((end.get_ref().as_str()?, self.span(end.span())))).collect());
        let Some(&[first, second]) = texts.as_deref() else {
            self.wrong(span, "the ends of a link must be strings: [\"h1\", \"s1:1\"]");
            return None;
        };
        let ends = [self.end(first, topology), self.end(second, topology)];
        Some(([ends[0]?, ends[1]?], span))
    }

    pub(crate) fn end(&mut self, (text, span): (&str, Span), topology: &Topology) -> Option<End> {
        let (name, port) = field::endpoint(text);
        let Some(node) = topology.node(name) else {
            let finding = Diagnostic::error("topology", span, format!("there is no host or switch `{name}`"));
            let hosts = topology.hosts.iter().map(|host| host.name.as_str());
            let names = hosts.chain(topology.switches.iter().map(|switch| switch.name.as_str()));
            let finding = match names::nearest(name, names) {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding,
            };
            self.diagnostics.push(finding);
            return None;
        };
        match (node, port) {
            (Node::Host(_), None) => Some(End { node, port: 0 }),
            (Node::Host(_), Some(_)) => {
                self.wrong(span, format!("`{name}` is a host and has no ports: write \"{name}\""));
                None
            }
            (Node::Switch(_), port) => {
                let most = self.max_port;
                let port = port.and_then(|port| port.parse().ok()).filter(|port| (1..=most).contains(port));
                if port.is_none() {
                    self.wrong(span, format!("`{name}` is a switch: specify a port from 1 to {most}: \"{name}:1\""));
                }
                port.map(|port| End { node, port })
            }
        }
    }

    fn rate(&mut self, table: &DeTable<'_>, or: Option<Rate>) -> Option<Rate> {
        match self.get(table, "rate") {
            Some((value, _)) if value.as_str() == Some(UNLIMITED) => None,
            _ => self.parsed(table, "rate").or(or),
        }
    }

    fn shape(&mut self, table: &DeTable<'_>, or: Shape) -> Shape {
        Shape {
            rate: self.rate(table, or.rate),
            delay: self.parsed(table, "delay").unwrap_or(or.delay),
            loss: self.chance(table, "loss").unwrap_or(or.loss),
            corruption: self.chance(table, "corruption").unwrap_or(or.corruption),
            duplication: self.chance(table, "duplication").unwrap_or(or.duplication),
            reordering: self.chance(table, "reordering").unwrap_or(or.reordering),
            reorder_by: self.parsed(table, "reorder_by").unwrap_or(or.reorder_by),
            queue: self.integer(table, "queue", 1..=1_000_000).unwrap_or(or.queue),
            mtu: self.integer(table, "mtu", 68..=9_216).unwrap_or(or.mtu),
        }
    }
}

/// Returns a store or the operator, which has this index among the hosts.
fn store(name: &str, at: usize, is_durable: bool, span: Span) -> Host {
    let (name, mac, is_store) = (name.to_owned(), default_mac(at), true);
    let (address, gateway, neighbours, commands) = (None, None, Vec::new(), Vec::new());
    let (lacks_shim, shim, memory) = (false, HostShim::default(), None);
    Host { name, address, mac, gateway, neighbours, commands, lacks_shim, shim, memory, is_store, is_durable, span }
}
