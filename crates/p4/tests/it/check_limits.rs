//! Programs with small source and large expansion: each must end quickly, with a diagnostic where a limit is exceeded.
//! Test threads have small stacks; a stack overflow would abort the test run.

use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};

/// Returns the codes of all diagnostics.
fn codes(text: &str) -> Vec<&'static str> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = p4::parse(&mut map, "test.p4", text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    let typed = p4::check(&program, &map, &mut diagnostics);
    assert_eq!(typed.is_none(), diagnostics.has_errors(), "{}", diagnostics.render(&map, false));
    diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn types_that_double_are_refused() {
    let mut structs = "struct s0 { bit<8> a; bit<8> b; }\n".to_owned();
    let mut tuples = "typedef tuple<bit<8>, bit<8>> t0;\n".to_owned();
    for i in 1..80 {
        structs += &format!("struct s{i} {{ s{0} a; s{0} b; }}\n", i - 1);
        tuples += &format!("typedef tuple<t{0}, t{0}> t{i};\n", i - 1);
    }
    assert!(codes(&structs).contains(&"too-large"));
    assert!(codes(&tuples).contains(&"too-large"));
    assert!(
        codes("header h { bit<8> a; } typedef h[1000] a; typedef a[1000] b; typedef b[1000] c;").contains(&"too-large")
    );
}

#[test]
fn values_are_made_within_a_budget() {
    let assignments = "x = { ... };".repeat(20_000);
    let text = format!("struct s {{ bit<8>[4000] a; }} control c(inout s x) {{ apply {{ {assignments} }} }}");
    assert!(codes(&text).contains(&"too-large"));
}

#[test]
fn deep_programs_do_not_overflow_the_stack() {
    let sums = vec!["x"; 150].join(" + ");
    let nested = format!("{}x{}", "(".repeat(60), ")".repeat(60));
    let blocks = format!("{}x = 1;{}", "{ if (true) ".repeat(40), "}".repeat(40));
    let lists = format!("{}1{}", "{ ".repeat(90), " }".repeat(90));
    for body in [format!("x = {sums};"), format!("x = {nested};"), format!("{{ {blocks} }}"), format!("f({lists});")] {
        let text = format!("extern void f<T>(in T x); control c(inout bit<8> x) {{ apply {{ {body} }} }}");
        codes(&text);
    }
}

#[test]
fn chains_of_generic_functions_end() {
    let mut text = "void f0<T>(in T x) { }\n".to_owned();
    for i in 1..400 {
        text += &format!("void f{i}<T>(in T x) {{ f{0}<T>(x); f{0}<tuple<T>>({{ x }}); }}\n", i - 1);
    }
    text += "control c() { apply { f399(8w1); } }";
    let found = codes(&text);
    assert!(found.iter().any(|code| matches!(*code, "too-deep" | "too-many-instances")), "{found:?}");
}

#[test]
fn chains_of_instantiations_end() {
    let mut text = "control c0<T>(inout T x) { apply { } }\n".to_owned();
    for i in 1..300 {
        text += &format!("control c{i}<T>(inout T x) {{ c{0}<T>() c; apply {{ c.apply(x); }} }}\n", i - 1);
    }
    text += "control top(inout bit<8> x) { c299<bit<8>>() c; apply { c.apply(x); } }";
    assert!(codes(&text).contains(&"too-deep"));
}

#[test]
fn warnings_of_very_many_variables_are_given_up_on() {
    // The states of a hundred thousand variables at two hundred thousand statements overflow any counter.
    let count = 100_000;
    let mut text = "parser p(inout bit<8> x) {\n".to_owned();
    for i in 0..count {
        text += &format!("bit<8> v{i};\n");
    }
    text += "state start {\n";
    for i in 0..count {
        text += &format!("v{i} = x;\n x = v{i};\n");
    }
    text += "transition accept; } }";
    assert_eq!(codes(&text), [] as [&str; 0]);
}
