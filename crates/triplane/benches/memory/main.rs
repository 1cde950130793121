//! Memory per table entry by kind of table, in the switch and in its P4Runtime server, and of loading an entries file.
//!
//! Run `cargo bench -p triplane --bench memory`. After `--`, `entries=N` sets the number of entries (100000 and
//! 1000000), and `file` leaves out the kinds of tables. Bytes are those that are requested from the allocator. With
//! `bmv2=PATH`, a `simple_switch_grpc`, the same tables are measured there: see [`bmv2`].

mod bmv2;
mod fill;

use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use diagnostics::{Diagnostics, FileId};
use entries_file::StreamCheck;
use testing::allocations::{CountingAllocator, measure};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    let given = std::env::args().find_map(|word| word.strip_prefix("entries=").map(str::to_owned));
    let counts = match given {
        Some(number) => vec![number.parse().expect("entries= takes a number")],
        None => vec![100_000, 1_000_000],
    };
    let compiled = fill::program();
    if !std::env::args().any(|word| word == "file") {
        print_tables(&compiled, &counts);
    }
    println!("IPv4 routes from an entries file");
    for count in &counts {
        load(&compiled, *count);
    }
}

fn print_tables(compiled: &compiler::CompiledProgram, counts: &[u64]) {
    println!("bytes an entry");
    let bmv2 = bmv2::Bmv2::of_arguments();
    let last = if bmv2.is_some() { "  BMv2, resident" } else { "" };
    println!(
        "{:<26}{:>9} {:>8}{:>13}{:>12}{:>8}{last}",
        "table", "entries", "switch", "second copy", "P4Runtime", "all"
    );
    for count in counts {
        for kind in &fill::KINDS {
            let memory = fill::measure_table(compiled, kind, *count);
            let (switch, second, mirror) = (memory.switch, memory.second_copy, memory.mirror);
            let all = switch + second + mirror;
            print!("{:<26}{count:>9} {switch:>8.1}{second:>13.1}{mirror:>12.1}{all:>8.1}", kind.kind);
            match bmv2.as_ref().map(|bmv2| bmv2.bytes_an_entry(compiled, kind, *count)) {
                None => println!(),
                Some(Ok(bytes)) => println!("{bytes:>16.1}"),
                Some(Err(sentence)) => println!("  {sentence}"),
            }
        }
    }
    println!();
}

fn load(compiled: &compiler::CompiledProgram, count: u64) {
    let path = std::env::temp_dir().join(format!("triplane-memory-{}.json", std::process::id()));
    let bytes = {
        let text = fill::routes_file(count);
        File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).expect("the file is written");
        text.len()
    };
    let mut switch = fill::new_switch(compiled);
    let mut diagnostics = Diagnostics::new();
    let begin = Instant::now();
    let mut checked = begin;
    let ((), memory) = measure(|| {
        let input = File::open(&path).expect("the file is there");
        let file = FileId(0);
        match entries_file::check_stream(Box::new(input), file, &compiled.ir, 510, &mut diagnostics)
            .expect("it can be read")
        {
            StreamCheck::Entries(stream) => {
                checked = Instant::now();
                stream.apply(&mut switch, &mut diagnostics);
            }
            _ => panic!("the file is right"),
        }
    });
    let (seconds, first) = (begin.elapsed().as_secs_f64(), (checked - begin).as_secs_f64());
    let _ = std::fs::remove_file(&path);
    assert!(diagnostics.is_empty(), "the file is right");
    println!(
        "{count:>9} routes, {:.0} MB: {seconds:.2} s ({first:.2} to check), {:.1} bytes a route stay, peak {:.2} times as much",
        bytes as f64 / 1e6,
        memory.kept as f64 / count as f64,
        memory.peak as f64 / memory.kept as f64,
    );
}
