//! Formats and the programs generated from them; invalid formats and their diagnostics. `UPDATE_EXPECT=1` regenerates
//! the expectations.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use compiler::Source;
use diagnostics::{Diagnostics, FileId, SourceMap};
use subscribe::ColumnLayout;
use subscribe_p4::{ProgramFormat, ProgramMismatch, ProgramOptions};
use v1model::V1Model;

const V1MODEL: &str = include_str!("../../../v1model/src/v1model.p4");

/// Checks a program. Returns it with its diagnostics, except for the code `silent`.
fn check(name: &str, text: &str, silent: Option<&'static str>) -> (Option<p4::typed::Program>, SourceMap, Diagnostics) {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    silent.into_iter().for_each(|kind| diagnostics.silence(kind));
    let typed = compiler::check(&Source::new(name, text), &V1Model, &mut map, &mut diagnostics);
    (typed, map, diagnostics)
}

fn read(name: &str, text: &str) -> (Option<ProgramFormat>, String) {
    let (typed, map, diagnostics) = check(name, text, Some("unused"));
    let typed = typed.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    let mut diagnostics = Diagnostics::new();
    let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
    assert_eq!(format.is_none(), diagnostics.has_errors());
    (format, diagnostics.render(&map, false))
}

fn program(text: &str, options: &ProgramOptions) -> String {
    let (format, findings) = read("format.p4", text);
    let format = format.unwrap_or_else(|| panic!("{findings}"));
    let rules = subscribe_p4::rule_format(&format).unwrap();
    let layout = ColumnLayout::sensible(&rules.format, &[]);
    let program = subscribe_p4::program(text, &format, &rules, &layout, options);
    let (typed, map, diagnostics) = check("program.p4", &program, None);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
    assert!(typed.is_some_and(|typed| typed.main.is_some()), "there is no package");
    program
}

fn data(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn expect(found: &str, name: &str) {
    testing::golden::assert_golden(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), found);
}

#[test]
fn a_format_of_single_messages_becomes_this_program() {
    expect(&program(&data("testdata/reports.p4"), &ProgramOptions::default()), "testdata/reports.generated.p4");
}

#[test]
fn a_format_of_many_messages_becomes_a_program_in_either_shape() {
    let feed = data("../../examples/market-data/feed.p4");
    let wide = program(&feed, &ProgramOptions::default());
    let narrow = program(&feed, &ProgramOptions { messages_per_pass: Some(1), ..ProgramOptions::default() });
    // Each table is applied once per message of a pass.
    assert_eq!((wide.matches("leaf.apply()").count(), narrow.matches("leaf.apply()").count()), (12, 1));
}

/// BMv2 does not stamp recirculated packets, so windows must not require a stamp in each pass: it is read if present,
/// and preserved.
#[test]
fn a_recirculated_packet_keeps_its_time_stamp() {
    const STAMP: &str = "standard_metadata.ingress_global_timestamp";
    let momentum = program(&data("../../examples/market-data/momentum.p4"), &ProgramOptions::default());
    assert!(momentum.contains("@field_list(1) bit<48> now;"));
    assert!(momentum.contains(&format!("if ({STAMP} != 0) {{\n            meta.subscription.now = {STAMP};")));
    assert_eq!(momentum.matches(STAMP).count(), 2);
}

/// Various formats.
fn formats() -> Vec<String> {
    let market = ["market-data/feed", "market-data/orders", "market-data/momentum"];
    let others = ["int-reports/report", "dns/dns", "subscribe-router/router", "cache/cache"];
    let beside = ["feed-router/router", "flow-balancer/balancer", "ila/ila"];
    let examples = market.into_iter().chain(others).chain(beside);
    let own = ["batch", "coded", "meter", "reports", "types"].map(|name| format!("testdata/{name}.p4"));
    own.into_iter().chain(examples.map(|name| format!("../../examples/{name}.p4"))).collect()
}

/// The texts of various formats, one of them with arbitration, by their names.
fn texts() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = formats().into_iter().map(|name| (name.clone(), data(&name))).collect();
    let arbitrated = data("../../examples/market-data/orders.p4").replace("session =", "arbitrate = 4096, session =");
    all.push(("orders.p4 with arbitration".to_owned(), arbitrated));
    all
}

/// Returns the names and keywords of a text, without strings and comments.
fn words(text: &str) -> BTreeSet<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let outside = code.flat_map(|line| line.split('"').step_by(2));
    let words = outside.flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).map(str::to_owned).collect()
}

/// Returns the diagnostics for a format with a macro of this name.
fn with_macro(format: &str, name: &str) -> String {
    read("format.p4", &format!("#define {name} nothing\n{format}")).1
}

#[test]
fn no_name_of_a_program_may_be_a_macro_of_the_format() {
    const LANGUAGE: &str = "action actions apply bit bool control default_action else exact if in inout key lpm main name \
                            return size struct table ternary true atomic field_list NoError PacketTooShort \
                            isValid setInvalid emit hit";
    let mut tried = BTreeSet::new();
    for (name, text) in texts() {
        for (messages_per_pass, ports) in [(None, None), (Some(1), None), (None, Some(500))] {
            let options = ProgramOptions {
                messages_per_pass,
                split_horizon: true,
                forwards_hosts: true,
                ..ProgramOptions::default()
            };
            let made = program(&text, &ports.map_or(options, |ports| options.with_bitmaps(ports)));
            let own = words(&text);
            let built_in = words(V1MODEL);
            let is_new = |word: &&String| {
                !own.contains(*word) && !built_in.contains(*word) && !LANGUAGE.split(' ').any(|own| own == *word)
            };
            for word in words(&made).iter().filter(is_new) {
                if tried.insert(word.clone()) {
                    let found = with_macro(&text, word);
                    let is_told = found.contains("error[name]") && found.contains(&format!("`{word}`"));
                    assert!(is_told, "{name}: {word}: {found}");
                }
            }
        }
    }
    assert!(tried.len() > 100, "{tried:?}");
}

#[test]
fn an_action_of_the_format_must_not_have_the_name_of_a_generated_declaration() {
    let text = data("testdata/meter.p4");
    let made = program(&text, &ProgramOptions::default());
    let declared = made.lines().filter_map(|line| {
        let line = line.trim_start();
        let behind = ["table ", "action "].iter().find_map(|word| line.strip_prefix(word));
        let variable = || line.strip_suffix(';').filter(|_| line.starts_with("bit<") || line.starts_with("register<"));
        let name = behind.or_else(|| Some(variable()?.split_once("> ").or(line.split_once(") "))?.1))?;
        name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().map(str::to_owned)
    });
    let is_new = |name: &String| !name.is_empty() && !words(&text).contains(name);
    let declared: BTreeSet<String> = declared.filter(is_new).collect();
    assert!(declared.len() > 60, "{declared:?}");
    for name in declared {
        let action = format!("@query_action action {name}(inout headers_t hdr) {{ hdr.reading.kind = 1; }}");
        let (format, found) = read("format.p4", &format!("{text}\n{action}\n"));
        let is_told = found.contains(&format!("`{name}` is a name that the generated program uses"));
        assert!(format.is_none() && is_told, "{name}: {found}");
    }
}

#[test]
fn every_declaration_of_a_generated_program_is_used() {
    for (_, text) in texts() {
        for messages_per_pass in [None, Some(1)] {
            let options = ProgramOptions { messages_per_pass, split_horizon: true, ..ProgramOptions::default() };
            program(&text, &ProgramOptions { forwards_hosts: true, ..options });
        }
    }
}

const WRONG: [&str; 15] = [
    "checksums",
    "codes",
    "controls",
    "fields",
    "headers",
    "messages",
    "metadata",
    "names",
    "nothing",
    "parser",
    "sessions",
    "sizes",
    "spelling",
    "state",
    "widths",
];

#[test]
fn all_mistakes_of_a_format_are_reported_together() {
    for name in WRONG {
        let (format, findings) = read(&format!("{name}.p4"), &data(&format!("testdata/wrong/{name}.p4")));
        assert!(format.is_none(), "{name} is fine");
        expect(&findings, &format!("testdata/wrong/{name}.txt"));
    }
}

#[test]
fn an_aggregate_does_not_pass_for_the_one_of_another_version_of_the_format() {
    let text = data("testdata/meter.p4");
    let tables = |text: &str| {
        let format = read("format.p4", text).0.expect("a format");
        let rules = subscribe_p4::rule_format(&format).unwrap();
        let layout = ColumnLayout::sensible(&rules.format, &[]);
        let names = subscribe_p4::stage_tables(&rules, &layout, &ProgramOptions::default());
        (rules.format, layout, names.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
    };
    let (format, layout, of_program) = tables(&text);
    let names = || of_program.iter().map(String::as_str);
    assert_eq!(subscribe_p4::order(&format, names()), Some(layout));
    let (sum, min) = ("sum(large) over 100us", "min(value) by unit over 50us");
    let others = [
        text.replace(sum, "sum(large) over 101us"),
        text.replace(sum, "max(large) over 100us"),
        text.replace(min, "min(value) by site over 50us"),
        text.replace(&format!("\"{sum}\", 1, 2"), "@@").replace(min, sum).replace("@@", &format!("\"{min}\", 1, 2")),
    ];
    for other in others {
        assert_ne!(other, text);
        let (format, _, wanted) = tables(&other);
        assert_eq!(subscribe_p4::order(&format, names()), None, "{other}");
        let misfits = wanted.iter().filter_map(|wanted| subscribe_p4::mismatch(wanted, names()));
        let misfits: Vec<_> = misfits.collect();
        assert!(
            misfits.iter().all(|misfit| *misfit == ProgramMismatch::OtherFormat) && !misfits.is_empty(),
            "{misfits:?}"
        );
    }
    // A field that was added since.
    let (format, ..) =
        tables(&text.replace("@query_field(\"value\")", "@query_field(\"new\") bit<8> new; @query_field(\"value\")"));
    assert_eq!(subscribe_p4::order(&format, names()), None);
    // A field that was removed since.
    let names: Vec<&str> = names().filter(|name| !name.contains("large_") || name.contains("slot")).collect();
    assert_eq!(subscribe_p4::order(&format, names.into_iter()), None);
}
