//! Checks histories of inputs and outputs for linearizability.
//!
//! The search is that of Wing and Gong (*Testing and Verifying Concurrent Objects*, 1993) with the memoization of Lowe.
//! An input without output may have taken effect at any time after its arrival, or never (RedPlane, Definition 3).

use std::collections::HashSet;
use std::hash::Hash;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

/// A sequential program.
pub trait Specification {
    /// Its state.
    type State: Clone + Eq + Hash;
    /// An input.
    type Input;
    /// An output.
    type Output: PartialEq;

    /// Returns the state at the start.
    fn initial(&self) -> Self::State;

    /// Returns the state after an input, and the output.
    fn step(&self, state: &Self::State, input: &Self::Input) -> (Self::State, Self::Output);

    /// Whether an input changes no state. It is then placed as early as its output allows, which shortens the search.
    fn is_read(&self, _input: &Self::Input) -> bool {
        false
    }

    /// Whether an input can have this output in no state from this one on. It shortens the search.
    fn is_past(&self, _state: &Self::State, _input: &Self::Input, _output: &Self::Output) -> bool {
        false
    }
}

/// An input with its output, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation<I, O> {
    /// The input.
    pub input: I,
    /// Time of its arrival.
    pub called: u64,
    /// The output and its time.
    pub returned: Option<(O, u64)>,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order of the inputs explains all outputs.
    Linearizable,
    /// No order does.
    Violation,
    /// The search visited its maximum number of states.
    Undecided,
}

/// The invocations that an order contains so far, as a set of bits.
type Included = SmallVec<[u64; 4]>;

/// A point of the search.
#[derive(Clone)]
struct SearchPoint<T> {
    included: Included,
    state: T,
    /// All inputs before this one are included, or have no output.
    first: usize,
    /// The last input that was included.
    last: usize,
}

/// Number of inputs whose outputs a point of the search is compared with. A wrong order shows within a few of them, and
/// a point that compares all the rest makes the search quadratic.
const LOOKAHEAD: usize = 64;

struct OrderSearch<'a, S: Specification> {
    specification: &'a S,
    /// Sorted by arrival.
    invocations: Vec<&'a Invocation<S::Input, S::Output>>,
    /// The inputs without output.
    silent: Vec<usize>,
    visited: HashSet<(Included, S::State), FixedState>,
    left: usize,
}

/// Searches an order of the inputs that explains the outputs, and visits at most `max_states` states.
pub fn check<S: Specification>(
    specification: &S,
    history: &[Invocation<S::Input, S::Output>],
    max_states: usize,
) -> Verdict {
    let mut invocations: Vec<_> = history.iter().collect();
    invocations.sort_by_key(|invocation| invocation.called);
    let included = SmallVec::from_elem(0, invocations.len().div_ceil(64));
    let silent = (0..invocations.len()).filter(|index| invocations[*index].returned.is_none()).collect();
    let start = SearchPoint { included, state: specification.initial(), first: 0, last: 0 };
    OrderSearch { specification, invocations, silent, visited: HashSet::default(), left: max_states }.run(start)
}

impl<S: Specification> OrderSearch<'_, S> {
    fn run(&mut self, start: SearchPoint<S::State>) -> Verdict {
        let mut stack = vec![start];
        let mut candidates = Vec::new();
        while let Some(mut point) = stack.pop() {
            let first_return = self.include_reads(&mut point, &mut candidates);
            if point.first == self.invocations.len() {
                return Verdict::Linearizable;
            }
            if self.is_past(&point) || !self.visited.insert((point.included.clone(), point.state.clone())) {
                continue;
            }
            if self.left == 0 {
                return Verdict::Undecided;
            }
            self.left -= 1;
            // The last one that is pushed is tried first: inputs with output, then those after the last input.
            let silent =
                self.silent.iter().copied().filter(|index| {
                    self.invocations[*index].called <= first_return && !contains(&point.included, *index)
                });
            let split = candidates.len();
            candidates.extend(silent);
            candidates[split..].sort_by_key(|index| (*index < point.last, *index));
            for index in candidates.drain(..).rev().collect::<SmallVec<[usize; 16]>>() {
                self.push(&mut stack, &point, index);
            }
        }
        Verdict::Violation
    }

    fn push(&self, stack: &mut Vec<SearchPoint<S::State>>, point: &SearchPoint<S::State>, index: usize) {
        if let Some(state) = self.apply(&point.state, index) {
            let mut next = SearchPoint { state, last: index, ..point.clone() };
            insert(&mut next.included, index);
            stack.push(next);
        }
    }

    /// Places the reads whose outputs are explained: no other order is better. An update that changes nothing in this
    /// state is kept, since a later input may need it. Returns the time before which the next input must have arrived,
    /// and the candidates with output.
    fn include_reads(&self, point: &mut SearchPoint<S::State>, candidates: &mut Vec<usize>) -> u64 {
        loop {
            while self
                .invocations
                .get(point.first)
                .is_some_and(|invocation| invocation.returned.is_none() || contains(&point.included, point.first))
            {
                point.first += 1;
            }
            let first_return = self.candidates(point, candidates);
            let is_read = |index: &&usize| {
                self.specification.is_read(&self.invocations[**index].input)
                    && self.apply(&point.state, **index).is_some()
            };
            let Some(index) = candidates.iter().find(is_read).copied() else { return first_return };
            insert(&mut point.included, index);
        }
    }

    /// Finds the inputs with output that may be next: those that arrived before each missing output left.
    fn candidates(&self, point: &SearchPoint<S::State>, candidates: &mut Vec<usize>) -> u64 {
        candidates.clear();
        let mut first_return = u64::MAX;
        for index in point.first..self.invocations.len() {
            let invocation = self.invocations[index];
            if invocation.called > first_return {
                break;
            }
            if let Some((_, at)) = invocation.returned.as_ref().filter(|_| !contains(&point.included, index)) {
                candidates.push(index);
                first_return = first_return.min(*at);
            }
        }
        candidates.retain(|index| self.invocations[*index].called <= first_return);
        first_return
    }

    /// Returns the state after an input, if its output is correct. An input without output must change the state,
    /// or it is pointless.
    fn apply(&self, state: &S::State, index: usize) -> Option<S::State> {
        let invocation = self.invocations[index];
        let (after, output) = self.specification.step(state, &invocation.input);
        let is_explained = match &invocation.returned {
            Some((seen, _)) => output == *seen,
            None => after != *state,
        };
        is_explained.then_some(after)
    }

    fn is_past(&self, point: &SearchPoint<S::State>) -> bool {
        (point.first..self.invocations.len()).take(LOOKAHEAD).any(|index| {
            let Invocation { input, returned, .. } = self.invocations[index];
            let returned = returned.as_ref().filter(|_| !contains(&point.included, index));
            returned.is_some_and(|(output, _)| self.specification.is_past(&point.state, input, output))
        })
    }
}

fn contains(included: &Included, index: usize) -> bool {
    included[index / 64] >> (index % 64) & 1 == 1
}

fn insert(included: &mut Included, index: usize) {
    included[index / 64] |= 1 << (index % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: `Some(value)` writes it and outputs the former value, `None` reads it.
    struct Swap;

    impl Specification for Swap {
        type State = u64;
        type Input = Option<u64>;
        type Output = u64;

        fn initial(&self) -> u64 {
            0
        }

        fn step(&self, state: &u64, input: &Option<u64>) -> (u64, u64) {
            (input.unwrap_or(*state), *state)
        }

        fn is_read(&self, input: &Option<u64>) -> bool {
            input.is_none()
        }
    }

    /// A set of bits: an input adds a bit, or removes all bits, and outputs the set.
    struct Bits;

    impl Specification for Bits {
        type State = u64;
        type Input = Option<u64>;
        type Output = u64;

        fn initial(&self) -> u64 {
            0
        }

        fn step(&self, state: &u64, input: &Option<u64>) -> (u64, u64) {
            let after = input.map_or(0, |bit| state | bit);
            (after, after)
        }
    }

    #[test]
    fn an_update_that_changes_nothing_may_be_needed_later() {
        let call = |input, output| Invocation { input, called: 0, returned: Some((output, 10)) };
        let history = [call(None, 0), call(Some(1), 1), call(Some(2), 2)];
        assert_eq!(check(&Bits, &history, 10_000), Verdict::Linearizable, "1, then none, then 2");
        let history = [call(Some(1), 1), call(Some(2), 2)];
        assert_eq!(check(&Bits, &history, 10_000), Verdict::Violation);
    }

    type SwapCall = Invocation<Option<u64>, u64>;

    fn write(value: u64, called: u64, old: u64, returned: u64) -> SwapCall {
        Invocation { input: Some(value), called, returned: Some((old, returned)) }
    }

    fn lost(value: u64, called: u64) -> SwapCall {
        Invocation { input: Some(value), called, returned: None }
    }

    fn read(value: u64, called: u64, returned: u64) -> SwapCall {
        Invocation { input: None, called, returned: Some((value, returned)) }
    }

    #[track_caller]
    fn is(verdict: Verdict, history: &[SwapCall]) {
        assert_eq!(check(&Swap, history, 10_000), verdict);
    }

    #[test]
    fn overlapping_inputs_have_any_order() {
        is(Verdict::Linearizable, &[]);
        is(Verdict::Linearizable, &[write(1, 0, 2, 10), write(2, 0, 0, 10), read(1, 11, 12)]);
        is(Verdict::Linearizable, &[write(1, 0, 0, 10), read(0, 1, 2), read(1, 3, 4)]);
    }

    #[test]
    fn an_output_orders_what_comes_after_it() {
        is(Verdict::Violation, &[write(1, 0, 0, 10), read(0, 11, 12)]);
        is(Verdict::Violation, &[write(1, 0, 0, 10), read(1, 1, 2), read(0, 3, 4)]);
    }

    #[test]
    fn each_update_counts_once() {
        is(Verdict::Violation, &[write(1, 0, 0, 10), write(2, 0, 0, 10)]);
        is(Verdict::Violation, &[write(1, 0, 0, 1), write(2, 2, 1, 3), write(3, 4, 1, 5)]);
    }

    #[test]
    fn an_input_without_output_counts_or_not() {
        is(Verdict::Linearizable, &[lost(1, 0), read(0, 1, 2), read(0, 5, 6)]);
        is(Verdict::Linearizable, &[lost(1, 0), read(0, 1, 2), read(1, 100, 101)]);
        is(Verdict::Violation, &[lost(1, 0), read(1, 1, 2), read(0, 3, 4)]);
        is(Verdict::Violation, &[read(1, 1, 2), lost(1, 3)]);
    }

    #[test]
    fn two_lost_inputs_explain_a_value_that_returns() {
        is(Verdict::Linearizable, &[lost(1, 0), lost(2, 0), read(1, 1, 2), read(2, 3, 4)]);
        is(Verdict::Violation, &[lost(1, 0), lost(2, 0), read(1, 1, 2), read(2, 3, 4), read(1, 5, 6)]);
    }

    #[test]
    fn a_long_search_ends_undecided() {
        let mut history: Vec<SwapCall> = (1..30).map(|value| lost(value, 0)).collect();
        history.push(read(99, 1, 2));
        is(Verdict::Undecided, &history);
    }

    #[test]
    fn long_histories_need_no_search() {
        let history: Vec<SwapCall> = (0..200).map(|n| write(n + 1, 10 * n, n, 10 * n + 15)).collect();
        is(Verdict::Linearizable, &history);
    }
}
