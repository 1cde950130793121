//! Reads the sources of rules: the rules file, and the journal of rules that were added.

use std::path::Path;

use diagnostics::FileId;
use subscribe::NoIncludes;

use super::{ChangeError, Reconciler};
use crate::Settings;
use crate::file_text::FileText;
use crate::rule_files::FileLoader;
use crate::rule_journal::RuleJournal;
use crate::rule_set::{NewRule, ParsedRules, RuleOrigin};
use crate::rules_error::RulesError;
use crate::service_status::ServiceEvent;

impl Reconciler<'_> {
    /// Reads all rules at the start.
    pub(super) fn load_rules(&mut self, settings: &Settings) -> Result<(), RulesError> {
        let mut added = match &settings.kept {
            Some(path) => Some(self.load_journal(path)?),
            None => None,
        };
        let mut loader = FileLoader::default();
        let parsed = self.read(&mut loader).and_then(|text| self.parse_file(text, &mut loader));
        self.watch = loader.watch();
        let (mut parsed, file_text) = parsed?;
        self.rules.choose_order(added.iter().flat_map(|added| &added.rules).chain(&parsed.rules));
        if let Some(added) = &mut added {
            let new = std::mem::take(&mut added.rules);
            self.rules.change(&[], new, RuleOrigin::Added, added)?;
        }
        let new = std::mem::take(&mut parsed.rules);
        self.rules.change(&[], new, RuleOrigin::File, &parsed)?;
        self.file_text = file_text;
        self.report_warnings(&parsed);
        if let (Some(journal), Some(path)) = (&mut self.journal, &settings.kept) {
            // Only now, when everything else is valid: after an error the journal stays as it was.
            let added = self.rules.rules().filter(|(_, held)| held.origin == RuleOrigin::Added);
            let compacted = journal.compact(self.rules.next_id(), added.map(|(id, held)| (id, held.stored())));
            compacted.map_err(|source| RulesError::JournalNotWritten { path: path.clone(), source })?;
        }
        self.update_snapshot(&[], &self.rules.rules().map(|(id, _)| id).collect::<Vec<u64>>());
        Ok(())
    }

    /// Reads the journal of an earlier run.
    fn load_journal(&mut self, path: &Path) -> Result<ParsedRules, RulesError> {
        let opened = RuleJournal::open(path);
        let (journal, content) = opened.map_err(|source| RulesError::Journal { path: path.to_owned(), source })?;
        let text: Vec<&str> = content.rules.values().map(|rule| rule.text.as_str()).collect();
        let mut parsed = self.rules.parse(&path.display().to_string(), text.join("\n"), &mut NoIncludes);
        if parsed.diagnostics.has_errors() {
            return Err(RulesError::Mistakes(parsed.diagnostics.render(&parsed.map, false)));
        }
        if parsed.rules.len() != content.rules.len() {
            return Err(RulesError::JournalRules { path: path.to_owned() });
        }
        for (rule, (id, stored)) in parsed.rules.iter_mut().zip(&content.rules) {
            rule.id = Some(*id);
            rule.owner = stored.owner.as_deref().map(Into::into);
        }
        self.rules.reserve_ids(content.next);
        self.journal = Some(journal);
        Ok(parsed)
    }

    /// Reads the text of the rules file.
    fn read(&self, loader: &mut FileLoader) -> Result<String, RulesError> {
        loader.read(&self.file).map_err(|source| RulesError::File { path: self.file.clone(), source })
    }

    /// Parses the rules file. Also returns its text with the places of its rules, unless it includes others.
    fn parse_file(
        &mut self,
        text: String,
        loader: &mut FileLoader,
    ) -> Result<(ParsedRules, Option<FileText>), RulesError> {
        let parsed = self.rules.parse(&self.file.display().to_string(), text.clone(), loader);
        if parsed.diagnostics.has_errors() {
            return Err(RulesError::Mistakes(parsed.diagnostics.render(&parsed.map, false)));
        }
        let is_alone = !parsed.map.contains(FileId(1));
        let file_text = is_alone.then(|| FileText::new(text, parsed.places()));
        Ok((parsed, file_text))
    }

    /// Applies the file as it is now.
    pub(super) fn reload(&mut self) {
        let mut loader = FileLoader::default();
        let applied = self.read(&mut loader).map_err(ChangeError::Mistakes).and_then(|text| {
            if let Some(applied) = self.apply_part(&text) {
                return applied;
            }
            let (parsed, file_text) = self.parse_file(text, &mut loader).map_err(ChangeError::Mistakes)?;
            let (remove, add) = self.rules.compare_file(&parsed.rules);
            let applied = self.apply(&parsed, &remove, add)?;
            self.file_text = file_text;
            Ok(applied)
        });
        self.watch = loader.watch();
        match applied {
            Ok((0, 0, _)) if self.file_mistakes.is_empty() => {}
            Ok((added, removed, writes)) => {
                self.file_mistakes.clear();
                (self.report)(ServiceEvent::Reloaded(added, removed, writes));
            }
            // The file is read again once the switch is reachable.
            Err(ChangeError::SwitchUnavailable(_)) => self.watch.invalidate(),
            Err(error) => {
                self.file_mistakes = error.to_string();
                (self.report)(ServiceEvent::Mistakes(self.file_mistakes.clone()));
            }
        }
    }

    /// Parses and applies the part of the file that has changed. Returns `None` if the whole file has to be parsed: the
    /// part cannot be parsed alone, or there are diagnostics, whose places are those in the file.
    fn apply_part(&mut self, text: &str) -> Option<Result<(usize, usize, usize), ChangeError>> {
        let Some(part) = self.file_text.as_ref()?.difference(text) else { return Some(Ok((0, 0, 0))) };
        let name = self.file.display().to_string();
        let parsed = self.rules.parse(&name, text[part.new.clone()].to_owned(), &mut NoIncludes);
        let places = parsed.places();
        if parsed.diagnostics.iter().next().is_some() {
            return None;
        }
        let file_text = self.file_text.as_ref()?;
        let (remove, add) = self.rules.compare_part(file_text.replaced(&part), &parsed.rules);
        match self.apply(&parsed, &remove, add) {
            Ok(applied) => {
                self.file_text.as_mut()?.replace(&part, text.to_owned(), &places);
                Some(Ok(applied))
            }
            Err(error @ ChangeError::SwitchUnavailable(_)) => Some(Err(error)),
            Err(_) => None,
        }
    }

    /// Applies a change of the file. Returns the number of rules added, of rules removed, and of updates.
    fn apply(
        &mut self,
        parsed: &ParsedRules,
        remove: &[u64],
        add: Vec<NewRule>,
    ) -> Result<(usize, usize, usize), ChangeError> {
        let (added, removed) = (add.len(), remove.len());
        if (added, removed) == (0, 0) {
            return Ok((0, 0, 0));
        }
        self.report_warnings(parsed);
        if self.switch.is_ready() {
            let (_, writes) = self.change(remove, add, RuleOrigin::File, parsed)?;
            return Ok((added, removed, writes));
        }
        // The switch gets the rules when it is reachable. The entries that it holds then are of earlier rules.
        self.rules.bump_generation();
        let changed = self.rules.change(remove, add, RuleOrigin::File, parsed)?;
        self.update_snapshot(remove, &changed.ids);
        let _ = self.persist(&[], &[], RuleOrigin::File);
        if self.switch.rejects_rules() {
            self.switch.reconcile(&mut self.rules, &*self.report);
        }
        Ok((added, removed, 0))
    }
}
