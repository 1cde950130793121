//! Random programs, entries and packets through both executors. `JIT_FUZZ_FROM` and `JIT_FUZZ_COUNT` choose the seeds
//! of a longer run; a difference is minimised before it is reported.

#[path = "../../../ir/tests/it/generate/mod.rs"]
#[allow(dead_code, reason = "made for the tests of the IR")]
mod generate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::both::{self, RandomValues};
use ir::{BlockId, BodyId, Program, Terminator};

fn packet(rng: &mut RandomValues) -> Vec<u8> {
    let most = [0, 20, 100, 300][rng.below(4) as usize];
    let length = rng.below(1 + most);
    let kind = rng.below(4);
    (0..length).map(|_| if kind == 0 { [0, 0xff, 1][rng.below(3) as usize] } else { rng.next() as u8 }).collect()
}

fn differs(program: &Program, seed: u64) -> Option<String> {
    let program = Arc::new(program.clone());
    for fused in [false, true] {
        let outcome = catch_unwind(AssertUnwindSafe(|| both::run(&program, seed, fused, 12, &mut packet)));
        match outcome {
            Ok(None) => {}
            Ok(Some(difference)) => return Some(format!("fused {fused}: {difference}")),
            Err(_) => return Some(format!("fused {fused}: panic")),
        }
    }
    match catch_unwind(AssertUnwindSafe(|| both::run_batches(&program, seed, 12, &mut packet))) {
        Ok(difference) => difference,
        Err(_) => Some("in batches: panic".to_owned()),
    }
}

/// Removes everything that is not needed for a difference.
fn shrink(mut program: Program, seed: u64) -> (Program, String) {
    let mut why = differs(&program, seed).expect("there was a difference");
    let attempt = |candidate: Program, program: &mut Program, why: &mut String| {
        if ir::validate(&candidate).is_err() {
            return false;
        }
        match differs(&candidate, seed) {
            Some(still) => {
                (*program, *why) = (candidate, still);
                true
            }
            None => false,
        }
    };
    loop {
        let mut progress = false;
        let bodies: Vec<BodyId> = program.bodies.keys().collect();
        for body in bodies {
            let mut at = 0;
            while at < program.bodies[body].blocks.len() {
                let block = BlockId::from_u32(at as u32);
                let mut candidate = program.clone();
                let end = match candidate.bodies[body].kind {
                    ir::BodyKind::Action | ir::BodyKind::Control | ir::BodyKind::Parser => Terminator::Return,
                };
                if candidate.bodies[body].blocks[block].terminator != end {
                    // The later blocks are removed as well, so that all blocks stay reachable.
                    candidate.bodies[body].blocks[block].terminator = end;
                    let kept: Vec<_> = candidate.bodies[body].blocks.values().take(at + 1).cloned().collect();
                    candidate.bodies[body].blocks = kept.into_iter().collect();
                    progress |= attempt(candidate, &mut program, &mut why);
                }
                let mut instr = 0;
                while at < program.bodies[body].blocks.len() && instr < program.bodies[body].blocks[block].instrs.len()
                {
                    let mut candidate = program.clone();
                    candidate.bodies[body].blocks[block].instrs.remove(instr);
                    if attempt(candidate, &mut program, &mut why) {
                        progress = true;
                    } else {
                        instr += 1;
                    }
                }
                at += 1;
            }
        }
        for table in program.tables.keys().collect::<Vec<_>>() {
            if !program.tables[table].entries.is_empty() {
                let mut candidate = program.clone();
                candidate.tables[table].entries.clear();
                progress |= attempt(candidate, &mut program, &mut why);
            }
        }
        if !progress {
            return (program, why);
        }
    }
}

#[test]
fn generated_programs_agree() {
    let (from, count) = (testing::number("JIT_FUZZ_FROM", 0u64), testing::number("JIT_FUZZ_COUNT", 60u64));
    for seed in from..from + count {
        let program = generate::program(seed);
        if differs(&program, seed).is_some() {
            let (small, why) = shrink(program, seed);
            panic!("seed {seed}: {why}\n{small}");
        }
    }
}
