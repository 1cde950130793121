//! A batch of updates and its execution (specification chapter 12).

use std::sync::Arc;

use ir::Program;
use p4_constraints::References;
use p4runtime_proto::v1::write_request::Atomicity;
use switch::SwitchControl;

use crate::arbitration::Admission;
use crate::mirror::MirrorChange;
use crate::restrictions::{self, ReplacedReferences};
use crate::status::{Code, Refusal};
use crate::switch_ops::Undo;
use crate::translate::PlannedUpdate;

/// An update, from plan to result.
#[derive(Debug)]
enum BatchItem {
    Ready(PlannedUpdate),
    Done(MirrorChange, Undo, Option<ReplacedReferences>),
    Failed(Refusal),
}

/// The updates of one write. [`WriteBatch::run`] executes them, in one piece or in several.
#[derive(Debug)]
pub(crate) struct WriteBatch {
    pub(crate) admission: Admission,
    program: Arc<Program>,
    atomicity: Atomicity,
    items: Vec<Option<BatchItem>>,
    /// References between entities, lent by the server for the duration of the write.
    references: References,
    /// Index of the next update to run or, during a rollback, number of updates still to undo.
    next: usize,
    going_back: bool,
    finished: bool,
}

impl WriteBatch {
    pub(crate) fn new(
        admission: Admission,
        program: Arc<Program>,
        atomicity: Atomicity,
        plans: Vec<Result<PlannedUpdate, Refusal>>,
        references: References,
    ) -> WriteBatch {
        let hopeless = atomicity != Atomicity::ContinueOnError && plans.iter().any(Result::is_err);
        let item = |plan| {
            Some(match plan {
                Ok(planned) => BatchItem::Ready(planned),
                Err(refusal) => BatchItem::Failed(refusal),
            })
        };
        let items = plans.into_iter().map(item).collect();
        WriteBatch {
            admission,
            program,
            atomicity,
            items,
            references,
            next: 0,
            going_back: hopeless,
            finished: hopeless,
        }
    }

    /// Whether no packet may see a part of the batch, so that it must run in one piece.
    pub(crate) fn is_atomic(&self) -> bool {
        self.atomicity == Atomicity::DataplaneAtomic
    }

    /// Whether all updates have run or were rolled back.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Runs up to `count` updates, or rolls back as many.
    pub(crate) fn run(&mut self, switch: &mut dyn SwitchControl, count: usize) {
        assert!(Arc::ptr_eq(switch.program(), &self.program), "the pipeline does not change during a write");
        for _ in 0..count {
            if self.finished {
                return;
            }
            self.step(switch);
        }
    }

    fn step(&mut self, switch: &mut dyn SwitchControl) {
        if self.going_back {
            let Some(at) = self.next.checked_sub(1) else {
                self.finished = true;
                return;
            };
            self.next = at;
            if let Some(BatchItem::Done(change, undo, before)) = self.items[at].take() {
                undo.run(switch);
                restrictions::put_back(&mut self.references, before);
                self.items[at] = Some(BatchItem::Done(change, Undo::Nothing, None));
            }
            return;
        }
        let Some(slot) = self.items.get_mut(self.next) else {
            self.finished = true;
            return;
        };
        if let Some(BatchItem::Ready(PlannedUpdate { op, change, subject })) =
            slot.take_if(|it| matches!(it, BatchItem::Ready(_)))
        {
            let keeps_undo = self.atomicity != Atomicity::ContinueOnError;
            let references = &mut self.references;
            let noted = restrictions::replace(references, &change).map_err(|refusal| refusal.about(&subject));
            let done = noted.and_then(|before| match op.run(switch) {
                Ok(undo) => Ok((undo, before)),
                Err(error) => {
                    restrictions::put_back(references, before);
                    Err(Refusal::of_engine(&error, &subject))
                }
            });
            *slot = Some(match done {
                Ok((undo, before)) if keeps_undo => BatchItem::Done(change, undo, before),
                Ok(_) => BatchItem::Done(change, Undo::Nothing, None),
                Err(refusal) => {
                    self.going_back = keeps_undo;
                    BatchItem::Failed(refusal)
                }
            });
        }
        // A failed update has nothing to undo, so the rollback begins with the one before it.
        if !self.going_back {
            self.next += 1;
        }
    }

    /// Returns the results, the changes that took effect, and the present references.
    pub(crate) fn into_results(self) -> (Admission, Vec<Result<(), Refusal>>, Vec<MirrorChange>, References) {
        let rolled_back = self.going_back;
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
