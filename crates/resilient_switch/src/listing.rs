//! Lists the rows of a switch in pages, with keys and values as text.

use bits::Bits;
use engine::{RowState, StateRow};
use ir::{Annotation, Program, ResilientGroup};
use resilient::{RowId, RowProgress, RowReport, RowValues};
use switch::trace::TracedValue;
use switch::{RowSwitch, Time};

use crate::ResilientSwitch;
use crate::row_format::{ArrayFormat, RowKind};

/// Maximum number of places that a listing, or a step of a move, visits: packets wait meanwhile.
pub(crate) const MAX_SCANNED: u64 = 16_384;

/// Maximum number of rows that one listing formats, including those that it then leaves out.
const MAX_SHOWN: usize = 512;

/// Maximum length of the texts of a listing, in bytes, unless it has only one row.
const MAX_LISTING_BYTES: usize = 48 << 10;

/// A position in the list of all rows: the place of a group, and a place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowCursor {
    /// The index of the group.
    pub group: u32,
    /// The index of the array, or the number of the row of tables.
    pub index: u64,
}

impl RowCursor {
    /// Returns the row at this place.
    pub(crate) fn row(self) -> StateRow {
        StateRow { group: self.group, index: self.index }
    }

    /// Returns the position after this place.
    pub(crate) fn after(self) -> RowCursor {
        RowCursor { index: self.index + 1, ..self }
    }
}

/// Selects the rows of a listing.
#[derive(Clone, Debug, Default)]
pub struct RowQuery {
    /// The index of a group; all groups if omitted.
    pub group: Option<u32>,
    /// The key as it is shown, or its beginning and `*`; all keys if empty.
    pub key: String,
    /// The first place to visit.
    pub from: RowCursor,
    /// Maximum number of rows.
    pub most: usize,
}

/// Some rows, and the position of the next ones.
#[derive(Clone, Debug, Default)]
pub struct RowListing {
    /// The rows, in the order of the groups and of the places in them.
    pub rows: Vec<ListedRow>,
    /// The position after the last row that was visited; `None` at the end.
    pub next: Option<RowCursor>,
}

/// A row as text.
#[derive(Clone, Debug)]
pub struct ListedRow {
    /// The group.
    pub group: String,
    /// The elements of the key: an index, or the fields of the tables.
    pub key: Vec<TracedValue>,
    /// The newest values, if the row has any: the arrays' elements, or the data of the entry.
    pub values: Vec<TracedValue>,
    /// The epoch of the grant; 0 without one.
    pub epoch: u64,
    /// The progress.
    pub progress: RowProgress,
    /// Whether writes are not acknowledged.
    pub is_pending: bool,
    /// Time since the grant, or since the last acknowledgement after it. `None` while the row is asked for.
    pub acknowledged_ns: Option<u64>,
}

impl ListedRow {
    /// Returns the key as it is shown: its elements, separated by commas.
    pub fn shown_key(&self) -> String {
        let shown: Vec<&str> = self.key.iter().map(|value| value.shown.as_str()).collect();
        shown.join(",")
    }

    fn text_bytes(&self) -> usize {
        let values = self.key.iter().chain(&self.values);
        let texts: usize = values.map(|value| value.name.len() + value.value.len() + value.shown.len() + 64).sum();
        self.group.len() + texts + 128
    }
}

/// Returns a value as text: by its annotation `@format`, or else by its name and width.
fn shown(name: &str, annotations: &[Annotation], value: &Bits) -> TracedValue {
    let format = annotations.iter().find(|annotation| annotation.name == "format");
    let is_address = format.is_some_and(|format| format.text.trim().ends_with("_ADDRESS"));
    let traced = TracedValue::new(name, value);
    if is_address { TracedValue { shown: TracedValue::new("address", value).shown, ..traced } } else { traced }
}

/// Whether a key matches a query.
fn is_meant(key: &str, named: &str) -> bool {
    named.strip_suffix('*').map_or(key == named, |beginning| key.starts_with(beginning))
}

/// Returns the elements of a row's key.
fn shown_key(program: &Program, group: &ResilientGroup, key: &[u8]) -> Vec<TracedValue> {
    let Some(table) = group.tables.first() else {
        let index = key.try_into().map_or(0, u32::from_be_bytes);
        return vec![TracedValue::new("index", &Bits::new(u128::from(index), 32))];
    };
    let values = Bits::list_from_be_bytes(&table.key_widths(program), key).unwrap_or_default();
    let keys = &program.tables[table.table].keys;
    keys.iter().zip(&values).map(|(key, value)| shown(&key.name, &key.annotations, value)).collect()
}

/// Returns the values of a row of arrays.
fn array_values(
    program: &Program,
    group: &ResilientGroup,
    format: &ArrayFormat,
    stored: &RowValues,
) -> Vec<TracedValue> {
    let arrays = group.registers.iter().map(|register| &program.registers[*register]);
    let values = format.to_values(Some(stored)).unwrap_or_default();
    arrays.zip(&values).map(|(it, value)| shown(&it.name, &it.annotations, value)).collect()
}

/// Returns the data of a row of tables.
fn entry_data(program: &Program, group: &ResilientGroup, stored: &RowValues) -> Vec<TracedValue> {
    let table = &group.tables[0];
    let values = Bits::list_from_be_bytes(&table.data_widths(program), stored.bytes()).unwrap_or_default();
    let params = &program.actions[table.entry_action(program)].params;
    params.iter().zip(&values).map(|(it, value)| shown(&it.name, &it.annotations, value)).collect()
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Returns the names of the groups, in their order.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|group| group.name.as_str())
    }

    /// Returns the next rows of a query. A listing visits a bounded number of places, so it may have fewer rows than
    /// requested, or none, and a next position. Rows of tables that are being given back no longer have a place: they
    /// only count as releasing.
    pub fn list_rows(&self, now: Time, query: &RowQuery) -> RowListing {
        let mut listing = RowListing::default();
        let (mut bytes, mut scanned, mut shown) = (0, 0, 0);
        let mut at = query.from;
        while let Some(place) = self.place_from(at, query.group) {
            let is_long = scanned >= MAX_SCANNED || shown >= MAX_SHOWN;
            if is_long || listing.rows.len() >= query.most || bytes >= MAX_LISTING_BYTES {
                listing.next = Some(place);
                break;
            }
            scanned += 1;
            let listed = self.listed(now, place.row());
            shown += usize::from(listed.is_some());
            if let Some(row) = listed.filter(|row| query.key.is_empty() || is_meant(&row.shown_key(), &query.key)) {
                bytes += row.text_bytes();
                listing.rows.push(row);
            }
            at = place.after();
        }
        listing
    }

    /// Returns the first place of a row at `at` or after it, in the group `only` or in any.
    pub(crate) fn place_from(&self, at: RowCursor, only: Option<u32>) -> Option<RowCursor> {
        let RowCursor { mut group, mut index } = at;
        while (group as usize) < self.groups.len() {
            if only.is_none_or(|only| only == group) && index < self.places(group) {
                return Some(RowCursor { group, index });
            }
            (group, index) = (group + 1, 0);
        }
        None
    }

    /// Returns the number of places of a group: each has at most one row.
    fn places(&self, group: u32) -> u64 {
        match &self.formats[group as usize].rows {
            RowKind::Arrays(_) | RowKind::Snapshots(_) => self.groups[group as usize].rows,
            RowKind::Tables { .. } => self.inner.objects().row_positions(group) as u64,
        }
    }

    /// Returns the name of the row at a place if the switch may use it, asks for it, or gives it back.
    pub(crate) fn row_at(&self, row: StateRow) -> Option<(RowId, RowReport)> {
        let is_array = !matches!(self.formats[row.group as usize].rows, RowKind::Tables { .. });
        if is_array && self.inner.objects().row_state(row) == RowState::Absent && self.replica.is_settled() {
            return None;
        }
        let id = self.row_id(row)?;
        self.replica.row_report(&id).map(|report| (id, report))
    }

    fn listed(&self, now: Time, row: StateRow) -> Option<ListedRow> {
        let (id, report) = self.row_at(row)?;
        let group = &self.groups[row.group as usize];
        let program = self.inner.program();
        let values = |stored| match &self.formats[row.group as usize].rows {
            RowKind::Arrays(format) => array_values(program, group, format, stored),
            RowKind::Tables { .. } => entry_data(program, group, stored),
            // The stores have them as pages.
            RowKind::Snapshots(_) => Vec::new(),
        };
        Some(ListedRow {
            group: group.name.clone(),
            key: shown_key(program, group, id.key()),
            values: report.values.as_ref().map(values).unwrap_or_default(),
            epoch: report.epoch,
            progress: report.progress,
            is_pending: report.is_pending,
            acknowledged_ns: report.acknowledged_at.map(|at| now.since_ns(at)),
        })
    }
}
