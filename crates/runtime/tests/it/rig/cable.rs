//! A port that is one end of a pair of datagram sockets.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use ports::{DropReason, Port, PortError, PortStats, Received, Sent};

/// The switch's end.
pub struct MemoryPort {
    socket: UnixDatagram,
    stats: PortStats,
}

/// The other end.
pub struct Cable(UnixDatagram);

/// Returns both ends of a cable. A port whose cable is dropped is lost.
pub fn cable() -> (MemoryPort, Cable) {
    let (port, cable) = UnixDatagram::pair().expect("there are descriptors");
    port.set_nonblocking(true).expect("a socket can be set up");
    cable.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket can be set up");
    (MemoryPort { socket: port, stats: PortStats::default() }, Cable(cable))
}

impl Cable {
    pub fn send(&self, frame: &[u8]) {
        self.0.send(frame).expect("the port is there");
    }

    /// Returns the next frame, or `None` if none comes within 60 s.
    pub fn receive(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        let len = self.0.recv(&mut buffer).ok()?;
        Some(buffer[..len].to_vec())
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        !ports::wait(&[self.0.as_raw_fd()], Duration::ZERO).expect("there is memory")
    }
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        "memory"
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let mut buffer = [0; 2048];
        for count in 0..max {
            match self.socket.recv(&mut buffer) {
                // A pair whose other end is closed reports an error when sending; here it only stays silent.
                Ok(len) => {
                    self.stats.rx_packets += 1;
                    self.stats.rx_bytes += len as u64;
                    batch.push(Received { data: buffer[..len].to_vec(), time_ns: None });
                }
                Err(_) => return Ok(count),
            }
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        match self.socket.send(frame) {
            Ok(_) => {
                self.stats.tx_packets += 1;
                self.stats.tx_bytes += frame.len() as u64;
                Ok(Sent::Sent)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                self.stats.tx_queue_full += 1;
                self.stats.tx_dropped_bytes += frame.len() as u64;
                Ok(Sent::Dropped(DropReason::QueueFull))
            }
            Err(_) => Err(PortError::Vanished { interface: "memory".to_owned() }),
        }
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}
