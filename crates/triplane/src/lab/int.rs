//! Shows what INT sinks of a simulated network have reported.

use ::tpp::map::{Unit, int_sources};
use lab::scenario::{IntResult, Results, Scenario};
use lab::{IntRole, Topology};
use serde_json::{Value, json};

use super::minions::{hop_rows, with_unit};
use crate::output::{Output, aligned, grouped};

/// Warns if no switch reports the INT headers of a scenario.
pub fn warn_of_missing_sinks(topology: &Topology, scenario: &Scenario, output: &Output) {
    if topology.int != IntRole::Sink && scenario.traffic.iter().any(|traffic| traffic.int.is_some()) {
        output.note("no switch removes INT and reports it: add int = \"sink\" below [defaults] of the topology");
    }
}

/// Returns the unit of a field of INT.
fn unit(field: &str) -> Unit {
    let source = int_sources(u16::MAX).find(|source| source.field.name == field);
    source.and_then(|source| source.row).map_or(Unit::None, |row| row.unit)
}

/// Formats the metadata that sinks reported, by traffic and hop.
pub fn text(results: &Results) -> String {
    let mut rows = vec![["INT", "hop", "", "packets", "min", "mean", "max"].map(str::to_owned)];
    let mut notes = String::new();
    for (name, int) in results.int() {
        let hops = int.packets.iter().map(|packet| packet.hops.len()).max().unwrap_or(0);
        let fields: Vec<String> = int.fields.iter().map(|field| with_unit(field, unit(field))).collect();
        rows.extend(hop_rows(name, &fields, hops, |hop, index| {
            int.packets.iter().filter_map(|packet| *packet.hops.get(hop)?.get(index)?).collect()
        }));
        let incomplete = int.packets.iter().filter(|packet| packet.is_incomplete).count() as u64;
        for (count, what) in [
            (int.too_long, "were sent without INT: the MTU left no room"),
            (incomplete, "lack hops: the MTU or the hop limit was reached"),
        ] {
            if count > 0 {
                notes.push_str(&format!("{} packets of {name} {what}\n", grouped(count)));
            }
        }
    }
    if rows.len() > 1 { format!("\n{}{notes}", aligned(&rows, &[1, 3, 4, 5, 6])) } else { notes }
}

/// Returns the INT headers of some traffic as JSON.
pub fn json(topology: &Topology, int: &IntResult) -> Value {
    let name = |host: Option<usize>| host.map(|host| topology.hosts[host].name.as_str());
    let packets = int.packets.iter().map(|packet| {
        json!({
            "at_ns": packet.at.as_ns(), "from": name(packet.from), "to": name(packet.to), "number": packet.number,
            "incomplete": packet.is_incomplete, "hops": packet.hops,
        })
    });
    json!({
        "inserted": int.inserted, "too_long": int.too_long, "fields": int.fields, "packets": packets.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_units_of_the_map() {
        let names =
            ["Node ID", "Hop latency", "Queue occupancy", "Egress timestamp", "Egress interface TX utilization"];
        let shown = names.map(|field| with_unit(field, unit(field)));
        let expected = [
            "Node ID",
            "Hop latency, ns",
            "Queue occupancy, packets",
            "Egress timestamp, ns",
            "Egress interface TX utilization, 1/10,000",
        ];
        assert_eq!(shown, expected);
    }
}
