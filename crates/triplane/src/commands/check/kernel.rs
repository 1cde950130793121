//! Reports which packets of a program can be processed in the kernel, and which places hand them to the switch.

use std::collections::BTreeMap;
use std::fmt::Write;

use bpf::asm::Links;
use bpf::{HandOverReason, KernelCode, KernelOptions, Unsupported};
use ir::{LocId, Program};
use serde_json::{Value, json};

use crate::output::{counted, grouped};

/// Maximum number of places that are listed for a reason.
const MAX_PLACES: usize = 4;

/// The result of a compilation for the kernel.
pub struct KernelReport<'p> {
    program: &'p Program,
    result: Result<KernelCode, String>,
}

impl<'p> KernelReport<'p> {
    /// Compiles a program.
    pub fn new(program: &'p Program) -> KernelReport<'p> {
        let pipeline = v1model::kernel_pipeline(program).map_err(|error| error.to_string());
        let result = pipeline.and_then(|pipeline| {
            let describe = |error: Unsupported| match (error, place(program, error)) {
                (error, Some(at)) => format!("{error} (the limit is reached at {at})"),
                (error, None) => error.to_string(),
            };
            bpf::compile(program, &pipeline, KernelOptions::default()).map_err(describe)
        });
        KernelReport { program, result }
    }

    /// Returns the report as lines of text.
    pub fn to_text(&self) -> String {
        let compiled = match &self.result {
            Ok(compiled) => compiled,
            Err(reason) => return format!("kernel: the program cannot run in the kernel: {reason}\n"),
        };
        let mut text = format!("kernel: {}\n", verdict(compiled));
        // Writing to a string cannot fail.
        if compiled.can_forward || compiled.can_drop {
            _ = writeln!(
                text,
                "  {}, {} of memory shared with the kernel",
                counted(instructions(compiled), "instruction", "instructions"),
                memory(compiled.layout.bytes()),
            );
            for (table, entries) in compiled.tables() {
                let name = &self.program.tables[table].name;
                let requested = self.program.tables[table].size.filter(|size| *size > entries.into());
                let of =
                    requested.map_or_else(String::new, |size| format!(" of the {} that it requests", grouped(size)));
                _ = writeln!(text, "  table {name}: at most {} entries{of}", grouped(entries.into()));
            }
        }
        for (reason, places) in self.hand_overs(compiled) {
            _ = writeln!(text, "  to the switch: packets that {}", reason.text());
            places.iter().take(MAX_PLACES).for_each(|at| _ = writeln!(text, "    at {at}"));
            if places.len() > MAX_PLACES {
                let more = counted(places.len() - MAX_PLACES, "other place", "other places");
                _ = writeln!(text, "    and at {more}");
            }
        }
        text
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        let compiled = match &self.result {
            Ok(compiled) => compiled,
            Err(reason) => return json!({ "forwards": false, "drops": false, "reason": reason }),
        };
        let tables: Vec<Value> = compiled
            .tables()
            .map(|(table, entries)| json!({ "table": self.program.tables[table].name, "entries": entries }))
            .collect();
        let hand_overs: Vec<Value> = self
            .hand_overs(compiled)
            .into_iter()
            .map(|(reason, places)| json!({ "reason": reason.name(), "packets": reason.text(), "places": places }))
            .collect();
        json!({
            "forwards": compiled.can_forward,
            "drops": compiled.can_drop,
            "reason": null,
            "instructions": instructions(compiled),
            "memory_bytes": compiled.layout.bytes(),
            "tables": tables,
            "to_switch": hand_overs,
        })
    }

    /// Returns the places of each reason, in the order of the program.
    fn hand_overs(&self, compiled: &KernelCode) -> BTreeMap<HandOverReason, Vec<String>> {
        let mut reasons: BTreeMap<HandOverReason, Vec<LocId>> = BTreeMap::new();
        for hand_over in &compiled.hand_overs {
            let places = reasons.entry(hand_over.reason).or_default();
            places.extend(Some(hand_over.loc).filter(|loc| loc.as_u32() != 0));
        }
        let text = |places: Vec<LocId>| {
            let mut positions: Vec<_> = places.into_iter().map(|loc| &self.program.locs[loc]).collect();
            positions.sort_by_key(|at| (&at.file, at.line, at.column));
            positions.into_iter().map(ToString::to_string).collect()
        };
        reasons.into_iter().map(|(reason, places)| (reason, text(places))).collect()
    }
}

/// Returns the place in the program at which a limit is reached, if it is known.
fn place(program: &Program, error: Unsupported) -> Option<String> {
    match error {
        Unsupported::Code(loc) if loc.as_u32() != 0 => Some(program.locs.get(loc)?.to_string()),
        _ => None,
    }
}

fn verdict(compiled: &KernelCode) -> &'static str {
    match (compiled.can_forward, compiled.can_drop) {
        (true, true) => "packets can be forwarded and dropped in the kernel",
        (true, false) => "packets can be forwarded in the kernel",
        (false, true) => "packets can be dropped in the kernel; all that are forwarded go to the switch",
        (false, false) => "no packet can be processed in the kernel; all go to the switch",
    }
}

fn instructions(compiled: &KernelCode) -> usize {
    compiled.encode(&Links::default(), true).map_or(0, |code| code.len())
}

fn memory(bytes: u32) -> String {
    const MIB: u32 = 1 << 20;
    match bytes {
        0..MIB => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
    }
}
