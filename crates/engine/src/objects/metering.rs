//! Executes meters that several workers share.

use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ir::Unit;

use super::meter::WORDS;
use super::paged::Paged;
use super::shared::Locks;
use super::{Colour, EntryError, Meter, MeterConfig};

/// The state of a meter, and the use of its slot that it belongs to.
#[derive(Debug, Default)]
struct MeterCell {
    /// Generation of the entry (direct meters), or number of fills of the array at that time (others).
    round: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl MeterCell {
    fn load(&self) -> Meter {
        Meter::from_words(self.words.each_ref().map(|word| word.load(Relaxed)))
    }

    fn store(&self, round: u64, meter: &Meter) {
        for (cell, word) in self.words.iter().zip(meter.to_words()) {
            cell.store(word, Relaxed);
        }
        self.round.store(round, Relaxed);
    }
}

/// Meters of one unit. Each execution is atomic.
#[derive(Debug)]
pub(crate) struct MeterArray {
    size: u64,
    unit: Unit,
    cells: Paged<MeterCell>,
    /// Number of times all meters were configured at once, and the latest such configuration.
    fills: AtomicU64,
    filled: RwLock<Option<MeterConfig>>,
    locks: Locks,
}

impl MeterArray {
    pub(crate) fn new(size: u64, unit: Unit) -> Self {
        let (fills, filled) = (AtomicU64::new(0), RwLock::new(None));
        MeterArray { size, unit, cells: Paged::new(), fills, filled, locks: Locks::new() }
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
        if index >= self.size || (fills == 0 && self.cells.get(index).is_none()) {
            return Colour::Green;
        }
        let cell = self.cells.at(index);
        let _whole = self.locks.hold(several, index);
        let mut meter = if cell.round.load(Relaxed) == fills { cell.load() } else { self.fresh() };
        let colour = meter.execute(self.unit, bytes, now_ns);
        cell.store(fills, &meter);
        colour
    }

    /// Returns the state of a meter, with the use of its slot that it belongs to; `None` if nothing was ever stored.
    pub(crate) fn state(&self, index: u64, several: bool) -> Option<(u64, Meter)> {
        let cell = self.cells.get(index)?;
        let _whole = self.locks.hold(several, index);
        Some((cell.round.load(Relaxed), cell.load()))
    }

    /// Restores the state of a meter.
    pub(crate) fn restore(&self, index: u64, (round, meter): (u64, Meter), several: bool) {
        let _whole = self.locks.hold(several, index);
        self.cells.at(index).store(round, &meter);
    }

    pub(crate) fn config(&self, index: u64, several: bool) -> Result<Option<MeterConfig>, EntryError> {
        self.inside(index)?;
        let fills = self.fills.load(Relaxed);
        let _whole = self.locks.hold(several, index);
        let cell = self.cells.get(index).filter(|cell| cell.round.load(Relaxed) == fills);
        Ok(cell.map_or_else(|| self.fresh(), MeterCell::load).config())
    }

    pub(crate) fn configure(&self, index: u64, config: Option<MeterConfig>, several: bool) -> Result<(), EntryError> {
        self.inside(index)?;
        let mut meter = Meter::default();
        meter.configure(config)?;
        let _whole = self.locks.hold(several, index);
        self.cells.at(index).store(self.fills.load(Relaxed), &meter);
        Ok(())
    }

    /// Configures all meters.
    pub(crate) fn fill(&self, config: Option<MeterConfig>) -> Result<(), EntryError> {
        Meter::default().configure(config)?;
        let mut filled = self.filled.write().unwrap_or_else(PoisonError::into_inner);
        *filled = config;
        self.fills.fetch_add(1, Relaxed);
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
        let Some(cell) = self.cells.get(u64::from(handle)) else { return Colour::Green };
        let _whole = self.locks.hold(several, u64::from(handle));
        if cell.round.load(Relaxed) != generation {
            return Colour::Green;
        }
        let mut meter = cell.load();
        let colour = meter.execute(self.unit, bytes, now_ns);
        cell.store(generation, &meter);
        colour
    }

    pub(crate) fn direct_config(&self, handle: u32, generation: u64, several: bool) -> Option<MeterConfig> {
        let cell = self.cells.get(u64::from(handle))?;
        let _whole = self.locks.hold(several, u64::from(handle));
        if cell.round.load(Relaxed) == generation { cell.load().config() } else { None }
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
        let _whole = self.locks.hold(several, u64::from(handle));
        self.cells.at(u64::from(handle)).store(generation, &meter);
        Ok(())
    }
}
