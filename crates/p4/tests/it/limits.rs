//! No input may overflow the stack, hang or exhaust memory: it is rejected with a diagnostic instead.

use std::io;
use std::path::Path;

use diagnostics::{Diagnostics, SourceMap};
use p4::{Loader, PreprocessorOptions};

/// Synthetic files: `loop.p4` includes itself, `twice.p4` does so twice.
struct MadeUp;

impl Loader for MadeUp {
    fn load(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("loop.p4") => Ok("#include \"loop.p4\"\n".to_owned()),
            Some("twice.p4") => Ok("#if __DEPTH < 20\n#include \"leaf.p4\"\n#endif\n".repeat(5000)),
            Some("leaf.p4") => Ok(String::new()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Returns the codes of the diagnostics of `text`, parsed and dropped on a stack of 2 MiB.
fn codes(text: String) -> Vec<&'static str> {
    let parse = move || {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let program = p4::parse(&mut map, "t.p4", &text, &PreprocessorOptions::default(), &MadeUp, &mut diagnostics);
        drop(program.clone());
        drop(program);
        diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(parse).expect("a thread can be started");
    thread.join().expect("parsing does not panic")
}

/// Returns `before`, then `left` and `right` around `middle` 100,000 times, then `after`.
fn nest(before: &str, left: &str, middle: &str, right: &str, after: &str) -> String {
    const TIMES: usize = 100_000;
    format!("{before}{}{middle}{}{after}", left.repeat(TIMES), right.repeat(TIMES))
}

#[test]
fn deep_trees_are_refused() {
    for (left, middle, right) in [
        ("(", "a", ")"),
        ("-", "a", ""),
        ("(bit<8>)", "a", ""),
        ("a + ", "a", ""),
        ("a ++ b * ", "a", ""),
        ("a ? b : ", "a", ""),
        ("a ? ", "a", " : b"),
        ("a[", "a", "]"),
        ("a[1:", "a", "]"),
        ("f(", "a", ")"),
        ("f<T>(", "a", ")"),
        ("{", "a", "}"),
        ("{ a = ", "a", "}"),
        ("a.", "a", ""),
        ("", "a", "[1]"),
        ("", "a", "()"),
        ("f<tuple<", "T", ">>(a)"),
    ] {
        let text = nest("const bit<8> x = ", left, middle, right, ";");
        assert!(codes(text).contains(&"nesting-too-deep"), "{left}{middle}{right} as expression");
    }
    for (left, middle, right) in [
        ("tuple<", "T", ">"),
        ("list<", "T", ">"),
        ("C<", "T", ">"),
        ("", "T", "[1]"),
        ("bit<", "1", ">"),
        ("bit<(", "1", ")>"),
        ("bit<f<", "T", ">()>"),
    ] {
        let text = nest("typedef ", left, middle, right, " X;");
        let codes = codes(text);
        // A `<` within a width is a comparison, which makes the following tokens invalid.
        let nests = !left.ends_with("bit<") && !left.contains("f<");
        assert!(codes.contains(&"nesting-too-deep") || !nests && !codes.is_empty(), "{left}{middle}{right}: {codes:?}");
    }
    for (left, middle, right) in [
        ("{", "", "}"),
        ("if (a) ", ";", ""),
        ("if (a) { } else ", ";", ""),
        ("for (;a;) ", ";", ""),
        ("for (bit<8> i in 1..2) ", ";", ""),
        ("switch (a) { b: {", "", "}}"),
        ("C() c = { void f() {", "", "} };"),
        ("struct S {", "", "}"),
        ("struct S { bit<8> x; control C() {", "", "}"),
        ("@a[", "1", "] {}"),
    ] {
        let text = nest("action a() {", left, middle, right, "}");
        assert!(!codes(text).is_empty(), "{left}{middle}{right} as statement");
    }
}

#[test]
fn reasonable_nesting_is_accepted() {
    let times = 60;
    let expr = format!("{}1{}", "(".repeat(times), ")".repeat(times));
    let chain = "a + ".repeat(150) + "a";
    let block = format!("{}x = {expr};{}", "{".repeat(50), "}".repeat(50));
    let text = format!("const int a = 1; const int y = {chain}; action a(inout int x) {{ {block} }}");
    assert_eq!(codes(text), [""; 0]);
}

#[test]
fn deep_brackets_without_an_end_are_refused() {
    for left in [
        "(",
        "{",
        "[",
        "a(",
        "a<",
        "a.b<c<",
        "tuple<",
        "@a(",
        "@a[",
        "if (",
        "{ a = ",
        "switch (a) { b: {",
        "control c() {",
    ] {
        for before in ["", "const bit<8> x = ", "action a() { x = ", "action a() {", "control c() { table t { key = {"]
        {
            assert!(!codes(nest(before, left, "", "", "")).is_empty(), "{before}{left}");
        }
    }
}

#[test]
fn endless_includes_are_refused() {
    assert_eq!(codes("#include \"loop.p4\"".to_owned()), ["include-depth"]);
    assert_eq!(codes("#include \"twice.p4\"".to_owned()), ["too-large"]);
}

#[test]
fn exploding_macros_are_refused() {
    let doubling: String = (0..64).map(|i| format!("#define m{i} m{} m{}\n", i + 1, i + 1)).collect();
    assert_eq!(codes(doubling + "m0"), ["too-many-tokens"]);
    let empty: String = (0..64).map(|i| format!("#define m{i} m{} m{}\n", i + 1, i + 1)).collect();
    assert_eq!(codes(empty + "#define m64\nm0"), ["too-many-tokens"]);
    let call = format!("#define F(x) x x\n{}a{}", "F(".repeat(100), ")".repeat(100));
    assert_eq!(codes(call), ["too-many-tokens"]);
    let deep = format!("#define F(x) x\n{}a{}", "F(".repeat(1000), ")".repeat(1000));
    assert_eq!(codes(deep), ["macro-depth"]);
    let paste = format!("#define D(x) x##x\n#define E(x) D(x)\n{}a{}", "E(".repeat(60), ")".repeat(60));
    assert_eq!(codes(paste), ["macro-depth"]);
    let string = format!("#define S(x) #x\n#define X(x) S(x)\n{}\"{}", "X(".repeat(60), ")".repeat(60));
    assert!(!codes(string).is_empty());
    let quotes = format!("#define S(x) #x\n#define X(x) S(x)\n{}\"\"{}", "X(".repeat(60), ")".repeat(60));
    assert_eq!(codes(quotes), ["macro-depth"]);
}

#[test]
fn long_texts_take_linear_time() {
    // Each of these was quadratic in some design of the scanner or parser; the suite would hang.
    for piece in
        ["\\\"\n", "/*", "a < ", "f(a < b, ", "a<bit<(", "x y ", "#if 1\n", "#else\n", "@a ", "}", "{#}", ">>=", "é"]
    {
        let text = piece.repeat((1 << 18) / piece.len());
        assert!(!codes(text.clone()).is_empty(), "{piece:?}");
        codes(format!("action a() {{ {text}"));
    }
}

#[test]
fn conditions_are_limited() {
    let deep = format!("#if {}1\n#endif\n", "(".repeat(100_000));
    assert_eq!(codes(deep), ["bad-condition"]);
    assert_eq!(codes(format!("#if {}1\n#endif\n", "!".repeat(100_000))), [""; 0]);
    assert_eq!(
        codes("#if 1 << 1000 || 1 / 0 || 99999999999999999999999999999999999999999999\n#endif".to_owned()),
        ["bad-condition"]
    );
    assert_eq!(codes("#if 0 && 1 / 0\n#endif".to_owned()), [""; 0]);
}
