//! Shows the order of the fields, and searches for a much better one.

use subscribe::{ColumnLayout, Limits, Rule, Subscriptions, TargetCapabilities};

use super::load::Loaded;
use super::report::digits;
use crate::output::Output;

/// Formats the order of the fields.
pub fn describe_order(loaded: &Loaded) -> String {
    format!("field order: {}", loaded.layout.shown(&loaded.rules.format).join(", "))
}

/// Rules in the order that suits them, if tables of another order were requested.
pub struct OrderSuggestion(Option<(ColumnLayout, Vec<Rule>)>);

impl OrderSuggestion {
    /// Looks for a better order than the requested one. An order that was chosen for the rules has no better one.
    pub fn search(loaded: &Loaded, rules: &[Rule], writes_program: bool) -> OrderSuggestion {
        if writes_program && !loaded.is_forced {
            return OrderSuggestion(None);
        }
        let layout = ColumnLayout::sensible(&loaded.rules.format, rules);
        OrderSuggestion((layout != loaded.layout).then(|| (layout, rules.to_vec())))
    }

    /// Reports the better order, if it takes less than half as many entries. `entries` is the current number of
    /// entries, or `None` if there are too many; `writes_program` says whether the program is written with them.
    pub fn print(
        self,
        loaded: &Loaded,
        target: TargetCapabilities,
        entries: Option<usize>,
        writes_program: bool,
        output: &Output,
    ) {
        /// Minimum factor between the numbers of entries that is worth a note.
        const FACTOR: usize = 2;
        let Some((layout, rules)) = self.0 else { return };
        let names = layout.names(&loaded.rules.format).join(",");
        // An order that takes longer than this to compile is not much better.
        let limits = loaded.memory_limit.limits();
        let limits = Limits { steps: 200_000_000, bytes: limits.bytes / 2, ..limits };
        let most = entries.map_or(limits.entries, |entries| entries / FACTOR);
        let limits = Limits { entries: limits.entries.min(most), ..limits };
        let options = subscribe::CompileOptions { limits, target, ..subscribe::CompileOptions::default() };
        let mut all = Subscriptions::new(loaded.rules.format.clone(), layout, options);
        if all.change(&[], rules).is_err() {
            return;
        }
        let found = all.tables().entries.len();
        if found > most {
            return;
        }
        let instead = entries.map(|entries| format!(" instead of {}", digits(entries as u64))).unwrap_or_default();
        let remedy = if writes_program {
            "omit --order and --order-of to have it chosen for the rules"
        } else {
            "generate the program with the same order (`--program FILE` writes both, and chooses it)"
        };
        let found = digits(found as u64);
        output.note(&format!("`--order {names}` would take {found} entries{instead}: {remedy}"));
    }
}
