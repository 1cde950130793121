//! A hand-written index for rules of the form `stock == S and price > P`: a hash table of symbols, sorted thresholds,
//! and a port set for each interval between two thresholds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use subscribe::{Condition, Rule, RuleAction, Subject};

/// Thresholds of a symbol.
struct Stretches {
    /// Thresholds at which the port set changes, ascending.
    above: Vec<u32>,
    /// Port set numbers for prices above no threshold, the first, the second, and so on.
    sets: Vec<u32>,
}

/// The index.
pub struct Index {
    by_stock: HashMap<u64, Stretches, foldhash::fast::FixedState>,
    sets: Vec<Vec<u32>>,
}

/// Returns the symbol, threshold and port of a rule.
fn parts(rule: &Rule) -> (u64, u32, u32) {
    let Condition::All(tests) = &rule.condition else { panic!("a rule of another form") };
    let value = |at: usize| match &tests[at] {
        Condition::Test(test) if matches!(test.subject, Subject::Field(_)) => test.values.list()[0].0,
        _ => panic!("a rule of another form"),
    };
    let [RuleAction::Forward(ports)] = &rule.actions[..] else { panic!("a rule of another form") };
    (value(0) as u64, value(1) as u32 - 1, ports[0])
}

impl Index {
    /// Builds the index of rules of this form.
    pub fn new<'a>(rules: impl Iterator<Item = &'a Rule>) -> Index {
        let mut thresholds: BTreeMap<u64, BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
        for rule in rules {
            let (stock, above, port) = parts(rule);
            thresholds.entry(stock).or_default().entry(above).or_default().insert(port);
        }
        let mut numbers: BTreeMap<Vec<u32>, u32> = [(Vec::new(), 0)].into();
        let mut by_stock = HashMap::default();
        for (stock, thresholds) in thresholds {
            let (mut ports, mut stretches) = (BTreeSet::new(), Stretches { above: Vec::new(), sets: vec![0] });
            for (above, more) in thresholds {
                let before = ports.len();
                ports.extend(more);
                if ports.len() > before {
                    let next = numbers.len() as u32;
                    let set = *numbers.entry(ports.iter().copied().collect()).or_insert(next);
                    stretches.above.push(above);
                    stretches.sets.push(set);
                }
            }
            by_stock.insert(stock, stretches);
        }
        let mut sets = vec![Vec::new(); numbers.len()];
        for (ports, number) in numbers {
            sets[number as usize] = ports;
        }
        Index { by_stock, sets }
    }

    /// Looks up the destinations of some messages.
    pub fn run(&self, batch: &mut [Vec<u8>], answers: &mut [u32]) {
        for (message, answer) in batch.iter().zip(answers) {
            *answer = self.set(message);
        }
    }

    #[inline]
    fn set(&self, message: &[u8]) -> u32 {
        let Some(order) = message.first_chunk::<38>() else { return 0 };
        if order[..3] != [0, 36, b'A'] {
            return 0;
        }
        let stock = u64::from_be_bytes(order[26..34].try_into().expect("eight bytes"));
        let price = u32::from_be_bytes(order[34..].try_into().expect("four bytes"));
        let Some(stretches) = self.by_stock.get(&stock) else { return 0 };
        stretches.sets[stretches.above.partition_point(|above| *above < price)]
    }

    /// Returns the ports of an answer.
    pub fn ports(&self, answer: u32) -> &[u32] {
        &self.sets[answer as usize]
    }
}
