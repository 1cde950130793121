//! Parsers: states become blocks, `accept` continues after the parser, `reject` ends the whole parser.

use diagnostics::Span;
use ir::{BlockId, Match, SelectCase, Terminator};
use p4::typed::{self, Keyset, Transition, TransitionTarget, Type};

use crate::instance::InstRef;
use crate::lowering::Lowering;
use crate::storage::resolve;

impl<'a> Lowering<'a> {
    /// Lowers a parser with bound parameters. The frame's `return` target is that of `accept`.
    pub(crate) fn parser_body(&mut self, inst: InstRef) {
        let Some(parser) = self.parser_of(inst) else { return };
        let Some(accept) = self.frames.last().map(|frame| frame.return_to) else { return };
        self.declarations(inst, &parser.locals);
        let blocks: Vec<BlockId> = parser.states.iter().map(|state| self.state_block(inst, state)).collect();
        match blocks.get(parser.start) {
            Some(start) => self.goto(*start),
            None => self.goto(accept),
        }
        for (state, block) in parser.states.iter().zip(&blocks) {
            self.body.start(*block);
            let outer = self.at(state.span);
            self.statements(&state.body);
            self.transition(&state.transition, &blocks, accept);
            self.at(outer);
        }
    }

    fn state_block(&mut self, inst: InstRef, state: &typed::State) -> BlockId {
        let nested = self.frames.len() > 1;
        let name = if nested { format!("{}.{}", self.insts[inst.0].path, state.name) } else { state.name.to_string() };
        let block = self.block(&name);
        self.body.blocks[block].is_state = true;
        block
    }

    /// Returns the block of a transition's target.
    fn target(&mut self, target: TransitionTarget, blocks: &[BlockId], accept: BlockId) -> BlockId {
        match target {
            TransitionTarget::State(index) => blocks.get(index).copied().unwrap_or(accept),
            TransitionTarget::Accept => accept,
            TransitionTarget::Reject => {
                let block = self.block("reject");
                self.body.blocks[block].terminator = Terminator::Reject;
                let here = self.here();
                self.body.blocks[block].loc = here;
                block
            }
        }
    }

    fn transition(&mut self, transition: &Transition, blocks: &[BlockId], accept: BlockId) {
        match transition {
            Transition::Direct(TransitionTarget::Reject, span) => {
                self.at(*span);
                self.terminate(Terminator::Reject);
            }
            Transition::Direct(target, span) => {
                self.at(*span);
                let to = self.target(*target, blocks, accept);
                self.goto(to);
            }
            Transition::Select { exprs, cases, span } => {
                self.at(*span);
                self.select(exprs, cases, blocks, accept, *span);
            }
        }
    }

    fn select(
        &mut self,
        exprs: &[typed::Expr],
        cases: &[typed::SelectCase],
        blocks: &[BlockId],
        accept: BlockId,
        span: Span,
    ) {
        // Keys are split into scalars: a key may be a struct, whose fields are compared one by one.
        let effects: Vec<bool> = exprs.iter().map(crate::walk::has_effects).collect();
        let mut keys = Vec::new();
        let mut widths = Vec::new();
        for (i, e) in exprs.iter().enumerate() {
            let mut val = self.value(e);
            if effects[i + 1..].contains(&true) {
                val = self.spill(val, &e.ty);
            }
            let leaves = self.leaves("", val, &e.ty);
            widths.push(leaves.len());
            for (_, leaf, ty) in leaves {
                keys.push((self.bits(leaf, &ty), ty));
            }
        }
        let mut out = Vec::new();
        for case in cases {
            self.at(case.span);
            let target = self.target(case.target, blocks, accept);
            let matches = self.case_matches(case, exprs, &widths, &keys);
            let Some(matches) = matches else { continue };
            let always = matches.iter().all(|m| *m == Match::Any);
            out.push(SelectCase { matches, target });
            if always {
                break;
            }
        }
        self.at(span);
        match &out[..] {
            [only] if only.matches.iter().all(|m| *m == Match::Any) => {
                let to = only.target;
                self.goto(to);
            }
            _ => {
                let keys = keys.into_iter().map(|(key, _)| key).collect();
                self.terminate(Terminator::Select { keys, cases: out });
            }
        }
    }

    /// Returns the matches of a case, one per key.
    fn case_matches(
        &mut self,
        case: &typed::SelectCase,
        exprs: &[typed::Expr],
        widths: &[usize],
        keys: &[(ir::Expr, Type)],
    ) -> Option<Vec<Match>> {
        if let [Keyset::Any(_)] = &case.keys[..] {
            return Some(vec![Match::Any; keys.len()]);
        }
        if let ([Keyset::ValueSet(set, span)], true) = (&case.keys[..], exprs.len() != 1) {
            return self.set_match(*set, keys.len(), *span).map(|m| vec![m]);
        }
        let mut matches = Vec::new();
        let mut at = 0;
        for ((keyset, width), e) in case.keys.iter().zip(widths).zip(exprs) {
            let part = keys.get(at..at + width)?;
            at += width;
            match keyset {
                Keyset::Any(_) => matches.extend(std::iter::repeat_n(Match::Any, *width)),
                Keyset::Value(value) => {
                    let val = self.value(value);
                    let val = self.cast(val, &value.ty, &e.ty);
                    for (_, leaf, ty) in self.leaves("", val, &e.ty) {
                        matches.push(Match::Value(self.bits(leaf, &ty)));
                    }
                }
                Keyset::Mask(value, mask) => {
                    let ty = part.first()?.1.clone();
                    let (value, mask) = (self.keyset_scalar(value, &ty), self.keyset_scalar(mask, &ty));
                    matches.push(Match::Mask(value, mask));
                }
                Keyset::Range(low, high) => {
                    let ty = part.first()?.1.clone();
                    let signed = self.is_signed(&ty);
                    let (low, high) = (self.keyset_scalar(low, &ty), self.keyset_scalar(high, &ty));
                    matches.push(if signed { Match::RangeSigned(low, high) } else { Match::Range(low, high) });
                }
                Keyset::ValueSet(set, span) => matches.push(self.set_match(*set, *width, *span)?),
            }
        }
        Some(matches)
    }

    pub(crate) fn keyset_scalar(&mut self, e: &typed::Expr, ty: &Type) -> ir::Expr {
        let val = self.value(e);
        let val = self.cast(val, &e.ty, ty);
        self.bits(val, ty)
    }

    fn set_match(&mut self, set: typed::ValueSetId, width: usize, span: Span) -> Option<Match> {
        let id = self.value_set(set)?;
        if self.ir.value_sets[id].fields.len() != width {
            self.unsupported(span, "the value set and the `select` expression differ in the number of fields");
            return None;
        }
        Some(Match::ValueSet(id))
    }

    /// Returns the value set of the current instance.
    fn value_set(&mut self, set: typed::ValueSetId) -> Option<ir::ValueSetId> {
        let inst = self.inst?;
        if let Some(id) = self.insts[inst.0].value_sets.get(&set) {
            return Some(*id);
        }
        let decl = &self.program.value_sets[set];
        let mut fields = Vec::new();
        let kind = self.match_annotation(&decl.annotations);
        let name = if self.scalar_width(&decl.ty).is_some() { &*decl.local_name } else { "" };
        self.set_fields(name, &decl.ty, kind, decl.span, &mut fields);
        let name = self.qualified(&decl.name);
        let name = self.claim("value set", name, decl.span);
        let annotations = self.annotations(&decl.annotations);
        let id = self.ir.value_sets.push(ir::ValueSet { name, fields, size: decl.size, annotations });
        self.insts[inst.0].value_sets.insert(set, id);
        Some(id)
    }

    /// Returns the scalar fields of a value set's members.
    fn set_fields(
        &mut self,
        name: &str,
        ty: &Type,
        kind: ir::MatchKind,
        span: Span,
        fields: &mut Vec<(String, u32, ir::MatchKind)>,
    ) {
        if let Some(width) = self.scalar_width(ty) {
            fields.push((name.to_owned(), width, kind));
            return;
        }
        let full = |field: &str| if name.is_empty() { field.to_owned() } else { format!("{name}.{field}") };
        match resolve(self.program, ty) {
            Type::Struct(id) => {
                for field in &self.program.structs[*id].fields {
                    let kind = self.match_annotation(&field.annotations);
                    self.set_fields(&full(&field.name), &field.ty, kind, field.span, fields);
                }
            }
            Type::Tuple(types) => {
                for (i, ty) in types.iter().enumerate() {
                    self.set_fields(&full(&format!("f{i}")), ty, kind, span, fields);
                }
            }
            _ => self.unsupported(span, "a value set can contain only numbers, and structs and tuples of them"),
        }
    }

    /// Returns the match kind in `@match(ternary)` on a value set's field.
    fn match_annotation(&self, annotations: &typed::Annotations) -> ir::MatchKind {
        let kind =
            annotations.iter().find(|annotation| &*annotation.name == "match").and_then(|annotation| match &annotation
                .body
            {
                typed::AnnotationBody::Unstructured(text, _) => self.match_kind(text.trim()),
                typed::AnnotationBody::Expressions(values) => match values.first() {
                    Some(typed::Value::MatchKind(index)) => {
                        self.program.match_kinds.get(*index).and_then(|name| self.match_kind(name))
                    }
                    _ => None,
                },
                _ => None,
            });
        // A selector selects among the members of a group, and a value set has no groups.
        kind.filter(|kind| *kind != ir::MatchKind::Selector).unwrap_or(ir::MatchKind::Exact)
    }

    /// Resolves a match kind; `None` if neither the language nor the architecture defines it.
    pub(crate) fn match_kind(&self, name: &str) -> Option<ir::MatchKind> {
        match name {
            "exact" => Some(ir::MatchKind::Exact),
            "lpm" => Some(ir::MatchKind::Lpm),
            "ternary" => Some(ir::MatchKind::Ternary),
            other => self.arch.match_kind(other),
        }
    }
}
