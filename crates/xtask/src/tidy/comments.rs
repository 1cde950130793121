//! Checks of comments and of Markdown: width, banned words, openers; and the length of source files.

use super::{Counters, Finding, MAX_COLUMNS, MAX_LINES};

/// Words that stand for a sentence that has to be rewritten, with a remedy. They match whole words in any case.
const BANNED: &[(&str, &str)] = &[
    ("told", "use `report`, `notify`, `send` or `return`"),
    ("tells", "use `reports`, `shows`, `says which` or `returns`"),
    ("is told", "use `receives`"),
    ("so many", "give the number or `count`"),
    ("otherwise than", "use `unlike`"),
    ("of which", "use two sentences"),
    ("whoever", "name the client, user or caller"),
    ("whatever else", "be specific"),
    ("patience", "it is a timeout"),
];

/// Words that a doc comment must not begin with.
const QUESTION_WORDS: &[&str] =
    &["What", "How", "Who", "Whose", "Where", "Which", "Why", "Whoever", "Whatever", "Whether"];

/// Checks the comments of a Rust file and its length, and counts its doc comments.
pub fn check_rust(file: &str, text: &str, findings: &mut Vec<Finding>) -> Counters {
    let mut counters = Counters::default();
    let mut in_doc_comment = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let trimmed = line.trim_start();
        let doc = trimmed.strip_prefix("///").or_else(|| trimmed.strip_prefix("//!"));
        if let Some(doc) = doc.filter(|_| !in_doc_comment).map(str::trim) {
            counters.doc_comments += 1;
            if is_question(doc) {
                counters.question_openers += 1;
            }
        }
        in_doc_comment = doc.is_some();
        if !trimmed.starts_with("//") {
            continue;
        }
        let is_figure = trimmed.contains("http") || trimmed.contains('│') || trimmed.contains('|');
        if line.chars().count() > MAX_COLUMNS && !is_figure {
            findings.push(Finding::new(file, number, format!("a comment of more than {MAX_COLUMNS} columns")));
        }
        check_words(file, number, trimmed, findings);
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        let message = format!("{lines} lines; the maximum is {MAX_LINES}: split it by meaning");
        findings.push(Finding::new(file, 0, message));
    }
    counters
}

/// Checks a Markdown file.
pub fn check_markdown(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let may_be_long = line.trim_start().starts_with('|') || line.contains("](");
        if line.chars().count() > MAX_COLUMNS && !may_be_long {
            findings.push(Finding::new(file, index + 1, format!("a line of more than {MAX_COLUMNS} columns")));
        }
        check_words(file, index + 1, line, &mut findings);
    }
    findings
}

/// Whether a doc comment begins with a question word. "Whether" is right for a bool and is not counted.
fn is_question(doc: &str) -> bool {
    let first = doc.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    QUESTION_WORDS.contains(&first) && first != "Whether"
}

fn check_words(file: &str, line: usize, text: &str, findings: &mut Vec<Finding>) {
    // Quoted code and strings are examples, not sentences.
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
    for (word, remedy) in BANNED {
        if contains_word(&prose, word) {
            findings.push(Finding::new(file, line, format!("`{word}`: {remedy}")));
        }
    }
}

/// Whether `text` contains `word` between characters that are not letters.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word_character) && !after.is_some_and(is_word_character)
    })
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> (Counters, Vec<String>) {
        let mut findings = Vec::new();
        let counters = check_rust("a.rs", text, &mut findings);
        (counters, findings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_first_line_of_a_doc_comment_is_counted_once() {
        let (counters, findings) =
            rust("/// Returns the port.\n/// What is more.\nfn port() {}\n\n/// What a port is.\nfn other() {}\n");
        assert_eq!(counters, Counters { doc_comments: 2, question_openers: 1 });
        assert_eq!(findings, Vec::<String>::new());
    }

    #[test]
    fn whether_is_right_for_a_flag_and_whatever_is_not() {
        let (counters, _) = rust("/// Whether it is up.\n\n/// Whatever comes.\n\n/// Whatsoever\n");
        assert_eq!(counters, Counters { doc_comments: 3, question_openers: 1 });
    }

    #[test]
    fn banned_words_are_found_in_comments_and_not_in_code_or_other_words() {
        let (_, findings) = rust("// It is told so.\nlet told = \"told\"; \n// `told` untold\n/// So many of them\n");
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].starts_with("a.rs:1: `told`"), "{findings:?}");
        assert!(findings[1].starts_with("a.rs:1: `is told`"), "{findings:?}");
        assert!(findings[2].starts_with("a.rs:4: `so many`"), "{findings:?}");
    }

    #[test]
    fn long_comments_and_long_files_are_found_and_long_code_is_not() {
        let long = "x".repeat(MAX_COLUMNS);
        let (_, findings) = rust(&format!("// {long}\nlet a = \"{long}\";\n"));
        assert_eq!(findings, ["a.rs:1: a comment of more than 120 columns"]);
        let (_, findings) = rust(&"fn a() {}\n".repeat(MAX_LINES + 1));
        assert_eq!(findings, ["a.rs: 601 lines; the maximum is 600: split it by meaning"]);
    }

    #[test]
    fn markdown_tables_and_code_may_be_long() {
        let long = "x".repeat(MAX_COLUMNS + 1);
        let text = format!("{long}\n| {long} |\n```\n{long} told\n```\nIt is told.\n");
        let findings: Vec<String> = check_markdown("a.md", &text).iter().map(ToString::to_string).collect();
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].starts_with("a.md:1: a line of more"), "{findings:?}");
        assert!(findings[1].starts_with("a.md:6: `told`"), "{findings:?}");
    }
}
