//! Completes names from the running switch: `triplane ctl __complete`, which the scripts of `triplane completions`
//! call.
//!
//! It prints the candidates for the word under the cursor, one a line. It prints nothing if it has none, or if no
//! switch answers within 300 ms: the shell then completes from the grammar of the command line.

use std::time::Duration;

use clap::{CommandFactory, Parser};
use p4runtime_proto::config::{P4Info, Table};

use super::args::ServerArgs;
use super::names;
use crate::output::{Failure, Output};

/// Maximum time that a shell waits for a switch.
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(300);

/// The options that say where the switch is, without the rest of the command line.
#[derive(Parser)]
struct Probe {
    #[command(flatten)]
    server: ServerArgs,
}

/// A command line that the user is typing.
#[derive(Parser)]
pub struct CompleteArgs {
    /// The line up to the cursor, as the shell passes it.
    #[arg(long)]
    line: String,
}

/// Returns the request of a completion script, if this is one. It is not a subcommand, because help would list it.
pub fn asked() -> Option<CompleteArgs> {
    let mut words = std::env::args_os().skip(1);
    let is_asked = words.next()? == "ctl" && words.next()? == "__complete";
    is_asked.then(|| CompleteArgs::try_parse_from(std::iter::once("triplane".into()).chain(words)).ok())?
}

/// Prints the candidates.
pub fn run(args: &CompleteArgs, output: &Output) -> Result<(), Failure> {
    let words = split(&args.line);
    let Some(asked) = Asked::of(&words) else { return Ok(()) };
    let Ok(Probe { server }) = Probe::try_parse_from(&asked.options) else { return Ok(()) };
    let Ok(target) = server.server_options().target() else { return Ok(()) };
    let info = p4runtime_client::fetch_p4info(target, server.device_id, COMPLETION_TIMEOUT);
    let Some(info) = info else { return Ok(()) };
    output.print(&asked.candidates(&info).into_iter().map(|candidate| candidate + "\n").collect::<String>())
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The text without quotes.
    pub text: String,
    /// Whether the word has an open quote.
    pub is_quoted: bool,
}

/// Splits a line up to the cursor into words. The last word is the one under the cursor, and may be empty.
pub fn split(line: &str) -> Vec<Typed> {
    let mut words = vec![Typed { text: String::new(), is_quoted: false }];
    let (mut quote, mut is_begun) = (None, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = words.last_mut().expect("there is one from the start");
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => last.text.extend(letters.next()),
            ('\'' | '"', None) => quote = Some(letter),
            (letter, None) if letter.is_whitespace() => {
                if is_begun {
                    words.push(Typed { text: String::new(), is_quoted: false });
                    is_begun = false;
                }
                continue;
            }
            (letter, _) => last.text.push(letter),
        }
        is_begun = true;
    }
    words.last_mut().expect("there is one from the start").is_quoted = quote.is_some();
    words
}

/// The word to complete, with its context.
#[derive(Debug)]
struct Asked<'a> {
    /// The command's name and the options that say where the switch is.
    options: Vec<String>,
    /// The subcommand of `ctl`.
    command: &'a str,
    /// The words between the subcommand and the word under the cursor.
    before: Vec<&'a str>,
    /// The word under the cursor.
    current: &'a Typed,
}

impl<'a> Asked<'a> {
    /// Parses the words. Returns `None` unless they are `triplane ctl SUBCOMMAND ...` and the last one is not an
    /// option.
    fn of(words: &'a [Typed]) -> Option<Asked<'a>> {
        let (current, words) = words.split_last()?;
        let command = Probe::command();
        let takes_value = |word: &str| {
            let mut all = command.get_arguments();
            let option = all.find(|arg| arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long)));
            option.map(|option| option.get_action().takes_values())
        };
        let mut options = vec!["ctl".to_owned()];
        let mut plain: Vec<&str> = Vec::new();
        let mut words = words.iter().map(|word| &*word.text).skip(1);
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or(word);
            match takes_value(name).filter(|_| word.starts_with("--")) {
                Some(is_followed) => {
                    options.push(word.to_owned());
                    if is_followed && !word.contains('=') {
                        // Without a value the cursor is at the value.
                        options.push(words.next()?.to_owned());
                    }
                }
                // `--color` is an option of every command.
                None if word == "--color" => drop(words.next()),
                None => plain.push(word),
            }
        }
        match &*plain {
            ["ctl", command, before @ ..] if !current.text.starts_with('-') || current.is_quoted => {
                Some(Asked { options, command, before: before.to_vec(), current })
            }
            _ => None,
        }
    }

    /// Returns the candidates for the word.
    fn candidates(&self, info: &P4Info) -> Vec<String> {
        let tables = || names::tables(info).into_iter().map(|(_, name)| name);
        let all: Vec<&str> = match (self.command, &*self.before) {
            ("insert" | "modify" | "delete", []) => {
                let profiles = info.action_profiles.iter().map(|it| names::name(&it.preamble));
                tables().chain(profiles).chain(["multicast", "clone"]).collect()
            }
            ("insert" | "modify" | "delete", [table, words @ ..]) => {
                let table = names::look("table", table, &names::tables(info));
                return table.map(|table| self.entry(info, table, words)).unwrap_or_default();
            }
            ("entries", []) => tables().collect(),
            ("profiles", []) => info.action_profiles.iter().map(|it| names::name(&it.preamble)).collect(),
            ("registers", []) => info.registers.iter().map(|it| names::name(&it.preamble)).collect(),
            ("value-sets", []) => info.value_sets.iter().map(|it| names::name(&it.preamble)).collect(),
            ("counters", []) => {
                let direct = info.direct_counters.iter().map(|it| names::name(&it.preamble));
                info.counters.iter().map(|it| names::name(&it.preamble)).chain(direct).collect()
            }
            ("meters", []) => {
                let direct = info.direct_meters.iter().map(|it| names::name(&it.preamble));
                info.meters.iter().map(|it| names::name(&it.preamble)).chain(direct).collect()
            }
            ("set", []) => {
                let direct = info.direct_counters.iter().map(|it| &it.preamble);
                let direct = direct.chain(info.direct_meters.iter().map(|it| &it.preamble)).map(names::name);
                let registers = info.registers.iter().map(|it| names::name(&it.preamble));
                let counters = info.counters.iter().map(|it| names::name(&it.preamble));
                let meters = info.meters.iter().map(|it| names::name(&it.preamble));
                let sets = info.value_sets.iter().map(|it| names::name(&it.preamble));
                registers.chain(counters).chain(meters).chain(sets).chain(direct).collect()
            }
            _ => Vec::new(),
        };
        fitting(&self.current.text, all.into_iter())
    }

    /// Returns the candidates for the next part of an entry.
    fn entry(&self, info: &P4Info, table: &Table, words: &[&str]) -> Vec<String> {
        let typed = &self.current.text;
        let start = typed.rfind([' ', ',', '(', '|']).map_or(0, |at| at + 1);
        let (done, token) = typed.split_at(start);
        let before = format!("{} {done}", words.join(" "));
        let with_start = |all: Vec<String>| all.into_iter().map(|token| format!("{done}{token}")).collect();
        if token.contains('=') {
            return Vec::new();
        }
        let actions = names::actions(info, table);
        if let Some((action, given)) = before.rsplit_once('(').filter(|(_, given)| !given.contains(')')) {
            let name = action.rsplit([' ', ',', '>', '|']).next().unwrap_or_default();
            let Ok(action) = names::look("action", name, &actions) else { return Vec::new() };
            let open = action.params.iter().filter(|param| !is_given(given, &param.name));
            let open: Vec<String> = open.map(|param| format!("{}=", param.name)).collect();
            return with_start(fitting(token, open.iter().map(|name| &**name)));
        }
        // A shell interprets brackets and arrows outside of quotes.
        let bracket = if self.current.is_quoted { "(" } else { "" };
        let all_actions: Vec<String> = actions.iter().map(|(_, name)| format!("{name}{bracket}")).collect();
        if before.contains("->") {
            return with_start(fitting(token, all_actions.iter().map(|name| &**name)));
        }
        let fields = table.match_fields.iter().filter(|field| !is_given(&before, &field.name));
        let mut all: Vec<String> = fields.map(|field| format!("{}=", field.name)).collect();
        let is_begun = before.contains('=') || before.contains("default");
        if names::needs_priority(table) && !is_given(&before, "priority") {
            all.push("priority=".to_owned());
        }
        all.extend((self.command == "modify" && !is_begun).then(|| "default".to_owned()));
        if self.command != "delete" && (is_begun || table.match_fields.is_empty()) {
            if self.current.is_quoted { all.push("-> ".to_owned()) } else { all.extend(all_actions) }
        }
        with_start(fitting(token, all.iter().map(|name| &**name)))
    }
}

/// Whether `name=` stands in `text`, in full or by an ending of the name.
fn is_given(text: &str, name: &str) -> bool {
    let words = text.split([' ', ',']).filter_map(|word| word.split_once('='));
    words.into_iter().any(|(given, _)| given == name || name.strip_suffix(given).is_some_and(|it| it.ends_with('.')))
}

/// Returns the names that begin with `typed`, or else the endings of names after a dot that do.
fn fitting<'n>(typed: &str, all: impl Iterator<Item = &'n str>) -> Vec<String> {
    let all: Vec<&str> = all.filter(|name| !name.is_empty()).collect();
    let mut found: Vec<String> =
        all.iter().filter(|name| name.starts_with(typed)).map(|name| (*name).to_owned()).collect();
    if found.is_empty() {
        let endings = all.iter().flat_map(|name| name.match_indices('.').map(|(at, _)| &name[at + 1..]));
        found = endings.filter(|ending| ending.starts_with(typed)).map(str::to_owned).collect();
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn lines_are_cut_as_shells_do() {
        assert_eq!(texts("triplane ctl ins"), ["triplane", "ctl", "ins"]);
        assert_eq!(texts("triplane  ctl "), ["triplane", "ctl", ""]);
        assert_eq!(texts(r#"a 'b c' "d \" e" f\ g 'h i"#), ["a", "b c", "d \" e", "f g", "h i"]);
        assert_eq!(texts(""), [""]);
        let quoted = |line| split(line).last().unwrap().is_quoted;
        assert!(quoted("a 'b") && quoted("a 'b ") && !quoted("a 'b'") && !quoted("a \\'b"));
    }

    #[test]
    fn options_of_the_server_are_found_wherever_they_stand() {
        let words = split("triplane --color never ctl --addr :1 insert t --json --device-id=7 h");
        let asked = Asked::of(&words).unwrap();
        assert_eq!(asked.options, ["ctl", "--addr", ":1", "--json", "--device-id=7"]);
        assert_eq!((asked.command, &*asked.before, &*asked.current.text), ("insert", &["t"][..], "h"));
        for other in
            ["triplane ct", "triplane run x", "triplane ctl ins", "triplane ctl insert --a", "triplane ctl --addr "]
        {
            assert!(Asked::of(&split(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn names_begin_in_full_or_behind_a_dot() {
        let all = ["In.acl", "In.routes", "Out.acl"];
        assert_eq!(fitting("", all.into_iter()), all);
        assert_eq!(fitting("In.", all.into_iter()), ["In.acl", "In.routes"]);
        assert_eq!(fitting("ro", all.into_iter()), ["routes"]);
        assert_eq!(fitting("ac", all.into_iter()), ["acl"]);
        assert!(fitting("x", all.into_iter()).is_empty());
    }
}
