//! A batch of updates on its way through the switch (specification chapter 12).

use std::sync::Arc;

use ir::Program;
use p4_constraints::References;
use p4runtime_proto::v1::write_request::Atomicity;
use switch::SwitchControl;

use crate::arbitration::Admission;
use crate::asked::{self, Before};
use crate::mirror::Change;
use crate::op::Undo;
use crate::status::{Code, Refusal};
use crate::translate::Planned;

/// One update, from plan to result.
#[derive(Debug)]
enum Item {
    Ready(Planned),
    Done(Change, Undo, Option<Before>),
    Failed(Refusal),
}

/// The updates of one write. [`Batch::run`] takes it through the switch, in one piece or in several.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) admission: Admission,
    program: Arc<Program>,
    atomicity: Atomicity,
    items: Vec<Option<Item>>,
    /// What refers to what, lent by the server for as long as the write takes.
    references: References,
    /// The next to run, or, while going back, the number that is still to undo.
    next: usize,
    going_back: bool,
    finished: bool,
}

impl Batch {
    pub(crate) fn new(
        admission: Admission,
        program: Arc<Program>,
        atomicity: Atomicity,
        plans: Vec<Result<Planned, Refusal>>,
        references: References,
    ) -> Batch {
        let hopeless = atomicity != Atomicity::ContinueOnError && plans.iter().any(Result::is_err);
        let item = |plan| {
            Some(match plan {
                Ok(planned) => Item::Ready(planned),
                Err(refusal) => Item::Failed(refusal),
            })
        };
        let items = plans.into_iter().map(item).collect();
        Batch { admission, program, atomicity, items, references, next: 0, going_back: hopeless, finished: hopeless }
    }

    /// Whether no packet may see a part of it: it has to be run in one piece then.
    pub(crate) fn is_atomic(&self) -> bool {
        self.atomicity == Atomicity::DataplaneAtomic
    }

    /// Whether it has been through the switch.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Runs up to `count` updates, or takes as many back.
    pub(crate) fn run(&mut self, switch: &mut dyn SwitchControl, count: usize) {
        assert!(Arc::ptr_eq(switch.program(), &self.program), "pipelines are not changed between writes' pieces");
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
            if let Some(Item::Done(change, undo, before)) = self.items[at].take() {
                undo.run(switch);
                asked::put_back(&mut self.references, before);
                self.items[at] = Some(Item::Done(change, Undo::Nothing, None));
            }
            return;
        }
        let Some(slot) = self.items.get_mut(self.next) else {
            self.finished = true;
            return;
        };
        if let Some(Item::Ready(Planned { op, change, subject })) = slot.take_if(|it| matches!(it, Item::Ready(_))) {
            let keeps_undo = self.atomicity != Atomicity::ContinueOnError;
            let references = &mut self.references;
            let noted = asked::replace(references, &change).map_err(|refusal| refusal.about(&subject));
            let done = noted.and_then(|before| match op.run(switch) {
                Ok(undo) => Ok((undo, before)),
                Err(error) => {
                    asked::put_back(references, before);
                    Err(Refusal::of_engine(&error, &subject))
                }
            });
            *slot = Some(match done {
                Ok((undo, before)) if keeps_undo => Item::Done(change, undo, before),
                Ok(_) => Item::Done(change, Undo::Nothing, None),
                Err(refusal) => {
                    self.going_back = keeps_undo;
                    Item::Failed(refusal)
                }
            });
        }
        // What failed has nothing to undo, so that going back begins with the one before.
        if !self.going_back {
            self.next += 1;
        }
    }

    /// The results, the changes that took effect, and the references as they are now.
    pub(crate) fn into_results(self) -> (Admission, Vec<Result<(), Refusal>>, Vec<Change>, References) {
        let rolled_back = self.going_back;
        let mut changes = Vec::new();
        let mut result = |item: Option<Item>| match item {
            Some(Item::Failed(refusal)) => Err(refusal),
            Some(Item::Done(change, ..)) if !rolled_back => {
                changes.push(change);
                Ok(())
            }
            _ => Err(Refusal::new(Code::Aborted, "not done, since another update of the batch failed")),
        };
        let results = self.items.into_iter().map(&mut result).collect();
        (self.admission, results, changes, self.references)
    }
}
