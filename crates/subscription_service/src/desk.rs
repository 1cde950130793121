//! The thread that changes rules: one change after the other, each on the switch before it is acknowledged.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use subscribe::NoIncludes;
use tokio::sync::{oneshot, watch};

use crate::Settings;
use crate::book::{Book, Changed, New, Origin, Program, Read};
use crate::files::{Disk, Watched};
use crate::kept::Kept;
use crate::link::{Told, Trouble};
use crate::status::{Event, Standing};
use crate::switch::Switch;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Something to be done.
pub(crate) enum Job {
    Subscribe(String, oneshot::Sender<Result<(Vec<u64>, usize), Refused>>),
    Unsubscribe(Vec<u64>, oneshot::Sender<Result<usize, Refused>>),
    List(oneshot::Sender<Vec<Listed>>),
    /// A stream brings something: which stream, and what.
    Told(u64, Told),
    Stop,
}

/// A rule as it is told.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub id: u64,
    pub text: String,
    pub in_file: bool,
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
    standing: watch::Sender<Standing>,
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
        tell: Box<dyn Fn(Event) + Send>,
    ) -> Result<Desk<'a>, String> {
        let told = move |stream, told| drop(jobs.send(Job::Told(stream, told)));
        let mut desk = Desk {
            book: Book::new(program, settings.max_rules),
            switch: Switch::new(program, settings, handle, told),
            file: settings.rules.clone(),
            watched: Watched::default(),
            looked: Instant::now(),
            kept: None,
            mistakes: String::new(),
            max_request_rules: settings.max_request_rules,
            standing,
            tell,
        };
        if let Some(path) = &settings.kept {
            desk.take_up(path)?;
        }
        let (read, watched) = desk.read_file();
        desk.watched = watched;
        let mut read = read?;
        let rules = std::mem::take(&mut read.rules);
        desk.book.change(&[], rules, Origin::File, &read)?;
        if let (Some(kept), Some(path)) = (&mut desk.kept, &settings.kept) {
            // Not before everything else is right: what was kept until now stays as it is otherwise.
            let added = desk.book.rules().filter(|(_, held)| held.origin == Origin::Added);
            let begun = kept.begin(desk.book.next_id(), added.map(|(id, held)| (id, &*held.text)));
            begun.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        Ok(desk)
    }

    /// Goes on with the rules that were added before.
    fn take_up(&mut self, path: &Path) -> Result<(), String> {
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
        self.book.change(&[], rules, Origin::Added, &read)?;
        self.kept = Some(kept);
        Ok(())
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
        // Who asked may be gone; then nobody is answered.
        match job {
            Job::Subscribe(text, reply) => drop(reply.send(self.subscribe(text))),
            Job::Unsubscribe(ids, reply) => drop(reply.send(self.unsubscribe(ids))),
            Job::List(reply) => {
                let listed = self.book.rules().map(|(id, held)| Listed {
                    id,
                    text: held.text.to_string(),
                    in_file: held.origin == Origin::File,
                });
                drop(reply.send(listed.collect()));
            }
            Job::Told(stream, told) => self.switch.told(stream, told, &mut self.book, &*self.tell),
            Job::Stop => {}
        }
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
        match self.switch.is_ready() {
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
        if let Err(trouble) = self.switch.write(&changed.steps) {
            return Err(self.take_back(changed, trouble));
        }
        if let Err(error) = self.keep(remove, &changed.ids, origin) {
            self.take_back(changed, Trouble::Refused(String::new()));
            let what = "rules that are added or removed cannot be kept, and so are not";
            return Err(Refused::NotKept(format!("{what}: the file of --keep: {error}")));
        }
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
    fn take_back(&mut self, changed: Changed, trouble: Trouble) -> Refused {
        self.book.undo(changed);
        self.switch.trouble(trouble.clone(), &mut self.book, &*self.tell);
        match trouble {
            Trouble::Refused(why) => Refused::BySwitch(format!("the switch refused: {why}")),
            Trouble::Unfit(why) => Refused::BySwitch(why),
            Trouble::Unimplemented => Refused::BySwitch("the switch cannot do this".to_owned()),
            Trouble::NotPrimary | Trouble::Gone(_) => Refused::Away(self.switch.detail().to_owned()),
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
            self.book.change(&go, come, Origin::File, &read).map_err(Refused::Mistakes)?;
            let _ = self.keep(&[], &[], Origin::File);
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
