//! Numbers work in progress: an index finds it without a search, and a generation prevents early reuse of a number.

/// Elements by numbers. A number is not reused before 2^32 others of its index.
#[derive(Debug)]
pub(crate) struct SlotArena<T> {
    slots: Vec<ArenaSlot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct ArenaSlot<T> {
    generation: u32,
    element: Option<T>,
}

impl<T> Default for SlotArena<T> {
    fn default() -> Self {
        SlotArena { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> SlotArena<T> {
    /// Adds an element, and returns its number.
    pub(crate) fn add(&mut self, element: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(ArenaSlot { generation: 0, element: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.element = Some(element);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn slot(&mut self, number: u64) -> Option<&mut ArenaSlot<T>> {
        let slot = self.slots.get_mut(number as u32 as usize)?;
        (u64::from(slot.generation) == number >> 32).then_some(slot)
    }

    /// Returns an element.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let slot = self.slots.get(number as u32 as usize)?;
        slot.element.as_ref().filter(|_| u64::from(slot.generation) == number >> 32)
    }

    /// Returns an element to change.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.slot(number)?.element.as_mut()
    }

    /// Removes an element.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let slot = self.slot(number)?;
        let element = slot.element.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number as u32);
        Some(element)
    }

    /// Returns the elements with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some((u64::from(slot.generation) << 32 | index as u64, slot.element.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_removed_elements_find_nothing() {
        let mut arena = SlotArena::default();
        let (a, b) = (arena.add('a'), arena.add('b'));
        assert_eq!((arena.remove(a), arena.remove(a), arena.len()), (Some('a'), None, 1));
        let c = arena.add('c');
        assert_eq!(c as u32, a as u32, "the index is used again");
        assert_eq!((arena.get(a), arena.get(c), arena.get(b)), (None, Some(&'c'), Some(&'b')));
        assert_eq!(arena.get_mut(a), None);
        assert_eq!(arena.len(), 2);
        assert_eq!(arena.iter().collect::<Vec<_>>(), [(c, &'c'), (b, &'b')]);
    }
}
