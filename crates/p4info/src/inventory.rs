//! Takes an inventory of the objects of a program that the control plane can see, in a walk over everything that
//! the package instantiates.
//!
//! Sub-parsers and sub-controls are treated as inlined where they are instantiated; their names are prefixed with the
//! names of the enclosing instances. Only reachable objects are included: a table that is never applied, an action that
//! no table lists and no control calls, and an instance that is never applied are left out. Extern objects are included
//! whether used or not. Actions that only actions call have been inlined.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use diagnostics::names::numbered;
use diagnostics::{Diagnostic, Diagnostics, Span};
use p4::typed::{
    Action, ActionId, Annotations, Arg, ControlId, Expr, ExprKind, ExternDecl, Instance, InstanceId, Local, ParserId,
    Program, Table, TableId, Type, Value, ValueSet, ValueSetId, VarId,
};

use crate::eval;
use crate::model::{ControlPlaneModel, Resource};

/// Maximum number of parser, control and extern instances of a program.
const MAX_INSTANCES: usize = 20_000;

/// Maximum nesting depth of instances.
const MAX_DEPTH: usize = 200;

/// The compile-time value of a constructor parameter or an instance name.
#[derive(Clone, Debug)]
pub(crate) enum StaticValue {
    Value(Value),
    /// Index into [`Inventory::externs`].
    Extern(usize),
    /// Index of a parser or control instance.
    Inst(usize),
}

/// An instance of an extern object.
pub(crate) struct ExternObject<'a> {
    pub(crate) name: String,
    pub(crate) decl: &'a Instance,
    pub(crate) object: &'a ExternDecl,
    /// Constructor arguments, where they are values.
    args: Vec<Option<Value>>,
    /// Whether it is constructed in a table property, which then carries its annotations.
    pub(crate) in_place: bool,
}

impl ExternObject<'_> {
    /// Returns the constructor argument of the parameter with this name.
    pub(crate) fn arg(&self, name: &str) -> Option<&Value> {
        let at = self.decl.param_names.iter().position(|param| &**param == name)?;
        self.args.get(at)?.as_ref()
    }
}

/// A table of an instantiated control.
pub(crate) struct TableObject<'a> {
    pub(crate) name: String,
    pub(crate) table: &'a Table,
    /// Names of `actions`, in the same order.
    pub(crate) actions: Vec<String>,
    /// Values of the properties, where they have one.
    pub(crate) properties: Vec<Option<StaticValue>>,
    /// Values of the default action's parameters, with their types.
    pub(crate) default_args: Vec<(Option<Value>, &'a Type)>,
}

/// An action that the control plane can see.
pub(crate) struct ActionObject<'a> {
    pub(crate) name: String,
    pub(crate) action: &'a Action,
    /// Whether the control plane sets its parameters, because a table lists it.
    pub(crate) listed: bool,
}

/// All objects that were found.
#[derive(Default)]
pub(crate) struct Inventory<'a> {
    /// All extern instances; [`Inventory::visible_externs`] returns the visible ones.
    pub(crate) externs: Vec<ExternObject<'a>>,
    pub(crate) visible_externs: Vec<usize>,
    pub(crate) tables: Vec<TableObject<'a>>,
    pub(crate) actions: Vec<ActionObject<'a>>,
    pub(crate) value_sets: Vec<(String, &'a ValueSet)>,
    /// The types sent in digests, in the order of the calls.
    pub(crate) digests: Vec<(&'a Type, Span)>,
    /// Whether a control calls any extern function.
    pub(crate) calls_extern_functions: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum InstanceKind {
    Parser(ParserId),
    Control(ControlId),
}

pub(crate) struct Inst {
    pub(crate) kind: InstanceKind,
    path: String,
    statics: Rc<HashMap<VarId, StaticValue>>,
    pub(crate) objects: HashMap<InstanceId, StaticValue>,
    pub(crate) applied: bool,
    pub(crate) tables: HashSet<TableId>,
    /// Actions called directly.
    pub(crate) called: HashSet<ActionId>,
    pub(crate) value_sets: HashSet<ValueSetId>,
}

pub(crate) struct Walker<'a, 'd> {
    pub(crate) program: &'a Program,
    pub(crate) model: &'d dyn ControlPlaneModel,
    diagnostics: &'d mut Diagnostics,
    pub(crate) insts: Vec<Inst>,
    globals: HashMap<InstanceId, StaticValue>,
    pub(crate) out: Inventory<'a>,
    /// Digests sent by the body of the current control.
    pub(crate) body_digests: Vec<(&'a Type, Span)>,
    /// Top-level actions called directly in the current control, in order.
    pub(crate) global_actions: Vec<ActionId>,
    /// Extern instances constructed in a table property, and their names.
    in_place: HashMap<InstanceId, Option<String>>,
    /// Packages already visited: one may be part of another.
    packages: HashSet<InstanceId>,
    /// Applied instances whose code has not been visited yet.
    pub(crate) to_apply: VecDeque<usize>,
    /// Actions declared in a control.
    local_actions: HashSet<ActionId>,
    overflow: bool,
}

/// Takes the inventory of a program.
pub(crate) fn take<'a>(
    program: &'a Program,
    model: &dyn ControlPlaneModel,
    diagnostics: &mut Diagnostics,
) -> Inventory<'a> {
    let mut walker = Walker {
        program,
        model,
        diagnostics,
        insts: Vec::new(),
        globals: HashMap::new(),
        out: Inventory::default(),
        body_digests: Vec::new(),
        global_actions: Vec::new(),
        in_place: HashMap::new(),
        packages: HashSet::new(),
        to_apply: VecDeque::new(),
        local_actions: program.controls.values().flat_map(|control| control.actions.iter().copied()).collect(),
        overflow: false,
    };
    walker.find_in_place();
    for id in &program.top_level {
        if matches!(program.instances[*id].ty, Type::Extern(_))
            && let Some(StaticValue::Extern(at)) = walker.global(*id)
        {
            walker.out.visible_externs.push(at);
        }
    }
    for id in &program.top_level {
        if matches!(program.instances[*id].ty, Type::Package(_)) {
            walker.package(*id, 0);
        }
    }
    walker.out.number_shared_names(model);
    walker.out
}

impl Inventory<'_> {
    /// Numbers the names that several instances of a declaration have, as lowering does, which also reports them.
    fn number_shared_names(&mut self, model: &dyn ControlPlaneModel) {
        let mut claimed: HashMap<(&str, String), (Span, usize)> = HashMap::new();
        let mut claim = |kind: &'static str, name: &mut String, span: Span| {
            loop {
                let (first, count) = claimed.entry((kind, name.clone())).or_insert((span, 0));
                *count += 1;
                if *count == 1 || *first != span {
                    break;
                }
                *name = numbered(name, *count);
            }
        };
        let in_tables = self.tables.iter().flat_map(|table| &table.properties);
        let in_tables = in_tables.filter_map(|value| match value {
            Some(StaticValue::Extern(at)) => Some(*at),
            _ => None,
        });
        let mut seen = HashSet::new();
        let shown: Vec<usize> = self.visible_externs.iter().copied().chain(in_tables).collect();
        for at in shown.into_iter().filter(|at| seen.insert(*at)) {
            let object = &mut self.externs[at];
            let kind = match model.resource(&object.object.name) {
                Some(Resource::ActionProfile { .. }) => "action profile",
                Some(Resource::Counter { .. } | Resource::DirectCounter { .. }) => "counter",
                Some(Resource::Meter { .. } | Resource::DirectMeter { .. }) => "meter",
                Some(Resource::Register { .. }) => "register",
                None => continue,
            };
            claim(kind, &mut object.name, object.decl.span);
        }
        self.tables.iter_mut().for_each(|object| claim("table", &mut object.name, object.table.span));
        self.value_sets.iter_mut().for_each(|(name, set)| claim("value set", name, set.span));
    }
}

impl<'a> Walker<'a, '_> {
    fn find_in_place(&mut self) {
        for table in self.program.tables.values() {
            for property in &table.properties {
                if let ExprKind::Instance(id) = &property.value.kind {
                    let span = self.program.instances[*id].span;
                    let own = property.span;
                    if span.file == own.file && own.start <= span.start && span.end <= own.end {
                        let given = crate::annotations::string(&property.annotations, "name");
                        self.in_place.insert(*id, given);
                    }
                }
            }
        }
    }

    /// Collects the parsers and controls of a package, and of nested packages.
    fn package(&mut self, id: InstanceId, depth: usize) {
        if depth > MAX_DEPTH || !self.packages.insert(id) {
            return;
        }
        let program = self.program;
        for arg in &program.instances[id].args {
            let Arg::Expr(Expr { kind: ExprKind::Instance(inner), .. }) = arg else { continue };
            if matches!(program.instances[*inner].ty, Type::Package(_)) {
                self.package(*inner, depth + 1);
            } else if let Some(StaticValue::Inst(root)) = self.global(*inner) {
                self.root(root);
            }
        }
    }

    fn root(&mut self, root: usize) {
        if self.insts[root].applied {
            return;
        }
        self.body_digests.clear();
        self.global_actions.clear();
        self.apply(root);
        let first_action = self.out.actions.len();
        let first_table = self.out.tables.len();
        self.emit(root);
        self.emit_global_actions(first_action, first_table);
        if matches!(self.insts[root].kind, InstanceKind::Control(_)) {
            for at in first_action..self.out.actions.len() {
                let action = self.out.actions[at].action;
                self.action_calls(action);
            }
            let mut digests = std::mem::take(&mut self.body_digests);
            self.out.digests.append(&mut digests);
        }
    }

    /// Emits top-level actions. They precede the control's own, in the order in which tables list them and code calls
    /// them.
    fn emit_global_actions(&mut self, first_action: usize, first_table: usize) {
        let program = self.program;
        let mut order: Vec<ActionId> = Vec::new();
        let mut listed: HashSet<ActionId> = HashSet::new();
        for at in first_table..self.out.tables.len() {
            for action in &self.out.tables[at].table.actions {
                if self.is_global(action.action) && listed.insert(action.action) {
                    order.push(action.action);
                }
            }
        }
        for action in &self.global_actions {
            if !order.contains(action) {
                order.push(*action);
            }
        }
        let global: Vec<_> = order
            .into_iter()
            .map(|id| ActionObject {
                name: program.actions[id].name.to_string(),
                action: &program.actions[id],
                listed: listed.contains(&id),
            })
            .collect();
        self.out.actions.splice(first_action..first_action, global);
    }

    fn is_global(&self, action: ActionId) -> bool {
        !self.local_actions.contains(&action)
    }

    fn global(&mut self, id: InstanceId) -> Option<StaticValue> {
        if let Some(known) = self.globals.get(&id) {
            return Some(known.clone());
        }
        let made = self.instantiate(id, None, 0)?;
        self.globals.insert(id, made.clone());
        Some(made)
    }

    fn instantiate(&mut self, id: InstanceId, parent: Option<usize>, depth: usize) -> Option<StaticValue> {
        let program = self.program;
        let decl = &program.instances[id];
        if self.insts.len() + self.out.externs.len() >= MAX_INSTANCES || depth > MAX_DEPTH {
            if !std::mem::replace(&mut self.overflow, true) {
                self.diagnostics.push(
                    Diagnostic::error("too-large", decl.span, "too many instances, or nested too deeply")
                        .help(format!("the maximum is {MAX_INSTANCES} instances, nested {MAX_DEPTH} deep")),
                );
            }
            return None;
        }
        let mut args = Vec::new();
        for arg in &decl.args {
            args.push(match arg {
                Arg::Expr(e) => self.known(e, parent),
                Arg::DontCare(_) | Arg::Absent => None,
            });
        }
        let path = self.path(&decl.name, parent);
        match &decl.ty {
            Type::Extern(object) => {
                if decl.array.is_some() {
                    let message = "P4Info has no arrays of extern objects";
                    self.diagnostics.push(
                        Diagnostic::error("unsupported", decl.span, message).help("declare each object separately"),
                    );
                }
                let values = args.into_iter().map(|arg| match arg {
                    Some(StaticValue::Value(value)) => Some(value),
                    _ => None,
                });
                let in_place = self.in_place.get(&id).cloned();
                let name = match &in_place {
                    Some(Some(given)) => given.trim_start_matches('.').to_owned(),
                    _ => path,
                };
                self.out.externs.push(ExternObject {
                    name,
                    decl,
                    object: &program.externs[*object],
                    args: values.collect(),
                    in_place: in_place.is_some(),
                });
                Some(StaticValue::Extern(self.out.externs.len() - 1))
            }
            Type::Parser(parser) => {
                let declared = &program.parsers[*parser];
                let path = if parent.is_none() { declared.name.to_string() } else { path };
                Some(self.new_inst(
                    InstanceKind::Parser(*parser),
                    path,
                    &declared.ctor_params,
                    args,
                    &declared.locals,
                    depth,
                ))
            }
            Type::Control(control) => {
                let declared = &program.controls[*control];
                let path = if parent.is_none() { declared.name.to_string() } else { path };
                Some(self.new_inst(
                    InstanceKind::Control(*control),
                    path,
                    &declared.ctor_params,
                    args,
                    &declared.locals,
                    depth,
                ))
            }
            _ => None,
        }
    }

    fn path(&self, name: &str, parent: Option<usize>) -> String {
        match (name.strip_prefix('.'), parent) {
            (Some(absolute), _) => absolute.to_owned(),
            (None, Some(parent)) => format!("{}.{name}", self.insts[parent].path),
            (None, None) => name.to_owned(),
        }
    }

    fn new_inst(
        &mut self,
        kind: InstanceKind,
        path: String,
        params: &[p4::typed::Param],
        args: Vec<Option<StaticValue>>,
        locals: &'a [Local],
        depth: usize,
    ) -> StaticValue {
        let statics: HashMap<_, _> =
            params.iter().zip(args).filter_map(|(param, arg)| Some((param.var, arg?))).collect();
        let at = self.insts.len();
        self.insts.push(Inst {
            kind,
            path,
            statics: Rc::new(statics),
            objects: HashMap::new(),
            applied: false,
            tables: HashSet::new(),
            called: HashSet::new(),
            value_sets: HashSet::new(),
        });
        for local in locals {
            if let Local::Instance(id) = local
                && let Some(object) = self.instantiate(*id, Some(at), depth + 1)
            {
                self.insts[at].objects.insert(*id, object);
            }
        }
        StaticValue::Inst(at)
    }

    /// Returns the compile-time value of an expression in an instance.
    pub(crate) fn known(&mut self, e: &Expr, inst: Option<usize>) -> Option<StaticValue> {
        match &e.kind {
            ExprKind::Instance(id) => {
                if let Some(object) = inst.and_then(|inst| self.insts[inst].objects.get(id)) {
                    return Some(object.clone());
                }
                match inst {
                    // An instance created for an argument belongs to the enclosing parser or control.
                    Some(_) if !self.program.top_level.contains(id) && !self.globals.contains_key(id) => {
                        self.instantiate(*id, inst, 1)
                    }
                    _ => self.global(*id),
                }
            }
            ExprKind::Var(var) => self.insts[inst?].statics.get(var).cloned(),
            _ => {
                let statics = inst.map(|inst| self.insts[inst].statics.clone());
                let lookup = |var: VarId| statics.as_ref()?.get(&var).cloned();
                eval::value(self.program, e, &lookup).map(StaticValue::Value)
            }
        }
    }

    /// Emits the contents of an applied instance in the order of declaration.
    fn emit(&mut self, at: usize) {
        enum LocalItem<'a> {
            Local(&'a Local),
            Action(ActionId),
            Table(TableId),
        }
        let program = self.program;
        let mut items: Vec<(u32, LocalItem<'a>)> = Vec::new();
        let locals = match self.insts[at].kind {
            InstanceKind::Parser(id) => &program.parsers[id].locals,
            InstanceKind::Control(id) => {
                let control = &program.controls[id];
                items
                    .extend(control.actions.iter().map(|id| (program.actions[*id].span.start, LocalItem::Action(*id))));
                items.extend(control.tables.iter().map(|id| (program.tables[*id].span.start, LocalItem::Table(*id))));
                &control.locals
            }
        };
        for local in locals {
            let start = match local {
                Local::Instance(id) => program.instances[*id].span.start,
                Local::ValueSet(id) => program.value_sets[*id].span.start,
                Local::Var(..) => continue,
            };
            items.push((start, LocalItem::Local(local)));
        }
        items.sort_by_key(|(start, _)| *start);
        let listed: HashSet<ActionId> = self.insts[at]
            .tables
            .iter()
            .flat_map(|table| program.tables[*table].actions.iter().map(|action| action.action))
            .collect();
        for (_, part) in items {
            match part {
                LocalItem::Local(Local::Instance(id)) => match self.insts[at].objects.get(id).cloned() {
                    Some(StaticValue::Extern(object)) if !self.in_place.contains_key(id) => {
                        self.out.visible_externs.push(object);
                    }
                    Some(StaticValue::Inst(inner)) if self.insts[inner].applied => self.emit(inner),
                    _ => {}
                },
                LocalItem::Local(Local::ValueSet(id)) if self.insts[at].value_sets.contains(id) => {
                    let set = &program.value_sets[*id];
                    let name = self.qualified(&set.name, at);
                    self.out.value_sets.push((name, set));
                }
                LocalItem::Local(_) => {}
                LocalItem::Action(id) => {
                    if listed.contains(&id) || self.insts[at].called.contains(&id) {
                        let action = &program.actions[id];
                        let name = self.qualified(&action.name, at);
                        self.out.actions.push(ActionObject { name, action, listed: listed.contains(&id) });
                    }
                }
                LocalItem::Table(id) => {
                    if self.insts[at].tables.contains(&id) {
                        self.emit_table(id, at);
                    }
                }
            }
        }
    }

    fn emit_table(&mut self, id: TableId, at: usize) {
        let program = self.program;
        let table = &program.tables[id];
        let name = self.qualified(&table.name, at);
        let mut actions = Vec::new();
        for listed in &table.actions {
            let action = &program.actions[listed.action];
            actions.push(if self.is_global(listed.action) {
                action.name.to_string()
            } else {
                self.qualified(&action.name, at)
            });
        }
        let mut properties = Vec::new();
        for property in &table.properties {
            let known = self.known(&property.value, Some(at));
            if let Some(StaticValue::Extern(object)) = known
                && let ExprKind::Instance(id) = &property.value.kind
                && matches!(self.in_place.get(id), Some(None))
            {
                let given = format!("{name}.{}", property.name);
                self.diagnostics.push(
                    Diagnostic::warning(
                        "no-name",
                        property.span,
                        format!("this object has no name; its control-plane name is `{given}`"),
                    )
                    .help(format!("write `@name(\"...\")` before `{}`", property.name)),
                );
                self.out.externs[object].name = given;
            }
            properties.push(known);
        }
        let mut default_args = Vec::new();
        for arg in &table.default_action.1 {
            let value = match self.known(arg, Some(at)) {
                Some(StaticValue::Value(value)) => Some(value),
                _ => None,
            };
            default_args.push((value, &arg.ty));
        }
        self.out.tables.push(TableObject { name, table, actions, properties, default_args });
    }

    /// Returns the control-plane name of an object of an instance, given the name in its declaration.
    fn qualified(&self, name: &str, at: usize) -> String {
        let inst = &self.insts[at];
        let own = match inst.kind {
            InstanceKind::Control(id) => &self.program.controls[id].name,
            InstanceKind::Parser(id) => &self.program.parsers[id].name,
        };
        match name.strip_prefix(&**own).and_then(|rest| rest.strip_prefix('.')) {
            Some(rest) => format!("{}.{rest}", inst.path),
            None => name.to_owned(),
        }
    }
}

/// Returns the annotations of an extern object: its own, or those of the property that constructs it.
pub(crate) fn annotations_of<'a>(object: &ExternObject<'a>, property: Option<&'a Annotations>) -> &'a Annotations {
    match property {
        Some(property) if object.in_place => property,
        _ => &object.decl.annotations,
    }
}
