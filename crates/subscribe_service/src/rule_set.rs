//! Holds the rules by their ids, the tables that they compile to, and the updates that a change of them needs at the
//! switch. Knows no files and no switch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use subscribe::{
    ColumnLayout, Limits, Loader, MessageFormat, Refusal, Rule, RuleId, SlotIdentity, Subscriptions, UpdateMode,
};
use subscribe_p4::entries::{DeliveryError, Entity, Installer, Update, UpdatePlan};

mod attribution;
mod compile_error;
mod undo;

use crate::rule_journal::StoredRule;
use compile_error::{render, render_without_source};
use undo::UndoRecord;

/// A message format, the program that matches rules over it, and the options that it was generated with.
pub struct SubscriptionProgram {
    /// The format.
    pub format: subscribe_p4::ProgramFormat,
    /// The fields and actions that rules can use.
    pub rules: subscribe_p4::RuleFormat,
    /// Options of the generated program.
    pub options: subscribe_p4::ProgramOptions,
    /// The program in one order of fields.
    pub written: WrittenProgram,
    /// Whether the user chose that order. Otherwise the service chooses the best one for the rules, or that of the
    /// switch's program.
    pub is_forced: bool,
    /// Limits of the compiled rules.
    pub limits: Limits,
    /// Lowest generation of the values in linked slots. It must grow from run to run.
    pub first_generation: u32,
    /// Generates the program in another order.
    pub write: ProgramWriter,
    /// The port of the controller.
    pub cpu_port: u32,
}

/// Generates a program in an order of fields.
pub type ProgramWriter = Box<dyn Fn(&SubscriptionProgram, &ColumnLayout) -> WrittenProgram + Send>;

/// A generated program in one order of the fields.
#[derive(Clone, Debug)]
pub struct WrittenProgram {
    /// The order of the tables.
    pub layout: ColumnLayout,
    /// Source text.
    pub text: String,
    /// P4Info of the program.
    pub info: p4runtime_proto::config::P4Info,
}

/// The origin of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleOrigin {
    File,
    Added,
}

/// A rule of the set.
#[derive(Clone, Debug)]
pub(crate) struct HeldRule {
    rule: RuleId,
    pub origin: RuleOrigin,
    pub text: Arc<str>,
    /// The user that added it, if it is known.
    pub owner: Option<Arc<str>>,
}

impl HeldRule {
    /// Returns the rule as the journal keeps it.
    pub fn stored(&self) -> StoredRule<'_> {
        StoredRule { text: &self.text, owner: self.owner.as_deref() }
    }
}

/// A rule to add.
#[derive(Clone, Debug)]
pub(crate) struct NewRule {
    /// The id from an earlier run, if it had one.
    pub id: Option<u64>,
    /// The user that adds it.
    pub owner: Option<Arc<str>>,
    rule: Rule,
    text: Arc<str>,
}

impl NewRule {
    /// Returns the parsed rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }
}

/// Parsed rules, and the sources that diagnostics about them point into.
pub(crate) struct ParsedRules {
    pub rules: Vec<NewRule>,
    pub map: SourceMap,
    pub diagnostics: Diagnostics,
    /// Number of the map's first file among all files that were ever parsed.
    base: u32,
}

impl ParsedRules {
    /// Returns the offsets of the rules in their files: beginning and end.
    pub fn places(&self) -> Vec<(u32, u32)> {
        self.rules.iter().map(|new| (new.rule.span.start, new.rule.span.end)).collect()
    }
}

/// A change that the set has applied, with the updates for the switch.
pub(crate) struct AppliedChange<'a> {
    /// Ids of the added rules, in order.
    pub ids: Vec<u64>,
    pub steps: UpdatePlan,
    undo: UndoRecord<'a>,
}

impl AppliedChange<'_> {
    /// Returns the ids of the removed rules.
    pub fn removed(&self) -> Vec<u64> {
        self.undo.removed.iter().map(|(id, ..)| *id).collect()
    }
}

/// The current rules.
pub(crate) struct RuleSet<'a> {
    program: &'a SubscriptionProgram,
    written: WrittenProgram,
    subscriptions: Subscriptions,
    installer: Installer<'a>,
    held: BTreeMap<u64, HeldRule>,
    /// Ids of the rules that have names.
    names: HashMap<Box<str>, u64>,
    next_id: u64,
    files: u32,
    update_mode: UpdateMode,
    max_rules: usize,
    in_file: usize,
    /// Generation of the numbers of states and groups. It increases when numbers may have changed without updates for
    /// the switch.
    generation: u64,
    /// Number of times that all rules were compiled from scratch, which changes their numbers.
    compiled: u64,
}

/// A change that the set of rules cannot make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleSetError {
    /// There would be too many rules.
    #[error("there would be more than {limit} rules, the limit of this service")]
    TooManyRules {
        /// The limit.
        limit: usize,
    },
    /// The rules cannot be compiled, or two have one name, as rendered diagnostics.
    #[error("{0}")]
    Diagnostics(String),
    /// The program cannot deliver what the rules say.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

fn subscriptions(
    program: &SubscriptionProgram,
    layout: &ColumnLayout,
    update_mode: UpdateMode,
    first_generation: u32,
) -> Subscriptions {
    let (target, limits) = (program.options.target, program.limits);
    let options = subscribe::CompileOptions { target, limits, update_mode, first_generation };
    Subscriptions::new(program.rules.format.clone(), layout.clone(), options)
}

fn installer<'a>(program: &'a SubscriptionProgram, layout: &ColumnLayout, writes: UpdateMode) -> Installer<'a> {
    let SubscriptionProgram { format, rules, options, cpu_port, .. } = program;
    let installer = Installer::new(format, rules, layout, options, *cpu_port);
    if writes == UpdateMode::PerMessageConsistent { installer.per_message_consistent() } else { installer }
}

impl<'a> RuleSet<'a> {
    /// Creates a set without rules.
    pub fn new(program: &'a SubscriptionProgram, max_rules: usize) -> RuleSet<'a> {
        let update_mode = UpdateMode::Atomic;
        RuleSet {
            program,
            written: program.written.clone(),
            subscriptions: subscriptions(program, &program.written.layout, update_mode, program.first_generation),
            installer: installer(program, &program.written.layout, update_mode),
            held: BTreeMap::new(),
            names: HashMap::new(),
            next_id: 1,
            files: 0,
            update_mode,
            max_rules,
            in_file: 0,
            generation: 0,
            compiled: 0,
        }
    }

    /// Returns the program in the order of fields that the tables are compiled in.
    pub fn written(&self) -> &WrittenProgram {
        &self.written
    }

    /// Chooses the best order of fields for these rules, while the set is empty, unless the user chose one.
    pub fn choose_order<'r>(&mut self, rules: impl Iterator<Item = &'r NewRule>) {
        if !self.program.is_forced {
            let layout = ColumnLayout::sensible(&self.program.rules.format, rules.map(|new| &new.rule));
            self.recompile_with(&layout).expect("there are no rules to be refused");
        }
    }

    /// Compiles all rules in another order of fields.
    ///
    /// # Errors
    /// If the rules cannot be compiled in that order. The set is unchanged then.
    pub fn recompile_with(&mut self, layout: &ColumnLayout) -> Result<(), RuleSetError> {
        if *layout != self.written.layout {
            self.recompile(layout, self.update_mode, &BTreeMap::new())
                .map_err(|refusal| render_without_source(&refusal))?;
            self.written = (self.program.write)(self.program, layout);
            self.renumber()?;
        }
        Ok(())
    }

    /// Returns the vocabulary of the rules.
    pub fn format(&self) -> &'a MessageFormat {
        &self.program.rules.format
    }

    /// Returns the number of entries in the tables of fields.
    pub fn entries(&self) -> usize {
        self.subscriptions.tables().entries.len()
    }

    /// Returns all rules, in ascending order of their ids.
    pub fn rules(&self) -> impl Iterator<Item = (u64, &HeldRule)> {
        self.held.iter().map(|(id, held)| (*id, held))
    }

    /// Returns the number of rules in the file.
    pub fn in_file(&self) -> usize {
        self.in_file
    }

    fn hold(&mut self, id: u64, held: HeldRule) {
        self.in_file += usize::from(held.origin == RuleOrigin::File);
        if let Some(name) = self.name(&held) {
            self.names.insert(name, id);
        }
        self.held.insert(id, held);
    }

    /// Returns the name that the author of a rule gave it.
    fn name(&self, held: &HeldRule) -> Option<Box<str>> {
        let name = self.subscriptions.rule(held.rule)?.name.as_deref()?;
        (!name.starts_with('#')).then(|| name.into())
    }

    /// Removes a rule from the set, and returns it.
    fn release(&mut self, id: u64) -> Option<HeldRule> {
        let held = self.held.remove(&id)?;
        self.in_file -= usize::from(held.origin == RuleOrigin::File);
        if let Some(name) = self.name(&held) {
            self.names.remove(&name);
        }
        Some(held)
    }

    /// Returns a rule.
    pub fn get(&self, id: u64) -> Option<&HeldRule> {
        self.held.get(&id)
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the id of the next rule.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Reserves all ids below this one: the next rule gets this id or a higher one.
    pub fn reserve_ids(&mut self, id: u64) {
        self.next_id = self.next_id.max(id);
    }

    /// Parses rules.
    pub fn parse(&mut self, name: &str, text: String, loader: &mut dyn Loader) -> ParsedRules {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let format = &self.program.rules.format;
        let rules = subscribe::parse(&mut map, name, text, format, loader, &mut diagnostics);
        subscribe::named_once(&rules, &mut diagnostics);
        let base = self.files;
        let files = (0..).take_while(|file| map.contains(FileId(*file))).count() as u32;
        self.files = self.files.wrapping_add(files);
        let new = |mut rule: Rule| {
            let text = map.text(rule.span).into();
            // A span of an earlier file is never taken for one of these files.
            rule.span.file = FileId(rule.span.file.0.wrapping_add(base));
            NewRule { id: None, owner: None, rule, text }
        };
        ParsedRules { rules: rules.into_iter().map(new).collect(), map, diagnostics, base }
    }

    /// Removes rules and adds others, all or none. `parsed` has the sources of `add`.
    ///
    /// # Errors
    /// If the rules that would be there cannot be compiled. The set is unchanged then.
    pub fn change(
        &mut self,
        remove: &[u64],
        add: Vec<NewRule>,
        origin: RuleOrigin,
        parsed: &ParsedRules,
    ) -> Result<AppliedChange<'a>, RuleSetError> {
        if (self.held.len() + add.len()).saturating_sub(remove.len()) > self.max_rules {
            return Err(RuleSetError::TooManyRules { limit: self.max_rules });
        }
        let removed = self.take(remove);
        if let Some(why) = self.find_duplicate_name(&add, parsed) {
            removed.into_iter().for_each(|(id, held, _)| self.hold(id, held));
            return Err(why);
        }
        let gone: Vec<RuleId> = removed.iter().map(|(_, held, _)| held.rule).collect();
        let before = (self.update_mode == UpdateMode::PerMessageConsistent)
            .then(|| Box::new((self.subscriptions.clone(), self.installer.clone())));
        let mut next = self.next_id;
        let mut ids = Vec::with_capacity(add.len());
        let (mut rules, mut texts) = (Vec::with_capacity(add.len()), Vec::with_capacity(add.len()));
        for NewRule { id, owner, mut rule, text } in add {
            let id = id.unwrap_or(next);
            next = next.max(id + 1);
            // Later diagnostics about other rules refer to this one by its name.
            rule.name.get_or_insert_with(|| format!("#{id}").into());
            ids.push(id);
            rules.push(rule);
            texts.push((text, owner));
        }
        let applied = match self.subscriptions.change(&gone, rules) {
            Ok(applied) => applied,
            Err(refusal) => {
                removed.into_iter().for_each(|(id, held, _)| self.hold(id, held));
                return Err(render(refusal, parsed));
            }
        };
        self.next_id = next;
        for ((id, (text, owner)), rule) in ids.iter().zip(texts).zip(applied.added) {
            self.hold(*id, HeldRule { rule, origin, text, owner });
        }
        let undo = UndoRecord { added: ids.clone(), removed, before, compiled: self.compiled };
        match self.installer.steps(&applied.change) {
            Ok(steps) => Ok(AppliedChange { ids, steps, undo }),
            Err(many) => {
                self.undo_change(undo)?;
                Err(many.into())
            }
        }
    }

    /// Finds a rule to add whose name is in use.
    fn find_duplicate_name(&self, add: &[NewRule], parsed: &ParsedRules) -> Option<RuleSetError> {
        let known = |new: &NewRule| Some((new.rule.span, self.names.get_key_value(new.rule.name.as_deref()?)?));
        let (span, (name, id)) = add.iter().find_map(known)?;
        let span = Span { file: FileId(span.file.0.wrapping_sub(parsed.base)), ..span };
        let error = Diagnostic::error("rule-name", span, format!("rule {id} is already named `{name}`"));
        let error = error.help("choose another name, or remove that rule first");
        Some(RuleSetError::Diagnostics(error.render(&parsed.map, false)))
    }

    /// Removes rules from the set, and returns those that there were, with their parsed form.
    fn take(&mut self, ids: &[u64]) -> Vec<(u64, HeldRule, Rule)> {
        let mut taken = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(held) = self.release(*id) else { continue };
            if let Some(rule) = self.subscriptions.rule(held.rule).cloned() {
                taken.push((*id, held, rule));
            }
        }
        taken
    }

    /// Invalidates every state and group number that the switch may still hold.
    pub fn bump_generation(&mut self) {
        self.generation += 1;
    }

    /// Returns the generation of the numbers of states and groups: numbers keep their meaning within a generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the updates that install all rules in an empty switch, in order. The updates of later changes start from
    /// there. States and groups keep their numbers.
    ///
    /// # Errors
    /// If there are too many groups.
    pub fn full_install(&mut self) -> Result<UpdatePlan, RuleSetError> {
        self.installer = self.installer.again();
        Ok(self.installer.install_steps(&self.subscriptions.tables())?)
    }

    /// Gives states the numbers that they have at a switch, as far as the switch holds the same tables as
    /// [`RuleSet::full_install`], whose updates are `plan`. Returns whether any number changed.
    pub fn adopt_states(&mut self, plan: &UpdatePlan, at_switch: &[Entity]) -> bool {
        let inserted = plan.clone().all().into_iter().filter_map(|update| match update {
            Update::Insert(entity) | Update::Modify(entity) => Some(entity),
            Update::Delete(_) => None,
        });
        let names = subscribe_p4::match_states(&inserted.collect::<Vec<Entity>>(), at_switch);
        let is_other = names.iter().any(|(old, new)| old != new);
        if is_other {
            self.subscriptions.rename_states(&names);
            self.bump_generation();
        }
        is_other
    }

    /// Creates a new installer, which assigns new numbers.
    fn renumber(&mut self) -> Result<(), RuleSetError> {
        self.bump_generation();
        self.installer = installer(self.program, &self.written.layout, self.update_mode);
        self.full_install().map(drop)
    }

    /// Compiles all rules for another update mode of the switch, if it differs from the current one.
    ///
    /// # Errors
    /// If the rules exceed a limit in that mode. The set is unchanged then.
    pub fn set_update_mode(&mut self, update_mode: UpdateMode) -> Result<(), RuleSetError> {
        if update_mode == self.update_mode {
            return Ok(());
        }
        let layout = self.written.layout.clone();
        self.recompile(&layout, update_mode, &BTreeMap::new()).map_err(|refusal| render_without_source(&refusal))?;
        self.update_mode = update_mode;
        self.renumber()
    }

    /// Gives linked aggregates the slots in which a switch keeps their values. Returns whether any changed.
    ///
    /// # Errors
    /// If the rules exceed a limit when they are compiled again. The set is unchanged then.
    pub fn adopt_slots(&mut self, at_switch: &[Entity]) -> Result<bool, RuleSetError> {
        let known = subscribe_p4::slot_identities(at_switch);
        let own = self.subscriptions.linked_identities();
        let place = |(slot, identity): (&u16, &SlotIdentity)| (*slot, identity.state_hash);
        let is_elsewhere = |at: &(u16, u32)| own.iter().map(place).any(|(slot, state)| state == at.1 && slot != at.0);
        if !known.iter().map(place).any(|at| is_elsewhere(&at)) {
            self.subscriptions.restore_generations(&known);
            return Ok(self.subscriptions.linked_identities() != own);
        }
        let layout = self.written.layout.clone();
        self.recompile(&layout, self.update_mode, &known).map_err(|refusal| render_without_source(&refusal))?;
        self.renumber()?;
        Ok(true)
    }

    /// Returns a compiler without rules that reserves slots for linked aggregates: those that they have now, or those
    /// in `slots`.
    fn without_rules(
        &self,
        layout: &ColumnLayout,
        writes: UpdateMode,
        slots: &BTreeMap<u16, SlotIdentity>,
    ) -> Subscriptions {
        let mut identities = self.subscriptions.linked_identities();
        identities.retain(|_, own| !slots.values().any(|identity| identity.state_hash == own.state_hash));
        identities.extend(slots);
        let mut empty = subscriptions(self.program, layout, writes, self.subscriptions.next_generation());
        empty.reserve_slots(&identities);
        empty
    }

    /// Compiles all rules from scratch. Linked aggregates keep their slots, or get those in `slots`.
    /// The set is unchanged if the rules cannot be compiled.
    fn recompile(
        &mut self,
        layout: &ColumnLayout,
        writes: UpdateMode,
        slots: &BTreeMap<u16, SlotIdentity>,
    ) -> Result<(), Refusal> {
        let ids: HashMap<RuleId, u64> = self.held.iter().map(|(id, held)| (held.rule, *id)).collect();
        let (known, rules): (Vec<u64>, Vec<Rule>) =
            self.subscriptions.rules().map(|(rule, what)| (ids[&rule], what.clone())).unzip();
        let mut subscriptions = self.without_rules(layout, writes, slots);
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

    /// Compares the rules of the file with new ones. Returns the ids to remove and the rules to add; a rule with the
    /// same text stays.
    pub fn compare_file(&self, new: &[NewRule]) -> (Vec<u64>, Vec<NewRule>) {
        let in_file = self.rules().filter(|(_, held)| held.origin == RuleOrigin::File);
        self.compare_part(in_file.map(|(_, held)| &*held.text), new)
    }

    /// Compares rules of the file, by their texts, with those that take their place, like
    /// [`RuleSet::compare_file`].
    pub fn compare_part<'t>(&self, old: impl Iterator<Item = &'t str>, new: &[NewRule]) -> (Vec<u64>, Vec<NewRule>) {
        let mut known: HashMap<&str, usize> = HashMap::new();
        old.for_each(|text| *known.entry(text).or_default() += 1);
        let mut take = |text: &str| match known.get_mut(text) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            _ => false,
        };
        let added = new.iter().filter(|new| !take(&new.text)).cloned().collect();
        // Of several rules with one text, the last ones go.
        let mut left: usize = known.values().sum();
        let mut removed = Vec::with_capacity(left);
        for (id, held) in self.held.iter().rev().filter(|(_, held)| held.origin == RuleOrigin::File) {
            if left == 0 {
                break;
            }
            if let Some(count @ 1..) = known.get_mut(&*held.text) {
                *count -= 1;
                left -= 1;
                removed.push(*id);
            }
        }
        removed.sort_unstable();
        (removed, added)
    }
}

#[cfg(test)]
mod tests;
