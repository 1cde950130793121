//! Simulates programs that look up rows that the stores create: a key gets a number of a pool, and is found by the
//! number.

use crate::message::{IfMissing, NumberPool};
use crate::row::{RowId, RowValues};

/// Group of the rows of keys.
const KEYS: u64 = 2;

/// Group of the rows of numbers, the partners of keys.
const NUMBERS: u64 = KEYS ^ 1;

/// A lookup of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Outputs the number of a key, which gets one if it has none.
    Number(u32),
    /// Outputs the number of a key, if it has one.
    Find(u32),
    /// Outputs the key of a number, if one has it.
    Key(u32),
}

impl Lookup {
    /// Returns the row that is looked up.
    pub fn row(self) -> RowId {
        match self {
            Lookup::Number(key) | Lookup::Find(key) => RowId::of_index(KEYS, key),
            Lookup::Key(number) => RowId::of_index(NUMBERS, number),
        }
    }

    /// Whether the lookup creates the row if there is none.
    pub fn makes_row(self) -> bool {
        matches!(self, Lookup::Number(_))
    }
}

/// Returns a pool with this number of numbers.
pub fn pool(numbers: u32) -> IfMissing {
    IfMissing::Allocate(NumberPool { first: 0, last: u64::from(numbers.saturating_sub(1)), bytes: 4, is_shared: false })
}

/// Whether a row is one that is looked up.
pub fn is_looked_up(row: &RowId) -> bool {
    [KEYS, NUMBERS].contains(&row.group())
}

/// Returns the key or number in the values of a row.
pub fn output_of(values: Option<&RowValues>) -> Option<u32> {
    Some(u32::from_be_bytes(values?.bytes().try_into().ok()?))
}

#[derive(Clone, Copy, Debug)]
struct RecordedLookup {
    lookup: Lookup,
    called: u64,
    returned: Option<(Option<u32>, u64)>,
    is_dropped: bool,
}

/// The lookups of a run.
#[derive(Debug, Default)]
pub struct LookupHistory {
    lookups: Vec<RecordedLookup>,
    newest: Option<u32>,
}

impl LookupHistory {
    /// Records a lookup and returns its number.
    pub fn called(&mut self, lookup: Lookup, called: u64) -> usize {
        self.lookups.push(RecordedLookup { lookup, called, returned: None, is_dropped: false });
        self.lookups.len() - 1
    }

    /// Records an output.
    pub fn returned(&mut self, number: usize, output: Option<u32>, returned: u64) {
        self.lookups[number].returned = Some((output, returned));
        self.newest = self.lookups[number].pair().map(|(_, number, _)| number).or(self.newest);
    }

    /// Records that a switch has no room for a lookup, or that the stores refused it.
    pub fn dropped(&mut self, number: usize) {
        self.lookups[number].is_dropped = true;
    }

    /// Returns the number that a packet has seen last.
    pub fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// Returns the number of lookups, and of those with an output.
    pub fn counts(&self) -> (usize, usize) {
        (self.lookups.len(), self.lookups.iter().filter(|lookup| lookup.returned.is_some()).count())
    }

    /// Returns the lookups from number `first` that have neither an output nor a refusal.
    pub fn silent(&self, first: usize) -> impl Iterator<Item = Lookup> + '_ {
        let is_silent = |lookup: &&RecordedLookup| lookup.returned.is_none() && !lookup.is_dropped;
        self.lookups[first..].iter().filter(is_silent).map(|lookup| lookup.lookup)
    }

    /// Returns the lookups as text.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.lookups.iter().map(|lookup| format!("{lookup:?}"))
    }

    /// Returns the violations, which no order of the lookups explains: each key has one number, each number one key,
    /// and a row that a packet has seen is seen by all later ones. This ends when no packet has seen the row for
    /// `idle_ns`, if rows age. A packet sees a row at the moment of its output.
    pub fn contradictions(&self, idle_ns: Option<u64>) -> Vec<String> {
        let mut found = Vec::new();
        let keeps_until = |seen: u64| idle_ns.map_or(u64::MAX, |idle_ns| seen.saturating_add(idle_ns));
        let mut seen: Vec<(u32, u32, u64)> = self.lookups.iter().filter_map(RecordedLookup::pair).collect();
        seen.sort_by_key(|(.., at)| *at);
        for (at, first) in seen.iter().enumerate() {
            let differs = |other: &&(u32, u32, u64)| (other.0 == first.0) != (other.1 == first.1);
            let mut lately = seen[..at].iter().rev().take_while(|other| first.2 < keeps_until(other.2));
            if let Some(other) = lately.find(differs) {
                let (key, number, when) = *first;
                found.push(format!(
                    "key {key} has number {number} at {when}, and {} has {} at {}",
                    other.0, other.1, other.2
                ));
            }
        }
        for lookup in &self.lookups {
            let Some((None, missed)) = lookup.returned else { continue };
            let contradicts = |(key, number, returned): &&(u32, u32, u64)| {
                let is_same = match lookup.lookup {
                    Lookup::Number(_) => true,
                    Lookup::Find(of) => of == *key,
                    Lookup::Key(of) => of == *number,
                };
                is_same && *returned < lookup.called && missed < keeps_until(*returned)
            };
            if lookup.lookup.makes_row() || seen.iter().any(|pair| contradicts(&pair)) {
                found.push(format!("{lookup:?} has found nothing"));
            }
        }
        found
    }
}

impl RecordedLookup {
    /// Returns the key and number that it has shown, and the time.
    fn pair(&self) -> Option<(u32, u32, u64)> {
        let (output, returned) = self.returned?;
        match self.lookup {
            Lookup::Number(key) | Lookup::Find(key) => Some((key, output?, returned)),
            Lookup::Key(number) => Some((output?, number, returned)),
        }
    }
}
