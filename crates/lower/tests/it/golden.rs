//! Programs with their IR beside them in `testdata`. `UPDATE_EXPECT=1` regenerates the IR.

use std::fs;
use std::path::Path;

use crate::pipeline;
use diagnostics::{Diagnostics, SourceMap};
use testing::golden::{GoldenFiles, inputs};

#[test]
fn programs_become_the_ir_beside_them() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut golden = GoldenFiles::new();
    for path in inputs(dir, "p4") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let outcome = pipeline::compile(&name, &text, &[]);
        // The diagnostics of a program are part of its expected output.
        let mut got = String::new();
        for line in outcome.findings.trim_end().lines() {
            got.push_str(format!("// {line}").trim_end());
            got.push('\n');
        }
        if let Some(program) = &outcome.program {
            ir::validate(program).unwrap_or_else(|violations| panic!("{name}: {}", violations[0]));
            let printed = program.to_string();
            let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
            let file = map.add(&name, printed.as_str());
            let reread = ir::parse(&map, file, &mut diagnostics);
            assert!(reread.is_some(), "{name}: {}", diagnostics.render(&map, false));
            assert!(reread.as_ref() == Some(program), "{name}: the IR reads back differently");
            got.push_str(&printed);
        }
        golden.compare(path.with_extension("ir"), &got);
    }
    golden.finish();
}
