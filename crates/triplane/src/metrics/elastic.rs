//! The metrics of a switch whose tables lie in the memory of servers.

use elastic_switch::{ElasticCounts, ElasticSwitch, ServerCounts};
use metrics_exporter::MetricFamily;
use switch::{RowSwitch, Time};

/// Creates a family with a name and a help text.
type NewFamily = fn(&'static str, &'static str) -> MetricFamily;

const GAUGE: NewFamily = MetricFamily::gauge;
const COUNTER: NewFamily = MetricFamily::counter;

/// A family with a sample for each of several objects: kind, name, help text, and value.
type ObjectFamily<T> = (NewFamily, &'static str, &'static str, fn(&T) -> u64);

const OF_TABLES: [ObjectFamily<ElasticCounts>; 13] = [
    (GAUGE, "triplane_elastic_entries", "Entries of a table.", |it| it.entries as u64),
    (GAUGE, "triplane_elastic_changes_waiting", "Changes that no server has been sent yet.", |it| {
        it.queued_changes as u64
    }),
    (GAUGE, "triplane_elastic_settled", "1 if every change is in all copies, else 0.", |it| it.is_settled.into()),
    (COUNTER, "triplane_elastic_lookups_total", "Keys that needed memory of servers.", |it| it.lookups.begun),
    (COUNTER, "triplane_elastic_lookups_local_total", "Further keys, which the switch answered itself.", |it| {
        it.table_counts.local
    }),
    (COUNTER, "triplane_elastic_reads_total", "READs, repeated ones included.", |it| it.table_counts.reads),
    (COUNTER, "triplane_elastic_reads_repeated_total", "READs of torn cells, sent again.", |it| {
        it.table_counts.rereads
    }),
    (COUNTER, "triplane_elastic_reads_retried_total", "READs sent to another copy.", |it| it.table_counts.retries),
    (COUNTER, "triplane_elastic_writes_total", "WRITEs of changes and of new copies.", |it| {
        it.table_counts.writes + it.table_counts.blocks
    }),
    (COUNTER, "triplane_elastic_repairs_total", "Windows that were rewritten.", |it| it.table_counts.repairs),
    (COUNTER, "triplane_elastic_copies_rewritten_total", "Copies that were rewritten.", |it| it.table_counts.restarts),
    (COUNTER, "triplane_elastic_cache_admitted_total", "Keys that entered the cache.", |it| it.cache.admitted),
    (COUNTER, "triplane_elastic_cache_evicted_total", "Keys that were evicted for others.", |it| it.cache.evicted),
];

const OF_SERVERS: [ObjectFamily<ServerCounts>; 9] = [
    (
        GAUGE,
        "triplane_elastic_server_state",
        "0 while it joins, 1 once it has had its share, 2 while it leaves.",
        |it| it.state as u64,
    ),
    (GAUGE, "triplane_elastic_server_bytes", "Bytes of copies at a server that are written.", |it| it.held_bytes),
    (GAUGE, "triplane_elastic_server_missing_bytes", "Bytes of its share that are not written yet.", |it| {
        it.missing_bytes
    }),
    (COUNTER, "triplane_elastic_server_reads_total", "READs of tables that were requested.", |it| it.reads),
    (GAUGE, "triplane_elastic_server_connections", "Open connections: one for each table, two during changes.", |it| {
        it.connections as u64
    }),
    (COUNTER, "triplane_elastic_server_packets_total", "Packets sent, repeated ones included.", |it| it.requests.sent),
    (COUNTER, "triplane_elastic_server_packets_repeated_total", "Packets sent again.", |it| it.requests.repeated),
    (COUNTER, "triplane_elastic_server_timeouts_total", "Timeouts of requests.", |it| it.requests.timeouts),
    (COUNTER, "triplane_elastic_server_invalid_total", "Answers that match no request, or are damaged.", |it| {
        it.requests.invalid + it.requests.corrupt
    }),
];

/// Returns the metrics. They do not depend on the time.
pub fn families<S: RowSwitch>(switch: &ElasticSwitch<S>, _: Time) -> Vec<MetricFamily> {
    let tables: Vec<_> = switch.counts().into_iter().map(|counts| (counts.table.clone(), counts)).collect();
    let servers: Vec<_> =
        switch.server_counts().into_iter().map(|counts| (counts.address.to_string(), counts)).collect();
    let of_tables = OF_TABLES.iter().map(|family| labelled(family, "table", &tables));
    of_tables.chain(OF_SERVERS.iter().map(|family| labelled(family, "server", &servers))).collect()
}

/// Returns a family with a sample for each object, under its name.
fn labelled<T>((new, name, help, value): &ObjectFamily<T>, label: &str, objects: &[(String, T)]) -> MetricFamily {
    objects.iter().fold(new(name, help), |family, (object, counts)| {
        family.labelled(&[(label, object.as_str())], value(counts) as f64)
    })
}
