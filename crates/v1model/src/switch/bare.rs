//! Runs the machine code of a program without the switch around it, to measure what the switch adds.

use engine::Now;
use switch::{FrameMut, PortId, Time};

use super::Switch;
use super::state::unit;

impl Switch {
    /// Runs the machine code for the whole pipeline, and nothing else, on frames in batches of up to 32: no queues, no
    /// counters of the switch, no copies, and nothing leaves. Packets that need the switch end there. Returns the
    /// number of packets that were deparsed; `None` if the program is interpreted.
    ///
    /// The frames hold unspecified bytes afterwards. State of the program (registers, counters) changes.
    pub fn run_code_alone<L: FrameMut>(&mut self, now: Time, port: PortId, frames: &mut [L]) -> Option<usize> {
        let machine = self.machine.clone()?;
        let mut lent = self.in_place.take()?;
        let standard = self.layout.standard;
        let (at, mut left) = (Now { ns: now.as_ns() }, 0);
        for frames in frames.chunks_mut(jit::BATCH) {
            let mut batch = machine.compiled.batch(unit::WHOLE, &mut lent.packet);
            batch.set_slot_to(standard.ingress_port, u64::from(port.0));
            if let Some(slot) = standard.ingress_global_timestamp {
                batch.set_slot_to(slot, now.as_us());
            }
            batch.extend(frames.iter_mut().map(FrameMut::headroom));
            let mut next = 0;
            while next < batch.len() {
                let jit::Progress { done, stopped } = batch.run(&mut self.objects, at);
                next = done.end + usize::from(stopped);
                left += batch.finished_all(done).filter(|ended| ended.output_start().is_some()).count();
            }
        }
        // Nothing leaves, so nothing depends on a write.
        self.objects.take_inline_dependencies(&mut Vec::new());
        self.in_place = Some(lent);
        Some(left)
    }
}
