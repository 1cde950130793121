//! Implements lock-free arrays for several threads, with memory allocated page by page.
//!
//! A program may declare millions of registers, and a table grows without a fixed limit. A page of 256 elements is
//! allocated when one of them is first written. Pages never move, so readers and writers need nothing but atomic
//! elements.
//!
//! ```text
//! segments   0: page 0    1: pages 1, 2    2: pages 3 to 6    ...
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// Number of elements of a page.
pub(super) const PAGE: u64 = 256;

/// Number of segments of pages, which suffices for 2^32 elements.
const SEGMENTS: usize = 25;

type Page<T> = OnceLock<Box<[T]>>;

/// An array without an end. Elements have their [`Default`] value until they are written.
pub(crate) struct Paged<T> {
    segments: [OnceLock<Box<[Page<T>]>>; SEGMENTS],
}

impl<T: Default> Paged<T> {
    pub(crate) fn new() -> Self {
        Paged { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// Returns the segment of an element, and the page in it.
    #[inline]
    fn place(index: u64) -> (usize, usize) {
        let page = index / PAGE + 1;
        let segment = page.ilog2();
        (segment as usize, (page - (1 << segment)) as usize)
    }

    /// Returns an element, if its page has been allocated.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        let (segment, page) = Self::place(index);
        let page = self.segments.get(segment)?.get()?[page].get()?;
        Some(&page[(index % PAGE) as usize])
    }

    /// Whether any element of a range is on an allocated page.
    pub(crate) fn has_any(&self, elements: Range<u64>) -> bool {
        let mut firsts = (elements.start / PAGE..elements.end.div_ceil(PAGE)).map(|page| page * PAGE);
        !elements.is_empty() && firsts.any(|first| self.get(first).is_some())
    }

    /// Returns an element for writing.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> &T {
        match self.get(index) {
            Some(found) => found,
            None => self.make(index),
        }
    }

    #[cold]
    fn make(&self, index: u64) -> &T {
        let (segment, page) = Self::place(index);
        let pages = self.segments[segment].get_or_init(|| (0..1u64 << segment).map(|_| Page::new()).collect());
        let page = pages[page].get_or_init(|| (0..PAGE).map(|_| T::default()).collect());
        &page[(index % PAGE) as usize]
    }

    /// Returns the elements of allocated pages, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let pages = self.segments.iter().enumerate().flat_map(|(segment, pages)| {
            let first = (1u64 << segment) - 1;
            pages.get().into_iter().flatten().zip(first..)
        });
        pages.flat_map(|(page, number)| page.get().into_iter().flatten().zip(number * PAGE..).map(|(it, at)| (at, it)))
    }
}

/// Shows only elements that differ from their default, so that equal states look equal whatever pages they have.
impl<T: Default + fmt::Debug> fmt::Debug for Paged<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fresh = format!("{:?}", T::default());
        let shown = self.iter().map(|(index, element)| (index, format!("{element:?}")));
        let mut map = f.debug_map();
        for (index, text) in shown.filter(|(_, text)| *text != fresh) {
            map.entry(&index, &format_args!("{text}"));
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn elements_are_apart_and_stay_where_they_are() {
        let cells = Paged::<AtomicU64>::new();
        let indices = [0, 1, PAGE - 1, PAGE, 3 * PAGE - 1, 3 * PAGE, 1_000_000, u64::from(u32::MAX)];
        for index in indices {
            assert!(cells.get(index).is_none_or(|cell| cell.load(Ordering::Relaxed) == 0), "{index}");
            cells.at(index).store(index + 1, Ordering::Relaxed);
        }
        let first: *const AtomicU64 = cells.at(0);
        assert!(indices.iter().all(|index| cells.at(*index).load(Ordering::Relaxed) == index + 1));
        assert_eq!(first, std::ptr::from_ref(cells.at(0)));
        let written: Vec<_> = cells.iter().filter(|(_, cell)| cell.load(Ordering::Relaxed) != 0).collect();
        assert_eq!(written.iter().map(|(index, _)| *index).collect::<Vec<_>>(), indices);
        assert!(cells.get(2 * PAGE).is_some());
        assert!(cells.get(500_000).is_none());
    }

    #[test]
    fn elements_that_were_only_read_are_not_listed() {
        let (one, other) = (Paged::<AtomicU64>::new(), Paged::<AtomicU64>::new());
        one.at(5).store(7, Ordering::Relaxed);
        other.at(5).store(7, Ordering::Relaxed);
        other.at(10_000);
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        assert_eq!(format!("{one:?}"), "{5: 7}");
    }
}
