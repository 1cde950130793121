//! Outputs of simulated switches that travel with their writes.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::program::{RowNumber, number_of, values_of};
use crate::carried::CarriedOutputs;
use crate::mutant::{Mutant, Mutation};
use crate::row::{RowId, RowValues};

/// Lengths of outputs are below this number of bytes.
pub const MAX_OUTPUT_BYTES: usize = 200;

/// Bytes of an output without padding: the number of its input, and the result.
const FIXED_BYTES: usize = 8 + RESULT_BYTES;

/// A flag and a row's number.
const RESULT_BYTES: usize = 1 + 16;

/// The outputs that travel: of each row, the write and the number of the input.
#[derive(Debug, Default)]
pub struct CarriedModel {
    rows: HashMap<RowId, (u64, usize), FixedState>,
}

impl CarriedModel {
    /// Records that the output of an input travels with a write.
    pub fn sent(&mut self, row: RowId, seq: u64, number: usize) {
        self.rows.insert(row, (seq, number));
    }

    /// Records that the output of a row has returned.
    pub fn returned(&mut self, row: &RowId) {
        self.rows.remove(row);
    }

    /// Returns the input whose output is lost, now that its write is acknowledged or abandoned.
    pub fn lost(&mut self, row: &RowId, seq: u64) -> Option<usize> {
        self.rows.get(row).filter(|(of, _)| *of <= seq)?;
        self.rows.remove(row).map(|(_, number)| number)
    }
}

/// Returns an output as it travels, if it fits into `room` bytes. The result is at its end, where a mutant cuts it off.
pub fn encode((number, output): (usize, Option<RowNumber>), room: usize, mutation: Mutation) -> Option<CarriedOutputs> {
    let mut bytes = (number as u64).to_be_bytes().to_vec();
    bytes.resize(bytes.len() + number.wrapping_mul(37) % (MAX_OUTPUT_BYTES - FIXED_BYTES), 0xff);
    let values = values_of(output);
    bytes.push(u8::from(values.is_some()));
    bytes.extend(values.as_ref().map_or(&[0; 16][..], RowValues::bytes));
    if mutation.is(Mutant::OutputsTruncated) {
        bytes.truncate(room);
    }
    CarriedOutputs::new(&bytes).filter(|_| bytes.len() <= room)
}

/// Returns the number of an input, and its output.
pub fn decode(outputs: &CarriedOutputs) -> Option<(usize, Option<RowNumber>)> {
    let (number, rest) = outputs.bytes().split_first_chunk()?;
    let [has_values, values @ ..] = rest.last_chunk::<RESULT_BYTES>()?;
    let values = RowValues::new(values).filter(|_| *has_values > 0);
    Some((u64::from_be_bytes(*number) as usize, number_of(values.as_ref())))
}
