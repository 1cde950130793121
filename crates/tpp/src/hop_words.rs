//! Programs that push the same words at each switch, and the words that come back: what applications in end hosts
//! collect along a path.

use diagnostics::{Diagnostics, SourceMap};

use crate::asm::{TinyProgram, assemble};
use crate::map::MemoryMap;

/// Size of a word of packet memory.
const WORD: usize = 4;

/// Number of switches that one program has memory for. Five words of each, header and instructions take 492 bytes.
pub const PROGRAM_HOPS: usize = 23;

/// Words that discover links. The identity comes first, so that rows of different switches are not mixed.
pub const DISCOVERED: [&str; 4] = ["Switch:ID", "Link:ID", "Link:Capacity", "Link:Capacity.High"];

/// The switch and the port of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkPlace {
    /// Number of the switch.
    pub switch: u32,
    /// Port by which the programs left it.
    pub port: u32,
}

/// Returns the place and the capacity, in bytes a second, from the words of a discovery.
pub fn discovered_link(words: &[u32]) -> (LinkPlace, f64) {
    let capacity = u64::from(words[3]) << 32 | u64::from(words[2]);
    (LinkPlace { switch: words[0], port: words[1] }, capacity as f64)
}

/// Assembles a program of this crate.
pub fn program(text: &str) -> TinyProgram {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    assemble(&mut sources, "application", text, &MemoryMap::new(), &mut diagnostics).expect("it has no mistakes")
}

/// Returns a program that pushes words at `hops` switches after the first `first` ones.
pub fn pushes(first: usize, hops: usize, words: &[&str]) -> TinyProgram {
    let pushes: String = words.iter().map(|word| format!("PUSH [{word}]\n")).collect();
    program(&format!(".hops {hops}\n.hop -{first}\n{pushes}"))
}

/// Returns the words of `hops` switches after the first `first` ones; `None` if the program did not pass `passed`
/// switches in all, or has no memory for them.
pub fn rows(
    program: &TinyProgram,
    first: usize,
    hops: usize,
    passed: usize,
    words: usize,
) -> Option<impl Iterator<Item = Vec<u32>> + '_> {
    let is_same = i64::from(program.repr.hop) + first as i64 == passed as i64;
    let memory = program.memory.get(..hops * words * WORD).filter(|_| is_same)?;
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    Some(memory.chunks_exact(words * WORD).map(move |hop| hop.chunks_exact(WORD).map(word).collect()))
}

/// The programs that discover and sample a path, assembled once.
#[derive(Clone, Debug)]
pub struct PathPrograms {
    discovery: TinyProgram,
    sample: TinyProgram,
}

impl PathPrograms {
    /// Assembles them. Discoveries and samples push these words at each switch, at most five.
    pub fn new(discovered: &[&str], sampled: &[&str]) -> PathPrograms {
        PathPrograms { discovery: pushes(0, PROGRAM_HOPS, discovered), sample: pushes(0, 1, sampled) }
    }

    /// Returns the program that discovers a path.
    pub fn discovery(&self) -> TinyProgram {
        self.discovery.clone()
    }

    /// Returns the program that samples this number of links. Later switches find no memory, and write nothing.
    pub fn sample(&self, links: usize) -> TinyProgram {
        TinyProgram { memory: vec![0; self.sample.memory.len() * links.max(1)], ..self.sample.clone() }
    }

    /// Whether an echo is that of a discovery.
    pub fn is_discovery(&self, echo: &TinyProgram) -> bool {
        echo.instructions == self.discovery.instructions
    }
}
