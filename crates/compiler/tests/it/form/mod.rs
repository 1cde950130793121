//! The compiled form of every program there is, and of what was done to it.

mod agreement;
mod hostile;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use compiler::{ProgramFile, Source};
use diagnostics::{Diagnostics, SourceMap};
use v1model::V1Model;

/// The programs of the repository that compile and can be described.
pub fn programs() -> &'static [ProgramFile] {
    static ALL: OnceLock<Vec<ProgramFile>> = OnceLock::new();
    ALL.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut paths = Vec::new();
        for folder in ["examples", "testdata", "crates/p4info/testdata", "crates/p4runtime_server/tests"] {
            collect(&root.join(folder), &mut paths);
        }
        paths.sort();
        let all: Vec<_> = paths.iter().filter_map(|path| compiled(path)).collect();
        assert!(all.len() > 50, "{} programs of {} compile", all.len(), paths.len());
        all
    })
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "p4") {
            found.push(path);
        }
    }
}

fn compiled(path: &Path) -> Option<ProgramFile> {
    let text = std::fs::read_to_string(path).expect("it can be read");
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let name = path.file_name()?.to_str()?;
    let include_dirs = [path.parent()?.to_owned()];
    let source = Source { include_dirs: &include_dirs, ..Source::new(name, &text) };
    let program = compiler::compile(&source, &V1Model, &mut map, &mut diagnostics)?;
    Some(ProgramFile::new(name, program))
}

/// The program with this name.
pub fn program(name: &str) -> &'static ProgramFile {
    programs().iter().find(|it| it.source == name).unwrap_or_else(|| panic!("{name} compiles"))
}

#[test]
fn program_files_round_trip() {
    for program in programs() {
        let bytes = program.emit().expect("no program here is too large");
        match ProgramFile::parse(&bytes) {
            Ok(read) => assert_eq!(&read, program, "{}", program.source),
            Err(why) => panic!("{} {why}", program.source),
        }
        let again = ProgramFile::parse(&bytes).map(|read| read.emit().unwrap());
        assert_eq!(Ok(bytes), again, "{}", program.source);
    }
}

/// A file written when this version of the form was new. If it cannot be read any more, or has another meaning, the
/// change needs a new [`compiler::FORMAT`], and a file of that format here.
#[test]
fn a_file_that_was_written_before_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/router.{}.tpl", compiler::FORMAT));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, program("router.p4").emit().unwrap()).unwrap();
    }
    let bytes = std::fs::read(&path).expect("the file is there");
    let read = ProgramFile::parse(&bytes).unwrap_or_else(|why| panic!("{} {why}", path.display()));
    assert_eq!(read.source, "router.p4");
    assert_eq!(read.emit().unwrap(), bytes, "it means what it meant");
}
