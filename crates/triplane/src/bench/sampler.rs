//! How long parts of a packet's way take.
//!
//! Code that is made to be measured calls [`probe`] whenever a part has ended. Reading the clock each time would cost
//! more than most parts take, and would keep the processor from working on two parts at once, as it does when nobody
//! looks. So the clock is read around few parts, chosen at random; all others are only counted. What reading it costs
//! itself is measured beforehand ([`Sampler::calibrate`]) and taken off. Parts during which the processor was taken away
//! are not timed.
//!
//! The time of a part is then its mean time in the sample, times how often it ran.

use std::cell::RefCell;
use std::time::Instant;

use v1model::ProbedPart;

/// Between two parts that are timed, up to so many are not.
const MOST_SKIPPED: u64 = 16;

/// A part that seems to take longer was interrupted: the processor did something else meanwhile.
const INTERRUPTED_NS: u64 = 50_000;

/// What is known of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it ran.
    pub runs: u64,
    /// How often it was timed.
    pub timed: u64,
    /// How long it took then, in all.
    pub ns: u64,
}

/// Times parts.
#[derive(Debug, Default)]
pub struct Sampler {
    /// By kind and number, as in [`ProbedPart::number`].
    tallies: [Vec<Tally>; 3],
    /// What the switch did after the last part.
    after: Tally,
    /// Parts to pass over before the next one is timed.
    skip: u64,
    since: Option<Instant>,
    random: u64,
}

impl Sampler {
    /// A sampler for a program with so many bodies and tables.
    pub fn new(bodies: usize, tables: usize) -> Sampler {
        // A plan has a handful of units.
        let tallies = [16, bodies, tables].map(|count| vec![Tally::default(); count]);
        Sampler { tallies, skip: 1, random: 1, ..Sampler::default() }
    }

    /// Whether the clock was read at the last mark; gets ready for the next one.
    fn mark(&mut self) -> Option<u64> {
        if let Some(since) = self.since.take() {
            let ns = since.elapsed().as_nanos() as u64;
            // Xorshift (Marsaglia 2003): any numbers do that do not keep step with the program.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.skip = 1 + self.random % MOST_SKIPPED;
            return Some(ns);
        }
        self.skip -= 1;
        if self.skip == 0 {
            self.since = Some(Instant::now());
        }
        None
    }

    /// A part has ended.
    pub fn ended(&mut self, part: u64) {
        let ns = self.mark();
        let tally = self.tallies.get_mut((part >> 32) as usize).and_then(|kind| kind.get_mut(part as u32 as usize));
        if let Some(tally) = tally {
            count(tally, ns);
        }
    }

    /// The switch begins to work. What was before is nobody's.
    pub fn enter(&mut self) {
        self.mark();
    }

    /// The switch has done its work.
    pub fn leave(&mut self) {
        let ns = self.mark();
        count(&mut self.after, ns);
    }

    /// What is known of a part.
    pub fn tally(&self, part: ProbedPart) -> Tally {
        let number = part.number();
        let kind = self.tallies.get((number >> 32) as usize);
        kind.and_then(|kind| kind.get(number as u32 as usize)).copied().unwrap_or_default()
    }

    /// What is known of the switch's own work around the parts: before each unit of the plan, and at the end.
    pub fn switch(&self) -> Vec<Tally> {
        self.tallies[0].iter().copied().chain([self.after]).collect()
    }

    /// What timing a part costs that takes no time, in nanoseconds.
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
        // Whatever disturbs it makes it longer.
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
    /// The sampler of this thread: code can only be given an address to call.
    static SAMPLER: RefCell<Sampler> = RefCell::new(Sampler::new(0, 0));
}

/// What code calls that is made to be measured.
pub extern "C" fn probe(part: u64) {
    with(|sampler| sampler.ended(part));
}

/// Does something with this thread's sampler.
pub fn with(work: impl FnOnce(&mut Sampler)) {
    SAMPLER.with_borrow_mut(work);
}

/// Makes a sampler this thread's.
pub fn install(sampler: Sampler) {
    SAMPLER.set(sampler);
}

/// This thread's sampler; another takes its place.
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
        // Parts that cannot be are no concern.
        sampler.ended(u64::MAX);
        sampler.ended(ProbedPart::Body(ir::BodyId::from_u32(9)).number());
    }
}
