//! Evaluates tables (section 14.2): keys, the entry that matches, its action.

use std::cmp::Ordering;

use num_bigint::BigUint;
use p4::ast::Direction;
use p4::typed::{self, AnnotationBody, Call, Callee, Expr, Keyset, Table, Type};

use crate::call::Passed;
use crate::control_plane::{ActionCall, KeyMatch, ReferenceEntry};
use crate::evaluator::{BlockEvaluator, Evaluated, unsupported};
use crate::number::Number;
use crate::value::{Initial, Value, initial, is_signed};

/// The result of applying a table (section 14.2.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied {
    pub(crate) hit: bool,
    /// Index of the action that ran in the table's `actions`.
    pub(crate) action: usize,
}

/// The values of an action's directionless parameters.
enum ActionData {
    Expressions(Vec<Expr>),
    Values(Vec<BigUint>),
}

/// An entry under consideration: its matches, its rank (the larger wins) and its action.
struct Candidate {
    keys: Vec<KeyMatch>,
    rank: i64,
    action: usize,
    data: ActionData,
}

impl BlockEvaluator<'_> {
    /// `t.apply()` (section 14.2.3)
    pub(crate) fn apply_table(&mut self, call: &Call) -> Evaluated<Applied> {
        let Callee::Table(id) = &call.callee else { return Err(unsupported("`apply` of this")) };
        let table = &self.program.tables[*id];
        self.check_properties(table)?;
        let scope = self.scope.ok_or_else(|| unsupported("a table outside a control"))?;
        let name = self.instances.full_name(self.program, &table.name, scope);
        let mut keys = Vec::new();
        for key in &table.keys {
            let value = self.number(&key.expr)?;
            if &*key.match_kind != "selector" {
                keys.push((value, is_signed(self.program, &key.expr.ty)));
            }
        }
        let is_ranked = table.keys.iter().any(|key| matches!(&*key.match_kind, "ternary" | "range" | "optional"));
        let mut best: Option<Candidate> = None;
        for candidate in self.candidates(table, &name, is_ranked)? {
            let matches = candidate.keys.iter().zip(&keys).all(|(key, (value, signed))| fits(key, value, *signed));
            let beats = |best: &Candidate| {
                let rank = if is_ranked { candidate.rank.cmp(&best.rank) } else { Ordering::Equal };
                rank.then(prefix_length(&candidate).cmp(&prefix_length(best))).is_gt()
            };
            if matches && best.as_ref().is_none_or(beats) {
                best = Some(candidate);
            }
        }
        let hit = best.is_some();
        let (action, data) = match best {
            Some(candidate) => (candidate.action, candidate.data),
            None => {
                let set = self.control_plane.tables.get(&name).and_then(|table| table.default.clone());
                match set {
                    Some(call) => (self.action_index(table, &call)?, ActionData::Values(call.args)),
                    None => {
                        let (action, args) = &table.default_action;
                        (*action, ActionData::Expressions(args.clone()))
                    }
                }
            }
        };
        self.run_action(table, action, data)?;
        Ok(Applied { hit, action })
    }

    fn check_properties(&self, table: &Table) -> Evaluated<()> {
        let is_modelled = |name: &str| matches!(name, "counters" | "support_timeout");
        match table.properties.iter().find(|property| !is_modelled(&property.name)) {
            Some(property) => Err(unsupported(&format!("the table property `{}`", property.name))),
            None => Ok(()),
        }
    }

    /// Returns the entries of the program and of the control plane.
    fn candidates(&mut self, table: &Table, name: &str, is_ranked: bool) -> Evaluated<Vec<Candidate>> {
        let mut all = Vec::new();
        let annotated = |entry: &typed::TableEntry| entry.annotations.iter().find(|a| &*a.name == "priority").cloned();
        let old_style = table.entries.iter().any(|entry| annotated(entry).is_some());
        let added = self.control_plane.tables.get(name).map(|table| table.entries.clone()).unwrap_or_default();
        self.budget.step((added.len() * (1 + table.keys.len())) as u64)?;
        if is_ranked && !added.is_empty() && !table.entries.is_empty() && (old_style || !table.largest_priority_wins) {
            return Err(unsupported("priorities of two orders in one table"));
        }
        for (position, entry) in table.entries.iter().enumerate() {
            let rank = match (annotated(entry), entry.priority) {
                // `@priority(n)` is older than `priority`: the smallest wins, and the position is the default.
                (Some(annotation), _) => -annotated_number(&annotation.body).unwrap_or(position as i64 + 1),
                _ if old_style => -(position as i64 + 1),
                (None, Some(priority)) if table.largest_priority_wins => priority,
                (None, Some(priority)) => -priority,
                (None, None) => -(position as i64),
            };
            let mut keys = Vec::new();
            for (index, key) in table.keys.iter().enumerate().filter(|(_, key)| &*key.match_kind != "selector") {
                let keyset = match &entry.keys[..] {
                    [any @ Keyset::Any(_)] => any,
                    all => all.get(index).ok_or_else(|| unsupported("an entry of another form"))?,
                };
                keys.push(self.key_match(keyset, &key.expr.ty)?);
            }
            all.push(Candidate { keys, rank, action: entry.action, data: ActionData::Expressions(entry.args.clone()) });
        }
        for ReferenceEntry { keys, priority, action } in added {
            let index = self.action_index(table, &action)?;
            all.push(Candidate { keys, rank: priority, action: index, data: ActionData::Values(action.args) });
        }
        Ok(all)
    }

    /// Evaluates the keyset of an entry (section 8.15).
    fn key_match(&mut self, keyset: &Keyset, ty: &Type) -> Evaluated<KeyMatch> {
        let mut number = |e: &Expr| -> Evaluated<Number> {
            let value = self.eval(e)?;
            let value = self.convert(value, &e.ty, ty)?;
            self.as_number(value, ty)
        };
        Ok(match keyset {
            Keyset::Any(_) => KeyMatch::Any,
            Keyset::Value(e) => KeyMatch::Exact(number(e)?.bits),
            Keyset::Mask(value, mask) => KeyMatch::Masked(number(value)?.bits, number(mask)?.bits),
            Keyset::Range(low, high) => KeyMatch::Range(number(low)?.bits, number(high)?.bits),
            Keyset::ValueSet(..) => return Err(unsupported("a value set in an entry")),
        })
    }

    fn action_index(&self, table: &Table, call: &ActionCall) -> Evaluated<usize> {
        let scope = self.scope.ok_or_else(|| unsupported("a table outside a control"))?;
        let name_of = |action: &typed::TableAction| {
            self.instances.full_name(self.program, &self.program.actions[action.action].name, scope)
        };
        let found = table.actions.iter().position(|action| name_of(action) == call.name);
        found.ok_or_else(|| unsupported(&format!("the action `{}` of an entry", call.name)))
    }

    /// Runs an action of the table (section 14.1.1): the table binds the parameters with a direction, the entry those
    /// without.
    fn run_action(&mut self, table: &Table, index: usize, data: ActionData) -> Evaluated<()> {
        let listed = &table.actions[index];
        let action = &self.program.actions[listed.action];
        let bound: Vec<Direction> = action
            .params
            .iter()
            .map(|param| param.direction)
            .filter(|direction| *direction != Direction::None)
            .collect();
        let order: Vec<usize> = (0..listed.args.len()).collect();
        let mut bound = self.pass(&bound, &listed.args, &order)?.into_iter();
        let (mut values, mut expressions) = match data {
            ActionData::Values(values) => (values.into_iter(), Vec::new().into_iter()),
            ActionData::Expressions(list) => (Vec::new().into_iter(), list.into_iter()),
        };
        let mut passed = Vec::new();
        for param in &action.params {
            if param.direction != Direction::None {
                passed.push(bound.next().ok_or_else(|| unsupported("an action without its arguments"))?);
                continue;
            }
            let ty = &self.program.vars[param.var].ty;
            let value = match expressions.next() {
                Some(e) => {
                    let value = self.eval(&e)?;
                    self.convert(value, &e.ty, ty)?
                }
                None => self.value_of_numbers(ty, &mut values)?,
            };
            passed.push(Passed { value: Some(value), place: None });
        }
        let order: Vec<usize> = (0..passed.len()).collect();
        self.invoke(&action.params, passed, &order, |cx| cx.block(&action.body)).map(drop)
    }

    /// Builds a value from the numbers of its scalars.
    fn value_of_numbers(&self, ty: &Type, numbers: &mut impl Iterator<Item = BigUint>) -> Evaluated<Value> {
        let mut value = initial(self.program, ty, Initial::Zero);
        fill(&mut value, &mut |scalar| {
            let number = numbers.next()?;
            *scalar = match scalar {
                Value::Bool(_) => Value::Bool(number.bit(0)),
                Value::Error(_) => Value::Error(usize::try_from(&number).ok()?),
                Value::Number(old) => Value::Number(Number::wrap(&number.into(), old.width)),
                _ => return None,
            };
            Some(())
        })
        .ok_or_else(|| unsupported("an entry without values for all parameters"))?;
        Ok(value)
    }
}

/// Replaces every scalar of a value, in order.
fn fill(value: &mut Value, replace: &mut impl FnMut(&mut Value) -> Option<()>) -> Option<()> {
    match value {
        Value::Struct(_) | Value::Header { .. } | Value::Union(_) | Value::Stack { .. } => {
            value.parts_mut().iter_mut().try_for_each(|part| fill(part, replace))
        }
        scalar => replace(scalar),
    }
}

fn annotated_number(body: &AnnotationBody) -> Option<i64> {
    match body {
        AnnotationBody::Unstructured(text, _) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Whether a key's value is in a match.
pub(crate) fn fits(key: &KeyMatch, value: &Number, signed: bool) -> bool {
    let number = |bits: &BigUint| Number { width: value.width, bits: bits.clone() };
    match key {
        KeyMatch::Any => true,
        KeyMatch::Exact(bits) => *bits == value.bits,
        KeyMatch::Masked(bits, mask) => (bits & mask) == (&value.bits & mask),
        KeyMatch::Prefix(bits, length) => {
            let rest = value.width.saturating_sub(*length);
            (bits >> rest) == (&value.bits >> rest)
        }
        KeyMatch::Range(low, high) => {
            value.compare(&number(low), signed).is_ge() && value.compare(&number(high), signed).is_le()
        }
    }
}

/// Returns the number of bits that an entry's prefixes fix, for the choice between entries of one rank: the longest
/// prefix wins (section 14.2.1.1). Const entries write prefixes as values and masks.
fn prefix_length(candidate: &Candidate) -> u64 {
    let bits = |key: &KeyMatch| match key {
        KeyMatch::Prefix(_, length) => u64::from(*length),
        KeyMatch::Masked(_, mask) => mask.count_ones(),
        KeyMatch::Exact(_) => u64::from(u32::MAX),
        KeyMatch::Range(..) | KeyMatch::Any => 0,
    };
    candidate.keys.iter().map(bits).sum()
}
