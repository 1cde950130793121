//! Executes the updates of a write on a switch, and rolls them back if the write is atomic and one fails (P4Runtime
//! specification, chapter 12).

use std::sync::Arc;

use ir::Program;
use p4_constraints::References;
use p4runtime_proto::v1::write_request::Atomicity;
use switch::SwitchControl;

use crate::arbitration::Admission;
use crate::data_plane::DataPlane;
use crate::restrictions::{self, ReplacedReferences};
use crate::shadow::ShadowChange;
use crate::status::{Code, Refusal};
use crate::switch_ops::{Op, Undo};
use crate::translate::PlannedUpdate;

/// Maximum number of elements of whole arrays that one write keeps for a rollback: those of one array of any size.
const MAX_KEPT_ELEMENTS: u64 = 1 << 24;
/// Maximum number of elements of whole arrays that one write sets: those of all arrays of a program.
const MAX_SET_ELEMENTS: u64 = 1 << 26;
/// Number of elements of a whole array that count as one update, when a write is run in several calls.
const ELEMENTS_AN_UPDATE: u64 = 1 << 10;

/// An update, from plan to result.
#[derive(Debug)]
enum BatchItem {
    Ready(PlannedUpdate),
    Done(ShadowChange, Undo, Option<ReplacedReferences>),
    Failed(Refusal),
}

/// The updates of one write. [`WriteBatch::run`] executes them, in a single call or in several.
#[derive(Debug)]
pub(crate) struct WriteBatch {
    pub(crate) admission: Admission,
    program: Arc<Program>,
    atomicity: Atomicity,
    /// The updates in the order of the request. `None` only while an item is being run or undone.
    items: Vec<Option<BatchItem>>,
    /// Indices of the updates in the order in which they run. If packets must see all of the batch or none of it, those
    /// of registers and meter arrays are the last ones: packets see them at once, so all packets wait for them. Direct
    /// meters are seen at once, too, but other updates may insert or remove their entries, so they keep their places.
    order: Vec<usize>,
    /// Whether no packet is being processed until what was written is published.
    is_exclusive: bool,
    /// References between entities, lent by the server for the duration of the write.
    references: References,
    /// Number of elements that updates of whole arrays have set.
    set_elements: u64,
    /// Index into `order` of the next update to run or, during a rollback, number of updates still to undo.
    next: usize,
    /// Whether the batch is, or was, rolled back. Set from the start if an update of an atomic batch has no plan: then
    /// nothing runs.
    rolling_back: bool,
    finished: bool,
}

impl BatchItem {
    /// Returns the operation of an update that has not run.
    fn pending(&self) -> Option<&Op> {
        if let BatchItem::Ready(planned) = self { Some(&planned.op) } else { None }
    }
}

impl WriteBatch {
    pub(crate) fn new(
        admission: Admission,
        program: Arc<Program>,
        atomicity: Atomicity,
        plans: Vec<Result<PlannedUpdate, Refusal>>,
        references: References,
    ) -> WriteBatch {
        let rejected = atomicity != Atomicity::ContinueOnError && plans.iter().any(Result::is_err);
        let item = |plan| {
            Some(match plan {
                Ok(planned) => BatchItem::Ready(planned),
                Err(refusal) => BatchItem::Failed(refusal),
            })
        };
        let items: Vec<_> = plans.into_iter().map(item).collect();
        let mut order: Vec<usize> = (0..items.len()).collect();
        if atomicity == Atomicity::DataplaneAtomic {
            let pending = |at: usize| items[at].as_ref().and_then(BatchItem::pending);
            order.sort_by_key(|at| pending(*at).is_some_and(Op::sets_shared_array));
        }
        WriteBatch {
            admission,
            program,
            atomicity,
            items,
            order,
            is_exclusive: false,
            references,
            set_elements: 0,
            next: 0,
            rolling_back: rejected,
            finished: rejected,
        }
    }

    /// Whether packets must see all of the batch or none of it, in which case it must run in a single call.
    pub(crate) fn is_atomic(&self) -> bool {
        self.atomicity == Atomicity::DataplaneAtomic
    }

    /// Whether every update has been run or rolled back.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Runs up to `count` updates, or rolls back as many. An update of a whole array counts by its elements.
    /// `stop_others` waits until no other thread runs packets of the switch, until what was written is published.
    pub(crate) fn run(&mut self, switch: &mut dyn SwitchControl, count: usize, stop_others: &dyn Fn()) {
        assert!(Arc::ptr_eq(switch.program(), &self.program), "the pipeline does not change during a write");
        if self.atomicity != Atomicity::ContinueOnError {
            // The counts of entries that are removed return if the write fails.
            switch.collect_counts();
        }
        let (mut steps, begin) = (0, self.set_elements);
        while !self.finished && steps + ((self.set_elements - begin) / ELEMENTS_AN_UPDATE) < count as u64 {
            self.step(switch, stop_others);
            steps += 1;
        }
    }

    /// Runs up to `count` updates on the switch that processes packets, between two of their batches.
    pub(crate) fn run_between_packets(&mut self, plane: &mut DataPlane<'_>, count: usize) {
        self.run(plane.switch, count, plane.stop_others);
        if self.is_exclusive {
            // Packets of the kernel need not wait for the operations behind this one.
            plane.switch.publish();
        }
    }

    /// Keeps all packets out until the batch is published, if they would see the next step without the rest.
    fn keep_packets_out(&mut self, switch: &mut dyn SwitchControl, stop_others: &dyn Fn()) {
        if !self.is_atomic() || self.is_exclusive {
            return;
        }
        let next = if self.rolling_back { self.next.checked_sub(1) } else { Some(self.next) };
        let is_seen_at_once = match next.and_then(|at| self.items[*self.order.get(at)?].as_ref()) {
            Some(BatchItem::Ready(planned)) if !self.rolling_back => planned.op.is_seen_at_once(switch.objects()),
            Some(BatchItem::Done(_, undo, _)) if self.rolling_back => undo.is_seen_at_once(),
            _ => false,
        };
        if is_seen_at_once {
            self.is_exclusive = true;
            stop_others();
            switch.suspend_kernel();
        }
    }

    /// Counts the elements of an update of a whole array.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if the write has too many of these updates.
    fn count_elements(&mut self, elements: u64, keeps_undo: bool) -> Result<(), Refusal> {
        let limit = if keeps_undo { MAX_KEPT_ELEMENTS } else { MAX_SET_ELEMENTS };
        if elements > 0 && self.set_elements + elements > limit {
            let message = format!(
                "the updates of whole arrays in this write set more than {limit} elements; send them in several writes"
            );
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        self.set_elements += elements;
        Ok(())
    }

    fn step(&mut self, switch: &mut dyn SwitchControl, stop_others: &dyn Fn()) {
        self.keep_packets_out(switch, stop_others);
        if self.rolling_back {
            let Some(at) = self.next.checked_sub(1) else {
                self.finished = true;
                return;
            };
            self.next = at;
            let at = self.order[at];
            if let Some(BatchItem::Done(change, undo, before)) = self.items[at].take() {
                undo.run(switch);
                restrictions::restore(&mut self.references, before);
                self.items[at] = Some(BatchItem::Done(change, Undo::Nothing, None));
            }
            return;
        }
        let Some(&at) = self.order.get(self.next) else {
            self.finished = true;
            return;
        };
        let slot = &mut self.items[at];
        if let Some(BatchItem::Ready(PlannedUpdate { op, change, subject })) =
            slot.take_if(|it| matches!(it, BatchItem::Ready(_)))
        {
            let keeps_undo = self.atomicity != Atomicity::ContinueOnError;
            let counted = self.count_elements(op.array_elements(switch.objects()), keeps_undo);
            let references = &mut self.references;
            let replaced = counted.and_then(|()| restrictions::replace(references, &change));
            let replaced = replaced.map_err(|refusal| refusal.about(&subject));
            let done = replaced.and_then(|before| match op.run(switch) {
                Ok(undo) => Ok((undo, before)),
                Err(error) => {
                    restrictions::restore(references, before);
                    Err(Refusal::from_engine_error(&error, &subject))
                }
            });
            self.items[at] = Some(match done {
                Ok((undo, before)) if keeps_undo => BatchItem::Done(change, undo, before),
                Ok(_) => BatchItem::Done(change, Undo::Nothing, None),
                Err(refusal) => {
                    self.rolling_back = keeps_undo;
                    BatchItem::Failed(refusal)
                }
            });
        }
        // A failed update has nothing to undo, so the rollback begins with the one before it.
        if !self.rolling_back {
            self.next += 1;
        }
    }

    /// Returns the results, the changes that took effect, and the updated references.
    pub(crate) fn into_results(self) -> (Admission, Vec<Result<(), Refusal>>, Vec<ShadowChange>, References) {
        let rolled_back = self.rolling_back;
        let mut changes = Vec::new();
        let mut result = |item: Option<BatchItem>| match item {
            Some(BatchItem::Failed(refusal)) => Err(refusal),
            Some(BatchItem::Done(change, ..)) if !rolled_back => {
                changes.push(change);
                Ok(())
            }
            _ => Err(Refusal::new(Code::Aborted, "not applied, since another update of the batch failed")),
        };
        let results = self.items.into_iter().map(&mut result).collect();
        (self.admission, results, changes, self.references)
    }
}
