//! Executes instructions with effects beyond the packet's headers and slots: arrays, hashes, the outgoing packet,
//! requests.

use std::fmt::Write;

use bits::Bits;
use ir::{Algorithm, CounterId, Expr, HashInput, HeaderRef, LValue, LocId, MeterId, RegisterId, Request};

use super::{Execution, report};
use crate::objects::Colour;
use crate::{BitString, Ending, Event, Requested, Watch};

impl<W: Watch + ?Sized> Execution<'_, W> {
    pub(super) fn emit(&mut self, header: &HeaderRef, loc: LocId) -> Result<(), Ending> {
        let Some(id) = self.header(header) else { return Ok(()) };
        if !self.state.headers[id].valid {
            return Ok(());
        }
        let bits = self.state.headers[id].len_bits();
        self.spend((bits / 1024) as u32, loc)?;
        let state = &mut *self.state;
        state.headers[id].fields.iter().for_each(|field| state.emitted.push(field));
        report!(self, Event::Emitted { header: id, bits, loc });
        Ok(())
    }

    pub(super) fn register_read(
        &mut self,
        place: &LValue,
        register: RegisterId,
        index: &Expr,
        loc: LocId,
    ) -> Result<(), Ending> {
        let index = self.eval_number(index);
        // An index of more than 64 bits is beyond the end of any array.
        let value = self.objects.read_in_pass(register, index.unwrap_or(u64::MAX))?;
        report!(self, Event::RegisterRead { register, index, value: &value, loc });
        self.write(place, value, loc);
        Ok(())
    }

    pub(super) fn register_write(
        &mut self,
        register: RegisterId,
        index: &Expr,
        value: &Expr,
        loc: LocId,
    ) -> Result<(), Ending> {
        let (index, value) = (self.eval_number(index), self.eval(value));
        if let Some(index) = index {
            self.objects.write_in_pass(register, index, &value)?;
        }
        report!(self, Event::RegisterWritten { register, index, value: &value, loc });
        Ok(())
    }

    pub(super) fn count(&mut self, counter: CounterId, index: &Expr, loc: LocId) {
        let index = self.eval_number(index);
        report!(self, Event::Counted { counter, index, loc });
        if let Some(index) = index {
            self.objects.count(counter, index, self.state.data.len() as u64);
        }
    }

    pub(super) fn meter_execute(&mut self, meter: MeterId, index: &Expr, place: &LValue, loc: LocId) {
        let index = self.eval_number(index);
        let bytes = self.state.data.len() as u64;
        let colour = index.map_or(Colour::Green, |index| self.objects.execute_meter(meter, index, bytes, self.now.ns));
        report!(self, Event::Metered { meter, index, colour, loc });
        self.write_colour(place, colour, loc);
    }

    pub(super) fn write_colour(&mut self, place: &LValue, colour: Colour, loc: LocId) {
        let value = Bits::new(colour as u128, self.lvalue_width(place));
        self.write(place, value, loc);
    }

    pub(super) fn compute(&mut self, place: &LValue, algorithm: Algorithm, data: &[HashInput], loc: LocId) {
        let mut covered = std::mem::take(&mut self.covered);
        covered.clear();
        for piece in data {
            self.cover(&mut covered, piece);
        }
        let value = self.objects.compute(algorithm, &covered, self.lvalue_width(place));
        report!(self, Event::Computed { algorithm, data: covered.as_bytes(), value: &value, loc });
        self.covered = covered;
        self.write(place, value, loc);
    }

    fn cover(&self, covered: &mut BitString, piece: &HashInput) {
        match piece {
            HashInput::Value(value) => covered.push(&self.eval(value)),
            HashInput::Varbit(header, field) => covered.push(&self.varbit(header, *field)),
            HashInput::Payload => covered.push_bytes(self.state.payload()),
        }
    }

    pub(super) fn request(&mut self, request: &Request, loc: LocId) -> Result<(), Ending> {
        self.spend(1, loc)?;
        let number = |expr: &Expr| self.eval(expr).low_u64() as u32;
        let request = match request {
            Request::Clone { ingress, session, keep } => {
                Requested::Clone { ingress: *ingress, session: number(session), keep: *keep }
            }
            Request::Resubmit(keep) => Requested::Resubmit(*keep),
            Request::Recirculate(keep) => Requested::Recirculate(*keep),
            Request::Truncate(bytes) => Requested::Truncate(number(bytes)),
            Request::Digest(digest, values) => {
                Requested::Digest(*digest, values.iter().map(|value| self.eval(value)).collect())
            }
        };
        report!(self, Event::Requested { request: &request, loc });
        self.state.requests.push((request, loc));
        Ok(())
    }

    /// The message is formatted only if the observer wants events.
    pub(super) fn log(&mut self, text: &str, values: &[Expr], loc: LocId) {
        if !self.watch.wants_events() {
            return;
        }
        let mut pieces = text.split("{}");
        let mut message = pieces.next().unwrap_or_default().to_string();
        let mut values = values.iter();
        for piece in pieces {
            match values.next() {
                Some(value) => _ = write!(message, "{}", self.eval(value).to_big()),
                None => message.push_str("{}"),
            }
            message.push_str(piece);
        }
        self.watch.event(self.program, Event::Log { text: &message, loc });
    }
}
