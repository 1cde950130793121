//! Runs `triplane build`: writes a program in Triplane's compiled form, and its P4Info.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use compiler::ProgramFile;

use crate::cli::BuildArgs;
use crate::load::Loader;
use crate::output::{Failure, Output};

/// Maximum number of names that are tried for a temporary file.
const MAX_NAMES: u32 = 16;

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
    write_whole(&target, &bytes)?;
    if let Some(path) = &args.p4info_out {
        write_whole(path, &super::p4info::by_name(path).write(&file.program.p4info))?;
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
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let shown = path.display();
    let refused = || format!("cannot write {shown}");
    // Devices and pipes are written to as they are.
    if path.exists() && !path.is_file() {
        return Ok(std::fs::write(path, bytes).with_context(refused)?);
    }
    let (mut file, part) = create_beside(path).with_context(refused)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    Ok(written.with_context(refused)?)
}

/// Creates a file with another name in the same directory. Whatever has such a name already is left alone: in a
/// directory that others can write to, it may be a link to a file of this user.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let create = |number: u32| {
        let mut name = name.to_owned();
        name.push(format!(".{}.{number}.part", std::process::id()));
        let part = path.with_file_name(name);
        File::options().write(true).create_new(true).open(&part).map(|file| (file, part))
    };
    let is_taken =
        |created: &io::Result<_>| matches!(created, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
    let mut created = create(0);
    for number in 1..MAX_NAMES {
        if !is_taken(&created) {
            break;
        }
        created = create(number);
    }
    created
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_the_temporary_name_is_not_followed() {
        let directory = std::env::temp_dir().join(format!("triplane-build-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let [target, other] = ["p.tpl", "other"].map(|name| directory.join(name));
        std::fs::write(&other, "somebody's").unwrap();
        let link = directory.join(format!("p.tpl.{}.0.part", std::process::id()));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        write_whole(&target, b"program").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"program");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "somebody's");
        let names = std::fs::read_dir(&directory).unwrap().count();
        assert_eq!((names, link.is_symlink()), (3, true), "only the target was added");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
