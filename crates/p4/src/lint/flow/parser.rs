//! Parsers: states are analysed repeatedly until a fixed point is reached.

use super::super::state::FlowState;
use super::super::walk::of_keyset;
use super::Flow;
use crate::typed::{Parser, Transition, TransitionTarget};

impl Flow<'_, '_, '_> {
    pub(super) fn parser(&mut self, parser: &Parser) {
        let mut first = self.begin(&parser.params);
        self.locals(&parser.locals, &mut first);
        let mut before: Vec<FlowState> = parser.states.iter().map(|_| FlowState::dead()).collect();
        before[parser.start] = first;
        let mut end = FlowState::dead();
        let mut work = vec![parser.start];
        self.quiet += 1;
        while let Some(at) = work.pop() {
            let mut state = self.fork(&before[at]);
            self.state(parser, at, &mut state);
            for target in targets(&parser.states[at].transition) {
                let TransitionTarget::State(next) = target else {
                    self.meet(&mut end, &state);
                    continue;
                };
                let mut joined = self.fork(&before[next]);
                self.meet(&mut joined, &state);
                if joined != before[next] {
                    before[next] = joined;
                    if !work.contains(&next) {
                        work.push(next);
                    }
                }
            }
            if self.is_exhausted() {
                break;
            }
        }
        self.quiet -= 1;
        for (at, state) in before.iter_mut().enumerate() {
            if !state.dead {
                self.state(parser, at, state);
            }
        }
        self.end(&parser.params, &end);
    }

    fn state(&mut self, parser: &Parser, at: usize, state: &mut FlowState) {
        let written = &parser.states[at];
        self.block(&written.body, state);
        if let Transition::Select { exprs, cases, .. } = &written.transition {
            for e in exprs {
                self.read(e, state);
            }
            for e in cases.iter().flat_map(|case| &case.keys).flat_map(of_keyset) {
                self.read(e, state);
            }
        }
    }
}

fn targets(transition: &Transition) -> Vec<TransitionTarget> {
    match transition {
        Transition::Direct(target, _) => vec![*target],
        Transition::Select { cases, .. } => cases.iter().map(|case| case.target).collect(),
    }
}
