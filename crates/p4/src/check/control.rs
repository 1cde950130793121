//! Checks controls and actions (specification sections 14 and 14.1).

use diagnostics::{Diagnostic, Span};

use super::scope::Symbol;
use super::{BodyContext, Checker, error_type};
use crate::ast;
use crate::typed::{self, Type};

impl<'a> Checker<'a> {
    /// Checks a control specialised to these type arguments, unless that was done before.
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
        let done = self.pipeline(index, &origin.1, span, |c, params, ctor_params| {
            c.out.controls[id].params = params;
            c.out.controls[id].ctor_params = ctor_params;
            let mut locals = c.pipeline_locals(&control.locals);
            c.cx.context = BodyContext::Apply;
            let (body, _) = c.scoped(|c| c.body(&control.body));
            locals.append(&mut c.cx.locals);
            let (actions, tables) = (std::mem::take(&mut c.local_actions), std::mem::take(&mut c.local_tables));
            let out = &mut c.out.controls[id];
            out.locals = locals;
            out.actions = actions;
            out.tables = tables;
            out.body = body;
        });
        if done { Type::Control(id) } else { error_type() }
    }

    /// Checks `action name(params) { ... }`, at top level or in a control.
    pub(super) fn action(
        &mut self,
        name: &'a ast::Ident,
        params: &'a [ast::Param],
        body: &'a ast::Block,
        annotations: &'a ast::Annotations,
    ) {
        let cx = self.cx.clone();
        self.cx.context = BodyContext::Action;
        self.cx.ret = Some(Type::Void);
        self.cx.loops = 0;
        let control_name = self.control_plane_name(name, annotations);
        let typed_annotations = self.annotations(annotations);
        let is_top_level = self.scopes.is_empty();
        let (params, (body, _)) = self.scoped(|c| (c.params(params, "action"), c.body(body)));
        let action_locals = std::mem::take(&mut self.cx.locals);
        self.cx = cx;
        self.cx.locals = action_locals;
        // Any action may be called `NoAction` like that of `core.p4`. An action with the same span is that of another
        // specialisation of its control, not a duplicate.
        if &*control_name != "NoAction" {
            match self.action_names.get(&control_name) {
                Some(first) if *first != name.span => {
                    let first = *first;
                    self.error(
                        Diagnostic::error(
                            "control-plane-name",
                            name.span,
                            format!("two actions have the control-plane name `{control_name}`"),
                        )
                        .also(first, "first declared here")
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
