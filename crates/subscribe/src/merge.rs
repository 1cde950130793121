//! The union of all rules, kept so that one rule more or less costs little.
//!
//! Rules hang in a binary trie by a key of 64 bits that begins with what they ask first, so that rules about the same
//! symbol are neighbours, and those with near bounds nearer ones. A leaf holds up to some rules and their union; a branch
//! the union of its two halves. A change touches one leaf and the branches above it, and there the union goes into the
//! changed part only: everything else is the same diagram as before, which one comparison tells.

use bdd::{Full, Ref, Store};

use crate::lower::balanced;

/// A leaf that grows beyond this many rules is parted.
const MOST: usize = 24;
/// A branch with fewer rules becomes a leaf.
const LEAST: usize = 12;

/// A place in a trie.
type Place = u32;

#[derive(Clone)]
enum Shape {
    /// Keys and rules.
    Leaf(Vec<(u64, u32)>),
    /// Those whose next bit is 0, and those whose is 1.
    Branch([Place; 2]),
}

#[derive(Clone)]
struct Part {
    shape: Shape,
    rules: usize,
    /// The union of the rules; of no account while the part is stale.
    union: Ref,
    stale: bool,
}

/// Where the union of rules stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub full: Full,
    /// How many rules were being brought together.
    pub rules: usize,
}

/// The trie.
#[derive(Clone)]
pub(crate) struct Merge {
    parts: Vec<Part>,
    free: Vec<Place>,
    /// The store is looked through for what is not needed any more when it has this many nodes.
    collect_at: usize,
}

const ROOT: Place = 0;

impl Merge {
    pub fn new() -> Merge {
        let root = Part { shape: Shape::Leaf(Vec::new()), rules: 0, union: Ref::NOTHING, stale: false };
        Merge { parts: vec![root], free: Vec::new(), collect_at: 1 << 16 }
    }

    /// Bytes that the trie takes.
    pub fn bytes(&self) -> usize {
        let rules: usize = self
            .parts
            .iter()
            .map(|part| match &part.shape {
                Shape::Leaf(rules) => rules.capacity() * size_of::<(u64, u32)>(),
                Shape::Branch(_) => 0,
            })
            .sum();
        rules + self.parts.capacity() * size_of::<Part>()
    }

    pub fn insert(&mut self, key: u64, rule: u32) {
        let (mut at, mut depth) = (ROOT, 0);
        loop {
            let part = &mut self.parts[at as usize];
            part.stale = true;
            part.rules += 1;
            match &mut part.shape {
                Shape::Branch(halves) => at = halves[bit(key, depth)],
                Shape::Leaf(rules) => {
                    rules.push((key, rule));
                    if rules.len() > MOST && depth < 64 {
                        self.part(at, depth);
                    }
                    return;
                }
            }
            depth += 1;
        }
    }

    /// Makes a leaf a branch.
    fn part(&mut self, at: Place, depth: u32) {
        let Shape::Leaf(rules) = std::mem::replace(&mut self.parts[at as usize].shape, Shape::Branch([0, 0])) else {
            unreachable!("only leaves are parted")
        };
        let (one, zero): (Vec<_>, Vec<_>) = rules.into_iter().partition(|(key, _)| bit(*key, depth) == 1);
        let halves = [zero, one].map(|rules| {
            let part = Part { rules: rules.len(), shape: Shape::Leaf(rules), union: Ref::NOTHING, stale: true };
            match self.free.pop() {
                Some(place) => {
                    self.parts[place as usize] = part;
                    place
                }
                None => {
                    self.parts.push(part);
                    self.parts.len() as Place - 1
                }
            }
        });
        self.parts[at as usize].shape = Shape::Branch(halves);
        for half in halves {
            if self.parts[half as usize].rules > MOST && depth < 63 {
                self.part(half, depth + 1);
            }
        }
    }

    pub fn remove(&mut self, key: u64, rule: u32) {
        let (mut at, mut depth) = (ROOT, 0);
        let mut small = None;
        loop {
            let part = &mut self.parts[at as usize];
            part.stale = true;
            part.rules -= 1;
            match &mut part.shape {
                Shape::Branch(halves) => {
                    if part.rules < LEAST && small.is_none() {
                        small = Some(at);
                    }
                    at = halves[bit(key, depth)];
                }
                Shape::Leaf(rules) => {
                    let place = rules.iter().position(|(_, other)| *other == rule).expect("the rule hangs here");
                    rules.swap_remove(place);
                    break;
                }
            }
            depth += 1;
        }
        if let Some(at) = small {
            let mut rules = Vec::new();
            self.gather(at, &mut rules);
            self.parts[at as usize].shape = Shape::Leaf(rules);
        }
    }

    /// Takes the rules of everything below a place, which is no branch any more.
    fn gather(&mut self, at: Place, into: &mut Vec<(u64, u32)>) {
        match std::mem::replace(&mut self.parts[at as usize].shape, Shape::Leaf(Vec::new())) {
            Shape::Leaf(mut rules) => into.append(&mut rules),
            Shape::Branch(halves) => {
                for half in halves {
                    self.gather(half, into);
                    self.free.push(half);
                }
            }
        }
    }

    /// Brings the union up to date; `lower` makes the diagram of a rule, and `needed` are diagrams that must stay.
    pub fn refresh(
        &mut self,
        store: &mut Store,
        needed: &[Ref],
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, Full>,
    ) -> Result<Ref, Stopped> {
        self.fresh(ROOT, store, needed, lower)
    }

    fn fresh(
        &mut self,
        at: Place,
        store: &mut Store,
        needed: &[Ref],
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, Full>,
    ) -> Result<Ref, Stopped> {
        if !self.parts[at as usize].stale {
            return Ok(self.parts[at as usize].union);
        }
        if let Shape::Branch([zero, one]) = self.parts[at as usize].shape {
            self.fresh(zero, store, needed, lower)?;
            self.fresh(one, store, needed, lower)?;
        }
        if store.len() > self.collect_at {
            self.collect(store, needed);
        }
        let union = match self.union(at, store, lower) {
            // Room may be taken by what is not needed any more.
            Err(Full::Nodes | Full::Bytes) => {
                self.collect(store, needed);
                self.union(at, store, lower)
            }
            done => done,
        };
        let part = &mut self.parts[at as usize];
        part.union = union.map_err(|full| Stopped { full, rules: part.rules })?;
        part.stale = false;
        Ok(part.union)
    }

    fn union(
        &self,
        at: Place,
        store: &mut Store,
        lower: &mut impl FnMut(&mut Store, u32) -> Result<Ref, Full>,
    ) -> Result<Ref, Full> {
        match &self.parts[at as usize].shape {
            Shape::Branch([zero, one]) => {
                store.union(self.parts[*zero as usize].union, self.parts[*one as usize].union)
            }
            Shape::Leaf(rules) => {
                let rules = rules.iter().map(|(_, rule)| lower(store, *rule));
                let mut rules = rules.collect::<Result<Vec<_>, _>>()?;
                balanced(store, &mut rules)
            }
        }
    }

    /// Forgets every diagram that is neither needed nor a union here.
    pub fn collect(&mut self, store: &mut Store, needed: &[Ref]) {
        let unions = self.parts.iter().filter(|part| !part.stale).map(|part| part.union);
        store.collect(unions.chain(needed.iter().copied()));
        self.collect_at = (store.len() * 2).max(1 << 16);
    }
}

fn bit(key: u64, depth: u32) -> usize {
    (key >> (63 - depth) & 1) as usize
}
