//! Simplifies control flow: removes decided branches, empty blocks and unreachable blocks, and merges straight-line
//! code.
//!
//! ```text
//! b0: branch 1, b1, b2                   b0: x = 1
//! b1: x = 1; goto b3                         y = 2
//! b2: x = 2; goto b3                         return
//! b3: goto b4
//! b4: y = 2; return
//! ```
//!
//! Blocks that begin a parser state are kept, so that a trace can report the parser's state.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ir::visit::targets;
use ir::{Block, BlockId, Body, Match, Terminator};

use ir::fold;

/// Simplifies a body's control flow; the first block stays first.
pub fn simplify(body: &mut Body) {
    for block in body.blocks.values_mut() {
        decide(&mut block.terminator);
    }
    thread(body);
    merge(body);
    remove_unreachable(body);
}

/// Replaces a terminator with a known outcome by a jump.
fn decide(terminator: &mut Terminator) {
    let to = match terminator {
        Terminator::Branch { condition, then, otherwise } => match fold::as_const(condition) {
            Some(bits) if bits.is_true() => *then,
            Some(_) => *otherwise,
            None if then == otherwise => *then,
            None => return,
        },
        Terminator::Switch { subject, cases, default } => match fold::as_const(subject) {
            Some(value) => cases.iter().find(|(label, _)| label == value).map_or(*default, |(_, to)| *to),
            None if cases.iter().all(|(_, to)| to == default) => *default,
            None => return,
        },
        Terminator::Select { cases, .. } => match &cases[..] {
            [first, ..] if first.matches.iter().all(|m| *m == Match::Any) => first.target,
            _ => return,
        },
        _ => return,
    };
    *terminator = Terminator::Goto(to);
}

/// Redirects jumps to empty blocks to the targets of those blocks.
fn thread(body: &mut Body) {
    let mut ends: SecondaryMap<BlockId, Option<BlockId>> = SecondaryMap::new();
    let first = BlockId::new(0);
    for id in body.blocks.keys() {
        let mut at = id;
        let mut steps = 0;
        // A cycle of empty blocks has no end: stop after as many steps as there are blocks.
        while steps <= body.blocks.len() {
            let block = &body.blocks[at];
            match block.terminator {
                Terminator::Goto(to) if block.instrs.is_empty() && !block.is_state && at != first => {
                    if let Some(end) = ends[to] {
                        at = end;
                        break;
                    }
                    at = to;
                }
                _ => break,
            }
            steps += 1;
        }
        ends[id] = Some(at);
    }
    let ends_of = |id: BlockId| ends[id].unwrap_or(id);
    let mut leaving = Vec::new();
    for (id, block) in body.blocks.iter_mut() {
        targets(&mut block.terminator, &mut |to| *to = ends_of(*to));
        decide(&mut block.terminator);
        if let Terminator::Goto(to) = block.terminator {
            leaving.push((id, to));
        }
    }
    // A jump to a block that only ends the body ends the body.
    for (id, to) in leaving {
        let target = &body.blocks[to];
        if target.instrs.is_empty()
            && !target.is_state
            && matches!(target.terminator, Terminator::Return | Terminator::Exit | Terminator::Reject)
        {
            body.blocks[id].terminator = target.terminator.clone();
        }
    }
}

/// Merges a block with a single predecessor into it, if the predecessor has no other successor.
fn merge(body: &mut Body) {
    let mut ways: SecondaryMap<BlockId, u32> = SecondaryMap::new();
    let reached = reachable(body);
    for id in &reached {
        let mut terminator = body.blocks[*id].terminator.clone();
        targets(&mut terminator, &mut |to| ways[*to] += 1);
    }
    // Only reachable blocks: a block on a dead path must not absorb another one.
    for id in reached {
        while let Terminator::Goto(to) = body.blocks[id].terminator {
            // The first block becomes the first state if it jumps there.
            let first_state = id == BlockId::new(0) && !body.blocks[id].is_state;
            if to == id || ways[to] != 1 || to == BlockId::new(0) || body.blocks[to].is_state && !first_state {
                break;
            }
            let tail = &mut body.blocks[to];
            let instrs = std::mem::take(&mut tail.instrs);
            let terminator = std::mem::replace(&mut tail.terminator, Terminator::Return);
            let loc = tail.loc;
            let state = tail.is_state.then(|| std::mem::take(&mut tail.name));
            let head = &mut body.blocks[id];
            if let Some(name) = state {
                (head.name, head.is_state) = (name, true);
            }
            head.instrs.extend(instrs);
            head.terminator = terminator;
            head.loc = loc;
            ways[to] = 0;
        }
    }
}

fn reachable(body: &Body) -> Vec<BlockId> {
    let mut seen: SecondaryMap<BlockId, bool> = SecondaryMap::new();
    let mut order = Vec::new();
    let mut todo = vec![BlockId::new(0)];
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut seen[id], true) {
            continue;
        }
        order.push(id);
        let mut next = Vec::new();
        let mut terminator = body.blocks[id].terminator.clone();
        targets(&mut terminator, &mut |to| next.push(*to));
        todo.extend(next.into_iter().rev());
    }
    order
}

fn remove_unreachable(body: &mut Body) {
    let mut kept = reachable(body);
    kept.sort();
    let mut numbers: SecondaryMap<BlockId, Option<BlockId>> = SecondaryMap::new();
    for (number, id) in kept.iter().enumerate() {
        numbers[*id] = Some(BlockId::new(number));
    }
    let old = std::mem::replace(&mut body.blocks, PrimaryMap::new());
    for (id, mut block) in old {
        if numbers[id].is_some() {
            targets(&mut block.terminator, &mut |to| *to = numbers[*to].unwrap_or(*to));
            body.blocks.push(Block { ..block });
        }
    }
}
