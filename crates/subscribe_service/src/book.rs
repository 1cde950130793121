//! The rules by their ids, their tables, and what a change of them takes at the switch. Knows no files and no switch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use subscribe::{Layout, Limits, Loader, Refusal, Rule, RuleId, Subscriptions, Writes};
use subscribe_p4::entries::{Installer, Steps};

mod told;
mod undo;
mod why;

use told::{told, told_anywhere};
use undo::Undo;

/// A format, the program that matches rules over it, and how they were made.
pub struct Program {
    /// The format.
    pub format: subscribe_p4::Format,
    /// What rules may speak of.
    pub rules: subscribe_p4::Rules,
    /// How the program is written.
    pub options: subscribe_p4::Options,
    /// The program in one order.
    pub written: Written,
    /// Whether that order is what the user wants. Without that it is chosen for the rules, or that of the switch's program.
    pub is_forced: bool,
    /// How large the rules may become.
    pub limits: Limits,
    /// Writes the program in another order.
    pub write: Write,
    /// The port at which the controller gets packets.
    pub cpu_port: u32,
}

/// Writes a program in an order.
pub type Write = Box<dyn Fn(&Program, &Layout) -> Written + Send>;

/// A program in one order of the fields.
#[derive(Clone, Debug)]
pub struct Written {
    /// The order of the tables.
    pub layout: Layout,
    /// Its text.
    pub text: String,
    /// What it is to controllers.
    pub info: p4runtime_proto::config::P4Info,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    File,
    Added,
}

/// A rule as it is held.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    rule: RuleId,
    pub origin: Origin,
    pub text: Arc<str>,
}

/// A rule to be held.
#[derive(Clone, Debug)]
pub(crate) struct New {
    /// The id that it had before, if it had one.
    pub id: Option<u64>,
    rule: Rule,
    text: Arc<str>,
}

/// Rules that were read, and what they were read from.
pub(crate) struct Read {
    pub rules: Vec<New>,
    pub map: SourceMap,
    pub diagnostics: Diagnostics,
    /// The number of the map's first file among all that were ever read.
    base: u32,
}

/// A change that was made.
pub(crate) struct Changed<'a> {
    /// Of the rules that were added, in order.
    pub ids: Vec<u64>,
    pub steps: Steps,
    undo: Undo<'a>,
}

impl Changed<'_> {
    /// Of the rules that were taken away.
    pub fn removed(&self) -> Vec<u64> {
        self.undo.removed.iter().map(|(id, ..)| *id).collect()
    }
}

/// The rules that are there.
pub(crate) struct Book<'a> {
    program: &'a Program,
    written: Written,
    subscriptions: Subscriptions,
    installer: Installer<'a>,
    held: BTreeMap<u64, Held>,
    /// The rules that have names, by these.
    names: HashMap<Box<str>, u64>,
    next_id: u64,
    files: u32,
    writes: Writes,
    max_rules: usize,
    in_file: usize,
    /// Goes up whenever numbers of states and groups may have become others without a change that a switch was told.
    numbering: u64,
    /// How often all rules were compiled from nothing: their numbers are others then.
    compiled: u64,
}

fn subscriptions(program: &Program, layout: &Layout, writes: Writes) -> Subscriptions {
    let options = subscribe::Options { target: program.options.target, limits: program.limits, writes };
    Subscriptions::new(program.rules.format.clone(), layout.clone(), options)
}

fn installer<'a>(program: &'a Program, layout: &Layout, writes: Writes) -> Installer<'a> {
    let Program { format, rules, options, cpu_port, .. } = program;
    let installer = Installer::new(format, rules, layout, options, *cpu_port);
    if writes == Writes::InTurn { installer.in_turn() } else { installer }
}

impl<'a> Book<'a> {
    /// No rules.
    pub fn new(program: &'a Program, max_rules: usize) -> Book<'a> {
        let writes = Writes::Together;
        Book {
            program,
            written: program.written.clone(),
            subscriptions: subscriptions(program, &program.written.layout, writes),
            installer: installer(program, &program.written.layout, writes),
            held: BTreeMap::new(),
            names: HashMap::new(),
            next_id: 1,
            files: 0,
            writes,
            max_rules,
            in_file: 0,
            numbering: 0,
            compiled: 0,
        }
    }

    /// The program in the order that the tables are compiled in.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Takes the order that suits these rules, before there are any, unless the user says which.
    pub fn suit<'r>(&mut self, rules: impl Iterator<Item = &'r New>) {
        if !self.program.is_forced {
            let layout = Layout::sensible(&self.program.rules.format, rules.map(|new| &new.rule));
            self.turn_to(&layout).expect("there are no rules to be refused");
        }
    }

    /// Compiles in another order. The error is for people; then everything is as before.
    pub fn turn_to(&mut self, layout: &Layout) -> Result<(), String> {
        if *layout != self.written.layout {
            self.compile_anew(layout, self.writes).map_err(|refusal| told_anywhere(&refusal))?;
            self.written = (self.program.write)(self.program, layout);
            self.install_anew()?;
        }
        Ok(())
    }

    /// Entries of the tables of fields.
    pub fn entries(&self) -> usize {
        self.subscriptions.tables().entries.len()
    }

    pub fn rules(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.held.iter().map(|(id, held)| (*id, held))
    }

    /// How many of them stand in the file.
    pub fn in_file(&self) -> usize {
        self.in_file
    }

    fn hold(&mut self, id: u64, held: Held) {
        self.in_file += usize::from(held.origin == Origin::File);
        if let Some(name) = self.name(&held) {
            self.names.insert(name, id);
        }
        self.held.insert(id, held);
    }

    /// What a rule is called by whoever wrote it.
    fn name(&self, held: &Held) -> Option<Box<str>> {
        let name = self.subscriptions.rule(held.rule)?.name.as_deref()?;
        (!name.starts_with('#')).then(|| name.into())
    }

    fn let_go(&mut self, id: u64) -> Option<Held> {
        let held = self.held.remove(&id)?;
        self.in_file -= usize::from(held.origin == Origin::File);
        if let Some(name) = self.name(&held) {
            self.names.remove(&name);
        }
        Some(held)
    }

    pub fn get(&self, id: u64) -> Option<&Held> {
        self.held.get(&id)
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// The id that the next rule gets.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// The next rule without an id gets this one or a higher one.
    pub fn number_from(&mut self, id: u64) {
        self.next_id = self.next_id.max(id);
    }

    /// Reads rules.
    pub fn read(&mut self, name: &str, text: String, loader: &mut dyn Loader) -> Read {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let format = &self.program.rules.format;
        let rules = subscribe::parse(&mut map, name, text, format, loader, &mut diagnostics);
        subscribe::named_once(&rules, &mut diagnostics);
        let base = self.files;
        let files = (0..).take_while(|file| map.contains(FileId(*file))).count() as u32;
        self.files = self.files.wrapping_add(files);
        let new = |mut rule: Rule| {
            let text = map.text(rule.span).into();
            // So that a rule of before is never taken for one of these.
            rule.span.file = FileId(rule.span.file.0.wrapping_add(base));
            New { id: None, rule, text }
        };
        Read { rules: rules.into_iter().map(new).collect(), map, diagnostics, base }
    }

    /// Takes rules away and brings others, all or nothing. `read` is what `add` was read from. The error is for people.
    pub fn change(
        &mut self,
        remove: &[u64],
        add: Vec<New>,
        origin: Origin,
        read: &Read,
    ) -> Result<Changed<'a>, String> {
        let most = self.max_rules;
        if (self.held.len() + add.len()).saturating_sub(remove.len()) > most {
            return Err(format!("there would be more than {most} rules, which is the limit of this service"));
        }
        let removed = self.take(remove);
        if let Some(why) = self.named_twice(&add, read) {
            removed.into_iter().for_each(|(id, held, _)| self.hold(id, held));
            return Err(why);
        }
        let gone: Vec<RuleId> = removed.iter().map(|(_, held, _)| held.rule).collect();
        let before =
            (self.writes == Writes::InTurn).then(|| Box::new((self.subscriptions.clone(), self.installer.clone())));
        let mut next = self.next_id;
        let mut ids = Vec::with_capacity(add.len());
        let (mut rules, mut texts) = (Vec::with_capacity(add.len()), Vec::with_capacity(add.len()));
        for New { id, mut rule, text } in add {
            let id = id.unwrap_or(next);
            next = next.max(id + 1);
            // What is wrong with other rules later is told by this name.
            rule.name.get_or_insert_with(|| format!("#{id}").into());
            ids.push(id);
            rules.push(rule);
            texts.push(text);
        }
        let applied = match self.subscriptions.change(&gone, rules) {
            Ok(applied) => applied,
            Err(refusal) => {
                removed.into_iter().for_each(|(id, held, _)| self.hold(id, held));
                return Err(told(refusal, read));
            }
        };
        self.next_id = next;
        for ((id, text), rule) in ids.iter().zip(texts).zip(applied.added) {
            self.hold(*id, Held { rule, origin, text });
        }
        let undo = Undo { added: ids.clone(), removed, before, compiled: self.compiled };
        match self.installer.steps(&applied.change) {
            Ok(steps) => Ok(Changed { ids, steps, undo }),
            Err(many) => {
                self.undo_change(undo)?;
                Err(many.to_string())
            }
        }
    }

    /// Why rules cannot be called as they are.
    fn named_twice(&self, add: &[New], read: &Read) -> Option<String> {
        let known = |new: &New| Some((new.rule.span, self.names.get_key_value(new.rule.name.as_deref()?)?));
        let (span, (name, id)) = add.iter().find_map(known)?;
        let span = Span { file: FileId(span.file.0.wrapping_sub(read.base)), ..span };
        let error = Diagnostic::error("rule-name", span, format!("rule {id} is called `{name}` already"));
        Some(error.help("call one of them otherwise, or remove the other before").render(&read.map, false))
    }

    fn take(&mut self, ids: &[u64]) -> Vec<(u64, Held, Rule)> {
        let mut of = |id: &u64| {
            let held = self.let_go(*id)?;
            let rule = self.subscriptions.rule(held.rule).cloned()?;
            Some((*id, held, rule))
        };
        ids.iter().filter_map(&mut of).collect()
    }

    /// What a switch holds is not of these numbers of states and groups any more.
    pub fn part(&mut self) {
        self.numbering += 1;
    }

    /// Which numbers states and groups have: those of before as long as this is the same.
    pub fn numbering(&self) -> u64 {
        self.numbering
    }

    /// All that the switch is to have, in the order in which an empty one is told. Later changes are from there. What has a number
    /// keeps it.
    ///
    /// # Errors
    /// If there are too many groups, for people.
    pub fn everything(&mut self) -> Result<Steps, String> {
        self.installer = self.installer.again();
        self.installer.install_steps(&self.subscriptions.tables()).map_err(|many| many.to_string())
    }

    /// Numbers what the installer numbers anew.
    fn install_anew(&mut self) -> Result<(), String> {
        self.part();
        self.installer = installer(self.program, &self.written.layout, self.writes);
        self.everything().map(drop)
    }

    /// Compiles for another way of writing, if it is another.
    ///
    /// # Errors
    /// If the rules take too much that way, for people; then everything is as before.
    pub fn write(&mut self, writes: Writes) -> Result<(), String> {
        if writes == self.writes {
            return Ok(());
        }
        let layout = self.written.layout.clone();
        self.compile_anew(&layout, writes).map_err(|refusal| told_anywhere(&refusal))?;
        self.writes = writes;
        self.install_anew()
    }

    /// Compiles all rules in this way. If they are refused, everything is as before.
    fn compile_anew(&mut self, layout: &Layout, writes: Writes) -> Result<(), Refusal> {
        let ids: HashMap<RuleId, u64> = self.held.iter().map(|(id, held)| (held.rule, *id)).collect();
        let (known, rules): (Vec<u64>, Vec<Rule>) =
            self.subscriptions.rules().map(|(rule, what)| (ids[&rule], what.clone())).unzip();
        let mut subscriptions = subscriptions(self.program, layout, writes);
        let applied = subscriptions.change(&[], rules)?;
        self.subscriptions = subscriptions;
        self.compiled += 1;
        for (id, rule) in known.iter().zip(applied.added) {
            if let Some(held) = self.held.get_mut(id) {
                held.rule = rule;
            }
        }
        Ok(())
    }

    /// What takes the file's rules to others: ids that go, and rules that come. A rule whose text is the same stays.
    pub fn reload(&self, new: &[New]) -> (Vec<u64>, Vec<New>) {
        let mut known: HashMap<&str, Vec<u64>> = HashMap::new();
        for (id, held) in self.rules().filter(|(_, held)| held.origin == Origin::File) {
            known.entry(&held.text).or_default().push(id);
        }
        // The first of several gets the first id.
        known.values_mut().for_each(|ids| ids.reverse());
        let is_new = |new: &&New| known.get_mut(&*new.text).and_then(Vec::pop).is_none();
        let come = new.iter().filter(is_new).cloned().collect();
        let mut go: Vec<u64> = known.into_values().flatten().collect();
        go.sort_unstable();
        (go, come)
    }
}

#[cfg(test)]
mod tests;
