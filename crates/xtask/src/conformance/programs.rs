//! Computes the row of programs for packet subscriptions: p4c compiles the programs generated from formats, for every
//! kind of tables, and its P4Info of them equals ours.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use diagnostics::{Diagnostics, FileId, SourceMap};
use p4runtime_proto::config::P4Info;
use subscribe::{ColumnLayout, TargetCapabilities, Wide};
use subscribe_p4::{ProgramFormat, ProgramOptions, RuleFormat};

use super::cases::{FailedSample, programs};
use super::{Request, Row, checked, errors, p4info};

/// Folders that hold formats.
const FOLDERS: [&str; 2] = ["examples", "crates/subscribe_p4/testdata"];

/// A variant of the program that is generated from a format.
struct Variant {
    /// The equivalent flags of the command line.
    flags: &'static str,
    wide: Wide,
    exact_beside: bool,
    /// As `subscribe network` makes programs.
    split_horizon: bool,
    /// The fields in the opposite order.
    is_reversed: bool,
}

const PLAIN: Variant =
    Variant { flags: "", wide: Wide::Range, exact_beside: false, split_horizon: false, is_reversed: false };

const VARIANTS: [Variant; 6] = [
    PLAIN,
    Variant { flags: "--ranges ternary", wide: Wide::Ternary, ..PLAIN },
    Variant { flags: "--ranges lpm", wide: Wide::Lpm, ..PLAIN },
    Variant { flags: "--exact-tables --order (reversed)", exact_beside: true, is_reversed: true, ..PLAIN },
    Variant { flags: "--ranges ternary --exact-tables", wide: Wide::Ternary, exact_beside: true, ..PLAIN },
    Variant {
        flags: "--ranges lpm --exact-tables (in a network)",
        wide: Wide::Lpm,
        exact_beside: true,
        split_horizon: true,
        ..PLAIN
    },
];

impl Variant {
    fn options(&self, messages_per_pass: Option<u32>) -> ProgramOptions {
        let defaults = ProgramOptions::default();
        let has_ranges = self.wide == Wide::Range;
        let target =
            TargetCapabilities { wide: self.wide, has_ranges, exact_beside: self.exact_beside, ..defaults.target };
        ProgramOptions { target, messages_per_pass, split_horizon: self.split_horizon, ..defaults }
    }

    fn layout(&self, rules: &RuleFormat) -> Result<ColumnLayout, String> {
        let layout = ColumnLayout::sensible(&rules.format, &[]);
        if !self.is_reversed {
            return Ok(layout);
        }
        let names = layout.shown(&rules.format);
        let names: Vec<&str> = names.iter().rev().map(String::as_str).collect();
        ColumnLayout::forced(&rules.format, &names).map_err(|error| error.to_string())
    }
}

/// One of p4c's compilers, and the programs that it compiles.
struct Compiler<'a> {
    file: &'a Path,
    variants: &'static [Variant],
    messages_per_pass: Option<u32>,
    /// Arguments for its output, in addition to the program.
    output: &'static [&'static str],
    shape: &'static str,
}

/// Has p4c compile the programs of all formats, one after the other: it takes seconds and much memory for each. BMv2's
/// compiler takes tables that are applied in one place; the other, for no target, takes programs in whatever shape.
pub fn row(request: &Request) -> Result<Row> {
    let file = request.compiler.as_deref().context("name p4c's compiler with --p4c-bm2-ss FILE")?;
    let narrow =
        Compiler { file, variants: &VARIANTS, messages_per_pass: Some(1), output: &["-o", "program.json"], shape: "" };
    let whole = request.no_target.as_deref().map(|file| Compiler {
        file,
        variants: &VARIANTS[..1],
        messages_per_pass: None,
        output: &[],
        shape: "(all messages in one pass)",
    });
    let paths: Vec<PathBuf> =
        formats()?.into_iter().filter(|path| path.display().to_string().contains(&request.name)).collect();
    let folder = std::env::temp_dir().join(format!("triplane-xtask-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let (mut total, mut failures) = (0, Vec::new());
    for path in &paths {
        let shown = path.strip_prefix(crate::root()).unwrap_or(path).display();
        let source = match Source::read(request, path) {
            Ok(source) => source,
            Err(reason) => {
                total += 1;
                failures.push(FailedSample { name: shown.to_string(), reason });
                continue;
            }
        };
        // A format without ranges becomes the same program for several targets.
        let mut seen = BTreeSet::new();
        for (compiler, variant) in [Some(&narrow), whole.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|one| one.variants.iter().map(move |variant| (one, variant)))
        {
            let agreed = source.program(variant, compiler.messages_per_pass).and_then(|text| {
                if !seen.insert(text.clone()) {
                    return Ok(false);
                }
                agrees(request, compiler, &folder, &text).map(|()| true)
            });
            total += usize::from(agreed != Ok(false));
            if let Err(reason) = agreed {
                let name = [shown.to_string().as_str(), variant.flags, compiler.shape].join(" ");
                failures.push(FailedSample { name: name.trim_end().to_owned(), reason });
            }
        }
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    let what = "p4c compiles programs for subscriptions, and its P4Info equals ours";
    Ok(Row { name: "programs", what, required: 100.0, total, expected_failures: Vec::new(), failures })
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

/// A format, read.
struct Source {
    text: String,
    format: ProgramFormat,
    rules: RuleFormat,
}

impl Source {
    fn read(request: &Request, path: &Path) -> Result<Source, String> {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let typed = checked(request, path, &mut map)?;
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
        let format = format.ok_or_else(|| errors(&map, &diagnostics))?;
        let rules = subscribe_p4::rule_format(&format).map_err(|error| error.to_string())?;
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(Source { text, format, rules })
    }

    /// Returns the P4 program that is generated from the format for a variant.
    fn program(&self, variant: &Variant, messages_per_pass: Option<u32>) -> Result<String, String> {
        let layout = variant.layout(&self.rules)?;
        let options = variant.options(messages_per_pass);
        Ok(subscribe_p4::program(&self.text, &self.format, &self.rules, &layout, &options))
    }
}

/// Whether p4c compiles a program and its P4Info is ours.
fn agrees(request: &Request, compiler: &Compiler, folder: &Path, text: &str) -> Result<(), String> {
    let path = folder.join("program.p4");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    let wanted = theirs(request, compiler, folder)?;
    let mut map = SourceMap::new();
    let program = checked(request, &path, &mut map)?;
    let found = ::p4info::p4info(&program, &v1model::V1Model, &map, &mut Diagnostics::new());
    let differences = p4info::differences(&found, &wanted);
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

/// Runs p4c and returns the P4Info that it writes. The error is p4c's output.
fn theirs(request: &Request, compiler: &Compiler, folder: &Path) -> Result<P4Info, String> {
    let include = std::path::absolute(request.p4c.join("p4include")).map_err(|error| error.to_string())?;
    let file = std::path::absolute(compiler.file).map_err(|error| error.to_string())?;
    let ran = Command::new(&file)
        .current_dir(folder)
        .arg("-I")
        .arg(include)
        .args(["--p4runtime-files", "program.txtpb"])
        .args(compiler.output)
        .arg("program.p4")
        .output()
        .map_err(|error| format!("cannot run {}: {error}", file.display()))?;
    if !ran.status.success() {
        return Err(match String::from_utf8_lossy(&ran.stderr).into_owned() {
            nothing if nothing.trim().is_empty() => format!("p4c ends with {}", ran.status),
            said => said,
        });
    }
    let text = std::fs::read_to_string(folder.join("program.txtpb")).map_err(|error| error.to_string())?;
    p4runtime_proto::from_text(&text).map_err(|error| error.to_string())
}
