//! Proves that packets leave with the headers that they came with, so that nothing has to be compared per packet.
//!
//! That is so if validity changes only in the parser, the parser consumes nothing but headers, the deparser emits all
//! of them without a condition, and every path of the parser extracts them in the order of the deparser, each at most
//! once.

use std::collections::BTreeMap;

use engine::Step;
use ir::{BlockId, Body, BodyId, BodyKind, HeaderId, HeaderRef, Op, Program, Terminator};

use crate::KernelPipeline;
use crate::usage::{Usage, emits, ops};

/// Whether every packet leaves with the headers that it came with, each where it was.
pub(crate) fn keeps_headers(program: &Program, pipeline: &KernelPipeline, usage: &Usage) -> bool {
    let runs = || pipeline.steps.iter().filter_map(|step| if let Step::Run(body) = step { Some(*body) } else { None });
    let of_kind = |is_meant: &dyn Fn(&Body) -> bool| -> Option<BodyId> {
        let mut bodies = runs().filter(|body| is_meant(&program.bodies[*body]));
        bodies.next().filter(|_| bodies.next().is_none())
    };
    let (parser, deparser) = (of_kind(&|body| body.kind == BodyKind::Parser), of_kind(&emits));
    let Some(parser) = parser.filter(|parser| runs().next() == Some(*parser)) else { return false };
    let order = match deparser {
        Some(deparser) => emitted(&program.bodies[deparser]),
        None if usage.bodies.iter().any(|body| emits(&program.bodies[*body])) => None,
        None => Some(BTreeMap::new()),
    };
    let Some(order) = order else { return false };
    let changes = |op: &Op| match op {
        Op::SetValid(HeaderRef::Header(header))
        | Op::SetInvalid(HeaderRef::Header(header))
        | Op::CopyHeader(HeaderRef::Header(header), _) => order.contains_key(header),
        Op::SetValid(_) | Op::SetInvalid(_) | Op::CopyHeader(..) | Op::Advance(_) => true,
        _ => false,
    };
    let mut all = usage.bodies.iter().flat_map(|body| ops(&program.bodies[*body]));
    !all.any(changes) && extracts_in(&program.bodies[parser], &order)
}

/// Returns the position of each header that a body emits, if it does so once and without a condition.
fn emitted(body: &Body) -> Option<BTreeMap<HeaderId, usize>> {
    let (mut order, mut at) = (BTreeMap::new(), BlockId::from_u32(0));
    for _ in 0..body.blocks.len() {
        for instr in &body.blocks[at].instrs {
            match &instr.op {
                Op::Emit(HeaderRef::Header(header)) => {
                    let position = order.len();
                    if order.insert(*header, position).is_some() {
                        return None;
                    }
                }
                Op::Emit(HeaderRef::Element(..)) | Op::Apply { .. } => return None,
                _ => {}
            }
        }
        match body.blocks[at].terminator {
            Terminator::Goto(next) => at = next,
            Terminator::Return | Terminator::Exit => return Some(order),
            _ => return None,
        }
    }
    None
}

/// Whether a parser extracts only these headers, on every path in their order.
fn extracts_in(parser: &Body, order: &BTreeMap<HeaderId, usize>) -> bool {
    // The number of headers of the order up to the last one that was extracted before a block.
    let mut before: BTreeMap<BlockId, usize> = BTreeMap::from([(BlockId::from_u32(0), 0)]);
    let mut open = vec![BlockId::from_u32(0)];
    while let Some(at) = open.pop() {
        let mut passed = before[&at];
        for instr in &parser.blocks[at].instrs {
            let Op::Extract(header, _) = &instr.op else { continue };
            let HeaderRef::Header(header) = header else { return false };
            match order.get(header) {
                Some(position) if *position >= passed => passed = position + 1,
                _ => return false,
            }
        }
        targets(&parser.blocks[at].terminator, &mut |to| {
            let known = before.insert(to, passed);
            let most = known.map_or(passed, |known| known.max(passed));
            before.insert(to, most);
            if known != Some(most) {
                open.push(to);
            }
        });
    }
    true
}

/// Visits the successors of a block.
fn targets(end: &Terminator, visit: &mut dyn FnMut(BlockId)) {
    match end {
        Terminator::Goto(to) => visit(*to),
        Terminator::Branch { then, otherwise, .. } => [*then, *otherwise].into_iter().for_each(visit),
        Terminator::Switch { cases, default, .. } => {
            cases.iter().map(|(_, to)| *to).chain([*default]).for_each(visit);
        }
        Terminator::Select { cases, .. } => cases.iter().map(|case| case.target).for_each(visit),
        Terminator::Return | Terminator::Reject | Terminator::Exit => {}
    }
}
