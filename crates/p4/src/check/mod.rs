//! Name resolution, type checking, constant evaluation and monomorphisation: an [`ast::Program`] becomes a
//! [`typed::Program`].
//!
//! The checker goes through the top-level declarations in order, once; P4 wants every name declared before it is used.
//! What is generic is checked when it is used, once for each list of type arguments ([`Checker::within`] sets the scene
//! for that: the scope is the top level as it was visible where the declaration stands). What is generic and never
//! used is checked at the very end against opaque types, and the outcome is thrown away.
//!
//! Types are [`Type`]s from the start, without variables: inference ([`infer`]) matches a parameter's type as written
//! against an argument's type. An expression that is wrong has the type [`error_type`], which everything accepts in
//! silence, so that one mistake is one diagnostic. A program with an error is never handed out, hence neither is that
//! type.

mod annotations;
mod builtin;
mod call;
mod cast;
mod construct;
mod control;
mod convert;
mod decl;
mod entries;
mod expr;
mod fold;
mod function;
mod infer;
mod instance;
mod keyset;
mod member;
mod method;
mod names;
mod operators;
mod parser;
mod pipeline;
mod scope;
mod signature;
mod stmt;
mod switch;
mod table;
mod types;
mod unused;
mod well_formed;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cranelift_entity::packed_option::ReservedValue;
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

use crate::ast;
use crate::typed::{self, Expr, ExprKind, Type, Value};
use scope::{Binding, Scope};

/// How deep expressions, statements, types and instantiations may nest.
const MAX_DEPTH: u32 = 160;

/// How many values that are not structures themselves a type may hold.
const MAX_LEAVES: u64 = 1 << 17;

/// How many values constants and default values may be written out as, in the whole program.
const MAX_VALUES: u64 = 1 << 21;

/// How many specialised declarations a program may give rise to.
const MAX_SPECIALISED: usize = 20_000;

/// The typed program, or `None` if any error was reported (warnings are fine).
pub fn check(program: &ast::Program, map: &SourceMap, diagnostics: &mut Diagnostics) -> Option<typed::Program> {
    let errors_before = diagnostics.error_count();
    let mut checker = Checker::new(program, map, diagnostics);
    let out = checker.program();
    let clean = diagnostics.error_count() == errors_before;
    if clean {
        crate::lint::lint(&out, map, diagnostics);
    }
    clean.then_some(out)
}

/// The type of what is wrong already. It compares with everything in silence.
fn error_type() -> Type {
    Type::New(typed::NewTypeId::reserved_value())
}

fn is_error(ty: &Type) -> bool {
    matches!(ty, Type::New(id) if id.is_reserved_value())
}

/// What kind of body is being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    TopLevel,
    /// Declarations of a parser.
    ParserLocals,
    State,
    /// Declarations of a control.
    ControlLocals,
    Apply,
    Action,
    Function,
    /// The implementation of an abstract method.
    Method,
    /// Keys and properties of a table.
    Table,
}

/// What is known about the declaration around the code being checked.
#[derive(Clone)]
struct Context {
    place: Place,
    /// Whether a parser is around it.
    in_parser: bool,
    /// What `return` must give; `None` where `return` has no meaning of its own.
    ret: Option<Type>,
    loops: u32,
    /// The type of `this`.
    this: Option<Type>,
    /// Put before names for the control plane: `MyIngress.`
    prefix: String,
    /// Instances that expressions brought into being (direct application, constructor calls as arguments).
    locals: Vec<typed::Local>,
    /// The table whose properties are checked.
    table: Option<typed::TableId>,
}

impl Context {
    fn top_level() -> Self {
        Context {
            place: Place::TopLevel,
            in_parser: false,
            ret: None,
            loops: 0,
            this: None,
            prefix: String::new(),
            locals: Vec::new(),
            table: None,
        }
    }
}

/// What a variable may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VarKind {
    /// A local variable.
    Local,
    Param(ast::Direction),
    /// Known at instantiation.
    Constructor,
    /// Set by the control plane.
    ActionData,
    /// Runs through the values of a loop.
    Loop,
}

/// Where a specialised type came from: the declaration and its type arguments.
type Origin = (usize, Vec<Type>);

struct Checker<'a> {
    program: &'a ast::Program,
    map: &'a SourceMap,
    diagnostics: &'a mut Diagnostics,
    out: typed::Program,
    /// Top-level names.
    globals: HashMap<Arc<str>, Binding>,
    /// Declarations from this index on are not visible yet.
    visible: usize,
    scopes: Vec<Scope>,
    /// What the parser or control around the code declares behind it.
    ahead: &'a [ast::Decl],
    /// Where names are declared that were used before, and reported.
    late: HashSet<Span>,
    cx: Context,
    depth: u32,
    /// Errors reported before checking began.
    errors_before: usize,

    typedefs: HashMap<usize, Type>,
    enums: HashMap<usize, typed::EnumId>,
    new_types: HashMap<usize, typed::NewTypeId>,
    /// `type` ids that stand for type parameters, while unused generic declarations are checked.
    opaque: HashSet<typed::NewTypeId>,
    structs: HashMap<Origin, typed::StructId>,
    struct_origins: HashMap<typed::StructId, Origin>,
    /// Structs made for `{ a = 1 }` where no type was expected.
    anonymous: HashMap<Vec<(Arc<str>, Type)>, typed::StructId>,
    anonymous_ids: HashSet<typed::StructId>,
    externs: HashMap<Origin, typed::ExternId>,
    extern_origins: HashMap<typed::ExternId, Origin>,
    packages: HashMap<Origin, typed::PackageId>,
    package_origins: HashMap<typed::PackageId, Origin>,
    parsers: HashMap<Origin, typed::ParserId>,
    parser_origins: HashMap<typed::ParserId, Origin>,
    controls: HashMap<Origin, typed::ControlId>,
    control_origins: HashMap<typed::ControlId, Origin>,
    functions: HashMap<Origin, Option<typed::FunctionId>>,
    extern_fns: HashMap<usize, typed::ExternFnId>,
    /// Parsers, controls and functions whose bodies are being checked.
    in_progress: HashSet<usize>,
    /// Generic declarations that were never specialised are checked at the end.
    generic_decls: Vec<usize>,
    var_kinds: HashMap<typed::VarId, VarKind>,
    specialised: usize,
    /// Values written out so far.
    values: u64,
    /// How many values that are not structures themselves each struct holds.
    leaves: HashMap<typed::StructId, u64>,
    /// Default values of actions' parameters.
    action_defaults: HashMap<typed::VarId, Expr>,
    /// Match kinds that neither `core.p4` nor an architecture declares, but the program's own file.
    own_match_kinds: HashSet<Arc<str>>,
    /// Names the control plane knows actions by, and where they are declared; likewise for tables.
    action_names: HashMap<Arc<str>, Span>,
    /// What was referred to, for warnings of what was not.
    used: unused::Used,
    table_names: HashMap<Arc<str>, Span>,
    /// Actions of the parser or control that is being checked.
    local_actions: Vec<typed::ActionId>,
    local_tables: Vec<typed::TableId>,
}

impl<'a> Checker<'a> {
    fn new(program: &'a ast::Program, map: &'a SourceMap, diagnostics: &'a mut Diagnostics) -> Self {
        let errors_before = diagnostics.error_count();
        Checker {
            program,
            map,
            diagnostics,
            out: typed::Program { pkg_annotations: Arc::from([]), ..typed::Program::default() },
            globals: HashMap::new(),
            visible: 0,
            scopes: Vec::new(),
            ahead: &[],
            late: HashSet::new(),
            cx: Context::top_level(),
            depth: 0,
            errors_before,
            typedefs: HashMap::new(),
            enums: HashMap::new(),
            new_types: HashMap::new(),
            opaque: HashSet::new(),
            structs: HashMap::new(),
            struct_origins: HashMap::new(),
            anonymous: HashMap::new(),
            anonymous_ids: HashSet::new(),
            externs: HashMap::new(),
            extern_origins: HashMap::new(),
            packages: HashMap::new(),
            package_origins: HashMap::new(),
            parsers: HashMap::new(),
            parser_origins: HashMap::new(),
            controls: HashMap::new(),
            control_origins: HashMap::new(),
            functions: HashMap::new(),
            extern_fns: HashMap::new(),
            in_progress: HashSet::new(),
            generic_decls: Vec::new(),
            var_kinds: HashMap::new(),
            specialised: 0,
            values: 0,
            leaves: HashMap::new(),
            action_defaults: HashMap::new(),
            own_match_kinds: HashSet::new(),
            action_names: HashMap::new(),
            used: unused::Used::default(),
            table_names: HashMap::new(),
            local_actions: Vec::new(),
            local_tables: Vec::new(),
        }
    }

    /// Checks the whole program and hands out what there is of it; the caller looks whether errors were reported.
    fn program(&mut self) -> typed::Program {
        for index in 0..self.program.decls.len() {
            self.visible = index + 1;
            self.top_level(index);
        }
        self.main();
        // What depends on a mistake looks unused, too.
        if self.diagnostics.error_count() == self.errors_before {
            self.warn_of_unused();
        }
        let out = self.out.clone();
        self.unused_generics();
        // Only now everything that names a type was looked at.
        if self.diagnostics.error_count() == self.errors_before {
            self.warn_of_unused_types();
        }
        out
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Runs `body` in a scene of its own: only the first `visible` top-level declarations, type parameters `bindings`,
    /// and `cx` around it. Afterwards everything is as it was.
    fn within<R>(
        &mut self,
        visible: usize,
        bindings: &[(Arc<str>, Type)],
        cx: Context,
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let mut scope = Scope::default();
        for (name, ty) in bindings {
            scope.names.insert(name.clone(), Binding::ty(ty.clone()));
        }
        let scopes = std::mem::replace(&mut self.scopes, vec![scope]);
        let ahead = std::mem::take(&mut self.ahead);
        let cx = std::mem::replace(&mut self.cx, cx);
        let visible = std::mem::replace(&mut self.visible, visible);
        let actions = std::mem::take(&mut self.local_actions);
        let tables = std::mem::take(&mut self.local_tables);
        let result = body(self);
        self.scopes = scopes;
        self.ahead = ahead;
        self.cx = cx;
        self.visible = visible;
        self.local_actions = actions;
        self.local_tables = tables;
        result
    }

    /// Runs `body` one level deeper, or reports that it is too deep and gives `None`.
    fn deeper<R>(&mut self, span: Span, body: impl FnOnce(&mut Self) -> R) -> Option<R> {
        if self.depth >= MAX_DEPTH {
            self.error(
                Diagnostic::error("too-deep", span, "the program is nested too deeply here")
                    .help(format!("no more than {MAX_DEPTH} levels are supported; split this up")),
            );
            return None;
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        Some(result)
    }

    /// Counts a specialised declaration; false (with a diagnostic) when there are too many.
    fn may_specialise(&mut self, span: Span) -> bool {
        self.specialised += 1;
        if self.specialised > MAX_SPECIALISED {
            self.error(Diagnostic::error("too-many-instances", span, "too many specialised declarations"));
            return false;
        }
        true
    }

    fn new_var(&mut self, name: &ast::Ident, ty: Type, kind: VarKind, annotations: &ast::Annotations) -> typed::VarId {
        let annotations = self.annotations(annotations);
        let var = self.out.vars.push(typed::Var { name: name.name.clone(), ty, annotations, span: name.span });
        self.var_kinds.insert(var, kind);
        var
    }

    /// Checks generic declarations nobody used, with an opaque type for each type parameter.
    fn unused_generics(&mut self) {
        for index in std::mem::take(&mut self.generic_decls) {
            let decl = &self.program.decls[index];
            let params = scope::type_params(decl);
            let args: Vec<Type> = params.iter().map(|param| self.opaque_type(param)).collect();
            self.visible = index + 1;
            self.specialise(index, args, decl.span);
        }
    }

    fn opaque_type(&mut self, param: &ast::Ident) -> Type {
        let id = self.out.new_types.push(typed::NewTypeDecl {
            name: param.name.clone(),
            underlying: Type::Void,
            annotations: Arc::from([]),
            span: param.span,
        });
        self.opaque.insert(id);
        Type::New(id)
    }

    fn is_opaque(&self, ty: &Type) -> bool {
        matches!(ty, Type::New(id) if self.opaque.contains(id))
    }
}

/// A typed expression.
fn expr(kind: ExprKind, ty: Type, span: Span) -> Expr {
    Expr { kind, ty, span }
}

/// A constant.
fn constant(value: Value, ty: Type, span: Span) -> Expr {
    expr(ExprKind::Const(value), ty, span)
}

/// A number of things in words: `no arguments`, `1 argument`, `2 arguments`.
fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// What stands for an expression that is wrong.
fn bad(span: Span) -> Expr {
    constant(Value::Bool(false), error_type(), span)
}
