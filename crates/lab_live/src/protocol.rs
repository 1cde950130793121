//! Defines the protocol between the command, the daemon and the processes of switches: a request is one line of JSON,
//! and so is its response.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::LabError;
use crate::request_error::RequestError;

/// A request to the daemon or to the process of a switch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum LabRequest {
    /// Returns the state of all switches and hosts; from the process of a switch, the state of that switch.
    Status,
    /// Crashes or restarts a switch, a store, or the operator of the stores.
    Fail {
        /// Name of the node.
        node: String,
        /// Whether it crashes.
        failed: bool,
    },
    /// Suspends the process of a switch, a store, or the operator of the stores, or lets it continue.
    Suspend {
        /// Name of the node.
        node: String,
        /// Whether it is suspended.
        is_suspended: bool,
    },
    /// Takes all links between two nodes up or down.
    Link {
        /// Host or switch at one end.
        one: String,
        /// Host or switch at the other end.
        other: String,
        /// Whether the links go up.
        up: bool,
    },
    /// Takes the link at a switch's port up or down.
    End {
        /// Name of the switch.
        switch: String,
        /// Port number.
        port: u32,
        /// Whether the link goes up.
        up: bool,
    },
    /// Sets the service time of a host.
    SlowHost {
        /// Name of the host.
        host: String,
        /// Nanoseconds per received frame; 0 for none.
        by_ns: u64,
    },
    /// Takes the link at a port up or down. Only for the process of the switch.
    Port {
        /// Port number.
        port: u32,
        /// Whether the link goes up.
        up: bool,
    },
    /// Reports whether the switch at the other end of a port's link runs. Only for the process of the switch.
    FarEnd {
        /// Port number.
        port: u32,
        /// Whether that switch runs.
        runs: bool,
    },
    /// Sets the service time of the host at a port. Only for the process of the switch.
    Slow {
        /// Port number.
        port: u32,
        /// Nanoseconds per received frame; 0 for none.
        by_ns: u64,
    },
    /// Keeps all packets out of the kernel, or no longer. Only for the process of the switch.
    Hold {
        /// Whether they are kept out.
        is_held: bool,
    },
    /// Captures the frames that pass a port. Only for the process of the switch.
    CapturePort {
        /// Port number.
        port: u32,
    },
    /// Captures the frames that pass a switch's port. A capture file without end follows the response.
    Capture {
        /// Switch and port, for example `s1:2`.
        port: String,
    },
    /// Ends the lab.
    Down,
}

impl LabRequest {
    /// Returns the line that transmits the request.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("requests can be serialized") + "\n"
    }
}

/// The response to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabResponse {
    /// The result of a request that was carried out.
    Done(Value),
    /// The reason why a request was refused.
    Refused(RequestError),
}

impl LabResponse {
    /// Parses a line.
    pub fn read(line: &str) -> Result<Value, LabError> {
        match serde_json::from_str(line) {
            Ok(LabResponse::Done(value)) => Ok(value),
            Ok(LabResponse::Refused(why)) => Err(LabError::Refused(why)),
            Err(_) => Err(LabError::NoResponse),
        }
    }

    /// Returns the line that transmits the response.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("responses can be serialized") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_one_line_of_json() {
        let request = LabRequest::Link { one: "h1".to_owned(), other: "s1".to_owned(), up: false };
        assert_eq!(request.line(), "{\"what\":\"link\",\"one\":\"h1\",\"other\":\"s1\",\"up\":false}\n");
        assert_eq!(LabRequest::SlowHost { host: "h1".to_owned(), by_ns: 5 }.line().matches('\n').count(), 1);
    }

    #[test]
    fn responses_are_results_refusals_or_nothing() {
        let done = LabResponse::Done(json!({ "up_s": 1.5 })).line();
        assert_eq!(LabResponse::read(&done).ok(), Some(json!({ "up_s": 1.5 })));
        let no_port = RequestError::NoPort { switch: "s1".to_owned(), port: 7 };
        let line = LabResponse::Refused(no_port.clone()).line();
        assert_eq!(line, "{\"refused\":{\"no-port\":{\"switch\":\"s1\",\"port\":7}}}\n");
        assert!(matches!(LabResponse::read(&line), Err(LabError::Refused(error)) if error == no_port));
        assert!(matches!(LabResponse::read(""), Err(LabError::NoResponse)));
    }
}
