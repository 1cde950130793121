//! `triplane p4info`: what a control plane has to know of a program.

use anyhow::{Context, anyhow};
use p4runtime_proto::Format;

use crate::cli::{InfoFormat, P4InfoArgs};
use crate::load::Loader;
use crate::output::{Failure, Output};

/// Prints the P4Info, or writes it to a file.
pub fn run(args: &P4InfoArgs, output: &Output) -> Result<(), Failure> {
    let mut loader = Loader::open(&args.program)?;
    let typed = loader.typed();
    let info = typed.map(|typed| p4info::p4info(&typed, &p4info::V1Model, &loader.map, &mut loader.diagnostics));
    loader.report(output)?;
    let info = info.ok_or_else(|| anyhow!("the checker gave no program and no reason; this is a bug"))?;
    let bytes = format(args).write(&info);
    match &args.output {
        Some(path) => {
            std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(())
        }
        None => output.print_bytes(&bytes),
    }
}

/// The form that was asked for, or the one that the file's name tells, or text.
fn format(args: &P4InfoArgs) -> Format {
    let told = args.output.as_ref().and_then(|path| path.extension()).and_then(|extension| extension.to_str());
    match (args.format, told) {
        (Some(InfoFormat::Text), _) => Format::Text,
        (Some(InfoFormat::Json), _) | (None, Some("json")) => Format::Json,
        (Some(InfoFormat::Binary), _) | (None, Some("bin" | "pb")) => Format::Binary,
        (None, _) => Format::Text,
    }
}
