//! Paces datagrams at a rate.

use switch::Time;

/// The bytes that a flow may send at its rate, up to a time.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    credit: f64,
    counted: Time,
}

impl Pacer {
    /// Creates the pacer of a flow that begins at a time.
    pub fn new(start: Time) -> Pacer {
        Pacer { credit: 0.0, counted: start }
    }

    /// Forgets the time before `now`, in which the flow could not send.
    pub fn skip(&mut self, now: Time) {
        self.counted = now;
    }

    /// Adds what a rate in bytes a second allows since the last call, up to two frames: a sender that could not send
    /// does not catch up.
    pub fn earn(&mut self, now: Time, rate: f64, frame: f64) {
        let passed_ns = now.since_ns(self.counted) as f64;
        *self = Pacer { credit: (self.credit + rate * passed_ns / 1e9).min(2.0 * frame), counted: now };
    }

    /// Takes the bytes of a frame. Returns false and takes nothing if there are fewer.
    pub fn take(&mut self, frame: f64) -> bool {
        let is_allowed = self.credit >= frame;
        if is_allowed {
            self.credit -= frame;
        }
        is_allowed
    }

    /// Takes bytes of other packets, which the following frames make up for, up to a debt.
    pub fn owe(&mut self, bytes: f64, max_debt: f64) {
        self.credit = (self.credit - bytes).max(-max_debt);
    }

    /// Returns the time at which the rate allows a frame, a microsecond from now at least; `None` below a byte a
    /// second.
    pub fn next(&self, now: Time, rate: f64, frame: f64) -> Option<Time> {
        let wait_ns = ((frame - self.credit).max(0.0) / rate * 1e9).ceil() as u64;
        (rate >= 1.0).then(|| now.after_ns(wait_ns.max(1_000)))
    }
}
