//! Controls and actions (specification sections 14 and 14.1).

use source::{Diagnostic, Span};

use super::scope::Symbol;
use super::{Checker, Context, Place, error_type};
use crate::ast::{self, DeclKind};
use crate::typed::{self, Local, Type};

impl<'a> Checker<'a> {
    /// Checks a control with these type arguments, once.
    pub(super) fn control(
        &mut self,
        index: usize,
        decl: &'a ast::Decl,
        control: &'a ast::ControlDecl,
        args: Vec<Type>,
        span: Span,
    ) -> Type {
        let origin = (index, args);
        if let Some(id) = self.controls.get(&origin) {
            return Type::Control(*id);
        }
        if !self.may_specialise(span) {
            return error_type();
        }
        let name = control.ty.name.name.clone();
        let annotations = self.annotations(&decl.annotations);
        let id = self.out.controls.push(typed::Control {
            name: name.clone(),
            params: Vec::new(),
            ctor_params: Vec::new(),
            locals: Vec::new(),
            actions: Vec::new(),
            tables: Vec::new(),
            body: typed::Block::default(),
            annotations,
            span: control.ty.name.span,
        });
        self.controls.insert(origin.clone(), id);
        self.control_origins.insert(id, origin.clone());
        let bindings: Vec<_> = control.ty.type_params.iter().map(|param| param.name.clone()).zip(origin.1).collect();
        let cx = Context { place: Place::ControlLocals, prefix: format!("{name}."), ..Context::top_level() };
        self.in_progress.insert(index);
        let done = self.deeper(span, |c| {
            c.within(index + 1, &bindings, cx, |c| {
                c.scoped(|c| {
                    let params = c.params(&control.ty.params, "control");
                    let ctor_params = c.params(&control.ctor_params, "constructor");
                    c.out.controls[id].params = params;
                    c.out.controls[id].ctor_params = ctor_params;
                    c.scopes.push(super::scope::Scope::default());
                    let mut locals = c.control_locals(&control.locals);
                    c.cx.place = Place::Apply;
                    let (body, _) = c.scoped(|c| c.body(&control.body));
                    locals.append(&mut c.cx.locals);
                    c.scopes.pop();
                    let (actions, tables) = (std::mem::take(&mut c.local_actions), std::mem::take(&mut c.local_tables));
                    let out = &mut c.out.controls[id];
                    out.locals = locals;
                    out.actions = actions;
                    out.tables = tables;
                    out.body = body;
                });
            });
        });
        self.in_progress.remove(&index);
        if done.is_none() { error_type() } else { Type::Control(id) }
    }

    fn control_locals(&mut self, list: &'a [ast::Decl]) -> Vec<Local> {
        let mut locals = Vec::new();
        for decl in list {
            match &decl.kind {
                DeclKind::Const { ty, name, value } => self.const_decl(ty, name, value),
                DeclKind::Variable { ty, name, init } => {
                    let (var, init) = self.variable(ty, name, init.as_ref(), &decl.annotations);
                    locals.push(Local::Var(var, init));
                }
                DeclKind::Instance(instance) => {
                    if let Some(id) = self.instance_decl(instance, &decl.annotations) {
                        locals.append(&mut self.cx.locals);
                        locals.push(Local::Instance(id));
                    }
                }
                DeclKind::Action { name, params, body } => self.action(name, params, body, &decl.annotations),
                DeclKind::Table(table) => {
                    self.table(table, &decl.annotations);
                    locals.append(&mut self.cx.locals);
                }
                DeclKind::ValueSet { ty, size, name } => {
                    if let Some(id) = self.value_set(ty, size, name, &decl.annotations) {
                        locals.push(Local::ValueSet(id));
                    }
                }
                _ => {
                    self.error(Diagnostic::error("placement", decl.span, "this cannot be declared in a control"));
                    if let Some(name) = super::scope::name_of(decl) {
                        self.declare(name, Symbol::Wrong);
                    }
                }
            }
        }
        locals
    }

    /// `action name(params) { ... }`, at top level or in a control.
    pub(super) fn action(
        &mut self,
        name: &'a ast::Ident,
        params: &'a [ast::Param],
        body: &'a ast::Block,
        annotations: &'a ast::Annotations,
    ) {
        let cx = self.cx.clone();
        self.cx.place = Place::Action;
        self.cx.ret = Some(Type::Void);
        self.cx.loops = 0;
        let control_name = self.control_plane_name(name, annotations);
        let typed_annotations = self.annotations(annotations);
        let is_top_level = self.scopes.is_empty();
        let (params, (body, _)) = self.scoped(|c| (c.params(params, "action"), c.body(body)));
        let made = std::mem::take(&mut self.cx.locals);
        self.cx = cx;
        self.cx.locals = made;
        if &*control_name != "NoAction" {
            match self.action_names.get(&control_name) {
                Some(first) if *first != name.span => {
                    let first = *first;
                    self.error(
                        Diagnostic::error(
                            "control-plane-name",
                            name.span,
                            format!("two actions are called `{control_name}` by the control plane"),
                        )
                        .also(first, "the other")
                        .help("give one of them another `@name`"),
                    );
                }
                _ => {
                    self.action_names.insert(control_name.clone(), name.span);
                }
            }
        }
        let id = self.out.actions.push(typed::Action {
            name: control_name,
            local_name: name.name.clone(),
            params,
            body,
            annotations: typed_annotations,
            span: name.span,
        });
        if !is_top_level {
            self.local_actions.push(id);
        }
        self.declare(name, Symbol::Action(id));
    }
}
