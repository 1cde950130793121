//! Parses the lines that users write. The parser does not resolve names.

use diagnostics::{Diagnostic, Diagnostics, FileId, Span};

/// A token of the text, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text of the token.
    pub text: String,
    /// The position of the token.
    pub span: Span,
}

/// An action with arguments, by name or in order.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name of the action.
    pub name: Word,
    /// Arguments, with the names of their parameters where they are given.
    pub arguments: Vec<Setting>,
}

/// An attribute with its value: `weight 3`.
pub type Note = (Word, Word);

/// `key=value ... -> action(parameter=value, ...)`
#[derive(Clone, Debug, Default)]
pub struct EntryText {
    /// The word `default`, for a table's default action.
    pub default: Option<Span>,
    /// Fields and options with their values.
    pub settings: Vec<(Word, Word)>,
    /// The actions. One of several, separated by `|`, is chosen by a hash.
    pub choices: Vec<(Call, Vec<Note>)>,
}

/// `ID -> ITEM NOTE VALUE, ITEM, KEY=VALUE`: a group of members, or a session with its ports.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The number of the group or session.
    pub id: Word,
    /// Its members or ports.
    pub items: Vec<(Word, Vec<Note>)>,
    /// Options.
    pub settings: Vec<(Word, Word)>,
}

/// A part of an action profile.
#[derive(Clone, Debug)]
pub enum ProfileItem {
    /// `member ID -> action(...)`
    Member {
        /// The number of the member.
        id: Word,
        /// Its action.
        call: Option<Call>,
    },
    /// `group ID -> MEMBER weight N watch PORT, ..., max_size=N`
    Group(Listing),
}

/// Maximum length of an entry, in bytes.
pub const MAX_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// One of `=,()|`, or `>` for an arrow.
    Sign(char),
}

/// Parses an entry. Reports diagnostics for mistakes.
pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<EntryText> {
    const FORM: &str = "the syntax is KEY=VALUE ... -> ACTION(PARAMETER=VALUE, ...)";
    read(file, text, FORM, diagnostics, Parser::entry)
}

/// Parses a group or a session. Reports diagnostics for mistakes.
pub fn parse_listing(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Listing> {
    const FORM: &str = "the syntax is ID -> PORT, PORT, ...";
    read(file, text, FORM, diagnostics, Parser::listing)
}

/// Parses a member or a group of an action profile. Reports diagnostics for mistakes.
pub fn parse_profile_item(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<ProfileItem> {
    const FORM: &str = "the syntax is member ID -> ACTION(...), or group ID -> MEMBER, MEMBER, ...";
    read(file, text, FORM, diagnostics, Parser::profile_item)
}

/// A value, with its name where it is given.
pub type Setting = (Option<Word>, Word);

/// Parses values, with names (`NAME=VALUE NAME=VALUE ...`) or without. Reports diagnostics for mistakes.
pub fn parse_settings(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Vec<Setting>> {
    const FORM: &str = "the syntax is NAME=VALUE NAME=VALUE ..., or a single value";
    read(file, text, FORM, diagnostics, Parser::settings)
}

/// A member of a value set: the keys, with their names where they are given.
pub type Alternative = Vec<Setting>;

/// Parses the members of a value set, with names (`KEY=VALUE, ... | KEY=VALUE, ...`) or without. Reports diagnostics
/// for mistakes.
pub fn parse_alternatives(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Vec<Alternative>> {
    const FORM: &str = "the syntax is KEY=VALUE, ... | KEY=VALUE, ...";
    read(file, text, FORM, diagnostics, Parser::alternatives)
}

fn read<T>(
    file: FileId,
    text: &str,
    form: &'static str,
    diagnostics: &mut Diagnostics,
    read: impl FnOnce(&mut Parser) -> Result<T, Box<Diagnostic>>,
) -> Option<T> {
    if text.len() > MAX_BYTES {
        let message = format!("an entry has at most {MAX_BYTES} bytes");
        diagnostics.push(Diagnostic::error("entry-too-long", Span::new(file, 0, 0), message));
        return None;
    }
    let end = Span::new(file, text.len() as u32, text.len() as u32);
    let mut parser = Parser { tokens: tokens(file, text), at: 0, end, form };
    match read(&mut parser) {
        Ok(read) => Some(read),
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
            '=' | ',' | '(' | ')' | '|' => tokens.push((Token::Sign(letter), span(start, start + 1))),
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
                    .next_if(|(at, letter)| !(letter.is_whitespace() || "=,()|\"".contains(*letter) || is_arrow(*at)))
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
    let several = Diagnostic::error("entry-syntax", second.span, "an entry has one action");
    Box::new(several.help("only entries of tables with an action selector take several: ACTION(...) | ACTION(...)"))
}

struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    /// Position after the last character.
    end: Span,
    /// The expected syntax, for diagnostics.
    form: &'static str,
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
        Box::new(diagnostic.help(self.form))
    }

    fn entry(&mut self) -> Result<EntryText, Box<Diagnostic>> {
        let mut entry = EntryText::default();
        loop {
            while self.take(',') {}
            if self.at == self.tokens.len() {
                return Ok(entry);
            }
            if self.take('>') {
                let is_first = entry.choices.is_empty();
                let name = self.word("an action")?;
                if !is_first {
                    return Err(two_actions(&name));
                }
                entry.choices = self.choices(name)?;
                continue;
            }
            let name = self.word("a key field or an action")?;
            if self.take('=') {
                let value = self.word("a value")?;
                entry.settings.push((name, value));
            } else if name.text == "default" && !self.is_next(0, '(') {
                entry.default = Some(name.span);
            } else if entry.choices.is_empty() {
                entry.choices = self.choices(name)?;
            } else {
                return Err(two_actions(&name));
            }
        }
    }

    /// Parses actions separated by bars.
    fn choices(&mut self, first: Word) -> Result<Vec<(Call, Vec<Note>)>, Box<Diagnostic>> {
        let mut choices = Vec::new();
        let mut name = first;
        loop {
            let call = self.call(name)?;
            choices.push((call, self.notes(&["weight", "watch"])?));
            if !self.take('|') {
                return Ok(choices);
            }
            name = self.word("an action")?;
        }
    }

    /// Parses attributes, each with a value.
    fn notes(&mut self, words: &[&str]) -> Result<Vec<Note>, Box<Diagnostic>> {
        let mut notes = Vec::new();
        while let Some((Token::Word(text), _)) = self.tokens.get(self.at)
            && words.contains(&&**text)
            && !self.is_next(1, '=')
        {
            let name = self.word("a note")?;
            notes.push((name, self.word("a number")?));
        }
        Ok(notes)
    }

    fn listing(&mut self) -> Result<Listing, Box<Diagnostic>> {
        let id = self.word("a number")?;
        let mut listing = Listing { id, items: Vec::new(), settings: Vec::new() };
        let has_arrow = self.take('>');
        loop {
            while self.take(',') {}
            if self.at == self.tokens.len() {
                return Ok(listing);
            }
            let word = self.word("a number")?;
            if self.take('=') {
                let value = self.word("a value")?;
                listing.settings.push((word, value));
            } else if has_arrow {
                let notes = self.notes(&["weight", "watch", "instance", "backup"])?;
                listing.items.push((word, notes));
            } else {
                self.at -= 1;
                return Err(self.unexpected("`->`"));
            }
        }
    }

    fn profile_item(&mut self) -> Result<ProfileItem, Box<Diagnostic>> {
        let kind = self.word("`member` or `group`")?;
        match &*kind.text {
            "member" => {
                let id = self.word("a number")?;
                let call = if self.take('>') {
                    let name = self.word("an action")?;
                    Some(self.call(name)?)
                } else {
                    None
                };
                if self.at == self.tokens.len() {
                    Ok(ProfileItem::Member { id, call })
                } else {
                    Err(self.unexpected("`->` and an action, or the end"))
                }
            }
            "group" => self.listing().map(ProfileItem::Group),
            _ => {
                self.at -= 1;
                Err(self.unexpected("`member` or `group`"))
            }
        }
    }

    fn alternatives(&mut self) -> Result<Vec<Alternative>, Box<Diagnostic>> {
        let mut all = vec![Vec::new()];
        while self.at < self.tokens.len() {
            if self.take('|') {
                all.push(Vec::new());
            } else if !self.take(',') {
                let setting = self.setting("a value")?;
                all.last_mut().expect("there is one from the start").push(setting);
            }
        }
        Ok(all)
    }

    fn settings(&mut self) -> Result<Vec<Setting>, Box<Diagnostic>> {
        let mut all = Vec::new();
        while self.at < self.tokens.len() {
            if !self.take(',') {
                all.push(self.setting("a value")?);
            }
        }
        Ok(all)
    }

    fn setting(&mut self, what: &str) -> Result<Setting, Box<Diagnostic>> {
        let first = self.word(what)?;
        Ok(if self.take('=') { (Some(first), self.word("a value")?) } else { (None, first) })
    }

    fn call(&mut self, name: Word) -> Result<Call, Box<Diagnostic>> {
        let mut arguments = Vec::new();
        if self.take('(') {
            while !self.take(')') {
                arguments.push(self.setting("an argument or `)`")?);
                if !self.take(',') && !self.is_next(0, ')') {
                    return Err(self.unexpected("`,` or `)`"));
                }
            }
        }
        Ok(Call { name, arguments })
    }
}
