//! Sends probe frames with arbitrary contents, and reads values from them where they arrive.

use std::any::Any;

use switch::Time;

use super::measure::{Measured, Measurement};
use crate::sim::{App, Io};

/// Maximum number of frames that are sent at one moment.
const MAX_AT_ONCE: usize = 256;

/// Sends the same frame repeatedly.
pub struct ProbeSender {
    frame: Vec<u8>,
    interval_ns: u64,
    left: u64,
    next: Time,
    stop: Time,
    /// Frames sent.
    pub sent: u64,
}

impl ProbeSender {
    /// Creates a sender of `count` frames, one every `interval_ns` nanoseconds, from `start` until `stop`.
    pub fn new(frame: Vec<u8>, count: u64, interval_ns: u64, start: Time, stop: Time) -> ProbeSender {
        ProbeSender { frame, interval_ns: interval_ns.max(1), left: count, next: start, stop, sent: 0 }
    }
}

impl App for ProbeSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        while self.left > 0 && self.next < self.stop {
            // A clock that was set forward makes many frames due at once; they leave in batches.
            if self.next > io.now || io.raw.len() >= MAX_AT_ONCE {
                return Some(self.next);
            }
            io.raw.push(self.frame.clone());
            self.left -= 1;
            self.sent += 1;
            self.next = self.next.after_ns(self.interval_ns);
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Bytes of a frame that hold a big-endian number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset of the first byte from the beginning of the frame.
    pub at: usize,
    /// Number of bytes: 1 to 8.
    pub bytes: usize,
}

/// A value that is read from a frame: a field, divided by another if there is one, times `scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its name.
    pub name: String,
    /// The field.
    pub field: Field,
    /// The divisor. Where it is 0, there is no value.
    pub over: Option<Field>,
    /// The factor.
    pub scale: f64,
}

impl Field {
    /// Returns the number; `None` if the frame is too short.
    fn of(self, frame: &[u8]) -> Option<u64> {
        let bytes = frame.get(self.at..)?.get(..self.bytes)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl Reading {
    /// Returns the value; `None` if the frame has none.
    pub fn of(&self, frame: &[u8]) -> Option<f64> {
        let value = self.field.of(frame)? as f64 * self.scale;
        let value = match self.over {
            None => Some(value),
            Some(over) => over.of(frame).filter(|over| *over > 0).map(|over| value / over as f64),
        };
        value.filter(|value| value.is_finite())
    }
}

/// Receives the frames of one EtherType and reads values from them.
pub struct ProbeSink {
    ethertype: u16,
    readings: Vec<Reading>,
    /// The values of each reading, in the order of the readings, each with its time.
    pub read: Vec<Vec<(Time, f64)>>,
    measured: Measured,
}

/// Maximum number of values kept for one reading.
const MAX_VALUES: usize = 1_000_000;

impl ProbeSink {
    /// Creates a sink that reads from frames of this EtherType.
    pub fn new(ethertype: u16, readings: Vec<Reading>) -> ProbeSink {
        let read = vec![Vec::new(); readings.len()];
        ProbeSink { ethertype, readings, read, measured: Measured::default() }
    }
}

impl App for ProbeSink {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        for frame in io.frames.iter().filter(|frame| frame.get(12..14) == Some(&self.ethertype.to_be_bytes())) {
            self.measured.received += 1;
            self.measured.arrived(io.true_now, frame.len() as u64);
            for (reading, read) in self.readings.iter().zip(&mut self.read) {
                read.extend(reading.of(frame).filter(|_| read.len() < MAX_VALUES).map(|value| (io.true_now, value)));
            }
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for ProbeSink {
    fn measured(&self) -> &Measured {
        &self.measured
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Reading};

    #[test]
    fn values_are_read_where_there_are_any() {
        let reading = |over| Reading { name: "load".to_owned(), field: Field { at: 1, bytes: 2 }, over, scale: 10.0 };
        assert_eq!(reading(None).of(&[9, 1, 2]), Some(2580.0));
        assert_eq!(reading(None).of(&[9, 1]), None);
        let over = Some(Field { at: 3, bytes: 1 });
        assert_eq!(reading(over).of(&[9, 1, 2, 5]), Some(516.0));
        assert_eq!(reading(over).of(&[9, 1, 2, 0]), None);
    }
}
