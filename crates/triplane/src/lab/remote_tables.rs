//! Plans the memory servers of a lab: which switch uses which.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use elastic_switch::{
    ElasticConfig, ElasticCounts, ElasticError, ElasticSwitch, EntryForm, MemoryServerPort, ServerState, SwitchAddress,
    bytes_per_server,
};
use entries_file::Entries;
use lab::scenario::Run;
use lab::{End, Node, Topology};
use rdma::MemoryNodeConfig;
use rng::SplitMix64;
use serde_json::{Value, json};
use switch::{PortId, RowSwitch, Time};
use v1model::Switch;
use v1model_runtime::simulated::Simulated;
use wire::roce::Mtu;

use super::simulated_memory::SimulatedMemory;
use crate::memory;
use crate::output::grouped;

/// Maximum number of connections of a memory server.
const MAX_CONNECTIONS: usize = 64;

/// The switches whose tables lie in the memory of servers, and the servers of each with its ports.
#[derive(Clone, Debug, Default)]
pub struct RemoteTables {
    switches: BTreeMap<usize, ElasticConfig>,
}

/// A memory server that lends too little.
#[derive(Debug)]
pub struct UndersizedServer {
    /// The host.
    pub host: usize,
    /// Bytes that it would have to lend.
    pub needed: u64,
}

/// Returns the addresses of a switch among its memory servers, in the benchmark networks of RFC 2544.
fn switch_address(switch: usize) -> SwitchAddress {
    let [high, low] = (switch as u16 + 1).to_be_bytes();
    SwitchAddress::of(Ipv4Addr::new(198, 19, high, low))
}

/// Returns the tables of a switch whose prefixes take too many cells.
pub fn oversized(program: &ir::Program, entries: &Entries) -> Vec<ElasticError> {
    let check = |form: &EntryForm| {
        let of_table = entries.tables.iter().filter(|entry| entry.table == form.settings.table);
        form.check_cells(of_table.map(|entry| form.cell_count(&entry.keys)).sum())
    };
    EntryForm::all(program).iter().filter_map(|form| check(form).err()).collect()
}

impl RemoteTables {
    /// Plans the tables of a switch with these memory servers.
    ///
    /// # Errors
    /// The servers that lend too little memory.
    pub fn add(
        &mut self,
        topology: &Topology,
        switch: usize,
        program: &ir::Program,
    ) -> Result<(), Vec<UndersizedServer>> {
        let servers = topology.memory_servers(switch);
        let place = |(port, host): &(u32, usize)| {
            let (address, _) = topology.hosts[*host].address.expect("memory servers have addresses");
            MemoryServerPort { address, port: PortId(*port) }
        };
        let mut config = ElasticConfig::new(switch_address(switch), servers.iter().map(place).collect());
        let is_server = |end: &End| matches!(end.node, Node::Host(at) if topology.hosts[at].memory.is_some());
        let of_servers = topology.links.iter().filter(|link| link.ends.iter().any(is_server));
        let mtu = of_servers.map(|link| link.shape.mtu as usize).min();
        config.read_rate = topology.memory_rate.map(lab::Rate::bps);
        // Narrower links are reported elsewhere.
        config.mtu = mtu.and_then(Mtu::for_link).unwrap_or(Mtu::Mtu256);
        let needed = bytes_per_server(program, config.replicas, servers.len());
        let is_small = |host: &usize| topology.hosts[*host].memory.is_some_and(|size| size.bytes() < needed);
        let small = servers.iter().map(|(_, host)| *host).filter(is_small);
        let small: Vec<UndersizedServer> = small.map(|host| UndersizedServer { host, needed }).collect();
        if !small.is_empty() {
            return Err(small);
        }
        self.switches.insert(switch, config);
        Ok(())
    }

    /// Adapts the settings of all switches to real time.
    pub fn set_live_times(&mut self) {
        self.switches.values_mut().for_each(memory::set_live_times);
    }

    /// Returns the settings of a switch whose tables lie in the memory of servers.
    pub fn config(&self, switch: usize) -> Option<&ElasticConfig> {
        self.switches.get(&switch)
    }

    /// Whether the tables of a switch lie in the memory of servers.
    pub fn has(&self, switch: usize) -> bool {
        self.switches.contains_key(&switch)
    }

    /// Wraps a switch, in its life `life` of a run with this seed. It does not use the servers that join later.
    pub fn wrap<S: RowSwitch>(
        &self,
        at: usize,
        switch: S,
        (seed, life): (u64, u64),
        joining: &[MemoryServerPort],
    ) -> ElasticSwitch<S> {
        let mut config = self.switches[&at].clone();
        config.servers.retain(|place| !joining.contains(place));
        let mut random = SplitMix64::new(seed ^ (at as u64) << 32 ^ life);
        let secret = [random.next_u64(), random.next_u64()];
        let numbers = Box::new(SplitMix64::new(random.next_u64()));
        let wrapped = ElasticSwitch::new(switch, &config, secret, numbers);
        wrapped.unwrap_or_else(|error| panic!("the switch was planned: {error}"))
    }

    /// Runs the memory servers of a simulation.
    pub fn start_servers(topology: &Topology, run: &mut Run) {
        for (at, host) in topology.hosts.iter().enumerate() {
            if let Some((size, (address, _))) = host.memory.zip(host.address) {
                let (mac, bytes, connections) = (host.mac, size.bytes(), MAX_CONNECTIONS);
                let config = MemoryNodeConfig { mac, address, bytes, connections };
                run.simulation.run_program(at, Time::ZERO, Box::new(SimulatedMemory::new(config)));
            }
        }
    }

    /// Returns the tables and the memory servers of a simulation in numbers.
    pub fn results(&self, topology: &Topology, run: &mut Run) -> Value {
        let mut tables = Vec::new();
        let mut states = BTreeMap::new();
        for at in self.switches.keys().copied() {
            let element = run.simulation.element(at).as_any();
            let Some(switch) = element.downcast_mut::<Simulated<ElasticSwitch<Switch>>>() else { continue };
            let resident = switch.switch.residents();
            states.extend(switch.switch.server_counts().iter().map(|it| (it.address, (it.state, it.entries))));
            tables.extend(
                switch.switch.counts().iter().map(|counts| table(&topology.switches[at].name, counts, resident)),
            );
        }
        let server = |at: usize| {
            let node = run.simulation.program(at)?.as_any().downcast_ref::<SimulatedMemory>()?.node();
            let ((connections, bytes), counts) = (node.lent(), node.counts());
            let state = topology.hosts[at].address.and_then(|(address, _)| states.get(&address));
            Some(json!({
                "server": topology.hosts[at].name, "state": state_name(state.map(|(state, _)| *state)),
                "entries": state.map_or(0, |(_, entries)| *entries), "connections": connections, "lent_bytes": bytes,
                "refused": node.refused(), "reads": counts.reads, "writes": counts.writes,
            }))
        };
        let servers: Vec<Value> = (0..topology.hosts.len()).filter_map(server).collect();
        json!({ "tables": tables, "servers": servers })
    }
}

/// Returns the name of a server's membership.
fn state_name(state: Option<ServerState>) -> &'static str {
    match state {
        Some(ServerState::Joining) => "joining",
        Some(ServerState::Serving) => "serving",
        Some(ServerState::Leaving) => "leaving",
        None => "unused",
    }
}

/// Returns the numbers of a table. Lookups count keys, not packets: those that wait for a key share one.
fn table(switch: &str, counts: &ElasticCounts, resident: usize) -> Value {
    let ElasticCounts { table, entries, kept, queued_changes, table_counts, lookups, cache, is_settled } = counts;
    json!({
        "switch": switch, "table": table, "entries": entries, "settled": is_settled, "queued": queued_changes,
        "resident": resident, "kept": kept,
        "lookups": lookups.begun, "local": table_counts.local, "reads": table_counts.reads,
        "writes": table_counts.writes, "blocks": table_counts.blocks, "retries": table_counts.retries,
        "invalid": table_counts.invalid, "admitted": cache.admitted,
        "dropped": table_counts.dropped.iter().sum::<u64>(),
    })
}

/// Formats the numbers of tables and memory servers, one line for each.
pub fn text(results: &Value) -> String {
    let number = |value: &Value| grouped(value.as_u64().unwrap_or(0));
    let table = |it: &Value| {
        format!(
            "{}  {}: {} entries; {} keys needed READs, {} were answered by the switch; {} READs, {} packets dropped\n",
            it["switch"].as_str().unwrap_or_default(),
            it["table"].as_str().unwrap_or_default(),
            number(&it["entries"]),
            number(&it["lookups"]),
            number(&it["local"]),
            number(&it["reads"]),
            number(&it["dropped"]),
        )
    };
    let server = |it: &Value| {
        format!(
            "{}  lends {} bytes; {} READs, {} WRITEs since its start\n",
            it["server"].as_str().unwrap_or_default(),
            number(&it["lent_bytes"]),
            number(&it["reads"]),
            number(&it["writes"]),
        )
    };
    let lines = |key: &str, line: &dyn Fn(&Value) -> String| -> String {
        results[key].as_array().into_iter().flatten().map(line).collect()
    };
    let text = lines("tables", &table) + &lines("servers", &server);
    if text.is_empty() { text } else { format!("\n{text}") }
}
