//! Windows of time in which nodes run by themselves, on one thread or several.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use switch::Time;

use super::event::Message;
use super::series::Sample;
use super::{Node, Simulation};

/// Windows between two calls of `progress`.
const PROGRESS_EVERY: u64 = 4096;

/// Runs everything before `end`.
pub fn run(simulation: &mut Simulation, end: u64, threads: usize, progress: &mut dyn FnMut(Time)) {
    if threads == 1 || simulation.nodes.len() < 2 {
        one_thread(simulation, end, progress);
    } else {
        several_threads(simulation, end, threads, progress);
    }
}

/// The end of the window that begins at `next`, and never behind the next sample or the end.
fn window_end(next: u64, window_ns: u64, sample: Option<u64>, end: u64) -> u64 {
    next.saturating_add(window_ns).min(sample.map_or(u64::MAX, |at| at + 1)).min(end)
}

/// When the next sample is due.
fn first_sample(simulation: &Simulation) -> Option<u64> {
    simulation.sample_ns.map(|every| simulation.now.as_ns().div_ceil(every) * every)
}

fn sample(node: &Node, at: u64, samples: &mut Vec<Sample>) {
    for (_, way) in &node.directions {
        let (waiting, queue_full) = node.queue(way.from.port);
        samples.push(Sample {
            at: Time::from_ns(at),
            from: way.from,
            waiting: way.cable.waiting_at(at) + waiting,
            carried_bytes: way.cable.stats.carried_bytes,
            queue_full: way.cable.stats.queue_full + queue_full,
        });
    }
}

fn one_thread(simulation: &mut Simulation, end: u64, progress: &mut dyn FnMut(Time)) {
    let mut due = first_sample(simulation);
    let Simulation { nodes, window_ns, sample_ns, samples, .. } = simulation;
    let mut next: Vec<u64> = nodes.iter().map(Node::next).collect();
    let mut messages = Vec::new();
    for windows in 0_u64.. {
        let earliest = next.iter().copied().min().unwrap_or(u64::MAX);
        while let (Some(at), Some(every)) = (due, *sample_ns)
            && at < earliest.min(end)
        {
            nodes.iter().for_each(|node| sample(node, at, samples));
            due = Some(at + every);
        }
        if earliest >= end {
            return;
        }
        let window_end = window_end(earliest, *window_ns, due, end);
        for (node, next) in nodes.iter_mut().zip(&mut next) {
            if *next < window_end {
                node.run(window_end, &mut messages);
                *next = node.next();
            }
        }
        for Message { to, event } in messages.drain(..) {
            next[to] = next[to].min(event.at);
            nodes[to].push(event);
        }
        if windows % PROGRESS_EVERY == 0 {
            progress(Time::from_ns(window_end));
        }
    }
}

/// What threads tell each other.
struct Shared {
    barrier: Barrier,
    /// The earliest event of each thread's nodes.
    earliest: Vec<AtomicU64>,
    /// Frames for each thread's nodes.
    mail: Vec<Mutex<Vec<Message>>>,
}

fn several_threads(simulation: &mut Simulation, end: u64, threads: usize, progress: &mut dyn FnMut(Time)) {
    let first = first_sample(simulation);
    let Simulation { nodes, window_ns, sample_ns, samples, .. } = simulation;
    let share = nodes.len().div_ceil(threads);
    let parts: Vec<&mut [Node]> = nodes.chunks_mut(share).collect();
    let shared = Shared {
        barrier: Barrier::new(parts.len()),
        earliest: parts.iter().map(|_| AtomicU64::new(0)).collect(),
        mail: parts.iter().map(|_| Mutex::default()).collect(),
    };
    let shared = &shared;
    let (window_ns, every) = (*window_ns, *sample_ns);
    let mut collected: Vec<Vec<Sample>> = std::thread::scope(|scope| {
        let mut parts = parts.into_iter().enumerate();
        let (at, mine) = parts.next().expect("there is a node");
        let others: Vec<_> = parts
            .map(|(at, part)| {
                scope.spawn(move || work(shared, at, part, share, end, window_ns, first, every, &mut |_| {}))
            })
            .collect();
        let mut collected = vec![work(shared, at, mine, share, end, window_ns, first, every, progress)];
        collected.extend(others.into_iter().map(|thread| thread.join().expect("threads do not panic")));
        collected
    });
    // As one thread would have put them: by time, then by node.
    let mut all: Vec<Sample> = collected.drain(..).flatten().collect();
    all.sort_by_key(|sample| sample.at);
    samples.extend(all);
}

#[expect(clippy::too_many_arguments, reason = "what a thread has of the simulation")]
fn work(
    shared: &Shared,
    at: usize,
    nodes: &mut [Node],
    share: usize,
    end: u64,
    window_ns: u64,
    mut due: Option<u64>,
    every: Option<u64>,
    progress: &mut dyn FnMut(Time),
) -> Vec<Sample> {
    let mut next: Vec<u64> = nodes.iter().map(Node::next).collect();
    let mut samples = Vec::new();
    let mut messages = Vec::new();
    let first = nodes[0].id();
    for windows in 0_u64.. {
        let mine = next.iter().copied().min().unwrap_or(u64::MAX);
        shared.earliest[at].store(mine, Ordering::Release);
        shared.barrier.wait();
        let earliest = shared.earliest.iter().map(|at| at.load(Ordering::Acquire)).min().unwrap_or(u64::MAX);
        while let (Some(at), Some(every)) = (due, every)
            && at < earliest.min(end)
        {
            nodes.iter().for_each(|node| sample(node, at, &mut samples));
            due = Some(at + every);
        }
        if earliest >= end {
            break;
        }
        let window_end = window_end(earliest, window_ns, due, end);
        for (node, next) in nodes.iter_mut().zip(&mut next) {
            if *next < window_end {
                node.run(window_end, &mut messages);
                *next = node.next();
            }
        }
        messages.sort_by_key(|message| message.to / share);
        while let Some(last) = messages.last() {
            let to = last.to / share;
            let from = messages.partition_point(|message| message.to / share < to);
            shared.mail[to].lock().expect("nobody panics with mail in hand").extend(messages.drain(from..));
        }
        shared.barrier.wait();
        // Heaps put mail in order, whichever thread brought it first.
        for Message { to, event } in shared.mail[at].lock().expect("as above").drain(..) {
            next[to - first] = next[to - first].min(event.at);
            nodes[to - first].push(event);
        }
        if windows % PROGRESS_EVERY == 0 {
            progress(Time::from_ns(window_end));
        }
    }
    samples
}
