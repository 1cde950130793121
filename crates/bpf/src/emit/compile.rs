//! Compiles a program, and again without what makes it too large.

use std::borrow::Cow;

use ir::{LocId, Program};

use super::scratch::Scratch;
use super::{Emitter, KernelCode};
use crate::layout::{MAX_SCRATCH_WORDS, RegionLayout, Unsupported};
use crate::split::{MAX_ALL_PARTS, split};
use crate::stacks::unroll;
use crate::usage::Usage;
use crate::{KernelOptions, KernelPipeline};

/// Compiles the pipeline of a validated program.
///
/// # Errors
/// [`Unsupported`].
pub fn compile(
    program: &Program,
    pipeline: &KernelPipeline,
    options: KernelOptions,
) -> Result<KernelCode, Unsupported> {
    if program.has_rows() || program.tables.values().any(|table| table.waits_for_entries()) {
        return Err(Unsupported::Elsewhere);
    }
    let attempt = |program: &Program, parts| {
        let program = &split(program, parts);
        let mut usage = Usage::new(program, pipeline);
        match compile_used(program, pipeline, options, &usage) {
            Err(Unsupported::Code(_)) if usage.moves_headers => {
                usage.moves_headers = false;
                compile_used(program, pipeline, options, &usage)
            }
            done => done,
        }
    };
    // If wide values or stacks need too much code, their packets are handed over, and not all.
    let unrolled = unroll(program);
    let mut larger = vec![(&*unrolled, MAX_ALL_PARTS), (&*unrolled, 0)];
    if matches!(unrolled, Cow::Owned(_)) {
        larger.extend([(program, MAX_ALL_PARTS), (program, 0)]);
    }
    let (program, parts) = larger.pop().expect("there are several attempts");
    for (program, parts) in larger {
        match attempt(program, parts) {
            Err(Unsupported::Code(_)) => {}
            done => return done,
        }
    }
    attempt(program, parts)
}

fn compile_used(
    program: &Program,
    pipeline: &KernelPipeline,
    options: KernelOptions,
    usage: &Usage,
) -> Result<KernelCode, Unsupported> {
    // The first emission finds the number of words that are needed.
    let trial = RegionLayout::new(program, usage, options, MAX_SCRATCH_WORDS)?;
    let mut emitter = Emitter::new(program, pipeline, usage, &trial, Scratch::new(program, usage));
    emitter.emit_all()?;
    let words = emitter.scratch_words()?;
    let scratch = emitter.scratch.again();
    let layout = RegionLayout::new(program, usage, options, words)?;
    let mut emitter = Emitter::new(program, pipeline, usage, &layout, scratch);
    emitter.emit_all()?;
    if !emitter.scratch.fits(words) {
        return Err(Unsupported::Code(LocId::from_u32(0)));
    }
    Ok(emitter.finish(layout.clone()))
}
