//! Carries out the writes of changes: step by step within a change, and cell by cell in the order of changes.
//!
//! A step is one cell in all its copies. It begins when the step before it is acknowledged by all of them, and when
//! earlier changes are done with its cell. So a cell has its contents in the planned order, and an entry is in its new
//! cell before its old one is overwritten. All keys of a change are pinned in the overlay until its last step.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::answer::TicketKind;
use super::{ElasticTable, TableEffect};
use crate::mutant::ElasticMutant;

/// Identifies a change whose writes are in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OperationId(u64);

/// A write of one cell in all copies.
#[derive(Debug)]
pub(super) struct CellStep {
    pub cell: u32,
    /// The key and the record, or nothing for an empty cell.
    pub entry: Option<Box<[u8]>>,
}

#[derive(Debug)]
struct CellOperation {
    steps: Vec<CellStep>,
    /// Index of the step in progress.
    at: usize,
    /// Copies that have not acknowledged it.
    outstanding: u32,
    is_issued: bool,
    pins: Vec<Box<[u8]>>,
}

/// The changes whose writes are in progress.
#[derive(Debug, Default)]
pub(super) struct OperationSet {
    operations: HashMap<OperationId, CellOperation, FixedState>,
    /// Changes that write a cell, in order.
    cells: HashMap<u32, VecDeque<OperationId>, FixedState>,
    next: u64,
}

impl OperationSet {
    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    fn add(&mut self, steps: Vec<CellStep>, pins: Vec<Box<[u8]>>) -> OperationId {
        let id = OperationId(self.next);
        self.next += 1;
        for step in &steps {
            self.cells.entry(step.cell).or_default().push_back(id);
        }
        self.operations.insert(id, CellOperation { steps, at: 0, outstanding: 0, is_issued: false, pins });
        id
    }

    /// Returns the cell that a change may write now.
    fn ready(&self, id: OperationId) -> Option<u32> {
        let operation = self.operations.get(&id).filter(|operation| !operation.is_issued)?;
        let cell = operation.steps.get(operation.at)?.cell;
        (self.cells[&cell].front() == Some(&id)).then_some(cell)
    }

    /// Passes a cell on to the next change, and returns that change.
    fn leave(&mut self, cell: u32) -> Option<OperationId> {
        let queue = self.cells.get_mut(&cell)?;
        queue.pop_front();
        let next = queue.front().copied();
        if next.is_none() {
            self.cells.remove(&cell);
        }
        next
    }
}

impl<P> ElasticTable<P> {
    /// Begins the writes of a change. The pins are those of its keys, to be removed at its end.
    pub(super) fn operate(&mut self, steps: Vec<CellStep>, pins: Vec<Box<[u8]>>) {
        let id = self.operations.add(steps, pins);
        self.proceed(id);
    }

    /// Handles the acknowledgement of one copy, or its loss.
    pub(super) fn acknowledge(&mut self, id: OperationId, step: usize) {
        let Some(operation) = self.operations.operations.get_mut(&id) else { return };
        if operation.at != step || !operation.is_issued {
            return;
        }
        operation.outstanding -= 1;
        if operation.outstanding == 0 {
            self.step_done(id);
        }
    }

    /// Issues the steps that may begin, of this change and of those that waited for it.
    fn proceed(&mut self, id: OperationId) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.operations.ready(id).is_some() {
                self.issue(id);
            }
            let Some(operation) = self.operations.operations.get(&id) else { continue };
            if operation.is_issued && operation.outstanding == 0 || operation.at == operation.steps.len() {
                open.extend(self.finish_step(id));
            }
        }
    }

    fn step_done(&mut self, id: OperationId) {
        let next = self.finish_step(id);
        next.into_iter().for_each(|id| self.proceed(id));
    }

    /// Ends a step, and the change with its last one. Returns the changes that may proceed.
    fn finish_step(&mut self, id: OperationId) -> Vec<OperationId> {
        let operation = self.operations.operations.get_mut(&id).expect("its step ends");
        let mut next = Vec::new();
        if let Some(step) = operation.steps.get(operation.at) {
            let cell = step.cell;
            operation.at += 1;
            operation.is_issued = false;
            next.extend(self.operations.leave(cell));
        }
        let operation = &self.operations.operations[&id];
        if operation.at < operation.steps.len() {
            next.push(id);
            return next;
        }
        let operation = self.operations.operations.remove(&id).expect("it goes on");
        for key in operation.pins {
            self.overlay.unpin(&key, self.numbers.next());
        }
        self.overlay.retire(self.numbers.oldest());
        next
    }

    /// Writes a cell in all copies.
    fn issue(&mut self, id: OperationId) {
        let (cell, at) = {
            let operation = &self.operations.operations[&id];
            (operation.steps[operation.at].cell, operation.at)
        };
        self.generation = self.generation.wrapping_add(1);
        let routes = self.routes.writes(cell);
        let operation = self.operations.operations.get_mut(&id).expect("it goes on");
        operation.is_issued = true;
        operation.outstanding = routes.len() as u32;
        if self.config.mutation.is(ElasticMutant::FirstAckCounts) {
            operation.outstanding = operation.outstanding.min(1);
        }
        for route in routes {
            let mut data = Vec::with_capacity(self.layout.form().cell_bytes());
            let entry = self.operations.operations[&id].steps[at].entry.as_deref();
            let place = self.layout.place(cell, route.epoch);
            self.layout.form().emit(&self.secret, place, self.generation, entry, &mut data);
            let token = self.ticket(route.server, TicketKind::Step { operation: id, step: at });
            self.counts.writes += 1;
            self.effects.push_back(TableEffect::Write { server: route.server, address: route.address, data, token });
        }
    }
}
