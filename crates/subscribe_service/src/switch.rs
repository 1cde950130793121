//! The switch as it is now: away, held by another controller, or with all the rules; and what brings it to the last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p4runtime_proto::v1;
use tokio::runtime::Handle;
use tonic::transport::Endpoint;

use crate::Settings;
use crate::blame::Refused;
use crate::book::{Book, Program};
use crate::content::Content;
use crate::link::{Link, Standing, Told};
use crate::names::Names;
use crate::status::Event;
use crate::trouble::{End, Trouble, clean};

mod mend;
mod writes;

/// How long to wait until a switch that is away is tried again: at first, and at most.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// The same where somebody has to change something first.
const RETRY_UNFIT: Duration = Duration::from_secs(20);
/// How far above the election id that was asked for others are tried.
const MOST_RAISED: u128 = 1_000;

/// Why a change was not made at the switch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failed {
    /// The switch refused something.
    Refused(Refused),
    /// It cannot be written to.
    Trouble(Trouble),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Failed {
        Failed::Trouble(trouble)
    }
}

/// A program as the switch has it.
struct Ready {
    names: Names,
    atomic: bool,
}

/// The switch.
pub(crate) struct Switch<'a> {
    program: &'a Program,
    handle: Handle,
    endpoint: Endpoint,
    device_id: u64,
    election_id: Option<u128>,
    /// How much higher a free election id was looked for.
    raised: u128,
    keep_program: bool,
    tell: Arc<dyn Fn(u64, Told) + Send + Sync>,
    slow: Arc<dyn Fn(u64) + Send + Sync>,
    /// Which stream is the one that counts.
    stream: u64,
    link: Option<Link>,
    ready: Option<Ready>,
    retry_at: Instant,
    retry: Duration,
    detail: String,
    /// What was told last, so that it is not told at each try.
    said: String,
    /// The switch is there, and refuses the rules.
    refuses: bool,
    changes: u64,
    /// Which numbers the states have that it holds, as far as it is known ([`Book::numbering`]).
    numbering: Option<u64>,
    /// What the last change wrote, or began to: the switch may hold some of it that is not to stay.
    tried: Content,
    /// What nothing leads to any more, and when the last message that was on its way to it has left.
    clean: Option<(Instant, Vec<v1::Update>)>,
}

impl<'a> Switch<'a> {
    pub fn new(
        program: &'a Program,
        settings: &Settings,
        handle: Handle,
        tell: impl Fn(u64, Told) + Send + Sync + 'static,
        slow: impl Fn(u64) + Send + Sync + 'static,
    ) -> Switch<'a> {
        Switch {
            program,
            handle,
            endpoint: settings.switch.clone(),
            device_id: settings.device_id,
            election_id: settings.election_id,
            raised: 0,
            keep_program: settings.keep_program,
            tell: Arc::new(tell),
            slow: Arc::new(slow),
            stream: 0,
            link: None,
            ready: None,
            retry_at: Instant::now(),
            retry: RETRY[0],
            detail: "the switch has not been reached yet".to_owned(),
            said: String::new(),
            refuses: false,
            changes: 0,
            numbering: None,
            tried: Content::default(),
            clean: None,
        }
    }

    /// All calls to it from now on have to be done until then.
    pub fn wait_until(&mut self, until: Option<Instant>) {
        if let Some(link) = &mut self.link {
            link.wait_until(until);
        }
    }

    /// Whether it delivers by all the rules.
    pub fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Whether it holds states of the numbers that the book has.
    pub fn counts_as(&self, book: &Book<'_>) -> bool {
        self.numbering == Some(book.numbering())
    }

    /// What it is doing, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// How often its tables were changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Does what is due: connects, deletes what nothing leads to.
    pub fn tend(&mut self, book: &mut Book<'_>, now: Instant, tell: &dyn Fn(Event)) {
        if self.clean.as_ref().is_some_and(|(due, _)| *due <= now)
            && let Err(failed) = self.clean()
        {
            self.failed(failed, book, tell);
        }
        if now < self.retry_at {
            return;
        }
        if self.link.is_some() {
            if self.refuses {
                self.settle(book, tell);
            }
            return;
        }
        self.stream += 1;
        let (stream, told, slow) = (self.stream, self.tell.clone(), self.slow.clone());
        let told = move |what| told(stream, what);
        let opened = Link::open(&self.handle, &self.endpoint, self.device_id, self.wanted_id(), slow, told);
        match opened {
            Ok(link) => {
                self.link = Some(link);
                self.detail = "waiting for the switch to say who is primary".to_owned();
            }
            Err(end) => self.ended("the switch cannot be reached", end, tell),
        }
    }

    /// The election id to ask for, if one was given.
    fn wanted_id(&self) -> Option<u128> {
        self.election_id.map(|id| id.saturating_add(self.raised))
    }

    /// There is no stream.
    fn ended(&mut self, how: &str, end: End, tell: &dyn Fn(Event)) {
        match end {
            End::Gone(why) => self.away(format!("{how}: {why}"), tell),
            End::NoDevice(why) => {
                let id = self.device_id;
                let remedy = "give --device-id the number of a device that it has";
                self.unfit(format!("there is no device {id} at the switch's address ({why}): {remedy}"), tell);
            }
            End::Taken(why) => {
                // Who waits for any place took this one, and gives way to a higher one.
                self.raised = raise(self.raised);
                self.away(format!("the switch refused the election id: {why}"), tell);
            }
        }
    }

    /// The switch is of no use now; it is tried again.
    fn away(&mut self, why: String, tell: &dyn Fn(Event)) {
        (self.link, self.ready, self.clean, self.refuses) = (None, None, None, false);
        self.retry_at = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(RETRY[1]);
        self.say(why, tell);
    }

    /// The same until somebody changes something, which is looked for less often.
    fn unfit(&mut self, why: String, tell: &dyn Fn(Event)) {
        self.away(why, tell);
        self.retry_at = Instant::now() + RETRY_UNFIT;
    }

    fn say(&mut self, why: String, tell: &dyn Fn(Event)) {
        // Names in it may be those of the switch's program.
        let why = clean(&why);
        self.detail.clone_from(&why);
        if self.said != why {
            self.said.clone_from(&why);
            tell(Event::Away(why));
        }
    }

    /// Whether it is there and refuses the rules, so that other rules may help.
    pub fn refuses(&self) -> bool {
        self.refuses
    }

    /// A stream brings something.
    pub fn told(&mut self, stream: u64, told: Told, book: &mut Book<'_>, tell: &dyn Fn(Event)) {
        let own = self.wanted_id();
        let Some(link) = self.link.as_mut().filter(|_| stream == self.stream) else { return };
        match told {
            Told::Ended(end) => self.ended("the switch went away", end, tell),
            Told::Standing(Standing::Nobody(highest)) => {
                let wanted = highest.max(own.unwrap_or(1)).max(1);
                link.claim(wanted);
            }
            Told::Standing(Standing::Other(id)) => {
                (self.ready, self.clean, self.refuses) = (None, None, false);
                self.say(format!("another controller is primary, with election id {id}"), tell);
            }
            Told::Standing(Standing::Primary) if self.ready.is_some() => {}
            Told::Standing(Standing::Primary) => self.settle(book, tell),
        }
    }

    /// A change was not made.
    pub fn failed(&mut self, failed: Failed, book: &mut Book<'_>, tell: &dyn Fn(Event)) {
        match failed {
            // Nothing, or something: what it has is looked at.
            Failed::Refused(_) | Failed::Trouble(Trouble::Refused(_) | Trouble::Unimplemented | Trouble::Unfit(_)) => {
                self.settle(book, tell);
            }
            Failed::Trouble(Trouble::NotPrimary) => self.not_primary(tell),
            Failed::Trouble(Trouble::Gone(why)) => self.away(format!("the switch went away: {why}"), tell),
        }
    }

    fn not_primary(&mut self, tell: &dyn Fn(Event)) {
        (self.ready, self.clean, self.refuses) = (None, None, false);
        self.say("another controller is primary".to_owned(), tell);
    }

    /// Brings the switch to what the book says.
    pub fn settle(&mut self, book: &mut Book<'_>, tell: &dyn Fn(Event)) {
        (self.ready, self.clean, self.refuses) = (None, None, false);
        match self.try_settle(book, tell) {
            Ok(event) => {
                self.detail = "delivers by the rules".to_owned();
                self.said.clear();
                (self.numbering, self.tried) = (Some(book.numbering()), Content::default());
                self.retry = RETRY[0];
                self.changes += 1;
                tell(event);
            }
            Err(Failed::Refused(refused)) => {
                // The stream stays: other rules may come.
                self.refuses = true;
                self.retry_at = Instant::now() + RETRY_UNFIT;
                self.say(book.blame(&refused, &[]), tell);
            }
            Err(Failed::Trouble(Trouble::NotPrimary)) => self.not_primary(tell),
            Err(Failed::Trouble(Trouble::Gone(why))) => self.away(format!("the switch went away: {why}"), tell),
            Err(Failed::Trouble(Trouble::Refused(refusal))) => {
                self.unfit(format!("the switch refused: {}", refusal.why), tell);
            }
            Err(Failed::Trouble(Trouble::Unfit(why))) => self.unfit(why, tell),
            Err(Failed::Trouble(Trouble::Unimplemented)) => {
                self.unfit("the switch cannot do what is asked of it".to_owned(), tell);
            }
        }
    }
}

/// How far above the election id that was asked for is tried next, once another controller had this one.
fn raise(raised: u128) -> u128 {
    if raised < MOST_RAISED { raised + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn election_ids_are_raised_one_by_one_and_then_begin_again() {
        let tried: Vec<u128> = std::iter::successors(Some(0), |raised| Some(raise(*raised))).take(1_003).collect();
        assert_eq!((tried[1], tried[1_000], tried[1_001], tried[1_002]), (1, 1_000, 0, 1));
    }
}
