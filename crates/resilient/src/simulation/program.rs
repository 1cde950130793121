//! The program that simulated switches run: reads and updates of a number per row.

use crate::history::Specification;
use crate::row::RowValues;

/// An input of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramInput {
    /// Outputs the number.
    Read,
    /// Adds, and outputs the sum.
    Add(u64),
    /// Replaces the number, and outputs the former one.
    Set(u64),
    /// Inverts a bit, and outputs the number. Twice in a row, it writes the first values again.
    Toggle,
    /// Removes the number, and outputs it.
    Remove,
}

/// The number of a row. The count and the mark of the last update make orders of updates easy to tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowNumber {
    number: u64,
    updates: u32,
    mark: u32,
}

impl RowNumber {
    fn update(self, number: u64, argument: u64) -> Option<RowNumber> {
        Some(RowNumber { number, updates: self.updates + 1, mark: argument as u32 })
    }
}

/// The bit that `Toggle` inverts.
const TOGGLED: u64 = 1 << 63;

/// The program of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowProgram {
    /// Whether there are inputs that remove the row. The count of updates then restarts.
    pub has_removals: bool,
}

impl Specification for RowProgram {
    type State = Option<RowNumber>;
    type Input = ProgramInput;
    type Output = Option<RowNumber>;

    fn initial(&self) -> Option<RowNumber> {
        None
    }

    fn step(&self, state: &Option<RowNumber>, input: &ProgramInput) -> (Option<RowNumber>, Option<RowNumber>) {
        let row = state.unwrap_or_default();
        match input {
            ProgramInput::Read => (*state, *state),
            ProgramInput::Add(amount) => {
                let sum = row.update(row.number.wrapping_add(*amount), *amount);
                (sum, sum)
            }
            ProgramInput::Set(value) => (row.update(*value, *value), *state),
            ProgramInput::Toggle => {
                let toggled = Some(RowNumber { number: row.number ^ TOGGLED, ..row });
                (toggled, toggled)
            }
            ProgramInput::Remove => (None, *state),
        }
    }

    fn is_read(&self, input: &ProgramInput) -> bool {
        *input == ProgramInput::Read
    }

    fn is_past(&self, state: &Option<RowNumber>, input: &ProgramInput, output: &Option<RowNumber>) -> bool {
        let updates = |row: &Option<RowNumber>| row.map_or(0, |row| row.updates);
        let own = u32::from(matches!(input, ProgramInput::Add(_)));
        !self.has_removals && updates(state) + own > updates(output)
    }
}

/// Returns the values of a row with this number.
pub fn values_of(row: Option<RowNumber>) -> Option<RowValues> {
    let row = row?;
    let rest = u64::from(row.updates) << 32 | u64::from(row.mark);
    RowValues::new(&(u128::from(row.number) << 64 | u128::from(rest)).to_be_bytes())
}

/// Returns the number of a row with these values.
pub fn number_of(values: Option<&RowValues>) -> Option<RowNumber> {
    let bits = u128::from_be_bytes(values?.bytes().try_into().ok()?);
    Some(RowNumber { number: (bits >> 64) as u64, updates: (bits >> 32) as u32, mark: bits as u32 })
}
