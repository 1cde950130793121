//! Random programs in which the keys of tables depend on actions of earlier tables, as in compiled decision diagrams.
//! Batches, which prefetch the results round after round, must agree with the interpreter, which runs packet by packet.

use std::fmt::Write;
use std::sync::Arc;

use crate::both::{self, RandomValues};
use diagnostics::{Diagnostics, SourceMap};
use ir::Program;

const HEAD: &str = "program v1model
errors { NoError PacketTooShort NoMatch StackOutOfBounds HeaderTooShort ParserTimeout ParserInvalidArgument }
header_type t { a: 4  b: 4  c: 16 }
header h: t
metadata meta.state: 3
metadata meta.hit: 1
metadata meta.wide: 200
argument to.to: 3
argument far.to: 3
argument far.wide: 200
COUNTERaction to(to: to.to) body to
action far(to: far.to, wide: far.wide) body far
";

const BODIES: &str = "parser P {
  block start:
    extract h
    return
}
action_body to {
  block start:
    meta.state = to.to
    return
}
action_body far {
  block start:
    meta.state = far.to
    meta.wide = far.wide
    return
}
control D {
  block start:
    emit h
    return
}
";

/// Draws the keys of a table: in a dense range or not, few enough to be enumerated, or neither.
fn keys(rng: &mut RandomValues) -> &'static [&'static str] {
    match rng.below(7) {
        0 => &["exact 3 = meta.state", "exact 4 = h.a"],
        1 => &["exact 3 = meta.state", "range 4 = h.b"],
        2 => &["ternary 3 = meta.state"],
        3 => &["ternary 3 = meta.state", "ternary 16 = h.c"],
        4 => &["exact 4 = h.b", "lpm 3 = meta.state"],
        5 => &["exact 4 = h.a"],
        _ => &["exact 3 = meta.state"],
    }
}

fn text(rng: &mut RandomValues) -> String {
    let tables = 2 + rng.below(6);
    let counted = rng.below(2 * tables);
    let counter = if counted < tables { "counter seen: packets direct\n" } else { "" };
    let mut out = HEAD.replace("COUNTER", counter);
    for table in 0..tables {
        writeln!(out, "table t{table} {{").unwrap();
        for (at, key) in keys(rng).iter().enumerate() {
            writeln!(out, "  key k{at}: {key}").unwrap();
        }
        writeln!(out, "  action to\n  action far").unwrap();
        if table == counted {
            out.push_str("  counter seen\n");
        }
        let default = if rng.below(2) == 0 { "to(0x1:3)" } else { "far(0x2:3, 0x7:200)" };
        writeln!(out, "  default {default}\n}}").unwrap();
    }
    out.push_str("role parser: P\nrole ingress: I\nrole deparser: D\n");
    out.push_str(BODIES);
    out.push_str("control I {\n  block start:\n    goto b0\n");
    for table in 0..tables {
        let (next, asked) = (table + 1, rng.below(8));
        let (condition, skip) = match rng.below(3) {
            0 => (format!("meta.state != 0x{asked:x}:3"), next),
            1 => ("meta.hit == 0x0:1".to_owned(), next + rng.below(tables - table)),
            _ => ("valid(h)".to_owned(), next),
        };
        // Some tables are applied twice.
        let again = if rng.below(12) == 0 { format!("    apply t{}\n", rng.below(tables)) } else { String::new() };
        writeln!(
            out,
            "  block b{table}:\n    branch {condition} -> a{table} else b{skip}\n  block a{table}:\n    apply t{table} hit meta.hit\n{again}    goto b{next}"
        )
        .unwrap();
    }
    write!(out, "  block b{tables}:\n    return\n}}\n").unwrap();
    out
}

fn program(text: &str) -> Program {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("chain.ir", text);
    let program = ir::parse(&map, file, &mut diagnostics);
    let program = program.unwrap_or_else(|| panic!("{}\n{text}", diagnostics.render(&map, false)));
    if let Err(violations) = ir::validate(&program) {
        panic!("{}\n{text}", violations[0]);
    }
    program
}

fn packet(rng: &mut RandomValues) -> Vec<u8> {
    let length = if rng.below(8) == 0 { 2 } else { 3 };
    (0..length).map(|_| rng.next() as u8).collect()
}

#[test]
fn chains_agree() {
    for seed in 0..300 {
        let text = text(&mut RandomValues::new(seed));
        let program = Arc::new(program(&text));
        if let Some(difference) = both::run_batches(&program, seed, 150, &mut packet) {
            panic!("seed {seed}: {difference}\n{text}");
        }
    }
    both::assert_both_ways(1000);
}
