//! The reference evaluator against the switch: generated programs, and the project's packet tests.

mod errors;
mod limits;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use oracle::Verdict;
use v1model::V1Model;

/// Runs on a large stack: the evaluator is recursive, and development builds have large frames.
fn with_stack(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, run).expect("a thread");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn generated_programs_agree() {
    with_stack(|| {
        let mut compared = 0;
        for seed in 1..=40 {
            let text = oracle::generate(seed);
            match oracle::compare(&text, seed, seed % 4 == 0) {
                Verdict::Agrees { packets, .. } => compared += packets,
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert!(compared > 200, "only {compared} packets have a defined result");
    });
}

/// A program without `main` is refused, not taken for one on which all agree.
#[test]
fn a_program_that_does_not_compile_is_refused() {
    let verdict = oracle::compare("#include <core.p4>\n", 1, false);
    assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
}

#[test]
fn packet_tests_agree_with_the_reference() {
    with_stack(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/oracle is two levels deep");
        let (mut agree, mut skipped) = (0, Vec::new());
        for folder in ["testdata/stf", "crates/lower/testdata/behaviour"] {
            let folder = root.join(folder);
            let entries = std::fs::read_dir(&folder).expect("a folder of packet tests");
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "stf"));
            paths.sort();
            for path in paths {
                match verdict(&path, &folder) {
                    Verdict::Agrees { .. } => agree += 1,
                    Verdict::Unsupported(what) => skipped.push(what),
                    other => panic!("{}: {other:?}", path.display()),
                }
            }
        }
        assert!(agree >= 80, "only {agree} packet tests agree; skipped: {skipped:?}");
    });
}

fn verdict(path: &Path, folder: &Path) -> Verdict {
    let read = |path: &Path| std::fs::read_to_string(path).expect("a program and its packet test");
    let (text, name) = (read(&path.with_extension("p4")), path.with_extension("p4").display().to_string());
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let include_dirs = [folder.to_owned()];
    let source = Source { include_dirs: &include_dirs, ..Source::new(&name, &text) };
    let typed = compiler::check(&source, &V1Model, &mut map, &mut diagnostics).expect("a valid program");
    let compiled = compiler::compile_checked(&typed, &V1Model, &mut map, &mut diagnostics).expect("a valid program");
    let program = Arc::new(compiled.ir);
    let file = map.add(&path.display().to_string(), read(path));
    let script = stf::parse(&map, file, &mut diagnostics).expect("a script");
    let test = stf::bind(&script, &program, &mut diagnostics).expect("a script that fits");
    oracle::run_script(&typed, &program, &test)
}

/// The reference takes the width of ports from the program, as the switch does.
#[test]
fn wide_ports_agree_with_the_reference() {
    let architecture = v1model::description::INCLUDES[0].1.replace("bit<9>", "bit<16>");
    let text = format!(
        "{architecture}
         header h_t {{ bit<16> port; }}
         struct H {{ h_t h; }}
         struct M {{ }}
         parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
             state start {{ p.extract(h.h); transition accept; }}
         }}
         control V(inout H h, inout M m) {{ apply {{ }} }}
         control I(inout H h, inout M m, inout standard_metadata_t s) {{
             apply {{ s.egress_spec = h.h.port; if (h.h.port == 3) {{ mark_to_drop(s); }} }}
         }}
         control E(inout H h, inout M m, inout standard_metadata_t s) {{
             apply {{ if (s.egress_port == 4) {{ mark_to_drop(s); }} }}
         }}
         control D(packet_out p, in H h) {{ apply {{ p.emit(h.h); }} }}
         V1Switch(P(), V(), I(), E(), V(), D()) main;"
    );
    with_stack(|| {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let source = Source::without_files("wide.p4", &text);
        let typed = compiler::check(&source, &V1Model, &mut map, &mut diagnostics).expect("a valid program");
        let compiled =
            compiler::compile_checked(&typed, &V1Model, &mut map, &mut diagnostics).expect("a valid program");
        let program = Arc::new(compiled.ir);
        let ports = ["01ff", "03e8", "0003", "0004", "ffff"];
        let script: String = ports.map(|port| format!("packet 0 {port}\nexpect 511\nexpect 1000\n")).concat();
        let file = map.add("wide.stf", script);
        let script = stf::parse(&map, file, &mut diagnostics).expect("a script");
        let test = stf::bind(&script, &program, &mut diagnostics).expect("a script that fits");
        let verdict = oracle::run_script(&typed, &program, &test);
        assert!(matches!(verdict, Verdict::Agrees { packets: 5, unspecified: false }), "{verdict:?}");
    });
}
