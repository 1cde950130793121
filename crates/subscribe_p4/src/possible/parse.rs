//! Follows a parser through its states with everything that a packet may be.

use std::collections::{BTreeMap, BTreeSet};

use p4::typed::{
    Arg, Builtin, Call, Callee, Expr, ExprKind, Keyset, Local, Parser, Program, SelectCase, Stmt, StmtKind, Transition,
    TransitionTarget,
};
use subscribe::Ranges;

use super::effects::Effects;
use super::places::{FieldValues, Places, place};
use super::select::{Asked, Asker, MOST_STRETCHES};
use crate::format::HeaderId;

/// More sets of valid headers are not told apart: then nothing is said.
const MOST_SETS: usize = 256;
/// Nor is a parser followed through more states, each counted as often as something new is known there.
const MOST_STEPS: usize = 20_000;

/// Whether each header is valid, where that is known; and last, whether there is a message.
pub(super) type Valid = Vec<Option<bool>>;

/// What a packet may be, somewhere in the parser.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub valid: Valid,
    /// Values of fields, if their headers are valid.
    pub values: FieldValues,
    ahead: Ahead,
}

/// Values of bits behind the cursor: by offset and width.
type Ahead = BTreeMap<(u32, u32), Ranges>;

/// What comes out of a parser.
pub(super) struct Parsed {
    pub packets: Vec<World>,
    /// The kinds of messages; `None` if they are not known.
    pub messages: Option<BTreeMap<HeaderId, BTreeMap<usize, Ranges>>>,
}

/// Follows a parser. Packets in which it finds an error count if they are `seen`. `None` if there is too much to
/// follow.
pub(super) fn follow(program: &Program, parser: &Parser, places: &Places<'_>, seen: bool) -> Option<Parsed> {
    let headers = parser.params.get(1)?.var;
    let mut follower = Follower {
        program,
        parser,
        places,
        errors_are_seen: seen,
        ask: Asker { program, places, headers, copies: BTreeMap::new() },
        known: vec![BTreeMap::new(); parser.states.len()],
        waiting: BTreeSet::new(),
        ends: BTreeMap::new(),
        messages: Some(BTreeMap::new()),
    };
    let valid = vec![Some(false); places.headers.len() + 1];
    let mut first = World { valid, values: FieldValues::new(), ahead: Ahead::new() };
    for local in &parser.locals {
        if let Local::Var(_, Some(value)) = local {
            follower.expr(value, &mut first);
        }
    }
    follower.arrive(parser.start, first);
    let mut steps = 0;
    while let Some((state, valid)) = follower.waiting.pop_first() {
        steps += 1;
        let sets = follower.known.iter().map(BTreeMap::len).max().unwrap_or(0).max(follower.ends.len());
        if steps > MOST_STEPS || sets > MOST_SETS {
            return None;
        }
        let (values, ahead) = follower.known[state].get(&valid)?.clone();
        follower.state(state, World { valid, values, ahead });
    }
    let packets = follower.ends.into_iter();
    let packets = packets.map(|(valid, values)| World { valid, values, ahead: BTreeMap::new() }).collect();
    Some(Parsed { packets, messages: follower.messages })
}

struct Follower<'a> {
    program: &'a Program,
    parser: &'a Parser,
    places: &'a Places<'a>,
    errors_are_seen: bool,
    ask: Asker<'a>,
    /// By state and validity, what is known besides at its beginning.
    known: Vec<BTreeMap<Valid, (FieldValues, Ahead)>>,
    /// Where something new is known.
    waiting: BTreeSet<(usize, Valid)>,
    ends: BTreeMap<Valid, FieldValues>,
    messages: Option<BTreeMap<HeaderId, BTreeMap<usize, Ranges>>>,
}

impl World {
    /// Code ran that may have done this.
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

    /// Knows that something has one of these values; `false` if that cannot be.
    fn refine(&mut self, asked: Asked, values: &Ranges) -> bool {
        let both = |known: &mut Ranges| {
            *known = known.intersection(values);
            !known.is_empty()
        };
        match asked {
            // What is read of a header that is not there is anything.
            Asked::Field(header, ..) if self.valid[header.0] != Some(true) => true,
            Asked::Field(header, member, _) => both(self.values.entry((header, member)).or_insert_with(|| asked.all())),
            Asked::Ahead(offset, width) => both(self.ahead.entry((offset, width)).or_insert_with(|| asked.all())),
        }
    }
}

impl Follower<'_> {
    fn arrive(&mut self, state: usize, world: World) {
        let World { valid, values, ahead } = world;
        let is_new = match self.known[state].get_mut(&valid) {
            None => {
                self.known[state].insert(valid.clone(), (values, ahead));
                true
            }
            // Both have to be looked at.
            Some((known, known_ahead)) => either(known, values) | either(known_ahead, ahead),
        };
        if is_new {
            self.waiting.insert((state, valid));
        }
    }

    fn end(&mut self, world: &World) {
        join(&mut self.ends, world.valid.clone(), world.values.clone());
    }

    /// The parser may find an error here.
    fn fail(&mut self, world: &World) {
        if self.errors_are_seen {
            self.end(world);
        }
    }

    fn go(&mut self, target: TransitionTarget, world: World) {
        match target {
            TransitionTarget::State(state) => self.arrive(state, world),
            // `reject` that a program says is no error.
            TransitionTarget::Accept | TransitionTarget::Reject => self.end(&world),
        }
    }

    fn state(&mut self, at: usize, mut world: World) {
        let state = &self.parser.states[at];
        self.ask.copies.clear();
        state.body.statements.iter().for_each(|statement| self.statement(statement, &mut world));
        match &state.transition {
            Transition::Direct(target, _) => self.go(*target, world),
            Transition::Select { exprs, cases, .. } => self.select(exprs, cases, world),
        }
    }

    fn statement(&mut self, statement: &Stmt, world: &mut World) {
        let copied = match &statement.kind {
            StmtKind::Var(var, Some(value)) => Some((*var, value)),
            StmtKind::Assign { lhs: Expr { kind: ExprKind::Var(var), .. }, op: None, rhs } => Some((*var, rhs)),
            _ => None,
        };
        if let Some((var, value)) =
            copied.filter(|(var, value)| *var != self.ask.headers && self.ask.is_lookahead(value))
        {
            self.fail(world);
            self.ask.copies.insert(var, value.ty.clone());
            return;
        }
        if let StmtKind::Call(call) = &statement.kind
            && self.plain(call, world)
        {
            return;
        }
        let effects = Effects::of_statement(self.program, self.places, self.ask.headers, statement);
        self.apply(&effects, world);
    }

    /// A call whose outcome is known: `extract`, `setValid` and `setInvalid` of a header.
    fn plain(&mut self, call: &Call, world: &mut World) -> bool {
        match &call.callee {
            Callee::Builtin(which @ (Builtin::SetValid | Builtin::SetInvalid), of) => {
                let Some(header) = self.header(of) else { return false };
                self.set(header, *which == Builtin::SetValid, world);
                true
            }
            Callee::Method { of, method, .. } => {
                let of = &self.program.externs[*of];
                let is_extract = &*of.name == "packet_in"
                    && of.methods.get(*method).is_some_and(|method| &*method.name == "extract");
                let (true, Some((Arg::Expr(to), size))) = (is_extract, call.args.split_first()) else { return false };
                for arg in size {
                    if let Arg::Expr(e) = arg {
                        self.expr(e, world);
                    }
                }
                let kind =
                    place(to).filter(|(var, _)| *var == self.ask.headers).and_then(|(_, path)| self.places.kind(&path));
                match (self.header(to), kind) {
                    (Some(header), _) => self.extract(header, world),
                    (None, Some(kind)) => {
                        self.message(kind, world);
                        *world.has_message() = Some(true);
                    }
                    (None, None) => return false,
                }
                world.ahead.clear();
                self.ask.copies.clear();
                true
            }
            _ => false,
        }
    }

    /// The header that an expression names.
    fn header(&self, e: &Expr) -> Option<HeaderId> {
        let (var, path) = place(e)?;
        if var == self.ask.headers { self.places.header(&path) } else { None }
    }

    fn set(&self, header: HeaderId, valid: bool, world: &mut World) {
        world.valid[header.0] = Some(valid);
        world.forget(header);
        for sibling in &self.places.headers[header.0].siblings {
            let is = &mut world.valid[sibling.0];
            // Whether a whole union becomes invalid with a member that was not valid, switches do not agree on.
            *is = if valid || *is == Some(false) { Some(false) } else { None };
            world.forget(*sibling);
        }
    }

    fn extract(&mut self, header: HeaderId, world: &mut World) {
        // A packet that is too short for it leaves everything as it was.
        self.fail(world);
        self.set(header, true, world);
        for (member, values) in self.seen_ahead(header, world) {
            world.values.insert((header, member), values);
        }
    }

    /// A message of a kind, with what is known of its fields.
    fn message(&mut self, kind: HeaderId, world: &World) {
        self.fail(world);
        let values = self.seen_ahead(kind, world);
        let Some(messages) = &mut self.messages else { return };
        match messages.get_mut(&kind) {
            None => drop(messages.insert(kind, values)),
            Some(known) => drop(either(known, values)),
        }
    }

    /// What was seen of a header before it is extracted.
    fn seen_ahead(&self, header: HeaderId, world: &World) -> BTreeMap<usize, Ranges> {
        let seen = |(member, offset, width)| Some((member, world.ahead.get(&(offset, width))?.clone()));
        self.places.fields(header).filter_map(seen).collect()
    }

    /// Follows an expression; whether it writes.
    fn expr(&mut self, e: &Expr, world: &mut World) -> bool {
        let effects = Effects::of_expression(self.program, self.places, self.ask.headers, e);
        self.apply(&effects, world);
        effects.writes()
    }

    fn apply(&mut self, effects: &Effects, world: &mut World) {
        world.apply(effects);
        if effects.messages {
            self.messages = None;
        }
        if effects.moves || effects.everything {
            self.ask.copies.clear();
        }
        self.ask.copies.retain(|var, _| !effects.vars.contains(var));
        if effects.may_fail {
            self.fail(world);
        }
    }

    fn select(&mut self, exprs: &[Expr], cases: &[SelectCase], mut world: World) {
        let write = exprs.iter().filter(|e| self.expr(e, &mut world)).count() > 0;
        // What one key writes another may have read before.
        let asked: Vec<Option<Asked>> = exprs.iter().map(|e| self.ask.asked(e).filter(|_| !write)).collect();
        for case in cases {
            let is_for_all = case.keys.len() != exprs.len();
            if case.keys.iter().all(|key| matches!(key, Keyset::Any(_))) {
                return self.go(case.target, world);
            }
            let mut chosen = world.clone();
            let mut can_be = true;
            // What is left if this case is not taken, where a single key decides that.
            let mut rest = None;
            let mut deciding = 0;
            for (key, asked) in case.keys.iter().zip(&asked).filter(|(key, _)| !matches!(key, Keyset::Any(_))) {
                deciding += 1;
                let Some(asked) = asked.filter(|_| !is_for_all) else { continue };
                let (Asked::Field(.., width) | Asked::Ahead(_, width)) = asked;
                if let Some(values) = self.ask.values(key, width) {
                    can_be &= chosen.refine(asked, &values);
                    rest = Some((asked, values.complement(subscribe::max_of(width))));
                }
            }
            if can_be {
                self.go(case.target, chosen);
            }
            if let (1, Some((asked, values))) = (deciding, rest)
                && !world.refine(asked, &values)
            {
                return;
            }
        }
        // None of the cases: `error.NoMatch`.
        self.fail(&world);
    }
}

/// Adds a set of valid headers, or what is known besides if there is such a set.
pub(super) fn join(all: &mut BTreeMap<Valid, FieldValues>, valid: Valid, values: FieldValues) {
    match all.get_mut(&valid) {
        None => drop(all.insert(valid, values)),
        Some(known) => drop(either(known, values)),
    }
}

/// Leaves what is known either way; whether that is less.
fn either<K: Ord>(known: &mut BTreeMap<K, Ranges>, mut other: BTreeMap<K, Ranges>) -> bool {
    let mut is_less = false;
    known.retain(|key, values| {
        let both = other.remove(key).map(|other| values.union(&other));
        let Some(both) = both.filter(|both| both.list().len() <= MOST_STRETCHES) else {
            is_less = true;
            return false;
        };
        is_less |= both != *values;
        *values = both;
        true
    });
    is_less
}
