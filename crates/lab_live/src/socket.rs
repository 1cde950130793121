//! Serves requests on a Unix domain socket.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use wire::pcap;

use crate::LabError;
use crate::error::failed_to;
use crate::protocol::{LabRequest, LabResponse};
use crate::request_error::RequestError;
use crate::switch_thread::{Completion, SwitchCommand};

/// Maximum size of a request, in bytes.
const MAX_REQUEST: u64 = 4096;

/// Maximum number of frames that wait for the reader of a capture.
const MAX_WAITING_FRAMES: usize = 4096;

/// Interval at which a listener checks whether it should end.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time in which a switch carries out a command.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time between a connection and its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a request.
pub enum RequestOutcome {
    /// The response.
    Response(Result<Value, RequestError>),
    /// Another thread took the stream and sends the response.
    Taken,
}

/// Listens at a path.
pub fn listen(path: &Path) -> Result<UnixListener, LabError> {
    let listener = UnixListener::bind(path).map_err(failed_to(format!("listen on {}", path.display())))?;
    listener.set_nonblocking(true).map_err(failed_to("listen"))?;
    Ok(listener)
}

/// Serves requests until one of them is [`LabRequest::Down`] or `ended` returns true.
pub fn serve(
    listener: &UnixListener,
    mut ended: impl FnMut() -> bool,
    mut handle: impl FnMut(&LabRequest, &UnixStream) -> RequestOutcome,
) -> Result<(), LabError> {
    while !ended() {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                std::thread::sleep(ACCEPT_INTERVAL);
                continue;
            }
            Err(error) => return Err(failed_to("continue to listen")(error)),
        };
        // A client that sends nothing must not delay the others for long.
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(REQUEST_TIMEOUT));
        let _ = stream.set_write_timeout(Some(COMMAND_TIMEOUT));
        let mut line = String::new();
        if BufReader::new((&stream).take(MAX_REQUEST)).read_line(&mut line).is_err() {
            continue;
        }
        let (result, last) = match serde_json::from_str(&line) {
            Ok(LabRequest::Down) => (Ok(Value::Null), true),
            Ok(request) => match handle(&request, &stream) {
                RequestOutcome::Response(result) => (result, false),
                RequestOutcome::Taken => continue,
            },
            Err(error) => (Err(RequestError::NotARequest(error.to_string())), false),
        };
        respond(&stream, result);
        if last {
            break;
        }
    }
    Ok(())
}

/// Sends a response. Returns false if the client is gone.
pub fn respond(mut stream: &UnixStream, result: Result<Value, RequestError>) -> bool {
    let response = result.map_or_else(LabResponse::Refused, LabResponse::Done);
    stream.write_all(response.line().as_bytes()).is_ok()
}

/// Sends a command to a switch and waits until it has been carried out.
pub fn carry_out(
    (name, commands): (&str, &Sender<SwitchCommand>),
    command: impl FnOnce(Completion) -> SwitchCommand,
) -> Result<(), RequestError> {
    let (done, outcome) = channel();
    commands.send(command(done)).map_err(|_| RequestError::SwitchEnded(name.to_owned()))?;
    outcome.recv_timeout(COMMAND_TIMEOUT).unwrap_or_else(|_| Err(RequestError::Timeout(name.to_owned())))
}

/// Sends a capture of a switch's port until the reader is gone. `start` is the start of the switch's time.
pub fn capture(switch: (&str, &Sender<SwitchCommand>), port: u32, start: Instant, stream: UnixStream) {
    let (to, frames) = sync_channel(MAX_WAITING_FRAMES);
    let accepted = carry_out(switch, |done| SwitchCommand::Capture { port, to, done });
    let failed = accepted.is_err();
    if !respond(&stream, accepted.map(|()| Value::Null)) || failed {
        return;
    }
    let Ok(mut writer) = pcap::Writer::new(stream) else { return };
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = (began.as_nanos() as u64).saturating_sub(start.elapsed().as_nanos() as u64);
    // The header is sent at once, so that the reader can recognise the format.
    let _ = writer.flush();
    while let Ok((now, frame)) = frames.recv() {
        if writer.write(began + now, &frame).and_then(|()| writer.flush()).is_err() {
            return;
        }
    }
}
