//! Allocates the memory of a server to copies, first fit.

use std::collections::BTreeMap;

/// Free memory of a server.
#[derive(Clone, Debug)]
pub(super) struct MemoryMap {
    /// Sizes of free pieces by address.
    free: BTreeMap<u64, u64>,
}

impl MemoryMap {
    pub(super) fn new(base: u64, bytes: u64) -> MemoryMap {
        MemoryMap { free: BTreeMap::from([(base, bytes)]) }
    }

    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let (&base, &size) = self.free.iter().find(|(_, size)| **size >= bytes)?;
        self.free.remove(&base);
        if size > bytes {
            self.free.insert(base + bytes, size - bytes);
        }
        Some(base)
    }

    pub(super) fn release(&mut self, mut base: u64, mut bytes: u64) {
        if bytes == 0 {
            return;
        }
        if let Some((&before, &size)) = self.free.range(..base).next_back()
            && before + size == base
        {
            self.free.remove(&before);
            (base, bytes) = (before, size + bytes);
        }
        if let Some(size) = self.free.remove(&(base + bytes)) {
            bytes += size;
        }
        self.free.insert(base, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_pieces_join() {
        let mut map = MemoryMap::new(100, 50);
        let pieces: Vec<_> = (0..5).map(|_| map.allocate(10).unwrap()).collect();
        assert_eq!((pieces.as_slice(), map.allocate(1)), (&[100, 110, 120, 130, 140][..], None));
        for base in [110, 140, 120, 100, 130] {
            map.release(base, 10);
        }
        assert_eq!(map.free, BTreeMap::from([(100, 50)]));
    }
}
