//! Sends requests to the daemon of a lab, with a timeout.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::LabError;
use crate::error::failed_to;
use crate::protocol::{LabRequest, LabResponse};
use crate::run_directory::RunDirectory;

/// Interval at which the daemon's process is checked during a wait.
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum time to a response. A switch that starts may compile its program first, and requests are served in turn.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(70);

/// Sends a request to the daemon of a lab and returns the response.
///
/// # Errors
/// Returns an error if the daemon refuses the request or does not respond.
pub fn request(lab: &RunDirectory, request: &LabRequest) -> Result<Value, LabError> {
    exchange(lab, request).map(|(response, _)| response)
}

/// Sends a request and returns the response and a reader of the bytes after it.
fn exchange(lab: &RunDirectory, request: &LabRequest) -> Result<(Value, BufReader<UnixStream>), LabError> {
    let stream = lab.connect(request, RESPONSE_TIMEOUT)?;
    stream.set_read_timeout(Some(PROCESS_CHECK_INTERVAL)).map_err(failed_to("wait for the lab"))?;
    let mut reader = BufReader::new(stream);
    let mut response = Vec::new();
    let sent = Instant::now();
    loop {
        match reader.read_until(b'\n', &mut response) {
            Ok(_) => break,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed_to("wait for the lab")(error)),
        }
        lab.expect_responsive()?;
        if sent.elapsed() > RESPONSE_TIMEOUT {
            return Err(LabError::ResponseTimeout { name: lab.name.clone(), seconds: RESPONSE_TIMEOUT.as_secs() });
        }
    }
    reader.get_ref().set_read_timeout(None).map_err(failed_to("wait for the lab"))?;
    let response = LabResponse::read(&String::from_utf8_lossy(&response))?;
    Ok((response, reader))
}

/// Passes the state of a lab to a function at an interval, `count` times or, if that is 0, until `stop` is set.
///
/// # Errors
/// Returns an error if the daemon does not respond, and those of the function.
pub fn watch<E: From<LabError>>(
    lab: &RunDirectory,
    (interval, count): (Duration, u64),
    stop: &AtomicBool,
    mut on_status: impl FnMut(Value) -> Result<(), E>,
) -> Result<(), E> {
    let (mut next, mut left) = (Instant::now(), count);
    while !stop.load(Ordering::Relaxed) {
        let wait = next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait.min(PROCESS_CHECK_INTERVAL));
            continue;
        }
        next = Instant::now() + interval;
        on_status(request(lab, &LabRequest::Status)?)?;
        left = left.wrapping_sub(1);
        if left == 0 {
            break;
        }
    }
    Ok(())
}

/// Starts a capture of the frames that pass a port of a switch, `s1:2`.
///
/// # Errors
/// Returns an error if the daemon refuses the request or does not respond.
pub fn capture(lab: &RunDirectory, port: &str) -> Result<PortCapture, LabError> {
    exchange(lab, &LabRequest::Capture { port: port.to_owned() }).map(|(_, reader)| PortCapture(reader))
}

/// A capture that the daemon has accepted.
pub struct PortCapture(BufReader<UnixStream>);

/// The reason that a capture ended before the lab did.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The capture cannot be read from the lab.
    #[error(transparent)]
    Lab(LabError),
    /// The capture cannot be written.
    #[error("cannot write the capture")]
    Write(#[source] io::Error),
}

impl PortCapture {
    /// Writes the capture file to `sink` until the lab ends. Frames are flushed as they come.
    ///
    /// # Errors
    /// Returns an error if the capture cannot be read or written.
    pub fn copy_to(self, sink: &mut dyn Write) -> Result<(), CaptureError> {
        copy(self.0, sink)
    }
}

/// Copies until the end of the source, and flushes after each read.
fn copy(mut source: impl Read, sink: &mut dyn Write) -> Result<(), CaptureError> {
    let mut buffer = [0; 65_536];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let written = sink.write_all(&buffer[..count]).and_then(|()| sink.flush());
                written.map_err(CaptureError::Write)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(CaptureError::Lab(failed_to("read the capture from the lab")(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some bytes, then an interrupted call, more bytes, and an error or the end.
    struct Source {
        reads: Vec<io::Result<Vec<u8>>>,
    }

    impl Read for Source {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.reads.is_empty() {
                return Ok(0);
            }
            let bytes = self.reads.remove(0)?;
            buffer[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }

    fn interrupted() -> io::Result<Vec<u8>> {
        Err(io::Error::from(ErrorKind::Interrupted))
    }

    #[test]
    fn a_capture_ends_with_the_lab() {
        let mut sink = Vec::new();
        copy(Source { reads: vec![Ok(vec![1, 2]), interrupted(), Ok(vec![3])] }, &mut sink).unwrap();
        assert_eq!(sink, [1, 2, 3]);
    }

    #[test]
    fn a_read_error_is_not_the_end_of_a_capture() {
        let mut sink = Vec::new();
        let reset = Err(io::Error::from(ErrorKind::ConnectionReset));
        let copied = copy(Source { reads: vec![Ok(vec![1, 2]), reset] }, &mut sink);
        assert!(matches!(copied, Err(CaptureError::Lab(LabError::System { .. }))), "{copied:?}");
        assert_eq!(sink, [1, 2], "what came before is kept");
    }

    #[test]
    fn a_write_error_is_told_from_a_read_error() {
        let copied = copy(Source { reads: vec![Ok(vec![1, 2])] }, &mut &mut [0; 1][..]);
        assert!(matches!(copied, Err(CaptureError::Write(_))), "{copied:?}");
    }
}
