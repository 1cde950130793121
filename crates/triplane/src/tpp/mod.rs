//! Runs `triplane tpp`: assembles, disassembles and analyses tiny packet programs, and lists switch memory.

pub mod args;
mod capture;
mod execute;
mod map;
mod path;
mod probe;
mod report;
pub mod shim;
pub mod shim_reports;
mod top;

use std::path::Path;

use ::tpp::map::MemoryMap;
use ::tpp::{AccessPolicy, AccessRights, TinyProgram, assemble, assemble_large, check, disassemble};
use anyhow::Context;
use diagnostics::{Diagnostics, FileId, SourceMap, Span};
use wire::tpp::Packet;

use crate::load::{self, Loader, ProgramArgs};
use crate::output::{Failure, Output, counted};
use args::{AsmArgs, CheckArgs, DisArgs, ProgramOption, TppArgs, TppCommand};

/// Maximum size of a program's text and of a policy, in bytes.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Runs the command.
pub fn run(args: &TppArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        TppCommand::Asm(args) => asm(args, output),
        TppCommand::Dis(args) => dis(args, output),
        TppCommand::Check(args) => analyse(args, output),
        TppCommand::Map(args) => map::run(args, output),
        TppCommand::Run(args) => execute::run(args, output),
        TppCommand::Ping(args) => path::ping(args, output),
        TppCommand::Trace(args) => path::trace(args, output),
        TppCommand::Echo(args) => probe::echo(args, output),
        TppCommand::Top(args) => top::run(args, output),
        TppCommand::Shim(args) => shim::run(args, output),
    }
}

/// Returns the map of switches, with a P4 program if one is given.
fn memory_map(option: &ProgramOption, output: &Output) -> Result<MemoryMap, Failure> {
    mapped_program(option, output).map(|(map, _)| map)
}

/// Returns the map of a program's switch, and the names of its tables by number.
fn mapped_program(option: &ProgramOption, output: &Output) -> Result<(MemoryMap, Vec<String>), Failure> {
    let Some(path) = &option.program else { return Ok((MemoryMap::new(), Vec::new())) };
    let args = ProgramArgs { program: path.clone(), include: Vec::new(), define: Vec::new(), allow: Vec::new() };
    let mut loader = Loader::open(&args)?;
    let compiled = loader.compile();
    loader.report(output)?;
    let program = compiled.map(|compiled| compiled.ir).unwrap_or_default();
    let tables = program.tables.values().map(|table| table.name.clone()).collect();
    Ok((v1model::memory_map(&program), tables))
}

/// A program and its source.
struct SourceProgram {
    sources: SourceMap,
    diagnostics: Diagnostics,
    program: TinyProgram,
}

/// A function that assembles a text.
type Assembler = fn(&mut SourceMap, &str, &str, &MemoryMap, &mut Diagnostics) -> Option<TinyProgram>;

/// Reads a program in assembly language. Mistakes are printed.
fn read_text(
    path: &Path,
    text: &str,
    map: &MemoryMap,
    assembler: Assembler,
    output: &Output,
) -> Result<SourceProgram, Failure> {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let assembled = assembler(&mut sources, &path.display().to_string(), text, map, &mut diagnostics);
    match assembled {
        Some(program) => Ok(SourceProgram { sources, diagnostics, program }),
        None => {
            output.diagnostics(&sources, &diagnostics);
            Err(Failure::Input(counted(diagnostics.error_count(), "error", "errors")))
        }
    }
}

/// Returns the bytes of a file with hexadecimal digits, or of a binary file; `None` for other text.
fn program_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some(bytes.to_vec()) };
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| letter.to_digit(16).map(|digit| digit as u8))
        .collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) && !digits.is_empty() => {
            Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ if text.bytes().any(|byte| byte == 0) => Some(bytes.to_vec()),
        _ => None,
    }
}

/// Reads a program in assembly language, as bytes or as hexadecimal digits.
fn read_program(path: &Path, map: &MemoryMap, output: &Output) -> Result<SourceProgram, Failure> {
    read_program_with(assemble, path, map, output)
}

/// Reads a program that may take several packets.
fn read_large_program(path: &Path, map: &MemoryMap, output: &Output) -> Result<SourceProgram, Failure> {
    read_program_with(assemble_large, path, map, output)
}

fn read_program_with(
    assembler: Assembler,
    path: &Path,
    map: &MemoryMap,
    output: &Output,
) -> Result<SourceProgram, Failure> {
    let bytes = load::read_bytes(path, MAX_TEXT_BYTES)?;
    match program_bytes(&bytes) {
        Some(bytes) => {
            let (mut sources, diagnostics) = (SourceMap::new(), Diagnostics::new());
            sources.add(&path.display().to_string(), "");
            Ok(SourceProgram { sources, diagnostics, program: decode(path, &bytes)? })
        }
        None => read_text(path, &String::from_utf8_lossy(&bytes), map, assembler, output),
    }
}

/// Reads a program for switches with this map. Mistakes are printed; `triplane tpp check` prints warnings, too.
pub fn program_of(path: &Path, map: &MemoryMap, output: &Output) -> Result<TinyProgram, Failure> {
    load::expect_regular(path)?;
    Ok(read_program(path, map, output)?.program)
}

/// Reads a program that may take several packets, for switches with this map. Mistakes are printed.
pub fn large_program_of(path: &Path, map: &MemoryMap, output: &Output) -> Result<TinyProgram, Failure> {
    load::expect_regular(path)?;
    Ok(read_large_program(path, map, output)?.program)
}

fn decode(path: &Path, bytes: &[u8]) -> Result<TinyProgram, Failure> {
    let packet = Packet::new_checked(bytes)
        .map_err(|malformed| Failure::Input(format!("{} is not a program: {malformed}", path.display())))?;
    Ok(TinyProgram::decode(&packet))
}

fn asm(args: &AsmArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let text = load::read(&args.file, MAX_TEXT_BYTES)?;
    let source = read_text(&args.file, &text, &map, assemble, output)?;
    output.diagnostics(&source.sources, &source.diagnostics);
    let bytes = source.program.packet(&[]);
    if let Some(path) = &args.output {
        std::fs::write(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        let words = report::ProgramWords::of(&source.program, &map);
        return output.print(&format!("{:#}\n", report::program_json(&source.program, &map, words)));
    }
    if args.output.is_none() {
        return output.print(&report::hexadecimal(&bytes));
    }
    Ok(())
}

fn dis(args: &DisArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let bytes = load::read_bytes(&args.file, capture::MAX_BYTES)?;
    if capture::is_capture(&bytes) {
        return capture::run(&args.file, &bytes, &map, args.json, output);
    }
    let Some(bytes) = program_bytes(&bytes) else {
        let help = "`triplane tpp asm` assembles text";
        return Err(Failure::Input(format!(
            "{} has neither bytes nor hexadecimal digits; {help}",
            args.file.display()
        )));
    };
    let program = decode(&args.file, &bytes)?;
    let words = report::ProgramWords::of(&program, &map);
    if args.json {
        return output.print(&format!("{:#}\n", report::program_json(&program, &map, words)));
    }
    output.print(&(disassemble(&program, &map) + &report::words(&words, "# ")))
}

fn analyse(args: &CheckArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let mut source = read_program(&args.file, &map, output)?;
    let mut rights = AccessRights::all();
    if let (Some(path), Some(application)) = (&args.policy, args.application) {
        let text = load::read(path, MAX_TEXT_BYTES)?;
        let name = path.display().to_string();
        let policy = AccessPolicy::parse(&mut source.sources, &name, &text, &map, &mut source.diagnostics);
        rights = policy.rights(application, true);
    }
    rights.writes_enabled &= !args.no_writes;
    let report = check(&source.program, &map, &rights);
    for finding in &report.findings {
        source.diagnostics.push(finding.diagnostic(&source.program, Span::new(FileId(0), 0, 0)));
    }
    let errors = source.diagnostics.error_count();
    if args.json {
        let json = report::check_json(&report, &source.diagnostics, &source.sources);
        output.print(&format!("{json:#}\n"))?;
    } else {
        output.diagnostics(&source.sources, &source.diagnostics);
    }
    if errors > 0 {
        return Err(Failure::Input(counted(errors, "error", "errors")));
    }
    if !args.json {
        output.print(&report::check_text(&args.file, &source.program, &report))?;
    }
    Ok(())
}
