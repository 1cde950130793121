//! Prints the sums of the words of collected programs.

use ::tpp::shim::{WordSum, WordSums};
use serde_json::{Value, json};

use crate::output::{aligned, grouped, three_digits};

/// Formats the sums as a table.
pub fn text(sums: &WordSums) -> String {
    let mut rows = vec![["application", "hop", "", "programs", "min", "mean", "max"].map(str::to_owned)];
    rows.extend(sums.ordered().into_iter().map(|word| {
        let value = |value: String| if word.count == 0 { "-".to_owned() } else { value };
        [
            word.application.to_string(),
            word.hop.to_string(),
            word.name.clone(),
            grouped(word.count),
            value(grouped(word.least.into())),
            value(three_digits(word.sum as f64 / word.count as f64)),
            value(grouped(word.most.into())),
        ]
    }));
    let mut text = if rows.len() > 1 { aligned(&rows, &[0, 1, 3, 4, 5, 6]) + "\n" } else { String::new() };
    if sums.unnamed > 0 {
        let count = grouped(sums.unnamed);
        text += &format!("the words of {count} programs have no hop: `.mode hop` gives them one\n");
    }
    if sums.not_executed > 0 {
        let count = grouped(sums.not_executed);
        text += &format!("no switch executed {count} programs: is it enabled (`triplane run --tpp N`)?\n");
    }
    text
}

/// Returns the sums as JSON.
pub fn json(sums: &WordSums) -> Vec<Value> {
    let word = |word: &WordSum| {
        let has_values = word.count > 0;
        json!({
            "application": word.application,
            "hop": word.hop,
            "name": word.name,
            "programs": word.count,
            "min": has_values.then_some(word.least),
            "mean": has_values.then(|| word.sum as f64 / word.count as f64),
            "max": has_values.then_some(word.most),
        })
    };
    sums.ordered().into_iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::executed;
    use super::*;
    use ::tpp::map::MemoryMap;
    use ::tpp::shim::CollectedProgram;

    #[test]
    fn programs_without_words_are_reported() {
        let (map, mut sums) = (MemoryMap::new(), WordSums::default());
        let split = "CEXEC [Switch:ID], 0xffffffff, 4\nPUSH [Switch:ID]";
        for bytes in [executed("PUSH [Switch:ID]", &[]), executed(split, &[4, 5])] {
            sums.add(&CollectedProgram { flow: None, bytes }, &map);
        }
        let text = text(&sums);
        assert!(text.contains("1 programs have no hop") && text.contains("no switch executed 1 programs"), "{text}");
        assert!(json(&sums).is_empty());
    }
}
