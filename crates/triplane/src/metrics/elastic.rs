//! The metrics of a switch whose tables lie in the memory of servers.

use elastic_switch::{ElasticCounts, ElasticSwitch, ServerCounts};
use metrics_exporter::MetricFamily;
use switch::{RowSwitch, Time};

/// Returns the metrics. They do not depend on the time.
pub fn families<S: RowSwitch>(switch: &ElasticSwitch<S>, _: Time) -> Vec<MetricFamily> {
    let tables = switch.counts();
    let of_tables = |family: MetricFamily, value: fn(&ElasticCounts) -> u64| {
        tables
            .iter()
            .fold(family, |family, counts| family.labelled(&[("table", counts.table.as_str())], value(counts) as f64))
    };
    let servers: Vec<(String, ServerCounts)> =
        switch.server_counts().into_iter().map(|counts| (counts.address.to_string(), counts)).collect();
    let of_servers = |family: MetricFamily, value: fn(&ServerCounts) -> u64| {
        servers.iter().fold(family, |family, (address, counts)| {
            family.labelled(&[("server", address.as_str())], value(counts) as f64)
        })
    };
    let gauge = MetricFamily::gauge;
    let counter = MetricFamily::counter;
    vec![
        of_tables(gauge("triplane_elastic_entries", "Entries of a table."), |it| it.entries as u64),
        of_tables(gauge("triplane_elastic_changes_waiting", "Changes that no server has been sent yet."), |it| {
            it.queued_changes as u64
        }),
        of_tables(gauge("triplane_elastic_settled", "1 if every change is in all copies, else 0."), |it| {
            it.is_settled.into()
        }),
        of_tables(counter("triplane_elastic_lookups_total", "Keys that needed memory of servers."), |it| {
            it.lookups.begun
        }),
        of_tables(
            counter("triplane_elastic_lookups_local_total", "Further keys, which the switch answered itself."),
            |it| it.table_counts.local,
        ),
        of_tables(counter("triplane_elastic_reads_total", "READs, repeated ones included."), |it| {
            it.table_counts.reads
        }),
        of_tables(counter("triplane_elastic_reads_repeated_total", "READs of torn cells, sent again."), |it| {
            it.table_counts.rereads
        }),
        of_tables(counter("triplane_elastic_reads_retried_total", "READs sent to another copy."), |it| {
            it.table_counts.retries
        }),
        of_tables(counter("triplane_elastic_writes_total", "WRITEs of changes and of new copies."), |it| {
            it.table_counts.writes + it.table_counts.blocks
        }),
        of_tables(counter("triplane_elastic_repairs_total", "Windows that were rewritten."), |it| {
            it.table_counts.repairs
        }),
        of_tables(counter("triplane_elastic_copies_rewritten_total", "Copies that were rewritten."), |it| {
            it.table_counts.restarts
        }),
        of_tables(counter("triplane_elastic_cache_admitted_total", "Keys that entered the cache."), |it| {
            it.cache.admitted
        }),
        of_tables(counter("triplane_elastic_cache_evicted_total", "Keys that were evicted for others."), |it| {
            it.cache.evicted
        }),
        of_servers(gauge("triplane_elastic_server_connections", "Open connections, one for each table."), |it| {
            it.connections as u64
        }),
        of_servers(counter("triplane_elastic_server_packets_total", "Packets sent, repeated ones included."), |it| {
            it.requests.sent
        }),
        of_servers(counter("triplane_elastic_server_packets_repeated_total", "Packets sent again."), |it| {
            it.requests.repeated
        }),
        of_servers(counter("triplane_elastic_server_timeouts_total", "Timeouts of requests."), |it| {
            it.requests.timeouts
        }),
        of_servers(
            counter("triplane_elastic_server_invalid_total", "Answers that match no request, or are damaged."),
            |it| it.requests.invalid + it.requests.corrupt,
        ),
    ]
}
