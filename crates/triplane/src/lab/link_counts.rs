//! Renders the numbers of elements that passed links, as sketches estimate them.

use ::tpp::sketch::Cardinality;
use lab::Topology;
use lab::scenario::{CountResult, LinkCardinality, Results, switch_names};
use serde_json::{Value, json};

use crate::output::{aligned, grouped, three_digits};

/// Maximum number of links that are listed.
const LINKS: usize = 40;

/// Returns the name of a link: `s1:2`.
fn name(topology: &Topology, link: &LinkCardinality) -> String {
    format!("{}:{}", switch_names(&[link.link.switch], topology), link.link.port)
}

/// Formats the counts of each traffic that has some.
pub fn text(topology: &Topology, results: &Results) -> String {
    let mut text = String::new();
    for (traffic, counts) in results.minions().filter_map(|(name, minion)| Some((name, minion.counts.as_ref()?))) {
        let heads = [&format!("{} of {traffic}", counts.element.word()), "period", "estimate", "exact", "error"];
        let mut rows = vec![heads.map(str::to_owned)];
        for link in counts.links.iter().take(LINKS) {
            rows.push([
                name(topology, link),
                grouped(link.period + 1),
                match link.estimate {
                    Cardinality::About(count) => grouped(count.round() as u64),
                    Cardinality::Full => "full".to_owned(),
                },
                link.exact.map_or_else(|| "-".to_owned(), grouped),
                match link.deviation(counts.bits) {
                    Some(deviation) if deviation.is_finite() => format!("{} sigma", three_digits(deviation)),
                    _ => "-".to_owned(),
                },
            ]);
        }
        if rows.len() > 1 {
            text.push_str(&format!("\n{}", aligned(&rows, &[1, 2, 3, 4])));
        }
        let more = counts.links.len().saturating_sub(LINKS);
        if more > 0 {
            text.push_str(&format!("and {more} more\n"));
        }
    }
    text
}

/// Returns the counts of some traffic as JSON.
pub fn json(topology: &Topology, counts: &CountResult) -> Value {
    let links = counts.links.iter().map(|link| {
        let estimate = match link.estimate {
            Cardinality::About(count) => json!(count),
            Cardinality::Full => json!("full"),
        };
        json!({
            "period": link.period + 1, "link": name(topology, link), "estimate": estimate, "exact": link.exact,
            "sigma": link.deviation(counts.bits).filter(|deviation| deviation.is_finite()),
        })
    });
    json!({
        "count": counts.element.word(), "bits": counts.bits, "reported": counts.reported,
        "links": links.collect::<Vec<_>>(),
    })
}
