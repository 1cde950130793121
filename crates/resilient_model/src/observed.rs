//! The inputs and outputs of a run, without details that do not affect the verdict.

use resilient::history::{Invocation, Specification, Verdict, check};

use crate::bounds::RowInput;

/// Maximum number of states that a search for an order visits. With eight inputs there are fewer.
const MAX_STATES: usize = 100_000;

/// The sequential program of a row. An input is its kind and its number.
struct SetProgram;

/// Returns the set after an input.
pub fn set_after(set: u8, number: u8, input: RowInput) -> u8 {
    match input {
        RowInput::Read => set,
        RowInput::Add => set | 1 << number,
        RowInput::Clear => 0,
    }
}

impl Specification for SetProgram {
    type State = u8;
    type Input = (RowInput, u8);
    type Output = u8;

    fn initial(&self) -> u8 {
        0
    }

    fn step(&self, set: &u8, (input, number): &(RowInput, u8)) -> (u8, u8) {
        let after = set_after(*set, *number, *input);
        (after, after)
    }

    fn is_read(&self, (input, _): &(RowInput, u8)) -> bool {
        *input == RowInput::Read
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ObservedInput {
    row: u8,
    /// The switch and its start.
    at: (u8, u8),
    input: RowInput,
    called: u8,
    returned: Option<(u8, u8)>,
    /// Whether the program has run with the input.
    has_run: bool,
}

/// The inputs of a run. Times encode only which outputs left before which inputs arrived: calls have even times and
/// outputs odd ones, and a new time begins with a call after an output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObservedHistory {
    inputs: Vec<ObservedInput>,
    time: u8,
    has_output: bool,
}

impl ObservedHistory {
    /// Returns the number of inputs.
    pub fn len(&self) -> u8 {
        self.inputs.len() as u8
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Returns the kind of an input.
    pub fn input(&self, number: u8) -> RowInput {
        self.inputs[usize::from(number)].input
    }

    /// Records an input and returns its number.
    pub fn called(&mut self, row: u8, at: (u8, u8), input: RowInput) -> u8 {
        if std::mem::take(&mut self.has_output) {
            self.time += 2;
        }
        self.inputs.push(ObservedInput { row, at, input, called: self.time, returned: None, has_run: false });
        self.len() - 1
    }

    /// Records that the program runs with an input.
    pub fn ran(&mut self, number: u8) {
        self.inputs[usize::from(number)].has_run = true;
    }

    /// Records an output, and returns the violation, if there is one.
    pub fn returned(&mut self, number: u8, output: u8) -> Option<&'static str> {
        let time = self.time + 1;
        self.has_output = true;
        let ObservedInput { row, at, returned, .. } = self.inputs[usize::from(number)];
        if returned.is_some() {
            return Some("two outputs of an input");
        }
        self.inputs[usize::from(number)].returned = Some((output, time));
        let is_overtaken = |later: &ObservedInput| (later.row, later.at) == (row, at) && later.returned.is_some();
        if self.inputs[usize::from(number) + 1..].iter().any(is_overtaken) {
            return Some("outputs in another order than inputs");
        }
        match check(&SetProgram, &self.of_row(row), MAX_STATES) {
            Verdict::Linearizable => None,
            Verdict::Violation => Some("not linearizable"),
            Verdict::Undecided => Some("undecided"),
        }
    }

    fn of_row(&self, row: u8) -> Vec<Invocation<(RowInput, u8), u8>> {
        let numbered = self.inputs.iter().zip(0..).filter(|(input, _)| input.row == row && input.has_run);
        let invocation = |(input, number): (&ObservedInput, u8)| Invocation {
            input: (input.input, number),
            called: u64::from(input.called),
            returned: input.returned.map(|(output, at)| (output, u64::from(at))),
        };
        numbered.map(invocation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_lacks_what_was_seen_before_is_found() {
        let mut history = ObservedHistory::default();
        let write = history.called(0, (0, 0), RowInput::Add);
        history.ran(write);
        let early = history.called(0, (1, 0), RowInput::Read);
        history.ran(early);
        assert_eq!(history.returned(write, 1), None);
        let late = history.called(0, (1, 0), RowInput::Read);
        history.ran(late);
        assert_eq!(history.clone().returned(early, 0), None, "it came before the output");
        assert_eq!(history.clone().returned(late, 1), None);
        assert_eq!(history.returned(late, 0), Some("not linearizable"));
    }

    #[test]
    fn order_and_number_of_outputs_are_checked() {
        let mut history = ObservedHistory::default();
        let numbers = [0; 2].map(|row| history.called(row, (0, 0), RowInput::Read));
        numbers.iter().for_each(|number| history.ran(*number));
        assert_eq!(history.returned(numbers[1], 0), None);
        assert_eq!(history.clone().returned(numbers[1], 0), Some("two outputs of an input"));
        assert_eq!(history.returned(numbers[0], 0), Some("outputs in another order than inputs"));
    }
}
