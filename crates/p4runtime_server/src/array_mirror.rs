//! Mirrors the stored elements of register and counter arrays, and the counters of entries, to find what has changed.
//!
//! ```text
//!   array ── chunks of up to 4,096 words ── read between two batches ── compared with the stored content ──> changes
//! ```
//!
//! A chunk is read as a whole while packets wait, so no wide element is torn; different chunks are read at different
//! times. Chunks of zeros are not stored. The counter of an entry has a row of its own ([`crate::array_storage`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use bits::Bits;
use engine::{CounterValue, Objects};
use ir::{CounterId, Program, RegisterId};
use p4runtime_proto::v1::entity::Entity;

use crate::schema::Schema;

/// Number of words of a chunk.
const CHUNK_WORDS: u64 = 4096;
/// Length of the header of a stored chunk: width and size of its array.
const HEADER_BYTES: usize = 12;

/// The first byte of a row's key: its kind.
const REGISTERS: u8 = b'r';
const COUNTERS: u8 = b'c';
pub(crate) const ENTRY_COUNT: u8 = b'e';

/// The kinds of arrays whose elements are kept in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptArrays {
    /// Register arrays.
    pub registers: bool,
    /// Counter arrays, and the counters of entries.
    pub counters: bool,
}

/// Changes of stored chunks, by key. `None` deletes a chunk.
pub(crate) type ChunkChanges = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayId {
    Register(RegisterId),
    Counter(CounterId),
}

/// An array of the program.
#[derive(Clone, Debug)]
struct KeptArray {
    id: ArrayId,
    name: String,
    /// Bits of an element. A counter has 128: packets and bytes.
    width: u32,
    size: u64,
}

impl KeptArray {
    /// Number of words of an element.
    fn stride(&self) -> u64 {
        u64::from(self.width.div_ceil(64))
    }

    /// Number of elements of a chunk.
    fn per_chunk(&self) -> u64 {
        (CHUNK_WORDS / self.stride()).max(1)
    }

    /// Returns the key of a chunk in the store: the array's kind and name, and the first element.
    fn key(&self, first: u64) -> Vec<u8> {
        let kind = match self.id {
            ArrayId::Register(_) => REGISTERS,
            ArrayId::Counter(_) => COUNTERS,
        };
        let length = (self.name.len() as u32).to_be_bytes();
        [&[kind][..], &length, self.name.as_bytes(), &first.to_be_bytes()].concat()
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&self.width.to_be_bytes());
        header[4..].copy_from_slice(&self.size.to_be_bytes());
        header
    }

    /// Packs words to the bytes that the elements need. Returns `None` for zeros.
    fn pack(&self, words: &[u64]) -> Option<Vec<u8>> {
        if words.iter().all(|word| *word == 0) {
            return None;
        }
        let (stride, bytes) = (self.stride() as usize, self.width.div_ceil(8) as usize);
        let mut packed = self.header().to_vec();
        packed.reserve(words.len() / stride * bytes);
        for element in words.chunks_exact(stride) {
            let mut left = bytes;
            for word in element {
                let taken = left.min(8);
                packed.extend_from_slice(&word.to_le_bytes()[..taken]);
                left -= taken;
            }
        }
        Some(packed)
    }
}

/// A range of elements of one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayChunk {
    id: ArrayId,
    /// Index of the array in the mirror.
    array: usize,
    first: u64,
    end: u64,
}

impl ArrayChunk {
    /// Returns the array and the first element, which identify the chunk.
    pub(crate) fn place(&self) -> (usize, u64) {
        (self.array, self.first)
    }

    /// Reads the words of the chunk; none for a chunk that was never written.
    pub(crate) fn read(&self, objects: &Objects) -> Vec<u64> {
        let mut words = Vec::new();
        match self.id {
            ArrayId::Register(register) => objects.read_register_words(register, self.first..self.end, &mut words),
            ArrayId::Counter(counter) => {
                let values = (self.first..self.end).filter_map(|index| objects.counter(counter, index).ok());
                words.extend(values.flat_map(|value| [value.packets, value.bytes]));
            }
        }
        words
    }
}

/// The stored content of the kept arrays of one program.
#[derive(Debug)]
pub(crate) struct ArrayMirror {
    program: Arc<Program>,
    kept: KeptArrays,
    arrays: Vec<KeptArray>,
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl ArrayMirror {
    /// Creates the mirror of a program without stored elements.
    pub(crate) fn new(program: &Arc<Program>, kept: KeptArrays) -> ArrayMirror {
        let registers = program.registers.iter().filter(|_| kept.registers).map(|(id, register)| KeptArray {
            id: ArrayId::Register(id),
            name: register.name.clone(),
            width: register.width,
            size: register.size,
        });
        let counters = program.counters.iter().filter(|_| kept.counters).filter_map(|(id, counter)| {
            Some(KeptArray { id: ArrayId::Counter(id), name: counter.name.clone(), width: 128, size: counter.size? })
        });
        let arrays = registers.chain(counters).filter(|array| array.width > 0).collect();
        ArrayMirror { program: program.clone(), kept, arrays, stored: BTreeMap::new() }
    }

    /// Returns the program of the arrays.
    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn chunk(&self, array: usize, number: u64) -> ArrayChunk {
        let kept = &self.arrays[array];
        let first = number * kept.per_chunk();
        ArrayChunk { id: kept.id, array, first, end: (first + kept.per_chunk()).min(kept.size) }
    }

    fn chunks_of_array(&self, array: usize) -> impl Iterator<Item = ArrayChunk> + '_ {
        let kept = &self.arrays[array];
        (0..kept.size.div_ceil(kept.per_chunk())).map(move |number| self.chunk(array, number))
    }

    /// Returns all chunks.
    pub(crate) fn chunks(&self) -> Vec<ArrayChunk> {
        (0..self.arrays.len()).flat_map(|array| self.chunks_of_array(array)).collect()
    }

    /// Returns the chunks that a write of this entity changes, if it has a valid index.
    pub(crate) fn touched(&self, entity: &Entity, schema: &Schema) -> Vec<ArrayChunk> {
        let (id, index) = match entity {
            Entity::RegisterEntry(entry) => {
                (schema.registers.get(&entry.register_id).map(|it| ArrayId::Register(it.array.ir)), &entry.index)
            }
            Entity::CounterEntry(entry) => {
                (schema.counters.get(&entry.counter_id).map(|it| ArrayId::Counter(it.ir)), &entry.index)
            }
            _ => return Vec::new(),
        };
        let Some(array) = id.and_then(|id| self.arrays.iter().position(|array| array.id == id)) else {
            return Vec::new();
        };
        let kept = &self.arrays[array];
        match index.as_ref().map(|index| u64::try_from(index.index)) {
            None => self.chunks_of_array(array).collect(),
            Some(Ok(index)) if index < kept.size => vec![self.chunk(array, index / kept.per_chunk())],
            Some(_) => Vec::new(),
        }
    }

    /// Records the content of a chunk, and adds it to `changes` if it differs from the stored one.
    pub(crate) fn update(&mut self, chunk: ArrayChunk, words: &[u64], changes: &mut ChunkChanges) {
        let kept = &self.arrays[chunk.array];
        let (key, packed) = (kept.key(chunk.first), kept.pack(words));
        self.update_row(key, packed, changes);
    }

    /// Records a row, and adds it to `changes` if it differs from the stored one.
    pub(crate) fn update_row(&mut self, key: Vec<u8>, row: Option<Vec<u8>>, changes: &mut ChunkChanges) {
        if self.stored.get(&key) == row.as_ref() {
            return;
        }
        match &row {
            Some(row) => drop(self.stored.insert(key.clone(), row.clone())),
            None => drop(self.stored.remove(&key)),
        }
        changes.insert(key, row);
    }

    /// Whether the counters of entries are kept.
    pub(crate) fn keeps_entry_counts(&self) -> bool {
        self.kept.counters
    }

    /// Whether a row is stored.
    pub(crate) fn has_row(&self, key: &[u8]) -> bool {
        self.stored.contains_key(key)
    }

    /// Writes a stored chunk to the arrays of a switch that was just built. One that does not fit the program is not
    /// restored, and `changes` deletes it. One of a kind that is not kept stays in the store.
    pub(crate) fn restore_row(
        &mut self,
        key: &[u8],
        row: &[u8],
        objects: &mut Objects,
        report: &mut RestoredArrays,
        changes: &mut ChunkChanges,
    ) {
        let is_kept = match key.first() {
            Some(&COUNTERS) => self.kept.counters,
            _ => self.kept.registers,
        };
        if !is_kept {
            return;
        }
        match self.chunk_of(key).filter(|chunk| self.restore_chunk(*chunk, row, objects)) {
            Some(chunk) => {
                report.elements += chunk.end - chunk.first;
                self.stored.insert(key.to_vec(), row.to_vec());
            }
            None => {
                report.lose(key);
                changes.insert(key.to_vec(), None);
            }
        }
    }

    /// Returns the chunk with this key in the store.
    fn chunk_of(&self, key: &[u8]) -> Option<ArrayChunk> {
        let first = u64::from_be_bytes(*key.last_chunk()?);
        let array = self.arrays.iter().position(|array| array.key(first) == key)?;
        let kept = &self.arrays[array];
        let is_place = first < kept.size && first.is_multiple_of(kept.per_chunk());
        is_place.then(|| self.chunk(array, first / kept.per_chunk()))
    }

    /// Writes a chunk. Returns false and changes nothing if its array had another width or size.
    fn restore_chunk(&self, chunk: ArrayChunk, row: &[u8], objects: &mut Objects) -> bool {
        let kept = &self.arrays[chunk.array];
        let bytes = kept.width.div_ceil(8) as usize;
        let Some((header, packed)) = row.split_at_checked(HEADER_BYTES) else { return false };
        if header != kept.header() || packed.len() as u64 != (chunk.end - chunk.first) * bytes as u64 {
            return false;
        }
        for (index, element) in (chunk.first..).zip(packed.chunks_exact(bytes)) {
            if element.iter().all(|byte| *byte == 0) {
                continue;
            }
            let words: Vec<u64> = element.chunks(8).map(word).collect();
            let written = match kept.id {
                ArrayId::Register(id) => objects.set_register(id, index, Bits::from_words(&words, kept.width)),
                ArrayId::Counter(id) => {
                    let value = CounterValue { packets: words[0], bytes: words[1] };
                    objects.set_counter(id, index, value)
                }
            };
            debug_assert!(written.is_ok(), "index and width are the array's");
        }
        true
    }
}

/// Returns the word with these bytes, the least significant first.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Register and counter elements that were restored, and arrays that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredArrays {
    /// Number of elements in restored chunks, and of restored counters of entries.
    pub elements: u64,
    /// Names of arrays that the program does not have, or has with another width or size, and of tables without entries
    /// whose counters were stored.
    pub lost: Vec<String>,
}

impl RestoredArrays {
    /// Records the array of a chunk that is not restored.
    fn lose(&mut self, key: &[u8]) {
        let kind = if key.first() == Some(&COUNTERS) { "counter" } else { "register" };
        let name = String::from_utf8_lossy(key.get(5..key.len().saturating_sub(8)).unwrap_or_default());
        self.lose_array(format!("{kind} {name}"));
    }

    /// Records an array that is not restored, once.
    pub(crate) fn lose_array(&mut self, lost: String) {
        if !self.lost.contains(&lost) {
            self.lost.push(lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: KeptArrays = KeptArrays { registers: true, counters: true };

    /// Returns a program with registers of these widths and sizes, and a counter array.
    fn program(registers: &[(&str, u32, u64)]) -> Arc<Program> {
        let declared = registers.iter().map(|(name, width, size)| format!("register<bit<{width}>>({size}) {name};"));
        let read = registers.iter().map(|(name, width, _)| format!("bit<{width}> v_{name}; {name}.read(v_{name}, 0);"));
        let (declared, read) = (declared.collect::<String>(), read.collect::<String>());
        let source = format!(
            "#include <core.p4>
             #include <v1model.p4>
             struct headers {{}}
             struct meta {{}}
             parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {{
                 state start {{ transition accept; }}
             }}
             control V(inout headers h, inout meta m) {{ apply {{}} }}
             control I(inout headers h, inout meta m, inout standard_metadata_t s) {{
                 {declared}
                 counter(5000, CounterType.packets_and_bytes) kinds;
                 apply {{ {read} kinds.count(0); }}
             }}
             control E(inout headers h, inout meta m, inout standard_metadata_t s) {{ apply {{}} }}
             control D(packet_out p, in headers h) {{ apply {{}} }}
             V1Switch(P(), V(), I(), E(), V(), D()) main;"
        );
        Arc::new(compiler::expect_program(&compiler::Source::new("arrays.p4", &source), &v1model::V1Model).ir)
    }

    fn register(program: &Program, name: &str) -> RegisterId {
        program.registers.iter().find(|(_, it)| it.name.ends_with(name)).expect("it is in the program").0
    }

    /// Reads all chunks and returns the changes.
    fn pass(mirror: &mut ArrayMirror, objects: &Objects) -> ChunkChanges {
        let mut changes = ChunkChanges::new();
        for chunk in mirror.chunks() {
            mirror.update(chunk, &chunk.read(objects), &mut changes);
        }
        changes
    }

    fn restore(
        mirror: &mut ArrayMirror,
        rows: &BTreeMap<Vec<u8>, Vec<u8>>,
        objects: &mut Objects,
        changes: &mut ChunkChanges,
    ) -> RestoredArrays {
        let mut report = RestoredArrays::default();
        rows.iter().for_each(|(key, row)| mirror.restore_row(key, row, objects, &mut report, changes));
        report
    }

    fn restored(
        program: &Arc<Program>,
        kept: KeptArrays,
        rows: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> (Objects, RestoredArrays, ChunkChanges) {
        let (mut objects, mut changes) = (Objects::new(program), ChunkChanges::new());
        let report = restore(&mut ArrayMirror::new(program, kept), rows, &mut objects, &mut changes);
        (objects, report, changes)
    }

    /// Returns a program, objects with some values in every array, and the rows that store them.
    fn stored() -> (Arc<Program>, Objects, BTreeMap<Vec<u8>, Vec<u8>>) {
        let program = program(&[("bit1", 1, 9), ("narrow", 24, 100_000), ("word", 64, 4096), ("wide", 150, 3000)]);
        let mut objects = Objects::new(&program);
        for (id, register) in &program.registers {
            for index in [0, 7, register.size / 2, register.size - 1] {
                let words = [u64::MAX - index, index + 1, u64::MAX];
                let value = Bits::from_words(&words[..register.width.div_ceil(64) as usize], register.width);
                objects.set_register(id, index, value).expect("it fits");
            }
        }
        let (counter, _) = program.counters.iter().next().expect("there is one");
        objects.set_counter(counter, 4999, CounterValue { packets: 3, bytes: u64::MAX }).expect("it fits");
        let mut mirror = ArrayMirror::new(&program, BOTH);
        let changes = pass(&mut mirror, &objects);
        assert!(pass(&mut mirror, &objects).is_empty(), "nothing has changed since");
        let rows = changes.into_iter().map(|(key, row)| (key, row.expect("nothing was stored before"))).collect();
        (program, objects, rows)
    }

    #[test]
    fn restored_arrays_have_all_elements_and_are_known_to_be_stored() {
        let (program, objects, rows) = stored();
        // Of 25 chunks of `narrow`, those with values: the first, the middle and the last one.
        assert_eq!(rows.keys().filter(|key| key.windows(6).any(|name| name == b"narrow")).count(), 3);
        let (mut again, mut changes) = (Objects::new(&program), ChunkChanges::new());
        let mut mirror = ArrayMirror::new(&program, BOTH);
        let report = restore(&mut mirror, &rows, &mut again, &mut changes);
        assert_eq!(format!("{again:?}"), format!("{objects:?}"));
        assert!(report.lost.is_empty() && report.elements >= 9 + 4096 && changes.is_empty(), "{report:?}");
        assert!(pass(&mut mirror, &again).is_empty(), "everything is stored already");
        // A chunk of zeros is deleted.
        again.fill_register(register(&program, "word"), Bits::zero(64)).expect("it fits");
        let changes = pass(&mut mirror, &again);
        assert!(changes.len() == 1 && changes.values().all(Option::is_none), "{changes:?}");
    }

    #[test]
    fn arrays_of_another_width_or_size_are_not_restored() {
        let (_, _, rows) = stored();
        let other = program(&[("bit1", 1, 9), ("narrow", 25, 100_000), ("word", 64, 4097)]);
        let (objects, report, changes) = restored(&other, BOTH, &rows);
        assert_eq!(report.lost, ["register I.wide", "register I.word", "register I.narrow"].map(str::to_owned));
        assert_eq!(changes.len(), rows.keys().filter(|key| key[0] == b'r').count() - 1, "only `bit1` is restored");
        assert_eq!(objects.register(register(&other, "bit1"), 0), Ok(Bits::new(1, 1)));
        assert_eq!(objects.register(register(&other, "narrow"), 0), Ok(Bits::zero(25)));
    }

    #[test]
    fn arrays_of_a_kind_that_is_not_kept_stay_in_the_store() {
        let (program, _, rows) = stored();
        let counters = KeptArrays { registers: false, counters: true };
        let (objects, report, changes) = restored(&program, counters, &rows);
        assert!(report.lost.is_empty() && changes.is_empty(), "{report:?}");
        assert_eq!(objects.register(register(&program, "word"), 0), Ok(Bits::zero(64)));
        let (counter, _) = program.counters.iter().next().expect("there is one");
        assert_eq!(objects.counter(counter, 4999).map(|value| value.packets), Ok(3));
    }

    #[test]
    fn damaged_rows_are_not_restored() {
        let (program, _, rows) = stored();
        let (key, row) = rows.iter().next().expect("there are rows");
        for length in 0..row.len().min(64) {
            let (_, report, changes) =
                restored(&program, BOTH, &BTreeMap::from([(key.clone(), row[..length].to_vec())]));
            assert_eq!((report.elements, report.lost.len(), changes.len()), (0, 1, 1), "{length} bytes");
        }
        for length in 0..key.len() {
            let (_, report, _) = restored(&program, BOTH, &BTreeMap::from([(key[..length].to_vec(), row.clone())]));
            assert_eq!(report.elements, 0, "a key of {length} bytes");
        }
    }
}
