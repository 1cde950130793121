//! Lists the tiny packet programs of a capture.

use std::path::Path;

use ::tpp::TinyProgram;
use ::tpp::map::MemoryMap;
use serde_json::json;
use wire::tpp::{Packet, find, find_echo};

use super::report;
use crate::output::{Failure, Output, counted};

/// Maximum size of a capture, in bytes.
pub const MAX_BYTES: u64 = 1 << 30;

/// Whether bytes begin like a capture.
pub fn is_capture(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && !matches!(wire::pcap::Reader::new(bytes), Err(wire::pcap::PcapError::NotPcap { .. }))
}

/// Returns the program of a frame, executed or not; an echo has one, too.
fn program_of(frame: &[u8]) -> Option<TinyProgram> {
    let place = find(frame).or_else(|| find_echo(frame))?;
    Packet::new_checked(&frame[place.start..place.end]).ok().map(|packet| TinyProgram::decode(&packet))
}

/// Prints the programs.
pub fn run(path: &Path, bytes: &[u8], map: &MemoryMap, json: bool, output: &Output) -> Result<(), Failure> {
    let wrong = |error: wire::pcap::PcapError| Failure::Input(format!("{}: {error}", path.display()));
    let mut reader = wire::pcap::Reader::new(bytes).map_err(wrong)?;
    let (mut number, mut programs, mut text) = (0u64, Vec::new(), String::new());
    while let Some(captured) = reader.read().map_err(wrong)? {
        number += 1;
        let Some(program) = program_of(&captured.data) else { continue };
        let words = report::ProgramWords::of(&program, map);
        if json {
            let mut object = report::program_json(&program, map, words);
            object["frame"] = number.into();
            programs.push(object);
        } else {
            text += &format!("frame {number}: {}\n{}", wire::describe(&captured.data), report::words(&words, "  "));
        }
    }
    if json {
        return output.print(&format!("{:#}\n", json!({ "frames": number, "programs": programs })));
    }
    if text.is_empty() {
        text = format!("{}: none of {} has a program\n", path.display(), counted(number as usize, "frame", "frames"));
    }
    output.print(&text)
}
