//! Implements the capture-file driver: reads frames from one file and writes frames to another.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind};
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use wire::pcap::{MAX_FRAME, Reader, Writer};

use crate::{DropReason, Port, PortError, PortStats, Received, Sent};

/// A port that reads frames from a capture file, as fast as they are requested, and writes frames to another one.
///
/// Frames are written with the time of the most recent [`Port::set_time`] or received frame, so a run from files to
/// files is reproducible to the byte; without either, with the current time.
pub struct PcapPort {
    name: String,
    input: Option<(PathBuf, Reader<BufReader<File>>)>,
    output: Option<(PathBuf, Writer<BufWriter<File>>)>,
    now_ns: Option<u64>,
    stats: PortStats,
}

impl PcapPort {
    /// Opens `input` (pcap or pcapng with Ethernet frames) and creates `output` (nanosecond-resolution pcap). Without
    /// an input, no frame ever arrives and the port is finished from the start; without an output, frames are counted
    /// as sent and discarded.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened or created, the input is not a capture of Ethernet frames, or both
    /// are the same file.
    pub fn open(input: Option<&Path>, output: Option<&Path>) -> Result<Self, PortError> {
        let display = |path: Option<&Path>| path.map_or(String::new(), |path| path.display().to_string());
        let name = format!("{}:{}", display(input), display(output));
        if let (Some(input), Some(output)) = (input, output)
            && is_same_file(input, output)
        {
            return Err(PortError::SameFile { path: output.to_owned() });
        }
        let input = input.map(|path| -> Result<_, PortError> {
            let file = File::open(path).map_err(|source| file_error("open", path, source))?;
            let reader = Reader::new(BufReader::with_capacity(1 << 16, file))
                .map_err(|source| PortError::Capture { path: path.to_owned(), source })?;
            Ok((path.to_owned(), reader))
        });
        let input = input.transpose()?;
        let output = output.map(|path| -> Result<_, PortError> {
            let file = File::create(path).map_err(|source| file_error("create", path, source))?;
            let writer = Writer::new(BufWriter::with_capacity(1 << 16, file))
                .map_err(|source| PortError::Capture { path: path.to_owned(), source })?;
            Ok((path.to_owned(), writer))
        });
        let output = output.transpose()?;
        Ok(PcapPort { name, input, output, now_ns: None, stats: PortStats::default() })
    }
}

fn file_error(action: &'static str, path: &Path, source: std::io::Error) -> PortError {
    PortError::File { action, path: path.to_owned(), source }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        // Compared by inode, since a file may have several names. Devices such as /dev/null may legitimately be both.
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Port for PcapPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let Some((path, reader)) = &mut self.input else { return Ok(0) };
        for count in 0..max {
            match reader.read() {
                Ok(Some(frame)) => {
                    self.stats.rx_packets += 1;
                    self.stats.rx_bytes += frame.data.len() as u64;
                    self.stats.rx_truncated += u64::from(frame.is_truncated());
                    self.now_ns = Some(frame.time_ns);
                    batch.push(Received { data: frame.data, time_ns: Some(frame.time_ns) });
                }
                Ok(None) => {
                    self.input = None;
                    return Ok(count);
                }
                Err(source) => {
                    let path = path.clone();
                    self.input = None;
                    return Err(PortError::Capture { path, source });
                }
            }
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        if frame.len() > MAX_FRAME as usize {
            self.stats.count_dropped(DropReason::BadLength, 1, frame.len());
            return Ok(Sent::Dropped(DropReason::BadLength));
        }
        if let Some((path, writer)) = &mut self.output {
            writer
                .write(self.now_ns.unwrap_or_else(clock_ns), frame)
                .map_err(|source| PortError::Capture { path: path.clone(), source })?;
        }
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += frame.len() as u64;
        Ok(Sent::Sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        let Some((path, writer)) = &mut self.output else { return Ok(()) };
        match writer.flush() {
            // A reader that closes its pipe early (`triplane ... | head`) is not an error of the port.
            Err(wire::pcap::PcapError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(|source| PortError::Capture { path: path.clone(), source }),
        }
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn finished(&self) -> bool {
        self.input.is_none()
    }

    fn set_time(&mut self, now_ns: u64) {
        self.now_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary directory of this test, removed at the end.
    struct TempDir(PathBuf);

    impl TempDir {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ports-pcap-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            TempDir(path)
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn capture(path: &Path, frames: &[(u64, usize)]) {
        let mut writer = Writer::new(File::create(path).unwrap()).unwrap();
        for (time_ns, len) in frames {
            writer.write(*time_ns, &vec![1; *len]).unwrap();
        }
    }

    #[test]
    fn frames_pass_from_file_to_file_with_their_times() {
        let dir = TempDir::new("pass");
        let (input, output) = (dir.0.join("in.pcap"), dir.0.join("out.pcap"));
        capture(&input, &[(5, 60), (6, 61), (7, 62)]);
        let mut port = PcapPort::open(Some(&input), Some(&output)).unwrap();
        let mut batch = Vec::new();
        assert_eq!(port.receive(&mut batch, 2).unwrap(), 2);
        assert!(!port.finished());
        for frame in &batch {
            port.set_time(frame.time_ns.unwrap());
            assert_eq!(port.send(&frame.data).unwrap(), Sent::Sent);
        }
        assert_eq!(port.receive(&mut batch, 9).unwrap(), 1);
        assert_eq!(port.send(&batch[2].data).unwrap(), Sent::Sent);
        assert_eq!(port.receive(&mut batch, 9).unwrap(), 0);
        assert!(port.finished());
        port.flush().unwrap();
        assert_eq!(std::fs::read(&input).unwrap(), std::fs::read(&output).unwrap());
        assert_eq!((port.stats().rx_packets, port.stats().tx_bytes), (3, 183));
    }

    #[test]
    fn either_file_is_optional() {
        let mut port = PcapPort::open(None, None).unwrap();
        assert!(port.finished());
        assert_eq!(port.send(&[0; 60]).unwrap(), Sent::Sent);
        assert_eq!(port.send(&vec![0; 1 << 20]).unwrap(), Sent::Dropped(DropReason::BadLength));
        assert_eq!((port.stats().tx_packets, port.stats().tx_dropped()), (1, 1));
    }

    #[test]
    fn a_file_that_is_both_input_and_output_is_not_overwritten() {
        let dir = TempDir::new("same");
        let path = dir.0.join("both.pcap");
        capture(&path, &[(1, 60)]);
        let error = PcapPort::open(Some(&path), Some(&path)).err().unwrap();
        assert!(error.to_string().contains("both input and output"), "{error}");
        let name = dir.0.join("name.pcap");
        std::fs::hard_link(&path, &name).unwrap();
        assert!(matches!(PcapPort::open(Some(&path), Some(&name)), Err(PortError::SameFile { .. })));
        assert!(std::fs::metadata(&path).unwrap().len() > 24);
    }

    #[test]
    fn a_truncated_capture_is_an_error_that_names_the_file_and_finishes_the_port() {
        let dir = TempDir::new("damaged");
        let path = dir.0.join("cut.pcap");
        capture(&path, &[(1, 60), (2, 60)]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let mut port = PcapPort::open(Some(&path), None).unwrap();
        let mut batch = Vec::new();
        let error = port.receive(&mut batch, 10).unwrap_err().to_string();
        assert!(error.contains("cut.pcap") && error.contains("packet 2"), "{error}");
        assert_eq!((batch.len(), port.finished()), (1, true));
    }
}
