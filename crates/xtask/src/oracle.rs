//! Runs `cargo xtask oracle`: random programs through the reference evaluator, the interpreter and machine code.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use oracle::Verdict;
use v1model::V1Model;

pub const HELP: &str = "\
Usage: cargo xtask oracle [--programs N] [--seed S] [--machine-code PERCENT] [--threads N]
       cargo xtask oracle --show SEED
       cargo xtask oracle --scripts | --p4c DIR

Generates programs and runs each with random entries and packets on the reference evaluator, the interpreter and, for
some of the programs, as machine code. A program on which they disagree is shrunk and printed with its packet.

  --programs N            Number of programs (2000).
  --seed S                Seed of the first program (1); the others follow.
  --machine-code PERCENT  Share of the programs that also run as machine code (25).
  --threads N             Number of threads (one per core).
  --no-shrink             Print failing programs as they are.
  --show SEED             Print the program with this seed and its verdict.
  --scripts               Run the project's packet tests on the reference evaluator instead: every packet must have
                          the same effects as in the switch.
  --p4c DIR               The same with the packet tests in a checkout of https://github.com/p4lang/p4c.
";

/// Settings of a run.
struct OracleSettings {
    programs: u64,
    seed: u64,
    machine_code: u64,
    threads: usize,
    shrink: bool,
}

/// Sums over the programs of a run.
#[derive(Default)]
struct Summary {
    agree: u64,
    packets: u64,
    unspecified: u64,
    refused: BTreeMap<String, (u64, u64)>,
    unsupported: BTreeMap<String, u64>,
    differ: Vec<(u64, String)>,
}

/// Runs the programs. `Ok(false)` if one differs.
pub fn run(arguments: &[String]) -> Result<bool> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut request = OracleSettings { programs: 2000, seed: 1, machine_code: 25, threads, shrink: true };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64> {
            let value = arguments.next().with_context(|| format!("`{argument}` requires a value"))?;
            value.parse().with_context(|| format!("`{value}` is not a number"))
        };
        match argument.as_str() {
            "--programs" => request.programs = number()?,
            "--seed" => request.seed = number()?,
            "--machine-code" => request.machine_code = number()?,
            "--threads" => request.threads = number()?.max(1) as usize,
            "--no-shrink" => request.shrink = false,
            "--show" => return Ok(show(number()?)),
            "--scripts" => return scripts(&crate::root().join("testdata/stf"), &[]),
            "--p4c" => {
                let folder = PathBuf::from(arguments.next().context("`--p4c` requires a value")?);
                return scripts(&folder.join("testdata/p4_16_samples"), &[folder.join("p4include")]);
            }
            other => bail!("unknown option `{other}`\n\n{HELP}"),
        }
    }
    Ok(compare_all(&request))
}

fn show(seed: u64) -> bool {
    let text = oracle::generate(seed);
    for (number, line) in text.lines().enumerate() {
        println!("{:>4} {line}", number + 1);
    }
    let verdict = oracle::compare(&text, seed, true);
    match &verdict {
        Verdict::Agrees { packets, .. } => println!("all agree on {packets} packets"),
        Verdict::Refused(why) => println!("rejected: {why}"),
        Verdict::Unsupported(what) => println!("not modelled: {what}"),
        Verdict::Differs(difference) => println!("{difference}"),
    }
    !matches!(verdict, Verdict::Differs(_))
}

fn compare_all(request: &OracleSettings) -> bool {
    let begin = Instant::now();
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for _ in 0..request.threads {
            let worker = std::thread::Builder::new().stack_size(64 << 20);
            let run = || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= request.programs {
                        return;
                    }
                    one(request, request.seed + number, &summary);
                    if (number + 1).is_multiple_of(500) {
                        eprintln!("{} programs, {:.0} s", number + 1, begin.elapsed().as_secs_f64());
                    }
                }
            };
            worker.spawn_scoped(scope, run).expect("a thread");
        }
    });
    let _ = std::panic::take_hook();
    let mut summary = summary.into_inner().unwrap_or_default();
    summary.differ.sort();
    for (seed, text) in &summary.differ {
        println!("---- seed {seed}\n{text}");
    }
    for (why, (count, seed)) in &summary.refused {
        println!("rejected {count:>5}  {why} (seed {seed})");
    }
    for (what, count) in &summary.unsupported {
        println!("not modelled {count:>5}  {what}");
    }
    let refused: u64 = summary.refused.values().map(|(count, _)| count).sum();
    println!(
        "{} programs: {} agree on {} packets ({} up to a packet with an undefined result), {refused} rejected, {} \
         differ; {:.0} s",
        request.programs,
        summary.agree,
        summary.packets,
        summary.unspecified,
        summary.differ.len(),
        begin.elapsed().as_secs_f64(),
    );
    summary.differ.is_empty()
}

fn one(request: &OracleSettings, seed: u64, summary: &Mutex<Summary>) {
    let text = oracle::generate(seed);
    let machine_code = seed % 100 < request.machine_code;
    let verdict = oracle::compare(&text, seed, machine_code);
    let failing = match &verdict {
        Verdict::Differs(_) if request.shrink => {
            let small = oracle::shrink(&text, seed, machine_code);
            let verdict = oracle::compare(&small, seed, machine_code);
            Some(format!("{small}\n{verdict:?}").replace("\\n", "\n"))
        }
        Verdict::Differs(difference) => Some(difference.clone()),
        _ => None,
    };
    let Ok(mut summary) = summary.lock() else { return };
    match verdict {
        Verdict::Agrees { packets, unspecified } => {
            summary.agree += 1;
            summary.packets += packets;
            summary.unspecified += u64::from(unspecified);
        }
        Verdict::Refused(why) => {
            let code = why.split('(').next().unwrap_or_default().trim().to_owned();
            summary.refused.entry(code).or_insert((0, seed)).0 += 1;
        }
        Verdict::Unsupported(what) => *summary.unsupported.entry(what).or_default() += 1,
        Verdict::Differs(_) => {}
    }
    if let Some(text) = failing {
        summary.differ.push((seed, text));
    }
}

/// Runs every packet test of a folder. `Ok(false)` if one differs.
fn scripts(folder: &Path, include_dirs: &[PathBuf]) -> Result<bool> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "stf") {
            paths.push(path);
        }
    }
    paths.sort();
    let (mut agree, mut packets, mut partly, mut skipped, mut differ) = (0, 0, 0, 0, 0);
    for path in &paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let verdict = catch_unwind(AssertUnwindSafe(|| script(path, folder, include_dirs)));
        match verdict.unwrap_or_else(|_| Verdict::Differs("panic".to_owned())) {
            Verdict::Agrees { packets: compared, unspecified } => {
                agree += 1;
                packets += compared;
                partly += u64::from(unspecified);
            }
            Verdict::Refused(why) | Verdict::Unsupported(why) => {
                println!("skipped  {name}: {why}");
                skipped += 1;
            }
            Verdict::Differs(difference) => {
                println!("differs  {name}: {difference}");
                differ += 1;
            }
        }
    }
    println!(
        "{} packet tests: {agree} agree on {packets} packets ({partly} up to a packet with an undefined result), \
         {skipped} skipped, {differ} differ",
        paths.len()
    );
    Ok(differ == 0)
}

fn script(path: &Path, folder: &Path, include_dirs: &[PathBuf]) -> Verdict {
    let source = path.with_extension("p4");
    let read = |path: &Path| std::fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
    let (Ok(text), Ok(commands)) = (read(&source), read(path)) else {
        return Verdict::Refused("a file is missing".to_owned());
    };
    let include_dirs: Vec<PathBuf> = [folder.to_owned()].into_iter().chain(include_dirs.iter().cloned()).collect();
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let name = source.display().to_string();
    let source = Source { include_dirs: &include_dirs, ..Source::new(&name, &text) };
    let typed = compiler::check(&source, &V1Model, &mut map, &mut diagnostics);
    let lowered = compiler::lower(&source, &V1Model, &mut map, &mut diagnostics);
    let (Some(typed), Some(lowered)) = (typed, lowered) else {
        return Verdict::Refused("the compiler rejects the program".to_owned());
    };
    let program = Arc::new(lowered);
    let file = map.add(&path.display().to_string(), commands);
    let script = stf::parse(&map, file, &mut diagnostics);
    match script.and_then(|script| stf::bind(&script, &program, &mut diagnostics)) {
        Some(test) => oracle::run_script(&typed, &program, &test),
        None => Verdict::Refused("the script does not match the program".to_owned()),
    }
}
