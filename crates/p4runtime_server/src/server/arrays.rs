//! Records the elements of kept arrays.

use std::collections::BTreeMap;
use std::sync::Arc;

use ir::Program;
use p4runtime_proto::v1;
use switch::SwitchControl;

use super::Server;
use crate::array_mirror::{ArrayChunk, ArrayMirror, KeptArrays, RestoredArrays};

impl Server {
    /// Creates the mirror of a program, if arrays are kept.
    pub(super) fn new_mirror(&self, program: &Arc<Program>) -> Option<ArrayMirror> {
        let kept = self.settings.kept_arrays;
        (kept != KeptArrays::default()).then(|| ArrayMirror::new(program, kept))
    }

    /// Restores the elements of kept arrays from their stored chunks, after [`Server::with_restored`].
    pub fn restore_arrays(
        &mut self,
        chunks: &BTreeMap<Vec<u8>, Vec<u8>>,
        switch: &mut dyn SwitchControl,
    ) -> RestoredArrays {
        let mirror = self.committed.as_ref().and_then(|state| self.new_mirror(state.pipeline.program()));
        let Some(mut mirror) = mirror else { return RestoredArrays::default() };
        let report = mirror.restore(chunks, switch.objects_mut(), &mut self.gone_arrays);
        self.mirror = Some(mirror);
        report
    }

    /// Returns the kept arrays' program and all of their chunks; `None` if nothing is kept.
    pub(crate) fn kept_chunks(&self) -> Option<(Arc<Program>, Vec<ArrayChunk>)> {
        let mirror = self.mirror.as_ref()?;
        Some((mirror.program().clone(), mirror.chunks()))
    }

    /// Returns the chunks that a write to the running pipeline changes, and their program.
    pub(crate) fn touched_chunks(&self, request: &v1::WriteRequest) -> Option<(Arc<Program>, Vec<ArrayChunk>)> {
        let (Some(mirror), Some(state), None) = (&self.mirror, &self.committed, &self.saved) else { return None };
        let schema = &state.pipeline.schema;
        let mut chunks = BTreeMap::new();
        for update in &request.updates {
            let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
            for chunk in entity.map(|entity| mirror.touched(entity, schema)).unwrap_or_default() {
                chunks.insert(chunk.place(), chunk);
            }
        }
        Some((mirror.program().clone(), chunks.into_values().collect()))
    }

    /// Records the content of chunks of `program`, for the store.
    pub(crate) fn record_chunks(&mut self, program: &Arc<Program>, content: Vec<(ArrayChunk, Vec<u64>)>) {
        let (Some(mirror), Some(changes)) = (&mut self.mirror, &mut self.changes) else { return };
        if !Arc::ptr_eq(mirror.program(), program) {
            return;
        }
        for (chunk, words) in content {
            mirror.update(chunk, &words, &mut changes.committed.arrays);
        }
    }
}
