//! Splits the keys and entries of tables, and the parameters of actions.

use bits::Bits;
use ir::{ActionParam, Entry, Expr, Key, KeyValue, MatchKind, Table};

use super::{Splitter, WORD, WordPiece, name, pieces};

impl Splitter<'_> {
    pub(super) fn objects(&mut self) {
        for (id, action) in &self.program.actions {
            let params = action.params.iter().flat_map(|param| self.param(param)).collect();
            self.split.actions[id].params = params;
        }
        for (id, table) in &self.program.tables {
            let keys = table.keys.iter().flat_map(|key| self.key(key)).collect();
            let entries = table.entries.iter().map(|entry| split_entry(entry, table)).collect();
            let split = &mut self.split.tables[id];
            (split.keys, split.entries) = (keys, entries);
            split.default_action.1 = split_args(&table.default_action.1);
        }
    }

    fn param(&self, param: &ActionParam) -> Vec<ActionParam> {
        let Some(slots) = self.slots.get(&param.slot) else { return vec![param.clone()] };
        let width = self.program.slots[param.slot].width;
        let part = |(slot, piece)| ActionParam { name: name(&param.name, piece), slot, ..param.clone() };
        slots.iter().copied().zip(pieces(width)).map(part).collect()
    }

    fn key(&self, key: &Key) -> Vec<Key> {
        if key.width <= WORD {
            return vec![Key { expr: self.narrow(&key.expr), ..key.clone() }];
        }
        if !is_split(key) {
            // The width says that the table is not searched.
            return vec![Key { expr: Expr::Const(Bits::zero(key.width)), ..key.clone() }];
        }
        let part = |(expr, piece): (Expr, WordPiece)| Key {
            name: name(&key.name, piece),
            expr,
            width: piece.width,
            ..key.clone()
        };
        self.parts(&key.expr).into_iter().zip(pieces(key.width)).map(part).collect()
    }
}

/// Whether the pieces of a key can be matched one by one.
fn is_split(key: &Key) -> bool {
    key.kind != MatchKind::Range
}

fn split_args(args: &[Bits]) -> Vec<Bits> {
    args.iter().flat_map(|value| pieces(value.width()).map(|piece| piece.of(value))).collect()
}

fn split_entry(entry: &Entry, table: &Table) -> Entry {
    let matched = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
    let keys = matched.zip(&entry.keys).flat_map(|(key, value)| {
        if is_split(key) {
            pieces(key.width).map(|piece| split_value(value, key.width, piece)).collect()
        } else {
            vec![value.clone()]
        }
    });
    Entry { keys: keys.collect(), args: split_args(&entry.args), ..entry.clone() }
}

/// Returns what a piece of a key must match.
pub(crate) fn split_value(value: &KeyValue, width: u32, piece: WordPiece) -> KeyValue {
    match value {
        _ if piece.width == width => value.clone(),
        KeyValue::Any | KeyValue::Range(..) => KeyValue::Any,
        KeyValue::Exact(value) => KeyValue::Exact(piece.of(value)),
        KeyValue::Ternary(value, mask) => KeyValue::Ternary(piece.of(value), piece.of(mask)),
        KeyValue::Lpm(value, length) => {
            let before = width - piece.low - piece.width;
            KeyValue::Lpm(piece.of(value), length.saturating_sub(before).min(piece.width))
        }
    }
}
