//! Writes a topology as a `lab.toml`.

use std::fmt::Write;

use crate::read::UNLIMITED;
use crate::topology::{
    Endpoint, Entries, Hold, HostShim, IntRole, KernelUse, Lease, Shape, SwitchProgram, TinyAccess, Topology,
};

/// Writes a topology as text that [`crate::read`] reads back as an equal topology, except for its spans.
pub fn emit(topology: &Topology) -> String {
    let mut text = String::new();
    let uniform = topology.links.first().map(|link| link.shape);
    let router = topology.switches.iter().all(|switch| switch.program == SwitchProgram::Router);
    let computed = topology.switches.iter().all(|switch| switch.entries == Entries::ShortestPaths);
    text.push_str("[defaults]\n");
    if router {
        text.push_str("program = \"builtin:router\"\n");
    }
    if computed {
        text.push_str("entries = \"shortest-paths\"\n");
    }
    if topology.lease != Lease::default() {
        _ = writeln!(text, "lease = \"{}\"", topology.lease.0);
    }
    if let Some(shards) = topology.shards {
        _ = writeln!(text, "shards = {shards}");
    }
    if let Some((word, _)) = Hold::WORDS.iter().find(|(_, hold)| *hold == topology.hold && *hold != Hold::default()) {
        _ = writeln!(text, "hold = \"{word}\"");
    }
    if let Some((word, _)) = TinyAccess::WORDS.iter().find(|(_, tpp)| *tpp == topology.tpp && *tpp != TinyAccess::Off) {
        _ = writeln!(text, "tpp = \"{word}\"");
    }
    if let Some(limit) = topology.tpp_limit {
        _ = writeln!(text, "tpp_limit = {limit}");
    }
    if let Some(rate) = topology.memory_rate {
        _ = writeln!(text, "memory_rate = \"{rate}\"");
    }
    if let Some((word, _)) = IntRole::WORDS.iter().find(|(_, int)| *int == topology.int && *int != IntRole::Off) {
        _ = writeln!(text, "int = \"{word}\"");
    }
    if let Some(shape) = uniform {
        _ = writeln!(text, "link = {{ {} }}", fields(&shape, &Shape::default()).join(", "));
    }
    for (at, host) in topology.hosts.iter().enumerate() {
        if let Some(chain) = topology.chain.filter(|_| topology.operator() == Some(at)) {
            _ = writeln!(text, "\n[operator]\nchain = {chain}");
            continue;
        }
        if host.is_store {
            _ = writeln!(text, "\n[stores.{}]", key(&host.name));
            if host.is_durable {
                text.push_str("durable = true\n");
            }
            continue;
        }
        _ = writeln!(text, "\n[hosts.{}]", key(&host.name));
        if let Some((address, bits)) = host.address {
            _ = writeln!(text, "ip = \"{address}/{bits}\"");
        }
        _ = writeln!(text, "mac = \"{}\"", host.mac);
        if let Some(gateway) = host.gateway {
            _ = writeln!(text, "gateway = \"{gateway}\"");
        }
        if !host.neighbours.is_empty() {
            let one = |(address, mac): &(_, _)| format!("\"{address}\" = \"{mac}\"");
            let all: Vec<String> = host.neighbours.iter().map(one).collect();
            _ = writeln!(text, "neighbours = {{ {} }}", all.join(", "));
        }
        if host.lacks_shim {
            text.push_str("shim = false\n");
        } else if host.shim != HostShim::default() {
            let rules: Vec<String> = host.shim.insert.iter().map(|rule| string(&rule.text)).collect();
            let policy = host.shim.policy.as_ref().map(|(name, _)| format!(", policy = {}", string(name)));
            _ = writeln!(text, "shim = {{ insert = [{}]{} }}", rules.join(", "), policy.unwrap_or_default());
        }
        if let Some(size) = host.memory {
            _ = writeln!(text, "memory = \"{size}\"");
        }
        if !host.commands.is_empty() {
            let all: Vec<String> = host.commands.iter().map(|command| string(command)).collect();
            _ = writeln!(text, "commands = [{}]", all.join(", "));
        }
    }
    for switch in &topology.switches {
        _ = writeln!(text, "\n[switches.{}]", key(&switch.name));
        match &switch.program {
            SwitchProgram::File(name, _) => _ = writeln!(text, "program = {}", string(name)),
            SwitchProgram::Router if !router => text.push_str("program = \"builtin:router\"\n"),
            SwitchProgram::Router | SwitchProgram::Unsaid => {}
        }
        match &switch.entries {
            Entries::File(name, _) => _ = writeln!(text, "entries = {}", string(name)),
            Entries::ShortestPaths if !computed => text.push_str("entries = \"shortest-paths\"\n"),
            Entries::ShortestPaths | Entries::None => {}
        }
        if let Some(port) = switch.cpu_port {
            _ = writeln!(text, "cpu_port = {port}");
        }
        match switch.p4runtime {
            Some(Endpoint::Allotted) => text.push_str("p4runtime = true\n"),
            Some(Endpoint::At(address)) => _ = writeln!(text, "p4runtime = \"{address}\""),
            None => {}
        }
        if let Some(id) = switch.device_id {
            _ = writeln!(text, "device_id = {id}");
        }
        if let Some((word, _)) = KernelUse::WORDS.iter().find(|(_, kernel)| *kernel == switch.kernel)
            && switch.kernel != KernelUse::default()
        {
            _ = writeln!(text, "kernel = \"{word}\"");
        }
        for (key, ports) in [("tpp_strip", &switch.edge.strip), ("tpp_refuse", &switch.edge.refuse)] {
            if !ports.is_empty() {
                _ = writeln!(text, "{key} = {:?}", ports.iter().collect::<Vec<_>>());
            }
        }
    }
    for link in &topology.links {
        let ends = link.ends.map(|end| string(&topology.end_name(end)));
        _ = writeln!(text, "\n[[links]]\nends = [{}]", ends.join(", "));
        for field in fields(&link.shape, &uniform.unwrap_or_default()) {
            _ = writeln!(text, "{field}");
        }
    }
    text
}

/// The lines of the fields in which `shape` differs from `or`.
fn fields(shape: &Shape, or: &Shape) -> Vec<String> {
    let mut fields = Vec::new();
    if shape.rate != or.rate {
        let rate = shape.rate.map_or(UNLIMITED.to_owned(), |rate| rate.to_string());
        fields.push(format!("rate = \"{rate}\""));
    }
    if shape.delay != or.delay {
        fields.push(format!("delay = \"{}\"", shape.delay));
    }
    let chances = [
        ("loss", shape.loss, or.loss),
        ("corruption", shape.corruption, or.corruption),
        ("duplication", shape.duplication, or.duplication),
        ("reordering", shape.reordering, or.reordering),
    ];
    fields.extend(chances.iter().filter(|(_, is, or)| is != or).map(|(name, is, _)| format!("{name} = {is:?}")));
    if shape.reorder_by != or.reorder_by {
        fields.push(format!("reorder_by = \"{}\"", shape.reorder_by));
    }
    if shape.queue != or.queue {
        fields.push(format!("queue = {}", shape.queue));
    }
    if shape.mtu != or.mtu {
        fields.push(format!("mtu = {}", shape.mtu));
    }
    fields
}

/// A name as a TOML key: bare if its characters allow it, quoted if not.
fn key(name: &str) -> String {
    let bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { name.to_owned() } else { string(name) }
}

/// A TOML string in quotes.
fn string(text: &str) -> String {
    // JSON's escapes are valid in TOML.
    serde_json::Value::from(text).to_string()
}
