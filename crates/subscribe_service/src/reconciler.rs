//! Runs the thread that changes rules. It makes one change after the other, and each on the switch before the client
//! gets its answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use subscribe::NoIncludes;
use tokio::sync::watch;

use crate::arbitration_inbox::ArbitrationInbox;
use crate::away_reason::AwayReason;
use crate::file_text::FileText;
use crate::pending_call::PendingCall;
use crate::rule_author::RuleAuthor;
use crate::rule_files::FileWatch;
use crate::rule_journal::RuleJournal;
use crate::rule_set::{AppliedChange, NewRule, ParsedRules, RuleOrigin, RuleSet, RuleSetError, SubscriptionProgram};
use crate::rule_snapshot::{ListedRule, RuleSnapshot};
use crate::rules_error::RulesError;
use crate::service_status::{ServiceEvent, ServiceStatus};
use crate::switch_error::{SwitchError, SwitchRejection};
use crate::switch_session::{InstallError, SwitchSession};
use crate::{Settings, StartError};

mod rule_input;

/// Interval at which files and the switch are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time of a change at the switch, including a reconciliation after a rejection.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(80);

/// The state of a switch that rejects rules, for clients that may not see them all.
pub(crate) const REJECTS_RULES: &str = "the switch rejects a rule";

/// A command for the thread.
pub(crate) enum Command {
    /// Adds the rules of a text; the answer has their ids and the number of updates.
    Subscribe(String, RuleAuthor, PendingCall<Result<(Vec<u64>, usize), ChangeError>>),
    /// Removes rules; the answer has the number of updates.
    Unsubscribe(Vec<u64>, RuleAuthor, PendingCall<Result<usize, ChangeError>>),
    /// Handles the events in the inbox.
    HandleEvents,
    /// Ends the thread.
    Stop,
}

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// The rules have mistakes, or their file cannot be read.
    #[error(transparent)]
    Mistakes(RulesError),
    /// The text has no rule.
    #[error("no rules found; a rule looks like: stock == \"GOOGL\" : fwd(2)")]
    NoRules,
    /// The rules cannot be compiled together with the others.
    #[error(transparent)]
    Rules(#[from] RuleSetError),
    /// The call has too many rules.
    #[error("{count} rules in one call; the maximum is {max}")]
    TooManyRules { count: usize, max: usize },
    /// There is no rule with this id.
    #[error("there is no rule {0}")]
    NotFound(u64),
    /// The rule belongs to the file, which this service does not change.
    #[error("rule {id} is defined in {}: remove it there", file.display())]
    InFile { id: u64, file: PathBuf },
    /// The client has no right to make the change. The text names user, action and object.
    #[error("{0}")]
    Denied(String),
    /// The switch rejected the rules.
    #[error("{reason}{}", undo_failure.as_ref().map_or(String::new(), |failure| format!("; {failure}")))]
    RejectedBySwitch { reason: String, undo_failure: Option<UndoFailure> },
    /// The switch cannot be used now.
    #[error("nothing was changed: {0}")]
    SwitchUnavailable(String),
    /// The journal cannot be written.
    #[error("nothing was changed: the change cannot be stored in the journal of added rules: {0}")]
    NotPersisted(#[source] std::io::Error),
}

/// A change that the switch rejected and that could not be reverted.
#[derive(Debug, thiserror::Error)]
#[error("and the previous rules can no longer be compiled, so the changed rules stay: {0}")]
pub(crate) struct UndoFailure(RuleSetError);

/// The rules, the switch that has to follow them, and the files that they come from.
pub(crate) struct Reconciler<'a> {
    rules: RuleSet<'a>,
    switch: SwitchSession<'a>,
    file: PathBuf,
    watch: FileWatch,
    /// The file as it was applied, unless it has includes.
    file_text: Option<FileText>,
    last_poll: Instant,
    journal: Option<RuleJournal>,
    /// Rendered mistakes of the file; empty if it has none.
    file_mistakes: String,
    max_request_rules: usize,
    status: Arc<watch::Sender<ServiceStatus>>,
    snapshot: Arc<RuleSnapshot>,
    inbox: Arc<ArbitrationInbox>,
    report: Box<dyn Fn(ServiceEvent) + Send>,
}

impl<'a> Reconciler<'a> {
    /// Reads the rules from the file and the journal, without a connection to the switch.
    ///
    /// # Errors
    /// If the rules have mistakes, or a file cannot be read or written.
    pub fn new(
        program: &'a SubscriptionProgram,
        settings: &Settings,
        handle: tokio::runtime::Handle,
        commands: Sender<Command>,
        status: watch::Sender<ServiceStatus>,
        snapshot: Arc<RuleSnapshot>,
        report: Box<dyn Fn(ServiceEvent) + Send>,
    ) -> Result<Reconciler<'a>, StartError> {
        let inbox: Arc<ArbitrationInbox> = Arc::default();
        let events = inbox.clone();
        let on_event = move |stream, event| {
            if events.put(stream, event) {
                let _ = commands.send(Command::HandleEvents);
            }
        };
        let status = Arc::new(status);
        let shared = status.clone();
        // The thread waits for the switch then, and cannot update the status itself.
        let on_slow = move |seconds: u64| {
            let detail = format!("waiting for the switch, which has not responded for {seconds} s");
            shared.send_modify(|status| status.detail = detail);
        };
        let mut reconciler = Reconciler {
            rules: RuleSet::new(program, settings.max_rules),
            switch: SwitchSession::new(program, settings, handle, on_event, on_slow),
            file: settings.rules.clone(),
            watch: FileWatch::default(),
            last_poll: Instant::now(),
            journal: None,
            file_mistakes: String::new(),
            file_text: None,
            max_request_rules: settings.max_request_rules,
            status,
            snapshot,
            inbox,
            report,
        };
        reconciler.load_rules(settings)?;
        Ok(reconciler)
    }

    /// Returns the rules file and its includes.
    pub fn files(&self) -> Vec<PathBuf> {
        self.watch.paths()
    }

    /// Runs until a command stops it.
    pub fn run(mut self, commands: &Receiver<Command>) {
        self.update_status();
        loop {
            match commands.recv_timeout(POLL_INTERVAL) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if now.duration_since(self.last_poll) >= POLL_INTERVAL {
                self.last_poll = now;
                if self.watch.has_changed(now) {
                    self.reload();
                }
                self.switch.poll(&mut self.rules, now, &*self.report);
            }
            self.update_status();
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Subscribe(text, client, call) if call.begin() => {
                let result = self.with_deadline(|reconciler| reconciler.subscribe(text, &client));
                call.answer(result);
            }
            Command::Unsubscribe(ids, client, call) if call.begin() => {
                let result = self.with_deadline(|reconciler| reconciler.unsubscribe(ids, &client));
                call.answer(result);
            }
            Command::HandleEvents => {
                for (stream, event) in self.inbox.take() {
                    self.switch.handle_event(stream, event, &mut self.rules, &*self.report);
                }
            }
            // The client has given up.
            Command::Subscribe(..) | Command::Unsubscribe(..) | Command::Stop => {}
        }
    }

    /// Limits the time of the switch in a change that a client waits for.
    fn with_deadline<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        self.switch.set_deadline(Some(Instant::now() + CHANGE_TIMEOUT));
        let result = change(self);
        self.switch.set_deadline(None);
        result
    }

    /// Applies a change to the snapshot that clients list.
    fn update_snapshot(&self, removed: &[u64], added: &[u64]) {
        let listed = |id: &u64| {
            let held = self.rules.get(*id)?;
            let in_file = held.origin == RuleOrigin::File;
            Some((*id, ListedRule { text: held.text.clone(), in_file, owner: held.owner.clone() }))
        };
        self.snapshot.apply(removed, added.iter().filter_map(listed));
    }

    /// Sends the status to the clients that watch, if it has changed.
    fn update_status(&self) {
        let status = ServiceStatus {
            installed: self.switch.is_ready(),
            detail: self.switch.detail().to_owned(),
            quotes_rules: self.switch.rejects_rules(),
            rules: self.rules.len() as u64,
            rules_in_file: self.rules.in_file() as u64,
            changes: self.switch.changes(),
            mistakes: self.file_mistakes.clone(),
        };
        self.status.send_if_modified(|current| {
            let has_changed = *current != status;
            *current = status;
            has_changed
        });
    }

    fn subscribe(&mut self, text: String, client: &RuleAuthor) -> Result<(Vec<u64>, usize), ChangeError> {
        self.expect_reachable()?;
        let mut parsed = self.rules.parse("rules", text, &mut NoIncludes);
        if parsed.diagnostics.has_errors() {
            return Err(ChangeError::Mistakes(RulesError::Mistakes(parsed.diagnostics.render(&parsed.map, false))));
        }
        let mut new = std::mem::take(&mut parsed.rules);
        let (count, max) = (new.len(), self.max_request_rules);
        if count == 0 {
            return Err(ChangeError::NoRules);
        }
        if count > max {
            return Err(ChangeError::TooManyRules { count, max });
        }
        for rule in &mut new {
            client.check_add(rule.rule(), self.rules.format()).map_err(ChangeError::Denied)?;
            rule.owner = client.owner();
        }
        let changed = self.change(&[], new, RuleOrigin::Added, &parsed);
        let (ids, writes) = changed.map_err(|error| self.without_rules_of_others(error, client))?;
        self.report_warnings(&parsed);
        (self.report)(ServiceEvent::Added(ids.clone()));
        Ok((ids, writes))
    }

    fn unsubscribe(&mut self, mut ids: Vec<u64>, client: &RuleAuthor) -> Result<usize, ChangeError> {
        self.expect_reachable()?;
        ids.sort_unstable();
        ids.dedup();
        for id in &ids {
            let held = self.rules.get(*id);
            let owner = held.and_then(|held| held.owner.as_deref());
            match held.map(|held| held.origin) {
                Some(RuleOrigin::Added) => client.check_remove(*id, owner).map_err(ChangeError::Denied)?,
                None => return Err(ChangeError::NotFound(*id)),
                Some(RuleOrigin::File) => return Err(ChangeError::InFile { id: *id, file: self.file.clone() }),
            }
        }
        let parsed = self.rules.parse("rules", String::new(), &mut NoIncludes);
        let changed = self.change(&ids, Vec::new(), RuleOrigin::Added, &parsed);
        let (_, writes) = changed.map_err(|error| self.without_rules_of_others(error, client))?;
        (self.report)(ServiceEvent::Removed(ids));
        Ok(writes)
    }

    /// Removes the quotes of rules that a client may not see from the error of a change.
    fn without_rules_of_others(&self, error: ChangeError, client: &RuleAuthor) -> ChangeError {
        if !self.switch.rejects_rules() || client.sees_all() {
            return error;
        }
        match error {
            ChangeError::RejectedBySwitch { undo_failure, .. } => {
                ChangeError::RejectedBySwitch { reason: REJECTS_RULES.to_owned(), undo_failure }
            }
            ChangeError::SwitchUnavailable(_) => ChangeError::SwitchUnavailable(REJECTS_RULES.to_owned()),
            other => other,
        }
    }

    /// Checks that the switch is reachable and this service its primary.
    fn expect_reachable(&self) -> Result<(), ChangeError> {
        if self.switch.is_ready() || self.switch.rejects_rules() {
            return Ok(());
        }
        Err(ChangeError::SwitchUnavailable(self.switch.detail().to_owned()))
    }

    /// Makes a change in the rule set and at the switch, or in neither.
    fn change(
        &mut self,
        remove: &[u64],
        add: Vec<NewRule>,
        origin: RuleOrigin,
        parsed: &ParsedRules,
    ) -> Result<(Vec<u64>, usize), ChangeError> {
        if self.switch.rejects_rules() {
            // The switch holds entries of earlier rules and of rejected ones.
            self.rules.bump_generation();
        }
        let changed = match self.rules.change(remove, add, origin, parsed) {
            Ok(changed) => changed,
            Err(error) => {
                if self.switch.is_ready() && !self.switch.has_generation_of(&self.rules) {
                    self.switch.reconcile(&mut self.rules, &*self.report);
                }
                return Err(error.into());
            }
        };
        let writes = changed.steps.len();
        if self.switch.rejects_rules() {
            // The switch does not hold the current rules; with this change it may accept them all.
            self.switch.reconcile(&mut self.rules, &*self.report);
            if !self.switch.is_ready() {
                return Err(self.revert_rejected(changed));
            }
        } else if let Err(error) = self.switch.write(&changed.steps) {
            return Err(self.revert(changed, error));
        }
        if let Err(error) = self.persist(remove, &changed.ids, origin) {
            self.revert(changed, SwitchError::Rejected(SwitchRejection::default()).into());
            return Err(ChangeError::NotPersisted(error));
        }
        self.update_snapshot(remove, &changed.ids);
        Ok((changed.ids, writes))
    }

    /// Writes a change to the journal.
    fn persist(&mut self, removed: &[u64], added: &[u64], origin: RuleOrigin) -> std::io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if origin == RuleOrigin::File {
            // A reused id does not justify rejecting a file.
            let _ = journal.reserve_ids(self.rules.next_id());
            return Ok(());
        }
        if !added.is_empty() {
            journal.add(added.iter().filter_map(|id| Some((*id, self.rules.get(*id)?.stored()))))?;
        }
        if !removed.is_empty() {
            journal.remove(removed)?;
        }
        Ok(())
    }

    /// Reverts a change in the rule set.
    fn undo(&mut self, changed: AppliedChange<'a>) -> Result<(), UndoFailure> {
        let (removed, added) = (changed.removed(), changed.ids.clone());
        self.rules.undo(changed).map_err(|error| {
            self.update_snapshot(&removed, &added);
            UndoFailure(error)
        })
    }

    /// Reverts a change with which the switch still rejects the rules.
    fn revert_rejected(&mut self, changed: AppliedChange<'a>) -> ChangeError {
        let reason = self.switch.detail().to_owned();
        match self.undo(changed) {
            Err(failure) => ChangeError::RejectedBySwitch { reason, undo_failure: Some(failure) },
            Ok(()) if self.switch.rejects_rules() => ChangeError::RejectedBySwitch { reason, undo_failure: None },
            Ok(()) => ChangeError::SwitchUnavailable(reason),
        }
    }

    /// Reverts a change that the switch did not take, and reconciles the switch.
    fn revert(&mut self, changed: AppliedChange<'a>, error: InstallError) -> ChangeError {
        let reason = match &error {
            InstallError::Rejected(update) => Some(self.rules.attribute(update, &changed.ids)),
            InstallError::Switch(SwitchError::Rejected(rejection)) => {
                Some(format!("the switch rejected the request: {}", rejection.reason))
            }
            InstallError::Switch(SwitchError::Incompatible(why)) => {
                Some(self.switch.describe(&AwayReason::Incompatible(why.clone())))
            }
            InstallError::Switch(SwitchError::Unimplemented) => Some("the switch does not support this".to_owned()),
            InstallError::Switch(SwitchError::NotPrimary | SwitchError::Unreachable(_)) => None,
        };
        let undone = self.undo(changed);
        self.switch.handle_failure(error, &mut self.rules, &*self.report);
        match reason {
            Some(reason) => ChangeError::RejectedBySwitch { reason, undo_failure: undone.err() },
            None => ChangeError::SwitchUnavailable(self.switch.detail().to_owned()),
        }
    }

    /// Reports the warnings about rules that were accepted.
    fn report_warnings(&self, parsed: &ParsedRules) {
        let warnings = parsed.diagnostics.render(&parsed.map, false);
        if !warnings.is_empty() {
            (self.report)(ServiceEvent::Warnings(warnings));
        }
    }
}
