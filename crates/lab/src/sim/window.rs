//! Runs the nodes of one thread by themselves for a window of time.

use switch::Time;

use super::event::{Event, Message};
use super::series::Sample;
use super::{Node, Simulation, threads};

/// Number of windows between two calls of `progress`.
pub const PROGRESS_EVERY: u64 = 4096;

/// Runs all events before `end`. If the simulation is flooded, it ends then, and the time is returned.
pub fn run(simulation: &mut Simulation, end: u64, threads: usize, progress: &mut dyn FnMut(Time)) -> Option<u64> {
    let first = simulation.sample_ns.map(|every| simulation.now.as_ns().div_ceil(every) * every);
    let nodes = std::mem::take(&mut simulation.nodes);
    let places = threads::places(&nodes, threads);
    let mut parts = threads::divide(nodes, &places);
    let count = parts.len() as u64;
    for part in &mut parts {
        (part.due, part.sample_ns) = (first, simulation.sample_ns);
        part.max_held_bytes = simulation.max_held_bytes / count;
    }
    match &mut parts[..] {
        [all] => one_thread(all, &places, end, progress),
        several => threads::run(several, &places, end, progress),
    }
    let flooded = parts.iter().filter_map(|part| part.flooded).min();
    // Nodes return to their original order, and samples to the order of one thread: by time, then by node.
    let mut samples: Vec<(usize, Sample)> = parts.iter_mut().flat_map(|part| part.samples.drain(..)).collect();
    samples.sort_by_key(|(node, sample)| (sample.at, *node));
    simulation.samples.extend(samples.into_iter().map(|(_, sample)| sample));
    simulation.nodes = parts.into_iter().flat_map(|part| part.nodes).collect();
    simulation.nodes.sort_by_key(Node::id);
    flooded
}

fn one_thread(all: &mut Part, places: &[Place], end: u64, progress: &mut dyn FnMut(Time)) {
    let mut away = Vec::new();
    loop {
        let until = all.earliest().saturating_add(all.window_ns.saturating_mul(PROGRESS_EVERY)).min(end);
        all.advance(until, places, &mut away);
        debug_assert!(away.is_empty(), "everyone is here");
        progress(Time::from_ns(until));
        if until == end || all.flooded.is_some() {
            return;
        }
    }
}

/// Location of a node: its part, and its index among that part's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub part: usize,
    pub at: usize,
}

/// The nodes that one thread runs.
pub struct Part {
    number: usize,
    pub nodes: Vec<Node>,
    /// Time of the next event at each node.
    next: Vec<u64>,
    /// Shortest delay of a link between two of them, in nanoseconds.
    window_ns: u64,
    due: Option<u64>,
    sample_ns: Option<u64>,
    /// Samples, each with its node.
    samples: Vec<(usize, Sample)>,
    messages: Vec<Message>,
    /// Bytes of the pending events of its nodes, and their maximum.
    held: u64,
    max_held_bytes: u64,
    /// Time at which the maximum was exceeded.
    pub flooded: Option<u64>,
}

impl Part {
    /// Creates the part with this number.
    pub fn new(number: usize, nodes: Vec<Node>, places: &[Place]) -> Part {
        let links = nodes.iter().flat_map(Node::links).filter(|(to, _)| places[*to].part == number);
        let window_ns = links.map(|(_, delay_ns)| delay_ns).min().unwrap_or(u64::MAX).max(1);
        let next = nodes.iter().map(Node::next).collect();
        let (samples, messages) = (Vec::new(), Vec::new());
        let held = nodes.iter().map(Node::held).sum();
        Part {
            number,
            nodes,
            next,
            window_ns,
            due: None,
            sample_ns: None,
            samples,
            messages,
            held,
            max_held_bytes: u64::MAX,
            flooded: None,
        }
    }

    /// Returns the time of the next event.
    pub fn earliest(&self) -> u64 {
        self.next.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Accepts an event for a node from another part.
    pub fn take(&mut self, at: usize, event: Event) {
        self.next[at] = self.next[at].min(event.at);
        self.held += event.held();
        self.nodes[at].push(event);
    }

    /// Runs all events before `end`; events of other parts must not arrive before then. Messages to other parts are
    /// added to `away`. It ends early when it is flooded.
    pub fn advance(&mut self, end: u64, places: &[Place], away: &mut Vec<Message>) {
        loop {
            let earliest = self.earliest();
            while let (Some(at), Some(every)) = (self.due, self.sample_ns)
                && at < earliest.min(end)
            {
                self.nodes.iter().for_each(|node| sample(node, at, &mut self.samples));
                self.due = Some(at + every);
            }
            if earliest >= end {
                return;
            }
            // A sample is taken after all events of its time.
            let sampled = self.due.map_or(u64::MAX, |at| at + 1);
            let window_end = earliest.saturating_add(self.window_ns).min(sampled).min(end);
            for (node, next) in self.nodes.iter_mut().zip(&mut self.next) {
                if *next < window_end {
                    self.held -= node.held();
                    node.run(window_end, &mut self.messages);
                    self.held += node.held();
                    *next = node.next();
                }
            }
            for message in self.messages.drain(..) {
                let Place { part, at } = places[message.to];
                if part == self.number {
                    self.next[at] = self.next[at].min(message.event.at);
                    self.held += message.event.held();
                    self.nodes[at].push(message.event);
                } else {
                    away.push(message);
                }
            }
            if self.held > self.max_held_bytes {
                self.flooded = Some(window_end);
                return;
            }
        }
    }
}

fn sample(node: &Node, at: u64, samples: &mut Vec<(usize, Sample)>) {
    for (_, way) in &node.directions {
        let (waiting, queue_full) = node.queue(way.from.port);
        let sample = Sample {
            at: Time::from_ns(at),
            from: way.from,
            waiting: way.cable.waiting_at(at) + waiting,
            carried_bytes: way.cable.stats.carried_bytes,
            queue_full: way.cable.stats.queue_full + queue_full,
        };
        samples.push((node.id(), sample));
    }
}
