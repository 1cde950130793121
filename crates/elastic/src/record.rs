//! Validates records: the action of an entry and its parameters, as bytes.
//!
//! A record begins with the index of the action: one byte, or two (little-endian) if there are more than 256 actions.
//! The parameters follow in order, each big-endian in as few bytes as it needs, with zeros in the unused high bits.
//! The rest is zero. Generated code selects an action by its index, so an index that was not validated could run a
//! wrong action.

/// Widths of an action's parameters, and whether entries may use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionForm {
    /// Widths of the parameters, in bits.
    pub parameter_bits: Vec<u32>,
    /// Whether entries may not name the action (`@defaultonly`).
    pub is_default_only: bool,
}

impl ActionForm {
    fn bytes(&self) -> usize {
        self.parameter_bits.iter().map(|bits| bits.div_ceil(8) as usize).sum()
    }
}

/// The actions of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordForm {
    actions: Vec<ActionForm>,
}

/// Reasons why a record is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// The number of bytes is not that of the table's records.
    Length,
    /// No action has this index.
    UnknownAction(u16),
    /// The action with this index is for default entries only.
    DefaultOnly(u16),
    /// A parameter with this number has bits beyond its width.
    TooWide(usize),
    /// A byte after the parameters is not zero.
    Trailing,
}

impl RecordForm {
    /// Returns the form of records with these actions.
    pub fn new(actions: Vec<ActionForm>) -> RecordForm {
        RecordForm { actions }
    }

    /// Returns the size of the index of an action, in bytes.
    pub fn index_bytes(&self) -> usize {
        if self.actions.len() > 256 { 2 } else { 1 }
    }

    /// Returns the size of a record, in bytes.
    pub fn record_bytes(&self) -> usize {
        self.index_bytes() + self.actions.iter().map(ActionForm::bytes).max().unwrap_or(0)
    }

    /// Checks a record: its length, its action, the widths of its parameters.
    pub fn validate(&self, record: &[u8]) -> Result<(), RecordFault> {
        if record.len() != self.record_bytes() {
            return Err(RecordFault::Length);
        }
        let (index, mut rest) = record.split_at(self.index_bytes());
        let index = index.iter().rev().fold(0, |sum, byte| sum << 8 | u16::from(*byte));
        let action = self.actions.get(usize::from(index)).ok_or(RecordFault::UnknownAction(index))?;
        if action.is_default_only {
            return Err(RecordFault::DefaultOnly(index));
        }
        for (number, bits) in action.parameter_bits.iter().enumerate() {
            let (value, after) = rest.split_at(bits.div_ceil(8) as usize);
            let unused = value.len() as u32 * 8 - bits;
            if value.first().is_some_and(|first| unused > 0 && first >> (8 - unused) != 0) {
                return Err(RecordFault::TooWide(number));
            }
            rest = after;
        }
        if rest.iter().any(|byte| *byte != 0) { Err(RecordFault::Trailing) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> RecordForm {
        let action = |bits: &[u32]| ActionForm { parameter_bits: bits.to_vec(), is_default_only: false };
        RecordForm::new(vec![action(&[9, 32]), action(&[]), ActionForm { is_default_only: true, ..action(&[8]) }])
    }

    #[test]
    fn records_of_the_form_are_accepted_and_others_are_refused_by_reason() {
        let form = form();
        assert_eq!(form.record_bytes(), 7);
        assert_eq!(form.validate(&[0, 1, 0xff, 1, 2, 3, 4]), Ok(()));
        assert_eq!(form.validate(&[1, 0, 0, 0, 0, 0, 0]), Ok(()));
        assert_eq!(form.validate(&[0, 2, 0, 1, 2, 3, 4]), Err(RecordFault::TooWide(0)));
        assert_eq!(form.validate(&[1, 0, 0, 0, 0, 0, 1]), Err(RecordFault::Trailing));
        assert_eq!(form.validate(&[2, 0, 0, 0, 0, 0, 0]), Err(RecordFault::DefaultOnly(2)));
        assert_eq!(form.validate(&[3, 0, 0, 0, 0, 0, 0]), Err(RecordFault::UnknownAction(3)));
        assert_eq!(form.validate(&[0, 1]), Err(RecordFault::Length));
        assert_eq!(RecordForm::default().validate(&[0]), Err(RecordFault::UnknownAction(0)));
    }

    #[test]
    fn more_than_256_actions_take_two_bytes() {
        let form = RecordForm::new(vec![ActionForm::default(); 300]);
        assert_eq!(form.validate(&[43, 1]), Ok(()));
        assert_eq!(form.validate(&[44, 1]), Err(RecordFault::UnknownAction(300)));
    }
}
