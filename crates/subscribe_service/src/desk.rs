//! The thread that changes rules: one change after the other, each on the switch before it is acknowledged.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use subscribe::NoIncludes;
use tokio::sync::watch;

use crate::Settings;
use crate::book::{Book, Changed, New, Origin, Program, Read};
use crate::call::Call;
use crate::files::Watched;
use crate::kept::Kept;
use crate::listing::{Listed, Listing};
use crate::mail::Mail;
use crate::status::{Event, Standing};
use crate::switch::{Failed, Switch};
use crate::trouble::{Refusal, Trouble};

mod file;

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
    mail: Arc<Mail>,
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
        let mail: Arc<Mail> = Arc::default();
        let letters = mail.clone();
        let told = move |stream, told| {
            if letters.put(stream, told) {
                let _ = jobs.send(Job::Told);
            }
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
        desk.warn(&read);
        if let (Some(kept), Some(path)) = (&mut desk.kept, &settings.kept) {
            // Not before everything else is right: what was kept until now stays as it is otherwise.
            let added = desk.book.rules().filter(|(_, held)| held.origin == Origin::Added);
            let begun = kept.begin(desk.book.next_id(), added.map(|(id, held)| (id, &*held.text)));
            begun.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        desk.list(&[], &desk.book.rules().map(|(id, _)| id).collect::<Vec<u64>>());
        Ok(desk)
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
                for (stream, told) in self.mail.take() {
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
        self.warn(&read);
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
        if self.switch.refuses() {
            // What it holds is of rules from before this change and of refused ones.
            self.book.part();
        }
        let changed = match self.book.change(remove, add, origin, read) {
            Ok(changed) => changed,
            Err(why) => {
                if self.switch.is_ready() && !self.switch.counts_as(&self.book) {
                    self.switch.settle(&mut self.book, &*self.tell);
                }
                return Err(Refused::Mistakes(why));
            }
        };
        let writes = changed.steps.len();
        if self.switch.refuses() {
            // It has none of the rules as they should be; with this change it may take them all.
            self.switch.settle(&mut self.book, &*self.tell);
            if !self.switch.is_ready() {
                let why = self.switch.detail().to_owned();
                if let Err(stuck) = self.undo(changed) {
                    return Err(Refused::BySwitch(format!("{why}; {stuck}")));
                }
                return Err(if self.switch.refuses() { Refused::BySwitch(why) } else { Refused::Away(why) });
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

    /// Has a change be as if it had not been asked for. If that cannot be, the rest of a sentence says so, and what there is.
    fn undo(&mut self, changed: Changed<'a>) -> Result<(), String> {
        let (removed, added) = (changed.removed(), changed.ids.clone());
        self.book.undo(changed).map_err(|why| {
            self.list(&removed, &added);
            format!("and the rules from before cannot be compiled again, so that those with the change stay: {why}")
        })
    }

    /// What the switch did not take is as if it had not been asked for.
    fn take_back(&mut self, changed: Changed<'a>, failed: Failed) -> Refused {
        let told = match &failed {
            Failed::Refused(refused) => Some(self.book.blame(refused, &changed.ids)),
            Failed::Trouble(Trouble::Refused(refusal)) => Some(format!("the switch refused: {}", refusal.why)),
            Failed::Trouble(Trouble::Unfit(why)) => Some(why.clone()),
            Failed::Trouble(Trouble::Unimplemented) => Some("the switch cannot do this".to_owned()),
            Failed::Trouble(Trouble::NotPrimary | Trouble::Gone(_)) => None,
        };
        let undone = self.undo(changed);
        self.switch.failed(failed, &mut self.book, &*self.tell);
        match told {
            Some(why) if undone.is_err() => Refused::BySwitch(format!("{why}; {}", undone.err().unwrap_or_default())),
            Some(why) => Refused::BySwitch(why),
            None => Refused::Away(self.switch.detail().to_owned()),
        }
    }

    /// Tells what may not be meant in rules that were taken in.
    fn warn(&self, read: &Read) {
        let warnings = read.diagnostics.render(&read.map, false);
        if !warnings.is_empty() {
            (self.tell)(Event::Warnings(warnings));
        }
    }
}
