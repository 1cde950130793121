//! Lists the keys that each kind of traffic accepts. A key of another kind is an error and is not ignored: a TCP flow
//! with a `rate` would otherwise run as fast as it can.

use diagnostics::Diagnostic;
use toml::de::DeTable;

use crate::read::document::Reader;

/// Keys of every kind of traffic.
const ALL: [&str; 4] = ["name", "kind", "from", "start"];

/// Additional keys of each kind.
const KINDS: [(&str, &[&str]); 12] = [
    ("udp", &["to", "stop", "rate", "size", "timing", "on", "off", "address", "ecn", "minion", "int"]),
    ("tcp", &["to", "bytes", "control", "window", "address", "ecn", "minion"]),
    ("flows", &["to", "stop", "rate", "sizes", "control", "address", "ecn", "minion"]),
    ("requests", &["to", "stop", "request", "response", "think", "control", "address", "ecn", "minion"]),
    ("ping", &["to", "count", "interval", "address"]),
    ("rcp", &["to", "stop", "size", "fairness", "interval", "address", "minion"]),
    ("hpcc", &["to", "stop", "size", "target", "max-flows", "address", "minion"]),
    (
        "conga",
        &[
            "to", "stop", "rate", "size", "timing", "on", "off", "flows", "balance", "paths", "metric", "gap",
            "interval", "address", "minion",
        ],
    ),
    ("tpp", &["to", "file", "count", "interval", "address"]),
    (
        "execute",
        &["to", "file", "count", "interval", "stop", "switches", "reflect", "tries", "timeout", "deadline", "address"],
    ),
    ("probe", &["to", "stop", "frame", "count", "interval", "values"]),
    ("replay", &["stop", "file"]),
];

impl Reader<'_> {
    /// Reports keys that this kind of traffic does not have.
    pub(super) fn words(&mut self, table: &DeTable<'_>) {
        let kind = table.get("kind").and_then(|kind| kind.get_ref().as_str());
        let kind = KINDS.iter().find(|(name, _)| Some(*name) == kind);
        let mut all: Vec<&str> = ALL.to_vec();
        all.extend(KINDS.iter().flat_map(|(_, words)| *words));
        all.sort_unstable();
        all.dedup();
        self.known(table, "traffic", &all);
        let Some((kind, own)) = kind else { return };
        for (key, _) in table.iter() {
            let word: &str = key.get_ref();
            if !all.contains(&word) || ALL.contains(&word) || own.contains(&word) {
                continue;
            }
            let message = format!("traffic of kind `{kind}` has no `{word}`");
            let finding = Diagnostic::error("topology", self.span(key.span()), message);
            self.diagnostics.push(finding.help(format!("its keys are {} and {}", ALL.join(", "), own.join(", "))));
        }
    }
}
