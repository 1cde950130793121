//! Tests the assembler, the disassembler and the analysis.

use diagnostics::{Diagnostics, SourceMap, Span};
use tpp::generate::Case;
use tpp::map::{MemoryMap, RegisterShape};
use tpp::{
    AccessRights, AddressSet, IndirectSet, SparseMemory, Tcpu, TinyProgram, assemble, check, disassemble, hop_guards,
};
use wire::tpp::{Addressing, Packet, Status, WordSize};

fn map() -> MemoryMap {
    let register = |name: &str, width, size| RegisterShape { name: name.to_owned(), width, size };
    MemoryMap::with_program([register("MyIngress.limits", 32, 16), register("MyIngress.large", 32, 100_000)], [])
}

fn rendered(text: &str) -> (Option<TinyProgram>, String) {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = assemble(&mut sources, "test.tpp", text, &map(), &mut diagnostics);
    if let Some(program) = &program {
        let file = diagnostics::FileId(0);
        for finding in check(program, &map(), &AccessRights::all()).findings {
            diagnostics.push(finding.diagnostic(program, Span::new(file, 0, 0)));
        }
    }
    (program, diagnostics.render(&sources, false))
}

#[track_caller]
fn assembled(text: &str) -> TinyProgram {
    let (program, said) = rendered(text);
    assert_eq!(said, "");
    program.expect("a program without findings")
}

/// Programs of the paper have the lengths that the paper gives.
#[test]
fn programs_of_the_paper_assemble() {
    let bursts = ".word 16\n.hops 5\nPUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\nPUSH [Queue:QueueOccupancy]\n";
    let (program, said) = rendered(bursts);
    assert_eq!(program.unwrap().packet(&[]).len(), 54, "section 2.1");
    assert!(said.contains("`Switch:ID` has 32 bits, and a word keeps the low 16"), "{said}");
    let ndb =
        ".word 16\n.hops 10\nPUSH [Switch:ID]\nPUSH [PacketMetadata:MatchedEntryID]\nPUSH [PacketMetadata:InputPort]";
    assert_eq!(rendered(ndb).0.unwrap().packet(&[]).len(), 84, "section 2.3");
    let update = ".mode hop\nCSTORE [Link:AppSpecific_0], [Packet:hop[0]], [Packet:hop[1]]\n\
                  .memory hop 0: 100, 120\n.memory hop 1: 50, 60\n.hops 2";
    let program = assembled(update);
    assert_eq!(program.repr.addressing, Addressing::Hop { len: 8 });
    assert_eq!(program.memory, [100u32, 120, 50, 60].map(u32::to_be_bytes).concat());
    let conversion = "PUSH [PacketMetadata:OutputPort]\nPUSH [PacketMetadata:InputPort]\n\
                      PUSH [Register:limits[1]]\nPOP [Register:limits[3]]\n.hops 2";
    assert_eq!(assembled(conversion).memory.len(), 4 * (2 + 3), "two words stay, and one is popped at each hop");
}

#[test]
fn a_value_is_cut_unless_its_own_high_half_is_read() {
    let said = rendered("LOAD [Link:TX-Bytes], [Packet:0]\nPUSH [Link:RX-Bytes]\nPUSH [Link:TX-Bytes.High]\n").1;
    assert!(said.contains("`Link:RX-Bytes` has 64 bits, and a word keeps the low 32"), "{said}");
    assert_eq!(said.matches("cut-value").count(), 1, "{said}");
}

/// The work for a text grows linearly with it; with the square of its instructions, this test would be slow.
#[test]
fn a_text_of_a_mebibyte_has_its_mistakes_collected() {
    let fill = |line: &str| line.repeat((1 << 20) / line.len());
    let (program, said) = rendered(&fill("PUSH [Link:TX-Bytes]\n"));
    assert!(program.is_none() && said.contains("a program has at most 5 instructions"), "{said}");
    assert!(said.contains("test.tpp:6:1") && said.ends_with("more\n"), "{said}");
    let (program, said) = rendered(&fill("PUSH [Queue:Occupancy]\n"));
    assert!(program.is_none() && said.contains("unknown-name") && said.ends_with("more\n"), "{said}");
}

#[test]
fn a_conditional_store_of_a_value_that_the_register_never_has_is_refused() {
    let register = |name: &str, width| RegisterShape { name: name.to_owned(), width, size: 2 };
    let map = MemoryMap::with_program([register("ports", 9), register("words", 32), register("nothing", 0)], []);
    let findings = |text: &str| {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        assemble(&mut sources, "test.tpp", text, &map, &mut diagnostics);
        diagnostics.render(&sources, false)
    };
    for text in ["ports[1]], 511, 0", "ports], 0, 511", "words], 0xffffffff, 0xffffffff", "nothing[1]], 0, 0"] {
        assert_eq!(findings(&format!("CSTORE [Register:{text}")), "", "{text}");
    }
    for (text, values) in [("ports[1]], 512, 0", "512"), ("ports[1]], 0, 0x200", "0x200"), ("nothing], 0, 1", "1")] {
        let said = findings(&format!("CSTORE [Register:{text}"));
        let caret = format!("^{}", "^".repeat(values.len() - 1));
        assert!(said.contains("error[wide-value]") && said.contains(&caret) && said.contains("largest"), "{said}");
    }
}

#[test]
fn vendors_are_told_apart_by_indirect_loads() {
    let text = ".mode hop\n.hops 2\n.memory hop 0: 1, 0xff00\n.memory hop 1: 2, 0xfe00\n\
                CEXEC [Switch:VendorID], [Packet:hop[0]]\nLOAD [[Packet:hop[1]]], [Packet:hop[1]]\n";
    let program = assembled(text);
    let report = check(&program, &map(), &AccessRights::all());
    let reads: Vec<u32> = report.reads.iter().map(|record| record.address).collect();
    assert_eq!((reads, report.indirect), (vec![0x8, 0xfe00, 0xff00], IndirectSet::Known));
    assert_eq!(report.worst.reads, 2);
}

#[test]
fn numbers_and_far_addresses_are_placed_in_packet_memory() {
    let text = ".word 16\n.hops 3\nCEXEC [Switch:ID], 0xffff0000, 0x50000\nLOAD [Link$3:Queued-Bytes], [Packet:0]\n\
                CSTORE [Link:AppSpecific_1], 7, [Packet:1]\nPUSH [Link:ID]\n.memory 0, 9\n";
    let (program, said) = rendered(text);
    let program = program.unwrap();
    assert!(!said.contains("error"), "{said}");
    assert_eq!(program.repr.addressing, Addressing::Stack { pointer: 18 });
    let words: Vec<u16> = program.memory.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    assert_eq!(words, [0, 9, 0xffff, 0, 5, 0, 0x1003, 0x3008, 7, 0, 0, 0]);
    // In hop mode, each hop has its own.
    let program = assembled(".mode hop\n.hops 2\nLOAD [Register:large[7]], [Packet:hop[0]]\n");
    assert_eq!(program.memory, [0u32, 0x2010_000e, 0, 0x2010_000e].map(u32::to_be_bytes).concat());
    assert_eq!(program.instructions[0].second, 1);
}

#[test]
fn mistakes_have_carets_and_remedies() {
    let text = "\
PUSH [Queue:QueueOcupancy]
PUHS [Switch:ID]
STORE [Link:TX-Bytes], [Packet:0]
PUSH [Link$3:TX-Bytes]
LOAD [Switch:ID]
.mode heap
.wrod 16
";
    let (program, said) = rendered(text);
    assert_eq!(program, None);
    testing::golden::assert_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/mistakes.txt"), &said);
}

#[test]
fn limits_are_reported() {
    let six = "PUSH [Switch:ID]\n".repeat(6);
    assert!(rendered(&six).1.contains("a program has at most 5 instructions"));
    let (program, said) = rendered(".hops 127\nPUSH [Switch:ID]");
    assert!(
        program.is_none() && said.contains("the program needs 508 bytes of packet memory, and 494 are available"),
        "{said}"
    );
    let (_, said) = rendered(".word 16\nCSTORE [Link:AppSpecific_0], 70000, 1");
    assert!(said.contains("does not fit into a word of 16 bits"), "{said}");
    let (_, said) = rendered(
        "PUSH [Switch:ID],\nLOAD [Switch:ID], [Packet:64]\nLOAD [[Switch:ID]], [Packet:1]\n.data 0g\n.hops 128\n.sp 3",
    );
    assert_eq!(said.matches("error").count(), 6, "{said}");
}

#[test]
fn useless_and_wrong_programs_are_found() {
    let findings = |text: &str, rights: &AccessRights| -> Vec<(&'static str, Option<usize>)> {
        let program = rendered(text).0.unwrap_or_else(|| panic!("{}", rendered(text).1));
        check(&program, &map(), rights).findings.iter().map(|finding| (finding.code, finding.instruction)).collect()
    };
    let all = AccessRights::all();
    assert_eq!(findings("CEXEC [Switch:ID], 0xf0, 0x0f\nPUSH [Link:ID]", &all), [("unreachable", Some(0))]);
    assert_eq!(findings("CEXEC [Link:ID], 0x10000\nPUSH [Link:ID]", &all), [("unreachable", Some(0))]);
    assert_eq!(findings("CEXEC [Link:ID], 0xff, 0x17\nPUSH [Link:ID]", &all), []);
    assert_eq!(findings(".mode hop\n.size 4\nLOAD [Link:ID], [Packet:hop[1]]", &all), [("outside-memory", Some(0))]);
    assert_eq!(findings(".bytes 8\n.hops 3\nPUSH [Link:ID]", &all), [("memory-full", None)]);
    assert_eq!(findings("POP [Link:AppSpecific_0]", &all), [("stack-empty", None)]);
    assert_eq!(findings("PUSH [0x7777]", &all), [("unknown-address", Some(0))]);
    assert_eq!(findings("STORE [0x3012], [Packet:0]", &all), [("read-only", Some(0))]);
    assert_eq!(findings("CSTORE [Link:AppSpecific_0], 5, 5", &all), [("same-word", Some(0))]);
    assert_eq!(findings(".readonly\nSTORE [Link:AppSpecific_0], [Packet:0]", &all), [("never-written", Some(0))]);
    let unknown = "LOAD [Switch:ID], [Packet:0]\nLOAD [[Packet:0]], [Packet:1]";
    assert_eq!(findings(unknown, &all), [("unknown-indirect", Some(1))]);
}

#[test]
fn accesses_that_the_policy_forbids_are_errors() {
    let text = ".mode hop\nLOAD [Link$3:TX-Packets], [Packet:hop[0]]\nPUSH [Link:ID]\n\
                CSTORE [Link:AppSpecific_1], 1, 2\nPUSH [PacketMetadata:TPP-Hop]";
    let program = rendered(text).0.unwrap();
    let reads = AddressSet::of([(0x3000, 0x3001), (0x3802, 0x3803)]);
    let rights = AccessRights { writes_enabled: true, reads, writes: AddressSet::of([(0x3800, 0x3801)]) };
    let report = check(&program, &map(), &rights);
    let said: Vec<_> = report.findings.iter().map(|finding| (finding.message.as_str(), finding.instruction)).collect();
    let expected = [
        ("the application may not read `Link$3:TX-Packets`", Some(0)),
        ("the application may not write `Link:AppSpecific_1`", Some(2)),
    ];
    assert_eq!(said, expected);
    assert!(!report.is_permitted() && check(&program, &map(), &AccessRights::all()).is_permitted());
    assert!(!check(&program, &map(), &AccessRights::read_only()).is_permitted());
}

/// The analysis of hops agrees with the processor.
#[test]
fn memory_is_full_exactly_after_the_hops_that_the_analysis_gives() {
    let programs = [
        ".word 16\n.bytes 30\nPUSH [Switch:ID]\nPUSH [Link:ID]",
        ".bytes 34\nPUSH [Switch:ID]\nPUSH [Link:ID]\nPOP [Link:AppSpecific_0]",
        ".mode hop\n.bytes 50\n.size 12\nPUSH [Switch:ID]",
        ".bytes 6\n.sp 4\nPUSH [Switch:ID]",
    ];
    for text in programs {
        let program = rendered(text).0.unwrap();
        let hops = check(&program, &map(), &AccessRights::all()).worst.hops.expect("a bound");
        let mut bytes = program.packet(&[]);
        for hop in 0..=hops {
            let mut memory = tpp::SparseMemory::new();
            memory.fixed(0, 1);
            memory.fixed(0x3000, 2);
            memory.word(0x3800, 0);
            tpp::Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
            let is_full = Packet::new_checked(&bytes).unwrap().status().contains(Status::FULL);
            assert_eq!(is_full, hop == hops, "hop {hop} of {hops}: {text}");
        }
    }
}

#[test]
fn guards_cover_exactly_their_hops() {
    assert_eq!(hop_guards(3, 5), [(0xff, 3), (0xfe, 4)]);
    for first in 0..=127u8 {
        for last in first..=127 {
            for hop in 0..=255u32 {
                let matching = hop_guards(first, last).iter().filter(|(mask, value)| hop & mask == *value).count();
                let expected = usize::from((u32::from(first)..=u32::from(last)).contains(&hop));
                assert_eq!(matching, expected, "hop {hop} of {first} to {last}");
            }
        }
    }
}

#[test]
fn random_programs_disassemble_to_text_that_assembles_to_the_same_bytes() {
    let mut tried = 0;
    for seed in 0..3000 {
        let case = Case::new(seed);
        let Ok(packet) = Packet::new_checked(&case.bytes) else { continue };
        let program = TinyProgram::decode(&packet);
        let text = disassemble(&program, &map());
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let again = assemble(&mut sources, "again", &text, &map(), &mut diagnostics);
        let again = again.unwrap_or_else(|| panic!("seed {seed}: {}\n{text}", diagnostics.render(&sources, false)));
        assert_eq!(again.packet(&[]), program.packet(&[]), "seed {seed}:\n{text}");
        check(&program, &map(), &AccessRights::all());
        tried += 1;
    }
    assert!(tried > 2000, "{tried}");
}

/// Returns a program after these switches, which have the IDs.
fn executed(text: &str, ids: &[u64]) -> TinyProgram {
    let mut bytes = assembled(text).packet(&[]);
    for id in ids {
        let mut memory = tpp::SparseMemory::new();
        memory.fixed(0, *id);
        tpp::Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
    }
    TinyProgram::decode(&Packet::new_checked(&bytes).unwrap())
}

#[test]
fn words_have_no_hop_that_nothing_shows() {
    let text = "PUSH [Switch:ID]\nCEXEC [Switch:ID], 0xffffffff, 2\nPUSH [Switch:ID]";
    let program = executed(text, &[1, 2, 3]);
    assert_eq!((program.words_by_hop(&map()), program.unnamed_words()), (Vec::new(), Some(vec![1, 2, 2, 3])));
    let program = executed(&format!(".mode hop\n{}", text.replace("PUSH [Switch:ID]\n", "")), &[1, 2]);
    assert_eq!((program.words_by_hop(&map()).len(), program.unnamed_words()), (2, None));
    let program = executed("PUSH [Switch:ID]\nCEXEC [Switch:ID], 0xffffffff, 2", &[1, 2]);
    assert_eq!((program.words_by_hop(&map()).len(), program.unnamed_words()), (2, None), "it pushes at each hop");
    let program = executed(".hop -5\nPUSH [Switch:ID]", &[1, 2]);
    assert_eq!((program.repr.hop, program.words_by_hop(&map())), (-3, Vec::new()), "it waits");
}

#[test]
fn executed_programs_list_their_words_by_hop() {
    let mut bytes = assembled(".hops 3\n.app 9\nPUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]").packet(&[]);
    for hop in 1..=2 {
        let mut memory = tpp::SparseMemory::new();
        memory.fixed(0, hop);
        memory.fixed(0xb000, 10 * hop);
        tpp::Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
    }
    let program = TinyProgram::decode(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(program.repr.word_size, WordSize::Bits32);
    let row = |id, depth| vec![("Switch:ID".to_owned(), id), ("Queue:QueueOccupancy".to_owned(), depth)];
    assert_eq!(program.words_by_hop(&map()), [row(1, 10), row(2, 20)]);
}

/// Words of a hop or of a stack.
type Words = Vec<Option<u32>>;

/// Executes a marked program at switches that only have a number, and returns its words by hop and its stack.
fn marked(text: &str, switches: &[u64]) -> (Vec<Words>, Option<Words>) {
    let (program, _) = rendered(text);
    let mut program = program.expect("it has no mistakes");
    program.mark_absent();
    let mut bytes = program.packet(&[]);
    for number in switches {
        let mut memory = SparseMemory::new();
        memory.fixed(map().find("Switch:ID").expect("it exists").address, *number);
        Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
    }
    let program = TinyProgram::decode(&wire::tpp::Packet::new_checked(&bytes).expect("it stays well-formed"));
    let words = program.words_or_absent(&map());
    let values = words.into_iter().map(|hop| hop.into_iter().map(|(_, value)| value).collect()).collect();
    (values, program.unnamed_or_absent())
}

#[test]
fn words_that_no_switch_wrote_are_absent() {
    for word in [16, 32] {
        let stack = format!(".word {word}\nPUSH [Queue:QueueOccupancy]\nPUSH [Switch:ID]");
        assert_eq!(marked(&stack, &[7, 0]).0, [[None, Some(7)], [None, Some(0)]]);
    }
    // The number of a switch may be all ones where nothing is absent.
    assert_eq!(marked("PUSH [Switch:ID]", &[0xffff_ffff]).0, [[Some(u32::MAX)]]);
    let hops = ".mode hop\nLOAD [Link:ID], [Packet:hop[1]]\nLOAD [Switch:ID], [Packet:hop[0]]\nMAX [Link:ID], \
                [Packet:hop[2]]\n.hops 2";
    assert_eq!(marked(hops, &[7, 8]).0, [[Some(7), None, Some(0)], [Some(8), None, Some(0)]]);
    // Words that a program reads, or that the source presets, are as the source has them.
    assert_eq!(marked(".mode hop\n.hops 1\nPUSH [Link:ID]\nPOP [Link:AppSpecific_0]", &[7]).0, [[Some(0)]]);
    assert_eq!(marked(".hops 1\n.memory 5\n.sp 0\nPUSH [Link:ID]", &[7]).0, [[Some(5)]]);
    let guarded = "PUSH [Link:ID]\nCEXEC [Switch:ID], 7\nPUSH [Switch:ID]";
    assert_eq!(marked(guarded, &[7]).1, Some(vec![None, Some(7)]));
}
