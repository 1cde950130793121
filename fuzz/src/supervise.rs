//! The parent: starts the worker, shows its progress, and turns its death into a finding.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::{FuzzOptions, Until, corpus, shrink};

/// Maximum address space of a worker, in KiB: an input that needs more is a finding.
const MEMORY_KIB: u32 = 4 << 20;

/// A failed run.
pub struct Failure {
    /// The place of the panic, or the signal. Failures with the same kind count as the same failure.
    pub kind: String,
    /// The worker's standard error.
    pub text: String,
}

impl Failure {
    fn new(status: ExitStatus, stderr: &[u8]) -> Failure {
        let text = String::from_utf8_lossy(stderr).into_owned();
        // "thread 'round' (123) panicked at crates/p4/src/lex/scan.rs:12:5:"
        // The last one: earlier ones were caught.
        let place =
            text.lines().rev().find_map(|line| line.split_once(" panicked at ").map(|(_, place)| place.to_owned()));
        let overflow = text.contains("has overflowed its stack").then(|| "stack overflow".to_owned());
        let memory = text.contains("memory allocation of").then(|| "memory exhausted".to_owned());
        let hang = text.contains("hang: ").then(|| "hang".to_owned());
        let kind = place.or(overflow).or(memory).or(hang).unwrap_or_else(|| status.to_string());
        Failure { kind, text }
    }
}

/// This program with `arguments`, under a memory limit. The shell sets the limit, so that no unsafe code is needed.
fn limited(arguments: &[&str]) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find the fuzzer's own program")?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY_KIB}; ulimit -c 0; exec \"$@\""), "sh"]);
    command.arg(program).args(arguments).stdin(Stdio::null()).current_dir(corpus::root());
    Ok(command)
}

/// Runs one input in a child. `None` if it went well.
pub fn run_once(target: &str, input: &Path) -> Result<Option<Failure>> {
    let input = fs::canonicalize(input).with_context(|| format!("cannot find {}", input.display()))?;
    let path = input.to_str().context("the path is not UTF-8")?;
    let output = limited(&[target, "--replay", path])?.output().context("cannot start the fuzzer's child")?;
    Ok((!output.status.success()).then(|| Failure::new(output.status, &output.stderr)))
}

/// Runs rounds in a child. False if an input failed.
pub fn run(options: &FuzzOptions) -> Result<bool> {
    let target = options.target.as_str();
    let artifacts = corpus::root().join("fuzz/artifacts");
    fs::create_dir_all(&artifacts).with_context(|| format!("cannot make {}", artifacts.display()))?;
    let current = artifacts.join(format!("current-{target}-{}", std::process::id()));
    let current_text = current.to_str().context("the path is not UTF-8")?;

    let seed = options.seed.to_string();
    let (until, amount) = match options.until {
        Until::Elapsed(time) => ("--seconds", time.as_secs()),
        Until::Rounds(rounds) => ("--rounds", rounds),
    };
    let arguments = [target, "--work", current_text, "--seed", &seed, until, &amount.to_string()];
    let started = Instant::now();
    let mut child = limited(&arguments)?
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the fuzzer's child")?;
    let mut stderr = child.stderr.take().expect("standard error is piped");
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        // A worker's output is short. If it is not, the beginning is enough, and the rest is drained.
        let _ = stderr.by_ref().take(1 << 20).read_to_end(&mut text);
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        text
    });

    let terminal = std::io::stdout().is_terminal();
    let mut rounds = 0u64;
    let mut kept = String::new();
    let stdout = child.stdout.take().expect("standard output is piped");
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        // "rounds 1200 kept 31"
        let mut words = line.split_whitespace().skip(1).step_by(2);
        rounds = words.next().and_then(|word| word.parse().ok()).unwrap_or(rounds);
        kept = words.next().unwrap_or_default().to_owned();
        if terminal {
            let seconds = started.elapsed().as_secs();
            print!("\r\x1b[K{target}: {rounds} rounds in {seconds} s, {kept} inputs kept");
            let _ = std::io::stdout().flush();
        }
    }
    if terminal {
        print!("\r\x1b[K");
    }
    let status = child.wait().context("cannot wait for the fuzzer's child")?;
    let errors = errors.join().unwrap_or_default();
    let seconds = started.elapsed().as_secs_f64();
    let rate = rounds as f64 / seconds.max(0.001);
    if status.success() {
        let _ = fs::remove_file(&current);
        println!(
            "{target}: no failure in {rounds} rounds, {seconds:.1} s, {rate:.0} rounds/s, {kept} inputs kept, seed {seed}"
        );
        return Ok(true);
    }
    let failure = Failure::new(status, &errors);
    println!("{}", failure.text.trim_end());
    println!("{target}: FAILED ({}) after {rounds} rounds, {seconds:.1} s, seed {seed}", failure.kind);
    let input = fs::read(&current).with_context(|| format!("the worker left no {}", current.display()))?;
    let path = keep(target, &input, &failure, &current)?;
    let _ = fs::remove_file(&current);
    println!("replay it with\n  cargo run --profile fuzz -p fuzz -- {target} --replay {}", path.display());
    Ok(false)
}

/// Minimizes the input, writes it under a name of its own, and prints the path.
fn keep(target: &str, input: &[u8], failure: &Failure, scratch: &Path) -> Result<PathBuf> {
    let alone = if input.is_empty() { None } else { run_once(target, scratch)? };
    let small = match &alone {
        _ if input.is_empty() => Vec::new(),
        Some(alone) if alone.kind == failure.kind => {
            println!("making the input of {} bytes smaller", input.len());
            shrink::shrink(target, input, failure, scratch)?
        }
        // It takes more than this input: the earlier rounds left something behind, or the machine was slow.
        _ => {
            println!("the input alone does not fail in the same way; run the same seed again");
            input.to_vec()
        }
    };
    let mut hasher = DefaultHasher::new();
    small.hash(&mut hasher);
    let path = corpus::root().join(format!("fuzz/artifacts/{target}-{:016x}", hasher.finish()));
    fs::write(&path, &small).with_context(|| format!("cannot write {}", path.display()))?;
    if small.len() < 2000 {
        println!("{}", String::from_utf8_lossy(&small).trim_end());
    }
    Ok(path.strip_prefix(corpus::root()).map(Path::to_path_buf).unwrap_or(path))
}
