//! Applies tables: key, lookup, choice of an action, and its body.

use std::borrow::Cow;

use bits::Bits;
use ir::{LocId, SlotId, TableId};
use smallvec::SmallVec;

use super::{Execution, report};
use crate::objects::{Colour, JudgedMiss, SelectedAction};
use crate::tables::Lookup;
use crate::{Ending, Event, Watch};

/// Value of the `action` slot of an application in which no action ran; no action has this index.
pub const NO_ACTION: u64 = u32::MAX as u64;

impl<W: Watch + ?Sized> Execution<'_, W> {
    pub(super) fn apply(
        &mut self,
        id: TableId,
        hit: Option<SlotId>,
        action: Option<SlotId>,
        loc: LocId,
    ) -> Result<(), Ending> {
        let program = self.program;
        let table = &program.tables[id];
        let key: SmallVec<[Bits; 4]> = table.keys.iter().map(|key| self.eval(&key.expr)).collect();
        // The row of a key may have the entry instead of the table.
        let mut answered = None;
        let entry = match self.objects.look_up(id, table, &key) {
            Lookup::Hit(handle) => Some(handle),
            Lookup::Miss if self.objects.judges_misses(id) => {
                match self.objects.judge_miss(id, &key) {
                    JudgedMiss::Refused => return Err(Ending::RowRefused),
                    JudgedMiss::Answered(row) => answered = Some(row),
                    JudgedMiss::Miss => {}
                }
                None
            }
            Lookup::Miss => None,
            Lookup::Pending => return Err(Ending::Pending(id)),
        };

        // As in BMv2 a miss is neither counted nor metered; it is green.
        let bytes = self.state.data.len() as u64;
        let colour = entry.and_then(|handle| self.objects.record_hit_if_needed(id, handle, bytes, self.now.ns));
        if let Some(meter) = table.meter {
            self.state.colours[meter] = colour.unwrap_or(Colour::Green);
        }

        let chosen = match answered.and_then(|row| self.objects.answer_call(row)) {
            Some(call) => SelectedAction { call: Some(Cow::Borrowed(call)), member: None },
            None => self.objects.choose(id, table, entry, &key),
        };
        let wants_events = self.watch.wants_events();
        let watched = entry.filter(|_| wants_events);
        let shown = watched.map(|handle| self.objects.control().tables[id].entry(handle));
        let shown = shown.or_else(|| self.objects.answer_entry(answered.filter(|_| wants_events)?));
        let call = chosen.call.as_ref();
        report!(
            self,
            Event::Applied {
                table: id,
                key: &key,
                entry: shown.as_ref(),
                handle: watched.map(|handle| self.objects.entry_handle(id, handle)),
                member: chosen.member,
                action: call.map(|call| call.action),
                args: call.map(|call| call.args.as_slice()).unwrap_or_default(),
                loc,
            }
        );
        if let Some((meter, colour)) = table.meter.zip(colour) {
            report!(self, Event::Metered { meter, index: None, colour, loc });
        }

        let mut ran = NO_ACTION;
        if let Some(call) = call {
            let program_action = &program.actions[call.action];
            for (param, arg) in program_action.params.iter().zip(&call.args) {
                self.state.slots[param.slot] = arg.clone();
            }
            if action.is_some() {
                let index = self.objects.control().tables[id].action_index(call.action);
                ran = index.expect("entries are checked against the table's actions") as u64;
            }
            self.body(program_action.body)?;
        }
        if let Some(slot) = hit {
            self.state.set_slot_to(slot, u64::from(entry.is_some() || answered.is_some()));
        }
        if let Some(slot) = action {
            self.state.set_slot_to(slot, ran);
        }
        Ok(())
    }
}
