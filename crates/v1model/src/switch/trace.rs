//! Traces single frames.

use switch::trace::{Recorder, Trace, Tracer};
use switch::{Frame, Time};

use super::Switch;

impl Switch {
    /// Processes one frame like [`switch::Device::step`] and returns its trace. Frames that leave the switch are
    /// appended to `output`; packets that wait in a queue leave the trace there. Other packets are not recorded, and
    /// cost what they always do.
    pub fn trace(&mut self, now: Time, frame: Frame, output: &mut Vec<Frame>) -> Trace {
        self.objects.advance_clock(now.as_ns());
        self.sweep_idle(now);
        self.drive(now, output, &mut ());
        self.trace_number += 1;
        let mut tracer = Tracer::new(now, &frame);
        self.receive(now, frame, &mut tracer);
        self.drive(now, output, &mut tracer);
        // Waiting packets do not belong to this trace any more.
        self.trace_number += 1;
        tracer.finish()
    }

    /// Processes frames like [`switch::Device::step`] and reports to a recorder; they are interpreted.
    pub fn step_recorded<R: Recorder>(
        &mut self,
        now: Time,
        input: &mut Vec<Frame>,
        output: &mut Vec<Frame>,
        recorder: &mut R,
    ) {
        self.objects.advance_clock(now.as_ns());
        self.sweep_idle(now);
        self.drive(now, output, &mut ());
        self.trace_number += 1;
        for frame in input.drain(..) {
            self.receive(now, frame, recorder);
            self.drive(now, output, recorder);
        }
        self.trace_number += 1;
    }
}
