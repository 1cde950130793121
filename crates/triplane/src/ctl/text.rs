//! An entry as people write it, cut into its parts. Names mean nothing here yet.

use source::{Diagnostic, Diagnostics, FileId, Span};

/// A stretch of the text, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it says.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// An action with arguments, by name or in order.
#[derive(Clone, Debug)]
pub struct Call {
    /// The action.
    pub name: Word,
    /// The parameter, if it is named, and the argument.
    pub arguments: Vec<(Option<Word>, Word)>,
}

/// `key=value ... -> action(parameter=value, ...)`
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The word `default`, for a table's default action.
    pub default: Option<Span>,
    /// Fields and options, with what they are to be.
    pub settings: Vec<(Word, Word)>,
    /// What is done.
    pub call: Option<Call>,
}

/// The longest entry that is read, in bytes.
pub const MAX_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// One of `=,()`, or `>` for an arrow.
    Sign(char),
}

/// Cuts up a text; mistakes are told.
pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Entry> {
    if text.len() > MAX_BYTES {
        let message = format!("an entry has at most {MAX_BYTES} bytes");
        diagnostics.push(Diagnostic::error("entry-too-long", Span::new(file, 0, 0), message));
        return None;
    }
    let mut parser =
        Parser { tokens: tokens(file, text), at: 0, end: Span::new(file, text.len() as u32, text.len() as u32) };
    match parser.entry() {
        Ok(entry) => Some(entry),
        Err(diagnostic) => {
            diagnostics.push(*diagnostic);
            None
        }
    }
}

fn tokens(file: FileId, text: &str) -> Vec<(Token, Span)> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    let span = |start: usize, end: usize| Span::new(file, start as u32, end as u32);
    while let Some((start, letter)) = rest.next() {
        let is_arrow = |at: usize| text[at..].starts_with("->");
        match letter {
            letter if letter.is_whitespace() => {}
            '=' | ',' | '(' | ')' => tokens.push((Token::Sign(letter), span(start, start + 1))),
            '-' if is_arrow(start) => {
                rest.next();
                tokens.push((Token::Sign('>'), span(start, start + 2)));
            }
            '"' => {
                let mut word = String::new();
                let mut end = text.len();
                for (at, letter) in rest.by_ref() {
                    if letter == '"' {
                        end = at + 1;
                        break;
                    }
                    word.push(letter);
                }
                tokens.push((Token::Word(word), span(start, end)));
            }
            _ => {
                let mut end = start + letter.len_utf8();
                while let Some((at, letter)) = rest
                    .next_if(|(at, letter)| !(letter.is_whitespace() || "=,()\"".contains(*letter) || is_arrow(*at)))
                {
                    end = at + letter.len_utf8();
                }
                tokens.push((Token::Word(text[start..end].to_owned()), span(start, end)));
            }
        }
    }
    tokens
}

fn two_actions(second: &Word) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("entry-syntax", second.span, "an entry has one action"))
}

struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    /// Behind the last letter.
    end: Span,
}

impl Parser {
    fn take(&mut self, sign: char) -> bool {
        let is_next = self.is_next(0, sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn is_next(&self, ahead: usize, sign: char) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|(token, _)| *token == Token::Sign(sign))
    }

    fn word(&mut self, what: &str) -> Result<Word, Box<Diagnostic>> {
        match self.tokens.get(self.at) {
            Some((Token::Word(text), span)) => {
                self.at += 1;
                Ok(Word { text: text.clone(), span: *span })
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn unexpected(&self, what: &str) -> Box<Diagnostic> {
        let span = self.tokens.get(self.at).map_or(self.end, |(_, span)| *span);
        let diagnostic = Diagnostic::error("entry-syntax", span, format!("expected {what} here"));
        Box::new(diagnostic.help("an entry is KEY=VALUE ... -> ACTION(PARAMETER=VALUE, ...)"))
    }

    fn entry(&mut self) -> Result<Entry, Box<Diagnostic>> {
        let mut entry = Entry::default();
        loop {
            while self.take(',') {}
            if self.at == self.tokens.len() {
                return Ok(entry);
            }
            if self.take('>') {
                let is_first = entry.call.is_none();
                let name = self.word("an action")?;
                if !is_first {
                    return Err(two_actions(&name));
                }
                entry.call = Some(self.call(name)?);
                continue;
            }
            let name = self.word("a key field or an action")?;
            if self.take('=') {
                let value = self.word("a value")?;
                entry.settings.push((name, value));
            } else if name.text == "default" && !self.is_next(0, '(') {
                entry.default = Some(name.span);
            } else if entry.call.is_none() {
                entry.call = Some(self.call(name)?);
            } else {
                return Err(two_actions(&name));
            }
        }
    }

    fn call(&mut self, name: Word) -> Result<Call, Box<Diagnostic>> {
        let mut arguments = Vec::new();
        if self.take('(') {
            while !self.take(')') {
                let first = self.word("an argument or `)`")?;
                let argument = match self.take('=') {
                    true => (Some(first), self.word("a value")?),
                    false => (None, first),
                };
                arguments.push(argument);
                if !self.take(',') && !self.is_next(0, ')') {
                    return Err(self.unexpected("`,` or `)`"));
                }
            }
        }
        Ok(Call { name, arguments })
    }
}
