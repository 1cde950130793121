//! A general-purpose matcher: the `a-tree` crate, which supports arbitrary boolean expressions. Requires the feature
//! `peers`.

use a_tree::{ATree, AttributeDefinition};

/// Number of rules in it.
pub struct General(ATree<u32>);

/// Returns a test in its language: `field == NUMBER`, `field > NUMBER`, `field in FIRST..LAST`, `stock == TEXT`.
fn expression(test: &str) -> String {
    match test.split_once(" in ") {
        Some((field, range)) => {
            let (first, last) = range.split_once("..").expect("a range");
            format!("{field} >= {first} and {field} <= {last}")
        }
        None => match test.split_once(" == ") {
            Some((field, text)) => format!("{field} = '{text}'"),
            None => test.to_owned(),
        },
    }
}

impl General {
    /// Returns the rules of a workload as text: conjunctions of tests, and a port. All fields except the stock are
    /// numbers.
    pub fn new(rules: &str, fields: &[&str]) -> Option<General> {
        let attribute = |name: &&str| match *name {
            "stock" => AttributeDefinition::string(name),
            _ => AttributeDefinition::integer(name),
        };
        let attributes: Vec<_> = fields.iter().map(attribute).collect();
        let mut tree = ATree::new(&attributes).expect("names differ");
        for (number, rule) in (0u32..).zip(rules.lines()) {
            let (condition, action) = rule.split_once(" : fwd(").expect("a rule of this form");
            let port: u32 = action.trim_end_matches(')').parse().expect("a port");
            let tests: Vec<String> = condition.split(" and ").map(expression).collect();
            // Identifiers must be unique: the rule in the high bits, the port in the low bits.
            tree.insert(&(number << 9 | port), &tests.join(" and ")).expect("an expression of its language");
        }
        Some(General(tree))
    }

    /// Returns the ports of a message with this stock, if any, and these numbers.
    pub fn ports(&self, stock: Option<&[u8]>, numbers: &[(&str, u32)]) -> Vec<u32> {
        let mut event = self.0.make_event();
        if let Some(stock) = stock {
            let text = std::str::from_utf8(stock).expect("a symbol").trim_end();
            event.with_string("stock", text).expect("an attribute");
        }
        for (name, number) in numbers {
            event.with_integer(name, (*number).into()).expect("an attribute");
        }
        let event = event.build().expect("all attributes");
        let report = self.0.search(&event).expect("an event of its attributes");
        let mut ports: Vec<u32> = report.matches().iter().map(|id| **id & 511).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}
