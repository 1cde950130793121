//! Translates entries of a program's table into records of remote memory, and back.

use bits::Bits;
use elastic::cell::CellForm;
use elastic::keys::KeyForm;
use elastic::layout::{LayoutKind, TableLayout};
use elastic::record::{ActionForm, RecordForm};
use engine::ActionCall;
use ir::{ActionId, ELASTIC_EXPANSION_BITS, ElasticPrefix, ElasticSettings, KeyValue, Program};

use crate::ElasticError;

/// Forms and sizes of an `@elastic` table.
#[derive(Clone, Debug)]
pub struct EntryForm {
    /// The settings of the annotation.
    pub settings: ElasticSettings,
    /// Name of the table.
    pub name: String,
    /// Number of the table among those of its switch.
    pub(crate) number: u32,
    actions: Vec<(ActionId, Vec<u32>)>,
    keys: KeyForm,
    records: RecordForm,
}

/// Returns the form of a table's keys: the exact elements, and then the `lpm` one, each in whole bytes.
fn key_form(program: &Program, settings: &ElasticSettings) -> KeyForm {
    let bytes = |bits: u32| bits.div_ceil(8) as usize;
    let all = program.tables[settings.table].keys.iter().map(|key| bytes(key.width)).sum();
    match &settings.prefix {
        None => KeyForm::Exact { bytes: all },
        Some(ElasticPrefix { bits, lengths, .. }) => KeyForm::Prefix {
            exact_bytes: all - bytes(*bits),
            bits: *bits,
            lengths: lengths.clone(),
            expansion_bits: ELASTIC_EXPANSION_BITS,
        },
    }
}

impl EntryForm {
    /// Returns the forms of the `@elastic` tables of a valid program.
    ///
    /// # Panics
    /// If an annotation is not valid.
    pub fn all(program: &Program) -> Vec<EntryForm> {
        let tables = program.elastic_tables().expect("a valid program has valid annotations");
        (0..).zip(tables).map(|(number, settings)| EntryForm::new(program, number, settings)).collect()
    }

    fn new(program: &Program, number: u32, settings: ElasticSettings) -> EntryForm {
        let keys = key_form(program, &settings);
        let table = &program.tables[settings.table];
        let widths = |action: ActionId| -> Vec<u32> {
            program.actions[action].params.iter().map(|param| program.slots[param.slot].width).collect()
        };
        let actions = table.actions.iter().map(|action| (action.action, widths(action.action))).collect();
        let records = table
            .actions
            .iter()
            .map(|action| ActionForm { parameter_bits: widths(action.action), is_default_only: action.default_only });
        EntryForm {
            settings,
            number,
            name: table.name.clone(),
            actions,
            keys,
            records: RecordForm::new(records.collect()),
        }
    }

    /// Returns the form of keys.
    pub fn keys(&self) -> &KeyForm {
        &self.keys
    }

    /// Returns how much of the table's size an entry takes: a prefix, its maximum number of cells.
    pub fn cell_count(&self, keys: &[KeyValue]) -> u64 {
        let length = self.settings.prefix.as_ref().and_then(|prefix| match keys.get(prefix.element)? {
            KeyValue::Lpm(_, length) => Some(*length),
            KeyValue::Any => Some(0),
            _ => None,
        });
        length.map_or(1, |length| self.keys.cell_count(length) as u64)
    }

    /// Checks that the table has room for entries that take this much of its size.
    ///
    /// # Errors
    /// If it has not.
    pub fn check_cells(&self, counted: u64) -> Result<(), ElasticError> {
        let is_expanded = self.settings.prefix.as_ref().is_some_and(|prefix| !prefix.has_all_lengths());
        if is_expanded && counted > u64::from(self.settings.entries) {
            return Err(ElasticError::Cells(self.name.clone(), counted, self.settings.entries));
        }
        Ok(())
    }

    /// Returns the form of records.
    pub(crate) fn records(&self) -> &RecordForm {
        &self.records
    }

    /// Returns the number of cells of the table.
    pub(crate) fn cells(&self) -> u32 {
        TableLayout::cells_for(self.settings.entries, self.settings.load_per_mille)
    }

    /// Returns the kind of layout.
    pub(crate) fn layout_kind(&self) -> LayoutKind {
        LayoutKind::Windows { cells: self.settings.window }
    }

    /// Returns the layout of the table.
    pub fn layout(&self) -> TableLayout {
        let cell = CellForm::new(self.keys.probe_bytes(), self.records.record_bytes());
        TableLayout::new(self.layout_kind(), cell, self.number, self.cells())
    }

    /// Returns the record of an action of the table.
    ///
    /// # Panics
    /// If the call is not one of the table's actions with its arguments.
    pub fn record(&self, call: &ActionCall) -> Vec<u8> {
        let index = self.actions.iter().position(|(action, _)| *action == call.action);
        let index = index.expect("entries are checked against the table's actions");
        let mut record = (index as u16).to_le_bytes()[..self.records.index_bytes()].to_vec();
        call.args.iter().for_each(|argument| record.extend(argument.to_be_bytes()));
        record.resize(self.records.record_bytes(), 0);
        record
    }

    /// Returns the action of a record; `None` if the record is not valid.
    pub fn call(&self, record: &[u8]) -> Option<ActionCall> {
        self.records.validate(record).ok()?;
        let (index, mut rest) = record.split_at(self.records.index_bytes());
        let index = index.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (action, widths) = self.actions.get(index)?;
        let mut args = Vec::with_capacity(widths.len());
        for width in widths {
            let (value, after) = rest.split_at(width.div_ceil(8) as usize);
            args.push(Bits::from_be_bytes(value, *width));
            rest = after;
        }
        Some(ActionCall { action: *action, args })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of the table's entries counts by the annotation, the table itself by the form of its keys.
    #[test]
    fn annotation_and_form_of_keys_agree_on_the_cells_of_a_prefix() {
        for lengths in [vec![32], vec![16, 24, 32], (0..=32).collect(), vec![5, 32]] {
            let prefix = ElasticPrefix { element: 0, bits: 32, lengths: lengths.clone() };
            let expansion_bits = ELASTIC_EXPANSION_BITS;
            let form = KeyForm::Prefix { exact_bytes: 2, bits: 32, lengths, expansion_bits };
            for length in 0..=32 {
                assert_eq!(prefix.cell_count(length), form.cell_count(length) as u64, "{length} with {form:?}");
            }
        }
    }
}
