//! Random requests over random networks, and the mutants that these find.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use rng::SplitMix64;
use tpp::executor::{
    Completion, ExecutedProgram, ExecutionOptions, ExecutionPlan, ExecutorMutant, ExecutorMutation, ExecutorSettings,
    OutgoingProgram, ProgramExecutor, RequestId, RequestOutcome, StoreVerdict,
};
use tpp::generate::Case;
use tpp::{Tcpu, TinyProgram};
use wire::tpp::Packet;

use super::network::{FIRST_WORD, Faults, Network, WORDS, address};
use super::source::{assembled, compare, random_text, stores_twice};

const MS: u64 = 1_000_000;
const SETTINGS: ExecutorSettings =
    ExecutorSettings { timeout_ns: 10 * MS, longest_timeout_ns: 40 * MS, in_flight: 4, requests: 64 };
const NAME_LEN: usize = 16;

/// A request and what its packets went through.
struct Expected {
    source: TinyProgram,
    options: ExecutionOptions,
    plan: Arc<ExecutionPlan>,
    target: usize,
    deadline_ns: u64,
    /// The times at which each packet was sent, by its bytes without the name.
    sent: BTreeMap<Vec<u8>, Vec<u64>>,
    /// The packets whose genuine echo arrived.
    echoed: BTreeSet<Vec<u8>>,
}

struct Run {
    rng: SplitMix64,
    network: Network,
    faults: Faults,
    executor: ProgramExecutor,
    expected: BTreeMap<RequestId, Expected>,
    /// The packet that each name was sent with.
    names: BTreeMap<Vec<u8>, (RequestId, Vec<u8>)>,
    /// Number of requests that were accepted.
    accepted: usize,
}

/// What a run had.
#[derive(Debug, Default)]
pub struct Tally {
    executed: u64,
    unanswered: u64,
    too_late: u64,
    split: u64,
    ranges: u64,
    targeted: u64,
    stored: u64,
    stored_earlier: u64,
    has_new_value: u64,
    others: u64,
    refused_plans: u64,
}

fn faults(rng: &mut SplitMix64) -> Faults {
    let mut chance = |choices: &[(u64, u64)]| rng.pick(choices);
    Faults {
        loss: chance(&[(2, 0), (2, 10), (2, 30)]),
        copies: chance(&[(3, 0), (1, 20)]),
        damage: chance(&[(2, 0), (1, 10)]),
        lies: chance(&[(1, 0), (1, 40)]),
        delay_ns: chance(&[(3, 2 * MS), (2, 20 * MS)]),
    }
}

/// Runs a seed with an error, if there is one.
///
/// # Errors
/// Returns what was wrong.
pub fn run(seed: u64, mutant: Option<ExecutorMutant>, tally: &mut Tally) -> Result<(), &'static str> {
    let mut rng = SplitMix64::new(seed);
    let mutation = ExecutorMutation::of(mutant);
    let count = rng.pick(&[(2, 2), (2, 5), (1, 10)]) as usize;
    let faults = faults(&mut rng);
    let mut paths: Vec<(Vec<usize>, bool)> = (0..3)
        .map(|_| {
            let mut path: Vec<usize> = (0..count).collect();
            (0..count).for_each(|at| path.swap(at, rng.below(count as u64) as usize));
            path.truncate(1 + rng.below(count as u64) as usize);
            (path, true)
        })
        .collect();
    // The last one does not echo.
    paths.push(((0..count).collect(), false));
    let network = Network::new(count, paths, faults, rng.next_u64());
    let executor = ProgramExecutor::with_mutation(SETTINGS, mutation);
    let (expected, names) = (BTreeMap::new(), BTreeMap::new());
    let mut run = Run { rng, network, faults, executor, expected, names, accepted: 0 };
    for number in 0..12 {
        run.request(number, mutation, tally)?;
    }
    run.other_writers(count);
    run.finish(tally)
}

impl Run {
    /// Makes a random request, if its program can be executed so.
    fn request(&mut self, number: usize, mutation: ExecutorMutation, tally: &mut Tally) -> Result<(), &'static str> {
        let rng = &mut self.rng;
        let switches = self.network.switches.len() as u64;
        let text = random_text(rng, number, switches + 1);
        let source = assembled(&text);
        let target = rng.below(self.network.paths.len() as u64) as usize;
        let silent = self.network.paths.len() - 1;
        let mut options = ExecutionOptions {
            switch: rng.percent(45).then(|| 1 + rng.below(switches + 1) as u32),
            reflects: false,
            tries: rng.pick(&[(1, 1), (2, 3), (1, 5)]),
            // Values from 1000 on are those of one request.
            owns_values: text.lines().any(|line| line.starts_with("CSTORE") && line.contains(", 1")),
        };
        options.reflects = rng.percent(if target == silent { 60 } else { 10 });
        let deadline_ns = rng.pick(&[(1, 30 * MS), (4, 1000 * MS)]);
        let plan = match ExecutionPlan::with_mutation(&source, &options, mutation) {
            Ok(plan) => Arc::new(plan),
            Err(findings) => {
                assert!(!findings.is_empty());
                tally.refused_plans += 1;
                return Ok(());
            }
        };
        if options.tries > 1 && stores_twice(&source) {
            return Err("unsafe plan");
        }
        tally.split += u64::from(plan.packets() > 1);
        tally.targeted += u64::from(options.switch.is_some());
        let id = self.executor.execute(address(target), Arc::clone(&plan), deadline_ns).expect("there is room");
        let (sent, echoed) = (BTreeMap::new(), BTreeSet::new());
        self.expected.insert(id, Expected { source, options, plan, target, deadline_ns, sent, echoed });
        self.accepted += 1;
        Ok(())
    }

    /// Lets other hosts store values: their own ones, and 7.
    fn other_writers(&mut self, switches: usize) {
        for _ in 0..self.rng.below(12) {
            let at_ns = self.rng.below(60 * MS);
            let switch = self.rng.below(switches as u64) as usize;
            let address = FIRST_WORD + 2 * self.rng.below(WORDS.into()) as u16;
            let value = self.rng.pick(&[(1, 7), (2, 5000)]);
            self.network.write_at(at_ns, switch, address, value);
        }
    }

    fn finish(mut self, tally: &mut Tally) -> Result<(), &'static str> {
        let mut now_ns = 0;
        while !self.expected.is_empty() {
            // Requests end before others are sent in their place.
            self.take(now_ns, tally)?;
            while let Some(outgoing) = self.executor.send(now_ns, || self.rng.next_u64()) {
                self.note_sent(now_ns, &outgoing)?;
                self.network.send(now_ns, outgoing);
            }
            for reply in self.network.poll(now_ns) {
                let name = reply.datagram.len().checked_sub(NAME_LEN).map(|at| &reply.datagram[at..]);
                if reply.is_genuine
                    && let Some((id, packet)) = name.and_then(|name| self.names.get(name))
                    && let Some(expected) = self.expected.get_mut(id)
                {
                    expected.echoed.insert(packet.clone());
                }
                self.executor.receive(now_ns, reply.from, &reply.datagram);
            }
            self.take(now_ns, tally)?;
            if self.expected.values().any(|expected| expected.deadline_ns < now_ns) {
                return Err("deadline");
            }
            let next = self.executor.next_deadline().into_iter().chain(self.network.next()).min();
            let Some(next) = next else { break };
            now_ns = next.max(now_ns + 1);
        }
        if !self.expected.is_empty() {
            return Err("no outcome");
        }
        if self.executor.in_flight() > 0 || self.executor.next_deadline().is_some() {
            return Err("leftovers");
        }
        Ok(())
    }

    fn take(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), &'static str> {
        while let Some(completion) = self.executor.completed(now_ns) {
            self.check(now_ns, completion, tally)?;
        }
        Ok(())
    }

    fn note_sent(&mut self, now_ns: u64, outgoing: &OutgoingProgram) -> Result<(), &'static str> {
        let Some(expected) = self.expected.get_mut(&outgoing.request) else { return Err("sent after the end") };
        let (packet, name) = outgoing.datagram.split_at(outgoing.datagram.len() - NAME_LEN);
        if outgoing.to != address(expected.target) {
            return Err("destination");
        }
        let times = expected.sent.entry(packet.to_vec()).or_default();
        if let Some(last) = times.last() {
            let backoff = (SETTINGS.timeout_ns << (times.len() - 1)).min(SETTINGS.longest_timeout_ns);
            if now_ns < last + backoff {
                return Err("backoff");
            }
        }
        times.push(now_ns);
        if times.len() > expected.options.tries as usize {
            return Err("tries");
        }
        self.names.insert(name.to_vec(), (outgoing.request, packet.to_vec()));
        let waiting =
            |expected: &Expected| expected.sent.keys().filter(|sent| !expected.echoed.contains(*sent)).count();
        if self.expected.values().map(waiting).sum::<usize>() > SETTINGS.in_flight {
            return Err("bound");
        }
        Ok(())
    }

    fn check(&mut self, now_ns: u64, completion: Completion, tally: &mut Tally) -> Result<(), &'static str> {
        let Completion { request, outcome } = completion;
        let Some(expected) = self.expected.remove(&request) else { return Err("two outcomes") };
        if now_ns > expected.deadline_ns {
            return Err("deadline");
        }
        let code = |packet: &Vec<u8>| Packet::new_checked(packet).map(|it| it.instructions().collect::<Vec<_>>());
        let codes: Vec<_> = expected.sent.keys().filter_map(|packet| code(packet).ok()).collect();
        tally.ranges += u64::from(codes.iter().enumerate().any(|(at, code)| codes[..at].contains(code)));
        let is_echoed = expected.echoed.len() == expected.plan.packets();
        let (path, is_echoing) = &self.network.paths[expected.target];
        match outcome {
            RequestOutcome::Executed(found) => {
                tally.executed += 1;
                if found.sent as usize != expected.sent.values().map(Vec::len).sum::<usize>() {
                    return Err("count");
                }
                let path: Vec<u32> = path.iter().map(|switch| self.network.switches[*switch].id).collect();
                compare(&expected.source, &expected.options, &path, &found)?;
                self.check_stores(request, &expected, &path, &found, tally)
            }
            RequestOutcome::Unanswered { .. } | RequestOutcome::TooLate { .. } if is_echoed => Err("echo was ignored"),
            RequestOutcome::TooLate { .. } => {
                tally.too_late += 1;
                if now_ns < expected.deadline_ns { Err("too early") } else { Ok(()) }
            }
            RequestOutcome::Unanswered { .. } => {
                tally.unanswered += 1;
                let all_tries = expected.sent.values().any(|times| times.len() == expected.options.tries as usize);
                // A program may end before the end that reflects it.
                let may_end = expected.source.instructions.iter().any(|it| it.operation.may_end());
                let is_reflected = expected.options.reflects
                    && !may_end
                    && expected.options.switch.is_none_or(|id| path.iter().any(|at| *at as u32 + 1 == id));
                let is_quiet = self.faults.loss + self.faults.damage == 0 && self.faults.delay_ns < SETTINGS.timeout_ns;
                if !all_tries {
                    Err("too early")
                } else if is_quiet && (*is_echoing || is_reflected) {
                    Err("lost without loss")
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Compares the verdicts with what the switches stored.
    fn check_stores(
        &self,
        request: RequestId,
        expected: &Expected,
        path: &[u32],
        found: &ExecutedProgram,
        tally: &mut Tally,
    ) -> Result<(), &'static str> {
        for store in &found.stores {
            let it = expected.source.instructions[store.instruction];
            let switch = match (store.hop, expected.options.switch) {
                (Some(hop), None) => path.get(hop).copied(),
                (None, Some(switch)) => Some(switch),
                _ => None,
            };
            let Some(switch) = switch else {
                // All switches share its words.
                if store.verdict != StoreVerdict::Unclear {
                    return Err("verdict of many");
                }
                continue;
            };
            let log = self.network.switches.iter().filter(|it| it.id == switch).flat_map(|it| &it.log);
            let log = log.filter(|stored| stored.request == Some(request) && stored.address == it.address);
            // A `STORE` behind it has another value.
            let size = expected.source.repr.word_size.bytes();
            let new = &expected.source.memory[usize::from(it.second) * size..][..size];
            let new = new.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            let count = log.filter(|stored| stored.value == new).count();
            let has_copies = self.faults.copies > 0;
            if count > 1 {
                return Err("stored twice");
            }
            let is_right = match store.verdict {
                StoreVerdict::Stored => count == 1,
                StoreVerdict::StoredEarlier => count == 1 && expected.options.owns_values,
                StoreVerdict::HasNewValue { may_have_stored } => {
                    !expected.options.owns_values && (may_have_stored || has_copies || count == 0)
                }
                StoreVerdict::Other { found, may_have_stored } => {
                    found != new && (may_have_stored || has_copies || count == 0)
                }
                StoreVerdict::NotReached => count == 0,
                StoreVerdict::Unclear => true,
                StoreVerdict::Denied | StoreVerdict::Absent => false,
            };
            if !is_right {
                return Err("verdict");
            }
            match store.verdict {
                StoreVerdict::Stored => tally.stored += 1,
                StoreVerdict::StoredEarlier => tally.stored_earlier += 1,
                StoreVerdict::HasNewValue { .. } => tally.has_new_value += 1,
                StoreVerdict::Other { .. } => tally.others += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

#[test]
fn requests_have_the_words_of_their_switches_over_any_network() {
    let runs = testing::number("TRIPLANE_TPP_EXECUTOR_RUNS", 3_000);
    let tally = std::sync::Mutex::new(Vec::new());
    testing::seed::for_each(0..runs, |seed| {
        let mut of_run = Tally::default();
        if let Err(violation) = run(seed, None, &mut of_run) {
            panic!("seed {seed}: {violation}");
        }
        tally.lock().expect("no panic").push(of_run);
        true
    });
    let tallies = tally.into_inner().expect("no panic");
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let counts = [
        ("executed", sum(|it| it.executed)),
        ("unanswered", sum(|it| it.unanswered)),
        ("too late", sum(|it| it.too_late)),
        ("split", sum(|it| it.split)),
        ("ranges", sum(|it| it.ranges)),
        ("targeted", sum(|it| it.targeted)),
        ("stored", sum(|it| it.stored)),
        ("stored earlier", sum(|it| it.stored_earlier)),
        ("has new value", sum(|it| it.has_new_value)),
        ("others", sum(|it| it.others)),
        ("refused", sum(|it| it.refused_plans)),
    ];
    println!("{counts:?}");
    // Each case occurs.
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
}

const HEADER: &str = "\
# Mutants of the executor

Each line is an error that `tpp::executor::ExecutorMutant` switches on, and the first random run that finds it, and how.
The list is written by `UPDATE_EXPECT=1 cargo test -p tpp mutant`.
";

#[test]
fn each_mutant_of_the_executor_is_found() {
    let list = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/executor_mutants.md"), HEADER);
    testing::mutants::assert_each_is_found(ExecutorMutant::ALL, list, |seed, mutant| {
        run(seed, Some(mutant), &mut Tally::default()).err()
    });
}

/// Programs of any bytes are planned or refused, and their echoes may have any words.
#[test]
fn any_program_is_executed_or_refused() {
    let (map, mut planned) = (tpp::MemoryMap::new(), 0);
    for seed in 0..testing::number("TRIPLANE_TPP_EXECUTOR_PROGRAMS", 20_000) {
        let mut rng = SplitMix64::new(seed);
        let case = Case::new(seed);
        let Ok(packet) = Packet::new_checked(&case.bytes[..]) else { continue };
        let mut source = TinyProgram::decode(&packet);
        if rng.percent(30) {
            // A large one, whose operands and memory need not fit.
            source.instructions.extend(source.instructions.clone());
            source.memory.extend(vec![rng.next_u64() as u8; 2 * rng.below(400) as usize]);
        }
        let options = ExecutionOptions {
            switch: rng.percent(50).then_some(7),
            reflects: rng.percent(20),
            tries: rng.pick(&[(1, 1), (1, 2)]),
            owns_values: rng.percent(50),
        };
        let Ok(plan) = ExecutionPlan::new(&source, &options) else { continue };
        planned += 1;
        let mut executor = ProgramExecutor::new(SETTINGS);
        executor.execute(address(0), Arc::new(plan), 1000).expect("there is room");
        while let Some(OutgoingProgram { mut datagram, .. }) = executor.send(0, || rng.next_u64()) {
            for (memory, rights) in &case.switches {
                Tcpu::execute(&mut datagram, &mut memory.clone(), rights);
            }
            let mut packet = Packet::new_checked(&mut datagram[..]).expect("its length stays");
            if rng.percent(50) {
                packet.memory_mut().iter_mut().for_each(|byte| *byte ^= rng.next_u64() as u8);
                packet.set_hop(rng.next_u64() as i8);
            }
            packet.add_status(wire::tpp::Status(0x80 | rng.next_u64() as u8));
            packet.fill_checksum();
            executor.receive(1, (address(0), wire::tpp::UDP_PORT), &datagram);
        }
        if let Some(Completion { outcome: RequestOutcome::Executed(found), .. }) = executor.completed(1) {
            found.program.words_or_absent(&map);
            found.program.unnamed_or_absent();
            if found.program.fits() {
                found.program.packet(&[]);
            }
        }
    }
    assert!(planned > 100, "{planned}");
}

/// Datagrams of any bytes complete nothing and do not panic.
#[test]
fn any_bytes_are_refused() {
    let mut rng = SplitMix64::new(3);
    let plan = ExecutionPlan::new(&assembled(".hops 3\nPUSH [Switch:ID]\n"), &ExecutionOptions::default());
    let mut executor = ProgramExecutor::new(SETTINGS);
    let to: IpAddr = address(0);
    executor.execute(to, Arc::new(plan.expect("it has no stores")), u64::MAX).expect("there is room");
    let sent = executor.send(0, || 77).expect("a program");
    for _ in 0..20_000 {
        let mut datagram = sent.datagram.clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(datagram.len() as u64) as usize;
            datagram[at] ^= 1 << rng.below(8);
        }
        datagram.truncate(rng.below(2 * datagram.len() as u64) as usize);
        executor.receive(1, (to, wire::tpp::UDP_PORT), &datagram);
    }
    assert_eq!(executor.completed(2), None);
    let refused = executor.refused();
    assert_eq!(refused.damaged + refused.foreign + refused.altered + refused.repeated, 20_000, "{refused:?}");
}
