//! Control-plane names that two instances of a control share.

use compiler::{CompiledProgram, Source};
use diagnostics::{Diagnostics, SourceMap};

/// Returns a program whose ingress applies two instances of a control with this body.
fn program(body: &str) -> String {
    format!(
        "#include <core.p4>
         #include <v1model.p4>
         struct headers {{ }}
         struct metadata {{ bit<8> x; }}
         parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {{
             state start {{ transition accept; }}
         }}
         control Part(inout metadata m) {{ {body} }}
         control I(inout headers h, inout metadata m, inout standard_metadata_t s) {{
             Part() a;
             Part() b;
             apply {{ a.apply(m); b.apply(m); }}
         }}
         control E(inout headers h, inout metadata m, inout standard_metadata_t s) {{ apply {{ }} }}
         control C(inout headers h, inout metadata m) {{ apply {{ }} }}
         control D(packet_out p, in headers h) {{ apply {{ }} }}
         V1Switch(P(), C(), I(), E(), C(), D()) main;"
    )
}

/// Compiles such a program. Returns the codes of the findings as well.
fn compile(body: &str) -> (Option<CompiledProgram>, Vec<&'static str>) {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = program(body);
    let source = Source::without_files("test.p4", &text);
    let compiled = compiler::compile(&source, &v1model::V1Model, &mut map, &mut diagnostics);
    (compiled, diagnostics.iter().map(|finding| finding.code).collect())
}

const TABLE: &str = "key = { m.x : exact; } actions = { NoAction; } default_action = NoAction;";

#[test]
fn two_instances_may_share_a_name_and_are_numbered() {
    let body = format!(
        "@name(\".c\") direct_counter(CounterType.packets) c;
         @name(\".t\") table t {{ {TABLE} counters = c; }}
         apply {{ t.apply(); }}"
    );
    let (compiled, codes) = compile(&body);
    let CompiledProgram { ir, p4info } = compiled.expect("the program is valid");
    assert_eq!(codes, ["shared-name", "shared-name"]);
    assert_eq!(ir.tables.values().map(|table| table.name.as_str()).collect::<Vec<_>>(), ["t", "t (2)"]);
    assert_eq!(ir.counters.values().map(|counter| counter.name.as_str()).collect::<Vec<_>>(), ["c", "c (2)"]);
    let names: Vec<_> = p4info.tables.iter().filter_map(|table| Some(&*table.preamble.as_ref()?.name)).collect();
    assert_eq!(names, ["t", "t (2)"]);
    let error = compiler::check_names(&p4info).unwrap_err();
    assert!(error.contains("`c`, `t`"), "{error}");
}

#[test]
fn names_that_instances_do_not_share_are_no_matter() {
    let (compiled, codes) = compile(&format!("table t {{ {TABLE} }} apply {{ t.apply(); }}"));
    assert!(codes.is_empty(), "{codes:?}");
    assert_eq!(compiler::check_names(&compiled.expect("the program is valid").p4info), Ok(()));
}

#[test]
fn two_declarations_with_one_name_are_a_mistake() {
    let body = "@name(\".same\") counter(1, CounterType.packets) one;
                @name(\".same\") counter(1, CounterType.packets) two;
                apply { one.count(0); two.count(0); }";
    let (compiled, codes) = compile(body);
    assert!(compiled.is_none());
    assert!(codes.contains(&"duplicate-name"), "{codes:?}");
}
