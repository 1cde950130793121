//! The preprocessor: text in, tokens out.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use diagnostics::{Diagnostics, SourceMap};
use p4::lex::TokenKind;
use p4::{Loader, PreprocessorOptions};

#[derive(Default)]
struct Files(HashMap<&'static str, &'static str>);

impl Loader for Files {
    fn load(&self, path: &Path) -> io::Result<String> {
        let text = path.to_str().and_then(|path| self.0.get(path));
        text.map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Returns the tokens of `text`, joined by spaces, followed by `!` and the codes of the diagnostics.
fn run_with(text: &str, files: &[(&'static str, &'static str)], options: &PreprocessorOptions) -> String {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let files = Files(files.iter().copied().collect());
    let tokens = p4::tokenize(&mut map, "dir/main.p4", text, options, &files, &mut diagnostics);
    assert_eq!(tokens.last().map(|token| &token.kind), Some(&TokenKind::End));
    let mut out: Vec<String> = tokens[..tokens.len() - 1].iter().map(ToString::to_string).collect();
    out.extend(diagnostics.iter().map(|diagnostic| format!("!{}", diagnostic.code)));
    out.join(" ")
}

fn run(text: &str) -> String {
    run_with(text, &[], &PreprocessorOptions::default())
}

#[test]
fn objects_and_functions() {
    assert_eq!(run("#define A 1 + B\n#define B 2\nA; #A"), "1 + 2 ; # 1 + 2");
    assert_eq!(run("#define F(x, y) x - y\nF(1, (2, 3)) F (4,) F"), "1 - ( 2 , 3 ) 4 - F");
    assert_eq!(run("#define F() 7\nF() F\n()"), "7 7");
    assert_eq!(run("#define F(x) x\nF(\n1\n+ 2)"), "1 + 2");
    assert_eq!(run("#define F (x)\nF(1)"), "( x ) ( 1 )");
    assert_eq!(run("#define A 1\n#undef A\nA"), "A");
    assert_eq!(run("#define F(x, ...) g(x, __VA_ARGS__)\nF(1, 2, 3) F(1)"), "g ( 1 , 2 , 3 ) g ( 1 , )");
}

#[test]
fn expansion_ends() {
    assert_eq!(run("#define a b\n#define b a c\na"), "a c");
    assert_eq!(run("#define f(x) x f\nf(1)(2)"), "1 f ( 2 )");
    assert_eq!(run("#define f(x) f(x + 1)\nf(f(1))"), "f ( f ( 1 + 1 ) + 1 )");
    // The example of the C standard (6.10.3.5).
    let standard = "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n\
                    #define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n\
                    f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);";
    assert_eq!(
        run(standard),
        "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 ) ;"
    );
}

#[test]
fn strings_and_pasting() {
    assert_eq!(run("#define S(x) #x\nS( a  +b \"q\\\\\" 0x1F )"), r#""a +b \"q\\\\\" 0x1F""#);
    assert_eq!(run("#define P(a, b) a##b\nP(x, y) P(x,) P(, y) P(8w, 5) P(<, <)"), "xy x y 8w5 <<");
    assert_eq!(run("#define L(w, v) 1##w##w##v 16w ## v\nL(6, 5)"), "1665 16w5");
    assert_eq!(run("#define L(n, v) n##w##v n##w\nL(6, 5)"), "6w5 6w0 !bad-literal");
    assert_eq!(run("#define P(a, b) [a ## b]\nP(,)"), "[ ]");
    assert_eq!(run("#define A 1\n#define P(a) a##a a\nP(A)"), "AA 1");
    assert_eq!(run("#define P(a, b) a##b\nP(+, *)"), "+ * !bad-paste");
    assert_eq!(run("#define X he ## llo\nX"), "hello");
}

#[test]
fn conditionals() {
    assert_eq!(run("#if 1\na\n#else\nb\n#endif"), "a");
    assert_eq!(run("#if 0\na\n#elif 2 > 1\nb\n#elif 1\nc\n#else\nd\n#endif e"), "b !extra-tokens");
    assert_eq!(run("#ifdef X\na\n#endif\n#ifndef X\nb\n#endif"), "b");
    assert_eq!(run("#define X\n#ifdef X\n#if defined(X) && defined X && !defined Y\na\n#endif\n#endif"), "a");
    assert_eq!(run("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif"), "c");
    assert_eq!(run("#if 0\ndon't \"stop\n#unknown\n é 0x\n/* #endif */\n#endif\na"), "a");
    assert_eq!(run("#define V 20200408\n#if V >= 20200408 && (V % 10 == 8) ? 1 : 0\na\n#endif"), "a");
    assert_eq!(run("#define F(x) x\n#if F(3) << 2 == 12 && ~0 == -1 && (7 & 3 | 8 ^ 1) == 11\na\n#endif"), "a");
    assert_eq!(run("#if NOTHING\na\n#endif"), "");
    assert_eq!(run("#if\n#endif"), "!bad-condition");
    assert_eq!(run("#if 1 +\n#endif"), "!bad-condition");
    assert_eq!(run("#if (1\n#endif"), "!bad-condition");
    assert_eq!(run("#if 1 2\n#endif"), "!bad-condition");
    assert_eq!(run("#if 1\na"), "a !unterminated-conditional");
    assert_eq!(run("#else\n#endif\n#elif 1"), "!stray-directive !stray-directive !stray-directive");
    assert_eq!(run("#if 1\n#else\n#else\n#endif"), "!stray-directive");
}

#[test]
fn directives_in_arguments_are_obeyed() {
    assert_eq!(run("#define F(x) <x>\nF(\n#if 0\na\n#else\nb\n#endif\n)"), "< b >");
}

#[test]
fn directives_in_strings_of_several_lines_are_obeyed() {
    let chosen = "@r(\"\n a;\n#ifdef X\n b;\n # else // no\n c;\n#endif\n d\") e";
    assert_eq!(run(chosen), "@ r ( \"\n a;\n\n\n\n c;\n\n d\" ) e");
    assert_eq!(run(&format!("#define X\n{chosen}")), "@ r ( \"\n a;\n\n b;\n\n\n\n d\" ) e");
    // Branches may close the string, open it, and nest.
    assert_eq!(run("\"a\n#if 0\nb\") x\n#else\nc\") y\n#endif\nz"), "\"a\n\n\n\nc\" ) y z");
    assert_eq!(run("\"a\n#if 1\nb\") x\n#else\nc\") y\n#endif\nz"), "\"a\n\nb\" ) x z");
    assert_eq!(run("#if 1\n\"a\n#else\n\"b\n#endif\nc\" d"), "\"a\n\n\n\nc\" d");
    assert_eq!(run("\"\n#if 0\n#if 1\na\n#else\nb\n#endif\n#elif 1\nc\n#endif\n\" d"), "\"\n\n\n\n\n\n\n\nc\n\n\" d");
    assert_eq!(run("\"\n#define A 1\n\" A\n\"\n#undef A\n\" A"), "\"\n\n\" 1 \"\n\n\" A");
    let files = [("dir/part", "b\n")];
    assert_eq!(run_with("\"a\n#include \"part\"\nc\" d", &files, &PreprocessorOptions::default()), "\"a\n\nb\nc\" d");
}

#[test]
fn other_lines_of_strings_that_begin_with_a_sharp_are_text() {
    for text in ["\"a # if\"", "\"#if 1\"", "\"a\n# 1 b\n#iffy\n# \n##if\nc\"", "\"a\nb #if 0\nc\""] {
        assert_eq!(run(text), text);
    }
    assert_eq!(run("// \"\n#if 0\n\"\n#endif\n/* \"\n#if 1\n*/ a"), "a");
}

#[test]
fn macros_are_replaced_in_the_later_lines_of_a_string() {
    let defined = "#define K 0x0800\n#define F(x, y) x + y\n#define S \"q\"\n";
    let run = |text: &str| run(&format!("{defined}{text}"));
    assert_eq!(run("\"K F(1, 2)\""), "\"K F(1, 2)\"");
    assert_eq!(run("\"K\n a == K; KK _K 0K K\n b::K\""), "\"K\n a == 0x0800; KK _K 0K 0x0800\n b::0x0800\"");
    assert_eq!(run("\"\nF( (1, K), 2) F (K, 3) F(4\n, F\""), "\"\n(1, 0x0800) + 2 0x0800 + 3 F(4\n, F\"");
    assert_eq!(run("\"\nS \\K \\\"K\""), "\"\n\\\"q\\\" \\\\K \\\"0x0800\"");
    // Not in comments and in single quotes.
    assert_eq!(run("\"\nK // K\n/* K */ K 'K' it's K\n\""), "\"\n0x0800 // K\n/* K */ 0x0800 'K' it's K\n\"");
    assert_eq!(run("\"\nF(1) x\""), "\"\nF x\" !macro-arguments");
}

#[test]
fn a_string_that_no_active_line_closes_is_unterminated() {
    assert_eq!(run("a \"b\n#if 0\nc\" d\n#endif\n"), "a \"b\n\n\n\n\" !unterminated-string");
    assert_eq!(run("\"b\n#if 0\nc\""), "\"b\n\n\n\" !unterminated-string !unterminated-conditional");
    // As before: the quote that is missing is that of the first line.
    assert_eq!(run("a \"b\n#if 1\n\"c\"\n#endif\nd"), "a \"b\" \"c\" d !unterminated-string");
}

#[test]
fn lines_are_continued() {
    assert_eq!(run("#define A a \\\n b\\\n  c\nA"), "a b c");
    assert_eq!(run("// comment \\\n still\na\\\nb"), "ab");
}

#[test]
fn includes() {
    let files = [
        ("dir/near.p4", "near"),
        ("lib/near.p4", "far"),
        ("lib/sub/a.p4", "#include \"b.p4\"\n"),
        ("lib/sub/b.p4", "b\n"),
        ("lib/guarded.p4", "#ifndef G\n#define G\ng\n#endif\n"),
        ("lib/once.p4", "#pragma once\no\n"),
    ];
    let options = PreprocessorOptions { include_dirs: vec![PathBuf::from("lib")], ..PreprocessorOptions::default() };
    let run = |text| run_with(text, &files, &options);
    assert_eq!(run("#include \"near.p4\"\n#include <near.p4>\nx"), "near far x");
    assert_eq!(run("#include <sub/a.p4>"), "b");
    assert_eq!(run("#include <guarded.p4>\n#include <guarded.p4>"), "g");
    assert_eq!(run("#include <once.p4>\n#include <once.p4>"), "o");
    assert_eq!(run("#define N <near.p4>\n#define M \"near.p4\"\n#include N\n#include M"), "far near");
    assert_eq!(run("#include <none.p4>\nx"), "x !include-not-found");
    assert_eq!(run("#include\nx"), "x !bad-directive");
    assert!(run("#include <core.p4>\n#include <core.p4>").starts_with("error { NoError ,"));
}

#[test]
fn shipped_files_give_way_to_those_of_the_user() {
    let mut options = PreprocessorOptions {
        builtin: vec![("arch.p4", "#include <core.p4>\nshipped")],
        ..PreprocessorOptions::default()
    };
    assert!(run_with("#include <arch.p4>", &[], &options).ends_with("shipped"));
    options.include_dirs = vec![PathBuf::from("lib")];
    let files = [("lib/arch.p4", "own"), ("lib/core.p4", "core")];
    assert_eq!(run_with("#include \"arch.p4\"\n#include <core.p4>", &files, &options), "own core");
}

#[test]
fn definitions_from_the_command_line() {
    let define = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let options = PreprocessorOptions {
        defines: vec![define("A", "1"), define("F(x)", "x x"), define("E", "")],
        ..PreprocessorOptions::default()
    };
    assert_eq!(run_with("A F(2) E B", &[], &options), "1 2 2 B");
    assert_eq!(run("__TRIPLANE__ __P4_16__"), "1 1");
}

#[test]
fn macro_mistakes() {
    assert_eq!(run("#define F(x) x\nF(1, 2) F("), "F F !macro-arguments !macro-arguments");
    assert_eq!(run("#define A 1\n#define A 2\n#define A 2\nA"), "2 !macro-redefined");
    for bad in [
        "#define",
        "#define 1",
        "#define F(",
        "#define F(x",
        "#define F(x,x)",
        "#define F(1)",
        "#define F(x) #y",
        "#define A ## b",
        "#define A b ##",
        "#define defined",
        "#undef",
        "#line x",
    ] {
        let found = run(bad);
        assert!(found == "!bad-directive", "{bad}: {found}");
    }
    assert_eq!(run("#frob\n# /"), "!unknown-directive !unknown-directive");
    assert_eq!(
        run("#error \"no\"\n#warning don't\n#pragma pack\nx"),
        "x !error-directive !warning-directive !ignored-pragma"
    );
}

#[test]
fn pragmas_become_annotations() {
    assert_eq!(run("@pragma name \"x\" /* y */\nb"), "@ name ( \"x\" ) b");
    assert_eq!(run("@pragma flag\nb"), "@ flag b");
    assert_eq!(run("#define N 3\n@pragma size N (1)\nb"), "@ size ( 3 ( 1 ) ) b");
    assert_eq!(run("@pragma x )(\n@pragma\nb"), "b !bad-pragma !bad-pragma");
    assert_eq!(run("@pragmatic(1)"), "@ pragmatic ( 1 )");
}

#[test]
fn lines_and_files() {
    assert_eq!(run("__LINE__ __FILE__\n\n__LINE__"), r#"1 "dir/main.p4" 3"#);
    assert_eq!(
        run("# 40 \"orig.p4\" 1 3\n__LINE__ __FILE__\n#line 7\n__LINE__ __FILE__"),
        r#"40 "orig.p4" 7 "orig.p4""#
    );
}

#[test]
fn tokens_of_a_macro_stand_where_it_is_used() {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = "#define F(x) (x + 1)\na = F(bc);";
    let tokens =
        p4::tokenize(&mut map, "m.p4", text, &PreprocessorOptions::default(), &Files::default(), &mut diagnostics);
    let texts: Vec<_> = tokens.iter().map(|token| map.text(token.span)).collect();
    assert_eq!(texts, ["a", "=", "F(bc)", "bc", "F(bc)", "F(bc)", "F(bc)", ";", ""]);
}

#[test]
fn flaws_are_reported_once_and_only_where_they_count() {
    assert_eq!(run("0x \"abc\nx"), "0 \"abc\" x !bad-literal !unterminated-string");
    assert_eq!(run("a /* b"), "a !unterminated-comment");
    assert_eq!(run("#define A 0b2\nA A"), "0 0 !bad-literal");
}
