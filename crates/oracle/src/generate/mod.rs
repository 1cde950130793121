//! Generates random well-typed programs for v1model from a seed.
//!
//! The declarations are nearly the same in every program; the code is random. It prefers constructs that are hard to
//! lower: calls with side effects in every position, aliasing arguments, slices and stack elements as l-values, and
//! ways out of nested blocks. A line holds one statement, so a program can be shrunk by lines.
//!
//! Metadata is observable: the checksum control copies it into the header `hdr.o`, which leaves with every packet.

mod control;
mod expr;
mod parser;
mod stmt;

use std::fmt::Write;

use rng::SplitMix64;

/// A type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Bit(u32),
    Int(u32),
    Bool,
    /// The header `h_t`.
    Header,
    /// The header `g_t`.
    Small,
    /// The struct `s_t`.
    Struct,
    /// A stack of three `h_t`.
    Stack,
}

impl Ty {
    fn text(self) -> String {
        match self {
            Ty::Bit(width) => format!("bit<{width}>"),
            Ty::Int(width) => format!("int<{width}>"),
            Ty::Bool => "bool".to_owned(),
            Ty::Header => "h_t".to_owned(),
            Ty::Small => "g_t".to_owned(),
            Ty::Struct => "s_t".to_owned(),
            Ty::Stack => "h_t[3]".to_owned(),
        }
    }

    fn is_scalar(self) -> bool {
        matches!(self, Ty::Bit(_) | Ty::Int(_) | Ty::Bool)
    }
}

/// A place that can be read, and perhaps written.
#[derive(Clone, Debug)]
pub(crate) struct TypedPlace {
    text: String,
    ty: Ty,
    writable: bool,
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dir {
    In,
    Out,
    InOut,
    /// Of an action, set by the control plane.
    Data,
}

/// A parameter: name, direction, type, and a default value.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    name: String,
    dir: Dir,
    ty: Ty,
    default: Option<String>,
}

/// A function, action, control or parser that can be called.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    name: String,
    params: Vec<Param>,
    returns: Option<Ty>,
}

/// The kind of code that is being generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Function,
    Parser,
    Action,
    Apply,
}

pub(crate) struct Generator {
    rng: SplitMix64,
    out: String,
    indent: usize,
    /// Places in scope; truncated at the end of each scope.
    places: Vec<TypedPlace>,
    functions: Vec<Callable>,
    /// Actions of the current control that the program calls.
    actions: Vec<Callable>,
    /// Tables of the current control with the names of their actions.
    tables: Vec<(String, Vec<String>)>,
    /// Instances of sub-controls of the current control.
    controls: Vec<Callable>,
    /// Registers of the current control: name and type of an element.
    registers: Vec<(String, Ty)>,
    names: usize,
    /// Number of statements that may still be generated.
    budget: usize,
    code: Code,
    loops: usize,
    returns: Option<Ty>,
    /// Whether calls of functions with side effects may occur.
    effects: bool,
}

/// Headers, structs and errors of every program.
const TYPES: &str = "\
#include <core.p4>
#include <v1model.p4>
error { Odd, Late }
enum bit<8> kind_t { A = 1, B = 7, C = 200 }
header h_t { bit<8> a; bit<8> b; int<8> s; bit<4> n; bit<4> m; bit<16> c; }
header g_t { bit<16> p; int<8> q; bit<7> r; bit<1> o; }
header v_t { bit<8> len; varbit<64> data; }
header_union u_t { h_t x; g_t y; }
struct s_t { bit<8> x; bit<16> y; bool f; int<8> i; h_t h; }
header o_t {
    bit<8> a; bit<16> b; int<8> i; bit<8> f; bit<8> sx; bit<16> sy; bit<8> sf; int<8> si; bit<8> sha; bit<16> shc;
    bit<32> w; bit<8> err; bit<8> valid;
}
struct headers_t { h_t h; g_t g; v_t v; h_t[3] st; u_t u; u_t[2] us; h_t k; o_t o; }
struct meta_t { bit<8> a; bit<16> b; int<8> i; bool f; s_t s; bit<32> w; bit<8> err; bit<2> ix; bit<9> port; }
";

/// Copies metadata into the header that leaves.
const OBSERVE: &str = "\
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) {
    apply {
        hdr.o.setValid();
        hdr.o.a = meta.a;
        hdr.o.b = meta.b;
        hdr.o.i = meta.i;
        hdr.o.f = (bit<8>) (bit<1>) meta.f;
        hdr.o.sx = meta.s.x;
        hdr.o.sy = meta.s.y;
        hdr.o.sf = (bit<8>) (bit<1>) meta.s.f;
        hdr.o.si = meta.s.i;
        hdr.o.sha = meta.s.h.a;
        hdr.o.shc = meta.s.h.c;
        hdr.o.w = meta.w;
        hdr.o.err = meta.err;
        hdr.o.valid = 0;
        if (meta.s.h.isValid()) {
            hdr.o.valid = hdr.o.valid | 1;
        }
        if (hdr.h == hdr.k) {
            hdr.o.valid = hdr.o.valid | 2;
        }
    }
}
control Deparse(packet_out p, in headers_t hdr) {
    apply {
        p.emit(hdr);
    }
}
V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Compute(), Deparse()) main;
";

/// Returns the program with this seed.
pub fn generate(seed: u64) -> String {
    let mut rng = SplitMix64::new(seed);
    let budget = rng.pick(&[(2, 30), (3, 60), (1, 110)]);
    let mut generator = Generator {
        rng,
        out: TYPES.to_owned(),
        indent: 0,
        places: Vec::new(),
        functions: Vec::new(),
        actions: Vec::new(),
        tables: Vec::new(),
        controls: Vec::new(),
        registers: Vec::new(),
        names: 0,
        budget,
        code: Code::Function,
        loops: 0,
        returns: None,
        effects: true,
    };
    generator.program();
    generator.out
}

impl Generator {
    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "{:indent$}{}", "", text.as_ref(), indent = self.indent * 4);
    }

    fn open(&mut self, text: impl AsRef<str>) {
        self.line(format!("{} {{", text.as_ref()));
        self.indent += 1;
    }

    fn close(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn below(&mut self, end: usize) -> usize {
        self.rng.below(end as u64) as usize
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.rng.percent(chance)
    }

    fn one_of<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        if list.is_empty() {
            return None;
        }
        let at = self.below(list.len());
        Some(list[at].clone())
    }

    /// Returns a scalar type that places in scope have.
    fn scalar_ty(&mut self) -> Ty {
        self.rng.pick(&[
            (8, Ty::Bit(8)),
            (4, Ty::Bit(16)),
            (3, Ty::Int(8)),
            (2, Ty::Bool),
            (2, Ty::Bit(4)),
            (1, Ty::Bit(7)),
            (1, Ty::Bit(1)),
            (1, Ty::Bit(32)),
        ])
    }

    fn param_ty(&mut self) -> Ty {
        match self.below(10) {
            0 => Ty::Header,
            1 => Ty::Struct,
            2 => Ty::Small,
            _ => self.scalar_ty(),
        }
    }

    fn program(&mut self) {
        for _ in 0..2 + self.below(4) {
            self.function();
        }
        self.parser();
        for _ in 0..self.below(3) {
            self.sub_control();
        }
        self.control("MyIngress");
        self.control("MyEgress");
        self.out.push_str(OBSERVE);
    }

    /// Puts a place and its parts into scope.
    fn declare(&mut self, text: &str, ty: Ty, writable: bool) {
        let mut part = |text: String, ty: Ty| self.places.push(TypedPlace { text, ty, writable });
        part(text.to_owned(), ty);
        let header = |base: &str| {
            [
                ("a", Ty::Bit(8)),
                ("b", Ty::Bit(8)),
                ("s", Ty::Int(8)),
                ("n", Ty::Bit(4)),
                ("m", Ty::Bit(4)),
                ("c", Ty::Bit(16)),
            ]
            .map(|(field, ty)| (format!("{base}.{field}"), ty))
        };
        match ty {
            Ty::Header => header(text).into_iter().for_each(|(text, ty)| part(text, ty)),
            Ty::Small => {
                for (field, ty) in [("p", Ty::Bit(16)), ("q", Ty::Int(8)), ("r", Ty::Bit(7)), ("o", Ty::Bit(1))] {
                    part(format!("{text}.{field}"), ty);
                }
            }
            Ty::Struct => {
                for (field, ty) in
                    [("x", Ty::Bit(8)), ("y", Ty::Bit(16)), ("f", Ty::Bool), ("i", Ty::Int(8)), ("h", Ty::Header)]
                {
                    part(format!("{text}.{field}"), ty);
                }
                header(&format!("{text}.h")).into_iter().for_each(|(text, ty)| part(text, ty));
            }
            Ty::Stack => {
                for index in 0..3 {
                    part(format!("{text}[{index}]"), Ty::Header);
                    header(&format!("{text}[{index}]")).into_iter().for_each(|(text, ty)| part(text, ty));
                }
            }
            _ => {}
        }
    }

    /// Puts `hdr` and `meta` into scope.
    fn packet_places(&mut self) {
        self.declare("hdr.h", Ty::Header, true);
        self.declare("hdr.h", Ty::Header, true);
        self.declare("hdr.g", Ty::Small, true);
        self.declare("hdr.st", Ty::Stack, true);
        self.declare("hdr.k", Ty::Header, true);
        for (field, ty) in [
            ("a", Ty::Bit(8)),
            ("b", Ty::Bit(16)),
            ("i", Ty::Int(8)),
            ("f", Ty::Bool),
            ("s", Ty::Struct),
            ("w", Ty::Bit(32)),
        ] {
            self.declare(&format!("meta.{field}"), ty, true);
            if ty != Ty::Struct {
                self.declare(&format!("meta.{field}"), ty, true);
            }
        }
    }

    /// Writes a function.
    fn function(&mut self) {
        let name = self.fresh("f");
        let scope = self.places.len();
        let (params, returns) = (self.params(4, false), self.percent(85).then(|| self.scalar_ty()));
        for param in &params {
            self.declare(&param.name, param.ty, param.dir != Dir::In);
        }
        self.code = Code::Function;
        self.returns = returns;
        let ty = returns.map_or("void".to_owned(), Ty::text);
        self.open(format!("{ty} {name}({})", signature(&params)));
        // A function with side effects is what most programs are about.
        for param in
            params.iter().filter(|param| param.dir == Dir::Out || param.dir == Dir::InOut && param.ty.is_scalar())
        {
            let value = self.expr(param.ty, 2);
            self.line(format!("{} = {value};", param.name));
        }
        let count = self.below(4);
        self.statements(count, 2);
        if let Some(ty) = returns {
            let value = self.expr(ty, 2);
            self.line(format!("return {value};"));
        }
        self.close("}");
        self.returns = None;
        self.places.truncate(scope);
        self.functions.push(Callable { name, params, returns });
    }

    /// Returns random parameters; `in` parameters at the end may have defaults.
    fn params(&mut self, most: usize, data: bool) -> Vec<Param> {
        let mut params = Vec::new();
        for _ in 0..1 + self.below(most) {
            let name = self.fresh("p");
            let dir = self.rng.pick(&[(3, Dir::In), (1, Dir::Out), (4, Dir::InOut)]);
            params.push(Param { name, dir, ty: self.param_ty(), default: None });
        }
        if data {
            for _ in 0..self.below(3) {
                let name = self.fresh("d");
                let ty = self.scalar_ty();
                params.push(Param { name, dir: Dir::Data, ty, default: None });
            }
        } else if self.percent(25) {
            let name = self.fresh("p");
            let ty = Ty::Bit(8);
            let default = Some(self.below(256).to_string());
            params.push(Param { name, dir: Dir::In, ty, default });
        }
        params
    }
}

/// Returns the text of a parameter list.
pub(crate) fn signature(params: &[Param]) -> String {
    let one = |param: &Param| {
        let dir = match param.dir {
            Dir::In => "in ",
            Dir::Out => "out ",
            Dir::InOut => "inout ",
            Dir::Data => "",
        };
        let default = param.default.as_ref().map_or(String::new(), |value| format!(" = {value}"));
        format!("{dir}{} {}{default}", param.ty.text(), param.name)
    };
    params.iter().map(one).collect::<Vec<_>>().join(", ")
}
