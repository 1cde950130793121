//! Fuzz targets. Each makes inputs and checks the properties that must hold for every input.

mod entries;
mod executor;
mod frontend;
mod int;
mod ir;
mod p4runtime;
mod packets;
mod pcap;
mod rdma;
mod rules;
mod text;
mod tpp;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use diagnostics::{Diagnostics, SourceMap};

use crate::random::Random;

/// The names of all targets.
pub const NAMES: [&str; 10] =
    ["frontend", "ir", "packets", "entries", "pcap", "p4runtime", "rules", "rdma", "tpp", "executor"];

/// A target.
pub trait FuzzTarget {
    /// Inputs to run as they are, before any other.
    fn seeds(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// An input.
    fn generate(&mut self, random: &mut Random) -> Vec<u8>;

    /// Runs one input, and panics if anything does not hold. What it reached comes back as numbers that mean nothing
    /// but themselves: an input that reached a new one is worth mutating further.
    fn run(&mut self, input: &[u8]) -> Vec<u64>;

    /// Takes an input that reached something new into the corpus.
    fn keep(&mut self, input: Vec<u8>);
}

/// The target with this name, one of [`NAMES`].
pub fn open(name: &str) -> Box<dyn FuzzTarget> {
    match name {
        "frontend" => Box::new(frontend::Frontend::new()),
        "ir" => Box::new(ir::target()),
        "packets" => Box::new(packets::Packets::new()),
        "entries" => Box::new(entries::target()),
        "pcap" => Box::new(pcap::Captures::new()),
        "p4runtime" => Box::new(p4runtime::Calls::new()),
        "rules" => Box::new(rules::Rules::new()),
        "rdma" => Box::new(rdma::Frames::new()),
        "tpp" => Box::new(tpp::TinyPrograms::new()),
        "executor" => Box::new(executor::Requests::new()),
        other => unreachable!("`{other}` is listed and not implemented"),
    }
}

/// The set of things that an input reached, as hashes.
#[derive(Default)]
pub struct Reached(BTreeSet<u64>);

impl Reached {
    /// Records that the input reached `what`.
    fn add(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.0.insert(hasher.finish());
    }

    /// Records the findings of an input, and asserts that they can be rendered: every place in them exists.
    fn findings(&mut self, map: &SourceMap, diagnostics: &Diagnostics) {
        let shown = diagnostics.render(map, false);
        assert!(diagnostics.is_empty() || !shown.is_empty(), "findings are shown");
        diagnostics.render(map, true);
        for diagnostic in diagnostics.iter() {
            // Messages differ in names and numbers; the lower-case words identify the sentence.
            let words =
                diagnostic.message.split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
            self.add((diagnostic.code, words.collect::<Vec<_>>()));
        }
    }

    /// The lines of an IR program without names and numbers: which instructions and operators it has.
    fn instructions(&mut self, text: &str) {
        for line in text.lines() {
            let words = line.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1).take(3);
            self.add(words.collect::<Vec<_>>());
        }
    }

    fn list(self) -> Vec<u64> {
        self.0.into_iter().collect()
    }
}
