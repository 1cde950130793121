//! Reads the sources of rules: the rules file, and the journal of rules that were added.

use std::path::Path;

use subscribe::NoIncludes;

use super::{ChangeError, Reconciler};
use crate::Settings;
use crate::rule_files::{FileLoader, FileWatch};
use crate::rule_journal::RuleJournal;
use crate::rule_set::{ParsedRules, RuleOrigin};
use crate::rules_error::RulesError;
use crate::service_status::ServiceEvent;

impl Reconciler<'_> {
    /// Reads all rules at the start.
    pub(super) fn load_rules(&mut self, settings: &Settings) -> Result<(), RulesError> {
        let mut added = match &settings.kept {
            Some(path) => Some(self.load_journal(path)?),
            None => None,
        };
        let (parsed, watch) = self.read_file();
        self.watch = watch;
        let mut parsed = parsed?;
        self.rules.choose_order(added.iter().flat_map(|added| &added.rules).chain(&parsed.rules));
        if let Some(added) = &mut added {
            let new = std::mem::take(&mut added.rules);
            self.rules.change(&[], new, RuleOrigin::Added, added)?;
        }
        let new = std::mem::take(&mut parsed.rules);
        self.rules.change(&[], new, RuleOrigin::File, &parsed)?;
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

    /// Reads the rules file.
    fn read_file(&mut self) -> (Result<ParsedRules, RulesError>, FileWatch) {
        let mut loader = FileLoader::default();
        let name = self.file.display().to_string();
        let parsed = match loader.read(&self.file) {
            Ok(text) => {
                let parsed = self.rules.parse(&name, text, &mut loader);
                if parsed.diagnostics.has_errors() {
                    Err(RulesError::Mistakes(parsed.diagnostics.render(&parsed.map, false)))
                } else {
                    Ok(parsed)
                }
            }
            Err(source) => Err(RulesError::File { path: self.file.clone(), source }),
        };
        (parsed, loader.watch())
    }

    /// Applies the file as it is now.
    pub(super) fn reload(&mut self) {
        let (parsed, watch) = self.read_file();
        self.watch = watch;
        match parsed.map_err(ChangeError::Mistakes).and_then(|parsed| self.apply_file(&parsed)) {
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

    /// Applies the differences between the file and the rule set. Returns the number of rules added, of rules removed,
    /// and of updates.
    fn apply_file(&mut self, parsed: &ParsedRules) -> Result<(usize, usize, usize), ChangeError> {
        let (remove, add) = self.rules.compare_file(&parsed.rules);
        let (added, removed) = (add.len(), remove.len());
        if (added, removed) == (0, 0) {
            return Ok((0, 0, 0));
        }
        self.report_warnings(parsed);
        if self.switch.is_ready() {
            let (_, writes) = self.change(&remove, add, RuleOrigin::File, parsed)?;
            return Ok((added, removed, writes));
        }
        // The switch gets the rules when it is reachable. The entries that it holds then are of earlier rules.
        self.rules.bump_generation();
        let changed = self.rules.change(&remove, add, RuleOrigin::File, parsed)?;
        self.update_snapshot(&remove, &changed.ids);
        let _ = self.persist(&[], &[], RuleOrigin::File);
        if self.switch.rejects_rules() {
            self.switch.reconcile(&mut self.rules, &*self.report);
        }
        Ok((added, removed, 0))
    }
}
