//! The thread that changes rules: one change after the other, each on the switch before it is acknowledged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use subscribe::NoIncludes;
use tokio::sync::watch;

use crate::Settings;
use crate::book::{Book, Changed, New, Origin, Program, Read};
use crate::call::Call;
use crate::files::{Disk, Watched};
use crate::kept::Kept;
use crate::link::Told;
use crate::listing::{Listed, Listing};
use crate::status::{Event, Standing};
use crate::switch::{Failed, Switch};
use crate::trouble::{Refusal, Trouble};

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long a change may take at the switch, with looking at it anew when it refused.
const CHANGE: Duration = Duration::from_secs(80);

/// Something to be done.
pub(crate) enum Job {
    Subscribe(String, Call<Result<(Vec<u64>, usize), Refused>>),
    Unsubscribe(Vec<u64>, Call<Result<usize, Refused>>),
    /// There is mail.
    Told,
    Stop,
}

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Mistakes(String),
    TooMuch(String),
    NotFound(String),
    InFile(String),
    BySwitch(String),
    Away(String),
    NotKept(String),
}

/// What each stream brought last, and that another controller was primary before: a switch that says more than is listened
/// to fills no memory.
type Mail = Arc<Mutex<BTreeMap<u64, Vec<Told>>>>;

/// Everything there is.
pub(crate) struct Desk<'a> {
    book: Book<'a>,
    switch: Switch<'a>,
    file: PathBuf,
    watched: Watched,
    looked: Instant,
    kept: Option<Kept>,
    mistakes: String,
    max_request_rules: usize,
    standing: Arc<watch::Sender<Standing>>,
    listing: Arc<Listing>,
    mail: Mail,
    tell: Box<dyn Fn(Event) + Send>,
}

impl<'a> Desk<'a> {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub fn new(
        program: &'a Program,
        settings: &Settings,
        handle: tokio::runtime::Handle,
        jobs: Sender<Job>,
        standing: watch::Sender<Standing>,
        listing: Arc<Listing>,
        tell: Box<dyn Fn(Event) + Send>,
    ) -> Result<Desk<'a>, String> {
        let mail: Mail = Arc::default();
        let letters = mail.clone();
        let told = move |stream, told| {
            let mut letters = letters.lock().unwrap_or_else(PoisonError::into_inner);
            let held = letters.entry(stream).or_default();
            if held.is_empty() {
                let _ = jobs.send(Job::Told);
            }
            // That another one was primary is not passed over: it may have changed what the switch holds.
            held.retain(|told| matches!(told, Told::Standing(crate::link::Standing::Other(_))));
            held.drain(..held.len().saturating_sub(1));
            held.push(told);
        };
        let standing = Arc::new(standing);
        let shown = standing.clone();
        // The desk waits for the switch then, and cannot tell that itself.
        let slow = move |seconds: u64| {
            let detail = format!("waits for the switch, which has not answered for {seconds} s");
            shown.send_modify(|standing| standing.detail = detail);
        };
        let mut desk = Desk {
            book: Book::new(program, settings.max_rules),
            switch: Switch::new(program, settings, handle, told, slow),
            file: settings.rules.clone(),
            watched: Watched::default(),
            looked: Instant::now(),
            kept: None,
            mistakes: String::new(),
            max_request_rules: settings.max_request_rules,
            standing,
            listing,
            mail,
            tell,
        };
        let mut added = match &settings.kept {
            Some(path) => Some(desk.take_up(path)?),
            None => None,
        };
        let (read, watched) = desk.read_file();
        desk.watched = watched;
        let mut read = read?;
        desk.book.suit(added.iter().flat_map(|added| &added.rules).chain(&read.rules));
        if let Some(added) = &mut added {
            let rules = std::mem::take(&mut added.rules);
            desk.book.change(&[], rules, Origin::Added, added)?;
        }
        let rules = std::mem::take(&mut read.rules);
        desk.book.change(&[], rules, Origin::File, &read)?;
        if let (Some(kept), Some(path)) = (&mut desk.kept, &settings.kept) {
            // Not before everything else is right: what was kept until now stays as it is otherwise.
            let added = desk.book.rules().filter(|(_, held)| held.origin == Origin::Added);
            let begun = kept.begin(desk.book.next_id(), added.map(|(id, held)| (id, &*held.text)));
            begun.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        desk.list(&[], &desk.book.rules().map(|(id, _)| id).collect::<Vec<u64>>());
        Ok(desk)
    }

    /// Reads the rules that were added before.
    fn take_up(&mut self, path: &Path) -> Result<Read, String> {
        let (kept, notes) = Kept::open(path).map_err(|why| format!("{} {why}", path.display()))?;
        let text: Vec<&str> = notes.rules.values().map(String::as_str).collect();
        let mut read = self.book.read(&path.display().to_string(), text.join("\n"), &mut NoIncludes);
        if read.diagnostics.has_errors() {
            return Err(read.diagnostics.render(&read.map, false));
        }
        let mut rules = std::mem::take(&mut read.rules);
        if rules.len() != notes.rules.len() {
            return Err(format!("{} has lines that are not one rule each", path.display()));
        }
        rules.iter_mut().zip(notes.rules.keys()).for_each(|(rule, id)| rule.id = Some(*id));
        self.book.number_from(notes.next);
        self.kept = Some(kept);
        read.rules = rules;
        Ok(read)
    }

    /// Works until it is told to stop.
    pub fn run(mut self, jobs: &Receiver<Job>) {
        self.show();
        loop {
            match jobs.recv_timeout(LOOK) {
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(job) => self.work(job),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if now.duration_since(self.looked) >= LOOK {
                self.looked = now;
                if self.watched.has_changed(now) {
                    self.reload();
                }
                self.switch.tend(&mut self.book, now, &*self.tell);
            }
            self.show();
        }
    }

    fn work(&mut self, job: Job) {
        match job {
            Job::Subscribe(text, call) if call.begin() => {
                let done = self.bounded(|desk| desk.subscribe(text));
                call.answer(done);
            }
            Job::Unsubscribe(ids, call) if call.begin() => {
                let done = self.bounded(|desk| desk.unsubscribe(ids));
                call.answer(done);
            }
            Job::Told => {
                let letters = std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner));
                for (stream, told) in
                    letters.into_iter().flat_map(|(of, all)| all.into_iter().map(move |told| (of, told)))
                {
                    self.switch.told(stream, told, &mut self.book, &*self.tell);
                }
            }
            // Nobody waits for it any more.
            Job::Subscribe(..) | Job::Unsubscribe(..) | Job::Stop => {}
        }
    }

    /// Does something that somebody waits for.
    fn bounded<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.switch.wait_until(Some(Instant::now() + CHANGE));
        let done = work(self);
        self.switch.wait_until(None);
        done
    }

    /// Tells others of rules that went and came.
    fn list(&self, gone: &[u64], come: &[u64]) {
        let listed = |id: &u64| {
            let held = self.book.get(*id)?;
            Some((*id, Listed { text: held.text.clone(), in_file: held.origin == Origin::File }))
        };
        self.listing.change(gone, come.iter().filter_map(listed));
    }

    /// Tells how things stand, if that is otherwise than before.
    fn show(&self) {
        let standing = Standing {
            installed: self.switch.is_ready(),
            detail: self.switch.detail().to_owned(),
            rules: self.book.len() as u64,
            rules_in_file: self.book.in_file() as u64,
            changes: self.switch.changes(),
            mistakes: self.mistakes.clone(),
        };
        self.standing.send_if_modified(|known| {
            let is_other = *known != standing;
            *known = standing;
            is_other
        });
    }

    fn subscribe(&mut self, text: String) -> Result<(Vec<u64>, usize), Refused> {
        self.is_there()?;
        let mut read = self.book.read("rules", text, &mut NoIncludes);
        if read.diagnostics.has_errors() {
            return Err(Refused::Mistakes(read.diagnostics.render(&read.map, false)));
        }
        let rules = std::mem::take(&mut read.rules);
        match rules.len() {
            0 => return Err(Refused::Mistakes("there is no rule; such as: stock == \"GOOGL\" : fwd(2)".to_owned())),
            count if count > self.max_request_rules => {
                let most = self.max_request_rules;
                return Err(Refused::TooMuch(format!("{count} rules; one call may add {most}")));
            }
            _ => {}
        }
        let (ids, writes) = self.change(&[], rules, Origin::Added, &read)?;
        (self.tell)(Event::Added(ids.clone()));
        Ok((ids, writes))
    }

    fn unsubscribe(&mut self, mut ids: Vec<u64>) -> Result<usize, Refused> {
        self.is_there()?;
        ids.sort_unstable();
        ids.dedup();
        for id in &ids {
            match self.book.get(*id).map(|held| held.origin) {
                Some(Origin::Added) => {}
                None => return Err(Refused::NotFound(format!("there is no rule {id}"))),
                Some(Origin::File) => {
                    let file = self.file.display();
                    return Err(Refused::InFile(format!("rule {id} stands in {file}: take it away there")));
                }
            }
        }
        let read = self.book.read("rules", String::new(), &mut NoIncludes);
        let (_, writes) = self.change(&ids, Vec::new(), Origin::Added, &read)?;
        (self.tell)(Event::Removed(ids));
        Ok(writes)
    }

    fn is_there(&self) -> Result<(), Refused> {
        match self.switch.is_ready() || self.switch.refuses() {
            true => Ok(()),
            false => Err(Refused::Away(self.switch.detail().to_owned())),
        }
    }

    /// Makes a change here and at the switch, or at neither.
    fn change(
        &mut self,
        remove: &[u64],
        add: Vec<New>,
        origin: Origin,
        read: &Read,
    ) -> Result<(Vec<u64>, usize), Refused> {
        let changed = self.book.change(remove, add, origin, read).map_err(Refused::Mistakes)?;
        let writes = changed.steps.len();
        if self.switch.refuses() {
            // It has none of the rules as they should be; with this change it may take them all.
            self.switch.settle(&mut self.book, &*self.tell);
            if !self.switch.is_ready() {
                self.book.undo(changed);
                return Err(match self.switch.refuses() {
                    true => Refused::BySwitch(self.switch.detail().to_owned()),
                    false => Refused::Away(self.switch.detail().to_owned()),
                });
            }
        } else if let Err(failed) = self.switch.write(&changed.steps) {
            return Err(self.take_back(changed, failed));
        }
        if let Err(error) = self.keep(remove, &changed.ids, origin) {
            self.take_back(changed, Trouble::Refused(Refusal::default()).into());
            let what = "rules that are added or removed cannot be kept, and so are not";
            return Err(Refused::NotKept(format!("{what}: the file of --keep: {error}")));
        }
        self.list(remove, &changed.ids);
        Ok((changed.ids, writes))
    }

    /// Notes a change where rules are kept.
    fn keep(&mut self, removed: &[u64], added: &[u64], origin: Origin) -> std::io::Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        if origin == Origin::File {
            // That their ids are not given again is not worth refusing a file.
            let _ = kept.next(self.book.next_id());
            return Ok(());
        }
        if !added.is_empty() {
            kept.add(added.iter().filter_map(|id| Some((*id, &*self.book.get(*id)?.text))))?;
        }
        if !removed.is_empty() {
            kept.remove(removed)?;
        }
        Ok(())
    }

    /// What the switch did not take is as if it had not been asked for.
    fn take_back(&mut self, changed: Changed, failed: Failed) -> Refused {
        let told = match &failed {
            Failed::Refused(refused) => Some(self.book.blame(refused, &changed.ids)),
            Failed::Trouble(Trouble::Refused(refusal)) => Some(format!("the switch refused: {}", refusal.why)),
            Failed::Trouble(Trouble::Unfit(why)) => Some(why.clone()),
            Failed::Trouble(Trouble::Unimplemented) => Some("the switch cannot do this".to_owned()),
            Failed::Trouble(Trouble::NotPrimary | Trouble::Gone(_)) => None,
        };
        self.book.undo(changed);
        self.switch.failed(failed, &mut self.book, &*self.tell);
        match told {
            Some(why) => Refused::BySwitch(why),
            None => Refused::Away(self.switch.detail().to_owned()),
        }
    }

    /// Reads the file; or what is wrong with it, for people.
    fn read_file(&mut self) -> (Result<Read, String>, Watched) {
        let mut disk = Disk::default();
        let name = self.file.display().to_string();
        let read = match disk.read(&self.file) {
            Ok(text) => {
                let read = self.book.read(&name, text, &mut disk);
                match read.diagnostics.has_errors() {
                    true => Err(read.diagnostics.render(&read.map, false)),
                    false => Ok(read),
                }
            }
            Err(why) => Err(format!("{name} {why}")),
        };
        (read, disk.watched())
    }

    /// Takes the file in as it is now.
    fn reload(&mut self) {
        let (read, watched) = self.read_file();
        self.watched = watched;
        let done = read.map_err(Refused::Mistakes).and_then(|read| {
            let (go, come) = self.book.reload(&read.rules);
            let counts = (come.len(), go.len());
            if counts == (0, 0) {
                return Ok((counts, 0));
            }
            if self.switch.is_ready() {
                return self.change(&go, come, Origin::File, &read).map(|(_, writes)| (counts, writes));
            }
            // The switch is told when it is there.
            let changed = self.book.change(&go, come, Origin::File, &read).map_err(Refused::Mistakes)?;
            self.list(&go, &changed.ids);
            let _ = self.keep(&[], &[], Origin::File);
            if self.switch.refuses() {
                self.switch.settle(&mut self.book, &*self.tell);
            }
            Ok((counts, 0))
        });
        match done {
            Ok(((0, 0), _)) if self.mistakes.is_empty() => {}
            Ok(((come, go), writes)) => {
                self.mistakes.clear();
                (self.tell)(Event::Reloaded(come, go, writes));
            }
            // It is read again once the switch is there.
            Err(Refused::Away(_)) => self.watched.forget(),
            Err(
                Refused::Mistakes(why)
                | Refused::TooMuch(why)
                | Refused::NotFound(why)
                | Refused::InFile(why)
                | Refused::BySwitch(why)
                | Refused::NotKept(why),
            ) => {
                self.mistakes.clone_from(&why);
                (self.tell)(Event::Mistakes(why));
            }
        }
    }
}
