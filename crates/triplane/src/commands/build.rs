//! Runs `triplane build`: writes a program in Triplane's compiled form, and its P4Info.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use compiler::ProgramFile;

use crate::cli::BuildArgs;
use crate::load::Loader;
use crate::output::{Failure, Output};

/// Builds.
pub fn run(args: &BuildArgs, output: &Output) -> Result<(), Failure> {
    let program = &args.program.program;
    let target = args.output.clone().unwrap_or_else(|| program.with_extension("tpl"));
    let mut loader = Loader::open(&args.program)?;
    if loader.is_compiled() {
        return Err(Failure::Input(format!("{} is already compiled", program.display())));
    }
    for (path, what) in [(Some(&target), "the compiled program"), (args.p4info_out.as_ref(), "the P4Info")] {
        if path.is_some_and(|path| same_file(path, program)) {
            return Err(Failure::Usage(format!("{what} would overwrite its source {}", program.display())));
        }
    }
    if args.p4info_out.as_ref().is_some_and(|info| same_file(info, &target)) {
        return Err(Failure::Usage(format!("{} cannot be both the program and its P4Info", target.display())));
    }
    let compiled = loader.compile();
    loader.report(output)?;
    let compiled =
        compiled.ok_or_else(|| anyhow!("the compiler returned neither a program nor an error; this is a bug"))?;
    let file = ProgramFile::new(&program.display().to_string(), compiled);
    let bytes =
        file.emit().map_err(|why| Failure::Input(format!("{} is too large to build: {why}", program.display())))?;
    write(&target, &bytes)?;
    if let Some(path) = &args.p4info_out {
        write(path, &super::p4info::by_name(path).write(&file.program.p4info))?;
    }
    let size = bytes.len();
    let beside = args.p4info_out.as_ref().map(|path| format!(", and {}", path.display())).unwrap_or_default();
    output.note(&format!("built {} ({size} bytes){beside}", target.display()));
    Ok(())
}

/// Whether both names refer to the same file, as far as can be determined: a file that does not exist yet is a
/// different one.
fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Writes a file whole or not at all: a switch may start from it at any moment.
fn write(path: &PathBuf, bytes: &[u8]) -> Result<(), Failure> {
    let shown = path.display();
    let refused = || format!("cannot write {shown}");
    // Devices and pipes are written to as they are.
    if path.exists() && !path.is_file() {
        return Ok(std::fs::write(path, bytes).with_context(refused)?);
    }
    let mut name = path.file_name().with_context(|| format!("{shown} is not a file name"))?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    Ok(written.with_context(refused)?)
}
