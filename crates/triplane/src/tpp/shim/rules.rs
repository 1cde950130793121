//! Reads the rules of a shim and their programs, and refuses what a policy does not permit, before anything is opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::tpp::map::MemoryMap;
use ::tpp::shim::{FilterCounts, FilterError, InsertionRule, PacketFilter, Shim};
use ::tpp::{AccessPolicy, AccessRights, TinyProgram, check};
use diagnostics::{Diagnostic, Diagnostics, FileId, Severity, SourceMap, Span};
use serde_json::{Value, json};

use super::super::args::ShimArgs;
use super::super::{MAX_TEXT_BYTES, SourceProgram, read_program};
use crate::load;
use crate::output::{Failure, Output, counted, grouped};

/// A rule and its program.
struct RuleProgram {
    text: String,
    rule: InsertionRule,
    program: TinyProgram,
}

/// The rules of a shim.
pub struct ShimRules {
    inserted: Vec<RuleProgram>,
    expected: Vec<(PacketFilter, TinyProgram)>,
    /// Length of the longest program that is inserted, in bytes.
    pub room: usize,
}

impl ShimRules {
    /// Reads the rules of a command line. Mistakes in files are printed.
    pub fn read(args: &ShimArgs, map: &MemoryMap, output: &Output) -> Result<ShimRules, Failure> {
        let mut rules = Vec::new();
        for text in &args.insert {
            rules.push((text.clone(), parsed("--insert", text)?));
        }
        if let Some(path) = &args.rules {
            rules.extend(rules_of(path, output)?);
        }
        if rules.is_empty() && args.collect.is_empty() {
            let message = "there is nothing to do: write --insert, --rules or --collect with the file of a program";
            return Err(Failure::Usage(message.to_owned()));
        }
        let mut programs = ProgramFiles::open(args.policy.as_deref(), map, output)?;
        let mut expected = Vec::new();
        for text in &args.collect {
            let rule = parsed("--collect", text)?;
            if (rule.one_in, rule.priority) != (1, 0) {
                let message = format!("--collect `{text}`: one-in and priority are those of the host that inserts");
                return Err(Failure::Usage(message));
            }
            expected.push((rule.filter, programs.read(Path::new(&rule.file))?));
        }
        ShimRules::new(rules, expected, &mut programs)
    }

    /// Reads the rules of a host of a lab, and the files of programs that it collects from others. Mistakes in files
    /// are printed.
    pub fn of_host(
        rules: Vec<(String, InsertionRule)>,
        others: &[PathBuf],
        policy: Option<&Path>,
        map: &MemoryMap,
        output: &Output,
    ) -> Result<ShimRules, Failure> {
        let mut expected = Vec::new();
        // The policy of the host that inserts a program is the one that counts.
        let mut programs = ProgramFiles::open(None, map, output)?;
        for file in others {
            expected.push((PacketFilter::default(), programs.read(file)?));
        }
        ShimRules::new(rules, expected, &mut ProgramFiles::open(policy, map, output)?)
    }

    /// Reads the programs of rules. They are collected, too.
    fn new(
        rules: Vec<(String, InsertionRule)>,
        mut expected: Vec<(PacketFilter, TinyProgram)>,
        programs: &mut ProgramFiles<'_>,
    ) -> Result<ShimRules, Failure> {
        let mut inserted = Vec::new();
        for (text, rule) in rules {
            let program = programs.read(Path::new(&rule.file))?;
            inserted.push(RuleProgram { text, rule, program });
        }
        // The other hosts of a network insert the same programs.
        let files: BTreeMap<_, _> = inserted.iter().map(|rule| (&rule.rule.file, &rule.program)).collect();
        expected.extend(files.values().map(|program| (PacketFilter::default(), (*program).clone())));
        let room = inserted.iter().map(|rule| rule.program.packet(&[]).len()).max().unwrap_or(0);
        let rules = ShimRules { inserted, expected, room };
        rules.shim(0).map(|_| rules)
    }

    /// Returns a shim with these rules for an interface with this MTU. A rule has the number of its place.
    pub fn shim(&self, mtu: usize) -> Result<Shim, Failure> {
        let mut shim = Shim::new(mtu);
        for RuleProgram { text, rule, program } in &self.inserted {
            let refused = |error: FilterError| Failure::Input(format!("`{text}` is refused: {error}"));
            shim.add_tpp(rule.filter, program, rule.one_in, rule.priority).map_err(refused)?;
        }
        for (filter, program) in &self.expected {
            let refused = |error: FilterError| Failure::Input(format!("a program cannot be collected: {error}"));
            shim.expect_tpp(*filter, program).map_err(refused)?;
        }
        Ok(shim)
    }

    /// Returns the numbers of packets that got a program, and that had no room for one.
    pub fn totals(&self, shim: &Shim) -> (u64, u64) {
        self.counts(shim)
            .fold((0, 0), |(inserted, too_long), (_, counts)| (inserted + counts.inserted, too_long + counts.too_long))
    }

    /// Returns the counts of each rule.
    fn counts<'a>(&'a self, shim: &'a Shim) -> impl Iterator<Item = (&'a str, FilterCounts)> {
        let counts = (0..self.inserted.len()).map(|number| shim.filter_counts(number).unwrap_or_default());
        self.inserted.iter().map(|rule| rule.text.as_str()).zip(counts)
    }

    /// Returns the rules as rows of a table.
    pub fn rows(&self, shim: &Shim) -> Vec<[String; 2]> {
        let row = |(text, counts): (&str, FilterCounts)| {
            let mut cell = format!("{} of {}", grouped(counts.inserted), grouped(counts.matched));
            if counts.too_long > 0 {
                cell += &format!(", {} without room", grouped(counts.too_long));
            }
            [format!("inserted by `{text}`"), cell]
        };
        self.counts(shim).map(row).collect()
    }

    /// Returns the rules as JSON.
    pub fn json(&self, shim: &Shim) -> Vec<Value> {
        let rule = |(text, counts): (&str, FilterCounts)| {
            json!({
                "rule": text,
                "matched": counts.matched,
                "inserted": counts.inserted,
                "too_long": counts.too_long,
            })
        };
        self.counts(shim).map(rule).collect()
    }
}

/// What is wrong with a rule for IPv6.
const ONLY_IPV4: &str = "a live shim inserts into IPv4 packets only: write an IPv4 address or prefix";

fn parsed(option: &str, text: &str) -> Result<InsertionRule, Failure> {
    let rule: InsertionRule =
        text.parse().map_err(|mistake| Failure::Usage(format!("{option} `{text}`: {mistake}")))?;
    if rule.filter.names_ipv6() {
        return Err(Failure::Usage(format!("{option} `{text}`: {ONLY_IPV4}")));
    }
    Ok(rule)
}

/// Reads a file of rules. Their programs lie beside it.
fn rules_of(path: &Path, output: &Output) -> Result<Vec<(String, InsertionRule)>, Failure> {
    let text = load::read(path, MAX_TEXT_BYTES)?;
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = sources.add(&path.display().to_string(), text.as_str());
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut rules, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        let from = start + code.len() - code.trim_start().len();
        let span = Span::new(file, from as u32, (from + code.trim().len()) as u32);
        start += line.len();
        if code.trim().is_empty() {
            continue;
        }
        match code.parse::<InsertionRule>() {
            Ok(rule) if rule.filter.names_ipv6() => {
                diagnostics.push(Diagnostic::error("invalid-rule", span, ONLY_IPV4.to_owned()));
            }
            Ok(mut rule) => {
                rule.file = folder.join(&rule.file).display().to_string();
                rules.push((code.trim().to_owned(), rule));
            }
            Err(mistake) => diagnostics.push(Diagnostic::error("invalid-rule", span, mistake.to_string())),
        }
    }
    without_errors(&sources, &diagnostics, output).map(|()| rules)
}

/// The programs that were read, by file.
struct ProgramFiles<'a> {
    map: &'a MemoryMap,
    output: &'a Output,
    policy: Option<AccessPolicy>,
    programs: BTreeMap<PathBuf, TinyProgram>,
}

impl<'a> ProgramFiles<'a> {
    fn open(policy: Option<&Path>, map: &'a MemoryMap, output: &'a Output) -> Result<ProgramFiles<'a>, Failure> {
        let policy = policy.map(|path| read_policy(path, map, output)).transpose()?;
        Ok(ProgramFiles { map, output, policy, programs: BTreeMap::new() })
    }

    /// Reads a program, and checks it against the policy.
    fn read(&mut self, path: &Path) -> Result<TinyProgram, Failure> {
        if let Some(program) = self.programs.get(path) {
            return Ok(program.clone());
        }
        load::expect_regular(path)?;
        let SourceProgram { sources, mut diagnostics, mut program } = read_program(path, self.map, self.output)?;
        let rights = self
            .policy
            .as_ref()
            .map_or_else(AccessRights::all, |policy| policy.rights(program.repr.application.into(), true));
        let findings = check(&program, self.map, &rights).findings;
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        errors.for_each(|error| diagnostics.push(error.diagnostic(&program, Span::new(FileId(0), 0, 0))));
        let count = diagnostics.error_count();
        if count > 0 {
            self.output.diagnostics(&sources, &diagnostics);
            let errors = counted(count, "error", "errors");
            return Err(Failure::Input(format!("{} is not installed: {errors}", path.display())));
        }
        program.mark_absent();
        self.programs.insert(path.to_owned(), program.clone());
        Ok(program)
    }
}

/// Reads a policy. Mistakes are printed.
pub fn read_policy(path: &Path, map: &MemoryMap, output: &Output) -> Result<AccessPolicy, Failure> {
    let text = load::read(path, MAX_TEXT_BYTES)?;
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let policy = AccessPolicy::parse(&mut sources, &path.display().to_string(), &text, map, &mut diagnostics);
    without_errors(&sources, &diagnostics, output).map(|()| policy)
}

/// Prints what was found, and fails if it has errors.
fn without_errors(sources: &SourceMap, diagnostics: &Diagnostics, output: &Output) -> Result<(), Failure> {
    output.diagnostics(sources, diagnostics);
    match diagnostics.error_count() {
        0 => Ok(()),
        count => Err(Failure::Input(counted(count, "error", "errors"))),
    }
}
