//! Stores the elements of kept arrays: at an interval, after writes to them, after a new pipeline, and at the end.
//!
//! Each piece is read between two batches of packets and recorded in one turn, so a later piece never comes before an
//! earlier one of the same chunk.

use std::sync::Arc;
use std::time::Duration;

use ir::Program;
use switch::SwitchControl;

use crate::array_mirror::ArrayChunk;
use crate::service::ServiceState;
use crate::status::Refusal;
use crate::store::StoreError;

/// Number of words that one piece reads while packets wait; it ends with the chunk that exceeds it.
const PIECE_WORDS: usize = 4096;
/// Number of chunks of one piece. Chunks that were never written have no words.
const PIECE_CHUNKS: usize = 64;

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

impl ServiceState {
    /// Reads and records the first chunks. Returns their number. The caller has the turn.
    async fn record_piece(&self, program: &Arc<Program>, chunks: &[ArrayChunk]) -> Result<usize, Refusal> {
        let piece = chunks[..chunks.len().min(PIECE_CHUNKS)].to_vec();
        let wanted = program.clone();
        let read = self.plane.run(move |plane| {
            Arc::ptr_eq(plane.switch.program(), &wanted).then(|| read_piece(&piece, plane.switch))
        });
        // With another program the chunks mean nothing any more.
        let Some(content) = read.await? else { return Ok(chunks.len()) };
        let count = content.len();
        self.server().record_chunks(program, content);
        Ok(count)
    }

    /// Reads and records chunks of a program. The caller has the turn.
    pub(crate) async fn record_chunks(&self, kept: Option<(Arc<Program>, Vec<ArrayChunk>)>) -> Result<(), Refusal> {
        let Some((program, chunks)) = kept else { return Ok(()) };
        let mut rest = &chunks[..];
        while !rest.is_empty() {
            rest = &rest[self.record_piece(&program, rest).await?..];
        }
        Ok(())
    }

    /// Stores changed elements at an interval, until the packet thread ends.
    pub(crate) async fn run_array_storage(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            let Some((program, chunks)) = self.server().kept_chunks() else { continue };
            let mut rest = &chunks[..];
            while !rest.is_empty() {
                // Writes have their turns between two pieces.
                let _turn = self.turn.lock().await;
                match self.record_piece(&program, rest).await {
                    Ok(count) => rest = &rest[count..],
                    Err(_) => return,
                }
            }
            let turn = self.turn.lock().await;
            // Changes that could not be stored are tried again with the next ones, which report it.
            let _ = self.keep(turn).await;
        }
    }

    /// Stores all elements of a switch that runs no more packets. Called from a thread without an executor.
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
            }
            server.take_changes()
        };
        if changes.is_empty() { Ok(()) } else { store.commit_blocking(changes) }
    }
}
