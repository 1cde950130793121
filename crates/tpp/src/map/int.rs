//! Relates the map to In-band Network Telemetry 2.1: the row for each field of a hop's metadata.

use super::{INT_FIELDS, IntField, ROWS, StatRow};

/// A field of INT metadata, and the row that fills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntSource {
    /// The field.
    pub field: IntField,
    /// The row; `None` if the switch has no such value. The field is then all ones (INT 2.1, section 5.7.2).
    pub row: Option<&'static StatRow>,
}

/// Returns the fields that an instruction bitmap requests, in wire order. Bit 0 is the most significant.
/// Bits without fields in the specification request nothing.
pub fn int_sources(bitmap: u16) -> impl Iterator<Item = IntSource> {
    let requested = INT_FIELDS.iter().filter(move |field| bitmap >> (15 - field.bit) & 1 == 1);
    requested.map(|field| {
        let row = ROWS.iter().find(|row| row.int == Some((field.bit, field.name)));
        IntSource { field: *field, row }
    })
}
