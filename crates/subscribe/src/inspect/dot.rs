//! Draws decision diagrams in the language of Graphviz.

use std::fmt::Write;

use bdd::Ref;

use crate::compile::layout::ColumnKey;
use crate::format::{ValueKind, max_of};
use crate::subscriptions::Subscriptions;
use crate::syntax::value::show as show_value;

impl Subscriptions {
    /// Renders the diagram as a binary diagram of comparisons for `dot`: a solid edge where the test is true, a dashed
    /// one where it is false, one box per field. Returns `None` if it has more than `most` nodes.
    pub fn dot(&self, most: usize) -> Option<String> {
        let reachable = self.store.reachable(self.emitter.root());
        let nodes: usize = reachable.iter().map(|function| self.store.arms(*function).len().max(1)).sum();
        if nodes > most {
            return None;
        }
        let mut out = "digraph subscriptions {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n".to_owned();
        let mut edges = String::new();
        let of_level =
            |level: Option<u32>| reachable.iter().filter(move |function| self.store.level(**function) == level);
        for (level, key) in self.layout.keys().iter().enumerate() {
            if of_level(Some(level as u32)).next().is_none() {
                continue;
            }
            let _ =
                writeln!(out, "  subgraph cluster_{level} {{\n    label={:?}; style=rounded;", key.name(&self.format));
            for function in of_level(Some(level as u32)) {
                self.node(*function, *key, &mut out, &mut edges);
            }
            out.push_str("  }\n");
        }
        for function in of_level(None) {
            let delivery = self.delivery_of(*function);
            let _ = writeln!(out, "  {function:?}_0 [shape=box, label={:?}];", delivery.shown(&self.format));
        }
        Some(out + &edges + "}\n")
    }

    /// Converts a node to a sequence of comparisons: the first true one selects its function, and if none is true, the
    /// last function applies.
    pub(crate) fn comparisons(&self, function: Ref) -> (Vec<(&'static str, u128, Ref)>, Ref) {
        let arms: Vec<(u128, Ref)> = self.store.arms(function).collect();
        let Some(level) = self.store.level(function) else { return (Vec::new(), function) };
        let max = max_of(self.layout.keys()[level as usize].width(&self.format));
        let last = |at: usize| arms.get(at + 1).map_or(max, |(next, _)| next - 1);
        // Single values are tested by `==` if all intervals around them lead to one function.
        let around = arms.iter().enumerate().filter(|(at, (first, _))| *first != last(*at));
        let mut others: Vec<Ref> = around.map(|(_, (_, child))| *child).collect();
        others.sort_unstable();
        others.dedup();
        // Of two single values, such as those of a bit, the second is tested.
        match (others.as_slice(), arms.as_slice()) {
            ([other], _) | ([], [(_, other), _]) => {
                let single = arms.iter().filter(|(_, child)| child != other);
                (single.map(|(first, child)| ("==", *first, *child)).collect(), *other)
            }
            _ => {
                let below = arms.iter().enumerate().take(arms.len() - 1);
                let tests = below.map(|(at, (_, child))| ("<=", last(at), *child)).collect();
                (tests, arms[arms.len() - 1].1)
            }
        }
    }

    /// Renders one node as a chain of comparisons.
    fn node(&self, function: Ref, key: ColumnKey, out: &mut String, edges: &mut String) {
        let (kind, width) = match key {
            ColumnKey::Field(id) => (self.format.get(id).kind, self.format.get(id).width),
            _ => (ValueKind::Unsigned, key.width(&self.format)),
        };
        let (tests, otherwise) = self.comparisons(function);
        for (at, (comparison, than, child)) in tests.iter().enumerate() {
            let test = if key.is_validity() {
                "valid".to_owned()
            } else {
                format!("{comparison} {}", show_value(*than, kind, width))
            };
            let _ = writeln!(out, "    {function:?}_{at} [label={test:?}];");
            let _ = writeln!(edges, "  {function:?}_{at} -> {child:?}_0;");
            let next =
                if at + 1 < tests.len() { format!("{function:?}_{}", at + 1) } else { format!("{otherwise:?}_0") };
            let _ = writeln!(edges, "  {function:?}_{at} -> {next} [style=dashed];");
        }
    }
}
