//! Keeps the words of a register array: in memory of its own, or in memory that others write, too.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::paged::Paged;

/// Words that the switch and others use at the same time.
pub type SharedWords = Arc<dyn AsRef<[AtomicU64]> + Send + Sync>;

/// The words of an array.
#[derive(Debug)]
pub(super) struct RegisterWords {
    own: Paged<AtomicU64>,
    /// Set once, and then used instead of `own`.
    shared: OnceLock<PlacedWords>,
}

/// A range of shared words.
pub(super) struct PlacedWords {
    pub words: SharedWords,
    pub range: Range<usize>,
}

impl PlacedWords {
    pub fn all(&self) -> &[AtomicU64] {
        &(*self.words).as_ref()[self.range.clone()]
    }
}

impl fmt::Debug for PlacedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = (0u64..).zip(self.all()).map(|(at, word)| (at, word.load(Relaxed)));
        f.debug_map().entries(words.filter(|(_, word)| *word != 0)).finish()
    }
}

impl RegisterWords {
    pub fn new() -> RegisterWords {
        RegisterWords { own: Paged::new(), shared: OnceLock::new() }
    }

    /// Moves the words to shared memory, which keeps them from now on. Meanwhile nothing may write them. Words that
    /// lie in shared memory stay there, and the result is false.
    ///
    /// # Panics
    /// If the range is not in the memory, or has fewer words than are in use.
    pub fn share(&self, words: SharedWords, range: Range<usize>) -> bool {
        let placed = PlacedWords { words, range };
        let to = placed.all();
        for (from, word) in self.own.iter().filter(|(_, word)| word.load(Relaxed) != 0) {
            to[from as usize].store(word.load(Relaxed), Relaxed);
        }
        self.shared.set(placed).is_ok()
    }

    /// Returns a word, if it has memory.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&AtomicU64> {
        match self.shared.get() {
            None => self.own.get(index),
            Some(shared) => shared.all().get(index as usize),
        }
    }

    /// Returns a word for writing. It is one of the array.
    #[inline]
    pub fn at(&self, index: u64) -> &AtomicU64 {
        match self.shared.get() {
            None => self.own.at(index),
            Some(shared) => &shared.all()[index as usize],
        }
    }

    /// Whether any word of a range has memory.
    pub fn has_any(&self, range: Range<u64>) -> bool {
        match self.shared.get() {
            None => self.own.has_any(range),
            Some(_) => !range.is_empty(),
        }
    }

    /// Returns the words that have memory, with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &AtomicU64)> {
        let shared = self.shared.get();
        let own = shared.is_none().then(|| self.own.iter());
        own.into_iter().flatten().chain((0..).zip(shared.map_or(&[][..], PlacedWords::all)))
    }

    /// Returns the memory that is not shared.
    pub fn own(&self) -> &Paged<AtomicU64> {
        &self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_to_shared_memory_and_stay_there() {
        let words = RegisterWords::new();
        words.at(2).store(7, Relaxed);
        let memory: Arc<Vec<AtomicU64>> = Arc::new((0..10).map(|_| AtomicU64::new(0)).collect());
        assert!(words.share(Arc::<Vec<AtomicU64>>::clone(&memory), 4..8));
        assert_eq!(memory[6].load(Relaxed), 7);
        memory[4].store(5, Relaxed);
        words.at(3).store(9, Relaxed);
        assert_eq!(memory[7].load(Relaxed), 9);
        let read = |index| words.get(index).map(|word| word.load(Relaxed));
        assert_eq!([0, 1, 2, 3, 4].map(read), [Some(5), Some(0), Some(7), Some(9), None]);
        assert_eq!(
            words.iter().map(|(at, word)| (at, word.load(Relaxed))).collect::<Vec<_>>(),
            [(0, 5), (1, 0), (2, 7), (3, 9)]
        );
        assert!(!words.share(Arc::<Vec<AtomicU64>>::clone(&memory), 0..4));
        assert_eq!(read(0), Some(5));
    }
}
