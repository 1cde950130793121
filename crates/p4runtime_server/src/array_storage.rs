//! Stores the elements of kept arrays and the counters of entries: at an interval, after writes to them, after a new
//! pipeline, and at the end.
//!
//! Each piece is read between two batches of packets and recorded in one turn, so an older content never follows a
//! newer one of the same chunk or entry.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ir::Program;
use p4runtime_proto::v1;
use switch::SwitchControl;
use v1::entity::Entity;

use crate::array_mirror::ArrayChunk;
use crate::read::{EntityReader, LiveQuery, ReadPiece};
use crate::server::TouchedElements;
use crate::service::ServiceState;
use crate::status::Refusal;
use crate::store::StoreError;

/// Number of words that one piece reads while packets wait; it ends with the chunk that exceeds it.
const PIECE_WORDS: usize = 4096;
/// Number of chunks of one piece. Chunks that were never written have no words.
const PIECE_CHUNKS: usize = 64;
/// Minimum ratio of the time between two passes to the time of a pass.
const PAUSE_RATIO: u32 = 10;

/// Reads chunks until the piece is full.
fn read_piece(chunks: &[ArrayChunk], switch: &dyn SwitchControl) -> Vec<(ArrayChunk, Vec<u64>)> {
    let (mut content, mut words) = (Vec::new(), 0);
    for chunk in chunks {
        let read = chunk.read(switch.objects());
        words += read.len();
        content.push((*chunk, read));
        if words >= PIECE_WORDS {
            break;
        }
    }
    content
}

/// Returns the next query of the counters of entries.
fn next_query(reader: &mut EntityReader) -> Option<LiveQuery> {
    // Tables without counters need no query, and entries that are gone are errors of their requests.
    std::iter::from_fn(|| reader.next()).find_map(|piece| match piece {
        ReadPiece::Live(query) => Some(query),
        ReadPiece::Ready(_) => None,
    })
}

/// Returns the counters that `entries` lack, as zeros.
fn without_entries(entries: Vec<v1::TableEntry>) -> Vec<Entity> {
    let zero = |entry| Entity::DirectCounterEntry(v1::DirectCounterEntry { table_entry: Some(entry), data: None });
    entries.into_iter().map(zero).collect()
}

impl ServiceState {
    /// Reads and records the first chunks. Returns their number. The caller has the turn.
    async fn record_piece(&self, program: &Arc<Program>, chunks: &[ArrayChunk]) -> Result<usize, Refusal> {
        let piece = chunks[..chunks.len().min(PIECE_CHUNKS)].to_vec();
        let wanted = program.clone();
        let read = self.plane.run(move |plane| {
            plane.switch.collect_counts();
            Arc::ptr_eq(plane.switch.program(), &wanted).then(|| read_piece(&piece, plane.switch))
        });
        // With another program the chunks mean nothing any more.
        let Some(content) = read.await? else { return Ok(chunks.len()) };
        let count = content.len();
        self.server().record_chunks(program, content);
        Ok(count)
    }

    /// Runs a query of counters of entries and records its answer. The caller has the turn.
    async fn record_query(&self, program: &Arc<Program>, query: LiveQuery) -> Result<(), Refusal> {
        let wanted = program.clone();
        let read = self.plane.run(move |plane| {
            plane.switch.collect_counts();
            Arc::ptr_eq(plane.switch.program(), &wanted).then(|| query(plane.switch, plane.now.as_ns()))
        });
        if let Some(counters) = read.await? {
            self.server().record_entry_counts(program, counters);
        }
        Ok(())
    }

    /// Reads and records all chunks of a new program. Its entries have no counts yet, unless they were reconciled: the
    /// next pass records those. The caller has the turn.
    pub(crate) async fn record_chunks(&self, kept: Option<(Arc<Program>, Vec<ArrayChunk>)>) -> Result<(), Refusal> {
        let Some((program, chunks)) = kept else { return Ok(()) };
        let mut rest = &chunks[..];
        while !rest.is_empty() {
            rest = &rest[self.record_piece(&program, rest).await?..];
        }
        Ok(())
    }

    /// Reads and records what a write has changed. The caller has the turn.
    pub(crate) async fn record_touched(&self, touched: Option<TouchedElements>) -> Result<(), Refusal> {
        let Some(TouchedElements { program, chunks, entries }) = touched else { return Ok(()) };
        self.record_chunks(Some((program.clone(), chunks))).await?;
        if entries.is_empty() {
            return Ok(());
        }
        self.server().record_entry_counts(&program, without_entries(entries.clone()));
        let Some(mut reader) = self.server().read_entry_counts(Some(entries)) else { return Ok(()) };
        while let Some(query) = next_query(&mut reader) {
            self.record_query(&program, query).await?;
        }
        Ok(())
    }

    /// Stores changed elements at an interval, until the packet thread ends. The interval is extended if storing takes
    /// more than a part of it.
    pub(crate) async fn run_array_storage(self: Arc<Self>, interval: Duration) {
        let mut pause = interval;
        loop {
            tokio::time::sleep(pause).await;
            let begin = Instant::now();
            if self.record_all().await.is_err() {
                return;
            }
            let turn = self.turn.lock().await;
            // Changes that could not be stored are tried again with the next ones, which report it.
            let _ = self.keep(turn).await;
            pause = interval.max(begin.elapsed() * PAUSE_RATIO);
        }
    }

    /// Reads and records everything. Writes have their turns between two pieces.
    async fn record_all(&self) -> Result<(), Refusal> {
        let Some((program, chunks)) = self.server().kept_chunks() else { return Ok(()) };
        let mut rest = &chunks[..];
        while !rest.is_empty() {
            let _turn = self.turn.lock().await;
            rest = &rest[self.record_piece(&program, rest).await?..];
        }
        let Some(mut reader) = self.server().read_entry_counts(None) else { return Ok(()) };
        let program = reader.program().clone();
        while let Some(query) = next_query(&mut reader) {
            let _turn = self.turn.lock().await;
            self.record_query(&program, query).await?;
        }
        Ok(())
    }

    /// Stores everything of a switch that runs no more packets. Called from a thread without an executor.
    pub(crate) fn store_last(&self, switch: &dyn SwitchControl) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let _turn = self.turn.blocking_lock();
        let changes = {
            let mut server = self.server();
            if let Some((program, chunks)) = server.kept_chunks()
                && Arc::ptr_eq(&program, switch.program())
            {
                let content = chunks.iter().map(|chunk| (*chunk, chunk.read(switch.objects()))).collect();
                server.record_chunks(&program, content);
                let mut reader = server.read_entry_counts(None);
                while let Some(query) = reader.as_mut().and_then(next_query) {
                    server.record_entry_counts(&program, query(switch, 0));
                }
            }
            server.take_changes()
        };
        if changes.is_empty() { Ok(()) } else { store.commit_blocking(changes) }
    }
}
