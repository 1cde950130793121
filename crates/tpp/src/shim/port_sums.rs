//! Adds up the words of collected programs by the port that their packets left by.

use std::collections::{BTreeMap, HashMap};

use wire::tpp::Packet;

use super::CollectedProgram;
use super::sums::{self, HopWord, LAYOUTS, LayoutKey};
use crate::map::MemoryMap;

/// Maximum number of ports of a period. Words of damaged programs may name any.
const MAX_PORTS: usize = 1024;

/// Names of the words that identify a switch, and the port that a packet leaves by.
const SWITCH: &str = "Switch:ID";
const PORT: [&str; 2] = ["PacketMetadata:OutputPort", "Link:ID"];

/// The values of a word at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortWord {
    /// Name of the word.
    pub name: String,
    /// Number of values; 0 if the switch lacks the statistic.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// The greatest value.
    pub max: u32,
}

/// The words of the programs that left a switch by a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSum {
    /// Number of programs.
    pub programs: u64,
    /// Their words, without those that identify switch and port.
    pub words: Vec<PortWord>,
}

/// The sums of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodSums {
    /// By number of the switch, and port if the programs name it.
    pub ports: BTreeMap<(u32, Option<u32>), PortSum>,
    /// Number of programs.
    pub programs: u64,
    /// Number of programs that no switch executed, that lack `Switch:ID`, or whose ports exceeded `MAX_PORTS`.
    pub unplaced: u64,
}

/// Offset of a word in memory.
#[derive(Clone, Copy, Debug)]
struct WordOffset {
    offset: usize,
    may_be_absent: bool,
}

/// The places of the words of a hop.
#[derive(Clone, Debug)]
struct HopOffsets {
    switch: WordOffset,
    port: Option<WordOffset>,
    /// Index of the name, and the place.
    words: Vec<(usize, WordOffset)>,
}

/// A word of a port: the index of its name, number of values, sum and greatest value.
type PortCell = (usize, u64, u64, u32);

/// The words of collected programs in a period, by switch and port. Programs without `Switch:ID`, and those that no
/// switch executed, are counted only.
#[derive(Debug, Default)]
pub struct PortSums {
    names: Vec<String>,
    layouts: HashMap<LayoutKey, Vec<HopOffsets>>,
    /// Number of programs and the words, by switch and port.
    ports: HashMap<(u32, Option<u32>), (u64, Vec<PortCell>)>,
    programs: u64,
    unplaced: u64,
}

impl PortSums {
    /// Adds the words of a program.
    pub fn add(&mut self, collected: &CollectedProgram, map: &MemoryMap) {
        let Ok(packet) = Packet::new_checked(&collected.bytes[..]) else { return };
        self.programs += 1;
        if packet.hop() <= 0 {
            self.unplaced += 1;
            return;
        }
        let key = sums::layout_key(&collected.bytes, packet.instruction_count());
        if !self.layouts.contains_key(&key) {
            if self.layouts.len() == LAYOUTS {
                self.layouts.clear();
            }
            let layout = self.layout(collected, map);
            self.layouts.insert(key, layout);
        }
        let (memory, size) = (packet.memory(), packet.word_size());
        let value = |place: &WordOffset| sums::value_at(memory, place.offset, size, place.may_be_absent);
        let mut is_placed = false;
        for hop in &self.layouts[&key] {
            let Some(switch) = value(&hop.switch) else { continue };
            let at = (switch, hop.port.as_ref().and_then(value));
            if self.ports.len() == MAX_PORTS && !self.ports.contains_key(&at) {
                continue;
            }
            is_placed = true;
            let (programs, words) = self.ports.entry(at).or_default();
            *programs += 1;
            for (name, place) in &hop.words {
                let cell = match words.iter().position(|cell| cell.0 == *name) {
                    Some(at) => &mut words[at],
                    None => {
                        words.push((*name, 0, 0, 0));
                        words.last_mut().expect("it was added")
                    }
                };
                if let Some(value) = value(place) {
                    *cell = (*name, cell.1 + 1, cell.2.saturating_add(value.into()), cell.3.max(value));
                }
            }
        }
        self.unplaced += u64::from(!is_placed);
    }

    /// Returns the places of a program's words at the hops that identify their switches.
    fn layout(&mut self, collected: &CollectedProgram, map: &MemoryMap) -> Vec<HopOffsets> {
        let mut hops: BTreeMap<usize, Vec<HopWord>> = BTreeMap::new();
        for word in sums::hop_words(&collected.program(), map) {
            hops.entry(word.hop).or_default().push(word);
        }
        let place = |word: &HopWord| WordOffset { offset: word.offset, may_be_absent: word.may_be_absent };
        let mut layout = Vec::new();
        for words in hops.into_values() {
            let Some(switch) = words.iter().find(|word| word.name == SWITCH).map(place) else { continue };
            let port = words.iter().find(|word| PORT.contains(&word.name.as_str())).map(place);
            let others = words.iter().filter(|word| word.name != SWITCH && !PORT.contains(&word.name.as_str()));
            let words = others.map(|word| (self.name(&word.name), place(word))).collect();
            layout.push(HopOffsets { switch, port, words });
        }
        layout
    }

    /// Returns the index of a name.
    fn name(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// Ends the period, and begins the next one.
    pub fn take(&mut self) -> PeriodSums {
        let word = |(name, count, sum, max): PortCell| PortWord { name: self.names[name].clone(), count, sum, max };
        let port = |(at, (programs, words)): ((u32, Option<u32>), (u64, Vec<PortCell>))| {
            (at, PortSum { programs, words: words.into_iter().map(word).collect() })
        };
        let ports = self.ports.drain().map(port).collect();
        let (programs, unplaced) = (std::mem::take(&mut self.programs), std::mem::take(&mut self.unplaced));
        PeriodSums { ports, programs, unplaced }
    }
}

#[cfg(test)]
mod tests {
    use diagnostics::{Diagnostics, SourceMap};

    use super::*;
    use crate::asm::assemble;
    use crate::tcpu::{AccessRights, SparseMemory, Tcpu};

    /// Returns a program after switches with these numbers, ports and queues executed it. They lack other statistics.
    fn executed(text: &str, hops: &[[u64; 3]]) -> CollectedProgram {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let map = MemoryMap::new();
        let program = assemble(&mut sources, "test", text, &map, &mut diagnostics);
        let mut program = program.expect("it has no mistakes");
        program.mark_absent();
        let mut bytes = program.packet(&[]);
        for hop in hops {
            let mut memory = SparseMemory::new();
            for (name, value) in ["Switch:ID", "PacketMetadata:OutputPort", "Queue:QueueOccupancy"].iter().zip(hop) {
                memory.fixed(map.find(name).expect("it exists").address, *value);
            }
            Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
        }
        CollectedProgram { flow: None, bytes }
    }

    const QUEUES: &str = "PUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\nPUSH [Queue:QueueOccupancy]\n";

    #[test]
    fn paths_that_share_a_port_share_its_sums() {
        let (map, mut sums) = (MemoryMap::new(), PortSums::default());
        // The second switch is the first one of another path.
        sums.add(&executed(QUEUES, &[[1, 2, 10], [2, 1, 4]]), &map);
        sums.add(&executed(QUEUES, &[[2, 1, 8]]), &map);
        sums.add(&executed(QUEUES, &[[2, 3, 0]]), &map);
        // The words of this one are in another order, and one is missing in all switches.
        let other = "PUSH [Link:AppSpecific_0]\nPUSH [Queue:QueueOccupancy]\nPUSH [PacketMetadata:OutputPort]\n\
                     PUSH [Switch:ID]\n";
        sums.add(&executed(other, &[[2, 1, 6]]), &map);
        let PeriodSums { ports, programs, unplaced } = sums.take();
        assert_eq!((programs, unplaced), (4, 0));
        let queue = |count, sum, max| PortWord { name: "Queue:QueueOccupancy".to_owned(), count, sum, max };
        let absent = PortWord { name: "Link:AppSpecific_0".to_owned(), count: 0, sum: 0, max: 0 };
        let expected = [
            ((1, Some(2)), PortSum { programs: 1, words: vec![queue(1, 10, 10)] }),
            ((2, Some(1)), PortSum { programs: 3, words: vec![queue(3, 18, 8), absent] }),
            ((2, Some(3)), PortSum { programs: 1, words: vec![queue(1, 0, 0)] }),
        ];
        assert_eq!(ports, expected.into());
        assert_eq!(sums.take(), PeriodSums::default(), "each period begins anew");
    }

    #[test]
    fn programs_that_name_no_switch_are_counted() {
        let (map, mut sums) = (MemoryMap::new(), PortSums::default());
        sums.add(&executed("PUSH [Queue:QueueOccupancy]", &[[1, 2, 10]]), &map);
        sums.add(&executed(QUEUES, &[]), &map);
        assert_eq!(sums.take(), PeriodSums { programs: 2, unplaced: 2, ..PeriodSums::default() });
        sums.add(&executed("PUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]", &[[1, 2, 10]]), &map);
        assert_eq!(sums.take().ports.keys().collect::<Vec<_>>(), [&(1, None)]);
    }

    #[test]
    fn the_number_of_ports_is_bounded() {
        let (map, mut sums) = (MemoryMap::new(), PortSums::default());
        (0..1100).for_each(|switch| sums.add(&executed(QUEUES, &[[switch, 2, 1]]), &map));
        sums.add(&executed(QUEUES, &[[0, 2, 1]]), &map);
        let PeriodSums { ports, programs, unplaced } = sums.take();
        assert_eq!((ports.len(), programs, unplaced), (1024, 1101, 76));
        assert_eq!(ports[&(0, Some(2))].programs, 2);
    }
}
