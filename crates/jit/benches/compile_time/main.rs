//! Time to compile programs to machine code, by their size.
//!
//! ```text
//! cargo bench -p jit --bench compile_time                      # generated programs, and examples
//! cargo bench -p jit --bench compile_time -- FILE.p4 …         # only these files
//! ```
//!
//! Each figure is the median of `ROUNDS` (from the environment; 5) compilations for the switch of `v1model`, from a
//! checked program in memory to code that can run. The output is Markdown, as in docs/performance.md.

mod generated;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use compiler::Source;
use generated::Size;
use ir::Program;
use v1model::{Executor, Image, V1Model};

/// The numbers of tables and of headers of the generated programs.
const TABLES: [usize; 5] = [10, 30, 100, 300, 1000];
const HEADERS: [usize; 5] = [1, 10, 30, 100, 200];
/// Programs of the repository: a small one, and the one with the most headers.
const EXAMPLES: [&str; 2] = ["examples/router/router.p4", "examples/market-data/switch.p4"];

fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

fn compiled(name: &str, text: &str) -> Arc<Program> {
    Arc::new(compiler::expect_program(&Source::new(name, text), &V1Model).ir)
}

/// Returns the median milliseconds of compiling a program.
fn ms(program: &Arc<Program>) -> f64 {
    let mut times: Vec<f64> = (0..rounds().max(1))
        .map(|_| {
            let begin = Instant::now();
            let image = Image::new(Arc::clone(program), Executor::Jit).expect("the program becomes machine code");
            let ms = begin.elapsed().as_secs_f64() * 1000.0;
            drop(std::hint::black_box(image));
            ms
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn growth() {
    println!("| tables | headers | machine code, ms | ms a table or header |\n|---|---|---|---|");
    let by_tables = TABLES.map(|tables| Size { tables, headers: 3 });
    let by_headers = HEADERS.map(|headers| Size { tables: 10, headers });
    for size in by_tables.into_iter().chain(by_headers) {
        let ms = ms(&compiled("generated.p4", &generated::program(size)));
        let parts = (size.tables + size.headers) as f64;
        println!("| {} | {} | {ms:.1} | {:.2} |", size.tables, size.headers, ms / parts);
    }
}

fn files(paths: impl Iterator<Item = String>) {
    println!("\n| program | tables | headers | machine code, ms |\n|---|---|---|---|");
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let program = compiled(&path, &text);
        let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy();
        println!("| {name} | {} | {} | {:.1} |", program.tables.len(), program.headers.len(), ms(&program));
    }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if !asked.is_empty() {
        return files(asked.into_iter());
    }
    growth();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    files(EXAMPLES.iter().map(|path| root.join(path).display().to_string()));
}
