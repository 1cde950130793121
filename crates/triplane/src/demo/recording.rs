//! Wraps a port and records the first frames that pass through it.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use ports::{Link, Port, PortError, PortStats, Received, Sent};

/// Maximum number of frames recorded over all ports.
const MAX_RECORDED: usize = 400;

/// A recorded frame.
#[derive(Clone)]
pub struct RecordedFrame {
    /// The switch's port.
    pub port: u32,
    /// Whether the frame was received by the switch.
    pub inward: bool,
    /// The frame.
    pub data: Vec<u8>,
}

/// The frames that several ports recorded, in order.
#[derive(Clone, Default)]
pub struct RecordedFrames(Arc<Mutex<Vec<RecordedFrame>>>);

impl RecordedFrames {
    fn add(&self, port: u32, inward: bool, data: &[u8]) {
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if frames.len() < MAX_RECORDED {
            frames.push(RecordedFrame { port, inward, data: data.to_vec() });
        }
    }

    /// Returns the recorded frames.
    pub fn frames(&self) -> Vec<RecordedFrame> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A port driver with a recorder of its frames.
pub struct RecordingPort {
    /// The driver.
    pub driver: Box<dyn Port>,
    /// The switch's port.
    pub port: u32,
    /// The recorder.
    pub memory: RecordedFrames,
}

impl Port for RecordingPort {
    fn name(&self) -> &str {
        self.driver.name()
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let before = batch.len();
        let received = self.driver.receive(batch, max)?;
        for frame in &batch[before..] {
            self.memory.add(self.port, true, &frame.data);
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        self.memory.add(self.port, false, frame);
        self.driver.send(frame)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.driver.flush()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.driver.poll_fd()
    }

    fn stats(&self) -> PortStats {
        self.driver.stats()
    }

    fn counted(&self) -> PortStats {
        self.driver.counted()
    }

    fn check(&mut self) -> Result<(), PortError> {
        self.driver.check()
    }

    fn finished(&self) -> bool {
        self.driver.finished()
    }

    fn note(&self) -> Option<&str> {
        self.driver.note()
    }

    fn link(&self) -> Option<Link> {
        self.driver.link()
    }

    fn set_time(&mut self, now_ns: u64) {
        self.driver.set_time(now_ns);
    }
}
