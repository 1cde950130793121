//! The remedy for programs that lack the architecture's file.

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};

/// Returns the text of each unknown name and the remedy that is suggested for it.
fn remedies(text: &str) -> Vec<(String, Option<String>)> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let source = Source::without_files("test.p4", text);
    compiler::check(&source, &v1model::V1Model, &mut map, &mut diagnostics);
    let findings = diagnostics.in_order().into_iter().filter(|finding| finding.code == "unknown-name");
    findings.map(|finding| (map.text(finding.primary.span).to_owned(), finding.help.clone())).collect()
}

#[test]
fn names_of_the_architecture_name_the_file_that_declares_them() {
    let missing = |file: &str| Some(format!("it is declared in `{file}`: write `#include <{file}>`"));
    let text = "control c(packet_in p, inout standard_metadata_t sm) { apply { mark_to_drop(sm); unheard(); } }
                V1Switch(c()) main;";
    let expected = [
        ("packet_in", missing("core.p4")),
        ("standard_metadata_t", missing("v1model.p4")),
        ("mark_to_drop", missing("v1model.p4")),
        ("unheard", None),
        ("V1Switch", missing("v1model.p4")),
    ];
    assert_eq!(remedies(text), expected.map(|(name, help)| (name.to_owned(), help)));
}

#[test]
fn a_match_kind_of_the_architecture_is_not_one_that_is_misspelled() {
    let text = "#include <core.p4>
                control c(in bit<8> x) {
                    table t { key = { x : range; } actions = { NoAction; } }
                    apply { t.apply(); }
                }";
    let help = "it is declared in `v1model.p4`: write `#include <v1model.p4>`";
    assert_eq!(remedies(text), [("range".to_owned(), Some(help.to_owned()))]);
}

#[test]
fn a_program_that_has_the_file_is_told_of_similar_names() {
    let text = "#include <v1model.p4>
                control c(inout standard_metadata_t sm) { apply { mark_to_dorp(sm); } }";
    assert_eq!(remedies(text), [("mark_to_dorp".to_owned(), Some("did you mean `mark_to_drop`?".to_owned()))]);
}
