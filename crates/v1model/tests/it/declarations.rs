//! Diagnostics of declarations that this architecture cannot have.

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use v1model::V1Model;

/// Returns a program around a declaration in line 6.
fn program(declaration: &str) -> String {
    format!(
        "#include <v1model.p4>
        struct none {{ }}
        parser P(packet_in packet, out none hdr, inout none meta, inout standard_metadata_t sm) {{ state start {{ transition accept; }} }}
        control Unchecked(inout none hdr, inout none meta) {{ apply {{ }} }}
        control C(inout none hdr, inout none meta, inout standard_metadata_t sm) {{
            {declaration}
            apply {{ }}
        }}
        control Out(inout none hdr, inout none meta, inout standard_metadata_t sm) {{ apply {{ }} }}
        control D(packet_out packet, in none hdr) {{ apply {{ }} }}
        V1Switch(P(), Unchecked(), C(), Out(), Unchecked(), D()) main;"
    )
}

/// Returns the errors about a declaration: code, line, message.
fn errors(declaration: &str) -> Vec<String> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = program(declaration);
    compiler::compile(&Source::new("test.p4", &text), &V1Model, &mut map, &mut diagnostics);
    let errors = diagnostics.iter().filter(|finding| finding.severity == diagnostics::Severity::Error);
    let told = |finding: &diagnostics::Diagnostic| {
        format!("{} {}: {}", finding.code, map.position(finding.primary.span).line, finding.message)
    };
    errors.map(told).collect()
}

#[test]
fn an_array_that_is_too_large_is_reported_at_its_declaration() {
    for (declaration, message) in [
        ("register<bit<8>>(0x1000001) r;", "16777217 elements are too many for a register"),
        ("register<bit<1024>>(0x200001) r;", "2097153 elements are too many for a register"),
        ("counter(0x1000001, CounterType.bytes) c;", "16777217 elements are too many for a counter"),
        ("meter(0x1000001, MeterType.bytes) m;", "16777217 elements are too many for a meter"),
    ] {
        assert_eq!(errors(declaration), [format!("too-large 6: {message}")]);
    }
    assert_eq!(errors("register<bit<1024>>(0x1000) r;"), Vec::<String>::new());
}

#[test]
fn what_cannot_be_resilient_is_reported_with_the_reason() {
    let refused = |declaration: &str, part: &str| {
        let errors = errors(declaration);
        assert!(errors.len() == 1 && errors[0].contains(part), "{declaration}: {errors:?}");
    };
    refused("@resilient counter(4, CounterType.packets) c;", "a counter cannot be resilient: packets only add to it");
    refused("@resilient meter(4, MeterType.bytes) m;", "a meter cannot be resilient: its state depends on the clock");
    refused("@resilient[groups = \"a\"] register<bit<8>>(4) r;", "resilient 6: \"groups\" is unknown");
    refused("@resilient(every) register<bit<8>>(4) r;", "is not of the form key = \"value\"");
    refused(
        "@resilient[group = \"a\"] register<bit<8>>(4) r; @resilient[group = \"a\"] register<bit<8>>(5) q;",
        "C.q has 5 elements, and C.r of the same group \"a\" has 4",
    );
    refused("@resilient register<bit<8200>>(4) r;", "a row of \"C.r\" has 1025 bytes; the maximum is 1024");
    let right = "@resilient register<bit<8192>>(4) r; @resilient[group=\"a\", every=\"1ms\"] register<bit<8>>(5) q;";
    assert_eq!(errors(right), [""; 0]);
}
