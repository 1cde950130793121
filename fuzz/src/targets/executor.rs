//! Requests of an executor, as bytes: options, a program of any size, and what the network does to each packet. Every
//! request ends by its deadline, with no more packets than permitted, and its verdicts claim no try that was not made.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use diagnostics::{Diagnostics, SourceMap};
use tpp::executor::{
    ExecutedProgram, ExecutionOptions, ExecutionPlan, ExecutorSettings, ProgramExecutor, RequestOutcome, StoreVerdict,
};
use tpp::map::MemoryMap;
use tpp::probe::echo;
use tpp::{AccessRights, SparseMemory, Tcpu, TinyProgram, assemble_large, disassemble};
use wire::tpp::{Packet, Status, UDP_PORT};

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::worker;

/// Programs: the shapes that are split, guarded, retried and reflected. Options precede each, and events follow it.
const SEEDS: [&str; 7] = [
    "0123PUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]\n\0\0\x01\x02\x03",
    "\x02\0\x01\0.hops 40\nPUSH [Switch:ID]\nPUSH [Link:ID]\nPUSH [Switch:Clock]\nPUSH [Switch:Clock.High]\n\
     PUSH [Switch:Ports]\nPUSH [Link:Status]\nPUSH [Link:TX-Bytes]\n\0\x03\x02\x01\x04\x05",
    "\x02\x02\0\0CSTORE [Switch:AppSpecific_0], 0, 5\n\0\x01\0\x01",
    "\x02\x02\x02\0.word 16\n.mode hop\nCSTORE [Link:AppSpecific_1], 7, 9\nLOAD [Switch:ID], [Packet:hop[2]]\n\0\0",
    "\0\x01\x01\0CEXEC [Switch:ID], 2\nSTORE [Switch:AppSpecific_0], [Packet:2]\n\0\x06\x07",
    ".mode hop\n.hop -2\n.memory hop 1: 2, 3\nLOAD [Link$3:TX-Bytes], [Packet:hop[0]]\nMAX [Switch:Clock], [Packet:hop[1]]\n",
    "\x05\x03\x03\0.readonly\n.app 7\n.sp 4\nPOP [Link:AppSpecific_0]\nCEXEC [PacketMetadata:TPP-Hop], 0xfe, 2\n\0\x04\x10",
];

/// Times of the executor, in nanoseconds.
const SETTINGS: ExecutorSettings =
    ExecutorSettings { timeout_ns: 100, longest_timeout_ns: 300, in_flight: 4, requests: 4 };
const DEADLINES_NS: [u64; 2] = [20_000, 150];

/// Maximum number of packets of a request that are carried. Larger ones take too long for a round.
const PACKETS: usize = 64;

/// The target.
pub struct Requests {
    map: MemoryMap,
    inputs: Vec<Vec<u8>>,
}

/// What the network does to a packet.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Fate {
    Passes,
    Lost,
    EchoLost,
    Twice,
    Damaged,
    Cut,
    Foreign,
    Late,
}

const FATES: [Fate; 8] =
    [Fate::Passes, Fate::Lost, Fate::EchoLost, Fate::Twice, Fate::Damaged, Fate::Cut, Fate::Foreign, Fate::Late];

fn host() -> IpAddr {
    Ipv4Addr::new(10, 0, 0, 1).into()
}

/// Returns the switches of a path, each with words of applications.
fn switches(map: &MemoryMap) -> Vec<SparseMemory> {
    let switch = |number: u64| {
        let mut memory = SparseMemory::new();
        let address = |name: &str| map.find(name).expect("it is in the map").address;
        memory.fixed(address("Switch:ID"), number);
        memory.fixed(address("Switch:Clock"), number << 40);
        for name in ["Switch:AppSpecific_0", "Link:AppSpecific_1"] {
            memory.word(u16::try_from(address(name)).expect("it is direct"), 0);
        }
        memory
    };
    (1..=3).map(switch).collect()
}

/// A request: options, the deadline, the text of a program, and the events of the network.
fn parts(input: &[u8]) -> (ExecutionOptions, u64, String, &[u8]) {
    let (options, rest) = input.split_at(input.len().min(4));
    let option = |at: usize| options.get(at).copied().unwrap_or(0);
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (text, events) = rest.split_at(end);
    let switch = (option(1) % 5).checked_sub(1).map(u32::from);
    let (reflects, owns_values) = (option(2) & 1 == 1, option(2) & 2 == 2);
    let options = ExecutionOptions { switch, reflects, tries: 1 + u32::from(option(0) % 4), owns_values };
    let deadline_ns = DEADLINES_NS[usize::from(option(3) & 1)];
    (options, deadline_ns, String::from_utf8_lossy(text).into_owned(), events.get(1..).unwrap_or(&[]))
}

impl Requests {
    pub fn new() -> Requests {
        Requests { map: MemoryMap::new(), inputs: SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect() }
    }

    /// Carries the packets of a plan until it has an outcome.
    fn carry(
        &self,
        plan: &Arc<ExecutionPlan>,
        (tries, deadline_ns): (u32, u64),
        events: &[u8],
        reached: &mut Reached,
    ) -> RequestOutcome {
        let (mut executor, mut path) = (ProgramExecutor::new(SETTINGS), switches(&self.map));
        let id = executor.execute(host(), Arc::clone(plan), deadline_ns).expect("there is room");
        let most = plan.packets() * tries as usize;
        let (mut now_ns, mut sent, mut late, mut events) = (0, 0, Vec::new(), events.iter().copied());
        loop {
            while let Some(outgoing) = executor.send(now_ns, || sent as u64 ^ 0x5a5a) {
                sent += 1;
                assert!(sent <= most, "{sent} packets were sent, and {most} are permitted");
                assert!(executor.in_flight() <= SETTINGS.in_flight);
                let packet = Packet::new_checked(&outgoing.datagram[..]).expect("a program");
                assert!(packet.is_checksum_right());
                let is_done = packet.status().contains(Status::DONE);
                let fate = FATES[usize::from(events.next().unwrap_or(0)) % FATES.len()];
                reached.add(fate);
                let mut datagram = outgoing.datagram;
                // Nobody echoes a program that is done already.
                if fate == Fate::Lost || is_done {
                    continue;
                }
                let mut reflects = |memory: &mut SparseMemory| {
                    let rights = AccessRights::all();
                    Tcpu::execute(&mut datagram, memory, &rights).reflect
                };
                if !path.iter_mut().any(&mut reflects) {
                    assert!(echo(40_000, &mut datagram), "the program arrived as it was sent, except for its words");
                }
                let mut from = host();
                match fate {
                    Fate::EchoLost => continue,
                    Fate::Damaged => {
                        let bit = usize::from(events.next().unwrap_or(0)) % (8 * datagram.len());
                        datagram[bit / 8] ^= 1 << (bit % 8);
                    }
                    Fate::Cut => datagram.truncate(usize::from(events.next().unwrap_or(0)) % datagram.len()),
                    Fate::Foreign => from = Ipv4Addr::new(10, 0, 0, 2).into(),
                    Fate::Late => {
                        late.push(datagram);
                        continue;
                    }
                    _ => {}
                }
                executor.receive(now_ns, (from, UDP_PORT), &datagram);
                if fate == Fate::Twice {
                    executor.receive(now_ns, (from, UDP_PORT), &datagram);
                }
            }
            if let Some(completion) = executor.completed(now_ns) {
                assert_eq!(completion.request, id);
                late.iter().for_each(|datagram| executor.receive(now_ns, (host(), UDP_PORT), datagram));
                assert!(executor.completed(now_ns).is_none(), "a request has one outcome");
                assert_eq!((executor.in_flight(), executor.next_deadline()), (0, None), "nothing is left");
                return completion.outcome;
            }
            let next_ns = executor.next_deadline().expect("the request waits for something");
            assert!(next_ns > now_ns && next_ns <= deadline_ns, "{next_ns} after {now_ns}");
            now_ns = next_ns;
            late.drain(..).for_each(|datagram| executor.receive(now_ns, (host(), UDP_PORT), &datagram));
        }
    }

    /// Asserts what holds for every program that came back.
    fn check(&self, plan: &ExecutionPlan, found: &ExecutedProgram, reached: &mut Reached) {
        let packets = plan.packets() as u32;
        assert!(found.sent >= packets);
        found.program.words_or_absent(&self.map);
        assert!(!disassemble(&found.program, &self.map).is_empty());
        for store in &found.stores {
            let blames_earlier = matches!(
                store.verdict,
                StoreVerdict::HasNewValue { may_have_stored: true } | StoreVerdict::Other { may_have_stored: true, .. }
            );
            assert!(!blames_earlier || found.sent > packets, "there was no earlier try: {store:?}");
            reached.add(match store.verdict {
                StoreVerdict::Other { may_have_stored, .. } => format!("other {may_have_stored}"),
                verdict => format!("{verdict:?}"),
            });
        }
    }

    /// Runs a request, if its program can be executed so.
    fn request(&self, input: &[u8], reached: &mut Reached) -> Option<RequestOutcome> {
        let (options, deadline_ns, text, events) = parts(input);
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let source = assemble_large(&mut sources, "fuzz.tpp", &text, &self.map, &mut diagnostics);
        reached.findings(&sources, &diagnostics);
        let mut source: TinyProgram = source?;
        source.mark_absent();
        let plan = match ExecutionPlan::new(&source, &options) {
            Ok(plan) => Arc::new(plan),
            Err(findings) => {
                assert!(!findings.is_empty(), "a refusal has a reason");
                findings.iter().for_each(|finding| reached.add(finding.code));
                return None;
            }
        };
        reached.add(("packets", plan.packets().min(9)));
        if plan.packets() > PACKETS {
            return None;
        }
        let outcome = self.carry(&plan, (options.tries, deadline_ns), events, reached);
        reached.add(std::mem::discriminant(&outcome));
        if let RequestOutcome::Executed(found) = &outcome {
            self.check(&plan, found, reached);
        }
        // Nothing of it depends on anything but the input.
        assert_eq!(self.carry(&plan, (options.tries, deadline_ns), events, &mut Reached::default()), outcome);
        Some(outcome)
    }
}

impl FuzzTarget for Requests {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let mut input = worker::mutated(&self.inputs, random);
        if random.one_in(2) {
            // Options and events that are as good as others, so that the text is not all that varies.
            for byte in input.iter_mut().take(4) {
                *byte = random.below(8) as u8;
            }
            input.push(0);
            input.extend(random.bytes(8));
        }
        input
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        self.request(input, &mut reached);
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_reached_and_holds() {
        let (mut target, mut random) = (Requests::new(), Random::new(7));
        let mut outcomes = [0; 3];
        let seeds = target.seeds();
        let generated: Vec<Vec<u8>> = (0..2000).map(|_| target.generate(&mut random)).collect();
        for input in seeds.iter().chain(&generated) {
            match target.request(input, &mut Reached::default()) {
                Some(RequestOutcome::Executed(_)) => outcomes[0] += 1,
                Some(RequestOutcome::Unanswered { .. }) => outcomes[1] += 1,
                Some(RequestOutcome::TooLate { .. }) => outcomes[2] += 1,
                None => {}
            }
        }
        assert!(outcomes.iter().all(|count| *count >= 10), "{outcomes:?}");
    }
}
