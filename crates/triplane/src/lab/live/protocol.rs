//! What is said over the holder's socket: a line of JSON, answered by a line of JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::Failure;

/// What can be asked of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Request {
    /// How it is.
    Status,
    /// A switch crashes, or starts again.
    Fail {
        /// Its name.
        switch: String,
        /// Whether it crashes.
        failed: bool,
    },
    /// A link goes down or up.
    Link {
        /// One end's host or switch.
        one: String,
        /// The other end's.
        other: String,
        /// Whether it goes up.
        up: bool,
    },
    /// The link at a switch's port goes down or up.
    End {
        /// The switch.
        switch: String,
        /// The port.
        port: u32,
        /// Whether it goes up.
        up: bool,
    },
    /// A host needs so long for each frame that it receives.
    SlowHost {
        /// The host.
        host: String,
        /// Nanoseconds; 0 for no time.
        by_ns: u64,
    },
    /// What a port of a switch was told; said to the process of that switch.
    Port {
        /// The port.
        port: u32,
        /// Whether its link is up.
        up: bool,
    },
    /// How long the host at a port needs for each frame; said to the process of the port's switch.
    Slow {
        /// The port.
        port: u32,
        /// Nanoseconds; 0 for no time.
        by_ns: u64,
    },
    /// What passes a port; said to the process of its switch.
    CapturePort {
        /// The port.
        port: u32,
    },
    /// What passes a switch's port, `s1:2`; the answer is followed by a capture file without end.
    Capture {
        /// The port.
        port: String,
    },
    /// The end.
    Down,
}

impl Request {
    /// The line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("requests can be written") + "\n"
    }
}

/// What the holder says to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Done(Value),
    /// Why it was not.
    Refused(String),
}

impl Answer {
    /// Reads a line.
    pub fn read(line: &str) -> Result<Value, Failure> {
        match serde_json::from_str(line) {
            Ok(Answer::Done(value)) => Ok(value),
            Ok(Answer::Refused(why)) => Err(Failure::Usage(why)),
            Err(_) => Err(anyhow::anyhow!("the process that holds the lab gave no answer; it may be gone").into()),
        }
    }

    /// The line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("answers can be written") + "\n"
    }
}
