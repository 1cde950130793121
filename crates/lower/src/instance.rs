//! Creates instances: objects that are instantiated once and have state or a control-plane name.

use std::collections::HashMap;

use p4::typed::{self, Arg, Call, Callee, ExprKind, InstanceId, Local, Type, VarId};

use crate::arch::{ExternInstance, Object};
use crate::assign::InitialScalars;
use crate::lowering::{Binding, Lowering};
use crate::storage::Store;
use crate::table::LoweredTable;
use crate::value::Val;
use crate::walk::{self, CodeNode};

/// A parser or control instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InstRef(pub(crate) usize);

#[derive(Clone, Copy)]
pub(crate) enum InstKind {
    Parser(typed::ParserId),
    Control(typed::ControlId),
}

/// A parser or control instance and its contents.
pub(crate) struct Inst {
    pub(crate) kind: InstKind,
    /// Prefix of the control-plane names of its contents.
    pub(crate) path: String,
    /// Constructor parameters and their values.
    pub(crate) statics: Vec<(VarId, Val)>,
    /// Instances declared in it.
    pub(crate) objects: HashMap<InstanceId, Object>,
    /// Storage of its variables and parameters.
    pub(crate) stores: HashMap<VarId, Store>,
    pub(crate) tables: HashMap<typed::TableId, LoweredTable>,
    pub(crate) value_sets: HashMap<typed::ValueSetId, ir::ValueSetId>,
    /// Whether it may be applied in several places. Its tables and actions exist once, so its parameters then need the
    /// same storage everywhere.
    pub(crate) multi: bool,
    /// Whether its own instances have been created.
    ready: bool,
}

/// Maximum number of parser and control instances of a program.
const MAX_INSTANCES: usize = 20_000;

impl<'a> Lowering<'a> {
    /// Returns the object of an instance declared in the current instance or at top level.
    pub(crate) fn object(&mut self, id: InstanceId) -> Object {
        if let Some(inst) = self.inst
            && let Some(object) = self.insts[inst.0].objects.get(&id)
        {
            return object.clone();
        }
        if let Some(object) = self.globals.get(&id) {
            return object.clone();
        }
        let object = self.instantiate(id, None);
        self.globals.insert(id, object.clone());
        object
    }

    fn instantiate(&mut self, id: InstanceId, parent: Option<InstRef>) -> Object {
        let decl = &self.program.instances[id];
        let outer = self.at(decl.span);
        let mut args = Vec::new();
        for arg in &decl.args {
            args.push(match arg {
                Arg::Expr(e) => self.without_emitting(|cx| cx.value(e)),
                Arg::DontCare(_) | Arg::Absent => Val::Absent,
            });
        }
        let is_package = matches!(decl.ty, Type::Package(_));
        for arg in &args {
            if let (Val::Object(Object::Control(inst)), false) = (arg, is_package) {
                self.insts[inst.0].multi = true;
            }
        }
        let path = self.path_of(&decl.name, parent);
        let object = match &decl.ty {
            Type::Extern(extern_id) => {
                if decl.array.is_some() {
                    self.unsupported(decl.span, "arrays of extern objects");
                }
                let arch = self.arch;
                let instance = ExternInstance {
                    decl: &self.program.externs[*extern_id],
                    name: path,
                    args,
                    param_names: &decl.param_names,
                    annotations: self.annotations(&decl.annotations),
                    span: decl.span,
                };
                let object = arch.extern_instance(self, &instance);
                self.note_resilient(&object, &decl.annotations, decl.span);
                self.refuse_elastic(&decl.annotations);
                // An instance without a declaration is named after the table property that contains it.
                if decl.local_name != self.program.externs[*extern_id].name {
                    self.claim_object(&object, decl.span);
                }
                object
            }
            Type::Parser(parser) => {
                let decl = &self.program.parsers[*parser];
                let path = if parent.is_none() { decl.name.to_string() } else { path };
                let params = &decl.ctor_params;
                Object::Parser(self.new_inst(InstKind::Parser(*parser), path, params, args, false))
            }
            Type::Control(control) => {
                let multi = match parent {
                    Some(parent) => self.insts[parent.0].multi || self.applications(id) != 1,
                    None => false,
                };
                let decl = &self.program.controls[*control];
                let path = if parent.is_none() { decl.name.to_string() } else { path };
                let params = &decl.ctor_params;
                Object::Control(self.new_inst(InstKind::Control(*control), path, params, args, multi))
            }
            _ => Object::Package(args),
        };
        self.at(outer);
        object
    }

    fn path_of(&self, name: &str, parent: Option<InstRef>) -> String {
        match (name.strip_prefix('.'), parent) {
            (Some(absolute), _) => absolute.to_owned(),
            (None, Some(parent)) => format!("{}.{name}", self.insts[parent.0].path),
            (None, None) => name.to_owned(),
        }
    }

    fn new_inst(
        &mut self,
        kind: InstKind,
        path: String,
        params: &[typed::Param],
        args: Vec<Val>,
        multi: bool,
    ) -> InstRef {
        if self.insts.len() >= MAX_INSTANCES && !self.failed {
            self.too_large("the program has too many parser and control instances");
        }
        let statics = params.iter().map(|param| param.var).zip(args).collect();
        self.insts.push(Inst {
            kind,
            path,
            statics,
            objects: HashMap::new(),
            stores: HashMap::new(),
            tables: HashMap::new(),
            value_sets: HashMap::new(),
            multi,
            ready: false,
        });
        InstRef(self.insts.len() - 1)
    }

    /// Returns the number of places in which an instance is applied.
    fn applications(&mut self, id: InstanceId) -> usize {
        let program = self.program;
        let counts = self.applications.get_or_insert_with(|| applications(program));
        counts.get(&id).copied().unwrap_or(0)
    }

    pub(crate) fn control_of(&self, inst: InstRef) -> Option<&'a typed::Control> {
        match self.insts[inst.0].kind {
            InstKind::Control(id) => Some(&self.program.controls[id]),
            InstKind::Parser(_) => None,
        }
    }

    pub(crate) fn parser_of(&self, inst: InstRef) -> Option<&'a typed::Parser> {
        match self.insts[inst.0].kind {
            InstKind::Parser(id) => Some(&self.program.parsers[id]),
            InstKind::Control(_) => None,
        }
    }

    /// Lowers code inside an instance, with its constructor parameters bound.
    pub(crate) fn enter(&mut self, inst: InstRef, lower: impl FnOnce(&mut Self)) {
        let outer = self.inst.replace(inst);
        for (var, val) in self.insts[inst.0].statics.clone() {
            self.env.insert(var, Binding::Val(val));
        }
        self.deeper(lower);
        self.inst = outer;
    }

    /// Lowers the declarations of the current instance: creates its instances (once) and runs its variables'
    /// initialisers (on every application).
    pub(crate) fn declarations(&mut self, inst: InstRef, locals: &[Local]) {
        let first = !std::mem::replace(&mut self.insts[inst.0].ready, true);
        for local in locals {
            match local {
                Local::Var(var, init) => {
                    let val = init.as_ref().map(|init| (self.value(init), init.ty.clone()));
                    let store = self.inst_store(inst, *var);
                    self.env.insert(*var, Binding::Store(store.clone()));
                    let outer = self.at(self.program.vars[*var].span);
                    match val {
                        Some((val, ty)) => self.assign(&store, val, &ty),
                        None => self.initialise(&store, InitialScalars::Undefined),
                    }
                    self.at(outer);
                }
                Local::Instance(id) if first => {
                    let object = self.instantiate(*id, Some(inst));
                    self.insts[inst.0].objects.insert(*id, object);
                }
                Local::Instance(_) | Local::ValueSet(_) => {}
            }
        }
    }

    /// Assigns the name and the annotations of a table property to the object that the property constructs.
    pub(crate) fn name_by_property(&mut self, object: &Object, property: &typed::TableProperty) {
        let ExprKind::Instance(id) = property.value.kind else { return };
        let decl = &self.program.instances[id];
        // An instance without a declaration of its own is named after its type.
        let Type::Extern(ty) = decl.ty else { return };
        if decl.local_name != self.program.externs[ty].name {
            return;
        }
        let annotations = self.annotations(&property.annotations);
        let Some((_, name, kept)) = self.named_object(object) else { return };
        kept.extend(annotations);
        if let Some(given) = given_name(&property.annotations) {
            *name = given.trim_start_matches('.').to_owned();
        }
        self.claim_object(object, property.span);
    }

    /// Claims the name of an object for the control plane.
    fn claim_object(&mut self, object: &Object, span: diagnostics::Span) {
        let Some((kind, name, _)) = self.named_object(object) else { return };
        let name = name.clone();
        let claimed = self.claim(kind, name, span);
        if let Some((_, name, _)) = self.named_object(object) {
            *name = claimed;
        }
    }

    /// Returns the kind, the name and the annotations of an object of the control plane.
    fn named_object(&mut self, object: &Object) -> Option<(&'static str, &mut String, &mut Vec<ir::Annotation>)> {
        Some(match object {
            Object::Register(id) => {
                let register = &mut self.ir.registers[*id];
                ("register", &mut register.name, &mut register.annotations)
            }
            Object::Counter(id) => {
                let counter = &mut self.ir.counters[*id];
                ("counter", &mut counter.name, &mut counter.annotations)
            }
            Object::Meter(id) => {
                let meter = &mut self.ir.meters[*id];
                ("meter", &mut meter.name, &mut meter.annotations)
            }
            Object::Profile(id) => {
                let profile = &mut self.ir.profiles[*id];
                ("action profile", &mut profile.name, &mut profile.annotations)
            }
            _ => return None,
        })
    }

    /// Returns the control-plane name of an object of the current instance, given the name in its declaration.
    pub(crate) fn qualified(&self, name: &str) -> String {
        let Some(inst) = self.inst else { return name.to_owned() };
        let own = match self.insts[inst.0].kind {
            InstKind::Control(id) => &self.program.controls[id].name,
            InstKind::Parser(id) => &self.program.parsers[id].name,
        };
        match name.strip_prefix(&**own).and_then(|rest| rest.strip_prefix('.')) {
            Some(rest) => format!("{}.{rest}", self.insts[inst.0].path),
            None => name.to_owned(),
        }
    }
}

/// Counts the places in controls in which each instance is applied. Computed once, since a program may have thousands
/// of instances.
fn applications(program: &typed::Program) -> HashMap<InstanceId, usize> {
    let mut counts = HashMap::new();
    for control in program.controls.values() {
        walk::block(&control.body, &mut |node| {
            if let CodeNode::Call(Call { callee: Callee::Apply(target), .. }) = node
                && let ExprKind::Instance(target) = target.kind
            {
                *counts.entry(target).or_default() += 1;
            }
        });
    }
    counts
}

/// Returns the argument of `@name`.
pub(crate) fn given_name(annotations: &typed::Annotations) -> Option<String> {
    let annotation = annotations.iter().find(|annotation| &*annotation.name == "name")?;
    match &annotation.body {
        typed::AnnotationBody::Unstructured(_, tokens) => tokens.iter().find_map(|token| match &token.kind {
            p4::lex::TokenKind::String(text) => Some(text.to_string()),
            _ => None,
        }),
        typed::AnnotationBody::Expressions(values) => values.iter().find_map(|value| match value {
            typed::Value::String(text) => Some(text.to_string()),
            _ => None,
        }),
        _ => None,
    }
}
