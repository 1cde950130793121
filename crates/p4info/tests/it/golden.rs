//! Programs with their P4Info beside them in `testdata`; programs that P4Info cannot express, with their diagnostics,
//! in `testdata/wrong`. `UPDATE_EXPECT=1` regenerates the expectations.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use p4info::P4Info;
use p4runtime_proto::config::{Preamble, p4_ids::Prefix};
use p4runtime_proto::{from_bytes, from_json, from_text, to_bytes, to_json, to_text};
use testing::golden::{GoldenFiles, inputs};
use v1model::V1Model;

/// Returns the P4Info of a program, and all diagnostics.
fn describe(path: &Path) -> (Option<P4Info>, String) {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let mut map = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let typed = compiler::check(&Source::new(&name, &text), &V1Model, &mut map, &mut diagnostics);
    assert!(typed.is_some(), "{name} does not check:\n{}", diagnostics.render(&map, false));
    let mut diagnostics = Diagnostics::new();
    let info = typed.map(|typed| p4info::p4info(&typed, &V1Model, &map, &mut diagnostics));
    (info.filter(|_| !diagnostics.has_errors()), diagnostics.render(&map, false))
}

fn programs(folder: &str) -> Vec<PathBuf> {
    inputs(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), "p4")
}

#[test]
fn programs_have_the_p4info_beside_them() {
    let mut golden = GoldenFiles::new();
    for path in programs("testdata") {
        let (info, findings) = describe(&path);
        let info = info.unwrap_or_else(|| panic!("{}:\n{findings}", path.display()));
        let findings: String = findings.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
        golden.compare(path.with_extension("txtpb"), &(findings + &to_text(&info)));
    }
    golden.finish();
}

#[test]
fn what_p4info_cannot_describe_is_reported() {
    let mut golden = GoldenFiles::new();
    for path in programs("testdata/wrong") {
        let (info, findings) = describe(&path);
        assert!(info.is_none(), "{} is fine", path.display());
        golden.compare(path.with_extension("txt"), &findings);
    }
    golden.finish();
}

#[test]
fn every_form_reads_back() {
    for path in programs("testdata") {
        let info = describe(&path).0.unwrap();
        assert_eq!(from_text::<P4Info>(&to_text(&info)).unwrap(), info, "text of {}", path.display());
        assert_eq!(from_json::<P4Info>(&to_json(&info)).unwrap(), info, "JSON of {}", path.display());
        assert_eq!(from_bytes::<P4Info>(&to_bytes(&info), 1 << 30).unwrap(), info, "bytes of {}", path.display());
    }
}

/// Returns the id prefix and preamble of every object.
fn objects(info: &P4Info) -> Vec<(Prefix, &Preamble)> {
    let mut out = Vec::new();
    macro_rules! collect {
        ($($field:ident $prefix:ident),*) => {$(
            out.extend(info.$field.iter().map(|object| (Prefix::$prefix, object.preamble.as_ref().unwrap())));
        )*};
    }
    collect!(
        tables Table, actions Action, action_profiles ActionProfile, counters Counter, direct_counters DirectCounter,
        meters Meter, direct_meters DirectMeter, controller_packet_metadata ControllerHeader, value_sets ValueSet,
        registers Register, digests Digest
    );
    out
}

#[test]
fn ids_are_unique_and_lead_somewhere() {
    for path in programs("testdata") {
        let info = describe(&path).0.unwrap();
        let name = path.display();
        let mut ids = BTreeMap::new();
        let mut aliases = HashSet::new();
        for (prefix, preamble) in objects(&info) {
            assert_eq!(preamble.id >> 24, prefix as u32, "kind of {} in {name}", preamble.name);
            assert_eq!(ids.insert(preamble.id, prefix), None, "id of {} in {name}", preamble.name);
            assert!(aliases.insert((prefix as i32, &preamble.alias)), "alias of {} in {name}", preamble.name);
            assert!(preamble.name.ends_with(&preamble.alias), "alias of {} in {name}", preamble.name);
        }
        for table in &info.tables {
            let mut fields = BTreeSet::new();
            assert!(table.match_fields.iter().all(|field| field.id != 0 && fields.insert(field.id)), "{name}");
            assert!(table.action_refs.iter().all(|action| ids.contains_key(&action.id)), "actions in {name}");
            let default = table.initial_default_action.as_ref().unwrap().action_id;
            assert!(ids.contains_key(&default), "default action in {name}");
            assert!(table.const_default_action_id == 0 || table.const_default_action_id == default, "{name}");
            assert!(table.direct_resource_ids.iter().all(|id| ids.contains_key(id)), "direct resources in {name}");
            assert!(table.implementation_id == 0 || ids.contains_key(&table.implementation_id), "{name}");
        }
        assert!(info.action_profiles.iter().flat_map(|profile| &profile.table_ids).all(|id| ids.contains_key(id)));
        assert!(info.direct_counters.iter().all(|counter| ids.contains_key(&counter.direct_table_id)));
        assert!(info.direct_meters.iter().all(|meter| ids.contains_key(&meter.direct_table_id)));
    }
}
