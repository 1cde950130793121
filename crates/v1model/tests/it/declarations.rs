//! Diagnostics of declarations that this architecture cannot have.

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use v1model::V1Model;

/// Returns a program around a declaration in line 6 and statements.
fn program(declaration: &str, statements: &str) -> String {
    format!(
        "#include <v1model.p4>
        struct none {{ }}
        parser P(packet_in packet, out none hdr, inout none meta, inout standard_metadata_t sm) {{ state start {{ transition accept; }} }}
        control Unchecked(inout none hdr, inout none meta) {{ apply {{ }} }}
        control C(inout none hdr, inout none meta, inout standard_metadata_t sm) {{
            {declaration}
            apply {{ {statements} }}
        }}
        control Out(inout none hdr, inout none meta, inout standard_metadata_t sm) {{ apply {{ }} }}
        control D(packet_out packet, in none hdr) {{ apply {{ }} }}
        V1Switch(P(), Unchecked(), C(), Out(), Unchecked(), D()) main;"
    )
}

/// Returns the errors about a declaration: code, line, message.
fn errors(declaration: &str) -> Vec<String> {
    errors_with(declaration, "")
}

/// Returns the errors about a declaration that statements use.
fn errors_with(declaration: &str, statements: &str) -> Vec<String> {
    errors_in(&program(declaration, statements))
}

/// Returns the errors of a program.
fn errors_in(text: &str) -> Vec<String> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    compiler::compile(&Source::new("test.p4", text), &V1Model, &mut map, &mut diagnostics);
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
    refused("@resilient[idle = \"5s\"] register<bit<8>>(4) r;", "\"idle\" is for tables");
    refused("@resilient(every) register<bit<8>>(4) r;", "is not of the form key = \"value\"");
    refused(
        "@resilient[group = \"a\"] register<bit<8>>(4) r; @resilient[group = \"a\"] register<bit<8>>(5) q;",
        "C.q has 5 elements, and C.r of the same group \"a\" has 4",
    );
    refused("@resilient register<bit<8200>>(4) r;", "a row of \"C.r\" has 1025 bytes; the maximum is 1024");
    let right = "@resilient register<bit<8192>>(4) r; @resilient[group=\"a\", every=\"1ms\"] register<bit<8>>(5) q;";
    assert_eq!(errors(right), [""; 0]);
}

#[test]
fn snapshots_that_cannot_be_made_are_reported_with_the_reason() {
    let refused = |settings: &str, size: u32, part: &str| {
        let array = format!("register<bit<1>>(1) one; @resilient[{settings}] register<bit<32>>({size}) r;");
        let errors = errors(&array);
        assert!(errors.len() == 1 && errors[0].contains(part), "{settings}: {errors:?}");
    };
    refused("every = \"1\"", 4, "\"every\" is a whole number of us, ms or s");
    refused("every = \"1ms\"", 1 << 19, "a snapshot of \"C.r\" has 2097152 bytes; the maximum is 1048576: divide");
    refused("every = \"1ms\", stale = \"one\"", 4, "\"stale\" needs \"bound\"");
    refused("every = \"1ms\", bound = \"1ms\", stale = \"two\"", 4, "\"two\" is not the name of one");
    refused("every = \"1ms\", bound = \"1ms\", stale = \"r\"", 4, "\"r\" cannot say whether snapshots are stale");
    refused("every = \"1ms\", bound = \"1ms\", row = \"2\", stale = \"one\"", 4, "a register<bit<1>> of at least 2");
    let used = "bit<8> v; r.read(v, 0);";
    let shared = |settings: &str| {
        let text = program("", used).replace("sm) { apply { } }", &format!("sm) {{ apply {{ {used} }} }}"));
        text.replacen("struct none", &format!("@resilient{settings} register<bit<8>>(4) r; struct none"), 1)
    };
    let both = errors_in(&shared("[every = \"1ms\"]"));
    assert!(both.len() == 1 && both[0].contains("ingress and egress both use \"r\""), "{both:?}");
    assert_eq!(errors_in(&shared("")), [""; 0], "each write of such an array is replicated");
    let right = "register<bit<1>>(2) f; \
                 @resilient[every=\"1ms\", bound=\"1ms\", row=\"2\", stale=\"f\"] register<bit<32>>(4) r;";
    assert_eq!(errors(right), [""; 0]);
}

#[test]
fn tables_that_the_stores_cannot_fill_are_reported_with_the_reason() {
    const ACTIONS: &str = "action none() {} action allow() {} action give(bit<16> number) { sm.mcast_grp = number; } \
        action tell(bit<9> a, bit<16> b) { sm.mcast_grp = b; sm.egress_spec = a; }";
    let table = |name: &str, annotation: &str, key: &str, actions: &str, more: &str| {
        format!(
            "@resilient[{annotation}] table {name} {{ key = {{ {key} }} actions = {{ {actions} none; }} \
             default_action = none(); {more} }} "
        )
    };
    let pool = table("forth", "pool = \"1-9\"", "sm.ingress_port: exact; sm.egress_rid: exact;", "give;", "");
    let reverse = table("back", "reverse = \"forth\"", "sm.egress_rid: exact;", "tell;", "");
    let check = |tables: &[&str]| {
        let names = tables.iter().map(|text| text.split_once("table ").unwrap().1.split_once(' ').unwrap().0);
        let statements: String = names.map(|name| format!("{name}.apply(); ")).collect();
        errors_with(&format!("{ACTIONS} {}", tables.concat()), &statements)
    };
    let refused = |tables: &[&str], part: &str| {
        let errors = check(tables);
        assert!(errors.len() == 1 && errors[0].contains(part), "{tables:?}: {errors:?} lacks {part:?}");
    };
    assert_eq!(check(&[&pool, &reverse]), [""; 0]);
    let key = "sm.ingress_port: exact;";
    let one = |annotation: &str, key: &str, actions: &str, more: &str| table("t", annotation, key, actions, more);
    assert_eq!(check(&[&one("choice = \"0 - 7\"", key, "give;", "")]), [""; 0]);
    let group =
        [one("group = \"g\", add = \"allow\"", key, "allow;", ""), table("u", "group = \"g\"", key, "allow;", "")];
    assert_eq!(check(&[&group[0], &group[1]]), [""; 0]);

    refused(&[&one("", key, "allow;", "")], "@resilient on a table needs");
    refused(&[&one("size = \"3\"", key, "allow;", "")], "\"size\" is unknown: @resilient on a table has");
    refused(&[&one("every = \"1ms\"", key, "allow;", "")], "\"every\" is for registers");
    refused(&[&one("add = \"allow\", pool = \"1-2\"", key, "allow;", "")], "a table can have only one of");
    for range in ["ports", "9-1", "1-", "0-1048576", "-1-5"] {
        refused(&[&one(&format!("pool = \"{range}\""), key, "give;", "")], "is a range such as \"1024-65535\"");
    }
    refused(&[&one("pool = \"1-65536\"", key, "give;", "")], "65536 does not fit the parameter of 16 bits");
    refused(&[&one("pool = \"1-9\"", key, "allow;", "")], "the action of the entries must have exactly one parameter");
    refused(&[&one("add = \"give\"", key, "give;", "")], "the action of \"add\" must have no parameters");
    refused(&[&one("add = \"deny\"", key, "allow;", "")], "entries of this table have no action \"deny\"");
    refused(&[&one("pool = \"1-9\"", key, "give; allow;", "")], "the table has several actions");
    assert_eq!(check(&[&one("pool = \"1-9\", entry_action = \"give\"", key, "give; allow;", "")]), [""; 0]);
    refused(&[&one("add = \"allow\"", "sm.ingress_port: ternary;", "allow;", "")], "whose elements are all exact");
    refused(
        &[&one("add = \"allow\"", key, "allow;", "const entries = { 1: allow(); }")],
        "the program must declare none",
    );
    refused(&[&one("add = \"allow\"", key, "allow;", "support_timeout = true;")], "use \"idle\" in @resilient");
    refused(&[&one("group = \"g\"", key, "allow;", "")], "no table of the group \"g\" creates rows");
    let wide = table("u", "group = \"g\"", "sm.egress_rid: exact;", "allow;", "");
    refused(&[&group[0], &wide], "C.u and C.t of the group \"g\" differ in the widths of their keys");
    let other = table("u", "group = \"g\"", key, "give;", "");
    refused(&[&group[0], &other], "differ in the data of their actions");
    refused(&[&one("reverse = \"forth\"", key, "allow;", "")], "there is no resilient table \"forth\"");
    refused(&[&group[0], &table("b", "reverse = \"t\"", key, "allow;", "")], "\"t\" has no \"pool\"");
    refused(
        &[&pool, &table("b", "reverse = \"forth\"", key, "tell;", "")],
        "the key of a reverse table must be the number only",
    );
    let swapped = table("b", "reverse = \"forth\"", "sm.egress_rid: exact;", "give;", "");
    refused(&[&pool, &swapped], "the parameters of a reverse table's action must be the key elements of \"forth\"");
    refused(&[&pool, &reverse, &reverse.replace("table back", "table again")], "\"forth\" has two reverse tables");
    for idle in ["0s", "-1s", "5", "s", "169h", "1.5s", "4294967296ms", "99999999h", "5 m"] {
        refused(&[&one(&format!("add = \"allow\", idle = \"{idle}\""), key, "allow;", "")], "from 1 ms to 168 h");
    }
    let aging = pool.replace("pool = \"1-9\"", "pool = \"1-9\", idle = \"300s\"");
    assert_eq!(check(&[&aging, &reverse]), [""; 0]);
    let twice = reverse.replace("\"forth\"", "\"forth\", idle = \"300s\"");
    refused(&[&aging, &twice], "rows of a reverse table age with those of \"forth\": give \"idle\" to \"forth\"");
    let member = |name: &str, more: &str| table(name, &format!("group = \"g\"{more}"), key, "allow;", "");
    let [first, second, none] =
        [", add = \"allow\", idle = \"5m\"", ", idle = \"300s\"", ""].map(|more| member("t", more));
    let other = |text: &str| text.replace("table t", "table u");
    assert_eq!(check(&[&first, &other(&second)]), [""; 0]);
    assert_eq!(check(&[&first, &other(&none)]), [""; 0]);
    refused(&[&first, &other(&second).replace("300s", "299s")], "C.u and C.t of the group \"g\" differ in \"idle\"");
    let array = "@resilient[group = \"g\"] register<bit<8>>(4) r; ";
    let errors = errors_with(&format!("{ACTIONS} {array} {}", group[0]), "t.apply();");
    assert!(errors.len() == 1 && errors[0].contains("\"g\" is a group of registers"), "{errors:?}");
}
