//! Asking the process that holds a network, as one who will not wait for ever.

use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde_json::Value;

use super::protocol::{Answer, Request};
use super::room::Room;
use crate::output::Failure;

/// How often it is looked whether there is still somebody who can answer.
const LOOK: Duration = Duration::from_millis(200);

/// How long an answer may take. A switch that starts may have to compile its program, and whoever asks next waits for that.
const PATIENCE: Duration = Duration::from_secs(70);

/// Asks something.
pub fn ask(room: &Room, request: &Request) -> Result<Value, Failure> {
    converse(room, request).map(|(answer, _)| answer)
}

/// Asks something, and returns the answer and what comes behind it.
pub fn converse(room: &Room, request: &Request) -> Result<(Value, BufReader<UnixStream>), Failure> {
    let stream = room.connect(request)?;
    stream.set_read_timeout(Some(LOOK)).context("cannot wait for the lab")?;
    let mut reader = BufReader::new(stream);
    let mut answer = Vec::new();
    let asked = Instant::now();
    loop {
        match reader.read_until(b'\n', &mut answer) {
            Ok(_) => break,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(anyhow::Error::from(error).context("the lab does not answer").into()),
        }
        room.expect_answer()?;
        if asked.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(anyhow!("the lab `{}` has not answered for {seconds} s", room.name).into());
        }
    }
    reader.get_ref().set_read_timeout(None).context("cannot wait for the lab")?;
    let answer = Answer::read(&String::from_utf8_lossy(&answer))?;
    Ok((answer, reader))
}
