//! Samples the time of the parts of a packet's path.
//!
//! Instrumented code calls [`probe`] whenever a part has ended. Reading the clock each time would cost more than most
//! parts take, and would keep the processor from overlapping two parts, as it does without instrumentation. So the
//! clock is read around a few parts, chosen at random; all others are only counted. The cost of reading the clock is
//! measured beforehand ([`Sampler::calibrate`]) and subtracted. Parts during which the process was preempted are not
//! timed.
//!
//! The time of a part is then its mean time in the sample, multiplied by the number of its runs.

use std::cell::RefCell;
use std::time::Instant;

use v1model::ProbedPart;

/// Maximum number of untimed parts between two timed ones.
const MAX_SKIPPED: u64 = 16;

/// Maximum time of an uninterrupted part, in nanoseconds. During a longer one, the processor did something else.
const INTERRUPTED_NS: u64 = 50_000;

/// The measurements of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of runs.
    pub runs: u64,
    /// Number of timed runs.
    pub timed: u64,
    /// Total time of the timed runs, in nanoseconds.
    pub ns: u64,
}

/// Times parts.
#[derive(Debug, Default)]
pub struct Sampler {
    /// Measurements by kind and number, as in [`ProbedPart::number`].
    tallies: [Vec<Tally>; 3],
    /// The switch's work after the last part.
    after: Tally,
    /// Number of parts to skip before the next one is timed.
    skip: u64,
    since: Option<Instant>,
    random: u64,
}

impl Sampler {
    /// Creates a sampler for a program with `bodies` bodies and `tables` tables.
    pub fn new(bodies: usize, tables: usize) -> Sampler {
        // A plan has a handful of units.
        let tallies = [16, bodies, tables].map(|count| vec![Tally::default(); count]);
        Sampler { tallies, skip: 1, random: 1, ..Sampler::default() }
    }

    /// Returns the nanoseconds since the last mark if the clock was read there, and prepares the next mark.
    fn mark(&mut self) -> Option<u64> {
        if let Some(since) = self.since.take() {
            let ns = since.elapsed().as_nanos() as u64;
            // Xorshift (Marsaglia 2003): any sequence serves that does not correlate with the program.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.skip = 1 + self.random % MAX_SKIPPED;
            return Some(ns);
        }
        self.skip -= 1;
        if self.skip == 0 {
            self.since = Some(Instant::now());
        }
        None
    }

    /// Records the end of a part.
    pub fn ended(&mut self, part: u64) {
        let ns = self.mark();
        let tally = self.tallies.get_mut((part >> 32) as usize).and_then(|kind| kind.get_mut(part as u32 as usize));
        if let Some(tally) = tally {
            count(tally, ns);
        }
    }

    /// Records that the switch begins to work. The time before it belongs to no part.
    pub fn enter(&mut self) {
        self.mark();
    }

    /// Records that the switch has done its work.
    pub fn leave(&mut self) {
        let ns = self.mark();
        count(&mut self.after, ns);
    }

    /// Returns the measurements of a part.
    pub fn tally(&self, part: ProbedPart) -> Tally {
        let number = part.number();
        let kind = self.tallies.get((number >> 32) as usize);
        kind.and_then(|kind| kind.get(number as u32 as usize)).copied().unwrap_or_default()
    }

    /// Returns the measurements of the switch's own work around the parts: before each unit of the plan, and at the
    /// end.
    pub fn switch(&self) -> Vec<Tally> {
        self.tallies[0].iter().copied().chain([self.after]).collect()
    }

    /// Returns the measured time of an empty part, which is the cost of timing, in nanoseconds.
    pub fn calibrate() -> f64 {
        let least = (0..9).map(|_| {
            install(Sampler::new(1, 0));
            let part = ProbedPart::Body(ir::BodyId::from_u32(0));
            let call: v1model::Probe = std::hint::black_box(probe);
            for _ in 0..20_000 {
                call(part.number());
            }
            let tally = take().tally(part);
            tally.ns as f64 / tally.timed.max(1) as f64
        });
        // Disturbance only makes it longer, so the minimum counts.
        least.fold(f64::MAX, f64::min)
    }
}

fn count(tally: &mut Tally, ns: Option<u64>) {
    tally.runs += 1;
    if let Some(ns) = ns.filter(|ns| *ns < INTERRUPTED_NS) {
        tally.timed += 1;
        tally.ns += ns;
    }
}

thread_local! {
    /// The sampler of this thread. It is global, since code only has an address to call.
    static SAMPLER: RefCell<Sampler> = RefCell::new(Sampler::new(0, 0));
}

/// The function that instrumented code calls.
pub extern "C" fn probe(part: u64) {
    with(|sampler| sampler.ended(part));
}

/// Calls a function with this thread's sampler.
pub fn with(work: impl FnOnce(&mut Sampler)) {
    SAMPLER.with_borrow_mut(work);
}

/// Installs a sampler as this thread's.
pub fn install(sampler: Sampler) {
    SAMPLER.set(sampler);
}

/// Takes this thread's sampler, and leaves an empty one in its place.
pub fn take() -> Sampler {
    SAMPLER.replace(Sampler::new(0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_counted_and_each_part_is_timed_as_often() {
        let parts = [
            ProbedPart::Before(0),
            ProbedPart::Body(ir::BodyId::from_u32(1)),
            ProbedPart::Table(ir::TableId::from_u32(0)),
        ];
        let mut sampler = Sampler::new(2, 1);
        const PACKETS: u64 = 30_000;
        for _ in 0..PACKETS {
            sampler.enter();
            parts.iter().for_each(|part| sampler.ended(part.number()));
            sampler.leave();
        }
        let tallies = parts.iter().map(|part| sampler.tally(*part)).chain(sampler.switch().last().copied());
        for tally in tallies {
            assert_eq!(tally.runs, PACKETS);
            // One interval in about 9.5 is timed.
            assert!((PACKETS / 11..PACKETS / 8).contains(&tally.timed), "{tally:?}");
        }
        // Parts that do not exist are ignored.
        sampler.ended(u64::MAX);
        sampler.ended(ProbedPart::Body(ir::BodyId::from_u32(9)).number());
    }
}
