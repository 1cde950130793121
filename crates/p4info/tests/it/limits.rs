//! Programs that are small as text and large as P4Info: described, or rejected with a diagnostic, in reasonable time
//! and without deep stacks.

use std::fmt::Write;

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use p4info::P4Info;
use v1model::V1Model;

/// Returns the P4Info of a program with these declarations `before` its ingress and this ingress, or the diagnostics.
fn describe(before: &str, ingress: &str) -> Result<P4Info, String> {
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\nstruct H {{}}\nstruct M {{ bit<8> a; }}\n{before}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
        control V(inout H h, inout M m) {{ apply {{}} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{ {ingress} }}
        control O(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
        control D(packet_out p, in H h) {{ apply {{}} }}
        V1Switch(P(), V(), I(), O(), V(), D()) main;\n"
    );
    let mut map = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let typed = compiler::check(&Source::new("large.p4", &text), &V1Model, &mut map, &mut diagnostics);
    let info = typed.map(|typed| p4info::p4info(&typed, &V1Model, &map, &mut diagnostics));
    if diagnostics.has_errors() { Err(diagnostics.render(&map, false)) } else { Ok(info.unwrap()) }
}

#[test]
fn a_long_chain_of_controls_is_refused_or_described() {
    let mut before = "control C0(inout bit<8> a) { apply { a = 1; } }\n".to_owned();
    for at in 1..3000 {
        let _ = writeln!(before, "control C{at}(inout bit<8> a) {{ C{}() c; apply {{ c.apply(a); }} }}", at - 1);
    }
    let findings = describe(&before, "C2999() c; apply { c.apply(m.a); }").unwrap_err();
    assert!(findings.contains("too-large"), "{findings}");
}

#[test]
fn doubling_controls_are_refused() {
    let mut before = "control C0(inout bit<8> a) { apply { a = 1; } }\n".to_owned();
    for at in 1..40 {
        let inner = at - 1;
        let _ = writeln!(
            before,
            "control C{at}(inout bit<8> a) {{ C{inner}() c; C{inner}() d; apply {{ c.apply(a); d.apply(a); }} }}"
        );
    }
    let findings = describe(&before, "C39() c; apply { c.apply(m.a); }").unwrap_err();
    assert!(findings.contains("too-large"), "{findings}");
}

#[test]
fn long_chains_of_functions_and_actions_are_gone_through() {
    let mut before = "struct Sent { bit<8> a; }\nvoid f0(in bit<8> a) { digest<Sent>(1, { a }); }\n".to_owned();
    for at in 1..5000 {
        let _ = writeln!(before, "void f{at}(in bit<8> a) {{ f{}(a); f{}(a); }}", at - 1, at - 1);
    }
    let mut ingress = "action a0() { f4999(m.a); }\n".to_owned();
    for at in 1..5000 {
        let _ = writeln!(ingress, "action a{at}() {{ a{}(); }}", at - 1);
    }
    let info = describe(&before, &format!("{ingress} apply {{ a4999(); }}")).unwrap();
    assert_eq!(info.digests.len(), 1);
    assert_eq!(info.actions.len(), 1);
}

#[test]
fn structs_in_structs_are_described_to_a_depth() {
    let mut before = "struct S0 { bit<8> a; }\n".to_owned();
    for at in 1..2000 {
        let _ = writeln!(before, "struct S{at} {{ S{} inner; }}", at - 1);
    }
    if let Err(findings) = describe(&before, "register<S1999>(1) r; apply {}") {
        assert!(findings.contains("too-"), "{findings}");
    }
}

#[test]
fn doubling_structs_in_a_header_are_refused() {
    let mut before = "struct S0 { bit<8> a; }\n".to_owned();
    for at in 1..40 {
        let _ = writeln!(before, "struct S{at} {{ S{0} a; S{0} b; }}", at - 1);
    }
    before += "@controller_header(\"packet_in\") header C { S39 all; }\n";
    let findings = describe(&before, "apply {}").unwrap_err();
    assert!(findings.contains("error["), "{findings}");
}
