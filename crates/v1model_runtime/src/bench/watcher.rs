//! Reports the interpreter's position to the sampler.

use engine::{Event, PacketState, Watch};
use ir::{BodyId, Program, TableId};
use switch::trace::Recorder;
use v1model::ProbedPart;

use super::sampler;

/// Reports the interpreter's position to this thread's sampler.
#[derive(Debug, Default)]
pub struct Watcher {
    body: Option<BodyId>,
    table: Option<TableId>,
}

impl Watcher {
    fn ended(&self, part: ProbedPart) {
        sampler::with(|sampler| sampler.ended(part.number()));
    }

    /// Attributes the time since the last event to the table whose action runs, else to the body.
    fn here(&self) {
        match (self.table, self.body) {
            (Some(table), _) => self.ended(ProbedPart::Table(table)),
            (None, Some(body)) => self.ended(ProbedPart::Body(body)),
            (None, None) => self.ended(ProbedPart::Before(0)),
        }
    }
}

impl Watch for Watcher {
    fn event(&mut self, _: &Program, event: Event<'_>) {
        match event {
            // The time since the previous event was spent on the key and the lookup.
            Event::Applied { table, action, .. } => {
                self.ended(ProbedPart::Table(table));
                self.table = action.map(|_| table);
            }
            Event::BodyEnds { body, .. } => {
                self.here();
                self.table = None;
                if self.body == Some(body) {
                    self.body = None;
                }
            }
            _ => self.here(),
        }
    }
}

impl Recorder for Watcher {
    fn records(&self) -> bool {
        true
    }

    fn section(&mut self, _: usize, _: &str, _: &Program, body: BodyId, _: &PacketState) {
        self.ended(ProbedPart::Before(0));
        self.body = Some(body);
        self.table = None;
    }
}
