//! Formats and the programs that are made of them; formats that are wrong, and what is said about them. `UPDATE_EXPECT=1`
//! writes what is expected anew.

use std::fs;
use std::path::Path;

use source::{Diagnostics, FileId, SourceMap};
use subscribe::Layout;
use subscribe_p4::{Format, Options};

const V1MODEL: &str = include_str!("../../v1model/src/v1model.p4");

/// Checks a program, and gives it with what was found; what is `silent` is not looked for.
fn check(name: &str, text: &str, silent: Option<&'static str>) -> (Option<p4::typed::Program>, SourceMap, Diagnostics) {
    let options = p4::Options { builtin: vec![("v1model.p4", V1MODEL)], ..Default::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    silent.into_iter().for_each(|kind| diagnostics.silence(kind));
    let ast = p4::parse(&mut map, name, text, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, &map, &mut diagnostics);
    (typed, map, diagnostics)
}

fn read(name: &str, text: &str) -> (Option<Format>, String) {
    let (typed, map, diagnostics) = check(name, text, Some("unused"));
    let typed = typed.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    let mut diagnostics = Diagnostics::new();
    let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
    assert_eq!(format.is_none(), diagnostics.has_errors());
    (format, diagnostics.render(&map, false))
}

fn program(text: &str, options: &Options) -> String {
    let (format, findings) = read("format.p4", text);
    let format = format.unwrap_or_else(|| panic!("{findings}"));
    let rules = subscribe_p4::rules(&format).unwrap();
    let layout = Layout::sensible(&rules.format, &[]);
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{name} should be as follows; UPDATE_EXPECT=1 accepts that.\n{found}");
}

#[test]
fn a_format_of_single_messages_becomes_this_program() {
    expect(&program(&data("testdata/reports.p4"), &Options::default()), "testdata/reports.generated.p4");
}

#[test]
fn a_format_of_many_messages_becomes_a_program_in_either_shape() {
    let feed = data("../../examples/market-data/feed.p4");
    let wide = program(&feed, &Options::default());
    let narrow = program(&feed, &Options { messages_per_pass: Some(1), ..Options::default() });
    // Each table is applied once for each message of a pass.
    assert_eq!((wide.matches("leaf.apply()").count(), narrow.matches("leaf.apply()").count()), (12, 1));
}

#[test]
fn nothing_in_a_program_is_unused() {
    let examples = ["market-data/feed", "int-reports/report", "dns/dns", "subscribe-router/router", "cache/cache"];
    let examples = examples.iter().map(|name| format!("../../examples/{name}.p4"));
    for name in ["testdata/batch.p4", "testdata/meter.p4"].into_iter().map(str::to_owned).chain(examples) {
        for messages_per_pass in [None, Some(1)] {
            program(&data(&name), &Options { messages_per_pass, split_horizon: true, ..Options::default() });
        }
    }
}

#[test]
fn what_is_wrong_is_told_all_at_once() {
    for name in ["codes", "fields", "messages", "nothing", "parser", "spelling", "state", "widths"] {
        let (format, findings) = read(&format!("{name}.p4"), &data(&format!("testdata/wrong/{name}.p4")));
        assert!(format.is_none(), "{name} is fine");
        expect(&findings, &format!("testdata/wrong/{name}.txt"));
    }
}
