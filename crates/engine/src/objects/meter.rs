//! Implements meters: two rates, three colours, colour-blind (RFC 2698).
//!
//! Two token buckets. P has the peak rate (PIR) and the peak burst (PBS), C the committed ones (CIR, CBS); both
//! begin full. A packet of B units (bytes, or 1) is *red* if P holds less than B; else *yellow* if C holds less than
//! B, and takes B from P; else *green*, and takes B from both.
//!
//! Tokens are counted in units of 10^-9, so a rate in units per second times a time in nanoseconds is an integer
//! and nothing is lost to rounding, however often the meter is executed.

use ir::Unit;

use super::EntryError;
use super::metering::meter_word::{HAS_STARTED, IS_CONFIGURED, IS_NARROW};

/// The colour of a packet; the numbers are those that programs see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Within the committed rate.
    #[default]
    Green = 0,
    /// Within the peak rate.
    Yellow = 1,
    /// Beyond the peak rate.
    Red = 2,
}

/// Rates in units (bytes or packets) per second, bursts in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate.
    pub cir: u64,
    /// Committed burst size.
    pub cbs: u64,
    /// Peak information rate; at least `cir`.
    pub pir: u64,
    /// Peak burst size.
    pub pbs: u64,
}

/// Number of words of a meter's state.
pub(crate) const WORDS: usize = 10;

const NANO: u128 = 1_000_000_000;

/// Returns the times in nanoseconds after which an empty committed and an empty peak bucket are full: `u64::MAX` if
/// that takes longer, or a bucket is never full.
pub(crate) fn fill_times(config: MeterConfig) -> [u64; 2] {
    let MeterConfig { cir, cbs, pir, pbs } = config;
    [(cir, cbs), (pir, pbs)].map(|(rate, burst)| {
        let time = if rate == 0 { u128::MAX } else { (u128::from(burst) * NANO).div_ceil(u128::from(rate)) };
        u64::try_from(time).unwrap_or(u64::MAX)
    })
}

#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    rate: u64,
    size: u128,
    tokens: u128,
}

impl Bucket {
    fn full(rate: u64, burst: u64) -> Self {
        let size = u128::from(burst) * NANO;
        Bucket { rate, size, tokens: size }
    }

    fn fill(&mut self, elapsed_ns: u64) {
        // At most 2^128 - 2^65 + 1 + 2^94, which the saturation covers.
        let added = u128::from(self.rate) * u128::from(elapsed_ns);
        self.tokens = self.tokens.saturating_add(added).min(self.size);
    }

    /// Fills the bucket and takes these tokens, or all, at a constant rate in this time.
    fn fill_and_drain(&mut self, elapsed_ns: u64, tokens: u128) {
        let added = u128::from(self.rate) * u128::from(elapsed_ns);
        self.tokens = self.tokens.saturating_add(added).saturating_sub(tokens).min(self.size);
    }
}

/// One meter. Without a configuration every packet is green.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meter {
    buckets: Option<Buckets>,
}

#[derive(Clone, Debug, PartialEq)]
struct Buckets {
    config: MeterConfig,
    committed: Bucket,
    peak: Bucket,
    filled_ns: u64,
    started: bool,
}

impl Buckets {
    /// Returns the time in nanoseconds since the last call; 0 at the first one, or if the clock went back.
    fn elapse(&mut self, now_ns: u64) -> u64 {
        let elapsed_ns = if self.started { now_ns.saturating_sub(self.filled_ns) } else { 0 };
        self.filled_ns = if self.started { self.filled_ns.max(now_ns) } else { now_ns };
        self.started = true;
        elapsed_ns
    }
}

impl Meter {
    /// Returns the configuration.
    pub fn config(&self) -> Option<MeterConfig> {
        self.buckets.as_ref().map(|buckets| buckets.config)
    }

    /// Sets or (`None`) removes the configuration. The buckets are full afterwards, and their time starts with the next
    /// packet.
    pub fn configure(&mut self, config: Option<MeterConfig>) -> Result<(), EntryError> {
        if config.is_some_and(|config| config.pir < config.cir) {
            return Err(EntryError::PeakBelowCommitted);
        }
        self.buckets = config.map(|config| Buckets {
            config,
            committed: Bucket::full(config.cir, config.cbs),
            peak: Bucket::full(config.pir, config.pbs),
            filled_ns: 0,
            started: false,
        });
        Ok(())
    }

    /// Returns the meter as words, for memory that several threads share.
    pub(crate) fn to_words(&self) -> [u64; WORDS] {
        let Some(buckets) = &self.buckets else { return [0; WORDS] };
        let MeterConfig { cir, cbs, pir, pbs } = buckets.config;
        let is_narrow = buckets.committed.size.max(buckets.peak.size) < 1 << 63;
        let flags =
            IS_CONFIGURED | if buckets.started { HAS_STARTED } else { 0 } | if is_narrow { IS_NARROW } else { 0 };
        let (committed, peak) = (buckets.committed.tokens, buckets.peak.tokens);
        let halves = [committed as u64, (committed >> 64) as u64, peak as u64, (peak >> 64) as u64];
        [flags, cir, cbs, pir, pbs, halves[0], halves[1], halves[2], halves[3], buckets.filled_ns]
    }

    /// Restores a meter from the words of [`Meter::to_words`].
    pub(crate) fn from_words(words: [u64; WORDS]) -> Self {
        let [flags, cir, cbs, pir, pbs, committed_low, committed_high, peak_low, peak_high, filled_ns] = words;
        if flags == 0 {
            return Meter::default();
        }
        let tokens = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
        let committed = Bucket { tokens: tokens(committed_low, committed_high), ..Bucket::full(cir, cbs) };
        let peak = Bucket { tokens: tokens(peak_low, peak_high), ..Bucket::full(pir, pbs) };
        let config = MeterConfig { cir, cbs, pir, pbs };
        Meter { buckets: Some(Buckets { config, committed, peak, filled_ns, started: flags & HAS_STARTED != 0 }) }
    }

    /// Takes the tokens of `bytes` bytes that passed since the last call, whatever their colours, at a constant rate in
    /// that time. With more bytes than the buckets had room for, they are empty.
    pub fn drain(&mut self, bytes: u64, now_ns: u64) {
        let Some(buckets) = &mut self.buckets else { return };
        let (elapsed_ns, cost) = (buckets.elapse(now_ns), u128::from(bytes) * NANO);
        buckets.committed.fill_and_drain(elapsed_ns, cost);
        buckets.peak.fill_and_drain(elapsed_ns, cost);
    }

    /// Meters a packet of `bytes` bytes. A clock that goes back counts as standing still.
    pub fn execute(&mut self, unit: Unit, bytes: u64, now_ns: u64) -> Colour {
        let Some(buckets) = &mut self.buckets else { return Colour::Green };
        let elapsed_ns = buckets.elapse(now_ns);
        buckets.committed.fill(elapsed_ns);
        buckets.peak.fill(elapsed_ns);
        let units = match unit {
            Unit::Packets => 1,
            Unit::Bytes | Unit::PacketsAndBytes => bytes,
        };
        let cost = u128::from(units) * NANO;
        if buckets.peak.tokens < cost {
            return Colour::Red;
        }
        buckets.peak.tokens -= cost;
        if buckets.committed.tokens < cost {
            return Colour::Yellow;
        }
        buckets.committed.tokens -= cost;
        Colour::Green
    }
}

#[cfg(test)]
mod tests {
    use super::Colour::*;
    use super::*;

    fn meter(cir: u64, cbs: u64, pir: u64, pbs: u64) -> Meter {
        let mut meter = Meter::default();
        meter.configure(Some(MeterConfig { cir, cbs, pir, pbs })).unwrap();
        meter
    }

    #[test]
    fn bytes_by_hand() {
        // 1000 B/s committed with 1500 B of burst, 2000 B/s peak with 3000 B; 1000 B packets.
        let mut meter = meter(1000, 1500, 2000, 3000);
        let mut at = |now_ms: u64| meter.execute(Unit::Bytes, 1000, now_ms * 1_000_000);
        assert_eq!(at(5000), Green); // C 500, P 2000
        assert_eq!(at(5000), Yellow); // C 500, P 1000
        assert_eq!(at(5000), Yellow); // C 500, P 0
        assert_eq!(at(5000), Red);
        assert_eq!(at(5250), Red); // C 750, P 500
        assert_eq!(at(5500), Green); // C 1000 - 1000, P 1000 - 1000
        assert_eq!(at(5999), Red); // C 499, P 998
        assert_eq!(at(6000), Yellow); // C 500, P 1000 - 1000
        assert_eq!(at(60000), Green); // full again
        assert_eq!(at(60000), Yellow); // C 500 of 1500
    }

    #[test]
    fn words_keep_everything() {
        assert_eq!(Meter::from_words(Meter::default().to_words()), Meter::default());
        let mut meter = meter(u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX - 3);
        assert_eq!(Meter::from_words(meter.to_words()), meter);
        meter.execute(Unit::Bytes, 12345, 678);
        assert_eq!(Meter::from_words(meter.to_words()), meter);
    }

    #[test]
    fn packets_by_hand() {
        let mut meter = meter(1, 1, 2, 2);
        let mut at = |now_ms: u64| meter.execute(Unit::Packets, 9999, now_ms * 1_000_000);
        assert_eq!([at(0), at(0), at(0)], [Green, Yellow, Red]);
        assert_eq!([at(499), at(500), at(500)], [Red, Yellow, Red]); // C 0.5, P 1 at 500
        assert_eq!([at(1000), at(1000)], [Green, Red]); // C 1, P 1
    }

    #[test]
    fn asking_often_loses_nothing() {
        let mut meter = meter(1, 1, 1, 1);
        assert_eq!(meter.execute(Unit::Packets, 0, 0), Green);
        for now_ns in 1..1000 {
            assert_eq!(meter.execute(Unit::Packets, 0, now_ns * 1_000_000), Red);
        }
        assert_eq!(meter.execute(Unit::Packets, 0, 1_000_000_000), Green);
    }

    #[test]
    fn other_traffic_takes_tokens_at_a_constant_rate() {
        let mut meter = meter(1_000_000, 1000, 1_000_000, 1000);
        meter.drain(0, 0);
        // A millisecond fills 1,000 bytes: as many may pass, in whatever packets, without a trace.
        meter.drain(1000, 1_000_000);
        assert_eq!(meter.execute(Unit::Bytes, 1000, 1_000_000), Green);
        // 1,500 bytes in the next one leave the bucket empty, and no debt.
        meter.drain(1500, 2_000_000);
        assert_eq!(meter.execute(Unit::Bytes, 1, 2_000_000), Red);
        assert_eq!(meter.execute(Unit::Bytes, 500, 2_500_000), Green);
        meter.drain(200, 2_900_000);
        assert_eq!(meter.execute(Unit::Bytes, 201, 2_900_000), Red);
        assert_eq!(meter.execute(Unit::Bytes, 200, 2_900_000), Green);
        meter.drain(u64::MAX, u64::MAX);
        assert_eq!(meter.execute(Unit::Bytes, 1, u64::MAX), Red);
    }

    #[test]
    fn unconfigured_is_green_and_extremes_do_not_overflow() {
        assert_eq!(Meter::default().execute(Unit::Bytes, u64::MAX, 0), Green);
        let mut meter = meter(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(meter.execute(Unit::Bytes, u64::MAX, 0), Green);
        assert_eq!(meter.execute(Unit::Bytes, u64::MAX, 0), Red);
        assert_eq!(meter.execute(Unit::Bytes, u64::MAX, u64::MAX), Green);
        assert_eq!(meter.execute(Unit::Bytes, 1, 5), Red);
        let low = MeterConfig { cir: 2, cbs: 1, pir: 1, pbs: 1 };
        assert_eq!(meter.configure(Some(low)), Err(EntryError::PeakBelowCommitted));
    }
}
