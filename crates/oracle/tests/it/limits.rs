//! Programs that take too much work or memory for one packet.

use std::fmt::Write;

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use p4_reference::{MirrorSession, Reference, Stop};
use v1model::V1Model;

use super::with_stack;

/// The parts of a program that differ.
#[derive(Clone, Copy, Default)]
struct ProgramParts<'a> {
    declarations: &'a str,
    metadata: &'a str,
    ingress: &'a str,
    egress: &'a str,
    deparser: &'a str,
}

impl ProgramParts<'_> {
    fn program(&self) -> String {
        let ProgramParts { declarations, metadata, ingress, egress, deparser } = self;
        format!(
            "#include <core.p4>
#include <v1model.p4>
header H_t {{ bit<2048> a; bit<2048> b; bit<2048> c; bit<2048> d; }}
struct H {{ H_t h; }}
{declarations}
struct M {{ @field_list(1) bit<8> x; {metadata} }}
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
control V(inout H h, inout M m) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ s.egress_spec = 1; {ingress} }} }}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ {egress} }} }}
control C(inout H h, inout M m) {{ apply {{}} }}
control D(packet_out b, in H h) {{ apply {{ {deparser} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
        )
    }
}

/// Returns the reason why the evaluation of a packet ends early, if it does.
fn stop(parts: &ProgramParts<'_>) -> Option<Stop> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = parts.program();
    let typed = compiler::check(&Source::new("limits.p4", &program), &V1Model, &mut map, &mut diagnostics);
    let typed = typed.expect("a valid program");
    let mut reference = Reference::new(&typed).expect("`main` is a V1Switch");
    let session = MirrorSession { replicas: vec![(1, 0)], ..MirrorSession::default() };
    reference.traffic.mirrors.insert(1, session);
    reference.packet(0, &[0; 64], 0).err()
}

fn is_too_long(parts: &ProgramParts<'_>) {
    assert_eq!(stop(parts), Some(Stop::TooLong));
}

/// Each pass has two successors.
#[test]
fn passes_that_double_are_too_long() {
    let again = "clone_preserving_field_list(CloneType.E2E, 1, 1); recirculate_preserving_field_list(1);";
    with_stack(|| is_too_long(&ProgramParts { egress: again, ..ProgramParts::default() }));
}

/// 20,000 times 1 KiB.
#[test]
fn a_loop_that_emits_too_much_is_too_long() {
    let deparser = "for (bit<32> i in 1 .. 20000) { b.emit(h.h); }";
    with_stack(|| {
        is_too_long(&ProgramParts { ingress: "h.h.setValid();", deparser, ..ProgramParts::default() });
        let fewer = deparser.replace("20000", "100");
        assert_eq!(
            stop(&ProgramParts { ingress: "h.h.setValid();", deparser: &fewer, ..ProgramParts::default() }),
            None
        );
    });
}

/// 20,000 messages of a struct with 65 fields.
#[test]
fn a_loop_that_sends_too_many_digests_is_too_long() {
    let metadata: String = (0..64).map(|at| format!("bit<8> f{at}; ")).collect();
    let ingress = "for (bit<32> i in 1 .. 20000) { digest<M>(1, m); }";
    with_stack(|| {
        is_too_long(&ProgramParts { metadata: &metadata, ingress, ..ProgramParts::default() });
        let fewer = ingress.replace("20000", "100");
        assert_eq!(stop(&ProgramParts { metadata: &metadata, ingress: &fewer, ..ProgramParts::default() }), None);
    });
}

/// 200 reads of a variable with 65,536 scalars.
#[test]
fn a_loop_that_reads_a_large_variable_is_too_long() {
    let mut declarations = String::new();
    for (at, member) in ["bit<8>", "S0", "S1", "S2"].iter().enumerate() {
        let members: String = (0..16).map(|at| format!("{member} f{at}; ")).collect();
        writeln!(declarations, "struct S{at} {{ {members} }}").expect("a string takes everything");
    }
    let ingress = "for (bit<32> i in 1 .. 200) { m.x = m.x + m.large.f0.f0.f0.f0; }";
    with_stack(|| {
        let parts = ProgramParts { declarations: &declarations, metadata: "S3 large;", ..ProgramParts::default() };
        is_too_long(&ProgramParts { ingress, ..parts });
        let fewer = ingress.replace("200", "2");
        assert_eq!(stop(&ProgramParts { ingress: &fewer, ..parts }), None);
    });
}

/// A chain of 800 functions.
#[test]
fn calls_that_nest_too_deep_are_too_long() {
    let mut declarations = "bit<8> f0(in bit<8> x) { return x + 1; }".to_owned();
    for at in 1..800 {
        writeln!(declarations, "bit<8> f{at}(in bit<8> x) {{ return f{}(x); }}", at - 1).expect("a string");
    }
    with_stack(|| {
        is_too_long(&ProgramParts {
            declarations: &declarations,
            ingress: "m.x = f799(1);",
            ..ProgramParts::default()
        });
        let fewer = ProgramParts { declarations: &declarations, ingress: "m.x = f200(1);", ..ProgramParts::default() };
        assert_eq!(stop(&fewer), None);
    });
}
