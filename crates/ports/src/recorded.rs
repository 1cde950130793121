//! Implements the recording driver: writes the frames of another port to capture files.

use std::fs::File;
use std::io::BufWriter;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use wire::pcap::Writer;

use crate::{Frame, Link, Port, PortError, PortStats, Received, Sent};

/// A port whose frames are also written to two capture files: `NAME_in.pcap` has the received frames, `NAME_out.pcap`
/// those that its driver accepted. Each frame has the time at which it was received or sent here.
///
/// A batch of frames is in the files when [`Port::receive_frames`] or [`Port::flush`] returns, so a reader of the files
/// sees them while the switch runs. A file that can be written no longer ends the port.
pub struct RecordedPort {
    port: Box<dyn Port>,
    input: Recording,
    output: Recording,
}

impl RecordedPort {
    /// Creates the files `NAME_in.pcap` and `NAME_out.pcap` in a directory, for the port's name.
    ///
    /// # Errors
    /// Returns an error if a file cannot be created.
    pub fn create(port: Box<dyn Port>, directory: &Path) -> Result<Self, PortError> {
        let file = |direction: &str| Recording::create(directory.join(format!("{}_{direction}.pcap", port.name())));
        let (input, output) = (file("in")?, file("out")?);
        Ok(RecordedPort { port, input, output })
    }
}

/// A capture file that is being written.
struct Recording {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl Recording {
    fn create(path: PathBuf) -> Result<Self, PortError> {
        let file =
            File::create(&path).map_err(|source| PortError::File { action: "create", path: path.clone(), source })?;
        match Writer::new(BufWriter::with_capacity(1 << 16, file)) {
            Ok(writer) => {
                let mut recording = Recording { path, writer };
                recording.flush()?;
                Ok(recording)
            }
            Err(source) => Err(PortError::Capture { path, source }),
        }
    }

    fn write(&mut self, frame: &[u8]) -> Result<(), PortError> {
        let result = self.writer.write(clock_ns(), frame);
        result.map_err(|source| PortError::Capture { path: self.path.clone(), source })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.writer.flush().map_err(|source| PortError::Capture { path: self.path.clone(), source })
    }
}

/// Returns the time in nanoseconds since 1970.
fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Port for RecordedPort {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn link(&self) -> Option<Link> {
        self.port.link()
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let before = batch.len();
        let result = self.port.receive(batch, max);
        for received in &batch[before..] {
            self.input.write(&received.data)?;
        }
        if batch.len() > before {
            self.input.flush()?;
        }
        result
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        let sent = self.port.send(frame)?;
        if sent == Sent::Sent {
            self.output.write(frame)?;
        }
        Ok(sent)
    }

    fn receive_frames(&mut self, batch: &mut Vec<Frame>, max: usize) -> Result<usize, PortError> {
        let before = batch.len();
        let result = self.port.receive_frames(batch, max);
        for frame in &batch[before..] {
            self.input.write(frame)?;
        }
        if batch.len() > before {
            self.input.flush()?;
        }
        result
    }

    fn send_frame(&mut self, frame: Frame) -> Result<Sent, PortError> {
        // The driver may take the frame's memory away.
        let bytes = frame.to_vec();
        let sent = self.port.send_frame(frame)?;
        if sent == Sent::Sent {
            self.output.write(&bytes)?;
        }
        Ok(sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.port.flush()?;
        self.output.flush()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.port.poll_fd()
    }

    fn stats(&self) -> PortStats {
        self.port.stats()
    }

    fn counted(&self) -> PortStats {
        self.port.counted()
    }

    fn check(&mut self) -> Result<(), PortError> {
        self.port.check()
    }

    fn finished(&self) -> bool {
        self.port.finished()
    }

    fn note(&self) -> Option<&str> {
        self.port.note()
    }

    fn set_time(&mut self, now_ns: u64) {
        self.port.set_time(now_ns);
    }
}
