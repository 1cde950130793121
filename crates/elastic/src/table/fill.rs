//! Writes copies from the ledger: new ones completely, damaged ones window by window.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::TicketKind;
use super::{ElasticTable, TableEffect};
use crate::layout::CellBlock;
use crate::routes::{CopyId, LinkMeter, ServerId, TableCopy};

/// Progress of a copy that fills.
#[derive(Clone, Copy, Debug)]
struct CopyFill {
    epoch: u64,
    next: u32,
    outstanding: u32,
}

/// Repairs and rewrites of a copy since it was added, or since its damage was last reset.
#[derive(Clone, Copy, Debug, Default)]
struct CopyDamage {
    repairs: u32,
    restarts: u32,
    /// Valid READs since the last damage.
    valid_reads: u32,
}

/// Copies that fill, and repairs.
#[derive(Debug, Default)]
pub(super) struct FillState {
    fills: BTreeMap<CopyId, CopyFill>,
    repairs: BTreeSet<(CopyId, u32)>,
    damage: BTreeMap<CopyId, CopyDamage>,
}

impl FillState {
    pub(super) fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    pub(super) fn repaired(&mut self, copy: CopyId, home: u32) {
        self.repairs.remove(&(copy, home));
    }

    /// Counts a valid READ of a copy. Resets its damage after `reset_after` of them in a row.
    pub(super) fn read_valid(&mut self, copy: CopyId, reset_after: u32) {
        if let Some(damage) = self.damage.get_mut(&copy) {
            damage.valid_reads += 1;
            if damage.valid_reads >= reset_after {
                self.damage.remove(&copy);
            }
        }
    }
}

impl<P> ElasticTable<P> {
    /// Begins to fill the copies that were added, and forgets those that were removed.
    pub(super) fn update_fills(&mut self) {
        let exists = |copy: &CopyId| self.routes.copy(*copy).is_some();
        self.fills.fills.retain(|copy, _| exists(copy));
        self.fills.damage.retain(|copy, _| exists(copy));
        self.fills.repairs.retain(|(copy, _)| exists(copy));
        for copy in self.routes.copies().filter(|copy| !copy.is_live) {
            let fill =
                self.fills.fills.entry(copy.id).or_insert(CopyFill { epoch: copy.epoch, next: 0, outstanding: 0 });
            if fill.epoch != copy.epoch {
                *fill = CopyFill { epoch: copy.epoch, next: 0, outstanding: 0 };
            }
        }
    }

    /// Returns the bytes of a server's copies, without those that are still to be filled.
    pub fn held_bytes(&self, server: ServerId) -> u64 {
        let held = |copy: &TableCopy| {
            let all = self.layout.copy_bytes(copy.arc.cells);
            let Some(fill) = self.fills.fills.get(&copy.id).filter(|_| !copy.is_live) else { return all };
            all * u64::from(fill.next - fill.outstanding) / u64::from(self.layout.blocks(copy.arc)).max(1)
        };
        self.routes.copies().filter(|copy| copy.server == server).map(held).sum()
    }

    /// Writes further blocks of copies that fill.
    pub(super) fn write_blocks(&mut self) {
        let ids: Vec<CopyId> = self.fills.fills.keys().copied().collect();
        for id in ids {
            let Some(copy) = self.routes.copy(id).cloned() else { continue };
            while let Some(number) = self.next_block(&copy) {
                let block = self.layout.block(copy.arc, number);
                self.counts.blocks += 1;
                self.write_cells(&copy, block, TicketKind::Block { copy: id, epoch: copy.epoch });
            }
        }
    }

    fn next_block(&mut self, copy: &TableCopy) -> Option<u32> {
        let fill = self.fills.fills.get_mut(&copy.id)?;
        if fill.outstanding >= self.config.limits.blocks || fill.next >= self.layout.blocks(copy.arc) {
            return None;
        }
        fill.next += 1;
        fill.outstanding += 1;
        Some(fill.next - 1)
    }

    /// Writes cells of one copy as they are planned.
    fn write_cells(&mut self, copy: &TableCopy, block: CellBlock, kind: TicketKind) {
        self.generation = self.generation.wrapping_add(1);
        let mut data = Vec::with_capacity(block.count as usize * self.layout.form().cell_bytes());
        for ahead in 0..block.count {
            let cell = self.layout.wrap(block.first, ahead);
            let entry = self.placement.occupant(cell).map(|entry| self.ledger.entry(entry));
            let place = self.layout.place(cell, copy.epoch);
            self.layout.form().emit(&self.secret, place, self.generation, entry, &mut data);
        }
        let token = self.ticket(copy.server, kind);
        let address = copy.base + block.offset;
        self.effects.push_back(TableEffect::Write { server: copy.server, address, data, token });
    }

    pub(super) fn block_written(&mut self, id: CopyId, epoch: u64) {
        let Some(copy) = self.routes.copy(id) else { return };
        let blocks = self.layout.blocks(copy.arc);
        let Some(fill) = self.fills.fills.get_mut(&id).filter(|fill| fill.epoch == epoch) else { return };
        fill.outstanding -= 1;
        if fill.outstanding == 0 && fill.next == blocks {
            self.fills.fills.remove(&id);
            self.routes.set_live(id);
            self.update_fills();
        }
    }

    /// Handles a window of a live copy that differs from what was written: it is repaired. After several repairs the
    /// copy is rewritten, and after several rewritten copies its server is given up.
    pub(super) fn damaged(&mut self, id: CopyId, home: u32, links: &mut dyn LinkMeter) {
        self.counts.invalid += 1;
        let Some(copy) = self.routes.copy(id).cloned() else { return };
        // The copy may have shrunk since the READ.
        if self.fills.repairs.contains(&(id, home)) || !self.layout.serves(copy.arc, home) {
            return;
        }
        let damage = self.fills.damage.entry(id).or_default();
        damage.repairs += 1;
        damage.valid_reads = 0;
        if damage.repairs <= self.config.limits.repairs {
            self.fills.repairs.insert((id, home));
            self.counts.repairs += 1;
            let offset = self.layout.read_offset(copy.arc, home);
            let block = CellBlock { offset, first: home, count: self.layout.window() };
            return self.write_cells(&copy, block, TicketKind::Repair { copy: id, home });
        }
        damage.repairs = 0;
        damage.restarts += 1;
        if damage.restarts <= self.config.limits.restarts {
            self.counts.restarts += 1;
            self.routes.restart(id);
            self.update_fills();
        } else {
            self.counts.distrusted += 1;
            self.server_down(copy.server, links);
            self.effects.push_back(TableEffect::Distrust { server: copy.server });
        }
    }
}
