//! Measures the TCPU in memory: nanoseconds for an execution, and for each instruction in it. Run
//! `cargo bench -p tpp`.
//!
//! An execution checks the packet, its checksum and its rights, and updates hop number and checksum. Each row is the
//! median of rounds that alternate between the programs. The original bytes of a program are restored after each
//! execution; the time of this copy is subtracted.

use std::hint::black_box;
use std::time::Instant;

use tpp::{AccessRights, AddressSet, ProgramVerdict, SwitchMemory, Tcpu};
use wire::tpp::{Addressing, Instruction, Operation, Repr, WordSize};

const ROUNDS: usize = 41;
const EXECUTIONS: u32 = 20_000;

/// The locations of one packet in a switch, as a table.
struct TableMemory {
    words: [u64; 32],
}

impl SwitchMemory for TableMemory {
    #[inline]
    fn read(&mut self, address: u32) -> Option<u64> {
        self.words.get(address as usize / 2).copied()
    }

    #[inline]
    fn write(&mut self, address: u16, value: u32) -> Option<()> {
        *self.words.get_mut(usize::from(address) / 2)? = value.into();
        Some(())
    }

    #[inline]
    fn swap(&mut self, address: u16, old: u32, new: u32) -> Option<u32> {
        let word = self.words.get_mut(usize::from(address) / 2)?;
        let prior = *word as u32;
        if prior == old {
            *word = new.into();
        }
        Some(prior)
    }
}

/// A program to measure.
struct Subject {
    name: &'static str,
    bytes: Vec<u8>,
    rights: AccessRights,
    /// Divisor of the time beyond that of the empty program: the number of instructions.
    instructions: u32,
    times: Vec<f64>,
}

fn subject(name: &'static str, word: WordSize, operations: &[Operation], rights: AccessRights) -> Subject {
    let hop = Addressing::Hop { len: 5 * word.bytes() };
    let is_stack = operations.iter().any(|operation| operation.is_stack());
    let repr = Repr::new(word, if is_stack { Addressing::Stack { pointer: 0 } } else { hop }, 1);
    let instruction = |(at, operation): (usize, &Operation)| {
        let address = if *operation == Operation::Cstore { 20 } else { 2 * at as u16 };
        Instruction::new(*operation, address, at as u8, at as u8)
    };
    let instructions: Vec<_> = operations.iter().enumerate().map(instruction).collect();
    // Memory for five hops of five words.
    let bytes = repr.packet(&instructions, &vec![0; 25 * word.bytes()], &[]);
    Subject { name, bytes, rights, instructions: operations.len().max(1) as u32, times: Vec::new() }
}

fn segments() -> AccessRights {
    let reads = AddressSet::of([(0, 9), (20, 21), (0x3000, 0x30ff), (0xb000, 0xb03f)]);
    AccessRights { writes_enabled: true, reads, writes: AddressSet::of([(20, 21), (0x3800, 0x3803)]) }
}

/// Returns the nanoseconds of one execution, or of only the copy if there is no processor.
fn measure(subject: &Subject, executes: bool) -> f64 {
    let mut memory = TableMemory { words: [0; 32] };
    let mut bytes = subject.bytes.clone();
    let start = Instant::now();
    for _ in 0..EXECUTIONS {
        bytes.copy_from_slice(black_box(&subject.bytes));
        if executes {
            let execution = Tcpu::execute(black_box(&mut bytes), &mut memory, &subject.rights);
            assert!(execution.verdict == ProgramVerdict::Completed, "{:?}", execution.verdict);
        }
        black_box(&mut bytes);
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(EXECUTIONS)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    use Operation::{Cexec, Cstore, Load, Max, Push};
    let (narrow, wide) = (WordSize::Bits16, WordSize::Bits32);
    let mixed = [Cexec, Push, Push, Push, Max];
    let mut subjects = [
        subject("no instruction, 16-bit words", narrow, &[], AccessRights::all()),
        subject("no instruction, 32-bit words", wide, &[], AccessRights::all()),
        subject("5 PUSH, 16-bit words", narrow, &[Push; 5], AccessRights::all()),
        subject("5 LOAD, 16-bit words", narrow, &[Load; 5], AccessRights::all()),
        subject("5 PUSH, 32-bit words", wide, &[Push; 5], AccessRights::all()),
        subject("5 LOAD, 32-bit words", wide, &[Load; 5], AccessRights::all()),
        subject("3 PUSH, 16-bit words", narrow, &[Push; 3], AccessRights::all()),
        subject("1 CSTORE, 32-bit words", wide, &[Cstore], AccessRights::all()),
        subject("5 CSTORE, 32-bit words", wide, &[Cstore; 5], AccessRights::all()),
        subject("CEXEC, 3 PUSH, MAX; 16 bits", narrow, &mixed, AccessRights::all()),
        subject("5 PUSH, 16 bits, 4 segments", narrow, &[Push; 5], segments()),
        subject("5 CSTORE, 32 bits, 4 segments", wide, &[Cstore; 5], segments()),
    ];
    for round in 0..=ROUNDS {
        for subject in &mut subjects {
            let time = measure(subject, true) - measure(subject, false);
            // The first round warms up.
            if round > 0 {
                subject.times.push(time);
            }
        }
    }
    let medians: Vec<f64> = subjects.iter_mut().map(|subject| median(&mut subject.times)).collect();
    println!("{:<32} {:>8} {:>16}", "program", "ns", "ns/instruction");
    for (subject, time) in subjects.iter().zip(&medians) {
        let is_wide = subject.name.contains("32");
        let each = (time - medians[usize::from(is_wide)]) / f64::from(subject.instructions);
        println!("{:<32} {time:>8.1} {each:>16.2}", subject.name);
    }
}
