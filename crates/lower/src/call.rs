//! Calls: every callee is inlined, with copy-in and copy-out as section 6.8 requires.
//!
//! An argument is passed by reference if this cannot be observed: if it overlaps nothing that the callee can access by
//! another name, and copying it out does nothing but store it. The copy-out of a member of a header union also decides
//! which member is valid (section 8.19). Otherwise it is copied:
//!
//! ```text
//! f(inout x, inout x)        f.a = x; f.b = x; ... body ...; x = f.a; x = f.b
//! ```
//!
//! An `exit` in a callee performs the copy-out of every enclosing call.

use std::collections::HashSet;

use p4::ast::Direction;
use p4::typed::{self, Arg, Call, Callee, ExprKind, Param, StmtKind, Type};

use crate::arch::Object;
use crate::assign::InitialScalars;
use crate::instance::InstRef;
use crate::lowering::{Binding, InlineFrame, Lowering};
use crate::lvalue::Lval;
use crate::storage::{Lifetime, Store};
use crate::value::{StorageRoot, Val};
use crate::walk::{self, CodeNode};

/// An evaluated argument.
pub(crate) enum PassedArg {
    Val(Val),
    LValue(PassedPlace),
}

/// An l-value passed to an `out` or `inout` parameter.
pub(crate) struct PassedPlace {
    pub(crate) lval: Lval,
    /// Value of an `inout` argument, saved because a later argument may change it.
    pub(crate) saved: Option<Val>,
    /// Whether the l-value has an index known only at run time. It may be beyond the end of the stack: then writes have
    /// no effect, but the callee must still read what it wrote to its parameter.
    may_be_nowhere: bool,
    /// Position in the order of evaluation, which is the order of the copy-outs.
    position: usize,
}

/// Choice between arguments that are passed by reference and copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPolicy {
    /// An argument is copied if a reference could be observed.
    WhereNeeded,
    /// Every argument is copied, because several places apply the same tables, whose keys name the parameters.
    Always,
}

/// Copy-outs to perform when a callee returns.
pub(crate) type Copies = Vec<(Store, Type, Lval)>;

impl<'a> Lowering<'a> {
    /// Lowers a call. Returns its value, if it has one of type `ty`.
    pub(crate) fn call(&mut self, call: &Call, ty: &Type) -> Val {
        let outer = self.at(call.span);
        let val = match &call.callee {
            Callee::Function(id) => self.call_function(*id, call),
            Callee::Action(id) => self.call_action(*id, call),
            Callee::Table(id) => {
                self.apply_table(*id, None, None);
                Val::Absent
            }
            Callee::ExternFn(id, type_args) => self.call_extern_fn(*id, type_args, call, ty),
            Callee::Method { object, of, method, type_args } => {
                self.call_method(object, *of, *method, type_args, call, ty)
            }
            Callee::Apply(target) => {
                match self.value(target) {
                    Val::Object(object) => self.apply(&object, call),
                    _ => self.unsupported(call.span, "the applied object is not known at compile time"),
                }
                Val::Absent
            }
            Callee::Builtin(builtin, base) => self.builtin(*builtin, base, ty),
        };
        self.at(outer);
        val
    }

    /// Evaluates arguments in `order`, the order in which the call states them (section 6.8). The result is in the
    /// order of the parameters.
    ///
    /// ```text
    /// f(inout x, in g(inout x))        $tmp = x; $tmp$1 = g(x); f($tmp, $tmp$1); x = $tmp
    /// ```
    pub(crate) fn pass(&mut self, params: &[(Direction, Type)], args: &[Arg], order: &[usize]) -> Vec<PassedArg> {
        let mut passed: Vec<Option<PassedArg>> = args.iter().map(|_| None).collect();
        for (position, index) in order.iter().enumerate() {
            let ((direction, ty), arg) = (&params[*index], &args[*index]);
            let later = order[position + 1..].iter().any(|index| walk::arg_has_effects(&args[*index]));
            let may_be_nowhere = matches!(arg, Arg::Expr(e) if has_computed_index(e));
            let place = |lval, saved| PassedArg::LValue(PassedPlace { lval, saved, may_be_nowhere, position });
            passed[*index] = Some(match (direction, arg) {
                (Direction::Out, Arg::Expr(e)) => place(self.stable_lvalue(e), None),
                (Direction::InOut, Arg::Expr(e)) => {
                    let lval = self.stable_lvalue(e);
                    let saved = later.then(|| lval.read(self));
                    let saved = saved.map(|val| self.spill(val, &lval.value_ty()));
                    place(lval, saved)
                }
                (_, Arg::Expr(e)) => {
                    let val = self.value(e);
                    PassedArg::Val(if later { self.spill(val, &e.ty) } else { val })
                }
                (Direction::In | Direction::None, Arg::DontCare(ty)) => PassedArg::Val(self.default_value(ty)),
                (_, Arg::DontCare(ty)) => place(Lval::whole(self.temp_store(ty), ty.clone()), None),
                (Direction::In | Direction::None, Arg::Absent) => PassedArg::Val(Val::Absent),
                (_, Arg::Absent) => place(Lval::whole(self.temp_store(ty), ty.clone()), None),
            });
        }
        passed.into_iter().flatten().collect()
    }

    /// Binds parameters to arguments. `captured` is the storage that the callee can access by other names; `own` is the
    /// instance whose storage holds copies (that of the body by default).
    pub(crate) fn bind(
        &mut self,
        params: &[Param],
        passed: Vec<PassedArg>,
        captured: &HashSet<StorageRoot>,
        own: Option<InstRef>,
        policy: CopyPolicy,
    ) -> Copies {
        let mut outs: Vec<HashSet<StorageRoot>> = Vec::new();
        for arg in &passed {
            let mut roots = HashSet::new();
            if let PassedArg::LValue(place) = arg {
                self.store_roots(&place.lval.store, &mut roots);
            }
            outs.push(roots);
        }
        self.spend(outs.iter().map(HashSet::len).sum::<usize>() / 64);
        let mut copies = Vec::new();
        let mut bindings = Vec::new();
        // Copies of `in` arguments come first: an `out` argument is cleared after all have been read.
        let mut later: Vec<(&Param, PassedPlace, bool)> = Vec::new();
        for (i, (param, arg)) in params.iter().zip(passed).enumerate() {
            match arg {
                PassedArg::Val(val) => {
                    let written = || outs.iter().chain(std::iter::once(captured));
                    let mut read = HashSet::new();
                    self.val_roots(&val, &mut read);
                    let compile_time = matches!(val, Val::Object(_) | Val::Text(_) | Val::Absent | Val::Integer(_));
                    let by_reference = policy == CopyPolicy::WhereNeeded
                        && is_leaf(&val)
                        && written().all(|roots| read.is_disjoint(roots));
                    if compile_time || by_reference {
                        bindings.push((param.var, Binding::Val(val)));
                    } else {
                        let ty = self.program.vars[param.var].ty.clone();
                        let store = self.param_store(param.var, own);
                        self.assign(&store, val, &ty);
                        bindings.push((param.var, Binding::Store(store)));
                    }
                }
                PassedArg::LValue(place) => {
                    let others = outs.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, roots)| roots);
                    let alone = others.chain(std::iter::once(captured)).all(|roots| outs[i].is_disjoint(roots));
                    let is_whole = place.lval.slice.is_none() && place.lval.write_back.is_none();
                    let is_member = matches!(place.lval.store, Store::Member(..));
                    let is_fixed = !place.may_be_nowhere && place.saved.is_none();
                    let by_reference = policy == CopyPolicy::WhereNeeded && alone && is_whole && !is_member && is_fixed;
                    later.push((param, place, by_reference));
                }
            }
        }
        later.sort_by_key(|(_, place, _)| place.position);
        for (param, PassedPlace { lval, saved, .. }, by_reference) in later {
            let store = if by_reference {
                lval.store.clone()
            } else {
                let store = self.param_store(param.var, own);
                if param.direction == Direction::InOut {
                    let val = saved.unwrap_or_else(|| lval.read(self));
                    self.assign(&store, val, &lval.value_ty());
                }
                copies.push((store.clone(), lval.value_ty(), lval));
                store
            };
            if param.direction == Direction::Out {
                self.initialise(&store, InitialScalars::Zero);
            }
            bindings.push((param.var, Binding::Store(store)));
        }
        self.env.extend(bindings);
        copies
    }

    fn param_store(&mut self, var: typed::VarId, own: Option<InstRef>) -> Store {
        match own {
            Some(inst) => self.inst_store(inst, var),
            None => self.local(var),
        }
    }

    /// Lowers a callee's body in a new frame.
    pub(crate) fn inline(&mut self, copies: Copies, value: Option<Store>, lower: impl FnOnce(&mut Self)) {
        let write_back = self.block("return");
        let (outer_exit, outer_copies) = match self.frames.last() {
            Some(frame) => (frame.exit_to, frame.copies),
            None => (write_back, false),
        };
        let exit_to = if copies.is_empty() { outer_exit } else { self.block("exit") };
        let pending = outer_copies || !copies.is_empty();
        let (loops, atomics) = (Vec::new(), Vec::new());
        self.frames.push(InlineFrame { value, return_to: write_back, exit_to, copies: pending, loops, atomics });
        lower(self);
        self.frames.pop();
        self.goto(write_back);
        self.body.start(write_back);
        if copies.is_empty() {
            return;
        }
        self.copy_out(&copies);
        let after = self.block("after");
        self.goto(after);
        self.body.start(exit_to);
        self.copy_out(&copies);
        self.goto(outer_exit);
        self.body.start(after);
    }

    fn copy_out(&mut self, copies: &Copies) {
        for (store, _, lval) in copies {
            self.write(lval, store.read());
        }
    }

    fn param_types(&self, params: &[Param]) -> Vec<(Direction, Type)> {
        params.iter().map(|param| (param.direction, self.program.vars[param.var].ty.clone())).collect()
    }

    fn call_function(&mut self, id: typed::FunctionId, call: &Call) -> Val {
        let function = &self.program.functions[id];
        let passed = self.pass(&self.param_types(&function.params), &call.args, &call.order);
        let copies = self.bind(&function.params, passed, &HashSet::new(), None, CopyPolicy::WhereNeeded);
        if let ([only], true) = (&function.body.statements[..], copies.is_empty())
            && let StmtKind::Return(Some(e)) = &only.kind
            && !walk::has_effects(e)
        {
            return self.value(e);
        }
        let value = (function.ret != Type::Void).then(|| self.temp_store(&function.ret));
        self.inline(copies, value.clone(), |cx| cx.statements(&function.body));
        value.map_or(Val::Absent, |store| store.read())
    }

    fn call_action(&mut self, id: typed::ActionId, call: &Call) -> Val {
        let action = &self.program.actions[id];
        let passed = self.pass(&self.param_types(&action.params), &call.args, &call.order);
        let captured = self.captured(id);
        let copies = self.bind(&action.params, passed, &captured, None, CopyPolicy::WhereNeeded);
        self.inline(copies, None, |cx| cx.statements(&action.body));
        Val::Absent
    }

    /// Returns the storage of all variables that an action, and the code it calls, uses without declaring them.
    pub(crate) fn captured(&self, id: typed::ActionId) -> HashSet<StorageRoot> {
        let mut named: Vec<&typed::Expr> = Vec::new();
        let mut parts: HashSet<*const typed::Expr> = HashSet::new();
        let mut declared = HashSet::new();
        let mut seen = HashSet::new();
        let mut actions = vec![id];
        while let Some(id) = actions.pop() {
            if !seen.insert(id) {
                continue;
            }
            let action = &self.program.actions[id];
            declared.extend(action.params.iter().map(|param| param.var));
            walk::block(&action.body, &mut |node| match node {
                CodeNode::Expr(e) => match &e.kind {
                    ExprKind::Field(base, _) => {
                        // Only the longest chain of field accesses counts; the walk visits it first.
                        if !parts.contains(&std::ptr::from_ref(e)) {
                            named.push(e);
                        }
                        parts.insert(&raw const **base);
                    }
                    ExprKind::Var(_) if !parts.contains(&std::ptr::from_ref(e)) => named.push(e),
                    _ => {}
                },
                CodeNode::Call(Call { callee: Callee::Action(callee), .. }) => actions.push(*callee),
                CodeNode::Call(_) => {}
                CodeNode::Stmt(stmt) => match &stmt.kind {
                    StmtKind::Var(var, _) | StmtKind::ForRange { var, .. } | StmtKind::ForEach { var, .. } => {
                        declared.insert(*var);
                    }
                    _ => {}
                },
            });
        }
        let mut roots = HashSet::new();
        for e in named {
            self.named_roots(e, &declared, &mut roots);
        }
        roots
    }

    /// Adds the storage of a variable or a chain of its fields.
    fn named_roots(&self, e: &typed::Expr, declared: &HashSet<typed::VarId>, roots: &mut HashSet<StorageRoot>) {
        let mut path = Vec::new();
        let mut at = e;
        while let ExprKind::Field(base, index) = &at.kind {
            path.push(*index);
            at = base;
        }
        let ExprKind::Var(var) = &at.kind else { return };
        if declared.contains(var) {
            return;
        }
        match self.env.get(var) {
            Some(Binding::Store(store)) => {
                let mut store = store;
                while let (Store::Fields(parts), Some(index)) = (store, path.pop()) {
                    match parts.get(index) {
                        Some(part) => store = part,
                        None => return,
                    }
                }
                self.store_roots(store, roots);
            }
            Some(Binding::Val(val)) => self.val_roots(val, roots),
            None => {}
        }
    }

    /// Applies a sub-parser or sub-control.
    fn apply(&mut self, object: &Object, call: &Call) {
        match object {
            Object::Control(inst) => {
                let control = self.control_of(*inst);
                let Some(control) = control else { return };
                let passed = self.pass(&self.param_types(&control.params), &call.args, &call.order);
                let shares_tables = self.insts[inst.0].multi && !control.tables.is_empty();
                let policy = if shares_tables { CopyPolicy::Always } else { CopyPolicy::WhereNeeded };
                self.enter(*inst, |cx| {
                    let copies = cx.bind(&control.params, passed, &HashSet::new(), Some(*inst), policy);
                    cx.inline(copies, None, |cx| cx.control_body(*inst));
                });
            }
            Object::Parser(inst) => {
                let parser = self.parser_of(*inst);
                let Some(parser) = parser else { return };
                if self.body.kind != ir::BodyKind::Parser {
                    let span = self.span;
                    self.unsupported(span, "a parser can be applied only in a parser");
                    return;
                }
                let passed = self.pass(&self.param_types(&parser.params), &call.args, &call.order);
                self.enter(*inst, |cx| {
                    let copies = cx.bind(&parser.params, passed, &HashSet::new(), Some(*inst), CopyPolicy::WhereNeeded);
                    cx.inline(copies, None, |cx| cx.parser_body(*inst));
                });
            }
            _ => {
                let span = self.span;
                self.unsupported(span, "this cannot be applied");
            }
        }
    }

    /// Returns the storage of a variable that lives as long as an instance.
    pub(crate) fn inst_store(&mut self, inst: InstRef, var: typed::VarId) -> Store {
        if let Some(store) = self.insts[inst.0].stores.get(&var) {
            return store.clone();
        }
        let decl = &self.program.vars[var];
        let name = format!("{}.{}", self.insts[inst.0].path, decl.name);
        let store = self.store(&name, &decl.ty, Lifetime::Scoped);
        let mut roots = HashSet::new();
        self.store_roots(&store, &mut roots);
        for root in roots {
            match root {
                StorageRoot::Slot(slot) => self.scoped.instance_slots.insert(slot),
                StorageRoot::Header(header) => self.scoped.instance_headers.insert(header),
            };
        }
        self.insts[inst.0].stores.insert(var, store.clone());
        store
    }
}

/// Whether an l-value has an index that is not a constant.
fn has_computed_index(e: &typed::Expr) -> bool {
    let is_computed = matches!(&e.kind, ExprKind::Element(_, index) if !matches!(index.kind, ExprKind::Const(_)));
    is_computed || e.children().next().is_some_and(has_computed_index)
}

/// Whether using the value costs no more than using a copy of it, and no other assignment can change which storage it
/// refers to.
fn is_leaf(val: &Val) -> bool {
    let fixed = |header: &ir::HeaderRef| matches!(header, ir::HeaderRef::Header(_));
    match val {
        Val::Bits(expr) => is_leaf_expr(expr),
        Val::Varbit(header, _) | Val::Header(header) => fixed(header),
        Val::Union(members) => members.iter().all(fixed),
        Val::Literal(parts) | Val::Fields(parts) | Val::Array(parts, _) => parts.iter().all(is_leaf),
        Val::Integer(_) | Val::Text(_) | Val::Invalid | Val::Stack(_) | Val::Object(_) | Val::Absent => true,
    }
}

fn is_leaf_expr(expr: &ir::Expr) -> bool {
    match expr {
        ir::Expr::Const(_) | ir::Expr::Slot(_) => true,
        ir::Expr::Field(header, _) | ir::Expr::Valid(header) => matches!(header, ir::HeaderRef::Header(_)),
        ir::Expr::Slice(inner, _, _) => is_leaf_expr(inner),
        _ => false,
    }
}
