//! Random programs, entries and packets. `BPF_FUZZ_FROM` and `BPF_FUZZ_COUNT` choose the seeds of a longer run. The
//! programs have what compiled code does itself, so that few packets are handed over: nested expressions of all widths,
//! branches, tables, counts, registers, checksums, hashes, drops, and headers that are added, removed and moved.

use std::fmt::Write;

use bits::Bits;
use engine::{Objects, TableEntry};
use ir::{KeyValue, MatchKind, Program};
use rng::SplitMix64;
use v1model::Executor;

use crate::kernel::InKernel;
use crate::rig::{self, PORTS, Rig, Ways};

/// Places by width: fields of headers, and metadata.
const PLACES: [(u32, &[&str]); 11] = [
    (3, &["hdr.a.three", "meta.three"]),
    (5, &["hdr.a.five"]),
    (8, &["hdr.a.eight", "hdr.b.eight", "hdr.c.eight", "meta.eight"]),
    (13, &["hdr.b.thirteen", "meta.thirteen"]),
    (16, &["hdr.a.sixteen", "meta.sixteen"]),
    (32, &["hdr.a.word", "hdr.b.word", "meta.word"]),
    (48, &["hdr.a.mac", "meta.mac"]),
    (59, &["hdr.b.odd"]),
    (64, &["hdr.a.long", "meta.long"]),
    (100, &["hdr.b.wide", "meta.wide"]),
    (128, &["hdr.a.address", "hdr.c.address", "meta.address"]),
];

const HEAD: &str = "#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> eight; bit<3> three; bit<5> five; bit<16> sixteen; bit<32> word; bit<48> mac; bit<64> long;
    bit<128> address; }
header b_t { bit<59> odd; bit<13> thirteen; bit<8> eight; bit<32> word; bit<100> wide; bit<4> rest; }
struct headers { a_t a; b_t b; a_t c; }
struct metadata {
    bit<3> three; bit<8> eight; bit<13> thirteen; bit<16> sixteen; bit<32> word; bit<48> mac; bit<64> long;
    bit<100> wide; bit<128> address;
}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.a);
        transition select(hdr.a.eight, hdr.a.three) { (0 .. 99, _): more; (_, 1 &&& 5): more; default: accept; }
    }
    state more { meta.eight = packet.lookahead<bit<8>>(); meta.address = packet.lookahead<bit<128>>(); packet.extract(hdr.b); transition accept; }
}
";

struct Generator {
    rng: SplitMix64,
    text: String,
}

impl Generator {
    fn place(&mut self, width: u32) -> &'static str {
        let (_, places) = PLACES.iter().find(|(of, _)| *of == width).expect("a width of places");
        places[self.rng.below(places.len() as u64) as usize]
    }

    fn any_width(&mut self) -> u32 {
        PLACES[self.rng.below(PLACES.len() as u64) as usize].0
    }

    /// Returns an expression of this width. Products and sums that saturate have at most 64 bits, as compiled code has
    /// no wider ones; nor has it shifts of wider values by computed amounts.
    fn expr(&mut self, width: u32, depth: u32) -> String {
        let is_place = PLACES.iter().any(|(of, _)| *of == width);
        let kind = if depth == 0 { self.rng.below(3) } else { self.rng.below(13) };
        match kind {
            0 => {
                let value = u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64());
                format!("{width}w{}", value >> (128 - width).max(self.rng.below(128) as u32))
            }
            1 if is_place => self.place(width).to_owned(),
            1 | 2 => {
                let from = self.any_width();
                let place = self.place(from);
                if from <= width || self.rng.percent(50) {
                    return format!("((bit<{width}>) {place})");
                }
                let low = self.rng.below(u64::from(from - width) + 1) as u32;
                format!("{place}[{}:{low}]", low + width - 1)
            }
            3..=5 => {
                let all = [(2, "+"), (2, "-"), (2, "&"), (1, "|"), (2, "^"), (1, "*"), (1, "|+|"), (1, "|-|")];
                let op = self.rng.pick(if width > 64 { &all[..5] } else { &all });
                format!("({} {op} {})", self.expr(width, depth - 1), self.expr(width, depth - 1))
            }
            6 => {
                let op = self.rng.pick(&[(1, "<<"), (1, ">>")]);
                format!("({} {op} {})", self.expr(width, depth - 1), self.amount(width, depth))
            }
            7 => format!("({}{})", self.rng.pick(&[(1, "~"), (1, "-")]), self.expr(width, depth - 1)),
            8 if width > 1 => {
                let high = 1 + self.rng.below(u64::from(width) - 1) as u32;
                format!("({} ++ {})", self.expr(high, depth - 1), self.expr(width - high, depth - 1))
            }
            9 if (2..64).contains(&width) => {
                let op = self.rng.pick(&[(1, "|+|"), (1, "|-|"), (1, "+")]);
                let (a, b) = (self.expr(width, depth - 1), self.expr(width, depth - 1));
                format!("((bit<{width}>) (((int<{width}>) {a}) {op} ((int<{width}>) {b})))")
            }
            10 if width > 1 => {
                let (value, by) = (self.expr(width, depth - 1), self.amount(width, depth));
                format!("((bit<{width}>) (((int<{width}>) {value}) >> {by}))")
            }
            _ => {
                let condition = self.condition(depth - 1);
                format!("({condition} ? {} : {})", self.expr(width, depth - 1), self.expr(width, depth - 1))
            }
        }
    }

    /// Returns the amount by which a value of this width is shifted.
    fn amount(&mut self, width: u32, depth: u32) -> String {
        if width <= 64 { self.expr(8, depth - 1) } else { self.rng.below(140).to_string() }
    }

    fn condition(&mut self, depth: u32) -> String {
        let kind = if depth == 0 { self.rng.below(2) } else { self.rng.below(6) };
        match kind {
            0 => self.rng.pick(&[(2, "hdr.b.isValid()"), (1, "hdr.c.isValid()")]).to_owned(),
            1..=3 => {
                let (width, below) = (self.any_width(), depth.saturating_sub(1));
                let op = self.rng.pick(&[(2, "=="), (1, "!="), (2, "<"), (1, "<="), (1, ">"), (1, ">=")]);
                let (a, b) = (self.expr(width, below), self.expr(width, below));
                match self.rng.percent(40) {
                    true => format!("(((int<{width}>) {a}) {op} ((int<{width}>) {b}))"),
                    false => format!("({a} {op} {b})"),
                }
            }
            4 => format!("(!{})", self.condition(depth - 1)),
            _ => {
                let op = self.rng.pick(&[(1, "&&"), (1, "||")]);
                format!("({} {op} {})", self.condition(depth - 1), self.condition(depth - 1))
            }
        }
    }

    fn statement(&mut self, depth: u32) {
        let kind = self.rng.below(if depth == 0 { 11 } else { 13 });
        // Writing to a string cannot fail.
        _ = match kind {
            0 => {
                let index = self.place(3);
                writeln!(self.text, "counts.count((bit<32>) {index});")
            }
            7 | 8 => self.register(),
            9 => self.hash(),
            10 => {
                let headers = [
                    (3, "hdr.b.setValid();"),
                    (2, "hdr.b.setInvalid();"),
                    (1, "hdr.a.setInvalid();"),
                    (1, "hdr.a.setValid();"),
                    (1, "hdr.c.setValid();"),
                    (1, "hdr.c = hdr.a;"),
                ];
                writeln!(self.text, "{}", self.rng.pick(&headers))
            }
            11 | 12 => {
                let condition = self.condition(2);
                _ = writeln!(self.text, "if ({condition}) {{");
                (0..1 + self.rng.below(3)).for_each(|_| self.statement(depth - 1));
                self.text.push_str("} else {\n");
                (0..self.rng.below(3)).for_each(|_| self.statement(depth - 1));
                writeln!(self.text, "}}")
            }
            _ => {
                let width = self.any_width();
                let (place, value) = (self.place(width), self.expr(width, 4));
                writeln!(self.text, "{place} = {value};")
            }
        };
    }

    /// Reads or writes a register of eight, 13 or 64 bits, perhaps beyond its end.
    fn register(&mut self) -> std::fmt::Result {
        let (width, index) = (self.rng.pick(&[(1, 8), (1, 13), (1, 64)]), self.place(3));
        match self.rng.percent(50) {
            true => {
                let place = self.place(width);
                writeln!(self.text, "state{width}.read({place}, (bit<32>) {index});")
            }
            false => {
                let value = self.expr(width, 2);
                writeln!(self.text, "state{width}.write((bit<32>) {index}, {value});")
            }
        }
    }

    fn hash(&mut self) -> std::fmt::Result {
        // A wide result is the remainder of a wide number.
        let width = self.any_width().min(64);
        let place = self.place(width);
        let algorithm = self.rng.pick(&[(1, "crc16"), (1, "crc32"), (1, "xor16"), (1, "csum16"), (1, "identity")]);
        let data: Vec<String> = (0..1 + self.rng.below(4))
            .map(|_| {
                let width = self.any_width();
                self.expr(width, 1)
            })
            .collect();
        let (base, most) = (self.expr(width, 0), self.rng.pick(&[(1, "0x10000"), (1, "0xffffffff"), (1, "1000")]));
        let data = data.join(", ");
        writeln!(self.text, "hash({place}, HashAlgorithm.{algorithm}, {base}, {{ {data} }}, 32w{most});")
    }

    fn statements(&mut self, most: u64) {
        (0..1 + self.rng.below(most)).for_each(|_| self.statement(2));
    }

    /// Declares a table with actions of its own.
    fn table(&mut self, number: u32) {
        for action in 0..2 {
            _ = writeln!(self.text, "action do{number}{action}(bit<8> first, bit<48> second, bit<128> third) {{");
            _ = writeln!(
                self.text,
                "meta.eight = first; hdr.a.mac = hdr.a.mac ^ second; meta.address = meta.address + third;"
            );
            self.statements(2);
            self.text.push_str(["}\n", "if (meta.eight == 3) { mark_to_drop(std); exit; } }\n"][action]);
        }
        let is_prefix = self.rng.percent(40);
        let keys: String = match is_prefix {
            true => format!("{}: lpm; ", self.place(16)),
            false => (0..1 + self.rng.below(3)).map(|_| format!("{}: exact; ", self.place(3))).collect(),
        };
        let keys = match self.rng.below(5) {
            0 => format!("{}: lpm; ", self.place(128)),
            1 => format!("{}: exact; {keys}", self.place(128)),
            _ => keys,
        };
        _ = writeln!(self.text, "direct_counter(CounterType.packets) hits{number};");
        _ = writeln!(
            self.text,
            "table t{number} {{ key = {{ {keys}}} actions = {{ do{number}0; do{number}1; }} counters = hits{number}; \
             size = 32; default_action = do{number}0(1, 2, 3); }}"
        );
    }

    fn program(mut self) -> String {
        self.text.push_str(HEAD);
        self.text.push_str("control V(inout headers hdr, inout metadata meta) { apply {} }\n");
        let covered: Vec<&str> = (0..4)
            .map(|_| ["hdr.a.three", "hdr.a.long", "hdr.b.odd", "hdr.a.mac", "hdr.b.wide"][self.rng.below(5) as usize])
            .collect();
        _ = writeln!(
            self.text,
            "control C(inout headers hdr, inout metadata meta) {{ apply {{ update_checksum(hdr.b.isValid(), \
             {{ {} }}, hdr.a.sixteen, HashAlgorithm.csum16); }} }}",
            covered.join(", ")
        );
        for (name, most) in [("I", 6), ("E", 3)] {
            _ = writeln!(
                self.text,
                "control {name}(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{"
            );
            self.text.push_str("counter(8, CounterType.packets_and_bytes) counts;\n");
            for width in [8, 13, 64] {
                _ = writeln!(self.text, "register<bit<{width}>>(6) state{width};");
            }
            (0..2).for_each(|number| self.table(number));
            self.text.push_str("apply {\n");
            if name == "I" {
                let port = self.expr(3, 2);
                _ = writeln!(self.text, "std.egress_spec = (bit<9>) {port};");
            }
            self.statements(most);
            self.text.push_str("if (t0.apply().hit) {\n");
            self.statements(2);
            self.text.push_str("}\nswitch (t1.apply().action_run) { do11: {\n");
            self.statements(2);
            let condition = self.condition(1);
            _ = writeln!(
                self.text,
                "}} default: {{}} }}\nif ({condition}) {{ if (meta.three == 1) {{ mark_to_drop(std); }} }}\n}} }}"
            );
        }
        let order = self.rng.pick(&[(3, ["a", "b", "c"]), (1, ["c", "a", "b"]), (1, ["b", "c", "a"])]);
        let emits = order.map(|header| format!("packet.emit(hdr.{header});")).concat();
        _ = writeln!(self.text, "control D(packet_out packet, in headers hdr) {{ apply {{ {emits} }} }}");
        self.text.push_str("V1Switch(P(), V(), I(), E(), C(), D()) main;\n");
        self.text
    }
}

/// Writes random entries into all tables.
fn write(seed: u64, program: &Program, objects: &mut Objects) {
    let mut rng = SplitMix64::new(seed);
    for (id, table) in &program.tables {
        for _ in 0..rng.below(12) {
            let key = |key: &ir::Key| match key.kind {
                MatchKind::Lpm if key.width == 128 => {
                    // The packets have many addresses of zeros and of ones.
                    let length = rng.pick(&[(1, 0), (1, 2), (2, 62), (1, 64), (1, 65), (2, 126), (1, 128)]);
                    let value = rng.pick(&[(2, 0), (2, u128::MAX), (1, u128::MAX << 64), (1, u128::MAX >> 64)]);
                    KeyValue::Lpm(Bits::new(value, 128).and(&Bits::ones(128).shl(128 - length)), length)
                }
                MatchKind::Lpm => {
                    let length = rng.pick(&[(1, 0), (1, 8), (2, 14), (1, 16)]);
                    let value = rng.below(4) << 14 >> (16 - length) << (16 - length);
                    KeyValue::Lpm(Bits::new(value.into(), 16), length)
                }
                _ if key.width == 128 => KeyValue::Exact(Bits::new(rng.pick(&[(1, 0), (1, u128::MAX)]), 128)),
                _ => KeyValue::Exact(Bits::new(rng.below(8).into(), key.width)),
            };
            let keys: Vec<KeyValue> = table.keys.iter().map(key).collect();
            let action = table.actions[rng.below(2) as usize].action;
            let third = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            let args =
                vec![Bits::new(rng.below(6).into(), 8), Bits::new(rng.next_u64().into(), 48), Bits::new(third, 128)];
            // A repeated key is refused.
            _ = objects.insert(id, TableEntry::new(keys, 0, action, args));
        }
    }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let length = rng.pick(&[(8, 80), (1, 65), (1, 64), (1, 38), (1, 37), (1, 1)]);
    let is_plain = rng.percent(30);
    (0..length)
        .map(|_| if is_plain { [0, 1, 0xff, 0x80][rng.below(4) as usize] } else { rng.next_u64() as u8 })
        .collect()
}

fn run(seed: u64) -> Ways {
    let text = Generator { rng: SplitMix64::new(seed), text: String::new() }.program();
    let program = rig::compile_text(&text, None).unwrap_or_else(|| panic!("not a valid program:\n{text}"));
    let rig = |seed| {
        let write = |program: &Program, objects: &mut Objects| write(seed, program, objects);
        Rig::try_new(&program, &[Executor::Interpreter], write).expect("a small program")
    };
    let (mut all, before) = (rig(seed), rig(seed));
    let kernel = InKernel::load(&before, 1).ok();
    let mut rng = SplitMix64::new(seed ^ 0x55);
    for number in 0..40u32 {
        let data = packet(&mut rng);
        let port = if number < 30 { 0 } else { rng.below(PORTS.into()) as u32 };
        all.packet(port, &data);
        if let (Some(kernel), true) = (&kernel, port == 0 && data.len() >= 14) {
            kernel.compare(&before, port, &data);
        }
    }
    all.compare_counts();
    if let Some(kernel) = kernel {
        kernel.compare_regions(&before);
    }
    all.ways
}

#[test]
fn generated_programs_agree() {
    let (from, count) = (testing::number("BPF_FUZZ_FROM", 0u64), testing::number("BPF_FUZZ_COUNT", 60u64));
    let (mut packets, mut sent, mut dropped) = (0, 0, 0);
    for seed in from..from + count {
        // A failure is reported with its seed.
        eprintln!("seed {seed}");
        let ways = run(seed);
        (packets, sent, dropped) = (packets + ways.all(), sent + ways.sent, dropped + ways.dropped);
    }
    eprintln!("{sent} of {packets} packets sent, {dropped} dropped in the kernel");
    assert!(sent * 100 > packets * 75 && (sent + dropped) * 100 > packets * 95, "{sent}, {dropped} of {packets}");
}
