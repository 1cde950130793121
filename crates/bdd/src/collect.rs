//! Collects unreachable nodes and sets.

use crate::store::{Ref, Store};

impl Store {
    /// Drops every node and set that is not part of one of these functions. All other `Ref`s become invalid.
    pub fn collect(&mut self, needed: impl IntoIterator<Item = Ref>) {
        let mut nodes = vec![false; self.nodes.len()];
        let mut sets = vec![false; self.sets.capacity()];
        let mut waiting: Vec<Ref> = needed.into_iter().collect();
        while let Some(next) = waiting.pop() {
            let mark = if next.is_set() { &mut sets[next.index()] } else { &mut nodes[next.index()] };
            if !std::mem::replace(mark, true) && !next.is_set() {
                waiting.extend_from_slice(&self.get(next).children);
            }
        }
        for (index, slot) in self.nodes.iter_mut().enumerate() {
            if nodes[index] {
                continue;
            }
            if let Some(node) = slot.take() {
                self.arm_count -= node.children.len();
                if let Ok(entry) = self.by_content.find_entry(node.hash, |other| *other as usize == index) {
                    entry.remove();
                }
                self.free.push(index as u32);
            }
        }
        self.sets.retain(&sets);
        // Its entries may refer to dropped nodes.
        let size = (self.len() / 2).next_power_of_two().clamp(1 << 10, self.cache.len().max(1 << 10));
        self.cache.clear();
        self.cache.resize(size, None);
        self.cache.shrink_to_fit();
    }
}
