//! The compiled form of every program there is, and of what was done to it.

mod agreement;
mod hostile;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use compiler::Compiled;
use diagnostics::{Diagnostics, SourceMap};
use lower::Architecture;

/// The programs of the repository that compile and can be described.
pub fn programs() -> &'static [Compiled] {
    static ALL: OnceLock<Vec<Compiled>> = OnceLock::new();
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

fn compiled(path: &Path) -> Option<Compiled> {
    let text = std::fs::read_to_string(path).expect("it can be read");
    let arch = v1model::description::V1Model;
    let options = p4::Options { builtin: arch.includes().to_vec(), ..p4::Options::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let name = path.file_name()?.to_str()?;
    let folder = path.parent()?.to_owned();
    let options = p4::Options { include_dirs: vec![folder], ..options };
    let ast = p4::parse(&mut map, name, &text, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, &map, &mut diagnostics).filter(|_| !diagnostics.has_errors())?;
    let info = p4info::p4info(&typed, &p4info::V1Model, &map, &mut diagnostics);
    let program = lower::compile(&typed, &arch, &map, &mut diagnostics)?;
    (!diagnostics.has_errors()).then(|| Compiled::new(name, program, info))
}

/// The program with this name.
pub fn program(name: &str) -> &'static Compiled {
    programs().iter().find(|it| it.source == name).unwrap_or_else(|| panic!("{name} compiles"))
}

#[test]
fn what_is_written_is_read_back() {
    for program in programs() {
        let bytes = program.to_bytes().expect("no program here is too large");
        match Compiled::read(&bytes) {
            Ok(read) => assert_eq!(&read, program, "{}", program.source),
            Err(why) => panic!("{} {why}", program.source),
        }
        let again = Compiled::read(&bytes).map(|read| read.to_bytes().unwrap());
        assert_eq!(Ok(bytes), again, "{}", program.source);
    }
}

/// A file written when this version of the form was new. If it cannot be read any more, or means something else, what was
/// changed needs another [`compiler::FORMAT`], and a file of that one here.
#[test]
fn a_file_that_was_written_before_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/router.{}.tpl", compiler::FORMAT));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, program("router.p4").to_bytes().unwrap()).unwrap();
    }
    let bytes = std::fs::read(&path).expect("the file is there");
    let read = Compiled::read(&bytes).unwrap_or_else(|why| panic!("{} {why}", path.display()));
    assert_eq!(read.source, "router.p4");
    assert_eq!(read.to_bytes().unwrap(), bytes, "it means what it meant");
}
