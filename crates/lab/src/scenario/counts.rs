//! Merges the bitmap sketches of the receivers of some traffic, as an aggregator does.

use std::collections::{BTreeMap, BTreeSet};

use diagnostics::Span;
use toml::de::DeTable;
use tpp::sketch::{BITS, Cardinality, LinkPlace, SketchAggregator, SketchHash, standard_error};

use super::results::app;
use super::run::{At, Run};
use crate::read::document::Reader;
use crate::sim::traffic::{CountedElement, LinkCount, ProgramCollector};
use crate::topology::Delay;

/// The different elements that passed the links, by period.
#[derive(Clone, Debug, PartialEq)]
pub struct CountResult {
    /// What was counted.
    pub element: CountedElement,
    /// Number of bits of each link.
    pub bits: u32,
    /// The links of each period, in ascending order of both.
    pub links: Vec<LinkCardinality>,
    /// Bitmaps that hosts reported, over all links and periods.
    pub reported: u64,
}

/// The elements that passed a link in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCardinality {
    /// Number of the period.
    pub period: u64,
    /// The link.
    pub link: LinkPlace,
    /// Number that the sketch estimates.
    pub estimate: Cardinality,
    /// The true number; `None` if hosts did not keep all elements.
    pub exact: Option<u64>,
}

impl LinkCardinality {
    /// Returns the error of the estimate in standard errors of linear counting; infinite for a full bitmap, and `None`
    /// if the true number is unknown.
    pub fn deviation(&self, bits: u32) -> Option<f64> {
        let exact = self.exact? as f64;
        Some(match self.estimate {
            Cardinality::Full => f64::INFINITY,
            // A few elements rarely share a bit: an error of less than one is none.
            Cardinality::About(count) if (count - exact).abs() < 1.0 => 0.0,
            Cardinality::About(count) => (count - exact).abs() / standard_error(bits, exact).max(f64::MIN_POSITIVE),
        })
    }
}

impl CountResult {
    /// Returns the largest deviation of all links and periods, and the link where it is; `None` if there is none.
    pub fn deviation(&self) -> Option<(&LinkCardinality, f64)> {
        let all = self.links.iter().filter_map(|link| Some((link, link.deviation(self.bits)?)));
        all.max_by(|one, other| one.1.total_cmp(&other.1))
    }
}

impl Reader<'_> {
    /// Reads what is to be counted from the table of a minion.
    pub(super) fn link_count(&mut self, table: &DeTable<'_>, span: Span) -> Option<LinkCount> {
        let all = [CountedElement::Sources, CountedElement::Destinations, CountedElement::Flows];
        let element = self.one_of(table, "count", &all.map(|element| (element.word(), element)));
        let bits = self.integer(table, "bits", *BITS.start()..=*BITS.end());
        let seed = self.integer(table, "hash_seed", 0..=u32::MAX);
        let period: Option<Delay> = self.parsed(table, "every");
        if element.is_none() {
            if (bits, seed, period) != (None, None, None) {
                self.wrong(span, "`bits`, `hash_seed` and `every` require `count`: count = \"flows\"");
            }
            return None;
        }
        let period = period.unwrap_or(Delay::from_ms(10_000));
        if period < Delay::from_ms(1) {
            self.wrong(span, format!("`every` is {period}; the minimum is {}", Delay::from_ms(1)));
        }
        let hash = SketchHash { bits: bits.unwrap_or(1_024), seed: seed.unwrap_or(1).into() };
        Some(LinkCount { element: element?, hash, period_ns: period.as_ns() })
    }
}

/// Returns the merged counts of these collectors.
pub fn result(run: &Run, count: &LinkCount, collectors: &BTreeSet<At>) -> CountResult {
    let counters: Vec<_> =
        collectors.iter().filter_map(|at| app::<ProgramCollector>(run, *at)?.counter.as_ref()).collect();
    let mut aggregator = SketchAggregator::new(count.hash);
    let mut exact = BTreeMap::<(u64, LinkPlace), BTreeSet<&[u8]>>::new();
    let mut reported = 0;
    for counter in &counters {
        for report in counter.all_reports() {
            let accepted = aggregator.accept(report);
            debug_assert!(accepted.is_ok(), "all hosts have the hash of the scenario");
            reported += report.sketch.links().count() as u64;
        }
        for (key, elements) in &counter.exact {
            exact.entry(*key).or_default().extend(elements.iter().map(Vec::as_slice));
        }
    }
    let is_exact = counters.iter().all(|counter| !counter.is_cut);
    let mut links = Vec::new();
    for (period, sketch) in aggregator.periods() {
        links.extend(sketch.links().map(|link| {
            let exact = exact.get(&(period, link)).map_or(0, BTreeSet::len) as u64;
            LinkCardinality { period, link, estimate: sketch.estimate(link), exact: is_exact.then_some(exact) }
        }));
    }
    CountResult { element: count.element, bits: count.hash.bits, links, reported }
}
