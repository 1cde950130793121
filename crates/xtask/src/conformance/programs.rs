//! The yardstick of programs for packet subscriptions: p4c compiles for BMv2 what formats become, and describes it to a control
//! plane as we do.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use p4runtime_proto::config::P4Info;
use source::{Diagnostics, FileId, SourceMap};
use subscribe::Layout;
use subscribe_p4::Options;

use super::cases::{Fault, programs};
use super::{Request, Row, checked, errors, p4info};

/// Where formats are.
const FOLDERS: [&str; 2] = ["examples", "crates/subscribe_p4/testdata"];

/// Has p4c compile the programs of all formats, one after the other: it takes seconds and much memory for each.
pub fn row(request: &Request) -> Result<Row> {
    let compiler = request.compiler.as_deref().context("name p4c's compiler with --p4c-bm2-ss FILE")?;
    let paths: Vec<PathBuf> =
        formats()?.into_iter().filter(|path| path.display().to_string().contains(&request.name)).collect();
    let folder = std::env::temp_dir().join(format!("triplane-xtask-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let short = paths.iter().filter_map(|path| {
        let reason = agrees(request, compiler, &folder, path).err()?;
        Some(Fault { name: path.strip_prefix(crate::root()).unwrap_or(path).display().to_string(), reason })
    });
    let short = short.collect();
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    let what = "p4c compiles programs for subscriptions for BMv2, and its P4Info equals ours";
    Ok(Row { name: "programs", what, required: 100.0, total: paths.len(), excused: Vec::new(), short })
}

/// Programs with annotations for rules and no package.
fn formats() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in FOLDERS.iter().map(|folder| programs(&crate::root().join(folder))).collect::<Result<Vec<_>>>()?.concat()
    {
        let text = std::fs::read_to_string(&path)?;
        let is_wrong = path.parent().is_some_and(|folder| folder.ends_with("wrong"));
        if text.contains("@query_field") && !text.contains("V1Switch(") && !is_wrong {
            found.push(path);
        }
    }
    Ok(found)
}

fn agrees(request: &Request, compiler: &Path, folder: &Path, path: &Path) -> Result<(), String> {
    let file = |name: &str| folder.join(name);
    std::fs::write(file("program.p4"), program(request, path)?).map_err(|error| error.to_string())?;
    let wanted = theirs(request, compiler, &file("program.p4"), &file("program.txtpb"), &file("program.json"))?;
    let mut map = SourceMap::new();
    let program = checked(request, &file("program.p4"), &mut map)?;
    let found = ::p4info::p4info(&program, &::p4info::V1Model, &map, &mut Diagnostics::new());
    let differences = p4info::differences(&found, &wanted);
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

/// What a format becomes, as BMv2 wants it.
fn program(request: &Request, path: &Path) -> Result<String, String> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let typed = checked(request, path, &mut map)?;
    let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
    let format = format.ok_or_else(|| errors(&map, &diagnostics))?;
    let rules = subscribe_p4::rules(&format).map_err(|error| error.to_string())?;
    let layout = Layout::sensible(&rules.format, &[]);
    let options = Options { messages_per_pass: Some(1), split_horizon: true, ..Options::default() };
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(subscribe_p4::program(&text, &format, &rules, &layout, &options))
}

/// Runs p4c: the P4Info that it writes. The error is what it says.
fn theirs(request: &Request, compiler: &Path, program: &Path, info: &Path, json: &Path) -> Result<P4Info, String> {
    let ran = Command::new(compiler)
        .arg("-I")
        .arg(request.p4c.join("p4include"))
        .arg("--p4runtime-files")
        .arg(info)
        .arg("-o")
        .arg(json)
        .arg(program)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", compiler.display()))?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
    }
    let text = std::fs::read_to_string(info).map_err(|error| error.to_string())?;
    p4runtime_proto::from_text(&text).map_err(|error| error.to_string())
}
