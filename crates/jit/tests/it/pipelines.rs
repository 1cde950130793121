//! Random pipelines of typical shape: headers of whole bytes, parsers that follow type fields, actions that change, add
//! and remove headers, checksums, a deparser that emits in order. Both executors must agree, and fused units must
//! behave like their bodies one by one.

use std::fmt::Write;
use std::sync::Arc;

use crate::both::{self, RandomValues};
use diagnostics::{Diagnostics, SourceMap};
use ir::Program;

const ERRORS: &str = "errors { NoError PacketTooShort NoMatch StackOutOfBounds HeaderTooShort ParserTimeout ParserInvalidArgument Mine }";

/// Draws field widths that add up to whole bytes.
fn fields(rng: &mut RandomValues) -> Vec<u32> {
    let mut fields = Vec::new();
    for _ in 0..1 + rng.below(4) {
        match rng.below(7) {
            0 => fields.extend([4, 4]),
            1 => fields.extend([3, 13]),
            2 => fields.push(48),
            3 => fields.push(16),
            4 => fields.push(32),
            5 => fields.extend([1, 7, 20, 12]),
            _ => fields.push([8, 24, 64, 128, 40, 72][rng.below(6) as usize]),
        }
    }
    fields
}

struct Text {
    out: String,
    /// Field widths of each header; the last one, `type`, has 8 bits.
    headers: Vec<Vec<u32>>,
    varbit: Option<usize>,
    stack: u32,
    actions: usize,
    tables: usize,
}

impl Text {
    fn field(&self, rng: &mut RandomValues) -> (String, u32) {
        let header = rng.below(self.headers.len() as u64) as usize;
        let field = rng.below(self.headers[header].len() as u64) as usize;
        (format!("h{header}.f{field}"), self.headers[header][field])
    }

    /// Draws a field for which packets have few values, so that entries can be hit.
    fn short_field(&self, rng: &mut RandomValues) -> (String, u32) {
        for _ in 0..8 {
            let (field, width) = self.field(rng);
            if width <= 16 {
                return (field, width);
            }
        }
        self.field(rng)
    }

    /// Draws an expression of this width.
    fn expr(&self, rng: &mut RandomValues, width: u32, depth: u32) -> String {
        let constant = |rng: &mut RandomValues| format!("0x{:x}:{width}", rng.bits(width).to_big());
        if depth == 0 {
            return constant(rng);
        }
        match rng.below(8) {
            0 => constant(rng),
            1..4 => {
                let (field, of) = self.field(rng);
                match of.cmp(&width) {
                    std::cmp::Ordering::Equal => field,
                    std::cmp::Ordering::Less => format!("zext({field}, {width})"),
                    std::cmp::Ordering::Greater => format!("{field}[{}:0]", width - 1),
                }
            }
            4 => format!(
                "choose({}, {}, {})",
                self.condition(rng, depth - 1),
                self.expr(rng, width, depth - 1),
                self.expr(rng, width, depth - 1)
            ),
            _ => {
                let op = ["+", "-", "&", "|", "^", "*", "|+|", "<<", ">>"][rng.below(7) as usize];
                format!("({} {op} {})", self.expr(rng, width, depth - 1), self.expr(rng, width, depth - 1))
            }
        }
    }

    fn condition(&self, rng: &mut RandomValues, depth: u32) -> String {
        match rng.below(4) {
            0 => format!("valid(h{})", rng.below(self.headers.len() as u64)),
            1 if self.stack > 0 => "valid(s[meta.i])".to_owned(),
            _ => {
                let (field, width) = self.field(rng);
                let op = ["==", "!=", "<", "<="][rng.below(4) as usize];
                format!("({field} {op} {})", self.expr(rng, width, depth.min(1)))
            }
        }
    }

    fn instr(&mut self, rng: &mut RandomValues) {
        let header = rng.below(self.headers.len() as u64);
        let line = match rng.below(14) {
            0 => format!("set_valid h{header}"),
            1 => format!("set_invalid h{header}"),
            2 if self.stack > 0 => format!("s[meta.i].f0 = {}", self.expr(rng, self.headers[0][0], 2)),
            3 if self.stack > 0 => {
                let (a, b) = (rng.below(u64::from(self.stack) + 1), rng.below(u64::from(self.stack) + 1));
                format!("copy s[0x{a:x}:32] = s[0x{b:x}:32]")
            }
            4 => {
                let list = self.checksum_list(rng, header as usize);
                format!("compute csum16({list}) -> meta.sum")
            }
            5 => match rng.below(2) {
                0 => format!("read r[{}] -> meta.r", self.expr(rng, 8, 1)),
                _ => format!("write r[{}] = {}", self.expr(rng, 3, 1), self.expr(rng, 20, 2)),
            },
            6 => format!("meta.i = {}", self.expr(rng, 32, 2)),
            7 => format!("meta.port = {}", self.expr(rng, 9, 2)),
            _ => {
                let (field, width) = self.field(rng);
                format!("{field} = {}", self.expr(rng, width, 3))
            }
        };
        writeln!(self.out, "    {line}").unwrap();
    }

    fn checksum_list(&self, rng: &mut RandomValues, header: usize) -> String {
        let skip = rng.below(self.headers[header].len() as u64 + 2) as usize;
        let list: Vec<String> = (0..self.headers[header].len())
            .filter(|field| *field != skip)
            .map(|field| format!("h{header}.f{field}"))
            .collect();
        list.join(", ")
    }
}

/// Draws the text of a pipeline.
fn text(rng: &mut RandomValues, count: usize) -> String {
    let headers: Vec<Vec<u32>> = (0..count)
        .map(|_| {
            let mut widths = fields(rng);
            widths.push(8);
            widths
        })
        .collect();
    let stack = if rng.below(3) == 0 { 1 + rng.below(3) as u32 } else { 0 };
    let mut text = Text {
        out: format!("program v1model\n{ERRORS}\n"),
        varbit: (rng.below(4) == 0).then(|| rng.below(count as u64) as usize),
        headers,
        stack,
        actions: 1 + rng.below(3) as usize,
        tables: rng.below(3) as usize,
    };
    for (number, widths) in text.headers.clone().iter().enumerate() {
        let fields: Vec<String> = widths.iter().enumerate().map(|(at, width)| format!("f{at}: {width}")).collect();
        let varbit = if text.varbit == Some(number) { "  v: varbit 64" } else { "" };
        writeln!(text.out, "header_type t{number} {{ {}{varbit} }}", fields.join("  ")).unwrap();
    }
    for number in 0..count {
        writeln!(text.out, "header h{number}: t{number}").unwrap();
    }
    for element in 0..stack {
        writeln!(text.out, "header s[{element}]: t0").unwrap();
    }
    for (name, width) in
        [("meta.i", 32), ("meta.port", 9), ("meta.sum", 16), ("meta.hit", 1), ("meta.r", 20), ("s.next", 32)]
    {
        writeln!(text.out, "metadata {name}: {width}").unwrap();
    }
    if stack > 0 {
        writeln!(text.out, "stack s: {stack} from s[0] next s.next").unwrap();
    }
    writeln!(text.out, "register r: 20 size 200").unwrap();
    for action in 0..text.actions {
        writeln!(text.out, "argument a{action}.p: 48\nargument a{action}.q: 9").unwrap();
    }
    for action in 0..text.actions {
        writeln!(text.out, "action a{action}(p: a{action}.p, q: a{action}.q) body a{action}").unwrap();
    }
    for table in 0..text.tables {
        writeln!(text.out, "table t{table} {{").unwrap();
        let is_fixed = rng.below(2) == 0;
        let mut keys = Vec::new();
        for key in 0..rng.below(3) {
            let (field, width) = if is_fixed { text.short_field(rng) } else { text.field(rng) };
            let kind = match is_fixed {
                true if key == 0 => ["exact", "ternary", "lpm", "range", "optional"][rng.below(5) as usize],
                true => ["exact", "ternary", "range", "optional"][rng.below(4) as usize],
                false => ["exact", "ternary", "exact"][rng.below(3) as usize],
            };
            let signed = if rng.below(3) == 0 { " signed" } else { "" };
            writeln!(text.out, "  key k{key}: {kind} {width}{signed} = {field}").unwrap();
            keys.push((kind, width, !signed.is_empty()));
        }
        (0..text.actions).for_each(|action| writeln!(text.out, "  action a{action}").unwrap());
        let constant = if rng.below(2) == 0 { " const" } else { "" };
        writeln!(text.out, "  default a0(0x5:48, 0x7:9){constant}").unwrap();
        if is_fixed {
            fixed_entries(&mut text, rng, &keys);
        }
        text.out.push_str("}\n");
    }
    text.out.push_str("role parser: P\nrole ingress: I\nrole egress: E\nrole deparser: D\n");
    parser(&mut text, rng);
    for action in 0..text.actions {
        writeln!(text.out, "action_body a{action} {{\n  block start:").unwrap();
        (0..rng.below(4)).for_each(|_| text.instr(rng));
        let (field, width) = text.field(rng);
        let value =
            if width <= 48 { format!("a{action}.p[{}:0]", width - 1) } else { format!("zext(a{action}.p, {width})") };
        writeln!(text.out, "    {field} = {value}\n    meta.port = a{action}.q").unwrap();
        writeln!(text.out, "    {}\n}}", if rng.below(6) == 0 { "exit" } else { "return" }).unwrap();
    }
    for control in ["I", "E"] {
        writeln!(text.out, "control {control} {{\n  block start:").unwrap();
        (0..rng.below(4)).for_each(|_| text.instr(rng));
        let condition = text.condition(rng, 2);
        writeln!(text.out, "    branch {condition} -> then else otherwise\n  block then:").unwrap();
        (0..rng.below(4)).for_each(|_| text.instr(rng));
        if control == "I" {
            (0..text.tables).for_each(|table| writeln!(text.out, "    apply t{table} hit meta.hit").unwrap());
        }
        writeln!(text.out, "    goto end\n  block otherwise:").unwrap();
        (0..rng.below(4)).for_each(|_| text.instr(rng));
        writeln!(text.out, "    goto end\n  block end:").unwrap();
        (0..rng.below(3)).for_each(|_| text.instr(rng));
        writeln!(text.out, "    return\n}}").unwrap();
    }
    writeln!(text.out, "control D {{\n  block start:").unwrap();
    let mut order: Vec<String> = (0..count).map(|header| format!("h{header}")).collect();
    (0..stack).for_each(|element| order.insert(1, format!("s[{}]", stack - 1 - element)));
    if rng.below(3) == 0 {
        let (a, b) = (rng.below(order.len() as u64) as usize, rng.below(order.len() as u64) as usize);
        order.swap(a, b);
    }
    order.iter().for_each(|header| writeln!(text.out, "    emit {header}").unwrap());
    text.out.push_str("    return\n}\n");
    text.out
}

/// Writes constant entries; about half of them overlap.
fn fixed_entries(text: &mut Text, rng: &mut RandomValues, keys: &[(&str, u32, bool)]) {
    text.out.push_str("  const_entries\n");
    let ranked = keys.iter().any(|(kind, ..)| ["ternary", "range", "optional"].contains(kind));
    let count = if keys.is_empty() { 0 } else { rng.below(11) };
    for _ in 0..count {
        let each = |(kind, width, signed): &(&str, u32, bool), rng: &mut RandomValues| {
            let width = *width;
            let literal = |value: &bits::Bits| format!("0x{:x}:{width}", value.to_big());
            let small = [0, 3, 6, 9, 0x80, 0xc1, 12][rng.below(7) as usize];
            let value = bits::Bits::new(small, width);
            match *kind {
                "exact" => literal(&value),
                "optional" if rng.below(2) == 0 => "_".to_owned(),
                "optional" => literal(&value),
                "lpm" => {
                    let length = rng.below(u64::from(width) + 1) as u32;
                    let value = value.shr(width - length).shl(width - length);
                    format!("{}/{length}", literal(&value))
                }
                "ternary" => {
                    let mask = rng.bits(width).and(&rng.bits(width));
                    format!("{} &&& {}", literal(&value.and(&mask)), literal(&mask))
                }
                _ => {
                    let other = rng.bits(width);
                    let order = if *signed { value.signed_cmp(&other) } else { value.unsigned_cmp(&other) };
                    let (low, high) = if order.is_gt() { (&other, &value) } else { (&value, &other) };
                    format!("{}..{}", literal(low), literal(high))
                }
            }
        };
        let values: Vec<String> = keys.iter().map(|key| each(key, rng)).collect();
        let priority = if ranked { format!(" priority {}", 1 + rng.below(3)) } else { String::new() };
        let action = rng.below(text.actions as u64);
        let (p, q) = (rng.bits(48).to_big(), rng.bits(9).to_big());
        writeln!(text.out, "  entry {}{priority} -> a{action}(0x{p:x}:48, 0x{q:x}:9)", values.join(", ")).unwrap();
    }
}

/// Writes a parser with a state for each header, which extracts the header and selects the next state by its last
/// field.
fn parser(text: &mut Text, rng: &mut RandomValues) {
    text.out.push_str("parser P {\n");
    let count = text.headers.len();
    for header in 0..count {
        writeln!(text.out, "  state p{header}:").unwrap();
        let last = text.headers[header].len() - 1;
        if text.varbit == Some(header) {
            writeln!(
                text.out,
                "    extract h{header} varbit zext(h0.f{} & 0x7:8, 32) << 0x3:8",
                text.headers[0].len() - 1
            )
            .unwrap()
        } else {
            writeln!(text.out, "    extract h{header}").unwrap()
        }
        if rng.below(6) == 0 {
            let (field, width) = text.field(rng);
            writeln!(text.out, "    {field} = {}", text.expr(rng, width, 1)).unwrap();
        }
        writeln!(text.out, "    select h{header}.f{last} {{").unwrap();
        for next in 0..count {
            if next > header || rng.below(8) == 0 {
                writeln!(text.out, "      0x{:x}:8 -> p{next}", next * 3).unwrap();
            }
        }
        if text.stack > 0 {
            writeln!(text.out, "      0x80:8 &&& 0x80:8 -> more").unwrap();
        }
        writeln!(text.out, "      _ -> done").unwrap();
        text.out.push_str("    }\n");
    }
    if text.stack > 0 {
        let last = text.headers[0].len() - 1;
        let varbit = if text.varbit == Some(0) { " varbit zext(h1.f0[0:0], 32) << 0x4:8" } else { "" };
        writeln!(
            text.out,
            "  state more:\n    extract s[s.next]{varbit}\n    s.next = s.next + 0x1:32\n    select s[(s.next - 0x1:32)].f{last} {{\n      0x80:8 &&& 0xc0:8 -> more\n      0x3:8 -> p1\n      _ -> done\n    }}"
        )
        .unwrap();
    }
    text.out.push_str("  block done:\n    return\n}\n");
}

fn program(rng: &mut RandomValues, headers: usize) -> (String, Option<Program>) {
    let text = text(rng, headers);
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("pipeline.ir", text.as_str());
    match ir::parse(&map, file, &mut diagnostics) {
        Some(program) => match ir::validate(&program) {
            Ok(()) => (text, Some(program)),
            Err(violations) => panic!("{}\n{text}", violations[0]),
        },
        None => panic!("{}", diagnostics.render(&map, false)),
    }
}

fn packet(rng: &mut RandomValues) -> Vec<u8> {
    let length = rng.below(160);
    (0..length)
        .map(|_| if rng.below(2) == 0 { [0, 3, 6, 9, 0x80, 0xc1, 12][rng.below(7) as usize] } else { rng.next() as u8 })
        .collect()
}

/// Asserts that interpreter and machine code agree on random programs with these seeds.
fn assert_agreement(seeds: std::ops::Range<u64>, headers: impl Fn(&mut RandomValues) -> usize) {
    for seed in seeds {
        let mut rng = RandomValues::new(seed);
        let headers = headers(&mut rng);
        let (text, program) = program(&mut rng, headers);
        let Some(program) = program else { continue };
        let program = Arc::new(program);
        for fused in [false, true] {
            if let Some(difference) = both::run(&program, seed, fused, 60, &mut packet) {
                panic!("seed {seed}, fused {fused}: {difference}\n{text}");
            }
        }
        if let Some(difference) = both::run_batches(&program, seed, 120, &mut packet) {
            panic!("seed {seed}: {difference}\n{text}");
        }
    }
}

#[test]
fn pipelines_agree() {
    let (from, count) = (testing::number("JIT_FUZZ_FROM", 0u64), testing::number("JIT_FUZZ_COUNT", 150u64));
    assert_agreement(from..from + count, |rng| 2 + rng.below(4) as usize);
    // A small number of programs may have packets of only one kind.
    if count >= 100 {
        both::assert_both_ways(count as usize * 10);
    }
}

/// Units with more than 32 headers hold their addresses in the frame.
#[test]
fn pipelines_of_many_headers_agree() {
    assert_agreement(0..12, |rng| 33 + rng.below(6) as usize);
}
