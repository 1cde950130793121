//! Tiny packet programs. As bytes: two processors agree, frames with them are described, located and reflected. As
//! frames: the shim of a host inserts a program, takes it out again, and adds up its words; nodes add and remove INT.
//! As text: findings that can be shown, or a program that disassembles to text with the same bytes.

use std::net::Ipv4Addr;

use diagnostics::{Diagnostics, SourceMap, Span};
use tpp::generate::Case;
use tpp::map::{FieldShape, MemoryMap, RegisterShape};
use tpp::shim::{CollectedProgram, PacketFilter, Shim, WordSums};
use tpp::{AccessPolicy, AccessRights, ProgramVerdict, TinyProgram, assemble, check, disassemble};
use wire::tpp::{Packet, Repr, Status};
use wire::{ethernet, ipv4, udp};

use super::{FuzzTarget, Reached, int};
use crate::random::Random;
use crate::worker;

/// Every directive and every instruction.
const SEEDS: &str = "\
.word 16\n.mode stack\n.hops 5\n.app 7\nPUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\nPUSH [Queue:QueueOccupancy]
.mode hop\n.memory hop 1: 2, 0xfe00\nCEXEC [Switch:VendorID], [Packet:hop[0]]\nLOAD [[Packet:hop[1]]], [Packet:hop[1]]
.hop -3\n.reflect\n.readonly\n.memory all: 1, 2\nCSTORE [Link:AppSpecific_0], 7, [Packet:1]\nMAX [Link$3:TX-Bytes.High], [Packet:0]
.encapsulated 0x0800\n.status done,full\n.sp 4\n.size 8\n.bytes 12\n.data 0011 ff\nRAW 0x30000000\nMIN [0xb000], [Packet:2]
STORE [Register:limits[3]], [Packet:0]\nPOP [Register:limits]\nLOAD [Register:large[9]], [Packet:1]\nPUSH [Field:hdr.ipv4.ttl] # x
7 read all\n7 write Link:AppSpecific_0 .. Link:AppSpecific_3\n8 read Queue$1$2:Queued-Bytes
";

/// Returns the header of a program that any packet may carry.
fn plain(repr: Repr) -> Repr {
    Repr { is_reflective: false, status: Status::NONE, ..repr }
}

/// The target.
pub struct TinyPrograms {
    map: MemoryMap,
    inputs: Vec<Vec<u8>>,
    /// A shim whose filter matches all packets, and the program that it inserts. It expects the same one.
    shim: Shim,
    program: TinyProgram,
}

/// MTU of the shim, in bytes.
const MTU: usize = 1500;

/// Returns frames for the shim: a datagram, and a SYN behind a tag.
fn frames() -> [Vec<u8>; 2] {
    let [source, destination] = [1, 2].map(|host| Ipv4Addr::new(10, 0, 0, host));
    let datagram = ipv4::Repr::new(source, destination, ipv4::UDP);
    let ports = udp::Repr { source_port: 4000, destination_port: 80 };
    let datagram = datagram.packet(&ports.packet(datagram.addresses(), b"payload"));
    // Ports, numbers, a header of 24 bytes with the flag SYN, and the option with the largest segment.
    let segment = [&[0x0f, 0xa0, 0, 80], &[0; 8][..], &[0x60, 2], &[0; 6], &[2, 4, 5, 180]].concat();
    let segment = ipv4::Repr::new(destination, source, ipv4::TCP).packet(&segment);
    let ipv4 = ethernet::IPV4.to_be_bytes();
    [[&[2; 12][..], &ipv4, &datagram].concat(), [&[2; 12][..], &[0x81, 0, 0, 5], &ipv4, &segment].concat()]
}

impl TinyPrograms {
    pub fn new() -> TinyPrograms {
        let register = |name: &str, size| RegisterShape { name: name.to_owned(), width: 32, size };
        let field = FieldShape { name: "hdr.ipv4.ttl".to_owned(), width: 8 };
        let map = MemoryMap::with_program([register("limits", 16), register("large", 100_000)], [field]);
        let texts = SEEDS.split("\n.").map(|text| format!(".{text}").into_bytes()).chain([SEEDS.as_bytes().to_vec()]);
        let programs = (0..200).map(|seed| Case::new(seed).bytes);
        let mut shim = Shim::new(MTU);
        let program = Case::new(0).bytes;
        let program = TinyProgram::decode(&Packet::new_checked(&program[..]).expect("a generated program"));
        let program = TinyProgram { repr: plain(program.repr), ..program };
        shim.add_tpp(PacketFilter::default(), &program, 1, 0).expect("it is neither done nor reflective");
        shim.expect_tpp(PacketFilter::default(), &program).expect("it is the first one");
        TinyPrograms { map, inputs: texts.chain(programs).chain(frames()).chain(int::seeds()).collect(), shim, program }
    }

    /// Runs a program on several switches, and asserts that both processors agree.
    fn execute(&self, input: &[u8], reached: &mut Reached) {
        for seed in 0..4 {
            let case = Case::of(input.to_vec(), seed + input.len() as u64);
            if let Err(difference) = case.compare(None) {
                panic!("the processors differ {difference}");
            }
            let (mut bytes, mut switches) = (input.to_vec(), case.switches);
            let (memory, rights) = &mut switches[0];
            let execution = tpp::Tcpu::execute(&mut bytes, memory, rights);
            let verdict = match execution.verdict {
                ProgramVerdict::Malformed(malformed) => malformed.to_string().split(' ').take(3).collect(),
                other => format!("{other:?}"),
            };
            let status = Packet::new_checked(&bytes).map_or(0, |packet| packet.status().0);
            reached.add((verdict, execution.executed, execution.reflect, status));
            assert_eq!(bytes.len(), input.len(), "an execution changes no length");
        }
        if let Ok(packet) = Packet::new_checked(input) {
            for instruction in packet.instructions() {
                reached.add((instruction.operation, packet.word_size()));
            }
            self.round_trip(&TinyProgram::decode(&packet), reached);
        }
    }

    /// Asserts that a program disassembles to text with the same bytes.
    fn round_trip(&self, program: &TinyProgram, reached: &mut Reached) {
        let report = check(program, &self.map, &AccessRights::all());
        for finding in &report.findings {
            reached.add(finding.code);
        }
        let text = disassemble(program, &self.map);
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let again = assemble(&mut sources, "again.tpp", &text, &self.map, &mut diagnostics);
        let again = again.unwrap_or_else(|| panic!("{}\n{text}", diagnostics.render(&sources, false)));
        assert_eq!(again.packet(&[]), program.packet(&[]), "the text has other bytes:\n{text}");
        program.words_by_hop(&self.map);
    }

    /// Asserts that a frame that got a program is restored, and that the shim makes no frame longer than the MTU
    /// permits.
    fn insert_and_strip(&mut self, input: &[u8], reached: &mut Reached) {
        let mut sent = input.to_vec();
        self.shim.sent(&mut sent, |_| 0);
        reached.add(("shim", sent.len() > input.len()));
        if sent != input {
            assert!(sent.len() <= MTU + ethernet::HEADER_LEN, "{} bytes", sent.len());
            let mut collected = 0;
            let mut receiver = Shim::new(MTU);
            receiver.expect_tpp(PacketFilter::default(), &self.program).expect("it is the first one");
            assert!(receiver.received(&mut sent, |_| collected += 1));
            assert_eq!((&sent[..], collected), (input, 1), "the packet is as it was");
        }
        let mut received = input.to_vec();
        let is_packet = self.shim.received(&mut received, |collected| _ = collected.program());
        assert!(received.len() <= input.len());
        reached.add(("received", is_packet, received.len() < input.len(), self.shim.receipt_counts().damaged > 0));
    }

    /// Asserts that the sums of a program's words are those of the words that it decodes to, wherever its stack begins.
    fn add_up(&self, input: &[u8], reached: &mut Reached) {
        if Packet::new_checked(input).is_err() {
            return;
        }
        for pointer in [0, 1, 2, 3, 4, 0xff].map(|pointer| input[5].wrapping_add(pointer)) {
            let mut collected = CollectedProgram { flow: None, bytes: input.to_vec() };
            collected.bytes[5] = pointer;
            let program = collected.program();
            let mut sums = WordSums::default();
            sums.add(&collected, &self.map);
            let words = program.words_or_absent(&self.map).into_iter().flatten().filter_map(|(_, value)| value);
            let is_executed = program.repr.hop > 0;
            let expected: u64 = words.filter(|_| is_executed).map(u64::from).sum();
            assert_eq!(sums.ordered().iter().map(|sum| sum.sum).sum::<u64>(), expected, "stack at {pointer}");
            assert_eq!(sums.not_executed, u64::from(!is_executed));
            reached.add(("sums", sums.unnamed, sums.ordered().len()));
        }
    }

    fn assemble(&self, text: &str, reached: &mut Reached) {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let program = assemble(&mut sources, "fuzz.tpp", text, &self.map, &mut diagnostics);
        if let Some(program) = &program {
            let bytes = program.packet(&[]);
            assert!(Packet::new_checked(&bytes).is_ok_and(|packet| packet.is_checksum_right()));
            for finding in check(program, &self.map, &AccessRights::read_only()).findings {
                diagnostics.push(finding.diagnostic(program, Span::new(diagnostics::FileId(0), 0, 0)));
            }
            self.round_trip(program, reached);
        }
        reached.findings(&sources, &diagnostics);
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let policy = AccessPolicy::parse(&mut sources, "policy", text, &self.map, &mut diagnostics);
        reached.findings(&sources, &diagnostics);
        policy.rights(7, true);
    }
}

impl FuzzTarget for TinyPrograms {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let mut bytes = worker::mutated(&self.inputs, random);
        // Most programs should have a correct checksum.
        if !random.one_in(8)
            && let Ok(mut packet) = Packet::new_checked(&mut bytes[..])
        {
            packet.fill_checksum();
        }
        bytes
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        self.execute(input, &mut reached);
        self.insert_and_strip(input, &mut reached);
        self.add_up(input, &mut reached);
        let mut frame = [&[0; 12][..], &[0x66, 0x66], input].concat();
        assert!(!wire::describe(&frame).is_empty());
        self.insert_and_strip(&frame, &mut reached);
        let place = wire::tpp::find(&frame).expect("the frame has the EtherType");
        wire::tpp::reflect(&mut frame, place);
        if let Some(place) = wire::tpp::find(input).or_else(|| wire::tpp::find_echo(input)) {
            assert!(place.start <= place.end && place.end <= input.len());
            wire::tpp::reflect(&mut input.to_vec(), place);
        }
        int::run(input, &mut reached);
        self.assemble(&String::from_utf8_lossy(input), &mut reached);
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
