//! Runs `triplane p4info`: prints the information that a control plane needs about a program.

use std::path::Path;

use anyhow::{Context, anyhow};
use p4runtime_proto::{ClientVersion, MessageFormat, restrict_to_version};

use crate::cli::{InfoFormat, InfoVersion, P4InfoArgs};
use crate::load::Loader;
use crate::output::{Failure, Output};

/// Prints the P4Info, or writes it to a file.
pub fn run(args: &P4InfoArgs, output: &Output) -> Result<(), Failure> {
    let mut loader = Loader::open(&args.program)?;
    let compiled = loader.compile();
    loader.report(output)?;
    let mut compiled =
        compiled.ok_or_else(|| anyhow!("the compiler returned neither a program nor an error; this is a bug"))?;
    let removed = restrict_to_version(&mut compiled.p4info, version(args.p4runtime_version));
    if !removed.is_empty() {
        let fields: Vec<_> = removed.iter().map(|(field, count)| format!("{field} ({count})")).collect();
        output.note(&format!("left out for clients of older versions of P4Runtime: {}", fields.join(", ")));
    }
    compiler::check_names(&compiled.p4info).map_err(Failure::Input)?;
    let bytes = format(args).write(&compiled.p4info);
    match &args.output {
        Some(path) => {
            std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(())
        }
        None => output.print_bytes(&bytes),
    }
}

fn version(version: InfoVersion) -> ClientVersion {
    match version {
        InfoVersion::V1_3 => ClientVersion::V1_3,
        InfoVersion::V1_4 => ClientVersion::V1_4,
        InfoVersion::V1_5 => ClientVersion::V1_5,
    }
}

/// Returns the requested format, else the one that the file's name implies, else text.
fn format(args: &P4InfoArgs) -> MessageFormat {
    match (args.format, &args.output) {
        (Some(InfoFormat::Text), _) | (None, None) => MessageFormat::Text,
        (Some(InfoFormat::Json), _) => MessageFormat::Json,
        (Some(InfoFormat::Binary), _) => MessageFormat::Binary,
        (None, Some(path)) => by_name(path),
    }
}

/// Returns the format that a file's name implies, else text.
pub fn by_name(path: &Path) -> MessageFormat {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => MessageFormat::Json,
        Some("bin" | "pb") => MessageFormat::Binary,
        _ => MessageFormat::Text,
    }
}
