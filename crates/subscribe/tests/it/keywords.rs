//! The keyword list is complete and contains only words that the parser compares with.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use diagnostics::{Diagnostics, SourceMap};
use subscribe::{
    ActionDeclaration, Counter, FieldDeclaration, Function, Match, MessageFormat, NoIncludes, Parameter, Rule,
    RuleAction, SIGN_WORDS, ValueKind, WORDS, parse,
};

/// Collects the quoted words of a source file, which include every word that the parser compares with.
fn quoted(text: &str, words: &mut BTreeSet<String>) {
    let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    for line in code {
        let is_word =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        words.extend(line.split('"').skip(1).step_by(2).filter(is_word).map(str::to_owned));
    }
}

fn words_of_the_parser() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/syntax/parse");
    let mut words: BTreeSet<String> = SIGN_WORDS.iter().map(|word| word.to_string()).collect();
    words.extend(Function::ALL.iter().map(|(name, _)| name.to_string()));
    for file in fs::read_dir(folder).expect("the parser's sources") {
        quoted(&fs::read_to_string(file.expect("a file").path()).expect("text"), &mut words);
    }
    words
}

/// Parses rules over a counter and an action with this name.
fn rules(name: &str, text: &str) -> Vec<Rule> {
    let mut format = MessageFormat::new();
    format
        .field(FieldDeclaration {
            name: "x".to_owned(),
            width: 8,
            kind: ValueKind::Unsigned,
            matching: Match::Any,
            header: None,
        })
        .expect("new");
    format.counter(Counter { name: name.to_owned(), width: 64, window: None }).expect("new");
    let parameters = vec![Parameter { name: "value".to_owned(), width: 8 }];
    if format.action(ActionDeclaration { name: name.to_owned(), parameters }).is_err() {
        return Vec::new();
    }
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "rules", text, &format, &mut NoIncludes, &mut diagnostics);
    if diagnostics.is_empty() { rules } else { Vec::new() }
}

/// Whether rules can use a counter and call an action with this name in all positions.
fn can_be_called(name: &str) -> bool {
    let tests = [
        format!("{name} > 1 : fwd(1)"),
        format!("1 < {name} : fwd(1)"),
        format!("x == 2 or not {name} in 1..2 : fwd(1)"),
        format!("rule {name}: {name} > 1 : fwd(1)"),
        format!("x == 1 : fwd(1); {name} <- 1"),
        format!("x == 1 : {name} <- {name} + 1"),
        format!("x == 1 : {name} += x; fwd(1)"),
    ];
    let calls = [format!("x == 1 : {name}(3)"), format!("x == 1 : fwd(1); {name}(3)")];
    let is_call = |rule: &Rule| rule.actions.iter().any(|action| matches!(action, RuleAction::Call(..)));
    tests.iter().all(|text| rules(name, text).len() == 1)
        && calls.iter().all(|text| matches!(&rules(name, text)[..], [rule] if is_call(rule)))
        && rules(name, &format!("x == 1 : fwd(1) {name} > 1 : fwd(2)")).len() == 2
}

#[test]
fn words_are_the_parsers() {
    let known = words_of_the_parser();
    assert!(known.len() > WORDS.len(), "{known:?}");
    let not_asked_for: Vec<_> = WORDS.iter().filter(|word| !known.contains(**word)).collect();
    assert!(not_asked_for.is_empty(), "the parser asks for none of {not_asked_for:?}");
    let is_missing = |word: &&String| !WORDS.contains(&word.as_str()) && !can_be_called(word);
    let missing: Vec<_> = known.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "these mean something in rules, and WORDS has them not: {missing:?}");
    assert!(can_be_called("volume"));
    for word in ["and", "or", "not", "in", "true", "false", "valid", "fwd", "drop", "to_controller", "count", "min"] {
        assert!(!can_be_called(word), "`{word}` can be called");
    }
}
