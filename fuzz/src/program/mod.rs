//! Random P4 programs, mostly valid: every name is declared, every type fits, and every construct of the language that
//! packets can reach turns up sooner or later.
//!
//! A program is made for v1model from a seed alone. It is text, so that every stage of the compiler is fuzzed.

mod control;
mod expr;
mod parser;

use std::fmt::Write;

use crate::random::Random;

/// A type that values have here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    Bit(u32),
    Int(u32),
    Bool,
}

impl Ty {
    fn text(self) -> String {
        match self {
            Ty::Bit(width) => format!("bit<{width}>"),
            Ty::Int(width) => format!("int<{width}>"),
            Ty::Bool => "bool".to_owned(),
        }
    }

    fn any(random: &mut Random) -> Ty {
        match random.below(8) {
            0 => Ty::Bool,
            1 => Ty::Int(width(random).max(2)),
            _ => Ty::Bit(width(random)),
        }
    }
}

/// Widths at which things change, more often than others.
fn width(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => random.between(1, 200),
        1 => *random.pick(&[1, 7, 9, 63, 64, 65, 127, 128, 129]),
        _ => *random.pick(&[8, 16, 32, 48]),
    }
}

/// A place that can be read, and perhaps written.
#[derive(Clone, Debug)]
struct Place {
    text: String,
    ty: Ty,
    writable: bool,
}

/// A header type: its name, its fields, and the widest a varbit field may be.
struct HeaderType {
    name: String,
    fields: Vec<(String, Ty)>,
    varbit: bool,
}

/// A header of `hdr`.
struct HeaderPlace {
    text: String,
    ty: usize,
    stack: Option<u32>,
}

/// A function, or an action that is called directly: name and parameters, `true` for those with `inout`.
#[derive(Clone)]
struct Callable {
    name: String,
    params: Vec<(Ty, bool)>,
    returns: Option<Ty>,
}

/// The context of a statement, which restricts the kinds of statements that may occur.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Function,
    ParserState,
    Action,
    Control,
}

struct Generator<'a> {
    random: &'a mut Random,
    out: String,
    indent: usize,
    /// Places in scope at this point; the list is truncated at the end of each scope.
    places: Vec<Place>,
    types: Vec<HeaderType>,
    headers: Vec<HeaderPlace>,
    functions: Vec<Callable>,
    /// Direct actions, tables with their actions, registers (name, width) and counters of the control being made.
    actions: Vec<Callable>,
    tables: Vec<(String, Vec<String>)>,
    registers: Vec<(String, u32)>,
    counters: Vec<String>,
    names: usize,
    /// Statements that may still be made: bounds the program.
    budget: usize,
    here: Where,
    in_loop: bool,
    /// Whether this is ingress; some externs work in one control only.
    ingress: bool,
    returns: Option<Ty>,
}

/// The program with this seed.
pub fn generate(seed: u64) -> String {
    let mut random = Random::new(seed);
    let budget = *random.pick(&[10, 40, 120]);
    let mut generator = Generator {
        random: &mut random,
        out: String::new(),
        indent: 0,
        places: Vec::new(),
        types: Vec::new(),
        headers: Vec::new(),
        functions: Vec::new(),
        actions: Vec::new(),
        tables: Vec::new(),
        registers: Vec::new(),
        counters: Vec::new(),
        names: 0,
        budget,
        here: Where::Function,
        in_loop: false,
        ingress: false,
        returns: None,
    };
    generator.program();
    generator.out
}

impl Generator<'_> {
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

    fn program(&mut self) {
        self.line("#include <core.p4>");
        self.line("#include <v1model.p4>");
        self.constants();
        self.header_types();
        for _ in 0..self.random.below(3) {
            self.function();
        }
        let globals = self.places.len();
        let std = "inout standard_metadata_t standard_metadata";
        self.parser();
        self.places.truncate(globals);

        self.open("control V(inout headers_t hdr, inout metadata_t meta)");
        self.open("apply");
        self.checksum("verify_checksum");
        self.close("}");
        self.close("}");
        for (name, ingress) in [("I", true), ("E", false)] {
            self.ingress = ingress;
            self.open(format!("control {name}(inout headers_t hdr, inout metadata_t meta, {std})"));
            self.control_body();
            self.close("}");
            self.places.truncate(globals);
        }
        self.open("control C(inout headers_t hdr, inout metadata_t meta)");
        self.open("apply");
        self.checksum("update_checksum");
        self.close("}");
        self.close("}");
        self.open("control D(packet_out packet, in headers_t hdr)");
        self.open("apply");
        for header in 0..self.headers.len() {
            let text = self.headers[header].text.clone();
            self.line(format!("packet.emit({text});"));
        }
        self.close("}");
        self.close("}");
        self.line("V1Switch(P(), V(), I(), E(), C(), D()) main;");
    }

    fn constants(&mut self) {
        for _ in 0..self.random.below(4) {
            let ty = Ty::any(self.random);
            let value = self.literal(ty);
            let name = self.fresh("C");
            self.line(format!("const {} {name} = {value};", ty.text()));
            self.places.push(Place { text: name, ty, writable: false });
        }
        if self.random.one_in(2) {
            self.line("enum bit<8> Kind { A = 1, B = 2, Rest = 8w255 }");
            self.places.push(Place { text: "((bit<8>) Kind.B)".to_owned(), ty: Ty::Bit(8), writable: false });
        }
        if self.random.one_in(2) {
            self.line("enum Colour { Red, Green, Blue }");
            self.places.push(Place { text: "(Colour.Red == Colour.Blue)".to_owned(), ty: Ty::Bool, writable: false });
        }
        self.line("error { Strange, Stranger }");
    }

    fn header_types(&mut self) {
        for _ in 0..=self.random.below(4) {
            let name = self.fresh("header");
            let mut fields: Vec<(String, Ty)> = Vec::new();
            let mut bits = 0;
            for _ in 0..=self.random.below(5) {
                let ty = match Ty::any(self.random) {
                    // A bool is one bit of a header, as in a struct.
                    Ty::Bool => Ty::Bit(1),
                    other => other,
                };
                let (Ty::Bit(width) | Ty::Int(width)) = ty else { continue };
                bits += width;
                fields.push((self.fresh("f"), ty));
            }
            if bits % 8 != 0 {
                fields.push((self.fresh("pad"), Ty::Bit(8 - bits % 8)));
            }
            let varbit = self.random.one_in(6);
            self.open(format!("header {name}"));
            for (field, ty) in &fields {
                let text = format!("{} {field};", ty.text());
                self.line(text);
            }
            if varbit {
                self.line("varbit<320> rest;");
            }
            self.close("}");
            self.types.push(HeaderType { name, fields, varbit });
        }
        self.open("struct headers_t");
        for _ in 0..=self.random.below(5) {
            let ty = self.random.below(self.types.len());
            let member = self.fresh("h");
            let stack = (self.random.one_in(4) && !self.types[ty].varbit).then(|| self.random.between(1, 4));
            let name = self.types[ty].name.clone();
            match stack {
                Some(size) => self.line(format!("{name}[{size}] {member};")),
                None => self.line(format!("{name} {member};")),
            }
            self.headers.push(HeaderPlace { text: format!("hdr.{member}"), ty, stack });
        }
        self.close("}");
        self.open("struct inner_t");
        self.line("bit<8> low;");
        self.line("bool flag;");
        self.close("}");
        self.open("struct metadata_t");
        self.line("inner_t inner;");
        let list = self.random.between(1, 3);
        for index in 0..self.random.between(1, 6) {
            let ty = Ty::any(self.random);
            if index == 0 {
                self.line(format!("@field_list({list})"));
            }
            self.line(format!("{} m{index};", ty.text()));
        }
        self.close("}");
    }

    /// Puts the members of `hdr` and `meta` into scope.
    fn packet_places(&mut self, writable: bool) {
        for header in &self.headers {
            let elements = match header.stack {
                None => vec![header.text.clone()],
                Some(size) => (0..size).map(|index| format!("{}[{index}]", header.text)).collect(),
            };
            for element in elements {
                for (field, ty) in &self.types[header.ty].fields {
                    self.places.push(Place { text: format!("{element}.{field}"), ty: *ty, writable });
                }
            }
        }
        self.places.push(Place { text: "meta.inner.low".to_owned(), ty: Ty::Bit(8), writable });
        self.places.push(Place { text: "meta.inner.flag".to_owned(), ty: Ty::Bool, writable });
        // The fields of `metadata_t` are read off the text that was written: they are numbered from 0.
        let fields: Vec<(usize, Ty)> = metadata_fields(&self.out);
        for (index, ty) in fields {
            self.places.push(Place { text: format!("meta.m{index}"), ty, writable });
        }
    }

    /// Puts those fields of `standard_metadata` into scope that programs use.
    fn standard_places(&mut self) {
        for (name, width, writable) in [
            ("ingress_port", 9, false),
            ("egress_spec", 9, true),
            ("packet_length", 32, false),
            ("instance_type", 32, false),
            ("mcast_grp", 16, false),
            ("priority", 3, true),
        ] {
            self.places.push(Place { text: format!("standard_metadata.{name}"), ty: Ty::Bit(width), writable });
        }
    }

    fn function(&mut self) {
        let name = self.fresh("function");
        let scope = self.places.len();
        let returns = Ty::any(self.random);
        let mut params = Vec::new();
        let mut texts = Vec::new();
        for _ in 0..self.random.below(4) {
            let (ty, writable) = (Ty::any(self.random), self.random.one_in(3));
            let param = self.fresh("p");
            texts.push(format!("{} {} {param}", if writable { "inout" } else { "in" }, ty.text()));
            self.places.push(Place { text: param, ty, writable });
            params.push((ty, writable));
        }
        self.here = Where::Function;
        self.returns = Some(returns);
        self.open(format!("{} {name}({})", returns.text(), texts.join(", ")));
        self.statements(4);
        let value = self.expr(returns, 3);
        self.line(format!("return {value};"));
        self.close("}");
        self.returns = None;
        self.places.truncate(scope);
        self.functions.push(Callable { name, params, returns: Some(returns) });
    }

    fn checksum(&mut self, name: &str) {
        if self.random.one_in(2) {
            return;
        }
        let scope = self.places.len();
        self.packet_places(true);
        let sums: Vec<Place> = self.places[scope..].iter().filter(|place| place.ty == Ty::Bit(16)).cloned().collect();
        let mut data: Vec<String> = self.places[scope..]
            .iter()
            .filter(|place| matches!(place.ty, Ty::Bit(width) if width % 8 == 0))
            .map(|place| place.text.clone())
            .collect();
        data.truncate(6);
        if let (Some(sum), false) = (sums.first(), data.is_empty()) {
            let condition = self.expr(Ty::Bool, 2);
            let (sum, data) = (sum.text.clone(), data.join(", "));
            self.line(format!("{name}({condition}, {{ {data} }}, {sum}, HashAlgorithm.csum16);"));
        }
        self.places.truncate(scope);
    }
}

/// The fields `mN` of `metadata_t`, from the program's text.
fn metadata_fields(text: &str) -> Vec<(usize, Ty)> {
    let body = text.split("struct metadata_t {").nth(1).and_then(|rest| rest.split('}').next()).unwrap_or_default();
    let field = |line: &str| {
        let (ty, name) = line.trim().strip_suffix(';')?.rsplit_once(' ')?;
        let number = |prefix: &str| ty.strip_prefix(prefix)?.strip_suffix('>')?.parse().ok();
        let ty = match ty {
            "bool" => Ty::Bool,
            _ => number("bit<").map(Ty::Bit).or_else(|| number("int<").map(Ty::Int))?,
        };
        Some((name.strip_prefix('m')?.parse().ok()?, ty))
    };
    body.lines().filter_map(field).collect()
}
