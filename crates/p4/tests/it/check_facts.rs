//! Typed programs from correct sources: constants folded, names qualified, generics specialised, arguments in order,
//! defaults filled in.

use crate::guarantees;
use diagnostics::{Diagnostics, SourceMap};
use num_bigint::BigInt;
use p4::typed::*;
use p4::{DiskLoader, PreprocessorOptions};

/// Returns the typed program, with `core.p4` included.
fn checked(text: &str) -> Program {
    let text = format!("#include <core.p4>\n{text}");
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = p4::parse(&mut map, "test.p4", &text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    let typed = p4::check(&program, &map, &mut diagnostics);
    let typed = typed.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    let broken = guarantees::broken(&typed);
    assert!(broken.is_empty(), "{broken:?}");
    typed
}

/// Returns the value of the only assignment in the apply block of `control c(inout T x)`.
fn folded(ty: &str, value: &str) -> Value {
    let program = checked(&format!("control c(inout {ty} x) {{ apply {{ x = {value}; }} }}"));
    match &program.controls.values().next().expect("a control").body.statements[..] {
        [Stmt { kind: StmtKind::Assign { rhs: Expr { kind: ExprKind::Const(value), .. }, .. }, .. }] => value.clone(),
        other => panic!("`{value}` is not folded: {other:?}"),
    }
}

fn bits(value: u128, width: u32) -> Value {
    Value::Bits(bits::Bits::new(value, width))
}

#[test]
fn constants_are_folded_in_the_type_that_is_wanted() {
    assert_eq!(folded("bit<8>", "2 + 3 * 4"), bits(14, 8));
    assert_eq!(folded("bit<8>", "-1"), bits(255, 8));
    assert_eq!(folded("int<8>", "-128"), bits(128, 8));
    assert_eq!(folded("bit<8>", "8w250 |+| 10"), bits(255, 8));
    assert_eq!(folded("int<8>", "8s100 |+| 100"), bits(127, 8));
    assert_eq!(folded("bit<8>", "(1 << 70) >> 66"), bits(16, 8));
    assert_eq!(folded("bit<12>", "8w0xab ++ 4w0xc"), bits(0xabc, 12));
    assert_eq!(folded("bit<4>", "16w0xabcd[11:8]"), bits(0xb, 4));
    assert_eq!(folded("bit<4>", "16w0xabcd[8+:4]"), bits(0xb, 4));
    assert_eq!(folded("int<8>", "8s0x80 >> 1"), bits(0xc0, 8));
    assert_eq!(folded("bool", "8s0x80 < 0"), Value::Bool(true));
    assert_eq!(folded("bool", "8w0x80 < 0"), Value::Bool(false));
    assert_eq!(folded("bit<16>", "(bit<16>) (int<16>) 8s0xff"), bits(0xffff, 16));
    assert_eq!(folded("bit<8>", "7 / 2 + 7 % 4"), bits(6, 8));
    assert_eq!(folded("bool", "true ? 1 == 1 : false"), Value::Bool(true));
    assert_eq!(folded("error", "error.NoMatch"), Value::Error(2));
    assert_eq!(folded("bit<8>", "bit<8>.minSizeInBits()").clone(), bits(8, 8));
}

#[test]
fn shifts_of_integers_are_bounded() {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = "const int a = 1 << 1000000000; const int b = 3 * (1 << 65530) * (1 << 65530); const bit<8> c = 8w1 << 99999999999;";
    let program = p4::parse(&mut map, "test.p4", text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    assert!(p4::check(&program, &map, &mut diagnostics).is_none());
    let codes: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["width", "width"], "{}", diagnostics.render(&map, false));
}

#[test]
fn enum_members_are_numbers() {
    let program = checked(
        "enum Plain { A, B } enum bit<4> Coded { X = 3, Y = X + 4 }
         control c(out Plain p, out Coded q, out bit<4> n) { apply { p = Plain.B; q = Coded.Y; n = Coded.X; } }",
    );
    let body = &program.controls.values().next().expect("a control").body.statements;
    let assigned: Vec<_> = body
        .iter()
        .map(|statement| match &statement.kind {
            StmtKind::Assign { rhs: Expr { kind: ExprKind::Const(value), .. }, .. } => value.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(assigned, [bits(1, 32), bits(7, 4), bits(3, 4)]);
}

const TABLES: &str = "
header h_t { bit<8> a; @name(\"other\") bit<16> b; }
struct s_t { h_t h; h_t[2] hs; }
control Ingress(inout s_t s) {
    action set(inout bit<8> x, bit<8> data, bit<16> more) { x = data; }
    @name(\"renamed\") action first() { }
    @name(\".absolute\") action second() { }
    table t {
        key = {
            s.h.a : exact;
            s.h.b : ternary;
            s.h.isValid() : exact;
            s.hs[1].a : exact;
            s.h.a[7:4] : lpm;
            s.h.a + 1 : exact @name(\"sum\");
        }
        actions = { set(s.h.a); first; second; }
        const entries = {
            (1, 2 &&& 3, true, _, _, 9) : first();
        }
    }
    table u {
        key = { s.h.b : ternary; }
        actions = { set(s.h.a); first; @defaultonly NoAction; }
        const default_action = set(s.h.a, 1, 2);
        entries = { 1 : first(); 2 &&& 6 : set(s.h.a, 3, 4); _ : first(); }
        size = 1 << 10;
        extra = true;
    }
    apply {
        switch (t.apply().action_run) { first: second: { s.h.a = 1; } set: { } default: { s.h.a = 2; } }
        if (u.apply().miss) { exit; }
    }
}";

#[test]
fn tables_have_names_defaults_and_priorities() {
    let program = checked(&TABLES.replace("_, _, 9", "3, _, 9"));
    let tables: Vec<_> = program.tables.values().collect();
    let [t, u] = tables[..] else { panic!("two tables") };
    assert_eq!((&*t.name, &*t.local_name), ("Ingress.t", "t"));
    let keys: Vec<_> = t.keys.iter().map(|key| &*key.name).collect();
    assert_eq!(keys, ["s.h.a", "s.h.other", "s.h.$valid$", "s.hs[1].a", "s.h.a[7:4]", "sum"]);
    let action_names: Vec<_> = t.actions.iter().map(|action| &*program.actions[action.action].name).collect();
    assert_eq!(action_names, ["Ingress.set", "Ingress.renamed", "absolute", "NoAction"]);
    assert_eq!(t.default_action.0, 3, "a table without a default does NoAction");
    assert_eq!(&*t.actions[3].annotations[0].name, "defaultonly");
    assert!(t.const_entries && !u.const_entries && u.const_default);
    assert_eq!(u.size, Some(1024));
    assert_eq!(&*u.properties[0].name, "extra");
    assert_eq!(u.default_action.1.len(), 2, "values of the parameters without direction");
    let priorities: Vec<_> = u.entries.iter().map(|entry| entry.priority).collect();
    assert_eq!(priorities, [Some(3), Some(2), Some(1)], "the first entry wins");
    let control = program.controls.values().next().expect("a control");
    let StmtKind::SwitchAction { cases, default, .. } = &control.body.statements[0].kind else { panic!("a switch") };
    let labels: Vec<_> = cases.iter().map(|(labels, _)| labels.clone()).collect();
    assert_eq!(labels, [vec![1, 2], vec![0]]);
    assert!(default.is_some());
}

#[test]
fn generics_appear_once_for_each_list_of_type_arguments() {
    let program = checked(
        "struct pair<T, U> { T first; U second; }
         T pick<T>(in bool c, in T a, in T b) { if (c) { return a; } else { return b; } }
         extern Reg<T, I> { Reg(bit<32> size); T read(in I at); }
         control c(inout pair<bit<8>, bool> p, inout pair<bit<8>, bool> q, inout pair<bool, bit<4>> r)(bit<32> size) {
             Reg<bit<16>, bit<8>>(size + 1) reg;
             apply {
                 p.first = pick(true, q.first, 1);
                 p.second = pick(true, q.second, r.first);
                 r.second = pick<bit<4>>(b = 1, a = 2, c = p.second);
                 bit<16> value = reg.read(1);
             }
         }",
    );
    let structs: Vec<_> = program.structs.values().map(|decl| &*decl.name).collect();
    assert_eq!(structs, ["pair<bit<8>, bool>", "pair<bool, bit<4>>"]);
    let results: Vec<_> = program.functions.values().map(|function| function.ret.clone()).collect();
    assert_eq!(results, [Type::Bit(8), Type::Bool, Type::Bit(4)]);
    let externs: Vec<_> = program.externs.values().filter(|decl| &*decl.name == "Reg").collect();
    assert_eq!(externs.len(), 1);
    assert_eq!(externs[0].type_args, [Type::Bit(16), Type::Bit(8)]);
}

#[test]
fn packages_infer_their_types_from_what_they_are_made_of() {
    let program = checked(
        "parser P<H, M>(packet_in b, out H h, inout M m);
         control D<H>(packet_out b, in H h, @optional in bool last);
         package Arch<H, M>(P<H, M> p, D<H> d, bit<8> n = 7, @optional D<H> e);
         struct h_t { } struct m_t { }
         parser MyP(packet_in b, out h_t h, inout m_t m)(bool flag) { state start { transition accept; } }
         control MyD(packet_out b, in h_t h) { apply { } }
         Arch(d = MyD(), p = MyP(true)) main;",
    );
    let main = &program.instances[program.main.expect("main")];
    let Type::Package(package) = main.ty else { panic!("a package") };
    let names: Vec<_> = program.packages[package]
        .type_args
        .iter()
        .map(|ty| match ty {
            Type::Struct(id) => program.structs[*id].name.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["h_t", "m_t"]);
    let [Arg::Expr(parser), Arg::Expr(deparser), Arg::Expr(number), Arg::Absent] = &main.args[..] else {
        panic!("{:?}", main.args)
    };
    assert!(matches!(parser.ty, Type::Parser(_)) && matches!(deparser.ty, Type::Control(_)));
    assert!(matches!(&number.kind, ExprKind::Const(value) if *value == bits(7, 8)));
}

#[test]
fn constructor_parameters_stay_expressions() {
    let program = checked(
        "control c(inout bit<8> x)(bit<8> n, int k) { const bit<8> twice = n * 2; apply { x = twice + 1; x = x << k; } }",
    );
    let body = &program.controls.values().next().expect("a control").body.statements;
    let StmtKind::Assign { rhs, .. } = &body[0].kind else { panic!("an assignment") };
    assert!(matches!(rhs.kind, ExprKind::Binary(..)), "{rhs:?}");
}

#[test]
fn parsers_resolve_their_states() {
    let program = checked(
        "header h_t { bit<8> a; bit<16> b; }
         parser p(packet_in b, out h_t h) {
             value_set<tuple<bit<8>, bit<16>>>(4) vs;
             state start { b.extract(h); transition select(h.a, h.b) { (1, _): accept; (2 &&& 3, 4 .. 5): again; vs: start; } }
             state again { transition select(b.lookahead<bit<8>>()) { 0: start; default: reject; } }
             state implicit { }
         }",
    );
    let parser = program.parsers.values().next().expect("a parser");
    let Transition::Select { cases, .. } = &parser.states[parser.start].transition else { panic!("a select") };
    let targets: Vec<_> = cases.iter().map(|case| case.target).collect();
    assert_eq!(targets, [TransitionTarget::Accept, TransitionTarget::State(1), TransitionTarget::State(0)]);
    assert!(matches!(cases[0].keys[..], [Keyset::Value(_), Keyset::Any(_)]));
    assert!(matches!(cases[2].keys[..], [Keyset::ValueSet(..)]));
    assert!(matches!(parser.states[2].transition, Transition::Direct(TransitionTarget::Reject, _)));
    assert_eq!(&*program.value_sets.values().next().expect("a value set").name, "p.vs");
}

#[test]
fn integers_of_any_size_survive_to_extern_parameters() {
    let program = checked("extern void f(int n); control c() { apply { f(1 << 100); } }");
    let body = &program.controls.values().next().expect("a control").body.statements;
    let StmtKind::Call(Call { args, .. }) = &body[0].kind else { panic!("a call") };
    let [Arg::Expr(Expr { kind: ExprKind::Const(Value::Integer(value)), .. })] = &args[..] else { panic!("{args:?}") };
    assert_eq!(*value, BigInt::from(1) << 100);
}

#[test]
fn correct_but_suspicious_code_gets_a_warning() {
    let text = "header h_t { bit<8> a; }
        control c(inout bit<8> x) {
            bit<8> used = 1;
            bit<8> idle;
            action called() { x = 300; }
            action never() { return; x = 1; }
            table applied { key = { x : exact; } actions = { called; } const default_action = called; }
            table forgotten { actions = { called; } const default_action = called; }
            apply { x = used; applied.apply(); }
        }
        extern packet { void extract<T>(out T h); }
        parser p(packet b, out h_t h) { state start { b.extract(h); transition accept; } state lost { transition select(h.a) { 1: accept; _: reject; 2: accept; } } }";
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = format!("match_kind {{ exact }} {text}");
    let program = p4::parse(&mut map, "test.p4", &text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    assert!(p4::check(&program, &map, &mut diagnostics).is_some(), "{}", diagnostics.render(&map, false));
    let mut found: Vec<_> = diagnostics.iter().map(|d| (map.text(d.primary.span).to_owned(), d.code)).collect();
    found.sort();
    let expected = [
        ("2: accept;", "unreachable"),
        ("300", "overflow"),
        ("forgotten", "unused-table"),
        ("idle", "unused-variable"),
        ("lost", "unreachable-state"),
        ("never", "unused-action"),
        ("x = 1;", "unreachable"),
    ];
    assert_eq!(found, expected.map(|(text, code)| (text.to_owned(), code)));
}

/// Returns the right side of the only assignment in the apply block of `control c(inout bit<8> x, in int<16> y)`.
fn assigned(value: &str) -> Expr {
    let program = checked(&format!("control c(inout bit<8> x, in int<16> y) {{ apply {{ x = {value}; }} }}"));
    match &program.controls.values().next().expect("a control").body.statements[..] {
        [Stmt { kind: StmtKind::Assign { rhs, .. }, .. }] => rhs.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn integers_of_run_time_are_evaluated_in_the_width_they_get() {
    // `(bit<8>) ((int) y + 300)`: both sides have eight bits, the signed one is sign-extended.
    let rhs = assigned("(bit<8>) ((int) y + 300)");
    assert_eq!(rhs.ty, Type::Bit(8));
    let ExprKind::Binary(p4::ast::BinaryOp::Add, left, right) = rhs.kind else { panic!("{rhs:?}") };
    let ExprKind::Const(value) = right.kind else { panic!("{right:?}") };
    assert_eq!((value, left.ty), (bits(44, 8), Type::Bit(8)));
    let ExprKind::Cast(resized) = left.kind else { panic!("not recast") };
    assert_eq!(resized.ty, Type::Int(8));
    // The other operand determines the width of the number.
    assert_eq!(assigned("(int) y * 2 + x").ty, Type::Bit(8));
}

#[test]
fn integers_of_run_time_need_a_width_where_the_bits_above_matter() {
    for value in ["(int) x < (int) y ? 8w1 : 0", "(bit<8>) ((int) y >> 2)", "(bit<8>) ((int) y / 2)"] {
        let text = format!("control c(inout bit<8> x, in int<16> y) {{ apply {{ x = {value}; }} }}");
        assert!(refusals(&text).iter().any(|code| matches!(*code, "operand-type" | "unknown-width")), "{value}");
    }
}

/// Returns the codes of all errors in a program, with `core.p4` included.
fn refusals(text: &str) -> Vec<&'static str> {
    let text = format!("#include <core.p4>\n{text}");
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = p4::parse(&mut map, "test.p4", &text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    p4::check(&program, &map, &mut diagnostics);
    diagnostics.iter().filter(|found| found.severity == diagnostics::Severity::Error).map(|found| found.code).collect()
}

#[test]
fn arrays_of_extern_objects_have_inferred_types_and_elements() {
    let persistent = "extern persistent<T> { persistent(T first); T read(); void write(in T x); }";
    let program = checked(&format!(
        "{persistent} control c(inout bit<16> x, in bit<8> i) {{ persistent(16w0) data[4]; apply {{ data[i].write(data[3].read()); }} }}"
    ));
    let instance = program.instances.values().next().expect("an instance");
    let Type::Extern(of) = instance.ty else { panic!("{:?}", instance.ty) };
    assert_eq!((instance.array, &program.externs[of].type_args[..]), (Some(4), &[Type::Bit(16)][..]));
    let wrong = |locals: &str, statement: &str| {
        refusals(&format!(
            "{persistent} control sub() {{ apply {{ }} }} control c() {{ {locals} apply {{ {statement} }} }}"
        ))
    };
    assert_eq!(wrong("persistent(16w0) data[4];", "data[4].write(1);"), ["index"]);
    assert_eq!(wrong("persistent(16w0) data[4];", "data.write(1);"), ["unknown-method"]);
    assert_eq!(wrong("sub() s[2];", ""), ["array-element"]);
    assert_eq!(wrong("persistent<bit<8>>[2] data;", ""), ["array-element"]);
}

#[test]
fn pure_extern_functions_make_constructor_arguments() {
    let declared = "enum Kind { a } @pure extern Kind made(bool x); extern Kind other(bool x); extern Hash { Hash(Kind kind); bit<8> get(); }";
    let control = |call: &str| {
        format!("{declared} control c(inout bit<8> x, in bool b) {{ Hash({call}) h; apply {{ x = h.get(); }} }}")
    };
    let program = checked(&control("made(true)"));
    let instance = program.instances.values().next().expect("an instance");
    assert!(matches!(&instance.args[..], [Arg::Expr(Expr { kind: ExprKind::Call(_), .. })]), "{instance:?}");
    assert_eq!(refusals(&control("other(true)")), ["not-constant"]);
    assert_eq!(refusals(&control("made(b)")), ["not-constant"]);
}

#[test]
fn sizes_of_elements_need_no_element() {
    let program = checked(
        "header h { bit<8> a; } control c(inout bit<32> x) { apply { h[0] s; x = (bit<32>) s[0].minSizeInBits(); } }",
    );
    assert_eq!(program.controls.len(), 1);
    assert_eq!(
        refusals("header h { bit<8> a; } control c(inout bit<8> x) { apply { h[1] s; x = s[1].a; } }"),
        ["index"]
    );
}

#[test]
fn a_program_gives_its_own_match_kinds_their_meaning() {
    let table = |kind: &str| {
        format!(
            "control c(in bit<8> x) {{ table t {{ key = {{ x: {kind}; }} actions = {{ NoAction; }} const entries = {{ 1 &&& 3: NoAction(); }} }} apply {{ t.apply(); }} }}"
        )
    };
    assert_eq!(refusals(&table("exact")), ["entry-key"]);
    let own = format!("match_kind {{ mine, range }} {}", table("range"));
    checked(&own);
}

#[test]
fn ambiguous_overloads_are_refused_at_the_call() {
    let twice = "bit<8> f(in bit<8> a) { return a; } bit<8> f(in bit<16> a) { return 1; }";
    checked(twice);
    let call = format!("{twice} control c(inout bit<8> x) {{ apply {{ x = f(x); }} }}");
    assert_eq!(refusals(&call), ["ambiguous"]);
}
