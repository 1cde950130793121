//! Programs with small source and huge expansion end quickly in a diagnostic or in IR, and never in a panic.

use crate::pipeline;
use std::fmt::Write;

/// Creates a program from declarations, the ingress's declarations and its statements.
fn program(decls: &str, locals: &str, statements: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
{decls}
struct headers {{ h_t h; h_t[64] s; }}
struct metadata {{ bit<8> x; bit<8> y; }}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {{
    state start {{ packet.extract(hdr.h); transition accept; }}
}}
control V(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{
{statements}
    }}
}}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
control D(packet_out packet, in headers hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

/// Returns the code of the first error, or `ok`.
fn outcome(text: &str) -> String {
    let outcome = pipeline::compile("limits.p4", text, &[]);
    if let Some(program) = &outcome.program {
        ir::validate(program).unwrap_or_else(|violations| panic!("{}", violations[0]));
        return "ok".to_owned();
    }
    let error = outcome.findings.lines().find(|line| line.starts_with("error")).unwrap_or("no word");
    error.split([']', ' ']).next().unwrap_or_default().to_owned()
}

#[test]
fn functions_that_double_are_too_large() {
    let mut decls = "bit<8> f0(in bit<8> v) { bit<8> t = v; return t + 1; }\n".to_owned();
    for i in 1..40 {
        let _ = writeln!(decls, "bit<8> f{i}(in bit<8> v) {{ return f{}(v) + f{}(v + 1); }}", i - 1, i - 1);
    }
    assert_eq!(outcome(&program(&decls, "", "meta.x = f39(meta.y);")), "error[too-large");
}

#[test]
fn functions_that_double_without_a_statement_are_too_large() {
    let mut decls = "bit<8> f0(in bit<8> v) { return v; }\n".to_owned();
    for i in 1..40 {
        let _ = writeln!(decls, "bit<8> f{i}(in bit<8> v) {{ return f{}(v); }}", i - 1);
    }
    assert_eq!(outcome(&program(&decls, "", "meta.x = f39(meta.y);")), "ok");
    decls.push_str("h_t g0(in h_t v) { return v; }\n");
    for i in 1..40 {
        let _ = writeln!(decls, "h_t g{i}(in h_t v) {{ h_t w = g{}(v); return g{}(w); }}", i - 1, i - 1);
    }
    assert_eq!(outcome(&program(&decls, "", "hdr.h = g39(hdr.h);")), "error[too-large");
}

#[test]
fn long_chains_of_calls_are_too_deep() {
    let mut decls = "bit<8> f0(in bit<8> v) { return v; }\n".to_owned();
    for i in 1..2000 {
        let _ = writeln!(
            decls,
            "bit<8> f{i}(in bit<8> v) {{ bit<8> t = v; if (t > {}) {{ return f{}(t); }} return t; }}",
            i % 256,
            i - 1
        );
    }
    assert_eq!(outcome(&program(&decls, "", "meta.x = f1999(meta.y);")), "error[too-deep");
}

#[test]
fn controls_that_double_are_too_large() {
    let mut decls = "control C0(inout bit<8> v) { apply { v = v + 1; } }\n".to_owned();
    for i in 1..40 {
        let _ = writeln!(
            decls,
            "control C{i}(inout bit<8> v) {{ C{p}() a; C{p}() b; apply {{ a.apply(v); b.apply(v); }} }}",
            p = i - 1
        );
    }
    assert_eq!(outcome(&program(&decls, "C39() c;", "c.apply(meta.x);")), "error[too-large");
}

#[test]
fn parsers_that_double_are_too_large() {
    let mut decls = "parser P0(packet_in p) { state start { p.advance(8); transition accept; } }\n".to_owned();
    for i in 1..40 {
        let _ = writeln!(
            decls,
            "parser P{i}(packet_in p) {{ P{p}() a; P{p}() b; state start {{ a.apply(p); b.apply(p); transition accept; }} }}",
            p = i - 1
        );
    }
    let text = program(&decls, "", "").replace(
        "    state start { packet.extract(hdr.h); transition accept; }",
        "    P39() sub;\n    state start { sub.apply(packet); transition accept; }",
    );
    assert_eq!(outcome(&text), "error[too-large");
}

#[test]
fn deep_expressions_are_taken_apart() {
    let mut sum = "meta.x".to_owned();
    for i in 0..100 {
        sum = format!("({sum} + {}) ^ meta.y", i % 256);
        if i == 60 {
            break;
        }
    }
    let mut decls = "bit<8> f0(in bit<8> v, in bit<8> w) { return v; }\n".to_owned();
    decls.push_str("bit<8> deep(in bit<8> v) { return ");
    decls.push_str(&"(v + ".repeat(100));
    decls.push('v');
    decls.push_str(&")".repeat(100));
    decls.push_str("; }\n");
    let nested = "deep(".repeat(20) + "meta.x" + &")".repeat(20);
    let statements = format!("meta.x = {sum};\nmeta.y = {nested};\nif (deep(meta.x) == 3) {{ meta.x = 1; }}");
    assert_eq!(outcome(&program(&decls, "", &statements)), "ok");
}

#[test]
fn huge_stacks_are_too_large() {
    let statements = "hdr.s.push_front(1);\n".repeat(20_000);
    assert_eq!(outcome(&program("", "", &statements)), "error[too-large");
    let text = program("", "", "").replace("h_t[64] s;", "h_t[4000000] s;");
    assert_ne!(outcome(&text), "ok");
    let comparisons = "if (hdr.s == hdr.s) { meta.x = meta.x + 1; }\n".repeat(20_000);
    assert_eq!(outcome(&program("", "", &comparisons)), "error[too-large");
}
