//! Sends captures: the frames that pass a port of a switch, as a capture file without end.
//!
//! A port may be silent for ever, so writing alone does not show that the reader is gone: captures also watch for the
//! hang-up of its socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use wire::pcap;

use crate::connection::{self, DeadlineStream};
use crate::protocol::LabRequest;
use crate::request_error::{ProcessFailure, RequestError};
use crate::socket;
use crate::switch_thread::SwitchCommand;

/// Maximum number of frames that wait for the reader of a capture.
const MAX_WAITING_FRAMES: usize = 4096;

/// Interval at which a capture of a silent port checks whether its reader is gone.
const HANG_UP_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time in which the process of a switch starts a capture.
pub const START_TIMEOUT: Duration = Duration::from_secs(6);

/// The end of a capture at its switch.
pub struct CaptureSender {
    frames: SyncSender<(u64, Vec<u8>)>,
    is_open: Weak<()>,
}

/// The end of a capture at its reader.
pub struct CaptureReceiver {
    frames: Receiver<(u64, Vec<u8>)>,
    _is_open: Arc<()>,
}

/// Returns the ends of a capture.
pub fn channel() -> (CaptureSender, CaptureReceiver) {
    let ((to, frames), is_open) = (sync_channel(MAX_WAITING_FRAMES), Arc::new(()));
    (CaptureSender { frames: to, is_open: Arc::downgrade(&is_open) }, CaptureReceiver { frames, _is_open: is_open })
}

impl CaptureSender {
    /// Whether the receiver still exists.
    pub fn is_open(&self) -> bool {
        self.is_open.strong_count() > 0
    }

    /// Sends a frame with its time in nanoseconds. A slow reader misses frames.
    pub fn send(&self, now: u64, frame: &[u8]) {
        let _ = self.frames.try_send((now, frame.to_vec()));
    }
}

/// Sends a capture of a switch's port until the reader is gone. `start` is the start of the switch's time.
pub fn run(switch: (&str, &Sender<SwitchCommand>), port: u32, start: Instant, stream: &UnixStream) {
    let (to, receiver) = channel();
    let accepted = socket::carry_out(switch, |done| SwitchCommand::Capture { port, to, done });
    let failed = accepted.is_err();
    if !socket::respond(stream, accepted.map(|()| Value::Null)) || failed {
        return;
    }
    let _ = stream.set_write_timeout(Some(socket::COMMAND_TIMEOUT));
    let Ok(mut writer) = pcap::Writer::new(stream) else { return };
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = (began.as_nanos() as u64).saturating_sub(start.elapsed().as_nanos() as u64);
    // The header is sent at once, so that the reader can recognise the format.
    let _ = writer.flush();
    loop {
        match receiver.frames.recv_timeout(HANG_UP_INTERVAL) {
            Ok((now, frame)) => {
                if writer.write(began + now, &frame).and_then(|()| writer.flush()).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) if !connection::has_hung_up(stream) => {}
            Err(_) => return,
        }
    }
}

/// Forwards a capture from the process of a switch until the reader is gone. The process may take `timeout` to start.
pub fn forward(socket: &Path, port: u32, name: &str, stream: &UnixStream, timeout: Duration) {
    let request = || {
        let process = connection::connect(socket)?;
        DeadlineStream::new(&process, timeout).write_all(LabRequest::CapturePort { port }.line().as_bytes())?;
        let is_read = connection::wait_for_bytes(&process, stream, Some(timeout))?;
        Ok(is_read.then_some(process))
    };
    let mut process = match request() {
        Ok(Some(process)) => process,
        Ok(None) => return,
        Err(error) => {
            let silent = || RequestError::Process { switch: name.to_owned(), failure: ProcessFailure::Silent };
            let crashed = || RequestError::Crashed(name.to_owned());
            socket::respond(stream, Err(if connection::is_timeout(&error) { silent() } else { crashed() }));
            return;
        }
    };
    let _ = stream.set_write_timeout(Some(socket::COMMAND_TIMEOUT));
    let (mut reader, mut buffer) = (stream, [0; 65_536]);
    while let Ok(true) = connection::wait_for_bytes(&process, stream, None) {
        match process.read(&mut buffer) {
            Ok(count @ 1..) if reader.write_all(&buffer[..count]).is_ok() => {}
            // The switch has ended, or the reader is gone or too slow.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::protocol::LabResponse;
    use crate::test_network::{TEST_TIMEOUT, TestDirectory};

    /// Runs `capture` with one end of a stream, whose other end `reader` uses and closes. Returns whether the capture
    /// ends then.
    fn ends(capture: impl FnOnce(&UnixStream) + Send + 'static, reader: impl FnOnce(&UnixStream)) -> bool {
        let (near, far) = UnixStream::pair().unwrap();
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            capture(&near);
            // The test may have failed before.
            let _ = done.send(());
        });
        reader(&far);
        drop(far);
        ended.recv_timeout(TEST_TIMEOUT).is_ok()
    }

    fn response(stream: &UnixStream) -> String {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn a_capture_of_a_silent_port_ends_with_its_reader() {
        let (commands, receiver) = std::sync::mpsc::channel();
        let (kept, sender) = std::sync::mpsc::channel();
        let switch = std::thread::spawn(move || {
            let Ok(SwitchCommand::Capture { to, done, .. }) = receiver.recv() else { panic!("it is a capture") };
            done.send(Ok(())).unwrap();
            kept.send(to).unwrap();
        });
        let capture = move |stream: &UnixStream| run(("s1", &commands), 1, Instant::now(), stream);
        assert!(ends(capture, |stream| assert_eq!(response(stream), LabResponse::Done(Value::Null).line())));
        switch.join().unwrap();
        assert!(!sender.recv().unwrap().is_open());
    }

    #[test]
    fn a_forwarded_capture_of_a_silent_port_ends_with_its_reader() {
        let directory = TestDirectory::new("forward");
        let path = directory.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let capture = move |stream: &UnixStream| forward(&path, 1, "s1", stream, TEST_TIMEOUT);
        let process = std::thread::spawn(move || {
            let (mut process, _) = listener.accept().unwrap();
            let request = response(&process);
            process.write_all(LabResponse::Done(Value::Null).line().as_bytes()).unwrap();
            // Returns when the capture has ended.
            let _ = process.read(&mut [0]);
            request
        });
        assert!(ends(capture, |stream| assert_eq!(response(stream), LabResponse::Done(Value::Null).line())));
        assert_eq!(process.join().unwrap(), LabRequest::CapturePort { port: 1 }.line());
    }

    #[test]
    fn a_process_that_does_not_respond_is_reported() {
        let directory = TestDirectory::new("stopped");
        let path = directory.path("socket");
        // It accepts no connection, like a process that is stopped.
        let _listener = UnixListener::bind(&path).unwrap();
        let capture = move |stream: &UnixStream| forward(&path, 1, "s1", stream, Duration::from_millis(1));
        let silent = RequestError::Process { switch: "s1".to_owned(), failure: ProcessFailure::Silent };
        assert!(ends(capture, |stream| assert_eq!(response(stream), LabResponse::Refused(silent).line())));
    }
}
