//! Runs a simulation on several threads.
//!
//! Nodes are divided among threads once. Each thread runs its own nodes through windows as long as the shortest delay
//! of a link *between* threads. Within such a window it advances by the delays of its own links. One barrier per window
//! is enough: a thread that reaches it has posted the mail of the previous window, and publishes the time of the next
//! event among its own nodes and that mail.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use switch::Time;

use super::Node;
use super::event::{Event, Message};
use super::node::NodeKind;
use super::window::{PROGRESS_EVERY, Part, Place};

/// Approximate relative costs of a switch's link and of a host.
const LINK_COST: u64 = 2;
const HOST_COST: u64 = 3;

/// Divides nodes among threads. Each thread gets about the same amount of work, and hosts stay with their switch.
pub fn places(nodes: &[Node], threads: usize) -> Vec<Place> {
    let switch = |node: &Node| matches!(node.kind, NodeKind::Switch { .. });
    let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut taken = vec![false; nodes.len()];
    for node in nodes.iter().filter(|node| switch(node)) {
        let hosts = node.links().map(|(to, _)| to).filter(|to| !switch(&nodes[*to]));
        for id in hosts.chain([node.id()]) {
            if !std::mem::replace(&mut taken[id], true) {
                order.push(id);
            }
        }
    }
    order.extend((0..nodes.len()).filter(|id| !taken[*id]));
    let cost = |id: usize| match nodes[id].kind {
        NodeKind::Host(_) => HOST_COST,
        NodeKind::Switch { .. } => LINK_COST * nodes[id].directions.len() as u64 + 1,
    };
    let total: u64 = order.iter().map(|id| cost(*id)).sum();
    let mut places = vec![Place { part: 0, at: 0 }; nodes.len()];
    let mut counts = vec![0; threads.max(1)];
    let mut before = 0;
    for id in order {
        let part = ((before + cost(id) / 2) * threads as u64 / total.max(1)) as usize;
        let part = part.min(threads.max(1) - 1);
        before += cost(id);
        places[id] = Place { part, at: counts[part] };
        counts[part] += 1;
    }
    places
}

/// Creates the parts that have nodes.
pub fn divide(nodes: Vec<Node>, places: &[Place]) -> Vec<Part> {
    let count = places.iter().map(|place| place.part + 1).max().unwrap_or(1);
    let mut parts: Vec<Vec<(usize, Node)>> = (0..count).map(|_| Vec::new()).collect();
    for node in nodes {
        let Place { part, at } = places[node.id()];
        parts[part].push((at, node));
    }
    let part = |(number, mut nodes): (usize, Vec<(usize, Node)>)| {
        nodes.sort_by_key(|(at, _)| *at);
        Part::new(number, nodes.into_iter().map(|(_, node)| node).collect(), places)
    };
    parts.into_iter().enumerate().map(part).collect()
}

/// Events for the nodes of one thread, posted by one thread.
type Mail = Mutex<Vec<(usize, Event)>>;

/// State shared between threads. Everything exists twice, for the current window and for the previous one, so that no
/// thread writes a value that another may still read.
struct Shared {
    gate: Gate,
    /// Time of the next event of each thread, among its own nodes and the mail that it posted.
    earliest: [Vec<AtomicU64>; 2],
    /// Mail posted to each thread, by each thread.
    mail: [Vec<Vec<Mail>>; 2],
    /// Whether a thread was flooded.
    flooded: [AtomicBool; 2],
    /// Shortest delay of a link between threads, in nanoseconds.
    window_ns: u64,
}

/// Runs all events before `end`, with one thread for each part.
pub fn run(parts: &mut [Part], places: &[Place], end: u64, progress: &mut dyn FnMut(Time)) {
    let count = parts.len();
    let between = |part: (usize, &Part)| -> u64 {
        let (number, part) = part;
        let away = part.nodes.iter().flat_map(Node::links).filter(|(to, _)| places[*to].part != number);
        away.map(|(_, delay_ns)| delay_ns).min().unwrap_or(u64::MAX)
    };
    let shared = Shared {
        gate: Gate::new(count),
        earliest: [(); 2].map(|()| (0..count).map(|_| AtomicU64::new(0)).collect()),
        mail: [(); 2].map(|()| (0..count).map(|_| (0..count).map(|_| Mutex::default()).collect()).collect()),
        flooded: [(); 2].map(|()| AtomicBool::new(false)),
        window_ns: parts.iter().enumerate().map(between).min().unwrap_or(u64::MAX).max(1),
    };
    let shared = &shared;
    std::thread::scope(|scope| {
        let mut parts = parts.iter_mut().enumerate();
        let (me, mine) = parts.next().expect("there is a part");
        for (me, part) in parts {
            scope.spawn(move || work(shared, me, part, places, end, &mut |_| {}));
        }
        work(shared, me, mine, places, end, progress);
    });
}

fn work(shared: &Shared, me: usize, part: &mut Part, places: &[Place], end: u64, progress: &mut dyn FnMut(Time)) {
    let _alarm = Alarm(&shared.gate);
    let mut away: Vec<Message> = Vec::new();
    let mut posted = u64::MAX;
    for window in 0_u64.. {
        let (now, before) = ((window % 2) as usize, ((window + 1) % 2) as usize);
        shared.earliest[now][me].store(part.earliest().min(posted), Ordering::Release);
        shared.gate.meet();
        // Heaps put mail in order, whichever thread posted it.
        for mail in &shared.mail[before][me] {
            for (at, event) in mail.lock().expect("nobody panics with mail in hand").drain(..) {
                part.take(at, event);
            }
        }
        let earliest = shared.earliest[now].iter().map(|at| at.load(Ordering::Acquire)).min().unwrap_or(u64::MAX);
        part.advance(earliest.saturating_add(shared.window_ns).min(end), places, &mut away);
        if earliest >= end || shared.flooded[now].load(Ordering::Acquire) {
            return;
        }
        // All threads see the flag after the next barrier.
        if part.flooded.is_some() {
            shared.flooded[before].store(true, Ordering::Release);
        }
        posted = away.iter().map(|message| message.event.at).min().unwrap_or(u64::MAX);
        away.sort_by_key(|message| places[message.to].part);
        while let Some(last) = away.last() {
            let to = places[last.to].part;
            let from = away.partition_point(|message| places[message.to].part < to);
            let mail = away.drain(from..).map(|message| (places[message.to].at, message.event));
            shared.mail[now][to][me].lock().expect("as above").extend(mail);
        }
        if window % PROGRESS_EVERY == 0 {
            progress(Time::from_ns(earliest));
        }
    }
}

/// Barrier at which threads wait for each other. They meet every few microseconds, so a thread spins before it sleeps.
/// Sleeping is for the case that another process occupies the processor that another thread needs.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
    meeting: AtomicUsize,
    broken: AtomicBool,
    /// Number of threads that sleep or are about to.
    asleep: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
}

/// Number of checks that a thread makes before it sleeps.
const LOOKS: u32 = 3_000;

impl Gate {
    fn new(threads: usize) -> Gate {
        Gate {
            threads,
            arrived: AtomicUsize::new(0),
            meeting: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Waits until all threads have arrived. Each thread's writes before the barrier are visible to all threads after
    /// it.
    fn meet(&self) {
        let meeting = self.meeting.load(Ordering::SeqCst);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            // A thread that counts itself asleep after this store sees the new meeting; one that did so before is
            // woken.
            self.meeting.store(meeting.wrapping_add(1), Ordering::SeqCst);
            if self.asleep.load(Ordering::SeqCst) > 0 {
                self.ring();
            }
            return;
        }
        let waits = || {
            assert!(!self.broken.load(Ordering::SeqCst), "another thread of the simulation panicked");
            self.meeting.load(Ordering::SeqCst) == meeting
        };
        for _ in 0..LOOKS {
            if !waits() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while waits() {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes the sleeping threads.
    fn ring(&self) {
        drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.notify_all();
    }
}

/// Notifies the other threads when its thread panics, so that they do not wait for it forever.
struct Alarm<'a>(&'a Gate);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
            self.0.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Alarm, Gate};

    #[test]
    fn nobody_leaves_before_everybody_came() {
        let (gate, count) = (Gate::new(3), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for meeting in 1..=2_000 {
                        count.fetch_add(1, Ordering::Relaxed);
                        gate.meet();
                        assert!(count.load(Ordering::Relaxed) >= 3 * meeting);
                        gate.meet();
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 6_000);
    }

    #[test]
    fn a_thread_that_panics_takes_the_others_along() {
        let gate = Gate::new(2);
        let ended = std::thread::scope(|scope| {
            let waits = scope.spawn(|| gate.meet());
            let panics = scope.spawn(|| {
                let _alarm = Alarm(&gate);
                // This is usually long enough for the other thread to fall asleep.
                std::thread::sleep(std::time::Duration::from_millis(5));
                panic!("as it should");
            });
            [waits.join().is_err(), panics.join().is_err()]
        });
        assert_eq!(ended, [true, true]);
    }
}
