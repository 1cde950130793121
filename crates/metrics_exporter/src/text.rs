//! Writes the text exposition format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::family::MetricKind;
use crate::snapshot::MetricsSnapshot;

/// Maximum number of series of one metric. A program has as many tables and statements as its author likes.
const MAX_SERIES: usize = 10_000;

/// The samples of one metric, each with its labels.
struct Family {
    kind: MetricKind,
    help: String,
    samples: Vec<(String, String)>,
}

impl MetricsSnapshot {
    /// Emits the snapshot in the text exposition format. docs/metrics.md has the names.
    pub fn emit(&self) -> String {
        exposition(self)
    }
}

fn exposition(snapshot: &MetricsSnapshot) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut add = |metric: Metric, value: u64| {
        let Metric { name, kind, help, labels } = metric;
        let family = families.entry(name).or_insert(Family { kind, help, samples: Vec::new() });
        family.samples.push((labels, value.to_string()));
    };
    // Drops by place follow below, with the place in a label of its own.
    let is_by_place = |name: &str| name.starts_with("drop.") && name.contains(".at.");
    for (name, value) in snapshot.numbers.iter().filter(|(name, _)| !is_by_place(name)) {
        add(metric(name), *value);
    }
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    for site in &snapshot.sites {
        if let Some((place, body)) = &site.place {
            let labels = [("reason", site.reason.name()), ("place", &*place.to_string()), ("in", body)];
            *places.entry(self::labels(&labels)).or_default() += site.packets;
        }
    }
    for (labels, value) in places {
        let help = "Packets dropped by a statement of the program.".to_owned();
        add(Metric { name: "triplane_program_drops_total".to_owned(), kind: MetricKind::Counter, help, labels }, value);
    }
    for family in &snapshot.families {
        let samples = family.samples.iter().map(|(labels, value)| (labels.clone(), value.to_string())).collect();
        let named = Family { kind: family.kind, help: family.help.to_owned(), samples };
        families.insert(family.name.to_owned(), named);
    }
    let omitted = families.values().map(|family| family.samples.len().saturating_sub(MAX_SERIES) as u64).sum();
    let name = "triplane_series_omitted".to_owned();
    let help = format!("Series left out, since a metric has at most {MAX_SERIES} of them.");
    families.insert(
        name,
        Family { kind: MetricKind::Gauge, help, samples: vec![(String::new(), u64::to_string(&omitted))] },
    );
    let mut text = String::new();
    for (name, Family { kind, help, samples }) in families {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}", escape(&help), kind.name());
        for (labels, value) in samples.into_iter().take(MAX_SERIES) {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    text
}

/// The metric that a number of the registry becomes.
struct Metric {
    name: String,
    kind: MetricKind,
    help: String,
    labels: String,
}

/// Returns the metric and the labels of a number of the registry. docs/metrics.md has the list.
fn metric(name: &str) -> Metric {
    let counter = |name: String, help: &str, labels: String| Metric {
        name,
        kind: MetricKind::Counter,
        help: help.to_owned(),
        labels,
    };
    let gauge = |name: &str, help: &str, labels: String| Metric {
        name: name.to_owned(),
        kind: MetricKind::Gauge,
        help: help.to_owned(),
        labels,
    };
    if let Some(table) = name.strip_prefix("table.").and_then(|rest| rest.strip_suffix(".entries")) {
        return gauge("triplane_table_entries", "Entries in a table.", labels(&[("table", table)]));
    }
    if let Some(reason) = name.strip_prefix("drop.") {
        let help = "Dropped packets, by reason.";
        return counter("triplane_drops_total".to_owned(), help, labels(&[("reason", reason)]));
    }
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        ["port", port, direction @ ("rx" | "tx" | "error"), unit] => {
            let help = match direction {
                "rx" => format!("{} received by a port.", capital(unit)),
                "tx" => format!("{} sent by a port.", capital(unit)),
                _ => format!("{} that the driver could not send.", capital(unit)),
            };
            counter(format!("triplane_port_{direction}_{}_total", plain(unit)), &help, labels(&[("port", port)]))
        }
        ["port", port, "tpp", result] => {
            let help = "Tiny packet programs of packets from a port, by result.";
            counter("triplane_tpp_programs_total".to_owned(), help, labels(&[("port", port), ("result", result)]))
        }
        ["port", port, "int", result] => {
            let help = "Packets with INT from a port, by result.";
            counter("triplane_int_packets_total".to_owned(), help, labels(&[("port", port), ("result", result)]))
        }
        ["queue", port, priority, "depth"] => {
            let help = "Packets waiting in an egress queue.";
            gauge("triplane_queue_depth", help, labels(&[("port", port), ("priority", priority)]))
        }
        ["queue", port, priority, what] => {
            let help = if what == "dropped" {
                "Packets dropped because an egress queue was full."
            } else {
                "Packets added to an egress queue."
            };
            let labels = labels(&[("port", port), ("priority", priority)]);
            counter(format!("triplane_queue_{}_total", plain(what)), help, labels)
        }
        ["queue", port, priority, way @ ("rx" | "drop"), "bytes"] => {
            let (what, help) = match way {
                "rx" => ("", "Bytes added to an egress queue while it had a rate."),
                _ => ("dropped_", "Bytes dropped because an egress queue was full."),
            };
            counter(
                format!("triplane_queue_{what}bytes_total"),
                help,
                labels(&[("port", port), ("priority", priority)]),
            )
        }
        _ => counter(format!("triplane_{}_total", plain(name)), &format!("Switch counter {name}."), String::new()),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Replaces the characters that the name of a metric cannot have.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Escapes what would end a line or begin an escape. A help text has no other escapes.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// Emits labels, with the escapes of the format: `{port="1"}`.
pub(crate) fn labels(labels: &[(&str, &str)]) -> String {
    let quoted = |value: &str| escape(value).replace('"', "\\\"");
    let all: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", quoted(value))).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
mod tests {
    use switch::DropSite;

    use super::*;
    use crate::family::MetricFamily;

    #[test]
    fn every_number_has_a_metric_and_its_labels() {
        let number = |name: &str, value| (name.to_owned(), value);
        let numbers = vec![
            number("port.1.rx.packets", 3),
            number("port.10.rx.packets", 4),
            number("port.1.tx.bytes", 500),
            number("queue.2.0.depth", 1),
            number("queue.2.0.dropped", 9),
            number("drop.ingress.program", 7),
            number("drop.ingress.program.at.a.p4:8:9", 7),
            number("table.In.t\"x.entries", 5),
            number("notification.packets-in", 2),
            number("port.1.tpp.executed", 6),
            number("port.1.tpp.limited", 8),
            number("port.1.int.inserted", 9),
            number("port.1.error.packets", 10),
            number("queue.2.0.drop.bytes", 11),
        ];
        let place = diagnostics::SourcePosition { file: "a\\b.p4".into(), line: 8, column: 9 };
        let reason = switch::DropReason::IngressProgram;
        let site = |packets| DropSite { reason, place: Some((place.clone(), "In.drop".to_owned())), packets };
        let text =
            exposition(&MetricsSnapshot { numbers, sites: vec![site(3), site(4)], ..MetricsSnapshot::default() });
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"triplane_drops_total{reason="ingress.program"} 7"#,
                r#"triplane_int_packets_total{port="1",result="inserted"} 9"#,
                "triplane_notification_packets_in_total 2",
                r#"triplane_port_error_packets_total{port="1"} 10"#,
                r#"triplane_port_rx_packets_total{port="1"} 3"#,
                r#"triplane_port_rx_packets_total{port="10"} 4"#,
                r#"triplane_port_tx_bytes_total{port="1"} 500"#,
                r#"triplane_program_drops_total{reason="ingress.program",place="a\\b.p4:8:9",in="In.drop"} 7"#,
                r#"triplane_queue_depth{port="2",priority="0"} 1"#,
                r#"triplane_queue_dropped_bytes_total{port="2",priority="0"} 11"#,
                r#"triplane_queue_dropped_total{port="2",priority="0"} 9"#,
                "triplane_series_omitted 0",
                r#"triplane_table_entries{table="In.t\"x"} 5"#,
                r#"triplane_tpp_programs_total{port="1",result="executed"} 6"#,
                r#"triplane_tpp_programs_total{port="1",result="limited"} 8"#,
            ]
        );
        // Each metric has one head, before its samples.
        assert_eq!(text.matches("# TYPE triplane_port_rx_packets_total counter\n").count(), 1);
        assert!(text.contains("# TYPE triplane_table_entries gauge\n"));
    }

    #[test]
    fn metrics_with_names_of_their_own_are_in_the_text() {
        let families = vec![
            MetricFamily::gauge("triplane_left_seconds", "Time.").labelled(&[("shard", "a\"b")], 0.25),
            MetricFamily::histogram("triplane_took_seconds", "Took.", [(0.5, 2), (1.0, 3)], (4, 7.5)),
        ];
        let text = exposition(&MetricsSnapshot { families, ..MetricsSnapshot::default() });
        let expected = "\
# HELP triplane_left_seconds Time.
# TYPE triplane_left_seconds gauge
triplane_left_seconds{shard=\"a\\\"b\"} 0.25
# HELP triplane_series_omitted Series left out, since a metric has at most 10000 of them.
# TYPE triplane_series_omitted gauge
triplane_series_omitted 0
# HELP triplane_took_seconds Took.
# TYPE triplane_took_seconds histogram
triplane_took_seconds_bucket{le=\"0.5\"} 2
triplane_took_seconds_bucket{le=\"1\"} 3
triplane_took_seconds_bucket{le=\"+Inf\"} 4
triplane_took_seconds_sum 7.5
triplane_took_seconds_count 4
";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_of_a_program_cannot_leave_their_lines() {
        let table = "a\\b\"c\nd";
        let numbers = vec![
            (format!("table.{table}.entries"), 1),
            (format!("port.{table}.rx.{table}"), 2),
            (format!("drop.{table}"), 3),
            (format!("new.{table}"), 4),
        ];
        let place = diagnostics::SourcePosition { file: table.into(), line: 8, column: 9 };
        let reason = switch::DropReason::IngressProgram;
        let sites = vec![DropSite { reason, place: Some((place, table.to_owned())), packets: 5 }];
        let text = exposition(&MetricsSnapshot { numbers, sites, ..MetricsSnapshot::default() });
        let quoted = r#"a\\b\"c\nd"#;
        for line in text.lines() {
            let is_head = ["# HELP triplane_", "# TYPE triplane_"].iter().any(|head| line.starts_with(head));
            assert!(is_head || line.starts_with("triplane_"), "{text}");
        }
        for expected in [
            format!("triplane_table_entries{{table=\"{quoted}\"}} 1\n"),
            format!("triplane_port_rx_a_b_c_d_total{{port=\"{quoted}\"}} 2\n"),
            format!("triplane_drops_total{{reason=\"{quoted}\"}} 3\n"),
            format!("place=\"{quoted}:8:9\",in=\"{quoted}\"}} 5\n"),
            "# HELP triplane_new_a_b_c_d_total Switch counter new.a\\\\b\"c\\nd.\n".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn a_program_with_many_tables_has_a_bounded_number_of_series() {
        let numbers = (0..MAX_SERIES + 3).map(|table| (format!("table.{table}.entries"), 0)).collect();
        let text = exposition(&MetricsSnapshot { numbers, ..MetricsSnapshot::default() });
        assert_eq!(text.matches("\ntriplane_table_entries{").count(), MAX_SERIES);
        assert!(text.contains("\ntriplane_series_omitted 3\n"));
    }
}
