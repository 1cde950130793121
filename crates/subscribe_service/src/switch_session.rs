//! Keeps the state of the service towards its switch: connection, mastership, and whether the switch holds the current
//! rules.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p4runtime_client::{Mastership, ServerTarget};
use p4runtime_proto::v1;
use tokio::runtime::Handle;

use crate::Settings;
use crate::attribution::RejectedUpdate;
use crate::away_reason::AwayReason;
use crate::program_names::ProgramNames;
use crate::rule_set::{RuleSet, SubscriptionProgram};
use crate::service_status::ServiceEvent;
use crate::switch_client::{SwitchClient, SwitchEvent};
use crate::switch_content::SwitchContent;
use crate::switch_error::{StreamEnd, SwitchError, Unreachable};

mod install;
mod repair;

/// Time before a switch that cannot be reached is tried again: at first, and at most. It doubles after each attempt.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// Time before the next attempt where an operator has to change something first.
const OPERATOR_RETRY_DELAY: Duration = Duration::from_secs(20);
/// Maximum distance of an election id from the one in the settings.
const MAX_RAISE: u128 = 1_000;

/// A failure to bring the switch to the rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InstallError {
    /// The switch rejected an update.
    Rejected(RejectedUpdate),
    /// Any other failure of the switch.
    Switch(SwitchError),
}

impl From<SwitchError> for InstallError {
    fn from(error: SwitchError) -> InstallError {
        InstallError::Switch(error)
    }
}

/// The program that the switch runs.
struct LoadedProgram {
    names: ProgramNames,
    atomic: bool,
}

/// The session with the switch.
pub(crate) struct SwitchSession<'a> {
    program: &'a SubscriptionProgram,
    handle: Handle,
    target: ServerTarget,
    device_id: u64,
    election_id: Option<u128>,
    /// Distance of the election id in use from the one in the settings, which another controller has.
    raise: u128,
    keep_program: bool,
    remedy: fn(&AwayReason) -> &'static str,
    on_event: Arc<dyn Fn(u64, SwitchEvent) + Send + Sync>,
    on_slow: Arc<dyn Fn(u64) + Send + Sync>,
    /// Number of the current stream. Events of earlier streams are ignored.
    stream: u64,
    client: Option<SwitchClient>,
    /// The program, if the switch holds the current rules.
    loaded: Option<LoadedProgram>,
    retry_at: Instant,
    retry_delay: Duration,
    detail: String,
    /// The reason in the last event, so that retries do not repeat it.
    reported: Option<AwayReason>,
    /// Whether the switch is reachable and rejected the rules.
    rejects_rules: bool,
    changes: u64,
    /// Generation of the numbers of states that the switch holds, as far as known ([`RuleSet::generation`]).
    generation: Option<u64>,
    /// Entities that the last change wrote or began to write. Some of them may be left although the change was undone.
    attempted: SwitchContent,
    /// Updates that delete unreachable entries, and the time when the last message has left them.
    cleanup: Option<(Instant, Vec<v1::Update>)>,
}

impl<'a> SwitchSession<'a> {
    /// Creates a session without a connection.
    pub fn new(
        program: &'a SubscriptionProgram,
        settings: &Settings,
        handle: Handle,
        on_event: impl Fn(u64, SwitchEvent) + Send + Sync + 'static,
        on_slow: impl Fn(u64) + Send + Sync + 'static,
    ) -> SwitchSession<'a> {
        SwitchSession {
            program,
            handle,
            target: settings.switch.clone(),
            device_id: settings.device_id,
            election_id: settings.election_id,
            raise: 0,
            keep_program: settings.keep_program,
            remedy: settings.remedy,
            on_event: Arc::new(on_event),
            on_slow: Arc::new(on_slow),
            stream: 0,
            client: None,
            loaded: None,
            retry_at: Instant::now(),
            retry_delay: RETRY_DELAYS[0],
            detail: "not yet connected to the switch".to_owned(),
            reported: None,
            rejects_rules: false,
            changes: 0,
            generation: None,
            attempted: SwitchContent::default(),
            cleanup: None,
        }
    }

    /// Sets the time at which all calls from now on have to be done.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        if let Some(client) = &mut self.client {
            client.set_deadline(deadline);
        }
    }

    /// Whether the switch delivers by all current rules.
    pub fn is_ready(&self) -> bool {
        self.loaded.is_some()
    }

    /// Whether the switch holds states with the same numbers as the rules.
    pub fn has_generation_of(&self, rules: &RuleSet<'_>) -> bool {
        self.generation == Some(rules.generation())
    }

    /// Returns the current activity as a sentence.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the number of changes of the switch's tables.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Does the work that is due: cleans up, connects, or tries the rules again.
    pub fn poll(&mut self, rules: &mut RuleSet<'_>, now: Instant, report: &dyn Fn(ServiceEvent)) {
        if self.cleanup.as_ref().is_some_and(|(due, _)| *due <= now)
            && let Err(error) = self.clean_up()
        {
            self.handle_failure(error, rules, report);
        }
        if now < self.retry_at {
            return;
        }
        if self.client.is_some() {
            if self.rejects_rules {
                self.reconcile(rules, report);
            }
            return;
        }
        self.stream += 1;
        let (stream, on_event, on_slow) = (self.stream, self.on_event.clone(), self.on_slow.clone());
        let on_event = move |event| on_event(stream, event);
        let election_id = self.wanted_election_id();
        match SwitchClient::open(&self.handle, &self.target, self.device_id, election_id, on_slow, on_event) {
            Ok(client) => {
                self.client = Some(client);
                self.detail = "waiting for the switch to report the primary".to_owned();
            }
            Err(end) => self.end_stream(AwayReason::NotReached, end, report),
        }
    }

    /// Returns the election id to ask for, if the settings have one.
    fn wanted_election_id(&self) -> Option<u128> {
        self.election_id.map(|id| id.saturating_add(self.raise))
    }

    /// Handles the end of the stream; `lost` is the reason if the switch is away.
    fn end_stream(&mut self, lost: fn(Unreachable) -> AwayReason, end: StreamEnd, report: &dyn Fn(ServiceEvent)) {
        match end {
            StreamEnd::Lost(why) => self.disconnect(lost(why), report),
            StreamEnd::NoDevice(message) => {
                self.await_operator(AwayReason::NoDevice { device_id: self.device_id, message }, report);
            }
            StreamEnd::ElectionIdTaken(message) => {
                // Another controller has this id, and gives way to a higher one.
                self.raise = next_raise(self.raise);
                self.disconnect(AwayReason::ElectionIdTaken(message), report);
            }
        }
    }

    /// Describes why the switch cannot be used, with the remedy.
    pub fn describe(&self, why: &AwayReason) -> String {
        format!("{why}{}", (self.remedy)(why))
    }

    /// Marks the switch as not holding the current rules.
    fn invalidate(&mut self) {
        (self.loaded, self.cleanup, self.rejects_rules) = (None, None, false);
    }

    /// Drops the connection, and tries again later.
    fn disconnect(&mut self, why: AwayReason, report: &dyn Fn(ServiceEvent)) {
        self.invalidate();
        self.client = None;
        self.retry_at = Instant::now() + self.retry_delay;
        self.retry_delay = (self.retry_delay * 2).min(RETRY_DELAYS[1]);
        self.report_away(why, report);
    }

    /// Drops the connection until an operator has changed something, and tries again rarely.
    fn await_operator(&mut self, why: AwayReason, report: &dyn Fn(ServiceEvent)) {
        self.disconnect(why, report);
        self.retry_at = Instant::now() + OPERATOR_RETRY_DELAY;
    }

    /// Reports that the switch cannot be used, once for each reason.
    fn report_away(&mut self, why: AwayReason, report: &dyn Fn(ServiceEvent)) {
        self.detail = self.describe(&why);
        if self.reported.as_ref() != Some(&why) {
            self.reported = Some(why.clone());
            report(ServiceEvent::Away(why));
        }
    }

    /// Whether the switch is reachable and rejects the rules, so other rules may help.
    pub fn rejects_rules(&self) -> bool {
        self.rejects_rules
    }

    /// Handles an event of a stream.
    pub fn handle_event(
        &mut self,
        stream: u64,
        event: SwitchEvent,
        rules: &mut RuleSet<'_>,
        report: &dyn Fn(ServiceEvent),
    ) {
        let own = self.wanted_election_id();
        let Some(client) = self.client.as_mut().filter(|_| stream == self.stream) else { return };
        match event {
            SwitchEvent::StreamEnded(end) => self.end_stream(AwayReason::WentAway, end, report),
            SwitchEvent::Mastership(Mastership::NoPrimary { highest }) => {
                client.claim(highest.unwrap_or(0).max(own.unwrap_or(1)).max(1));
            }
            SwitchEvent::Mastership(Mastership::Backup { election_id }) => {
                self.invalidate();
                let election_id = Some(election_id.unwrap_or(0));
                self.report_away(AwayReason::OtherPrimary { election_id }, report);
            }
            SwitchEvent::Mastership(Mastership::Primary { .. }) if self.loaded.is_some() => {}
            SwitchEvent::Mastership(Mastership::Primary { .. }) => self.reconcile(rules, report),
        }
    }

    /// Handles a change that was not made.
    pub fn handle_failure(&mut self, error: InstallError, rules: &mut RuleSet<'_>, report: &dyn Fn(ServiceEvent)) {
        match error {
            // The switch may have executed a part: its state is read.
            InstallError::Rejected(_)
            | InstallError::Switch(
                SwitchError::Rejected(_) | SwitchError::Unimplemented | SwitchError::Incompatible(_),
            ) => self.reconcile(rules, report),
            InstallError::Switch(SwitchError::NotPrimary) => self.lose_mastership(report),
            InstallError::Switch(SwitchError::Unreachable(why)) => {
                self.disconnect(AwayReason::WentAway(why), report);
            }
        }
    }

    fn lose_mastership(&mut self, report: &dyn Fn(ServiceEvent)) {
        self.invalidate();
        self.report_away(AwayReason::OtherPrimary { election_id: None }, report);
    }

    /// Brings the switch to the rules.
    pub fn reconcile(&mut self, rules: &mut RuleSet<'_>, report: &dyn Fn(ServiceEvent)) {
        self.invalidate();
        match self.try_reconcile(rules, report) {
            Ok(event) => {
                self.detail = "the rules are in effect".to_owned();
                self.reported = None;
                (self.generation, self.attempted) = (Some(rules.generation()), SwitchContent::default());
                self.retry_delay = RETRY_DELAYS[0];
                self.changes += 1;
                report(event);
            }
            Err(InstallError::Rejected(update)) => {
                // The stream stays open: other rules may come.
                self.rejects_rules = true;
                self.retry_at = Instant::now() + OPERATOR_RETRY_DELAY;
                self.report_away(AwayReason::RejectedUpdate(rules.attribute(&update, &[])), report);
            }
            Err(InstallError::Switch(SwitchError::NotPrimary)) => self.lose_mastership(report),
            Err(InstallError::Switch(SwitchError::Unreachable(why))) => {
                self.disconnect(AwayReason::WentAway(why), report);
            }
            Err(InstallError::Switch(SwitchError::Rejected(rejection))) => {
                self.await_operator(AwayReason::Refused(rejection.reason), report);
            }
            Err(InstallError::Switch(SwitchError::Incompatible(why))) => {
                self.await_operator(AwayReason::Incompatible(why), report);
            }
            Err(InstallError::Switch(SwitchError::Unimplemented)) => {
                self.await_operator(AwayReason::Unimplemented, report);
            }
        }
    }
}

/// Returns the distance to try next, after another controller had the election id at this one.
fn next_raise(raise: u128) -> u128 {
    if raise < MAX_RAISE { raise + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn election_ids_are_raised_one_by_one_and_then_begin_again() {
        let tried: Vec<u128> = std::iter::successors(Some(0), |raise| Some(next_raise(*raise))).take(1_003).collect();
        assert_eq!((tried[1], tried[1_000], tried[1_001], tried[1_002]), (1, 1_000, 0, 1));
    }
}
