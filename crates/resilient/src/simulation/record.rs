//! Records the inputs and outputs of a run, and judges them.

use std::collections::BTreeMap;

use super::program::{ProgramInput, RowNumber, RowProgram};
use super::{SimulationReport, Violation};
use crate::history::{Invocation, Verdict, check};

/// The inputs of a row with their outputs.
pub type RowHistory = Vec<Invocation<ProgramInput, Option<RowNumber>>>;

/// Maximum number of states that the search of one row visits.
const MAX_STATES: usize = 2_000_000;

#[derive(Clone, Copy, Debug)]
struct RecordedInput {
    row: u32,
    /// The switch and its start.
    at: (u32, u64),
    input: ProgramInput,
    called: u64,
    returned: Option<(Option<RowNumber>, u64)>,
    /// Whether the program has run with this input. An input that a switch dropped before has no effect.
    has_run: bool,
    /// Whether the switch dropped the input because too many packets waited.
    is_dropped: bool,
}

/// The inputs and outputs of a run.
#[derive(Debug, Default)]
pub struct RunHistory {
    inputs: Vec<RecordedInput>,
    /// The newest input that had an output, for each row at each switch.
    last: BTreeMap<(u32, (u32, u64)), usize>,
    violations: Vec<Violation>,
}

impl RunHistory {
    /// Records an input and returns its number.
    pub fn called(&mut self, row: u32, at: (u32, u64), input: ProgramInput, called: u64) -> usize {
        self.inputs.push(RecordedInput { row, at, input, called, returned: None, has_run: false, is_dropped: false });
        self.inputs.len() - 1
    }

    /// Records that the program has run with an input.
    pub fn ran(&mut self, number: usize) {
        self.inputs[number].has_run = true;
    }

    /// Records that a switch has no room for an input, or has lost its output.
    pub fn dropped(&mut self, number: usize) {
        self.inputs[number].is_dropped = true;
    }

    /// Records an output.
    pub fn returned(&mut self, number: usize, output: Option<RowNumber>, returned: u64) {
        let input = &mut self.inputs[number];
        if input.returned.is_some() {
            self.violations.push(Violation::TwoOutputs(input.row));
            return;
        }
        input.returned = Some((output, returned));
        let last = self.last.entry((input.row, input.at)).or_insert(number);
        if *last > number {
            self.violations.push(Violation::Reordered(input.row));
        }
        *last = number;
    }

    /// Records the inputs from `first` on that have no output.
    pub fn expect_outputs(&mut self, first: usize) {
        let silent = self.inputs[first..].iter().filter(|input| input.returned.is_none() && !input.is_dropped);
        let violations: Vec<Violation> = silent.map(|input| Violation::NoOutput(input.row)).collect();
        self.violations.extend(violations);
    }

    /// Returns the number of inputs.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Returns the history of a row, without the inputs that were dropped.
    pub fn of_row(&self, row: u32) -> RowHistory {
        let of_row = self.inputs.iter().filter(|input| input.row == row && input.has_run);
        of_row.map(|input| Invocation { input: input.input, called: input.called, returned: input.returned }).collect()
    }

    /// Judges the histories of all rows.
    pub fn judge(&self, rows: u32, program: RowProgram, report: &mut SimulationReport) {
        report.inputs = self.inputs.len();
        report.outputs = self.inputs.iter().filter(|input| input.returned.is_some()).count();
        report.violations.extend_from_slice(&self.violations);
        for row in 0..rows {
            match check(&program, &self.of_row(row), MAX_STATES) {
                Verdict::Linearizable => {}
                Verdict::Violation => report.violations.push(Violation::NotLinearizable(row)),
                Verdict::Undecided => report.undecided += 1,
            }
        }
    }
}
