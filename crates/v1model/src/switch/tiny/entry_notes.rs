//! Notes the entries that a packet matches, for programs that read them.
//!
//! Machine code keeps no entries of a packet. So a packet whose program reads them is interpreted, and an observer of
//! the interpreter notes its matches.

use engine::{EntryHandle, Event, Watch};
use ir::{Program, TableId};
use tpp::map::Namespace;
use wire::tpp::{Operation, Packet, Status};

use super::{TinyPacket, offset};

/// A match of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatchedEntry {
    pub table: TableId,
    pub handle: EntryHandle,
}

/// Whether a program may read entries that its packet matched.
pub(super) fn reads_entries(program: &[u8]) -> bool {
    const OF_PACKET: u16 = Namespace::PacketMetadata.base();
    const MATCHED: u16 = OF_PACKET + offset::PACKET_MATCHED_ENTRY;
    const MATCHED_STAGE: u16 = OF_PACKET + offset::PACKET_MATCHED_STAGE;
    let Ok(packet) = Packet::new_checked(program) else { return false };
    let reads = |instruction: wire::tpp::Instruction| {
        // The address of an indirect one is in packet memory, which instructions before it may change.
        instruction.operation == Operation::LoadIndirect
            || matches!(instruction.address, 0x2000..0x3000 | MATCHED | MATCHED_STAGE)
    };
    !packet.status().contains(Status::DONE) && packet.instructions().any(reads)
}

/// An observer that notes matches, and passes all events on.
pub(in crate::switch) struct EntryNotes<'a> {
    matched: &'a mut Vec<MatchedEntry>,
    others: &'a mut dyn Watch,
}

impl Watch for EntryNotes<'_> {
    fn event(&mut self, program: &Program, event: Event<'_>) {
        if let Event::Applied { table, handle, .. } = event {
            self.matched.retain(|matched| matched.table != table);
            self.matched.extend(handle.map(|handle| MatchedEntry { table, handle }));
        }
        if self.others.wants_events() {
            self.others.event(program, event);
        }
    }
}

impl TinyPacket {
    /// Whether the entries that the packet matches are noted.
    pub fn notes_entries(&self) -> bool {
        self.matched.is_some()
    }

    /// Returns the observer that notes entries, if they are noted. It passes all events on to `others`.
    pub fn entry_notes<'a>(&'a mut self, others: &'a mut dyn Watch) -> Option<EntryNotes<'a>> {
        self.matched.as_mut().map(|matched| EntryNotes { matched, others })
    }

    /// Returns the entry that the packet matched in the last application of a table; `None` after a miss.
    pub(super) fn matched_in(&self, table: TableId) -> Option<EntryHandle> {
        self.matches().find(|matched| matched.table == table).map(|matched| matched.handle)
    }

    /// Returns the matches in the order in which the tables were last applied.
    pub(super) fn matches(&self) -> impl DoubleEndedIterator<Item = MatchedEntry> {
        self.matched.iter().flatten().copied()
    }
}
