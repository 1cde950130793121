//! A general matcher: the `a-tree` crate, which takes any boolean expressions.

use a_tree::{ATree, AttributeDefinition};

/// Rules in it.
pub struct General(ATree<u32>);

impl General {
    /// The rules of the paper's workload as text; each is its port's number.
    pub fn new(rules: &str) -> General {
        let attributes = [AttributeDefinition::string("stock"), AttributeDefinition::integer("price")];
        let mut tree = ATree::new(&attributes).expect("two attributes");
        for (number, rule) in (0u32..).zip(rules.lines()) {
            let (condition, action) = rule.split_once(" : fwd(").expect("a rule of this form");
            let port: u32 = action.trim_end_matches(')').parse().expect("a port");
            let condition = condition.strip_prefix("stock == ").expect("a rule of this form");
            let (stock, price) = condition.split_once(" and ").expect("a rule of this form");
            // Identifiers must differ: the rule above, the port below.
            let expression = format!("stock = '{stock}' and {price}");
            tree.insert(&(number << 9 | port), &expression).expect("an expression of its language");
        }
        General(tree)
    }

    /// The ports of a message.
    pub fn ports(&self, message: &[u8]) -> Vec<u32> {
        let stock = std::str::from_utf8(&message[26..34]).expect("a symbol").trim_end();
        let price = u32::from_be_bytes(message[34..38].try_into().expect("four bytes"));
        let mut event = self.0.make_event();
        event.with_string("stock", stock).expect("an attribute");
        event.with_integer("price", price.into()).expect("an attribute");
        let event = event.build().expect("all attributes");
        let report = self.0.search(&event).expect("an event of its attributes");
        let mut ports: Vec<u32> = report.matches().iter().map(|id| **id & 511).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}
