//! Adds up the words of collected programs by hop.

use std::collections::BTreeMap;

use ::tpp::map::MemoryMap;
use ::tpp::shim::CollectedProgram;
use serde_json::{Value, json};

use super::super::report::ProgramWords;
use crate::output::{aligned, grouped, three_digits};

/// The values of a word at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordSum {
    count: u64,
    least: u32,
    most: u32,
    sum: u64,
}

/// The sums of words, by application, hop and name. Only the programs of rules are added, so their number is bounded.
#[derive(Debug, Default)]
pub struct WordSums {
    hops: BTreeMap<(u16, usize), Vec<(String, Option<WordSum>)>>,
    /// Programs whose words have no hop.
    unnamed: u64,
}

impl WordSums {
    /// Adds the words of a program.
    pub fn add(&mut self, collected: &CollectedProgram, map: &MemoryMap) {
        let (program, application) = (collected.program(), collected.application());
        let words = ProgramWords::of_marked(&program, map);
        self.unnamed += u64::from(words.hops().is_empty() && program.unnamed_words().is_some());
        for (hop, words) in words.hops().iter().enumerate() {
            let sums = self.hops.entry((application, hop)).or_default();
            for (name, value) in words {
                let at = sums.iter().position(|(other, _)| other == name).unwrap_or_else(|| {
                    sums.push((name.clone(), None));
                    sums.len() - 1
                });
                let Some(value) = *value else { continue };
                let sum = sums[at].1.get_or_insert(WordSum { count: 0, least: value, most: value, sum: 0 });
                *sum = WordSum {
                    count: sum.count + 1,
                    least: sum.least.min(value),
                    most: sum.most.max(value),
                    sum: sum.sum.saturating_add(value.into()),
                };
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (u16, usize, &str, Option<WordSum>)> {
        self.hops.iter().flat_map(|((application, hop), words)| {
            words.iter().map(move |(name, sum)| (*application, *hop, name.as_str(), *sum))
        })
    }

    /// Formats the sums as a table. Hops are counted from 1.
    pub fn text(&self) -> String {
        let mut rows = vec![["application", "hop", "", "programs", "min", "mean", "max"].map(str::to_owned)];
        rows.extend(self.all().map(|(application, hop, name, sum)| {
            let values = sum.map_or_else(
                || ["0", "-", "-", "-"].map(str::to_owned),
                |WordSum { count, least, most, sum }| {
                    let mean = three_digits(sum as f64 / count as f64);
                    [grouped(count), grouped(least.into()), mean, grouped(most.into())]
                },
            );
            let [count, least, mean, most] = values;
            [application.to_string(), (hop + 1).to_string(), name.to_owned(), count, least, mean, most]
        }));
        let mut text = if rows.len() > 1 { aligned(&rows, &[0, 1, 3, 4, 5, 6]) + "\n" } else { String::new() };
        if self.unnamed > 0 {
            text += &format!("the words of {} programs have no hop: `.mode hop` gives them one\n", self.unnamed);
        }
        text
    }

    /// Returns the sums as JSON.
    pub fn json(&self) -> Vec<Value> {
        let word = |(application, hop, name, sum): (u16, usize, &str, Option<WordSum>)| {
            json!({
                "application": application,
                "hop": hop + 1,
                "name": name,
                "programs": sum.map_or(0, |sum| sum.count),
                "min": sum.map(|sum| sum.least),
                "mean": sum.map(|sum| sum.sum as f64 / sum.count as f64),
                "max": sum.map(|sum| sum.most),
            })
        };
        self.all().map(word).collect()
    }
}
