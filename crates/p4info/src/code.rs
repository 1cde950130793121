//! Finds the effects of code that are visible to the control plane: it applies tables, parsers and controls, calls
//! actions, and sends digests.

use std::collections::HashSet;

use p4::typed::{
    Action, ActionId, Arg, Block, Call, Callee, Expr, FunctionId, Keyset, Stmt, StmtKind, Transition, TransitionTarget,
    Value,
};

use crate::inventory::{InstanceKind, StaticValue, Walker};

/// Context of the code being walked.
struct CodeContext<'a> {
    /// The parser or control instance; `None` in an action.
    inst: Option<usize>,
    /// Whether calls of extern functions are recorded here.
    in_control: bool,
    /// Bodies of called functions and actions, which count as part of the caller. They are queued instead of being
    /// walked at once, so a long chain of calls needs no deep stack.
    callees: Vec<&'a Block>,
    functions: HashSet<FunctionId>,
    actions: HashSet<ActionId>,
}

impl CodeContext<'_> {
    fn new(inst: Option<usize>, in_control: bool) -> Self {
        CodeContext { inst, in_control, callees: Vec::new(), functions: HashSet::new(), actions: HashSet::new() }
    }
}

impl<'a> Walker<'a, '_> {
    /// Marks the objects that an instance uses, and those of the instances it applies.
    pub(crate) fn apply(&mut self, root: usize) {
        self.insts[root].applied = true;
        self.to_apply.push_back(root);
        while let Some(at) = self.to_apply.pop_front() {
            self.apply_one(at);
        }
    }

    fn apply_one(&mut self, at: usize) {
        let program = self.program;
        match self.insts[at].kind {
            InstanceKind::Control(id) => {
                let mut context = CodeContext::new(Some(at), true);
                for local in &program.controls[id].locals {
                    if let p4::typed::Local::Var(_, Some(init)) = local {
                        self.expr(init, &mut context);
                    }
                }
                self.block(&program.controls[id].body, &mut context);
                self.callees(&mut context);
            }
            InstanceKind::Parser(id) => {
                let mut context = CodeContext::new(Some(at), false);
                let parser = &program.parsers[id];
                let mut reached = HashSet::from([parser.start]);
                let mut todo = vec![parser.start];
                while let Some(index) = todo.pop() {
                    let state = &parser.states[index];
                    self.block(&state.body, &mut context);
                    let mut go = |target: &TransitionTarget| {
                        if let TransitionTarget::State(next) = target
                            && reached.insert(*next)
                        {
                            todo.push(*next);
                        }
                    };
                    match &state.transition {
                        Transition::Direct(target, _) => go(target),
                        Transition::Select { cases, .. } => {
                            for case in cases {
                                go(&case.target);
                                for key in &case.keys {
                                    if let Keyset::ValueSet(set, _) = key {
                                        self.insts[at].value_sets.insert(*set);
                                    }
                                }
                            }
                        }
                    }
                    if let Transition::Select { exprs, .. } = &state.transition {
                        exprs.iter().for_each(|e| self.expr(e, &mut context));
                    }
                }
                self.callees(&mut context);
            }
        }
    }

    /// Records the effects of an action's body.
    pub(crate) fn action_calls(&mut self, action: &'a Action) {
        let mut context = CodeContext::new(None, true);
        self.block(&action.body, &mut context);
        self.callees(&mut context);
    }

    fn callees(&mut self, context: &mut CodeContext<'a>) {
        while let Some(block) = context.callees.pop() {
            self.block(block, context);
        }
    }

    fn block(&mut self, block: &'a Block, context: &mut CodeContext<'a>) {
        for stmt in &block.statements {
            self.stmt(stmt, context);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt, context: &mut CodeContext<'a>) {
        match &stmt.kind {
            StmtKind::Var(_, init) => init.iter().for_each(|e| self.expr(e, context)),
            StmtKind::Assign { lhs, rhs, .. } => {
                self.expr(lhs, context);
                self.expr(rhs, context);
            }
            StmtKind::Call(call) => self.call(call, context),
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition, context);
                let known = match self.known(condition, context.inst) {
                    Some(StaticValue::Value(Value::Bool(truth))) => Some(truth),
                    _ => None,
                };
                if known != Some(false) {
                    self.stmt(then, context);
                }
                if known != Some(true) {
                    otherwise.iter().for_each(|s| self.stmt(s, context));
                }
            }
            StmtKind::Switch { subject, cases, default } => {
                self.expr(subject, context);
                for (_, body) in cases {
                    self.block(body, context);
                }
                default.iter().for_each(|b| self.block(b, context));
            }
            StmtKind::SwitchAction { apply, cases, default, .. } => {
                self.call(apply, context);
                cases.iter().for_each(|(_, b)| self.block(b, context));
                default.iter().for_each(|b| self.block(b, context));
            }
            StmtKind::For { init, condition, update, body } => {
                init.iter().for_each(|s| self.stmt(s, context));
                self.expr(condition, context);
                update.iter().for_each(|s| self.stmt(s, context));
                self.stmt(body, context);
            }
            StmtKind::ForRange { low, high, body, .. } => {
                self.expr(low, context);
                self.expr(high, context);
                self.stmt(body, context);
            }
            StmtKind::ForEach { items, body, .. } => {
                self.expr(items, context);
                self.stmt(body, context);
            }
            StmtKind::Block(block) => self.block(block, context),
            StmtKind::Return(value) => value.iter().for_each(|e| self.expr(e, context)),
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
        }
    }

    fn expr(&mut self, e: &'a Expr, context: &mut CodeContext<'a>) {
        e.children().for_each(|child| self.expr(child, context));
        if let Some(call) = e.call() {
            self.call(call, context);
        }
    }

    fn call(&mut self, call: &'a Call, context: &mut CodeContext<'a>) {
        let program = self.program;
        for arg in &call.args {
            if let Arg::Expr(e) = arg {
                self.expr(e, context);
            }
        }
        match &call.callee {
            Callee::Table(table) => {
                if let Some(at) = context.inst {
                    self.insts[at].tables.insert(*table);
                    program.tables[*table].keys.iter().for_each(|key| self.expr(&key.expr, context));
                }
            }
            // An action's body counts where the action is listed in a table or passed on; one that an action calls is
            // part of the caller.
            Callee::Action(action) => match context.inst {
                Some(at) => {
                    let own = matches!(self.insts[at].kind, InstanceKind::Control(id) if program.controls[id].actions.contains(action));
                    if own {
                        self.insts[at].called.insert(*action);
                    } else if !self.global_actions.contains(action) {
                        self.global_actions.push(*action);
                    }
                }
                None => {
                    if context.actions.insert(*action) {
                        context.callees.push(&program.actions[*action].body);
                    }
                }
            },
            Callee::Function(function) => {
                if context.functions.insert(*function) {
                    context.callees.push(&program.functions[*function].body);
                }
            }
            Callee::ExternFn(function, types) => {
                let function = &program.extern_fns[*function];
                if context.in_control && &*function.name != "static_assert" {
                    self.out.calls_extern_functions = true;
                    if self.model.is_digest(&function.name)
                        && let Some(ty) = types.first()
                    {
                        let in_action = context.inst.is_none();
                        let digests = if in_action { &mut self.out.digests } else { &mut self.body_digests };
                        digests.push((ty, call.span));
                    }
                }
            }
            Callee::Apply(target) => {
                if let Some(StaticValue::Inst(inner)) = self.known(target, context.inst)
                    && !std::mem::replace(&mut self.insts[inner].applied, true)
                {
                    self.to_apply.push_back(inner);
                }
            }
            Callee::Method { object, .. } => self.expr(object, context),
            Callee::Builtin(_, base) => self.expr(base, context),
        }
    }
}
