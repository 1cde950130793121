//! Errors of the core library that a program's own one does not declare.

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use p4_reference::{Reference, Stop};
use v1model::V1Model;

use super::with_stack;

/// Returns the reason why the evaluation of an empty packet ends early, if it does.
fn stop(errors: &str) -> Option<Stop> {
    let program = format!(
        "#define _CORE_P4_
error {{ {errors} }}
match_kind {{ exact, ternary, lpm }}
extern packet_in {{ void extract<T>(out T h); }}
extern packet_out {{ void emit<T>(in T h); }}
extern void verify(in bool check, in error e);
action NoAction() {{}}
#include <v1model.p4>
header H_t {{ bit<8> a; }}
struct H {{ H_t h; }}
struct M {{}}
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {{
    state start {{ b.extract(h.h); transition accept; }}
}}
control V(inout H h, inout M m) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ s.egress_spec = 1; }} }}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out b, in H h) {{ apply {{}} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"
    );
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let typed = compiler::check(&Source::new("errors.p4", &program), &V1Model, &mut map, &mut diagnostics);
    let typed = typed.expect("a valid program");
    let mut reference = Reference::new(&typed).expect("`main` is a V1Switch");
    reference.packet(0, &[], 0).err()
}

#[test]
fn an_error_without_a_declaration_is_not_the_first_one() {
    with_stack(|| {
        assert_eq!(stop("NoError, PacketTooShort"), None);
        let what = "`error.PacketTooShort`, which the program does not declare";
        assert_eq!(stop("NoError"), Some(Stop::Unsupported(what.to_owned())));
    });
}
