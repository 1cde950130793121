//! Executes the parser instructions. Errors are those of `core.p4`, by name; an error ends the parser, and headers
//! extracted before stay valid.

use bits::Bits;
use ir::{BlockId, Expr, HeaderRef, LValue, LocId, Match, SelectCase};
use smallvec::SmallVec;

use super::{Execution, report};
use crate::packet::error_named;
use crate::{Ending, Event, Watch};

impl<W: Watch + ?Sized> Execution<'_, W> {
    fn raise(&mut self, error: u32, loc: LocId) -> Ending {
        self.state.error = error;
        report!(self, Event::ParserError { error, loc });
        Ending::Reject
    }

    fn raise_named(&mut self, name: &str, loc: LocId) -> Ending {
        let error = error_named(self.program, name);
        self.raise(error, loc)
    }

    /// Returns the number of bits after the cursor.
    fn left_bits(&self) -> usize {
        self.state.data.len() * 8 - self.state.cursor_bits
    }

    /// Extracts a header. The checks come in BMv2's order.
    pub(super) fn extract(
        &mut self,
        header: &HeaderRef,
        varbit_width: Option<&Expr>,
        loc: LocId,
    ) -> Result<(), Ending> {
        let Some(id) = self.header(header) else { return Err(self.raise_named("StackOutOfBounds", loc)) };
        let layout = self.program.layout(id);
        let varbit_bits = varbit_width.map_or(0, |width| self.eval(width).low_u64() as usize);
        let bits = layout.fixed_bits() as usize + varbit_bits;
        if varbit_width.is_some() && !bits.is_multiple_of(8) {
            return Err(self.raise_named("ParserInvalidArgument", loc));
        }
        if bits > self.left_bits() {
            return Err(self.raise_named("PacketTooShort", loc));
        }
        let largest = layout.varbit_field().map_or(0, |field| layout.fields[field].width as usize);
        if varbit_bits > largest {
            return Err(self.raise_named("HeaderTooShort", loc));
        }
        let at_bit = self.state.cursor_bits;
        let state = &mut *self.state;
        let header = &mut state.headers[id];
        for (value, field) in header.fields.iter_mut().zip(&layout.fields) {
            let width = if field.varbit { varbit_bits as u32 } else { field.width };
            *value = Bits::read(&state.data, state.cursor_bits, width);
            state.cursor_bits += width as usize;
        }
        header.valid = true;
        report!(self, Event::Extracted { header: id, at_bit, bits, loc });
        Ok(())
    }

    pub(super) fn lookahead(&mut self, dst: &LValue, skip: u32, loc: LocId) -> Result<(), Ending> {
        let width = self.lvalue_width(dst);
        if skip as usize + width as usize > self.left_bits() {
            return Err(self.raise_named("PacketTooShort", loc));
        }
        let value = Bits::read(&self.state.data, self.state.cursor_bits + skip as usize, width);
        self.write(dst, value, loc);
        Ok(())
    }

    pub(super) fn advance(&mut self, width: &Expr, loc: LocId) -> Result<(), Ending> {
        let bits = self.eval(width).low_u64() as usize;
        if bits > self.left_bits() {
            return Err(self.raise_named("PacketTooShort", loc));
        }
        self.state.cursor_bits += bits;
        report!(self, Event::Advanced { bits, loc });
        Ok(())
    }

    pub(super) fn verify(&mut self, condition: &Expr, error: &Expr, loc: LocId) -> Result<(), Ending> {
        if self.eval(condition).is_true() {
            return Ok(());
        }
        let error = self.eval(error).low_u64() as u32;
        Err(self.raise(error, loc))
    }

    pub(super) fn select(&mut self, keys: &[Expr], cases: &[SelectCase], loc: LocId) -> Result<BlockId, Ending> {
        let keys: SmallVec<[Bits; 4]> = keys.iter().map(|key| self.eval(key)).collect();
        let case = cases.iter().position(|case| self.case_matches(&case.matches, &keys));
        let case = case.map(|index| (index, cases[index].target));
        report!(self, Event::Selected { keys: &keys, case, loc });
        match case {
            Some((_, target)) => Ok(target),
            None => Err(self.raise_named("NoMatch", loc)),
        }
    }

    fn case_matches(&self, matches: &[Match], keys: &[Bits]) -> bool {
        let mut rest = keys;
        matches.iter().all(|one| {
            let covered = match one {
                Match::ValueSet(set) => self.objects.control().value_sets[*set].field_count(),
                _ => 1,
            };
            let (these, others) = rest.split_at(covered);
            rest = others;
            match one {
                Match::Any => true,
                Match::Value(value) => these[0] == self.eval(value),
                Match::Mask(value, mask) => {
                    let mask = self.eval(mask);
                    these[0].and(&mask) == self.eval(value).and(&mask)
                }
                Match::Range(low, high) => {
                    these[0].unsigned_cmp(&self.eval(low)).is_ge() && these[0].unsigned_cmp(&self.eval(high)).is_le()
                }
                Match::RangeSigned(low, high) => {
                    these[0].signed_cmp(&self.eval(low)).is_ge() && these[0].signed_cmp(&self.eval(high)).is_le()
                }
                Match::ValueSet(set) => self.objects.control().value_sets[*set].contains(these),
            }
        })
    }
}
