//! Times the compilation of programs to machine code.

use std::sync::Arc;
use std::time::Instant;

use ir::Program;
use v1model::{Executor, Image};

use crate::measure::median;

/// Number of compilations of each program.
const TIMES: usize = 5;

/// Returns the median milliseconds from a checked program in memory to machine code.
pub fn ms(program: &Arc<Program>) -> f64 {
    let times = (0..TIMES).map(|_| {
        let begin = Instant::now();
        let image = Image::new(Arc::clone(program), Executor::Auto).expect("a v1model program");
        let ms = begin.elapsed().as_secs_f64() * 1000.0;
        drop(std::hint::black_box(image));
        ms
    });
    median(times.collect())
}
