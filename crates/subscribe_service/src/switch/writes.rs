//! What is written to a switch: all of the rules, or a change of them.

use std::time::{Duration, Instant};

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::write_request::Atomicity;
use subscribe::Writes;
use subscribe_p4::entries::{Steps, Update};

use super::{Failed, Ready, Switch, mend};
use crate::blame::Refused;
use crate::book::{Book, Written};
use crate::content::{self, Content};
use crate::fit::{self, REMADE};
use crate::link::Link;
use crate::names::{Missing, Names};
use crate::status::Event;
use crate::trouble::Trouble;

/// Updates of one write where the whole need not be one.
const PIECE: usize = 10_000;
/// How long messages may take through a switch that takes writes one after the other.
const PAUSE: Duration = Duration::from_millis(100);

impl Switch<'_> {
    /// Loads the program if need be, looks at what the switch has, and writes what differs.
    pub(super) fn try_settle(&mut self, book: &mut Book<'_>, tell: &dyn Fn(Event)) -> Result<Event, Failed> {
        let link = self.link.as_ref().ok_or(Trouble::NotPrimary)?;
        let (names, loaded) = self.load(link, book, tell)?;
        let atomic = link.is_atomic()?;
        if !atomic && let Some(field) = self.program.format.fields.iter().find(|field| field.codes.is_some()) {
            let why =
                "the switch takes writes one after the other, and codes change together: make the program without";
            return Err(Trouble::Unfit(format!("{why} `@query_codes` of `{}`", field.name)).into());
        }
        let unfit = |why: String| Trouble::Unfit(format!("the rules cannot be compiled for this switch: {why}"));
        book.write(if atomic { Writes::Together } else { Writes::InTurn }).map_err(unfit)?;
        let steps = book.everything().map_err(unfit)?;
        let there = link.content(&names.tables())?;
        let mut wanted = Content::default();
        for update in steps.clone().all() {
            let (Update::Insert(entity) | Update::Modify(entity)) = update else { continue };
            wanted.put(names.encode(&entity).map_err(missing)?);
        }
        let updates = there.to(&wanted);
        let (writes, mut clean) = (updates.len(), Vec::new());
        if there.is_empty() {
            // Before the last step no message is delivered, and the first may be long.
            for piece in encode(&names, &steps.prepare)?.chunks(PIECE) {
                put(link, &names, piece.to_vec(), Atomicity::ContinueOnError)?;
            }
            self.turn(link, &names, atomic, &steps)?;
        } else if atomic {
            put(link, &names, updates, Atomicity::DataplaneAtomic)?;
        } else if updates.is_empty() {
        } else if let Some(steps) = self.way_back(&names, &there, &wanted, book) {
            // Messages may be on their way past what was written before.
            std::thread::sleep(PAUSE);
            self.prepare_and_turn(link, &names, &steps)?;
            clean = encode(&names, &steps.clean)?;
        } else {
            // Numbers of states may mean something else now: messages wait until all is there.
            let (entrances, rest) =
                there.to(&Content::default()).into_iter().partition(|update| is_entrance(&names, update));
            put(link, &names, entrances, Atomicity::ContinueOnError)?;
            std::thread::sleep(PAUSE);
            put(link, &names, rest, Atomicity::ContinueOnError)?;
            for piece in encode(&names, &steps.prepare)?.chunks(PIECE) {
                put(link, &names, piece.to_vec(), Atomicity::ContinueOnError)?;
            }
            self.turn(link, &names, atomic, &steps)?;
        }
        self.ready = Some(Ready { names, atomic });
        self.clean_later(clean);
        Ok(Event::Installed { rules: book.len(), writes, loaded, atomic })
    }

    /// Loads the program, unless the switch has it.
    fn load(&self, link: &Link, book: &mut Book<'_>, tell: &dyn Fn(Event)) -> Result<(Names, bool), Trouble> {
        let there = link.config()?;
        if let Some(config) = &there {
            let info = config.p4info.clone().unwrap_or_default();
            let known = config.cookie.as_ref().map_or(0, |cookie| cookie.cookie);
            let is_one = |program: &Written| {
                let same = |one: &P4Info| (one.tables.clone(), one.actions.clone());
                known == cookie(&program.text) || known == 0 && same(&info) == same(&program.info)
            };
            if !is_one(book.written()) {
                self.take_order(&info, is_one, book, tell)?;
            }
            if is_one(book.written()) || self.keep_program {
                let tables = info.tables.iter().filter_map(|table| table.preamble.as_ref()).map(|of| of.name.as_str());
                let is_of_format = subscribe_p4::order(&self.program.rules.format, tables).is_some();
                return match fit::misfit(&info, &book.written().info, is_of_format) {
                    None => Ok((Names::new(&info), false)),
                    Some(why) => Err(Trouble::Unfit(why)),
                };
            }
        }
        if self.keep_program {
            let why = "the switch has no program yet, and --keep-program leaves it to others to load one: that which \
                       `triplane subscribe program` makes of the format";
            return Err(Trouble::Unfit(why.to_owned()));
        }
        let Written { text, info, .. } = book.written();
        link.install(v1::ForwardingPipelineConfig {
            p4info: Some(info.clone()),
            p4_device_config: text.clone().into_bytes(),
            cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie: cookie(text) }),
        })?;
        Ok((Names::new(info), true))
    }

    /// Has the rules compiled in the order of the switch's program, if that is one for them in all else: another program would
    /// forget what this one counted.
    fn take_order(
        &self,
        info: &P4Info,
        is_one: impl Fn(&Written) -> bool,
        book: &mut Book<'_>,
        tell: &dyn Fn(Event),
    ) -> Result<(), Trouble> {
        if self.program.is_forced {
            return Ok(());
        }
        let tables = info.tables.iter().filter_map(|table| table.preamble.as_ref()).map(|of| of.name.as_str());
        let order = subscribe_p4::order(&self.program.rules.format, tables);
        let Some(order) = order.filter(|order| *order != book.written().layout) else { return Ok(()) };
        if !self.keep_program && !is_one(&(self.program.write)(self.program, &order)) {
            return Ok(());
        }
        let better = (book.written().layout.names(&self.program.rules.format), book.entries());
        match book.turn_to(&order) {
            Ok(()) => tell(Event::OtherOrder { entries: book.entries(), better }),
            Err(why) if self.keep_program => {
                let why = why.trim_end();
                let told = format!("the rules cannot be compiled in the order of the switch's program: {why}");
                return Err(Trouble::Unfit(told));
            }
            // Then the switch is given another program.
            Err(_) => {}
        }
        Ok(())
    }

    /// From what is there to what is wanted where states have the same numbers in both.
    fn way_back(&self, names: &Names, there: &Content, wanted: &Content, book: &Book<'_>) -> Option<Steps> {
        mend::steps(names, there, wanted, &self.tried).filter(|_| self.counts_as(book))
    }

    /// Makes a change.
    pub fn write(&mut self, steps: &Steps) -> Result<(), Failed> {
        if steps.is_empty() {
            return Ok(());
        }
        self.clean()?;
        if let Some(ready) = self.ready.as_ref().filter(|ready| !ready.atomic) {
            self.tried = mend::left(&ready.names, &steps.clone().all());
        }
        let (Some(link), Some(ready)) = (&self.link, &self.ready) else { return Err(Trouble::NotPrimary.into()) };
        if ready.atomic {
            put(link, &ready.names, encode(&ready.names, &steps.clone().all())?, Atomicity::DataplaneAtomic)?;
        } else {
            self.prepare_and_turn(link, &ready.names, steps)?;
            let clean = encode(&ready.names, &steps.clean)?;
            self.clean_later(clean);
        }
        self.changes += 1;
        Ok(())
    }

    /// The steps of a change but the last, one after the other.
    fn prepare_and_turn(&self, link: &Link, names: &Names, steps: &Steps) -> Result<(), Failed> {
        for piece in encode(names, &steps.prepare)?.chunks(PIECE) {
            put(link, names, piece.to_vec(), Atomicity::ContinueOnError)?;
        }
        self.turn(link, names, false, steps)
    }

    /// Has these made once the messages on their way have left.
    fn clean_later(&mut self, updates: Vec<v1::Update>) {
        self.clean = (!updates.is_empty()).then(|| (Instant::now() + PAUSE, updates));
    }

    /// Takes messages to the new rules.
    fn turn(&self, link: &Link, names: &Names, atomic: bool, steps: &Steps) -> Result<(), Failed> {
        if atomic {
            return put(link, names, encode(names, &steps.turn.concat())?, Atomicity::DataplaneAtomic);
        }
        for (at, round) in steps.turn.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(PAUSE);
            }
            // Within one write a switch may choose the order (specification 12.2).
            for update in encode(names, round)? {
                put(link, names, vec![update], Atomicity::ContinueOnError)?;
            }
        }
        Ok(())
    }

    /// Deletes what nothing leads to any more, and waits for that if need be.
    pub(super) fn clean(&mut self) -> Result<(), Failed> {
        let Some((due, updates)) = self.clean.take() else { return Ok(()) };
        let (Some(link), Some(ready)) = (&self.link, &self.ready) else { return Err(Trouble::NotPrimary.into()) };
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for piece in updates.chunks(PIECE) {
            put(link, &ready.names, piece.to_vec(), Atomicity::ContinueOnError)?;
        }
        Ok(())
    }
}

/// Writes; what is refused is told in the program's names.
fn put(link: &Link, names: &Names, updates: Vec<v1::Update>, atomicity: Atomicity) -> Result<(), Failed> {
    link.write(updates, atomicity).map_err(|trouble| match trouble {
        Trouble::Refused(refusal) => Failed::Refused(Refused::new(&refusal, names)),
        other => other.into(),
    })
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
