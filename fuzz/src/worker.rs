//! The child: makes inputs, runs them one after the other, and ends if one takes too long.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::random::Random;
use crate::round_clock::{self, RoundClock};
use crate::targets;
use crate::{FuzzOptions, Until, corpus};

/// Stack size of a round, in bytes: a thread's default. A recursion too deep for it is a finding.
const STACK_BYTES: usize = 2 << 20;
/// Exit code of a worker whose round hangs.
const HUNG: i32 = 70;

/// State that a worker's two threads share.
#[derive(Default)]
struct RoundProgress {
    /// Number of the current round.
    round: AtomicU64,
    /// Inputs that reached something new.
    kept: AtomicU64,
}

/// Runs rounds until it is time to stop. A failure ends the process.
pub fn run(options: &FuzzOptions, current: &Path) -> Result<bool> {
    let mut file = File::create(current).with_context(|| format!("cannot write {}", current.display()))?;
    let (name, seed, until) = (options.target.clone(), options.seed, options.until);
    watched(true, move |progress| {
        let mut target = targets::open(&name);
        let mut random = Random::new(seed);
        let mut write = |input: &[u8]| {
            // A file that is not flushed survives the death of a process, though not of the machine. That is enough.
            file.rewind().and_then(|()| file.write_all(input)).expect("the current input can be written");
            file.set_len(input.len() as u64).expect("the current input can be cut");
        };
        let started = Instant::now();
        let mut seen: HashSet<u64> = HashSet::new();
        let mut rounds = 0;
        for input in target.seeds().into_iter().chain(corpus::regressions(&name)) {
            progress.round.fetch_add(1, Ordering::Relaxed);
            write(&input);
            seen.extend(target.run(&input));
        }
        loop {
            progress.round.fetch_add(1, Ordering::Relaxed);
            let enough = match until {
                Until::Elapsed(time) => started.elapsed() >= time,
                Until::Rounds(most) => rounds >= most,
            };
            if enough {
                return;
            }
            rounds += 1;
            let input = target.generate(&mut random);
            write(&input);
            let reached = target.run(&input);
            if reached.iter().any(|feature| !seen.contains(feature)) {
                seen.extend(reached);
                target.keep(input);
                progress.kept.fetch_add(1, Ordering::Relaxed);
            }
        }
    })
}

/// Runs one input in this process.
pub fn replay(options: &FuzzOptions, file: &Path) -> Result<bool> {
    let input = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let name = options.target.clone();
    watched(false, move |_| {
        let reached = targets::open(&name).run(&input);
        println!("{name}: no failure; the input reached {} things", reached.len());
    })
}

/// Prints one input.
pub fn print(options: &FuzzOptions) -> Result<bool> {
    let input = targets::open(&options.target).generate(&mut Random::new(options.seed));
    std::io::stdout().write_all(&input)?;
    Ok(true)
}

/// Runs `work` on a thread of its own, ends the process if a round takes too long, and reports progress to the
/// supervisor. A panic's message has been printed when this returns false.
fn watched(reports: bool, work: impl FnOnce(Arc<RoundProgress>) + Send + 'static) -> Result<bool> {
    let progress = Arc::new(RoundProgress::default());
    let theirs = progress.clone();
    let builder = std::thread::Builder::new().name("round".to_owned()).stack_size(STACK_BYTES);
    let thread = builder.spawn(move || work(theirs)).context("cannot start a thread")?;
    let (mut clock, mut last) = (RoundClock::default(), Instant::now());
    let mut reported = Instant::now();
    while !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(5));
        let round = progress.round.load(Ordering::Relaxed);
        let now = Instant::now();
        if let Some(hang) = clock.advance(round, round_clock::is_compiling(), now - last) {
            eprintln!("hang: {hang}");
            std::process::exit(HUNG);
        }
        last = now;
        if reports && reported.elapsed() > Duration::from_millis(250) {
            report(&progress);
            reported = Instant::now();
        }
    }
    if reports {
        report(&progress);
    }
    Ok(thread.join().is_ok())
}

fn report(progress: &RoundProgress) {
    let (round, kept) = (progress.round.load(Ordering::Relaxed), progress.kept.load(Ordering::Relaxed));
    println!("rounds {} kept {kept}", round.saturating_sub(1));
}

/// Keeps `inputs` from growing without bound: an old one makes room, at random.
pub fn remember(inputs: &mut Vec<Vec<u8>>, input: Vec<u8>) {
    const MOST: usize = 2000;
    if inputs.len() < MOST {
        inputs.push(input);
    } else {
        let at = Random::new(input.len() as u64).below(MOST);
        inputs[at] = input;
    }
}

/// A mutation of one of `inputs`, with pieces of another.
pub fn mutated(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if inputs.is_empty() {
        return random.bytes(64);
    }
    let (input, other) = (random.below(inputs.len()), random.below(inputs.len()));
    crate::mutate::any(&inputs[input], &inputs[other], random)
}
