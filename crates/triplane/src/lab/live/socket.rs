//! Answering over a socket in the file system.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde_json::Value;
use wire::pcap;

use super::protocol::{Answer, Request};
use super::station::{Done, Order};
use crate::output::Failure;

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 4096;

/// Frames that wait for the reader of a capture.
const CAPTURED: usize = 4096;

/// How often somebody who listens looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);

/// How long a switch may take to do what it is told, or to say how it is.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long somebody who connected may take to say what he wants.
const ASKING: Duration = Duration::from_secs(1);

/// What becomes of a request.
pub enum Reply {
    /// It is answered.
    Answer(Result<Value, String>),
    /// Somebody else has taken the stream and answers.
    Elsewhere,
}

/// Listens at a path.
pub fn listen(path: &Path) -> Result<UnixListener, Failure> {
    let listener = UnixListener::bind(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    listener.set_nonblocking(true).context("cannot listen")?;
    Ok(listener)
}

/// Answers requests until one asks for the end, or `ended` says so.
pub fn serve(
    listener: &UnixListener,
    mut ended: impl FnMut() -> bool,
    mut answer: impl FnMut(&Request, &UnixStream) -> Reply,
) -> Result<(), Failure> {
    while !ended() {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                std::thread::sleep(LOOK);
                continue;
            }
            Err(error) => return Err(anyhow::Error::from(error).context("cannot listen any more").into()),
        };
        // Someone who connects and says nothing holds nobody up for long.
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(ASKING));
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let mut line = String::new();
        if BufReader::new((&stream).take(MAX_REQUEST)).read_line(&mut line).is_err() {
            continue;
        }
        let (result, last) = match serde_json::from_str(&line) {
            Ok(Request::Down) => (Ok(Value::Null), true),
            Ok(request) => match answer(&request, &stream) {
                Reply::Answer(result) => (result, false),
                Reply::Elsewhere => continue,
            },
            Err(error) => (Err(format!("this is no request: {error}")), false),
        };
        say(&stream, result);
        if last {
            break;
        }
    }
    Ok(())
}

/// Writes an answer. Whoever asked may be gone.
pub fn say(mut stream: &UnixStream, result: Result<Value, String>) -> bool {
    let answer = result.map_or_else(Answer::Refused, Answer::Done);
    stream.write_all(answer.line().as_bytes()).is_ok()
}

/// Gives a switch an order and waits until it has been carried out.
pub fn carried_out(orders: &Sender<Order>, order: impl FnOnce(Done) -> Order) -> Result<(), String> {
    let (done, answer) = channel();
    orders.send(order(done)).map_err(|_| "the switch has ended".to_owned())?;
    answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Err("the switch does not answer".to_owned()))
}

/// Sends a capture of a port until the reader is gone. `start` is when the switch's time began.
pub fn capture(orders: &Sender<Order>, port: u32, start: Instant, stream: UnixStream) {
    let (to, frames) = sync_channel(CAPTURED);
    let ordered = carried_out(orders, |done| Order::Capture { port, to, done });
    let failed = ordered.is_err();
    if !say(&stream, ordered.map(|()| Value::Null)) || failed {
        return;
    }
    let Ok(mut writer) = pcap::Writer::new(stream) else { return };
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = (began.as_nanos() as u64).saturating_sub(start.elapsed().as_nanos() as u64);
    // The header goes out at once, so that whoever reads knows what comes.
    let _ = writer.flush();
    while let Ok((now, frame)) = frames.recv() {
        if writer.write(began + now, &frame).and_then(|()| writer.flush()).is_err() {
            return;
        }
    }
}
