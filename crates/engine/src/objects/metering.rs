//! Executes meters that several workers share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::{MutexGuard, OnceLock, PoisonError, RwLock};

use ir::Unit;

use super::exclusive;
use super::meter::{WORDS, fill_times};
use super::paged::Paged;
use super::register_words::{PlacedWords, SharedWords};
use super::shared::Locks;
use super::{Colour, EntryError, Meter, MeterConfig};

/// Words of a meter in memory that others use, too: see [`Objects::share_meter`](super::Objects::share_meter).
pub mod meter_word {
    use crate::objects::meter::WORDS;

    /// 1 while someone reads or writes the meter, else 0.
    pub const LOCK: usize = 0;
    /// Generation of the entry (direct meters), or number of fills of the array at that time (others).
    pub const ROUND: usize = 1;
    /// 0 without a configuration; else [`IS_CONFIGURED`], [`HAS_STARTED`] and [`IS_NARROW`].
    pub const FLAGS: usize = 2;
    /// Committed rate in units per second, and committed burst in units.
    pub const COMMITTED: usize = 3;
    /// Peak rate in units per second, and peak burst in units.
    pub const PEAK: usize = 5;
    /// Tokens of the committed bucket in units of 10^-9: the lower half, and the upper one.
    pub const COMMITTED_TOKENS: usize = 7;
    /// Tokens of the peak bucket, likewise.
    pub const PEAK_TOKENS: usize = 9;
    /// Time of the last packet in nanoseconds.
    pub const FILLED: usize = 11;
    /// Time in nanoseconds after which an empty committed bucket is full, and `u64::MAX` if it never is.
    pub const COMMITTED_FILL_TIME: usize = 12;
    /// Time after which an empty peak bucket is full, likewise.
    pub const PEAK_FILL_TIME: usize = 13;
    /// Number of words of a meter.
    pub const COUNT: usize = 14;

    /// Flag: the meter is configured.
    pub const IS_CONFIGURED: u64 = 1;
    /// Flag: a packet was metered since then.
    pub const HAS_STARTED: u64 = 2;
    /// Flag: full buckets have less than 2^63 tokens, so the upper halves are 0.
    pub const IS_NARROW: u64 = 4;

    const _: () = assert!(COMMITTED_FILL_TIME == FLAGS + WORDS, "the state of a meter lies between");
}

/// A meter as words.
type MeterCell = [AtomicU64; meter_word::COUNT];

/// Returns the cells in a range of shared words.
fn cells(placed: &PlacedWords) -> &[MeterCell] {
    let (cells, []) = placed.all().as_chunks() else { unreachable!("whole cells") };
    cells
}

/// Loads the meter of a cell.
fn load(cell: &MeterCell) -> Meter {
    Meter::from_words(std::array::from_fn(|at| cell[meter_word::FLAGS + at].load(Relaxed)))
}

/// Stores the state of a meter that has kept its configuration.
fn store_state(cell: &MeterCell, meter: &Meter) {
    for (word, value) in cell[meter_word::FLAGS..][..WORDS].iter().zip(meter.to_words()) {
        word.store(value, Relaxed);
    }
}

/// Stores a meter that may have another configuration.
fn store(cell: &MeterCell, round: u64, meter: &Meter) {
    store_state(cell, meter);
    let times = meter.config().map_or([0; 2], fill_times);
    for (word, value) in cell[meter_word::COMMITTED_FILL_TIME..].iter().zip(times) {
        word.store(value, Relaxed);
    }
    cell[meter_word::ROUND].store(round, Relaxed);
}

/// Holds a cell until it is dropped.
enum Held<'c> {
    /// A cell of the switch: nothing is locked while there is one worker.
    Own {
        _guard: Option<MutexGuard<'c, ()>>,
    },
    Shared(&'c AtomicU64),
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Held::Shared(lock) = self {
            lock.store(0, Release);
        }
    }
}

/// Meters of one unit. Each execution is atomic.
#[derive(Debug)]
pub(crate) struct MeterArray {
    size: u64,
    unit: Unit,
    own: Paged<MeterCell>,
    /// Set once, and then used instead of `own`.
    shared: OnceLock<PlacedWords>,
    /// Number of times all meters were configured at once, and the latest such configuration.
    fills: AtomicU64,
    filled: RwLock<Option<MeterConfig>>,
    locks: Locks,
}

impl MeterArray {
    pub(crate) fn new(size: u64, unit: Unit) -> Self {
        let (fills, filled) = (AtomicU64::new(0), RwLock::new(None));
        MeterArray { size, unit, own: Paged::new(), shared: OnceLock::new(), fills, filled, locks: Locks::new() }
    }

    /// Moves the meters with indices below `count` to shared memory. Returns false if they lie in shared memory.
    pub(crate) fn share(&self, words: SharedWords, first: usize, count: usize) -> bool {
        let placed = PlacedWords { words, range: first..first + count * meter_word::COUNT };
        let (fills, fresh) = (self.fills.load(Relaxed), self.fresh());
        for (index, cell) in (0..).zip(cells(&placed)) {
            let own = self.own.get(index).map(|own| (own[meter_word::ROUND].load(Relaxed), load(own)));
            // Direct meters are never filled.
            let own = own.filter(|(round, _)| fills == 0 || *round == fills);
            let (round, meter) = own.as_ref().map_or((fills, &fresh), |(round, meter)| (*round, meter));
            store(cell, round, meter);
        }
        self.shared.set(placed).is_ok()
    }

    /// Returns the cells in shared memory.
    fn shared(&self) -> &[MeterCell] {
        self.shared.get().map_or(&[], cells)
    }

    /// Returns a cell, if it has memory. Those behind the shared ones lie in memory of the switch.
    fn get(&self, index: u64) -> Option<&MeterCell> {
        self.shared().get(index as usize).or_else(|| self.own.get(index))
    }

    /// Returns a cell for writing.
    fn at(&self, index: u64) -> &MeterCell {
        self.shared().get(index as usize).unwrap_or_else(|| self.own.at(index))
    }

    /// Waits until nobody else uses a cell.
    fn hold<'c>(&'c self, cell: &'c MeterCell, index: u64, several: bool) -> Held<'c> {
        if index as usize >= self.shared().len() {
            return Held::Own { _guard: self.locks.hold(several, index) };
        }
        let lock = &cell[meter_word::LOCK];
        exclusive::take(lock);
        Held::Shared(lock)
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns a meter in the state that the last [`MeterArray::fill`] set.
    fn fresh(&self) -> Meter {
        let mut meter = Meter::default();
        let config = *self.filled.read().unwrap_or_else(PoisonError::into_inner);
        meter.configure(config).expect("it was checked when it was given");
        meter
    }

    /// Meters a packet; green beyond the end.
    #[inline]
    pub(crate) fn execute(&self, index: u64, bytes: u64, now_ns: u64, several: bool) -> Colour {
        let fills = self.fills.load(Relaxed);
        // If nothing was ever configured, every packet is green.
        if index >= self.size || (fills == 0 && self.get(index).is_none()) {
            return Colour::Green;
        }
        let cell = self.at(index);
        let _held = self.hold(cell, index, several);
        let is_current = cell[meter_word::ROUND].load(Relaxed) == fills;
        let mut meter = if is_current { load(cell) } else { self.fresh() };
        let colour = meter.execute(self.unit, bytes, now_ns);
        if is_current {
            store_state(cell, &meter)
        } else {
            store(cell, fills, &meter)
        }
        colour
    }

    /// Returns the state of a meter, with the use of its slot that it belongs to; `None` if nothing was ever stored.
    pub(crate) fn state(&self, index: u64, several: bool) -> Option<(u64, Meter)> {
        let cell = self.get(index)?;
        let _held = self.hold(cell, index, several);
        Some((cell[meter_word::ROUND].load(Relaxed), load(cell)))
    }

    /// Restores the state of a meter.
    pub(crate) fn restore(&self, index: u64, (round, meter): (u64, Meter), several: bool) {
        let cell = self.at(index);
        let _held = self.hold(cell, index, several);
        store(cell, round, &meter);
    }

    pub(crate) fn config(&self, index: u64, several: bool) -> Result<Option<MeterConfig>, EntryError> {
        self.inside(index)?;
        let fills = self.fills.load(Relaxed);
        let Some(cell) = self.get(index) else { return Ok(self.fresh().config()) };
        let _held = self.hold(cell, index, several);
        let is_current = cell[meter_word::ROUND].load(Relaxed) == fills;
        Ok(if is_current { load(cell) } else { self.fresh() }.config())
    }

    pub(crate) fn configure(&self, index: u64, config: Option<MeterConfig>, several: bool) -> Result<(), EntryError> {
        self.inside(index)?;
        let mut meter = Meter::default();
        meter.configure(config)?;
        let cell = self.at(index);
        let _held = self.hold(cell, index, several);
        store(cell, self.fills.load(Relaxed), &meter);
        Ok(())
    }

    /// Configures all meters.
    pub(crate) fn fill(&self, config: Option<MeterConfig>) -> Result<(), EntryError> {
        Meter::default().configure(config)?;
        let mut filled = self.filled.write().unwrap_or_else(PoisonError::into_inner);
        *filled = config;
        let fills = self.fills.fetch_add(1, Relaxed) + 1;
        drop(filled);
        // Those who share the cells do not know of fills.
        let fresh = self.fresh();
        for (index, cell) in (0..).zip(self.shared()) {
            let _held = self.hold(cell, index, true);
            store(cell, fills, &fresh);
        }
        Ok(())
    }

    fn inside(&self, index: u64) -> Result<(), EntryError> {
        if index < self.size { Ok(()) } else { Err(EntryError::BeyondEnd { index, size: self.size }) }
    }

    /// Meters a packet with the meter of an entry.
    #[inline]
    pub(crate) fn execute_direct(
        &self,
        handle: u32,
        generation: u64,
        bytes: u64,
        now_ns: u64,
        several: bool,
    ) -> Colour {
        let Some(cell) = self.get(u64::from(handle)) else { return Colour::Green };
        let _held = self.hold(cell, u64::from(handle), several);
        if cell[meter_word::ROUND].load(Relaxed) != generation {
            return Colour::Green;
        }
        let mut meter = load(cell);
        let colour = meter.execute(self.unit, bytes, now_ns);
        store_state(cell, &meter);
        colour
    }

    pub(crate) fn direct_config(&self, handle: u32, generation: u64, several: bool) -> Option<MeterConfig> {
        let cell = self.get(u64::from(handle))?;
        let _held = self.hold(cell, u64::from(handle), several);
        if cell[meter_word::ROUND].load(Relaxed) == generation { load(cell).config() } else { None }
    }

    pub(crate) fn configure_direct(
        &self,
        handle: u32,
        generation: u64,
        config: Option<MeterConfig>,
        several: bool,
    ) -> Result<(), EntryError> {
        let mut meter = Meter::default();
        meter.configure(config)?;
        let cell = self.at(u64::from(handle));
        let _held = self.hold(cell, u64::from(handle), several);
        store(cell, generation, &meter);
        Ok(())
    }
}
