//! Performs compile-time evaluation (section 18.2): the instances of a program and their control-plane names (section
//! 18.3).

use std::collections::HashMap;
use std::rc::Rc;

use p4::typed::{Arg, Expr, ExprKind, InstanceId, Local, Param, Program, Type, VarId};

use crate::number::Number;
use crate::value::{Value, constant};

/// A parser, control or extern object, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// An instance of the program.
    Instance(usize),
    /// The architecture's `packet_in`.
    PacketIn,
    /// The architecture's `packet_out`.
    PacketOut,
}

/// An instance of a parser, control, extern object or package.
#[derive(Clone, Debug)]
pub struct Instance {
    /// `Extern`, `Parser`, `Control` or `Package`.
    pub ty: Type,
    /// Fully qualified name for the control plane.
    pub path: String,
    /// Values of the constructor's parameters.
    pub args: Rc<[Value]>,
    /// Variables of the constructor's parameters with their values; none for extern objects.
    pub statics: Vec<(VarId, Value)>,
    /// Instances declared inside.
    pub inner: HashMap<InstanceId, usize>,
}

/// All instances of a program.
#[derive(Clone, Debug, Default)]
pub struct Instances {
    /// The instances; an [`Object::Instance`] is an index.
    pub list: Vec<Instance>,
    /// Instances at top level.
    pub top: HashMap<InstanceId, usize>,
}

impl Instances {
    /// Instantiates everything that the package `main` consists of.
    pub fn of(program: &Program) -> Instances {
        let mut all = Instances::default();
        for id in &program.top_level {
            all.instantiate(program, *id, None);
        }
        all
    }

    fn instantiate(&mut self, program: &Program, id: InstanceId, parent: Option<usize>) -> usize {
        if let (None, Some(known)) = (parent, self.top.get(&id)) {
            return *known;
        }
        let decl = &program.instances[id];
        let args: Rc<[Value]> = decl.args.iter().map(|arg| self.argument(program, arg, parent)).collect();
        let path = match (&decl.ty, parent) {
            // Parsers and controls that the package names are known by their type's name (section 18.3).
            (Type::Parser(parser), None) => program.parsers[*parser].name.to_string(),
            (Type::Control(control), None) => program.controls[*control].name.to_string(),
            (_, parent) => self.qualify(&decl.name, parent),
        };
        let (params, locals): (&[Param], &[Local]) = match &decl.ty {
            Type::Parser(id) => (&program.parsers[*id].ctor_params, &program.parsers[*id].locals),
            Type::Control(id) => (&program.controls[*id].ctor_params, &program.controls[*id].locals),
            _ => (&[], &[]),
        };
        let statics = params.iter().map(|param| param.var).zip(args.iter().cloned()).collect();
        let new = self.list.len();
        self.list.push(Instance { ty: decl.ty.clone(), path, args, statics, inner: HashMap::new() });
        match parent {
            Some(parent) => self.list[parent].inner.insert(id, new),
            None => self.top.insert(id, new),
        };
        for local in locals {
            if let Local::Instance(inner) = local {
                self.instantiate(program, *inner, Some(new));
            }
        }
        new
    }

    fn qualify(&self, name: &str, parent: Option<usize>) -> String {
        match (name.strip_prefix('.'), parent) {
            (Some(absolute), _) => absolute.to_owned(),
            (None, Some(parent)) => format!("{}.{name}", self.list[parent].path),
            (None, None) => name.to_owned(),
        }
    }

    /// Returns the full name of something declared in an instance. Declarations carry the name of their parser or
    /// control as a prefix.
    pub fn full_name(&self, program: &Program, name: &str, instance: usize) -> String {
        let own = match &self.list[instance].ty {
            Type::Parser(id) => &program.parsers[*id].name,
            Type::Control(id) => &program.controls[*id].name,
            _ => return name.to_owned(),
        };
        match name.strip_prefix(&**own).and_then(|rest| rest.strip_prefix('.')) {
            Some(rest) => format!("{}.{rest}", self.list[instance].path),
            None => name.to_owned(),
        }
    }

    /// Returns the object that an instance's name denotes inside `scope`.
    pub fn lookup(&self, id: InstanceId, scope: Option<usize>) -> Option<usize> {
        let inner = scope.and_then(|scope| self.list[scope].inner.get(&id));
        inner.or_else(|| self.top.get(&id)).copied()
    }

    /// Evaluates a constructor's argument: a constant, an instance, or a parameter of the enclosing constructor.
    fn argument(&mut self, program: &Program, arg: &Arg, parent: Option<usize>) -> Value {
        let Arg::Expr(e) = arg else { return Value::Void };
        self.static_value(program, e, parent)
    }

    fn static_value(&mut self, program: &Program, e: &Expr, parent: Option<usize>) -> Value {
        match &e.kind {
            ExprKind::Const(value) => constant(program, value, &e.ty),
            ExprKind::Instance(id) => {
                let known = self.lookup(*id, parent);
                // Inline constructor calls are instances of the place that they stand in.
                let known = known.unwrap_or_else(|| self.instantiate(program, *id, parent));
                Value::Object(Object::Instance(known))
            }
            ExprKind::Var(var) => {
                let statics = parent.map_or(&[][..], |parent| &self.list[parent].statics);
                statics.iter().find(|(known, _)| known == var).map_or(Value::Void, |(_, value)| value.clone())
            }
            ExprKind::Cast(inner) => match (self.static_value(program, inner, parent), &e.ty) {
                (Value::Integer(value), Type::Bit(width) | Type::Int(width)) => {
                    Value::Number(Number::wrap(&value, *width))
                }
                (value, _) => value,
            },
            _ => Value::Void,
        }
    }
}
