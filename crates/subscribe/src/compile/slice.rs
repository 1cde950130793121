//! Emits the entries of one state from one node of the decision diagram (Algorithm 1 of the packet subscriptions paper:
//! a node here is a path through a field's component, its arms are the paths from `In` to `Out`).

use crate::compile::codes::Codes;
use crate::compile::prefixes::prefixes;
use crate::format::max_of;
use crate::tables::{EntryKey, Stage, StateId, Wide};

/// An interval of values with one result, in codes if the field has codes.
struct Interval {
    first: u128,
    last: u128,
    state: StateId,
    /// Whether it is a single value. Its code is then `first`; no value has the other codes up to `last`.
    is_single: bool,
}

/// Returns the entries of a node. `arms` is a step function: first values of intervals and their next states;
/// neighbours differ. State 0 is the result of a miss.
pub(crate) fn entries(
    arms: &[(u128, StateId)],
    width: u32,
    codes: Option<&Codes>,
    stage: &Stage,
) -> Vec<(EntryKey, StateId)> {
    let (max, shown_width) = (max_of(width), codes.map_or(width, Codes::width));
    let shown = |value: u128| codes.map_or(value, |codes| codes.of(value));
    let stretch = |(at, (first, state)): (usize, &(u128, StateId))| {
        let next = arms.get(at + 1).map(|(next, _)| *next);
        Interval {
            first: shown(*first),
            last: next.map_or(max_of(shown_width), |next| shown(next) - 1),
            state: *state,
            is_single: next.map_or(max, |next| next - 1) == *first,
        }
    };
    let stretches: Vec<Interval> = arms.iter().enumerate().map(stretch).collect();
    let width = shown_width;
    match stage.wide {
        None => exact(&stretches),
        Some(Wide::Range) => ranges(&stretches, stage.exact),
        Some(Wide::Lpm | Wide::Ternary) if !stage.exact => {
            let stretches: Vec<_> = stretches.iter().map(|of| (of.first, of.last, of.state)).collect();
            prefixes(&stretches, width)
        }
        Some(Wide::Lpm | Wide::Ternary) => beside_exact(&stretches, width),
    }
}

fn rest(state: StateId) -> Option<(EntryKey, StateId)> {
    (state != 0).then_some((EntryKey::Rest, state))
}

/// Returns an exact entry for every value outside the most frequent result.
fn exact(stretches: &[Interval]) -> Vec<(EntryKey, StateId)> {
    // Exact-match rules test single values, so all other values share one result, which covers most of the domain.
    let mut sizes: Vec<(StateId, u128)> = Vec::new();
    let mut by_state: Vec<(StateId, u128)> = stretches.iter().map(|of| (of.state, of.last - of.first)).collect();
    by_state.sort_unstable();
    for (state, size) in by_state {
        match sizes.last_mut() {
            Some((last, sum)) if *last == state => *sum = sum.saturating_add(size).saturating_add(1),
            _ => sizes.push((state, size)),
        }
    }
    let most = sizes.iter().rev().max_by_key(|(_, size)| *size).map_or(0, |(state, _)| *state);
    let named = stretches.iter().filter(|of| of.state != most);
    let values = named.flat_map(|of| (of.first..=of.last).map(|value| (EntryKey::Exact(value), of.state)));
    values.chain(rest(most)).collect()
}

/// Returns one entry per interval, except for the most frequent result.
fn ranges(stretches: &[Interval], exact: bool) -> Vec<(EntryKey, StateId)> {
    let mut states: Vec<StateId> = stretches.iter().map(|of| of.state).collect();
    states.sort_unstable();
    // State 0 needs no entry for the rest, any other state needs one.
    let cost = |part: &[StateId]| (states.len() - part.len() + usize::from(part[0] != 0), part[0]);
    let default = states.chunk_by(|a, b| a == b).map(cost).min().map_or(0, |(_, state)| state);
    let key = |of: &Interval| {
        if exact && of.is_single { EntryKey::Exact(of.first) } else { EntryKey::Range(of.first, of.last) }
    };
    let named = stretches.iter().filter(|of| of.state != default);
    named.map(|of| (key(of), of.state)).chain(rest(default)).collect()
}

/// Returns exact entries for single values, and prefixes for the rest as if the single values did not exist.
fn beside_exact(stretches: &[Interval], width: u32) -> Vec<(EntryKey, StateId)> {
    if stretches.iter().all(|of| of.is_single) {
        return ranges(stretches, true);
    }
    let mut singles: Vec<(u128, StateId)> = Vec::new();
    let mut wide: Vec<(u128, u128, StateId)> = Vec::new();
    let mut from = 0;
    for Interval { first, last, state, is_single } in stretches {
        if *is_single {
            singles.push((*first, *state));
            // The preceding interval extends over it; at the beginning, the following interval starts earlier.
            if let Some((_, end, _)) = wide.last_mut() {
                *end = *last;
                from = last.wrapping_add(1);
            }
            continue;
        }
        match wide.last_mut() {
            Some((_, end, other)) if other == state => *end = *last,
            _ => wide.push((from, *last, *state)),
        }
        from = last.wrapping_add(1);
    }
    // A value with the same result as its surroundings needs no entry.
    let around = |value: u128| wide.partition_point(|(_, end, _)| *end < value);
    let apart = singles.into_iter().filter(|(value, state)| wide[around(*value)].2 != *state);
    let apart: Vec<_> = apart.map(|(value, state)| (EntryKey::Exact(value), state)).collect();
    apart.into_iter().chain(prefixes(&wide, width)).collect()
}
