//! Computes the row of P4Info: v1model programs for which p4c's repository has the P4Info that p4c generates.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use diagnostics::{Diagnostics, SourceMap};
use p4info::P4Info;
use p4runtime_proto::config::Preamble;

use super::cases::failures_of;
use super::{Request, Row, checked, errors};

/// Programs whose P4Info differs on purpose, and why.
const EXPECTED_FAILURES: [(&str, &str); 1] = [(
    "issue2735-bmv2.p4",
    "p4c omits a register that its optimiser removed; the program declares it, so it is included",
)];

const ENDING: &str = ".p4info.txtpb";

/// Compares the P4Info of every program that p4c has one of.
pub fn row(request: &Request) -> Result<Row> {
    let testdata = request.p4c.join("testdata");
    let folder = testdata.join("p4_16_samples");
    let paths: Vec<PathBuf> = goldens(&testdata.join("p4_16_samples_outputs"))?
        .into_iter()
        .map(|name| folder.join(name))
        .filter(|path| path.display().to_string().contains(&request.name))
        .collect();
    let total = paths.len();
    let checkout = request.checkout_only();
    let mut failures = failures_of(&paths, &folder, move |path| agrees(&checkout, path));
    let differs = |name: &str| failures.iter().any(|failure| failure.name == name);
    let expected_failures: Vec<(String, String)> = EXPECTED_FAILURES
        .iter()
        .filter(|(name, _)| differs(name))
        .map(|(name, why)| ((*name).to_owned(), (*why).to_owned()))
        .collect();
    failures.retain(|failure| !expected_failures.iter().any(|(name, _)| *name == failure.name));
    Ok(Row { name: "p4info", what: "P4Info equals p4c's", required: 99.0, total, expected_failures, failures })
}

/// Programs whose P4Info was made for v1model, as paths below `folder`.
fn goldens(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(&inner).with_context(|| format!("cannot read {}", inner.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(program) = path.to_str().and_then(|path| path.strip_suffix(ENDING)) else { continue };
            if std::fs::read_to_string(&path)?.contains("arch: \"v1model\"") {
                found.push(Path::new(program).strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn agrees(request: &Request, path: &Path) -> Result<(), String> {
    let mut map = SourceMap::new();
    let program = checked(request, path, &mut map)?;
    let mut diagnostics = Diagnostics::new();
    let found = p4info::p4info(&program, &v1model::V1Model, &map, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(errors(&map, &diagnostics));
    }
    let testdata = request.p4c.join("testdata");
    let name = path.strip_prefix(testdata.join("p4_16_samples")).map_err(|error| error.to_string())?;
    let golden = testdata.join(format!("p4_16_samples_outputs/{}{ENDING}", name.display()));
    let text = std::fs::read_to_string(&golden).map_err(|error| error.to_string())?;
    let wanted: P4Info = p4runtime_proto::from_text(&text).map_err(|error| error.to_string())?;
    let differences = differences(&found, &wanted);
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

/// Returns the differences between two messages. Objects are found by name, so that one too many does not make all
/// others differ; at the end their order is compared too. The order means nothing to a control plane, but text of the
/// same order can be compared.
pub fn differences(found: &P4Info, wanted: &P4Info) -> Vec<String> {
    let mut out = Vec::new();
    one("pkg_info", &found.pkg_info, &wanted.pkg_info, &mut out);
    macro_rules! lists {
        ($($field:ident),*) => {$(
            objects(stringify!($field), &found.$field, &wanted.$field, |object| object.preamble.as_ref(), &mut out);
        )*};
    }
    lists!(
        tables,
        actions,
        action_profiles,
        counters,
        direct_counters,
        meters,
        direct_meters,
        controller_packet_metadata,
        value_sets,
        registers,
        digests
    );
    one("externs", &found.externs, &wanted.externs, &mut out);
    one("type_info", &found.type_info, &wanted.type_info, &mut out);
    if out.is_empty() && found != wanted {
        out.push("objects are in a different order".to_owned());
    }
    out
}

fn one<T: PartialEq + Debug>(what: &str, found: &T, wanted: &T, out: &mut Vec<String>) {
    if found != wanted {
        out.push(format!("{what} differs\n  found  {found:?}\n  wanted {wanted:?}"));
    }
}

fn objects<T: PartialEq + Debug>(
    what: &str,
    found: &[T],
    wanted: &[T],
    preamble: impl Fn(&T) -> Option<&Preamble>,
    out: &mut Vec<String>,
) {
    let name = |object: &T| preamble(object).map_or(String::new(), |preamble| preamble.name.clone());
    let by_name = |list: &'_ [T]| -> BTreeMap<String, usize> {
        list.iter().enumerate().map(|(at, object)| (name(object), at)).collect()
    };
    if found.len() != by_name(found).len() {
        out.push(format!("{what}: duplicate name"));
    }
    let wanted_by_name = by_name(wanted);
    for object in found {
        let name = name(object);
        match wanted_by_name.get(&name) {
            Some(at) => one(&format!("{what} `{name}`"), object, &wanted[*at], out),
            None => out.push(format!("{what} `{name}` should not be there")),
        }
    }
    let found_by_name = by_name(found);
    for name in wanted_by_name.keys().filter(|name| !found_by_name.contains_key(*name)) {
        out.push(format!("{what} `{name}` is missing"));
    }
}
