//! Rules that no text can break, because the reader enforces them too, and programs with invalid ids.

use crate::generate;
use bits::Bits;
use ir::*;

/// Creates a program with one control that logs an expression.
fn logging(expr: Expr) -> Program {
    let mut program = Program::new("v1model");
    let log = Instr { op: Op::Log(String::new(), vec![expr]), loc: LocId::from_u32(0) };
    let block = Block {
        name: "start".to_owned(),
        is_state: false,
        instrs: vec![log],
        terminator: Terminator::Return,
        loc: LocId::from_u32(0),
    };
    let blocks = [block].into_iter().collect();
    program.bodies.push(Body { name: "C".to_owned(), kind: BodyKind::Control, blocks });
    program
}

fn nested(depth: usize) -> Expr {
    let leaf = Expr::Const(Bits::zero(8));
    (1..depth).fold(leaf, |inner, _| Expr::Unary(UnaryOp::Not, Box::new(inner)))
}

fn rules_broken(program: &Program) -> Vec<Rule> {
    validate(program).err().unwrap_or_default().iter().map(|violation| violation.rule).collect()
}

fn read(text: &str) -> Option<Program> {
    let mut map = diagnostics::SourceMap::new();
    let file = map.add("test.ir", text);
    parse(&map, file, &mut diagnostics::Diagnostics::new())
}

#[test]
fn expressions_nest_as_deep_for_the_reader_as_for_the_validator() {
    let deepest = logging(nested(MAX_EXPR_DEPTH));
    assert_eq!(rules_broken(&deepest), []);
    assert_eq!(read(&deepest.to_string()), Some(deepest));
    let deeper = logging(nested(MAX_EXPR_DEPTH + 1));
    assert_eq!(rules_broken(&deeper), [Rule::ExprDepth]);
    assert_eq!(read(&deeper.to_string()), None);
    assert_eq!(deeper.width(&nested(MAX_EXPR_DEPTH + 1)), None);
    assert_eq!(deeper.width(&nested(MAX_EXPR_DEPTH)), Some(8));

    // With brackets, which the printer needs for operands with infix operators.
    let sum = |depth| {
        let leaf = || Expr::Const(Bits::zero(8));
        (1..depth).fold(leaf(), |inner, _| Expr::Binary(BinaryOp::Add, Box::new(leaf()), Box::new(inner)))
    };
    let deepest = logging(sum(MAX_EXPR_DEPTH));
    assert_eq!(read(&deepest.to_string()), Some(deepest));
    assert_eq!(read(&logging(sum(MAX_EXPR_DEPTH + 1)).to_string()), None);
}

#[test]
fn ids_of_another_program_are_violations_and_print() {
    let mut broken = 0;
    for seed in 0..60 {
        let (mut one, other) = (generate::program(seed), generate::program(seed + 1000));
        // Each part may now refer to missing entities.
        match seed % 6 {
            0 => one.bodies = other.bodies,
            1 => (one.tables, one.actions) = (other.tables, other.actions),
            2 => one.slots = other.slots.values().take(2).cloned().collect(),
            3 => (one.headers, one.header_types) = (Default::default(), other.header_types),
            4 => one.locs = Default::default(),
            _ => (one.stacks, one.field_lists, one.blocks) = (other.stacks, other.field_lists, Default::default()),
        }
        broken += usize::from(validate(&one).is_err());
        let text = one.to_string();
        // The text may be rejected, but it must not be read as something else.
        if let Some(again) = read(&text) {
            assert!(again == one, "{text}");
        }
        for block in one.bodies.values().flat_map(|body| body.blocks.values()) {
            for instr in &block.instrs {
                if let Op::Assign(lvalue, value) = &instr.op {
                    let _ = (one.lvalue_width(lvalue), one.width(value));
                }
            }
        }
    }
    assert!(broken > 30, "only {broken} were refused");
}

#[test]
fn every_kind_of_id_is_checked() {
    let text = include_str!("../../testdata/everything.ir");
    let whole = read(text).expect("the text is well formed");
    assert_eq!(validate(&whole), Ok(()));
    type Without = (&'static str, fn(&mut Program));
    let without: [Without; 14] = [
        ("header types", |program| program.header_types.clear()),
        ("headers", |program| program.headers.clear()),
        ("stacks", |program| program.stacks.clear()),
        ("slots", |program| program.slots.clear()),
        ("actions", |program| program.actions.clear()),
        ("tables", |program| program.tables.clear()),
        ("registers", |program| program.registers.clear()),
        ("counters", |program| program.counters.clear()),
        ("meters", |program| program.meters.clear()),
        ("profiles", |program| program.profiles.clear()),
        ("value sets", |program| program.value_sets.clear()),
        ("digests", |program| program.digests.clear()),
        ("bodies", |program| program.bodies.clear()),
        ("places", |program| program.locs.clear()),
    ];
    for (what, remove) in without {
        let mut program = whole.clone();
        remove(&mut program);
        assert!(rules_broken(&program).contains(&Rule::IdInRange), "nobody misses the {what}");
    }
}

#[test]
fn places_in_order_make_the_list_of_places_unnecessary() {
    let mut program = generate::program(3);
    let text = |program: &Program| program.to_string().contains("\nplaces {");
    assert!(text(&program), "this seed gives places out of order");
    program.renumber_locs();
    assert!(!text(&program));
    assert_eq!(read(&program.to_string()), Some(program));
}
