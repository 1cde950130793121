//! Iterates to a fixed point over the states of a parser.

use std::collections::{BTreeMap, BTreeSet};

use p4::typed::{
    Arg, Builtin, Call, Callee, Expr, ExprKind, Keyset, Local, Parser, Program, SelectCase, Stmt, StmtKind, Transition,
    TransitionTarget,
};
use subscribe::Ranges;

use super::effects::Effects;
use super::header_paths::{FieldValues, HeaderPaths, place};
use super::refine::{MAX_RANGES, SelectContext, SelectOperand};
use crate::format::HeaderId;

/// Maximum number of sets of valid headers; beyond it the result is unknown.
const MAX_VALID_SETS: usize = 256;
/// Maximum number of evaluations of parser states; beyond it the result is unknown.
const MAX_STEPS: usize = 20_000;

/// Validity of each header, if known; the last element says whether there is a message.
pub(super) type Valid = Vec<Option<bool>>;

/// An abstract state: known properties of a packet at a point in the parser.
#[derive(Clone, Debug)]
pub(super) struct AbstractState {
    pub valid: Valid,
    /// Values of fields whose headers are valid.
    pub values: FieldValues,
    ahead: Lookahead,
}

/// Values of bits ahead of the cursor, by offset and width.
type Lookahead = BTreeMap<(u32, u32), Ranges>;

/// Result of the analysis of a parser.
pub(super) struct ParserResult {
    pub packets: Vec<AbstractState>,
    /// Values by kind of message; `None` if unknown.
    pub messages: Option<BTreeMap<HeaderId, BTreeMap<usize, Ranges>>>,
}

/// Analyzes a parser. Packets with parser errors count if `seen` is set. Returns `None` if a limit is exceeded.
pub(super) fn interpret(
    program: &Program,
    parser: &Parser,
    paths: &HeaderPaths<'_>,
    seen: bool,
) -> Option<ParserResult> {
    let headers = parser.params.get(1)?.var;
    let mut interpreter = ParserInterpreter {
        program,
        parser,
        paths,
        errors_are_seen: seen,
        context: SelectContext { program, paths, headers, copies: BTreeMap::new() },
        known: vec![BTreeMap::new(); parser.states.len()],
        waiting: BTreeSet::new(),
        ends: BTreeMap::new(),
        messages: Some(BTreeMap::new()),
    };
    let valid = vec![Some(false); paths.headers.len() + 1];
    let mut first = AbstractState { valid, values: FieldValues::new(), ahead: Lookahead::new() };
    for local in &parser.locals {
        if let Local::Var(_, Some(value)) = local {
            interpreter.expr(value, &mut first);
        }
    }
    interpreter.arrive(parser.start, first);
    let mut steps = 0;
    while let Some((state, valid)) = interpreter.waiting.pop_first() {
        steps += 1;
        let sets = interpreter.known.iter().map(BTreeMap::len).max().unwrap_or(0).max(interpreter.ends.len());
        if steps > MAX_STEPS || sets > MAX_VALID_SETS {
            return None;
        }
        let (values, ahead) = interpreter.known[state].get(&valid)?.clone();
        interpreter.state(state, AbstractState { valid, values, ahead });
    }
    let packets = interpreter.ends.into_iter();
    let packets = packets.map(|(valid, values)| AbstractState { valid, values, ahead: BTreeMap::new() }).collect();
    Some(ParserResult { packets, messages: interpreter.messages })
}

struct ParserInterpreter<'a> {
    program: &'a Program,
    parser: &'a Parser,
    paths: &'a HeaderPaths<'a>,
    errors_are_seen: bool,
    context: SelectContext<'a>,
    /// Abstract state at the beginning of each parser state, by validity.
    known: Vec<BTreeMap<Valid, (FieldValues, Lookahead)>>,
    /// Worklist of parser states whose abstract state has changed.
    waiting: BTreeSet<(usize, Valid)>,
    ends: BTreeMap<Valid, FieldValues>,
    messages: Option<BTreeMap<HeaderId, BTreeMap<usize, Ranges>>>,
}

impl AbstractState {
    /// Applies the effects of code (transfer function).
    pub fn apply(&mut self, effects: &Effects) {
        for (header, touch) in &effects.headers {
            let valid = &mut self.valid[header.0];
            if matches!((*valid, touch.set, touch.unset), (Some(true), _, true) | (Some(false), true, _)) {
                *valid = None;
            }
            self.forget(*header);
        }
        if effects.messages {
            *self.has_message() = None;
        }
        if effects.moves {
            self.ahead.clear();
        }
    }

    /// Whether there is a message.
    pub fn has_message(&mut self) -> &mut Option<bool> {
        self.valid.last_mut().expect("it stands behind all headers")
    }

    fn forget(&mut self, header: HeaderId) {
        self.values.retain(|(of, _), _| *of != header);
    }

    /// Refines a value by a test; `false` if the result is empty, that is, unreachable.
    fn refine(&mut self, operand: SelectOperand, values: &Ranges) -> bool {
        let both = |known: &mut Ranges| {
            *known = known.intersection(values);
            !known.is_empty()
        };
        match operand {
            // Reading an invalid header yields an arbitrary value.
            SelectOperand::Field(header, ..) if self.valid[header.0] != Some(true) => true,
            SelectOperand::Field(header, member, _) => {
                both(self.values.entry((header, member)).or_insert_with(|| operand.all()))
            }
            SelectOperand::Lookahead(offset, width) => {
                both(self.ahead.entry((offset, width)).or_insert_with(|| operand.all()))
            }
        }
    }
}

impl ParserInterpreter<'_> {
    fn arrive(&mut self, state: usize, state_in: AbstractState) {
        let AbstractState { valid, values, ahead } = state_in;
        let is_new = match self.known[state].get_mut(&valid) {
            None => {
                self.known[state].insert(valid.clone(), (values, ahead));
                true
            }
            // Both joins must run.
            Some((known, known_ahead)) => join_values(known, values) | join_values(known_ahead, ahead),
        };
        if is_new {
            self.waiting.insert((state, valid));
        }
    }

    fn end(&mut self, state_in: &AbstractState) {
        join(&mut self.ends, state_in.valid.clone(), state_in.values.clone());
    }

    /// Records that the parser may raise an error here.
    fn fail(&mut self, state_in: &AbstractState) {
        if self.errors_are_seen {
            self.end(state_in);
        }
    }

    fn go(&mut self, target: TransitionTarget, state_in: AbstractState) {
        match target {
            TransitionTarget::State(state) => self.arrive(state, state_in),
            // An explicit transition to `reject` raises no error.
            TransitionTarget::Accept | TransitionTarget::Reject => self.end(&state_in),
        }
    }

    fn state(&mut self, at: usize, mut state_in: AbstractState) {
        let state = &self.parser.states[at];
        self.context.copies.clear();
        state.body.statements.iter().for_each(|statement| self.statement(statement, &mut state_in));
        match &state.transition {
            Transition::Direct(target, _) => self.go(*target, state_in),
            Transition::Select { exprs, cases, .. } => self.select(exprs, cases, state_in),
        }
    }

    fn statement(&mut self, statement: &Stmt, state_in: &mut AbstractState) {
        let copied = match &statement.kind {
            StmtKind::Var(var, Some(value)) => Some((*var, value)),
            StmtKind::Assign { lhs: Expr { kind: ExprKind::Var(var), .. }, op: None, rhs } => Some((*var, rhs)),
            _ => None,
        };
        if let Some((var, value)) =
            copied.filter(|(var, value)| *var != self.context.headers && self.context.is_lookahead(value))
        {
            self.fail(state_in);
            self.context.copies.insert(var, value.ty.clone());
            return;
        }
        if let StmtKind::Call(call) = &statement.kind
            && self.plain(call, state_in)
        {
            return;
        }
        let effects = Effects::of_statement(self.program, self.paths, self.context.headers, statement);
        self.apply(&effects, state_in);
    }

    /// Applies a call with a precise transfer function: `extract`, and `setValid` and `setInvalid` of a header. Returns
    /// whether it did.
    fn plain(&mut self, call: &Call, state_in: &mut AbstractState) -> bool {
        match &call.callee {
            Callee::Builtin(which @ (Builtin::SetValid | Builtin::SetInvalid), of) => {
                let Some(header) = self.header(of) else { return false };
                self.set(header, *which == Builtin::SetValid, state_in);
                true
            }
            Callee::Method { of, method, .. } => {
                let of = &self.program.externs[*of];
                let is_extract = &*of.name == "packet_in"
                    && of.methods.get(*method).is_some_and(|method| &*method.name == "extract");
                let (true, Some((Arg::Expr(to), size))) = (is_extract, call.args.split_first()) else { return false };
                for arg in size {
                    if let Arg::Expr(e) = arg {
                        self.expr(e, state_in);
                    }
                }
                let kind = place(to)
                    .filter(|(var, _)| *var == self.context.headers)
                    .and_then(|(_, path)| self.paths.kind(&path));
                match (self.header(to), kind) {
                    (Some(header), _) => self.extract(header, state_in),
                    (None, Some(kind)) => {
                        self.message(kind, state_in);
                        *state_in.has_message() = Some(true);
                    }
                    (None, None) => return false,
                }
                state_in.ahead.clear();
                self.context.copies.clear();
                true
            }
            _ => false,
        }
    }

    /// Returns the header that an expression denotes.
    fn header(&self, e: &Expr) -> Option<HeaderId> {
        let (var, path) = place(e)?;
        if var == self.context.headers { self.paths.header(&path) } else { None }
    }

    fn set(&self, header: HeaderId, valid: bool, state_in: &mut AbstractState) {
        state_in.valid[header.0] = Some(valid);
        state_in.forget(header);
        for sibling in &self.paths.headers[header.0].siblings {
            let is = &mut state_in.valid[sibling.0];
            // Targets disagree on whether `setInvalid` of an invalid member invalidates the whole union.
            *is = if valid || *is == Some(false) { Some(false) } else { None };
            state_in.forget(*sibling);
        }
    }

    fn extract(&mut self, header: HeaderId, state_in: &mut AbstractState) {
        // A packet that is too short leaves everything unchanged.
        self.fail(state_in);
        self.set(header, true, state_in);
        for (member, values) in self.seen_ahead(header, state_in) {
            state_in.values.insert((header, member), values);
        }
    }

    /// Records a message of a kind with the known values of its fields.
    fn message(&mut self, kind: HeaderId, state_in: &AbstractState) {
        self.fail(state_in);
        let values = self.seen_ahead(kind, state_in);
        let Some(messages) = &mut self.messages else { return };
        match messages.get_mut(&kind) {
            None => drop(messages.insert(kind, values)),
            Some(known) => drop(join_values(known, values)),
        }
    }

    /// Returns the values of a header's fields that were known before its extraction.
    fn seen_ahead(&self, header: HeaderId, state_in: &AbstractState) -> BTreeMap<usize, Ranges> {
        let seen = |(member, offset, width)| Some((member, state_in.ahead.get(&(offset, width))?.clone()));
        self.paths.fields(header).filter_map(seen).collect()
    }

    /// Applies the effects of an expression. Returns whether it writes.
    fn expr(&mut self, e: &Expr, state_in: &mut AbstractState) -> bool {
        let effects = Effects::of_expression(self.program, self.paths, self.context.headers, e);
        self.apply(&effects, state_in);
        effects.writes()
    }

    fn apply(&mut self, effects: &Effects, state_in: &mut AbstractState) {
        state_in.apply(effects);
        if effects.messages {
            self.messages = None;
        }
        if effects.moves || effects.everything {
            self.context.copies.clear();
        }
        self.context.copies.retain(|var, _| !effects.vars.contains(var));
        if effects.may_fail {
            self.fail(state_in);
        }
    }

    fn select(&mut self, exprs: &[Expr], cases: &[SelectCase], mut state_in: AbstractState) {
        let write = exprs.iter().filter(|e| self.expr(e, &mut state_in)).count() > 0;
        // A write by one key expression may follow a read by another.
        let operand: Vec<Option<SelectOperand>> =
            exprs.iter().map(|e| self.context.operand(e).filter(|_| !write)).collect();
        for case in cases {
            let is_for_all = case.keys.len() != exprs.len();
            if case.keys.iter().all(|key| matches!(key, Keyset::Any(_))) {
                return self.go(case.target, state_in);
            }
            let mut chosen = state_in.clone();
            let mut can_be = true;
            // Refinement for the fall-through, if a single key decides this case.
            let mut rest = None;
            let mut deciding = 0;
            for (key, operand) in case.keys.iter().zip(&operand).filter(|(key, _)| !matches!(key, Keyset::Any(_))) {
                deciding += 1;
                let Some(operand) = operand.filter(|_| !is_for_all) else { continue };
                let (SelectOperand::Field(.., width) | SelectOperand::Lookahead(_, width)) = operand;
                if let Some(values) = self.context.values(key, width) {
                    can_be &= chosen.refine(operand, &values);
                    rest = Some((operand, values.complement(subscribe::max_of(width))));
                }
            }
            if can_be {
                self.go(case.target, chosen);
            }
            if let (1, Some((operand, values))) = (deciding, rest)
                && !state_in.refine(operand, &values)
            {
                return;
            }
        }
        // No case matches: `error.NoMatch`.
        self.fail(&state_in);
    }
}

/// Joins the values for a set of valid headers.
pub(super) fn join(all: &mut BTreeMap<Valid, FieldValues>, valid: Valid, values: FieldValues) {
    match all.get_mut(&valid) {
        None => drop(all.insert(valid, values)),
        Some(known) => drop(join_values(known, values)),
    }
}

/// Joins `other` into `known` and widens fragmented ranges. Returns whether `known` lost information.
fn join_values<K: Ord>(known: &mut BTreeMap<K, Ranges>, mut other: BTreeMap<K, Ranges>) -> bool {
    let mut is_less = false;
    known.retain(|key, values| {
        let both = other.remove(key).map(|other| values.union(&other));
        let Some(both) = both.filter(|both| both.list().len() <= MAX_RANGES) else {
            is_less = true;
            return false;
        };
        is_less |= both != *values;
        *values = both;
        true
    });
    is_less
}
