//! Validates programs: checks the invariants of every executable program.
//!
//! Executors assume these rules and at most assert them; compilers call [`validate()`] on their output. The rules:
//!
//! 1. Every id, field number and action number names something that exists.
//! 2. Names are unique within a kind, in a header type, in an action's parameters and in a table's actions; exempt are
//!    local headers and slots, arguments, actions and action bodies.
//! 3. No name is longer than 1000 bytes.
//! 4. No slot, field, key, register element or expression is wider than 65536 bits, no header or action's data than
//!    524288 bits.
//! 5. Register, counter and meter arrays have at most 2^24 elements and 2^31 bits each and 2^26 elements together; a
//!    lookahead reaches at most 524288 bits.
//! 6. A header type has at most one varbit field.
//! 7. A stack has at least one element, all of one type; no header is in two stacks; its next index is 32 bits wide.
//! 8. An action's parameters are argument slots, each parameter its own, used by that action's body alone.
//! 9. The architecture's `parser` is a parser body, its other blocks are controls.
//! 10. Field lists hold metadata slots and headers that are not local; every field list named by a resubmit,
//!     recirculate or clone exists.
//! 11. Both sides of an operator, an assignment, a conditional expression or a match have the same width.
//! 12. Conditions are 1 bit wide; bit counts, byte counts, errors, session ids and action numbers 32 bits.
//! 13. A slice's high bit is at or above its low bit and lies within the value.
//! 14. The result of an extension is at least as wide as its operand.
//! 15. Fixed fields are used as values and l-values, varbit fields only by the instructions that accept them.
//! 16. Expressions nest at most 256 deep.
//! 17. Only parsers have states, extract, look ahead, advance, verify, select and reject; only controls emit; parsers
//!     neither apply tables nor exit.
//! 18. Actions do not apply tables.
//! 19. An extraction gives a varbit field's width exactly if the layout has a varbit field.
//! 20. A constant error that is raised is a member of the errors.
//! 21. A header is copied only from a header of equal layout, a varbit field only from one that is at most as wide.
//! 22. A digest gets one value for each field, of the field's width.
//! 23. Indexed counters and meters are used by index; a direct meter is only read; a table's counter and meter are
//!     direct and belong to no other table.
//! 24. Meters measure packets or bytes, not both.
//! 25. A body has an entry block, and every block is reachable from it.
//! 26. The values of a switch are as wide as its subject, and distinct.
//! 27. The matches of a select case cover its keys exactly; a value set covers one key per field.
//! 28. An action's body has the kind `action`.
//! 29. A table key is as wide as its expression.
//! 30. A table has at most one lpm key; selector keys belong to a table whose profile has a selector; value sets have
//!     no selector keys.
//! 31. An entry has one value for each key but selectors, of the key's kind and width; prefixes fit and nothing is set
//!     outside prefix or mask; ranges are not empty.
//! 32. A default action and an entry give one argument for each of the action's parameters, of its width.
//! 33. A default action is not `@tableonly`; an entry's action is not `@defaultonly`.
//! 34. Priorities are not negative, and 0 where no key element needs one.

mod code;
mod expr;
mod rules;
mod storage;
mod tables;

pub use rules::*;

use std::collections::HashMap;

use cranelift_entity::{EntityRef, PrimaryMap};

use crate::*;

/// Maximum number of violations reported; one mistake in a compiler can break a rule everywhere.
const MAX_VIOLATIONS: usize = 100;

/// Checks every rule.
///
/// # Errors
/// The violations, in the order of the program, at most 100.
pub fn validate(program: &Program) -> Result<(), Vec<Violation>> {
    let mut checker = Checker { program, at: Location::Program, violations: Vec::new(), owners: HashMap::new() };
    checker.storage();
    checker.objects();
    checker.bodies();
    if checker.violations.is_empty() { Ok(()) } else { Err(checker.violations) }
}

/// The part of the program that is being checked.
#[derive(Clone, Copy)]
enum Location<'p> {
    Program,
    /// A declaration: kind and name.
    Object(&'static str, &'p str),
    Instr(&'p Body, BlockId, &'p Instr),
    Terminator(&'p Body, BlockId),
}

struct Checker<'p> {
    program: &'p Program,
    at: Location<'p>,
    violations: Vec<Violation>,
    /// The body that each argument slot belongs to.
    owners: HashMap<SlotId, BodyId>,
}

impl<'p> Checker<'p> {
    /// Reports a violation at the current location.
    fn broken(&mut self, rule: Rule, message: impl Into<String>) {
        if self.violations.len() >= MAX_VIOLATIONS {
            return;
        }
        let (location, loc) = match self.at {
            Location::Program => ("program".to_owned(), None),
            Location::Object(kind, name) => (format!("{kind} {}", shortened(name)), None),
            Location::Instr(body, block, instr) => (
                format!(
                    "body {}, block {}, \"{}\"",
                    body.name,
                    self.program.display_block(body, block),
                    shortened(&self.program.display_op(&instr.op).to_string())
                ),
                Some(instr.loc),
            ),
            Location::Terminator(body, block) => (
                match body.blocks.get(block) {
                    Some(found) => {
                        let end = self.program.display_terminator(body, &found.terminator).to_string();
                        let line = shortened(end.lines().next().unwrap_or_default());
                        format!("body {}, block {}, \"{line}\"", body.name, self.program.display_block(body, block))
                    }
                    None => format!("body {}, {block}", body.name),
                },
                body.blocks.get(block).map(|block| block.loc),
            ),
        };
        let source = loc.filter(|loc| loc.index() != 0).and_then(|loc| self.program.locs.get(loc)).cloned();
        self.violations.push(Violation { rule, location, source, message: message.into() });
    }

    /// Reports a violation unless `holds`.
    fn require(&mut self, holds: bool, rule: Rule, message: impl FnOnce() -> String) {
        if !holds {
            self.broken(rule, message());
        }
    }

    /// Returns the entity with this id, or reports a violation.
    fn get<K: EntityRef + std::fmt::Display, V>(&mut self, map: &'p PrimaryMap<K, V>, id: K) -> Option<&'p V> {
        let found = map.get(id);
        self.require(found.is_some(), Rule::IdInRange, || format!("there is no {id}"));
        found
    }

    fn width_limit(&mut self, width: u32) {
        self.require(width <= bits::MAX_WIDTH, Rule::WidthLimit, || format!("{width} bits are too wide"));
    }

    fn name_length(&mut self, name: &str) {
        self.require(name.len() <= MAX_NAME, Rule::NameLength, || format!("a name of {} bytes", name.len()));
    }

    fn annotations(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            self.name_length(&annotation.name);
        }
    }

    /// Checks that names are distinct.
    fn unique(&mut self, names: impl IntoIterator<Item = &'p str>) {
        let mut seen = std::collections::HashSet::new();
        for name in names {
            self.name_length(name);
            let new = seen.insert(name);
            self.require(new, Rule::UniqueName, || format!("the name {name:?} is given twice"));
        }
    }
}

/// Shortens a long text but keeps it recognisable.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 200;
    match text.char_indices().nth(ENOUGH) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_documentation_lists_the_rules_as_they_are() {
        let page = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! "));
        let page = page.map(str::trim).collect::<Vec<_>>().join(" ");
        for rule in Rule::ALL {
            let text = format!("{}. {}", rule.number(), rule.text());
            assert!(page.contains(&text), "the module documentation does not have {text:?}");
        }
    }
}
