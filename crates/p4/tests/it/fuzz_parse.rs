//! Parses mutated programs and random text: no input may cause a panic or a repeated diagnostic. `P4_FUZZ_ROUNDS` sets
//! the number of rounds; a failing round's seed is printed and replays with `P4_FUZZ_SEED`.

use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};
use rng::SplitMix64;

/// A generator of mutations.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit.max(1) as u64) as usize
    }
}

const SEEDS: [&str; 4] = [
    include_str!("../../src/core.p4"),
    "#define M(a, b) a##b #a\n#if defined(M) && 1 < 2\nheader h_t { bit<8> f; varbit<(8 * 4)> v; }\n#else\n#endif\n\
     struct s<T> { T t; h_t[4] stack; tuple<bit<8>, list<T>> u; }\n\
     parser p<T>(packet_in b, out s<T> h)(bit<8> k) { value_set<bit<8>>(4) vs; state start { b.extract(h.stack.next); \
     transition select(h.t, k) { (1, _): accept; (2 &&& 3, 4 .. 5): start; default: reject; } } }\n",
    "@name(\"c\") control c(inout bit<32> x)(bool d) { Register<bit<32>, bit<8>>(16) r; action a(bit<8> v) { x = (bit<32>) v; } \
     table t { key = { x : exact @k[a = 1]; x[7:0] : lpm; } actions = { a; @defaultonly NoAction(); } \
     const entries = { (1, 2) : a(3); const priority = 4: (_, default): a(5) @x; } default_action = a(1); size = 16; } \
     apply { if (t.apply().hit) { r.read(x, 0); } else if (!d) exit; switch (t.apply().action_run) { a: { } default: } \
     for (bit<8> i in 1 .. 4) { x |+|= x >> 2 > 1 ? 3 : -4; } for (int i = 0; i < 3; i += 1) { continue; } \
     f<tuple<bit<8>>>(x = 1, y = _); x = { a = 1, ... }; x = {#}; return; } }\n",
    "extern E<T> { E(T t); abstract T f(in T x); } E<bit<8>>(1) e = { bit<8> f(in bit<8> x) { return this.g(x); } };\n\
     typedef struct q { bit a; } r; type bit<8> n; enum bit<8> en { a = 1, b = 2 } error { X } match_kind { range, }\n\
     package Pkg<T>(p<T> x, c y = c()); @pragma old x (y)\nPkg(p(), c(true)) main;\n# 12 \"other.p4\"\n#line 4\n",
];

const PIECES: [&str; 48] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ">>",
    ";",
    ",",
    ":",
    ".",
    "=",
    "==",
    "&&&",
    "..",
    "...",
    "{#}",
    "@",
    "#",
    "##",
    "\n#",
    "\"",
    "\\",
    "\\\n",
    "/*",
    "*/",
    "//",
    "'",
    "é",
    "8w",
    "0x",
    "99999999999w1",
    "if",
    "else",
    "state",
    "table",
    "apply",
    "transition",
    "select",
    "control",
    "bit<",
    "const",
    "entries",
    "#define M(",
    "#if ",
    "#endif\n",
];

fn text(random: &mut Random) -> String {
    let mut text = if random.below(20) == 0 {
        (0..random.below(400)).map(|_| random.0.next_u64() as u8).collect()
    } else {
        SEEDS[random.below(SEEDS.len())].as_bytes().to_vec()
    };
    if random.below(4) == 0 {
        text.extend_from_slice(SEEDS[random.below(SEEDS.len())].as_bytes());
    }
    for _ in 0..=random.below(8) {
        let (a, b) = (random.below(text.len() + 1), random.below(text.len() + 1));
        let (a, b) = (a.min(b), a.max(b));
        let piece = PIECES[random.below(PIECES.len())].as_bytes();
        match random.below(5) {
            0 => drop(text.splice(a..a, piece.iter().copied())),
            1 => drop(text.drain(a..b.min(a + 12))),
            2 => drop(text.splice(b..b, text[a..b.min(a + 60)].to_vec())),
            3 => text.truncate(b.max(text.len() / 2)),
            _ => drop(text.splice(b..b, piece.repeat(random.below(300)))),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn nothing_panics() {
    let rounds = variable("P4_FUZZ_ROUNDS").unwrap_or(3000);
    let first = variable("P4_FUZZ_SEED").unwrap_or(1);
    for seed in first..first + rounds {
        let mut random = Random(SplitMix64::new(seed));
        let text = text(&mut random);
        let outcome = std::panic::catch_unwind(|| {
            let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
            p4::parse(&mut map, "fuzz.p4", &text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
            diagnostics.render(&map, false)
        });
        assert!(outcome.is_ok(), "P4_FUZZ_SEED={seed} P4_FUZZ_ROUNDS=1 fails on:\n{text}");
    }
}
