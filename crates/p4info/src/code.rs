//! What code does that the control plane can notice: it applies tables, parsers and controls, calls actions, sends
//! digests.

use std::collections::HashSet;

use p4::typed::{
    Action, ActionId, Arg, Block, Call, Callee, Expr, FunctionId, Keyset, Stmt, StmtKind, Transition, TransitionTarget,
    Value,
};

use crate::inventory::{Kind, Static, Walker};

/// Where code stands.
struct Scene<'a> {
    /// The parser or control instance; none in an action.
    inst: Option<usize>,
    /// Whether extern functions called here count.
    in_control: bool,
    /// Bodies of functions and actions that are called: they are a part of what calls them. They wait here instead of
    /// being gone into at once, so that a long chain of calls needs no deep stack.
    callees: Vec<&'a Block>,
    functions: HashSet<FunctionId>,
    actions: HashSet<ActionId>,
}

impl Scene<'_> {
    fn new(inst: Option<usize>, in_control: bool) -> Self {
        Scene { inst, in_control, callees: Vec::new(), functions: HashSet::new(), actions: HashSet::new() }
    }
}

impl<'a> Walker<'a, '_> {
    /// Marks what an instance uses, and what the instances it applies use.
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
            Kind::Control(id) => {
                let mut scene = Scene::new(Some(at), true);
                for local in &program.controls[id].locals {
                    if let p4::typed::Local::Var(_, Some(init)) = local {
                        self.expr(init, &mut scene);
                    }
                }
                self.block(&program.controls[id].body, &mut scene);
                self.callees(&mut scene);
            }
            Kind::Parser(id) => {
                let mut scene = Scene::new(Some(at), false);
                let parser = &program.parsers[id];
                let mut reached = HashSet::from([parser.start]);
                let mut todo = vec![parser.start];
                while let Some(index) = todo.pop() {
                    let state = &parser.states[index];
                    self.block(&state.body, &mut scene);
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
                        exprs.iter().for_each(|e| self.expr(e, &mut scene));
                    }
                }
                self.callees(&mut scene);
            }
        }
    }

    /// Notes what an action's body does.
    pub(crate) fn action_calls(&mut self, action: &'a Action) {
        let mut scene = Scene::new(None, true);
        self.block(&action.body, &mut scene);
        self.callees(&mut scene);
    }

    fn callees(&mut self, scene: &mut Scene<'a>) {
        while let Some(block) = scene.callees.pop() {
            self.block(block, scene);
        }
    }

    fn block(&mut self, block: &'a Block, scene: &mut Scene<'a>) {
        for stmt in &block.statements {
            self.stmt(stmt, scene);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt, scene: &mut Scene<'a>) {
        match &stmt.kind {
            StmtKind::Var(_, init) => init.iter().for_each(|e| self.expr(e, scene)),
            StmtKind::Assign { lhs, rhs, .. } => {
                self.expr(lhs, scene);
                self.expr(rhs, scene);
            }
            StmtKind::Call(call) => self.call(call, scene),
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition, scene);
                let known = match self.known(condition, scene.inst) {
                    Some(Static::Value(Value::Bool(truth))) => Some(truth),
                    _ => None,
                };
                if known != Some(false) {
                    self.stmt(then, scene);
                }
                if known != Some(true) {
                    otherwise.iter().for_each(|s| self.stmt(s, scene));
                }
            }
            StmtKind::Switch { subject, cases, default } => {
                self.expr(subject, scene);
                for (_, body) in cases {
                    self.block(body, scene);
                }
                default.iter().for_each(|b| self.block(b, scene));
            }
            StmtKind::SwitchAction { apply, cases, default, .. } => {
                self.call(apply, scene);
                cases.iter().for_each(|(_, b)| self.block(b, scene));
                default.iter().for_each(|b| self.block(b, scene));
            }
            StmtKind::For { init, condition, update, body } => {
                init.iter().for_each(|s| self.stmt(s, scene));
                self.expr(condition, scene);
                update.iter().for_each(|s| self.stmt(s, scene));
                self.stmt(body, scene);
            }
            StmtKind::ForRange { low, high, body, .. } => {
                self.expr(low, scene);
                self.expr(high, scene);
                self.stmt(body, scene);
            }
            StmtKind::ForEach { items, body, .. } => {
                self.expr(items, scene);
                self.stmt(body, scene);
            }
            StmtKind::Block(block) => self.block(block, scene),
            StmtKind::Return(value) => value.iter().for_each(|e| self.expr(e, scene)),
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
        }
    }

    fn expr(&mut self, e: &'a Expr, scene: &mut Scene<'a>) {
        e.children().for_each(|child| self.expr(child, scene));
        if let Some(call) = e.call() {
            self.call(call, scene);
        }
    }

    fn call(&mut self, call: &'a Call, scene: &mut Scene<'a>) {
        let program = self.program;
        for arg in &call.args {
            if let Arg::Expr(e) = arg {
                self.expr(e, scene);
            }
        }
        match &call.callee {
            Callee::Table(table) => {
                if let Some(at) = scene.inst {
                    self.insts[at].tables.insert(*table);
                    program.tables[*table].keys.iter().for_each(|key| self.expr(&key.expr, scene));
                }
            }
            // An action's body counts where the action is handed out; one that an action calls is a part of that.
            Callee::Action(action) => match scene.inst {
                Some(at) => {
                    let own = matches!(self.insts[at].kind, Kind::Control(id) if program.controls[id].actions.contains(action));
                    if own {
                        self.insts[at].called.insert(*action);
                    } else if !self.global_actions.contains(action) {
                        self.global_actions.push(*action);
                    }
                }
                None => {
                    if scene.actions.insert(*action) {
                        scene.callees.push(&program.actions[*action].body);
                    }
                }
            },
            Callee::Function(function) => {
                if scene.functions.insert(*function) {
                    scene.callees.push(&program.functions[*function].body);
                }
            }
            Callee::ExternFn(function, types) => {
                let function = &program.extern_fns[*function];
                if scene.in_control && &*function.name != "static_assert" {
                    self.out.calls_extern_functions = true;
                    if self.model.is_digest(&function.name)
                        && let Some(ty) = types.first()
                    {
                        let in_action = scene.inst.is_none();
                        let digests = if in_action { &mut self.out.digests } else { &mut self.body_digests };
                        digests.push((ty, call.span));
                    }
                }
            }
            Callee::Apply(target) => {
                if let Some(Static::Inst(inner)) = self.known(target, scene.inst)
                    && !std::mem::replace(&mut self.insts[inner].applied, true)
                {
                    self.to_apply.push_back(inner);
                }
            }
            Callee::Method { object, .. } => self.expr(object, scene),
            Callee::Builtin(_, base) => self.expr(base, scene),
        }
    }
}
