//! The switch as it is now: away, held by another controller, or with all the rules; and what brings it to the last.

use std::time::{Duration, Instant};

use p4runtime_proto::v1;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::write_request::Atomicity;
use subscribe::Writes;
use subscribe_p4::entries::{Steps, Update};
use tokio::runtime::Handle;
use tonic::transport::Endpoint;

use crate::Settings;
use crate::book::{Book, Program};
use crate::content::{self, Content};
use crate::fit;
use crate::link::{End, Link, Standing, Told, Trouble};
use crate::names::{Missing, Names};
use crate::status::Event;

/// How long to wait until a switch that is away is tried again: at first, and at most.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// Updates of one write where the whole need not be one.
const PIECE: usize = 10_000;
/// How long messages may take through a switch that takes writes one after the other.
const PAUSE: Duration = Duration::from_millis(100);

/// What helps where the switch has a program that is not for the rules.
const REMADE: &str = "Make the program again with the `--order` that `serve` has, and load it; or, if the switch is \
                      Triplane's, leave out --keep-program, and `serve` loads it";

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
    keep_program: bool,
    tell: std::sync::Arc<dyn Fn(u64, Told) + Send + Sync>,
    /// Which stream is the one that counts.
    stream: u64,
    link: Option<Link>,
    ready: Option<Ready>,
    retry_at: Instant,
    retry: Duration,
    detail: String,
    changes: u64,
    /// What nothing leads to any more, and when the last message that was on its way to it has left.
    clean: Option<(Instant, Vec<v1::Update>)>,
}

impl<'a> Switch<'a> {
    pub fn new(
        program: &'a Program,
        settings: &Settings,
        handle: Handle,
        tell: impl Fn(u64, Told) + Send + Sync + 'static,
    ) -> Switch<'a> {
        Switch {
            program,
            handle,
            endpoint: settings.switch.clone(),
            device_id: settings.device_id,
            election_id: settings.election_id,
            keep_program: settings.keep_program,
            tell: std::sync::Arc::new(tell),
            stream: 0,
            link: None,
            ready: None,
            retry_at: Instant::now(),
            retry: RETRY[0],
            detail: "the switch has not been reached yet".to_owned(),
            changes: 0,
            clean: None,
        }
    }

    /// Whether it delivers by all the rules.
    pub fn is_ready(&self) -> bool {
        self.ready.is_some()
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
            && let Err(trouble) = self.clean()
        {
            self.trouble(trouble, book, tell);
        }
        if self.link.is_some() || now < self.retry_at {
            return;
        }
        self.stream += 1;
        let (stream, told) = (self.stream, self.tell.clone());
        let opened = Link::open(&self.handle, &self.endpoint, self.device_id, self.election_id, move |what| {
            told(stream, what);
        });
        match opened {
            Ok(link) => {
                self.link = Some(link);
                self.detail = "waiting for the switch to say who is primary".to_owned();
            }
            Err(end) => self.ended("the switch cannot be reached", end, tell),
        }
    }

    /// There is no stream.
    fn ended(&mut self, how: &str, end: End, tell: &dyn Fn(Event)) {
        match end {
            End::Gone(why) => self.away(format!("{how}: {why}"), tell),
            End::Taken(why) => {
                // Who waits for any place took this one, and gives way to a higher one.
                self.election_id = self.election_id.map(|id| id.saturating_add(1));
                self.away(format!("the switch refused the election id: {why}"), tell);
            }
        }
    }

    /// The switch is of no use now; it is tried again.
    fn away(&mut self, why: String, tell: &dyn Fn(Event)) {
        (self.link, self.ready, self.clean) = (None, None, None);
        self.retry_at = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(RETRY[1]);
        self.say(why, tell);
    }

    fn say(&mut self, why: String, tell: &dyn Fn(Event)) {
        if self.detail != why {
            self.detail.clone_from(&why);
            tell(Event::Away(why));
        }
    }

    /// A stream brings something.
    pub fn told(&mut self, stream: u64, told: Told, book: &mut Book<'_>, tell: &dyn Fn(Event)) {
        let Some(link) = self.link.as_mut().filter(|_| stream == self.stream) else { return };
        match told {
            Told::Ended(end) => self.ended("the switch went away", end, tell),
            Told::Standing(Standing::Nobody(highest)) => {
                let wanted = highest.max(self.election_id.unwrap_or(1)).max(1);
                link.claim(wanted);
            }
            Told::Standing(Standing::Other(id)) => {
                (self.ready, self.clean) = (None, None);
                self.say(format!("another controller is primary, with election id {id}"), tell);
            }
            Told::Standing(Standing::Primary) if self.ready.is_some() => {}
            Told::Standing(Standing::Primary) => self.settle(book, tell),
        }
    }

    /// A call went wrong.
    pub fn trouble(&mut self, trouble: Trouble, book: &mut Book<'_>, tell: &dyn Fn(Event)) {
        match trouble {
            // Nothing, or something: what it has is looked at.
            Trouble::Refused(_) | Trouble::Unimplemented | Trouble::Unfit(_) => self.settle(book, tell),
            Trouble::NotPrimary => {
                (self.ready, self.clean) = (None, None);
                self.say("another controller is primary".to_owned(), tell);
            }
            Trouble::Gone(why) => self.away(format!("the switch went away: {why}"), tell),
        }
    }

    /// Brings the switch to what the book says.
    fn settle(&mut self, book: &mut Book<'_>, tell: &dyn Fn(Event)) {
        (self.ready, self.clean) = (None, None);
        match self.try_settle(book) {
            Ok(event) => {
                self.detail = "delivers by the rules".to_owned();
                self.retry = RETRY[0];
                self.changes += 1;
                tell(event);
            }
            Err(Trouble::NotPrimary) => self.say("another controller is primary".to_owned(), tell),
            Err(Trouble::Gone(why)) => self.away(format!("the switch went away: {why}"), tell),
            Err(Trouble::Refused(why)) => self.away(format!("the switch refused: {why}"), tell),
            Err(Trouble::Unfit(why)) => self.away(why, tell),
            Err(Trouble::Unimplemented) => self.away("the switch cannot do what is asked of it".to_owned(), tell),
        }
    }

    fn try_settle(&mut self, book: &mut Book<'_>) -> Result<Event, Trouble> {
        let link = self.link.as_ref().ok_or(Trouble::NotPrimary)?;
        let (names, loaded) = self.load(link)?;
        let atomic = link.is_atomic()?;
        if !atomic && let Some(field) = self.program.format.fields.iter().find(|field| field.codes.is_some()) {
            let why =
                "the switch takes writes one after the other, and codes change together: make the program without";
            return Err(Trouble::Unfit(format!("{why} `@query_codes` of `{}`", field.name)));
        }
        book.write(if atomic { Writes::Together } else { Writes::InTurn });
        let steps = book.everything();
        let there = link.content(&names.tables())?;
        let mut wanted = Content::default();
        for update in steps.clone().all() {
            let (Update::Insert(entity) | Update::Modify(entity)) = update else { continue };
            wanted.put(names.encode(&entity).map_err(missing)?);
        }
        let updates = there.to(&wanted);
        let writes = updates.len();
        if there.is_empty() {
            // Before the last step no message is delivered, and the first may be long.
            for piece in encode(&names, &steps.prepare)?.chunks(PIECE) {
                link.write(piece.to_vec(), Atomicity::ContinueOnError)?;
            }
            self.turn(link, &names, atomic, &steps)?;
        } else if atomic {
            link.write(updates, Atomicity::DataplaneAtomic)?;
        } else if !updates.is_empty() {
            // Numbers of states may mean something else now: messages wait until all is there.
            let (entrances, rest) =
                there.to(&Content::default()).into_iter().partition(|update| is_entrance(&names, update));
            link.write(entrances, Atomicity::ContinueOnError)?;
            std::thread::sleep(PAUSE);
            link.write(rest, Atomicity::ContinueOnError)?;
            for piece in encode(&names, &steps.prepare)?.chunks(PIECE) {
                link.write(piece.to_vec(), Atomicity::ContinueOnError)?;
            }
            self.turn(link, &names, atomic, &steps)?;
        }
        self.ready = Some(Ready { names, atomic });
        Ok(Event::Installed { rules: book.len(), writes, loaded, atomic })
    }

    /// Loads the program, unless the switch has it.
    fn load(&self, link: &Link) -> Result<(Names, bool), Trouble> {
        let cookie = cookie(&self.program.text);
        let ours = &self.program.info;
        let there = link.config()?;
        if let Some(config) = &there {
            let info = config.p4info.clone().unwrap_or_default();
            let known = config.cookie.as_ref().map_or(0, |cookie| cookie.cookie);
            let same = |one: &p4runtime_proto::config::P4Info| (one.tables.clone(), one.actions.clone());
            let is_ours = known == cookie || known == 0 && same(&info) == same(ours);
            if is_ours || self.keep_program {
                return match fit::misfit(&info, ours) {
                    None => Ok((Names::new(&info), false)),
                    Some(why) => Err(Trouble::Unfit(format!("the switch's program and these rules {why}. {REMADE}"))),
                };
            }
        }
        if self.keep_program {
            let why = "the switch has no program yet, and --keep-program leaves it to others to load one: that which \
                       `triplane subscribe program` makes of the format";
            return Err(Trouble::Unfit(why.to_owned()));
        }
        link.install(v1::ForwardingPipelineConfig {
            p4info: Some(ours.clone()),
            p4_device_config: self.program.text.clone().into_bytes(),
            cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie }),
        })?;
        Ok((Names::new(ours), true))
    }

    /// Makes a change.
    pub fn write(&mut self, steps: &Steps) -> Result<(), Trouble> {
        if steps.is_empty() {
            return Ok(());
        }
        self.clean()?;
        let (Some(link), Some(ready)) = (&self.link, &self.ready) else { return Err(Trouble::NotPrimary) };
        if ready.atomic {
            link.write(encode(&ready.names, &steps.clone().all())?, Atomicity::DataplaneAtomic)?;
        } else {
            for piece in encode(&ready.names, &steps.prepare)?.chunks(PIECE) {
                link.write(piece.to_vec(), Atomicity::ContinueOnError)?;
            }
            self.turn(link, &ready.names, false, steps)?;
            let clean = encode(&ready.names, &steps.clean)?;
            self.clean = (!clean.is_empty()).then(|| (Instant::now() + PAUSE, clean));
        }
        self.changes += 1;
        Ok(())
    }

    /// Takes messages to the new rules.
    fn turn(&self, link: &Link, names: &Names, atomic: bool, steps: &Steps) -> Result<(), Trouble> {
        if atomic {
            return link.write(encode(names, &steps.turn.concat())?, Atomicity::DataplaneAtomic);
        }
        for (at, round) in steps.turn.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(PAUSE);
            }
            // Within one write a switch may choose the order (specification 12.2).
            for update in encode(names, round)? {
                link.write(vec![update], Atomicity::ContinueOnError)?;
            }
        }
        Ok(())
    }

    /// Deletes what nothing leads to any more, and waits for that if need be.
    fn clean(&mut self) -> Result<(), Trouble> {
        let Some((due, updates)) = self.clean.take() else { return Ok(()) };
        let Some(link) = &self.link else { return Err(Trouble::NotPrimary) };
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for piece in updates.chunks(PIECE) {
            link.write(piece.to_vec(), Atomicity::ContinueOnError)?;
        }
        Ok(())
    }
}

fn missing(Missing(what): Missing) -> Trouble {
    Trouble::Unfit(format!("the switch's program has {what}. {REMADE}"))
}

fn encode(names: &Names, updates: &[Update]) -> Result<Vec<v1::Update>, Trouble> {
    let one = |update: &Update| {
        let (kind, entity) = match update {
            Update::Insert(entity) => (Type::Insert, entity),
            Update::Modify(entity) => (Type::Modify, entity),
            Update::Delete(entity) => (Type::Delete, entity),
        };
        Ok(content::update(kind, names.encode(entity).map_err(missing)?))
    };
    updates.iter().map(one).collect()
}

/// Whether an entry is one that messages begin with: of the validity table, or of state 0.
fn is_entrance(names: &Names, update: &v1::Update) -> bool {
    let Some(v1::entity::Entity::TableEntry(entry)) = update.entity.as_ref().and_then(|of| of.entity.as_ref()) else {
        return false;
    };
    names.is_entrance(entry)
}

/// A number that tells the program from others (FNV-1a), never 0.
fn cookie(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash.max(1)
}
