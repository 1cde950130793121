//! Renders programs and analyses as text and as JSON.

use std::fmt::Write;
use std::path::Path;

use ::tpp::map::MemoryMap;
use ::tpp::{AccessRecord, CheckReport, IndirectSet, TinyProgram, disassemble};
use diagnostics::{Diagnostics, SourceMap};
use serde_json::{Value, json};

use crate::output::{aligned, counted, diagnostic_json};

/// Returns bytes as hexadecimal digits, 16 bytes a line.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let line = |line: &[u8]| {
        let words: Vec<String> =
            line.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        words.join(" ") + "\n"
    };
    bytes.chunks(16).map(line).collect()
}

/// Words of a program by hop, or its stack if they have no names. `None` is a word that no switch wrote.
pub struct ProgramWords {
    hops: Vec<Vec<(String, Option<u32>)>>,
    stack: Option<Vec<Option<u32>>>,
}

impl ProgramWords {
    /// Returns the words of a program that was sent with any memory.
    pub fn of(program: &TinyProgram, map: &MemoryMap) -> ProgramWords {
        let hop = |words: Vec<(String, u32)>| words.into_iter().map(|(name, value)| (name, Some(value))).collect();
        let hops = program.words_by_hop(map).into_iter().map(hop).collect();
        let stack = program.unnamed_words().map(|words| words.into_iter().map(Some).collect());
        ProgramWords { hops, stack }
    }

    /// Returns the words of a program that [`TinyProgram::mark_absent`] marked before it was sent.
    pub fn of_marked(program: &TinyProgram, map: &MemoryMap) -> ProgramWords {
        ProgramWords { hops: program.words_or_absent(map), stack: program.unnamed_or_absent() }
    }
}

/// Formats a word; `-` is one that no switch wrote.
pub fn shown(word: Option<u32>) -> String {
    word.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Returns the words of a program as text, each line after a prefix.
pub fn words(words: &ProgramWords, prefix: &str) -> String {
    words_from(0, words, prefix)
}

/// Returns the words of a program whose first hop has the number `first`.
pub fn words_from(first: usize, words: &ProgramWords, prefix: &str) -> String {
    let mut text = String::new();
    for (hop, words) in (first..).zip(&words.hops) {
        let words: Vec<_> = words.iter().map(|(name, value)| format!("{name} {}", shown(*value))).collect();
        let _ = writeln!(text, "{prefix}hop {hop}: {}", words.join(", "));
    }
    if let Some(words) = &words.stack {
        let words: Vec<_> = words.iter().copied().map(shown).collect();
        let stack = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        let _ = writeln!(
            text,
            "{prefix}stack: {stack} (.mode hop shows the hop of each word, as CEXEC and CSTORE may end the program)"
        );
    }
    text
}

/// Returns a program as JSON, with its words. One that no switch wrote is `null`. So are the bytes of a program that
/// does not fit into a packet.
pub fn program_json(program: &TinyProgram, map: &MemoryMap, words: ProgramWords) -> Value {
    let packet = program.fits().then(|| program.packet(&[]));
    let bytes = packet.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let hops: Vec<Value> = words
        .hops
        .into_iter()
        .map(|words| words.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect())
        .collect();
    json!({
        "length": bytes.as_ref().map(|bytes| bytes.len() / 2),
        "bytes": bytes,
        "application": program.repr.application,
        "hop": program.repr.hop,
        "status": program.repr.status.to_string(),
        "text": disassemble(program, map),
        "hops": hops,
        "stack": words.stack,
    })
}

fn names(records: &[AccessRecord]) -> Vec<String> {
    let name = |record: &AccessRecord| match &record.entry {
        Some(entry) => entry.name.clone(),
        None => format!("{:#06x}", record.address),
    };
    records.iter().map(name).collect()
}

/// Returns an analysis without findings as text.
pub fn check_text(path: &Path, program: &TinyProgram, report: &CheckReport) -> String {
    let listed = |records: &[AccessRecord]| match names(records).join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        names => names,
    };
    let more = if report.indirect == IndirectSet::Unknown { ", and addresses that the network decides" } else { "" };
    let worst = &report.worst;
    let hops = match worst.hops {
        Some(hops) => format!("memory for {}", counted(hops as usize, "hop", "hops")),
        None => "memory for any number of hops".to_owned(),
    };
    let instructions = counted(program.instructions.len(), "instruction", "instructions");
    let cost = format!(
        "{}, {}, {} CSTORE",
        counted(worst.reads as usize, "read", "reads"),
        counted(worst.writes as usize, "write", "writes"),
        worst.swaps
    );
    let rows = [
        ["reads".to_owned(), listed(&report.reads) + more],
        ["writes".to_owned(), listed(&report.writes)],
        ["worst case".to_owned(), format!("{cost} a hop; {} bytes a packet", worst.bytes)],
    ];
    format!("{}: {instructions}, {hops}\n{}", path.display(), aligned(&rows, &[]))
}

/// Returns an analysis as JSON.
pub fn check_json(report: &CheckReport, diagnostics: &Diagnostics, sources: &SourceMap) -> Value {
    let accesses = |records: &[AccessRecord]| -> Vec<Value> {
        let named = records.iter().zip(names(records));
        named.map(|(record, name)| json!({ "address": record.address, "name": name, "instructions": record.instructions })).collect()
    };
    let findings: Vec<_> =
        diagnostics.in_order().into_iter().map(|finding| diagnostic_json(finding, sources)).collect();
    let worst = &report.worst;
    json!({
        "permitted": !diagnostics.has_errors(),
        "reads": accesses(&report.reads),
        "writes": accesses(&report.writes),
        "unknown_addresses": report.indirect == IndirectSet::Unknown,
        "worst_case": { "bytes": worst.bytes, "reads": worst.reads, "writes": worst.writes, "cstores": worst.swaps },
        "hops": worst.hops,
        "findings": findings,
    })
}

#[cfg(test)]
mod tests {
    use ::tpp::{AccessRights, SparseMemory, Tcpu, assemble};

    use super::*;

    #[test]
    fn words_without_a_hop_are_a_stack() {
        let text = "PUSH [Switch:ID]\nCEXEC [Switch:ID], 0xffffffff, 99\nPUSH [Queue:QueueOccupancy]";
        let (map, mut sources, mut diagnostics) = (MemoryMap::new(), SourceMap::new(), Diagnostics::new());
        let program = assemble(&mut sources, "stack", text, &map, &mut diagnostics).expect("it has no mistakes");
        let mut bytes = program.packet(&[]);
        for switch in [1, 2] {
            let mut memory = SparseMemory::new();
            memory.fixed(map.find("Switch:ID").expect("it exists").address, switch);
            Tcpu::execute(&mut bytes, &mut memory, &AccessRights::read_only());
        }
        let program = TinyProgram::decode(&wire::tpp::Packet::new_checked(&bytes).expect("a program"));
        let text = words(&ProgramWords::of(&program, &map), "");
        assert!(text.starts_with("stack: 1, 2 (") && !text.contains("hop 0"), "{text}");
        let json = program_json(&program, &map, ProgramWords::of(&program, &map));
        assert_eq!((&json["stack"], &json["hops"]), (&json!([1, 2]), &json!([])));
    }

    #[test]
    fn words_that_no_switch_wrote_are_not_zero() {
        let text = "PUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]";
        let (map, mut sources, mut diagnostics) = (MemoryMap::new(), SourceMap::new(), Diagnostics::new());
        let program = assemble(&mut sources, "absent", text, &map, &mut diagnostics);
        let mut program = program.expect("it has no mistakes");
        program.mark_absent();
        let mut bytes = program.packet(&[]);
        let mut memory = SparseMemory::new();
        memory.fixed(map.find("Switch:ID").expect("it exists").address, 3);
        Tcpu::execute(&mut bytes, &mut memory, &AccessRights::read_only());
        let program = TinyProgram::decode(&wire::tpp::Packet::new_checked(&bytes).expect("a program"));
        let shown = words(&ProgramWords::of_marked(&program, &map), "");
        assert_eq!(shown, "hop 0: Switch:ID 3, Queue:QueueOccupancy -\n");
        let json = program_json(&program, &map, ProgramWords::of_marked(&program, &map));
        assert_eq!(json["hops"][0][1], json!({ "name": "Queue:QueueOccupancy", "value": null }));
    }
}
