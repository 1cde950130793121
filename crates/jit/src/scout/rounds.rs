//! Finds the dependencies between tables, which determine the number of rounds of a scout.

use std::collections::BTreeSet;

use ir::{LValue, Op, Program, SlotId, TableId};

use crate::walk::{self, Use};
use crate::{Step, Unit};

/// Maximum number of rounds; tables further down a chain are looked up by the packets themselves.
const MAX_ROUNDS: usize = 5;

/// Returns the number of rounds that are worthwhile for the `noted` tables, which are in program order, each as often
/// as it is applied.
pub(super) fn rounds(program: &Program, unit: &Unit, prefetched: &[TableId]) -> usize {
    let once: BTreeSet<TableId> = prefetched.iter().copied().collect();
    if once.len() < prefetched.len() {
        // A table has only one key per packet in the prefetch memory.
        return 0;
    }
    let given = given(program, unit, prefetched);
    let follows = |id: &TableId| {
        let mut asked = BTreeSet::new();
        program.tables[*id].keys.iter().for_each(|key| walk::slots_of(&key.expr, &mut asked));
        branch_slots(program, unit, *id, &mut asked);
        !asked.is_disjoint(&given)
    };
    prefetched.iter().skip(1).filter(|id| follows(id)).count().min(MAX_ROUNDS)
}

/// Returns the slots that actions of tables write, and those derived from them.
fn given(program: &Program, unit: &Unit, tables: &[TableId]) -> BTreeSet<SlotId> {
    let mut given = BTreeSet::new();
    for action in tables.iter().flat_map(|id| &program.tables[*id].actions) {
        walk::body(program, &program.bodies[program.actions[action.action].body], &mut |used| {
            if let Use::Write(slot) = used {
                given.insert(slot);
            }
        });
    }
    // Blocks are visited in program order, which approximates execution order: a missed slot costs only time.
    for body in walk::bodies_of_steps(program, &unit.steps) {
        for instr in program.bodies[body].blocks.values().flat_map(|block| &block.instrs) {
            if let Op::Assign(LValue::Slot(to), value) = &instr.op {
                let mut read = BTreeSet::new();
                walk::slots_of(value, &mut read);
                if !read.is_disjoint(&given) {
                    given.insert(*to);
                }
            }
        }
    }
    given
}

/// Adds the slots that decide whether the body that applies a table reaches it. Assertions are not considered: a scout
/// assumes that they hold.
fn branch_slots(program: &Program, unit: &Unit, id: TableId, into: &mut BTreeSet<SlotId>) {
    let bodies = unit.steps.iter().filter_map(|step| match step {
        Step::Run(body) => Some(&program.bodies[*body]),
        _ => None,
    });
    let applies = |op: &Op| matches!(op, Op::Apply { table, .. } if *table == id);
    let here = bodies.filter(|body| body.blocks.values().flat_map(|block| &block.instrs).any(|at| applies(&at.op)));
    here.flat_map(|body| body.blocks.values()).for_each(|block| walk::branch_slots(&block.terminator, into));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    /// Returns the number of worthwhile rounds if `ingress` applies `applied` in this order.
    fn rounds_of(applied: &[&str], ingress: &str) -> usize {
        let program = text::program(&format!(
            "program test
errors {{ NoError }}
header_type t {{ a: 16 }}
header h: t
metadata x: 16
metadata y: 16
argument set_x.to: 16
argument set_y.to: 16
action set_x(to: set_x.to) body set_x
action set_y(to: set_y.to) body set_y
table from_packet {{
  key k: exact 16 = h.a
  action set_x
  default set_x(0x0:16)
}}
table from_x {{
  key k: exact 16 = x
  action set_y
  default set_y(0x0:16)
}}
table from_y {{
  key k: exact 16 = y
  action set_x
  default set_x(0x0:16)
}}
role ingress: I
action_body set_x {{
  block start:
    x = set_x.to
    return
}}
action_body set_y {{
  block start:
    y = set_y.to
    return
}}
control I {{
{ingress}}}
"
        ));
        let unit = Unit { steps: vec![Step::Run(program.blocks["ingress"])], ..Unit::default() };
        let id = |name: &&str| program.tables.iter().find(|(_, table)| table.name == *name).unwrap().0;
        rounds(&program, &unit, &applied.iter().map(id).collect::<Vec<_>>())
    }

    /// Returns the same number for a control that does nothing else.
    fn in_order(applied: &[&str]) -> usize {
        let applications: String = applied.iter().map(|name| format!("    apply {name}\n")).collect();
        rounds_of(applied, &format!("  block start:\n{applications}    return\n"))
    }

    #[test]
    fn each_table_that_asks_for_what_was_found_takes_a_round() {
        assert_eq!(in_order(&["from_packet", "from_x", "from_y"]), 2);
        assert_eq!(in_order(&["from_packet", "from_x"]), 1);
    }

    #[test]
    fn tables_that_ask_for_the_packet_alone_take_none() {
        assert_eq!(in_order(&["from_packet"]), 0);
        assert_eq!(in_order(&["from_y", "from_packet"]), 0);
        assert_eq!(in_order(&["from_packet", "from_y"]), 0, "nothing writes the key of the second");
    }

    #[test]
    fn a_table_that_is_applied_twice_is_not_followed() {
        assert_eq!(in_order(&["from_packet", "from_packet"]), 0);
        assert_eq!(in_order(&["from_packet", "from_x", "from_x"]), 0);
    }

    #[test]
    fn what_is_made_of_what_was_found_is_asked_for_too() {
        let ingress = "  block start:\n    apply from_packet\n    y = x\n    apply from_y\n    return\n";
        assert_eq!(rounds_of(&["from_packet", "from_y"], ingress), 1);
    }

    #[test]
    fn a_table_behind_a_choice_by_what_was_found_takes_a_round() {
        let ingress = |of: &str| {
            format!(
                "  block start:
    apply from_x
    branch {of} == 0x0:16 -> then else done
  block then:
    apply from_packet
    goto done
  block done:
    return
"
            )
        };
        let applied = ["from_x", "from_packet"];
        assert_eq!(rounds_of(&applied, &ingress("y")), 1);
        assert_eq!(rounds_of(&applied, &ingress("h.a")), 0);
    }
}
