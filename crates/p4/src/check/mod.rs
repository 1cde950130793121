//! Name resolution, type checking, constant evaluation and monomorphisation: converts an [`ast::Program`] to a
//! [`typed::Program`].
//!
//! The checker visits the top-level declarations in order, once; P4 requires every name to be declared before its use.
//! Generic declarations are checked when they are used, once per list of type arguments ([`Checker::within`] sets the
//! context: the scope is the top level as visible at the declaration). Unused generic declarations are checked at the
//! end against opaque types, and the result is discarded.
//!
//! Types are [`Type`]s from the start, without variables: inference ([`infer`]) matches a parameter's type as written
//! against an argument's type. An invalid expression has the type [`error_type`], which is accepted everywhere without
//! a diagnostic, so that one mistake causes one diagnostic. A program with an error is never returned, and so neither
//! is that type.

mod annotations;
mod builtin;
mod call;
mod cast;
mod construct;
mod control;
mod convert;
mod decl;
mod division;
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
mod type_arguments;
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

/// Maximum nesting depth of expressions, statements, types and instantiations.
const MAX_DEPTH: u32 = 160;

/// Maximum number of scalar values in a type.
const MAX_LEAVES: u64 = 1 << 17;

/// Maximum number of scalar values in expanded constants and default values of the whole program.
const MAX_VALUES: u64 = 1 << 21;

/// Maximum number of specialised declarations of a program.
const MAX_SPECIALISED: usize = 20_000;

/// Returns the typed program, or `None` if any error was reported (warnings are fine).
pub fn check(program: &ast::Program, map: &SourceMap, diagnostics: &mut Diagnostics) -> Option<typed::Program> {
    let errors_before = diagnostics.error_count();
    let mut checker = Checker::new(program, map, diagnostics);
    let out = checker.program();
    if diagnostics.error_count() == errors_before {
        division::check(&out, diagnostics);
    }
    let clean = diagnostics.error_count() == errors_before;
    if clean {
        crate::lint::lint(&out, map, diagnostics);
    }
    clean.then_some(out)
}

/// The type of invalid expressions. It is compatible with every type.
fn error_type() -> Type {
    Type::New(typed::NewTypeId::reserved_value())
}

fn is_error(ty: &Type) -> bool {
    matches!(ty, Type::New(id) if id.is_reserved_value())
}

/// Kind of the body being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyContext {
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

/// Context of the code being checked.
#[derive(Clone)]
struct DeclContext {
    context: BodyContext,
    /// Whether it is inside a parser.
    in_parser: bool,
    /// Type of the value to `return`; `None` where `return` has no meaning of its own.
    ret: Option<Type>,
    loops: u32,
    /// The type of `this`.
    this: Option<Type>,
    /// Prefix of control-plane names: `MyIngress.`
    prefix: String,
    /// Instances created by expressions (direct application, constructor calls as arguments).
    locals: Vec<typed::Local>,
    /// The table with the properties being checked.
    table: Option<typed::TableId>,
}

impl DeclContext {
    fn top_level() -> Self {
        DeclContext {
            context: BodyContext::TopLevel,
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

/// Permitted uses of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VarKind {
    /// A local variable.
    Local,
    Param(ast::Direction),
    /// Known at instantiation.
    Constructor,
    /// Set by the control plane.
    ActionData,
    /// Iterates over the values of a loop.
    Loop,
}

/// Origin of a specialised type: the declaration and its type arguments.
type SpecialisationOrigin = (usize, Vec<Type>);

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
    /// Later declarations of the enclosing parser or control.
    ahead: &'a [ast::Decl],
    /// Spans of names that were used before their declaration, and reported.
    late: HashSet<Span>,
    cx: DeclContext,
    depth: u32,
    /// Number of errors reported before checking began.
    errors_before: usize,

    typedefs: HashMap<usize, Type>,
    enums: HashMap<usize, typed::EnumId>,
    new_types: HashMap<usize, typed::NewTypeId>,
    /// `type` ids that stand for type parameters while unused generic declarations are checked.
    opaque: HashSet<typed::NewTypeId>,
    structs: HashMap<SpecialisationOrigin, typed::StructId>,
    struct_origins: HashMap<typed::StructId, SpecialisationOrigin>,
    /// Structs created for `{ a = 1 }` where no type was expected.
    anonymous: HashMap<Vec<(Arc<str>, Type)>, typed::StructId>,
    anonymous_ids: HashSet<typed::StructId>,
    externs: HashMap<SpecialisationOrigin, typed::ExternId>,
    extern_origins: HashMap<typed::ExternId, SpecialisationOrigin>,
    packages: HashMap<SpecialisationOrigin, typed::PackageId>,
    package_origins: HashMap<typed::PackageId, SpecialisationOrigin>,
    parsers: HashMap<SpecialisationOrigin, typed::ParserId>,
    parser_origins: HashMap<typed::ParserId, SpecialisationOrigin>,
    controls: HashMap<SpecialisationOrigin, typed::ControlId>,
    control_origins: HashMap<typed::ControlId, SpecialisationOrigin>,
    functions: HashMap<SpecialisationOrigin, Option<typed::FunctionId>>,
    extern_fns: HashMap<usize, typed::ExternFnId>,
    /// Parsers, controls and functions with bodies being checked.
    in_progress: HashSet<usize>,
    /// Generic declarations; those that were never specialised are checked at the end.
    generic_decls: Vec<usize>,
    var_kinds: HashMap<typed::VarId, VarKind>,
    specialised: usize,
    /// Number of scalar values expanded so far.
    values: u64,
    /// Number of scalar values in each struct.
    leaves: HashMap<typed::StructId, u64>,
    /// Default values of actions' parameters.
    action_defaults: HashMap<typed::VarId, Expr>,
    /// The first `switch` on a value.
    value_switch: Option<Span>,
    /// Match kinds declared by the program's own file, not by `core.p4` or an architecture.
    own_match_kinds: HashSet<Arc<str>>,
    /// Control-plane names of actions, and the spans of their declarations; likewise for tables.
    action_names: HashMap<Arc<str>, Span>,
    /// Uses of declarations, for warnings about unused ones.
    used: unused::UsageRecord,
    table_names: HashMap<Arc<str>, Span>,
    /// Actions of the parser or control being checked.
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
            cx: DeclContext::top_level(),
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
            value_switch: None,
            own_match_kinds: HashSet::new(),
            action_names: HashMap::new(),
            used: unused::UsageRecord::default(),
            table_names: HashMap::new(),
            local_actions: Vec::new(),
            local_tables: Vec::new(),
        }
    }

    /// Checks the whole program and returns what could be checked; the caller checks whether errors were reported.
    fn program(&mut self) -> typed::Program {
        for index in 0..self.program.decls.len() {
            self.visible = index + 1;
            self.top_level(index);
        }
        self.main();
        self.switch_needs_exact();
        // Declarations that depend on a mistake look unused, too.
        if self.diagnostics.error_count() == self.errors_before {
            self.warn_of_unused();
        }
        let out = self.out.clone();
        self.unused_generics();
        // Only now have all uses of types been visited.
        if self.diagnostics.error_count() == self.errors_before {
            self.warn_of_unused_types();
        }
        out
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Runs `body` in another context: only the first `visible` top-level declarations, the type parameters `bindings`,
    /// and `cx`. Restores the current context afterwards.
    fn within<R>(
        &mut self,
        visible: usize,
        bindings: &[(Arc<str>, Type)],
        cx: DeclContext,
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

    /// Runs `body` one level deeper; reports an error and returns `None` if this is too deep.
    fn deeper<R>(&mut self, span: Span, body: impl FnOnce(&mut Self) -> R) -> Option<R> {
        if self.depth >= MAX_DEPTH {
            self.error(
                Diagnostic::error("too-deep", span, "the program is nested too deeply here")
                    .help(format!("at most {MAX_DEPTH} levels are supported; split this up")),
            );
            return None;
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        Some(result)
    }

    /// Counts a specialised declaration; returns false (with a diagnostic) if there are too many.
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

    /// Checks unused generic declarations, with an opaque type for each type parameter.
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

/// Creates a typed expression.
fn expr(kind: ExprKind, ty: Type, span: Span) -> Expr {
    Expr { kind, ty, span }
}

/// Creates a constant.
fn constant(value: Value, ty: Type, span: Span) -> Expr {
    expr(ExprKind::Const(value), ty, span)
}

/// Formats a count of things: `no arguments`, `1 argument`, `2 arguments`.
fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// Creates the placeholder of an invalid expression.
fn error_expr(span: Span) -> Expr {
    constant(Value::Bool(false), error_type(), span)
}
