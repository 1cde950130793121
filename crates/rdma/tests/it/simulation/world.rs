//! The run of a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::OnceLock;

use rdma::{
    AccessRights, FailureReason, FrameList, MemoryKey, MemoryRange, Mutant, Mutation, QpEndpoint, QpNumber,
    RequestOutcome, RequestRefusal, Requester, RequesterConfig, Responder, ResponderConfig,
};
use rng::SplitMix64;
use switch::Time;
use wire::roce::{Extension, NakCode, Opcode, Packet, Syndrome};

use super::model::{Model, Operation, WORD, value};
use super::network::{Network, Node};
use super::{Scenario, SimulationReport, Violation, tenant};
use crate::pair::{BASE, DOMAIN, datagram, path, raw_frame};

/// Number of words of memory, and of the last ones that atomic operations use.
const WORDS: usize = 256;
const ATOMIC_WORDS: usize = 8;

const TIMEOUT_NS: u64 = 200_000;
const MAX_RETRIES: u8 = 40;
/// Time after the last fault in which all requests have to end.
const END_NS: u64 = 15_000_000;
/// Maximum number of steps of a run.
const MAX_STEPS: usize = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Issue(usize),
    Reopen(usize),
    Restart,
    Die,
    Probe,
    Heal,
}

/// A connection of a queue pair.
#[derive(Clone, Copy)]
struct Connection {
    local: QpEndpoint,
    remote: QpNumber,
}

pub struct World {
    scenario: Scenario,
    mutation: Mutation,
    rng: SplitMix64,
    now: u64,
    requester: Requester,
    /// None once it is dead.
    responder: Option<Responder<Vec<u8>>>,
    key: MemoryKey,
    connections: Vec<Connection>,
    /// The connection of each queue pair.
    current: Vec<usize>,
    is_reopening: Vec<bool>,
    network: Network,
    model: Model,
    actions: BinaryHeap<Reverse<(u64, Action)>>,
    last_gap: BTreeMap<u32, u32>,
    reads: (usize, usize),
    end: u64,
    report: SimulationReport,
}

impl World {
    pub fn new(scenario: Scenario, mutant: Option<Mutant>) -> World {
        let mutation = Mutation::of(mutant);
        let config = RequesterConfig {
            max_reads: scenario.max_reads.0,
            timeout_ns: TIMEOUT_NS,
            max_retries: MAX_RETRIES,
            ..RequesterConfig::default()
        };
        let mut world = World {
            mutation,
            rng: SplitMix64::new(scenario.seed ^ 0x5eed),
            now: 0,
            requester: Requester::with_mutation(config, mutation),
            responder: None,
            key: MemoryKey(0),
            connections: Vec::new(),
            current: vec![usize::MAX; scenario.queue_pairs],
            is_reopening: vec![false; scenario.queue_pairs],
            network: Network::default(),
            model: Model::new(WORDS, scenario.mtu.bytes()),
            actions: BinaryHeap::new(),
            last_gap: BTreeMap::new(),
            reads: (0, 0),
            end: u64::MAX,
            report: SimulationReport::default(),
            scenario,
        };
        world.start_responder();
        (0..world.scenario.queue_pairs).for_each(|qp| world.connect(qp));
        world.plan();
        world
    }

    fn start_responder(&mut self) {
        let config = ResponderConfig { max_reads: self.scenario.max_reads.1, ..ResponderConfig::default() };
        let mut responder = Responder::with_mutation(config, self.mutation);
        let memory = vec![0; WORDS * WORD];
        let key = responder.register(&mut self.rng, DOMAIN, AccessRights::ALL, BASE, memory);
        self.key = key.expect("it is the first region");
        self.responder = Some(responder);
    }

    fn connect(&mut self, qp: usize) {
        let Some(responder) = &mut self.responder else { return };
        let path = path(self.scenario.is_v6, self.scenario.mtu);
        // A seed is used once in a run, since it gives the number of the queue pair, too.
        let near = near_wrap_seeds().get(self.connections.len()).filter(|_| self.scenario.wraps);
        let mut numbers = SplitMix64::new(near.copied().unwrap_or_else(|| self.rng.next_u64()));
        let local = self.requester.open(&mut numbers, path).expect("there are few");
        let remote = responder.accept(&mut self.rng, DOMAIN, path.reversed(), local).expect("there are few");
        self.requester.connect(local.number, remote).expect("it is open");
        self.last_gap.remove(&local.number.0);
        self.report.wraps += u64::from(local.psn.number() > 0xffff00);
        self.current[qp] = self.connections.len();
        self.connections.push(Connection { local, remote: remote.number });
        self.model.open.push(true);
        self.is_reopening[qp] = false;
    }

    fn plan(&mut self) {
        let mut time = 0;
        for _ in 0..self.scenario.operations {
            time += self.rng.below(8_000);
            let qp = self.rng.below(self.scenario.queue_pairs as u64) as usize;
            self.actions.push(Reverse((time, Action::Issue(qp))));
        }
        if self.scenario.has_restarts {
            for _ in 0..=self.rng.below(2) {
                self.actions.push(Reverse((self.rng.below(time), Action::Restart)));
                let qp = self.rng.below(self.scenario.queue_pairs as u64) as usize;
                self.actions.push(Reverse((self.rng.below(time), Action::Reopen(qp))));
            }
        }
        if self.scenario.dies {
            self.actions.push(Reverse((self.rng.below(time), Action::Die)));
        }
        self.actions.push(Reverse((self.rng.below(time), Action::Probe)));
        self.actions.push(Reverse((time + 500_000, Action::Heal)));
        // A malicious peer may request the longest receiver-not-ready wait, as often as there are retries.
        let waits = if self.scenario.has_liar { u64::from(MAX_RETRIES) * 655_360_000 } else { 0 };
        self.end = time + 500_000 + END_NS + waits;
    }

    pub fn run(mut self) -> SimulationReport {
        if let Err(violation) = self.steps() {
            self.report.violations.push(violation);
        }
        self.report.packets = self.network.sent();
        self.report.counts = *self.requester.counts();
        self.report.retries = self.requester.counts().repeated;
        self.report.duplicates = self.responder.as_ref().map_or(0, |responder| responder.counts().duplicates);
        self.report
    }

    fn steps(&mut self) -> Result<(), Violation> {
        for _ in 0..MAX_STEPS {
            let action = self.actions.peek().map(|Reverse((time, _))| *time);
            let frame = self.network.next_time();
            let timer = self.requester.next_event().map(Time::as_ns);
            let Some(next) = [action, frame, timer].into_iter().flatten().min() else { return self.judge_end() };
            if next > self.end {
                return self.judge_end();
            }
            self.now = self.now.max(next);
            if action == Some(next) {
                let Some(Reverse((_, action))) = self.actions.pop() else { continue };
                self.act(action)?;
            } else if frame == Some(next) {
                let Some((node, frame)) = self.network.pop() else { continue };
                self.deliver(node, &frame)?;
            }
            self.requester.tick(Time::from_ns(self.now));
            self.take_completions()?;
            self.send_requests()?;
        }
        Err(Violation::NoEnd(format!("after {MAX_STEPS} steps")))
    }

    fn judge_end(&self) -> Result<(), Violation> {
        let left: Vec<_> = self.model.requests.iter().filter(|request| !request.is_ended).collect();
        match left.first() {
            Some(first) => Err(Violation::NoEnd(format!("{} requests, the first {:?}", left.len(), first.operation))),
            None => Ok(()),
        }
    }

    fn act(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Issue(qp) => self.issue(qp),
            Action::Reopen(qp) => {
                let Connection { local, remote } = self.connections[self.current[qp]];
                self.requester.close(local.number);
                self.take_completions()?;
                if let Some(responder) = &mut self.responder {
                    responder.close(remote);
                }
                self.model.open[self.current[qp]] = false;
                self.connect(qp);
            }
            Action::Restart if self.responder.is_some() => {
                self.start_responder();
                self.model.forget(self.now);
                self.model.open.iter_mut().for_each(|open| *open = false);
                for qp in 0..self.scenario.queue_pairs {
                    self.reopen_later(qp, 100_000);
                }
            }
            Action::Die => {
                self.responder = None;
                self.model.open.iter_mut().for_each(|open| *open = false);
            }
            Action::Probe => {
                if let Some(responder) = &mut self.responder {
                    tenant::probe(responder, &mut self.rng, (BASE, self.key), self.mutation)?;
                }
                self.observe()?;
            }
            Action::Heal => self.network.is_healed = true,
            Action::Restart => {}
        }
        Ok(())
    }

    fn reopen_later(&mut self, qp: usize, max_ns: u64) {
        if !std::mem::replace(&mut self.is_reopening[qp], true) {
            self.actions.push(Reverse((self.now + 1 + self.rng.below(max_ns), Action::Reopen(qp))));
        }
    }

    fn issue(&mut self, qp: usize) {
        let operation = self.choose();
        let number = self.connections[self.current[qp]].local.number;
        let token = self.model.issue(operation.clone(), self.current[qp], self.now);
        let (key, requester) = (self.key, &mut self.requester);
        let address = |word: usize| BASE + (word * WORD) as u64;
        let accepted = match operation {
            Operation::Read { start, len } => {
                let range = MemoryRange { address: BASE + start as u64, key, len: len as u32 };
                requester.read(number, token, range)
            }
            Operation::Write { start, words } => {
                let data: Vec<u8> = (start..start + words).flat_map(|word| value(token, word).to_le_bytes()).collect();
                requester.write(number, token, address(start), key, &data)
            }
            Operation::FetchAdd { word, add } => requester.fetch_add(number, token, address(word), key, add),
            Operation::CompareSwap { word, compare, swap } => {
                requester.compare_swap(number, token, address(word), key, compare, swap)
            }
        };
        if accepted == Err(RequestRefusal::NotConnected) || accepted == Err(RequestRefusal::NoQueuePair) {
            let _ = self.model.end(token);
        } else {
            accepted.expect("the queue is long enough");
        }
    }

    fn choose(&mut self) -> Operation {
        let token = self.model.requests.len() as u64;
        let plain = (WORDS - ATOMIC_WORDS) as u64;
        let word = plain as usize + self.rng.below(ATOMIC_WORDS as u64) as usize;
        match self.rng.below(10) {
            0..5 => {
                let start = self.rng.below((WORDS * WORD) as u64);
                let longest = (WORDS * WORD) as u64 - start + 1;
                let len = if self.rng.percent(60) { self.rng.below(longest.min(257)) } else { self.rng.below(longest) };
                Operation::Read { start: start as usize, len: len as usize }
            }
            5..8 => {
                let start = self.rng.below(plain);
                let longest = plain - start;
                let most = if self.rng.percent(60) { longest.min(32) } else { longest };
                Operation::Write { start: start as usize, words: 1 + self.rng.below(most) as usize }
            }
            8 => Operation::FetchAdd { word, add: token << 32 | 1 },
            _ => Operation::CompareSwap { word, compare: self.model.current(word), swap: value(token, word) },
        }
    }

    fn deliver(&mut self, node: Node, frame: &[u8]) -> Result<(), Violation> {
        if node == Node::Requester {
            self.requester.on_frame(Time::from_ns(self.now), frame);
            return Ok(());
        }
        let Some(responder) = &mut self.responder else { return Ok(()) };
        let mut answers = FrameList::default();
        responder.on_frame(frame, &mut answers);
        if let Some(failure) = responder.next_failure().filter(|_| !self.scenario.has_liar) {
            return Err(Violation::WrongFailure(format!("{failure:?}")));
        }
        self.observe()?;
        while let Some(answer) = answers.pop() {
            self.check_answer(&answer)?;
            let answer = if self.scenario.has_liar { self.lie(&answer, true) } else { answer };
            self.network.send(self.now, Node::Requester, &answer, &self.scenario, &mut self.rng);
        }
        Ok(())
    }

    fn observe(&mut self) -> Result<(), Violation> {
        match &self.responder {
            Some(responder) if !self.scenario.has_liar => {
                self.model.observe(self.now, responder.memory(self.key).expect("it is registered"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a gap is reported once.
    fn check_answer(&mut self, frame: &[u8]) -> Result<(), Violation> {
        let packet = Packet::new_checked(datagram(frame).expect("the responder sends UDP")).expect("RoCE");
        let Extension::Aeth(aeth) = packet.extension() else { return Ok(()) };
        if aeth.syndrome == Syndrome::Nak(NakCode::SequenceError) {
            let (to, psn) = (packet.destination_qp(), packet.psn().number());
            if self.last_gap.insert(to, psn) == Some(psn) && !self.scenario.has_liar {
                return Err(Violation::GapReportedTwice);
            }
        }
        Ok(())
    }

    fn send_requests(&mut self) -> Result<(), Violation> {
        let mut frames = FrameList::default();
        self.requester.transmit(Time::from_ns(self.now), &mut frames);
        while let Some(frame) = frames.pop() {
            let packet = Packet::new_checked(datagram(&frame).expect("the requester sends UDP")).expect("RoCE");
            let has_answer = !matches!(packet.opcode(), Opcode::Write(_));
            self.reads.0 += usize::from(has_answer);
            if self.scenario.has_attacker && self.rng.percent(10) {
                self.attack(&packet);
            }
            let frame = if self.scenario.has_liar { self.lie(&frame, false) } else { frame };
            self.network.send(self.now, Node::Responder, &frame, &self.scenario, &mut self.rng);
        }
        let outstanding = self.reads.0 - self.reads.1.min(self.reads.0);
        let window = usize::from(self.scenario.max_reads.0.min(self.scenario.max_reads.1)) * self.scenario.queue_pairs;
        if self.scenario.is_orderly() && outstanding > window {
            return Err(Violation::WindowExceeded(outstanding));
        }
        Ok(())
    }

    /// Sends packets that match a request from the address of another host: a WRITE after it, and an answer to it.
    fn attack(&mut self, request: &Packet<&[u8]>) {
        use wire::checksum::Addresses;
        use wire::roce::{Aeth, Position, Repr, Reth};
        let mut path = path(self.scenario.is_v6, self.scenario.mtu);
        let connection = self.connections.iter().find(|connection| connection.remote.0 == request.destination_qp());
        let Some(connection) = connection.copied() else { return };
        path.addresses = match path.addresses {
            Addresses::V4(_, destination) => Addresses::V4([10, 0, 0, 9].into(), destination),
            Addresses::V6(_, destination) => Addresses::V6([9; 16].into(), destination),
        };
        let write = Extension::Reth(Reth { address: BASE, key: self.key.0, len: 8 });
        let psn = request.psn().plus(1);
        let forged = Repr::new(Opcode::Write(Position::Only), request.destination_qp(), psn, write).packet(&[0xee; 8]);
        self.network.send(self.now, Node::Responder, &raw_frame(&path, &forged), &self.scenario, &mut self.rng);
        let mut back = path.reversed();
        back.addresses = match back.addresses {
            Addresses::V4(..) => Addresses::V4([10, 0, 0, 9].into(), [10, 0, 0, 1].into()),
            Addresses::V6(..) => Addresses::V6([9; 16].into(), [1; 16].into()),
        };
        if let Extension::Reth(reth) = request.extension() {
            let aeth = Extension::Aeth(Aeth { syndrome: Syndrome::ACK, message_number: 0 });
            let opcode = Opcode::ReadResponse(Position::Only);
            let forged = Repr::new(opcode, connection.local.number.0, request.psn(), aeth);
            let frame = raw_frame(&back, &forged.packet(&vec![0xee; reth.len.min(256) as usize]));
            self.network.send(self.now, Node::Requester, &frame, &self.scenario, &mut self.rng);
        }
    }

    /// Changes the meaning of a packet, with a valid integrity check.
    fn lie(&mut self, frame: &[u8], is_answer: bool) -> Vec<u8> {
        let mut bytes = datagram(frame).expect("it was sent").to_vec();
        if !self.network.is_healed && self.rng.percent(30) {
            match self.rng.below(4) {
                0 => bytes.truncate(self.rng.below(bytes.len() as u64 + 1) as usize),
                1 => bytes.extend(vec![0xaa; self.rng.below(300) as usize]),
                2 => bytes[0] = self.rng.below(0x20) as u8,
                _ => {
                    let at = self.rng.below(bytes.len() as u64) as usize;
                    bytes[at] = self.rng.next_u64() as u8;
                }
            }
        }
        let path = path(self.scenario.is_v6, self.scenario.mtu);
        raw_frame(&if is_answer { path.reversed() } else { path }, &bytes)
    }

    fn take_completions(&mut self) -> Result<(), Violation> {
        let mut failed = Vec::new();
        while let Some(completion) = self.requester.next_completion() {
            let (token, number) = (completion.token, completion.number);
            let is_read = self.model.requests.get(token as usize).map(|request| &request.operation);
            self.reads.1 += usize::from(!matches!(is_read, Some(Operation::Write { .. })));
            if let RequestOutcome::Failed(reason) = completion.outcome {
                let connection = self.model.end(token)?.connection;
                let is_expected = match reason {
                    FailureReason::Flushed => true,
                    FailureReason::NoAnswer => !self.model.open[connection],
                    FailureReason::Refused(_) => false,
                };
                if !is_expected && !self.scenario.has_liar {
                    return Err(Violation::WrongFailure(format!("request {token}: {reason:?}")));
                }
                self.report.failed += 1;
                failed.push(number);
                continue;
            }
            self.report.completed += 1;
            if self.scenario.has_liar {
                let operation = self.model.end(token)?.operation.clone();
                judge_form(&operation, &completion.outcome)?;
                continue;
            }
            match completion.outcome {
                RequestOutcome::Read(data) => self.model.end_read(self.now, token, data)?,
                RequestOutcome::Written => self.model.end_write(token)?,
                RequestOutcome::Original(original) => self.model.end_atomic(token, original)?,
                RequestOutcome::Failed(_) => {}
            }
        }
        for number in failed {
            let is_of = |connection: &usize| self.connections[*connection].local.number == number;
            if let Some(qp) = self.current.iter().position(is_of) {
                self.reopen_later(qp, 10_000);
            }
        }
        Ok(())
    }
}

/// Checks the kind and the length of a result whose contents may be forged.
fn judge_form(operation: &Operation, outcome: &RequestOutcome) -> Result<(), Violation> {
    let is_fit = match (operation, outcome) {
        (Operation::Read { len, .. }, RequestOutcome::Read(data)) => data.len() == *len,
        (Operation::Write { .. }, RequestOutcome::Written) => true,
        (Operation::FetchAdd { .. } | Operation::CompareSwap { .. }, RequestOutcome::Original(_)) => true,
        _ => false,
    };
    if is_fit { Ok(()) } else { Err(Violation::WrongCompletion(format!("{operation:?} ended as another kind"))) }
}

/// Seeds with which the first sequence number of a queue pair is just before the end of the space.
fn near_wrap_seeds() -> &'static [u64; 32] {
    static SEEDS: OnceLock<[u64; 32]> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let is_near = |seed: &u64| {
            let mut rng = SplitMix64::new(*seed);
            rng.next_u64();
            rng.next_u64() as u32 & 0xff_ffff > 0xff_ffd0
        };
        let mut seeds = (0..).filter(is_near);
        std::array::from_fn(|_| seeds.next().expect("there are enough"))
    })
}
