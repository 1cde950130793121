//! Serves memory to switches on a port: the packet loop around [`rdma::MemoryNode`].
//!
//! ```text
//!   port ── frames ──> MemoryServer: MemoryNode, memory regions ── answers ──> port
//! ```
//!
//! The server has Ethernet and IP addresses that are not configured in the kernel, so the kernel ignores frames to
//! them. The crate knows nothing of tables and of P4.

#![forbid(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::{Frame, HugeBytes, Port, PortError, Sent};
use rdma::{FrameSink, MAX_BATCH, MemoryNode, MemoryNodeConfig, NumberSource};
use switch::Time;

/// Maximum time between two tests of the flag that stops the server.
const WAIT: Duration = Duration::from_millis(100);

/// The reason why a server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A system call.
    #[error("cannot wait for frames: {0}")]
    Wait(io::Error),
}

/// A memory server on a port.
pub struct MemoryServer {
    port: Box<dyn Port>,
    node: MemoryNode<HugeBytes>,
    random: Box<dyn NumberSource>,
    started: Instant,
}

/// Sends frames on a port. A frame without room is lost, and the switch repeats its request.
struct PortSink<'a> {
    port: &'a mut dyn Port,
    lent: Vec<u8>,
    error: Option<PortError>,
}

impl FrameSink for PortSink<'_> {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.lent.resize(len, 0);
        Some(&mut self.lent)
    }

    fn commit(&mut self, len: usize) {
        match self.port.send(&self.lent[..len]) {
            Ok(Sent::Sent | Sent::Dropped(_)) => {}
            Err(error) => self.error = Some(error),
        }
    }
}

impl MemoryServer {
    /// Creates a server that lends nothing yet. Its keys come from a cryptographic generator. It lends huge pages as
    /// far as the kernel has them.
    pub fn new(port: Box<dyn Port>, config: MemoryNodeConfig, random: Box<dyn NumberSource>) -> MemoryServer {
        let node = MemoryNode::with_memory(config, |bytes| HugeBytes::new(bytes).ok());
        MemoryServer { port, node, random, started: Instant::now() }
    }

    /// Returns the name of the port.
    pub fn port(&self) -> &str {
        self.port.name()
    }

    /// Returns the server's state.
    pub fn node(&self) -> &MemoryNode<HugeBytes> {
        &self.node
    }

    /// Serves until the flag is set.
    ///
    /// # Errors
    /// If the port is lost, or a system call fails.
    pub fn serve(&mut self, stop: &AtomicBool) -> Result<(), ServeError> {
        let mut batch: Vec<Frame> = Vec::with_capacity(MAX_BATCH);
        while !stop.load(Ordering::Relaxed) {
            batch.clear();
            if self.port.receive_frames(&mut batch, MAX_BATCH)? == 0 {
                if let Some(descriptor) = self.port.poll_fd() {
                    ports::wait(&[descriptor], WAIT).map_err(ServeError::Wait)?;
                }
                self.port.check()?;
                continue;
            }
            let now = Time::from_ns(self.started.elapsed().as_nanos() as u64);
            let mut sink = PortSink { port: &mut *self.port, lent: Vec::new(), error: None };
            for frames in batch.chunks(MAX_BATCH) {
                let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
                self.node.on_frames(now, &mut *self.random, &frames, &mut sink);
            }
            if let Some(error) = sink.error {
                return Err(error.into());
            }
            self.port.flush()?;
        }
        Ok(())
    }
}
