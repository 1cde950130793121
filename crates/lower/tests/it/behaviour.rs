//! Behaviour of compiled programs: `testdata/behaviour` holds programs, each with a packet test beside it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::pipeline;
use diagnostics::{Diagnostics, SourceMap};

#[test]
fn programs_do_with_packets_what_the_language_says() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/behaviour");
    let mut wrong = String::new();
    let mut seen = 0;
    let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "p4")) {
        seen += 1;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let outcome = pipeline::compile(&name, &fs::read_to_string(path).unwrap(), &[]);
        let Some(program) = outcome.program else { panic!("{name} does not compile:\n{}", outcome.findings) };
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let file = map.add(&name, fs::read_to_string(path.with_extension("stf")).unwrap());
        let script = stf::parse(&map, file, &mut diagnostics);
        let program = Arc::new(program);
        let Some(test) = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics)) else {
            panic!("{name}: {}", diagnostics.render(&map, false));
        };
        let report = test.run(&program, &stf::RunOptions::default()).unwrap();
        if !report.passed() {
            wrong.push_str(&format!("{name}:\n{}\n", report.render(&map)));
        }
    }
    assert!(seen > 0, "no programs in {}", dir.display());
    assert!(wrong.is_empty(), "{wrong}");
}
