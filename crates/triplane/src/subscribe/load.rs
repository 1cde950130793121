//! Loads a format and its rules from files, and compiles them into tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use diagnostics::{Diagnostic, Diagnostics, Span};
use subscribe::{
    ColumnLayout, ExceededLimit, IncludeError, Loader as Includes, Refusal, Rule, SlotIdentity, Subscriptions, Tables,
};
use subscribe_p4::{ProgramFormat, ProgramOptions, RuleFormat};

use super::args::FormatArgs;
use super::memory::MemoryLimit;
use super::replication::Replication;
use super::report::counted;
use crate::load::{Loader, ProgramArgs};
use crate::output::{Failure, Output};

/// A parsed format, with its source.
pub struct Loaded {
    loader: Loader,
    /// The text of the format.
    pub text: String,
    /// The format.
    pub format: ProgramFormat,
    /// The fields, headers and actions that rules may name.
    pub rules: RuleFormat,
    /// The order of the tables.
    pub layout: ColumnLayout,
    /// Whether the user chose the order.
    pub is_forced: bool,
    /// The replication of the program whose order is used, if it is that of a program.
    pub replication: Option<Replication>,
    /// The memory limit of diagrams.
    pub memory_limit: MemoryLimit,
}

/// Compiled rules.
pub struct Compiled {
    /// The rules and their diagram.
    pub subscriptions: Subscriptions,
    /// Their tables.
    pub tables: Tables,
}

/// Loader of the files that rule files include, relative to the including file.
struct RelativeIncludes;

impl Includes for RelativeIncludes {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), IncludeError> {
        let unreadable = |why: String| IncludeError::Unreadable(why.into());
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        // Other files may have no end, or block until somebody writes to them.
        if std::fs::metadata(&path).is_ok_and(|of| !of.is_file()) {
            return Err(unreadable("is not a regular file: only regular files can be included".to_owned()));
        }
        // The diagnostic begins with the file's name already.
        if matches!(path.try_exists(), Ok(false)) {
            let beside = path.parent().filter(|of| !of.as_os_str().is_empty());
            let place = beside.map_or("in this file's directory".to_owned(), |of| format!("in {}", of.display()));
            return Err(unreadable(format!("does not exist: included files are searched for {place}")));
        }
        let text = crate::load::read(&path, MAX_RULES_BYTES);
        let text = text.map_err(|failure| unreadable(failure.sentence().unwrap_or_default()))?;
        Ok((path.display().to_string(), text))
    }
}

/// Checks that text can be read from `path`. `what` names the kind of file in the error.
///
/// # Errors
/// If the path is not a source of text: reading a named pipe without a writer would block without a message. A
/// file that the shell opened (`/dev/stdin`, `<(…)`) has a writer, and `/dev/null` ends.
pub fn is_text(path: &Path, what: &str) -> Result<(), Failure> {
    let known = ["/dev/stdin", "/dev/null"].map(Path::new);
    let is_open = known.contains(&path) || path.parent().is_some_and(|of| of.ends_with("fd"));
    let other = std::fs::metadata(path).is_ok_and(|of| !of.is_file() && !of.is_dir());
    if other && !is_open {
        Err(Failure::Input(format!(
            "{} is not a regular file: {what} are read from regular files only",
            path.display()
        )))
    } else {
        Ok(())
    }
}

/// Maximum size of a rules file, in bytes.
const MAX_RULES_BYTES: u64 = 1 << 30;

impl Loaded {
    /// Reads the program and its annotations.
    pub fn format(args: &FormatArgs, output: &Output) -> Result<Loaded, Failure> {
        let program = ProgramArgs {
            program: args.format.clone(),
            include: args.include.clone(),
            define: args.define.clone(),
            allow: vec!["unused".to_owned()],
        };
        is_text(&args.format, "formats")?;
        let mut loader = Loader::open(&program)?;
        // The file is read once, because a pipe can be read only once. A compiled program is not text, and is rejected
        // below.
        let text = String::from_utf8_lossy(loader.bytes()).into_owned();
        if looks_like_rules(&text) {
            return Err(Failure::Input(format!(
                "{} has rules, not a format: write the format first, then the rules",
                args.format.display()
            )));
        }
        let read = loader.typed().and_then(|typed| {
            let main = diagnostics::FileId(0);
            let format = subscribe_p4::read(&typed, main, &loader.map, &mut loader.diagnostics)?;
            match subscribe_p4::rule_format(&format) {
                Ok(mut rules) => {
                    rules.format.max_port = v1model::MAX_PORT.into();
                    Some((format, rules))
                }
                Err(wrong) => {
                    let span = Span { file: main, ..Span::default() };
                    loader.diagnostics.push(Diagnostic::error("format", span, wrong.to_string()));
                    None
                }
            }
        });
        loader.report(output)?;
        let Some((format, rules)) = read else {
            return Err(Failure::Input(format!("{} is not a valid message format", args.format.display())));
        };
        let order: Vec<&str> = args.order.iter().map(String::as_str).collect();
        let (layout, replication) = match &args.order_of {
            Some(path) => {
                let (layout, replication) = order_of(path, args, &rules, output)?;
                (layout, Some(replication))
            }
            None => {
                let forced = ColumnLayout::forced(&rules.format, &order);
                (forced.map_err(|wrong| Failure::Usage(wrong.to_string()))?, None)
            }
        };
        let is_forced = !order.is_empty() || args.order_of.is_some();
        let memory_limit = MemoryLimit::now(args.memory);
        Ok(Loaded { loader, text, format, rules, layout, is_forced, replication, memory_limit })
    }

    /// Chooses the order that suits these rules, unless the user chose one.
    pub fn choose_order<'a>(&mut self, rules: impl IntoIterator<Item = &'a Rule>) {
        if !self.is_forced {
            self.layout = ColumnLayout::sensible(&self.rules.format, rules);
        }
    }

    /// Fixes the order, whatever the rules.
    pub fn force(&mut self, layout: ColumnLayout) {
        (self.layout, self.is_forced) = (layout, true);
    }

    /// Refuses rules that forward to a port without a bit in the bitmaps of a program with these options.
    pub fn limit_ports(&mut self, options: &ProgramOptions) {
        // The widest bitmaps have all ports but the controller's usual one, which rules may name, too.
        if let Some(max) = options.max_port().filter(|max| max + 1 < v1model::CPU_PORT) {
            self.rules.format.max_port = max;
            self.rules.format.more_ports = Some("`--bitmaps PORTS` generates a program with up to 511 ports");
        }
    }

    /// Returns the text of the program that matches rules.
    pub fn program(&self, options: &ProgramOptions) -> String {
        subscribe_p4::program(&self.text, &self.format, &self.rules, &self.layout, options)
    }

    /// Returns the program in another order, ready to be compiled.
    pub fn made(&self, layout: &ColumnLayout, options: &ProgramOptions) -> Loader {
        let text = subscribe_p4::program(&self.text, &self.format, &self.rules, layout, options);
        self.loader.made(text)
    }

    /// Returns the format alone as a program, ready to be compiled.
    pub fn bare(&self) -> Loader {
        self.loader.made(subscribe_p4::bare(&self.text, &self.format))
    }

    /// Parses rules and compiles them in the order that suits them.
    pub fn compile(
        &mut self,
        files: &[PathBuf],
        options: &ProgramOptions,
        output: &Output,
    ) -> Result<Compiled, Failure> {
        let rules = self.parse(files, output)?;
        self.choose_order(&rules);
        self.merge(rules, options, output)
    }

    /// Parses rules.
    pub fn parse(&mut self, files: &[PathBuf], output: &Output) -> Result<Vec<Rule>, Failure> {
        let mut diagnostics = Diagnostics::new();
        let mut rules = Vec::new();
        for path in files {
            is_text(path, "rules")?;
            let text = crate::load::read(path, MAX_RULES_BYTES)?;
            let name = path.display().to_string();
            if looks_like_p4(&text) {
                return Err(Failure::Input(format!("{name} is P4, not rules; the format comes before the rules")));
            }
            let map = &mut self.loader.map;
            rules.extend(subscribe::parse(
                map,
                &name,
                text,
                &self.rules.format,
                &mut RelativeIncludes,
                &mut diagnostics,
            ));
        }
        subscribe::named_once(&rules, &mut diagnostics);
        if let ([path], true) = (files, rules.is_empty() && !diagnostics.has_errors()) {
            let message = format!("there are no rules in {}", path.display());
            diagnostics.push(Diagnostic::warning("no-rules", Span::default(), message));
        }
        diagnostics.set_help("unknown-field", |finding| {
            let name = self.loader.map.text(finding.primary.span);
            let is_function = subscribe::Function::ALL.iter().any(|(function, _)| *function == name);
            let member = name.rsplit('.').next()?;
            let mut untested = self.format.headers.iter().flat_map(|header| &header.untested);
            (!is_function && untested.any(|other| other == member)).then(|| {
                format!("the format has this field without an annotation: write `@query_field(\"{name}\")` before it")
            })
        });
        diagnostics.extend_help("controller-port", ": `--cpu-port`");
        diagnostics.extend_help("rule-host", ": `triplane subscribe network --lab LAB.toml`");
        self.print_findings(&diagnostics, output)?;
        Ok(rules)
    }

    /// Compiles rules.
    pub fn merge(&self, rules: Vec<Rule>, options: &ProgramOptions, output: &Output) -> Result<Compiled, Failure> {
        self.merge_in_slots(rules, options, &BTreeMap::new(), output)
    }

    /// Compiles rules. Linked aggregates that `slots` identifies get these slots.
    pub fn merge_in_slots(
        &self,
        rules: Vec<Rule>,
        options: &ProgramOptions,
        slots: &BTreeMap<u16, SlotIdentity>,
        output: &Output,
    ) -> Result<Compiled, Failure> {
        let mut diagnostics = Diagnostics::new();
        let settings = subscribe::CompileOptions {
            target: options.target,
            limits: self.memory_limit.limits(),
            ..subscribe::CompileOptions::default()
        };
        let mut subscriptions = Subscriptions::new(self.rules.format.clone(), self.layout.clone(), settings);
        subscriptions.reserve_slots(slots);
        if let Err(refusal) = subscriptions.change(&[], rules) {
            let mut finding = refusal.diagnostic(&self.loader.map);
            match refusal {
                Refusal::TooLarge { full: ExceededLimit::Bytes(_), .. } => {
                    finding.message += &format!(" ({})", self.memory_limit.describe());
                }
                Refusal::TooLarge { full: ExceededLimit::Prefixes(..), .. } => {
                    finding.help.get_or_insert_default().push_str("; `--ranges range` generates range tables");
                }
                _ => {}
            }
            diagnostics.push(finding);
        }
        // Rules that can never match are not mistakes, but are seldom intended.
        for useless in subscriptions.lint_never_matches(&self.rules.possible(&self.format)) {
            if let Some(finding) = useless.diagnostic(&subscriptions, &self.loader.map) {
                diagnostics.push(finding);
            }
        }
        self.print_findings(&diagnostics, output)?;
        let tables = subscriptions.tables();
        Ok(Compiled { subscriptions, tables })
    }

    /// Prints findings.
    ///
    /// # Errors
    /// If one of them is a mistake.
    pub fn print_findings(&self, diagnostics: &Diagnostics, output: &Output) -> Result<(), Failure> {
        output.diagnostics(&self.loader.map, diagnostics);
        if diagnostics.has_errors() { Err(Failure::Input("these rules cannot be compiled".to_owned())) } else { Ok(()) }
    }

    /// Returns the source map of every file that was read.
    pub fn map(&self) -> &diagnostics::SourceMap {
        &self.loader.map
    }
}

/// Whether a text has lines that begin as declarations of P4, which no rule does.
fn looks_like_p4(text: &str) -> bool {
    const KEYWORDS: [&str; 6] = ["header", "header_type", "header_union", "struct", "parser", "control"];
    // `control in {1, 2}` is a test of a field with this name.
    const OPERATORS: [&str; 4] = ["in", "not", "and", "or"];
    let is_declaration = |line: &str| {
        let mut words = line.split(' ');
        line.starts_with("#include <")
            || words.next().is_some_and(|first| KEYWORDS.contains(&first))
                && words.next().is_some_and(|name| {
                    name.starts_with(|first: char| first.is_ascii_alphabetic()) && !OPERATORS.contains(&name)
                })
    };
    text.lines().take(1_000).any(is_declaration)
}

/// Whether a text has lines that end as rules do, and none that begins as a declaration of P4.
fn looks_like_rules(text: &str) -> bool {
    const ACTIONS: [&str; 3] = ["fwd", "drop", "to_controller"];
    let is_rule = |line: &str| {
        let actions = line.rsplit_once(':').map(|(_, actions)| actions.trim_start());
        actions.is_some_and(|actions| ACTIONS.iter().any(|action| actions.starts_with(action)))
    };
    !looks_like_p4(text) && text.lines().take(1_000).any(is_rule)
}

/// Returns the field order of an existing program, and how it delivers.
fn order_of(
    path: &Path,
    args: &FormatArgs,
    rules: &RuleFormat,
    output: &Output,
) -> Result<(ColumnLayout, Replication), Failure> {
    let mut loader = Loader::open(&ProgramArgs {
        program: path.to_owned(),
        include: args.include.clone(),
        define: args.define.clone(),
        allow: vec!["unused".to_owned()],
    })?;
    let compiled = loader.compile();
    loader.report(output)?;
    let info = || compiled.iter().map(|compiled| &compiled.p4info);
    let tables = info().flat_map(|info| &info.tables).filter_map(|table| table.preamble.as_ref());
    let order = subscribe_p4::order(&rules.format, tables.map(|preamble| preamble.name.as_str()));
    let order = order.ok_or_else(|| {
        let (path, format) = (path.display(), args.format.display());
        Failure::Input(format!("{path} was not generated from the current version of {format}"))
    })?;
    let params = info().flat_map(|info| &info.actions).flat_map(|action| &action.params);
    let bitmap = subscribe_p4::bitmap_of(params.map(|param| param.name.as_str()));
    Ok((order, bitmap.map_or(Replication::Groups, Replication::Bitmaps)))
}

impl Compiled {
    /// Summarizes the compiled rules in one line.
    pub fn summary(&self) -> String {
        let Tables { entries, leaves, groups, .. } = &self.tables;
        // A program with bitmaps of ports has no groups.
        let groups = match groups.len() {
            0 => String::new(),
            count => format!(", {}", counted(count, "group", "groups")),
        };
        format!(
            "{}: {} in field tables, {}{groups}",
            counted(self.subscriptions.rules().count(), "rule", "rules"),
            counted(entries.len(), "entry", "entries"),
            counted(leaves.len(), "leaf", "leaves"),
        )
    }
}
