//! Holds the state of one lowering: the program being read, the IR being written, and the current position in both.

use std::collections::HashMap;

use diagnostics::names::numbered;
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use ir::{BodyId, BodyKind, LocId, Op, Terminator};
use p4::typed::{self, InstanceId, StructId, VarId};

use crate::arch::{ArchitectureLowering, Object};
use crate::body::BodyBuilder;
use crate::elastic::ElasticSpans;
use crate::instance::{Inst, InstRef};
use crate::passes::ScopedStorage;
use crate::storage::Store;
use crate::value::Val;

/// Maximum nesting depth of expressions, statements and calls.
const MAX_DEPTH: u32 = 400;

/// Maximum number of instructions, blocks and comparisons of a program after inlining.
const MAX_INSTRUCTIONS: usize = 500_000;

/// The meaning of a variable or parameter while its scope is being lowered.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// Writable storage.
    Store(Store),
    /// A value, for parameters that are only read.
    Val(Val),
}

/// Targets of `return`, `exit`, `break` and `continue` in an inlined callee.
pub(crate) struct InlineFrame {
    /// Storage for the function's value.
    pub(crate) value: Option<Store>,
    /// Target of `return`.
    pub(crate) return_to: ir::BlockId,
    /// Target of `exit`.
    pub(crate) exit_to: ir::BlockId,
    /// Whether `exit` has values to copy out, from this frame or an enclosing one.
    pub(crate) copies: bool,
    /// Targets of `break` and `continue` for each enclosing loop.
    pub(crate) loops: Vec<(ir::BlockId, ir::BlockId)>,
    /// For each enclosing `@atomic` block, the number of loops around it.
    pub(crate) atomics: Vec<usize>,
}

/// Context of one lowering: the program that is read and the IR that is written. Architectures use it to emit the code
/// of their externs.
pub struct Lowering<'a> {
    /// The program being compiled.
    pub program: &'a typed::Program,
    /// The IR emitted so far.
    pub ir: ir::Program,
    pub(crate) arch: &'a dyn ArchitectureLowering,
    pub(crate) map: &'a SourceMap,
    pub(crate) diagnostics: &'a mut Diagnostics,
    pub(crate) body: BodyBuilder,
    pub(crate) frames: Vec<InlineFrame>,
    pub(crate) env: HashMap<VarId, Binding>,
    pub(crate) insts: Vec<Inst>,
    /// The parser or control instance being lowered.
    pub(crate) inst: Option<InstRef>,
    /// Objects declared at top level.
    pub(crate) globals: HashMap<InstanceId, Object>,
    /// Number of places in which each instance is applied, once computed.
    pub(crate) applications: Option<HashMap<InstanceId, usize>>,
    pub(crate) actions: HashMap<(Option<InstRef>, typed::ActionId, bool), ir::ActionId>,
    pub(crate) shared: HashMap<String, Store>,
    pub(crate) header_types: HashMap<StructId, ir::HeaderTypeId>,
    pub(crate) varbit_types: HashMap<u32, ir::HeaderTypeId>,
    /// Slots and headers whose lifetime is decided at the end, by the number of bodies that use them.
    pub(crate) scoped: ScopedStorage,
    pub(crate) exit_flag: Option<ir::SlotId>,
    /// Registers and tables with `@resilient`, and the places of the annotations.
    pub(crate) resilient: Vec<(ir::ResilientObject, Span)>,
    /// Tables with `@elastic`, and their places.
    pub(crate) elastic: Vec<ElasticSpans>,
    /// Registers without `@resilient`, and the places of their declarations. Those with `@noWarn` are left out.
    pub(crate) unannotated: Vec<(ir::RegisterId, Span)>,
    names: HashMap<String, u32>,
    /// Control-plane names by kind, with the spans where they were first claimed, and how often.
    claimed: HashMap<(&'static str, String), (Span, usize)>,
    locs: HashMap<Span, LocId>,
    pub(crate) span: Span,
    depth: u32,
    pub(crate) instructions: usize,
    pub(crate) storage_cells: usize,
    /// Set when a limit is exceeded: lowering the rest is then pointless.
    pub(crate) failed: bool,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(
        program: &'a typed::Program,
        arch: &'a dyn ArchitectureLowering,
        map: &'a SourceMap,
        diagnostics: &'a mut Diagnostics,
    ) -> Self {
        let mut ir = ir::Program { arch: arch.name().to_owned(), ..ir::Program::default() };
        ir.errors = program.errors.iter().map(|name| name.to_string()).collect();
        ir.locs.push(diagnostics::SourcePosition { file: String::new(), line: 0, column: 0 });
        Lowering {
            program,
            ir,
            arch,
            map,
            diagnostics,
            body: BodyBuilder::new(String::new(), BodyKind::Control),
            frames: Vec::new(),
            env: HashMap::new(),
            insts: Vec::new(),
            inst: None,
            globals: HashMap::new(),
            applications: None,
            actions: HashMap::new(),
            shared: HashMap::new(),
            header_types: HashMap::new(),
            varbit_types: HashMap::new(),
            scoped: ScopedStorage::default(),
            exit_flag: None,
            resilient: Vec::new(),
            elastic: Vec::new(),
            unannotated: Vec::new(),
            names: HashMap::new(),
            claimed: HashMap::new(),
            locs: HashMap::new(),
            span: Span::default(),
            depth: 0,
            instructions: 0,
            storage_cells: 0,
            failed: false,
        }
    }

    /// Reports a user error.
    pub fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports a correct construct that this compiler or architecture does not support.
    pub fn unsupported(&mut self, span: Span, message: impl Into<String>) {
        self.error(Diagnostic::error("unsupported", span, message).label("not supported"));
    }

    /// Returns the source position of the instructions emitted next.
    pub fn here(&mut self) -> LocId {
        self.loc_of(self.span)
    }

    /// Sets the span of the instructions emitted next and returns the previous one.
    pub(crate) fn at(&mut self, span: Span) -> Span {
        std::mem::replace(&mut self.span, span)
    }

    /// Returns the id of a source position.
    pub fn loc_of(&mut self, span: Span) -> LocId {
        let key = Span { end: span.start, ..span };
        if let Some(loc) = self.locs.get(&key) {
            return *loc;
        }
        if !self.map.contains(span.file) {
            return LocId::from_u32(0);
        }
        let loc = self.ir.locs.push(self.map.position(span));
        self.locs.insert(key, loc);
        loc
    }

    /// Appends an instruction.
    pub fn emit(&mut self, op: Op) {
        self.spend(1);
        if !self.body.ended() && !self.failed {
            let loc = self.here();
            self.body.emit(op, loc);
        }
    }

    /// Returns the kind of the body being emitted.
    pub fn body_kind(&self) -> BodyKind {
        self.body.kind
    }

    pub(crate) fn terminate(&mut self, terminator: Terminator) {
        if !self.body.ended() {
            let loc = self.here();
            self.body.terminate(terminator, loc);
        }
    }

    pub(crate) fn goto(&mut self, block: ir::BlockId) {
        self.terminate(Terminator::Goto(block));
    }

    pub(crate) fn block(&mut self, name: &str) -> ir::BlockId {
        self.spend(1);
        self.body.block(name)
    }

    /// Branches to `then` if the condition holds, else to `otherwise`.
    pub(crate) fn branch(&mut self, condition: ir::Expr, then: ir::BlockId, otherwise: ir::BlockId) {
        match ir::fold::as_const(&condition) {
            Some(bits) if bits.is_true() => self.goto(then),
            Some(_) => self.goto(otherwise),
            None => self.terminate(Terminator::Branch { condition, then, otherwise }),
        }
    }

    /// Emits `then` so that it runs only if the condition holds.
    pub fn when(&mut self, condition: ir::Expr, then: impl FnOnce(&mut Self)) {
        if let Some(bits) = ir::fold::as_const(&condition) {
            if bits.is_true() {
                then(self);
            }
            return;
        }
        let (yes, join) = (self.block("then"), self.block("join"));
        self.branch(condition, yes, join);
        self.body.start(yes);
        then(self);
        self.goto(join);
        self.body.start(join);
    }

    /// Counts `count` towards the limit on a program's size.
    pub(crate) fn spend(&mut self, count: usize) {
        self.instructions += count;
        if self.instructions > MAX_INSTRUCTIONS && !self.failed {
            self.too_large("the program is too large once everything is inlined");
        }
    }

    pub(crate) fn too_large(&mut self, message: &str) {
        self.failed = true;
        let span = self.span;
        self.error(Diagnostic::error("too-large", span, message).label("the limit was exceeded here"));
    }

    /// Runs `lower` one level deeper; reports an error and returns `None` if this is too deep.
    pub(crate) fn deeper<R>(&mut self, lower: impl FnOnce(&mut Self) -> R) -> Option<R> {
        if self.depth >= MAX_DEPTH {
            let span = self.span;
            self.failed = true;
            self.error(
                Diagnostic::error("too-deep", span, "calls, statements and expressions nest too deeply here")
                    .help(format!("at most {MAX_DEPTH} levels are supported, including inlined calls")),
            );
            return None;
        }
        self.depth += 1;
        let result = lower(self);
        self.depth -= 1;
        Some(result)
    }

    /// Returns a unique name: `name`, or `name$1`, `name$2`, ...
    pub(crate) fn unique(&mut self, name: &str) -> String {
        match self.names.get_mut(name) {
            None => {
                self.names.insert(name.to_owned(), 0);
                name.to_owned()
            }
            Some(count) => {
                *count += 1;
                format!("{name}${count}")
            }
        }
    }

    /// Claims a name for the control plane. Reports it if the name is taken, and returns another one. Two instances of
    /// a declaration may share its name: the control plane cannot tell them apart, but packets do not care.
    #[must_use]
    pub(crate) fn claim(&mut self, kind: &'static str, name: String, span: Span) -> String {
        let key = (kind, name);
        let Some((first, count)) = self.claimed.get_mut(&key) else {
            self.claimed.insert(key.clone(), (span, 1));
            return key.1;
        };
        *count += 1;
        let (first, count) = (*first, *count);
        let unique = self.claim(kind, numbered(&key.1, count), span);
        let message = format!("another {kind} has the control-plane name `{}`", key.1);
        let diagnostic = if first == span {
            let help = format!(
                "give one of them another name: P4Runtime and entries files refuse a name that two instances have; \
                 packet tests call this one `\"{unique}\"`"
            );
            Diagnostic::warning("shared-name", span, message).label("two instances have it").help(help)
        } else {
            Diagnostic::error("duplicate-name", span, message)
                .label("same name")
                .also(first, "the other one")
                .help("give one of them another name, for example with `@name`")
        };
        self.error(diagnostic);
        unique
    }

    /// Emits a body separate from the current one, and adds it to the program.
    pub(crate) fn with_body(&mut self, name: String, kind: BodyKind, lower: impl FnOnce(&mut Self)) -> BodyId {
        let outer = std::mem::replace(&mut self.body, BodyBuilder::new(name, kind));
        let frames = std::mem::take(&mut self.frames);
        let span = self.span;
        let end = self.body.block("end");
        let exit = self.body.block("exit");
        self.body.blocks[exit].terminator = Terminator::Exit;
        let loops = Vec::new();
        let atomics = Vec::new();
        self.frames.push(InlineFrame { value: None, return_to: end, exit_to: exit, copies: false, loops, atomics });
        lower(self);
        self.goto(end);
        self.frames = frames;
        self.span = span;
        let built = std::mem::replace(&mut self.body, outer);
        // One control may have two roles (an empty one for both checksum controls), and then has a body for each.
        let same = |name: &str| self.ir.bodies.values().any(|body| body.name == name);
        let mut name = built.name.clone();
        let mut copies = 1;
        while same(&name) {
            copies += 1;
            name = format!("{} ({copies})", built.name);
        }
        self.ir.bodies.push(ir::Body { name, kind: built.kind, blocks: built.blocks })
    }

    /// Runs `lower` and discards the code it emits: for values that must be known at compile time.
    pub(crate) fn without_emitting<R>(&mut self, lower: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.body, BodyBuilder::new(String::new(), BodyKind::Control));
        let result = lower(self);
        self.body = outer;
        result
    }

    /// Converts annotations to the IR's form.
    pub fn annotations(&self, annotations: &typed::Annotations) -> Vec<ir::Annotation> {
        annotations.iter().filter(|annotation| !CONSUMED.contains(&&*annotation.name)).map(annotation).collect()
    }
}

/// Annotations that the compiler itself consumes.
const CONSUMED: [&str; 6] = ["name", "hidden", "tableonly", "defaultonly", "optional", "field_list"];

fn annotation(annotation: &typed::Annotation) -> ir::Annotation {
    let text = match &annotation.body {
        typed::AnnotationBody::Empty => String::new(),
        typed::AnnotationBody::Unstructured(text, _) => text.to_string(),
        typed::AnnotationBody::Expressions(values) => values.iter().map(written).collect::<Vec<_>>().join(", "),
        typed::AnnotationBody::KeyValues(pairs) => {
            pairs.iter().map(|(key, value)| format!("{key} = {}", written(value))).collect::<Vec<_>>().join(", ")
        }
    };
    ir::Annotation { name: annotation.name.to_string(), text }
}

fn written(value: &typed::Value) -> String {
    match value {
        typed::Value::Bool(value) => value.to_string(),
        typed::Value::Integer(value) => value.to_string(),
        typed::Value::Bits(value) => value.to_big().to_string(),
        typed::Value::String(text) => format!("{text:?}"),
        typed::Value::Error(index) | typed::Value::MatchKind(index) => index.to_string(),
        typed::Value::Fields(values) => {
            format!("{{{}}}", values.iter().map(written).collect::<Vec<_>>().join(", "))
        }
        typed::Value::Invalid => "{#}".to_owned(),
    }
}
