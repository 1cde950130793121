//! Defines the state of a switch, as its thread or process reports it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// Whether it has crashed.
    pub failed: bool,
    /// Whether its process is suspended. A thread cannot be.
    #[serde(default)]
    pub is_suspended: bool,
    /// The reason of a crash that was not requested, or of a service that is not available.
    pub why: Option<String>,
    /// Id of its process, if it has one of its own.
    pub pid: Option<u32>,
    /// The program in the kernel, if the lab asks for it.
    #[serde(default)]
    pub kernel: Option<KernelStatus>,
    /// The shim, if it is that of a host.
    #[serde(default)]
    pub shim: Option<ShimStatus>,
    /// State of its ports.
    pub ports: Vec<PortStatus>,
    /// Counters that are not zero, by their stable names.
    pub counters: Vec<(String, u64)>,
}

impl SwitchStatus {
    /// Returns the state of a switch that did not respond in time.
    pub fn silent() -> SwitchStatus {
        SwitchStatus { failed: true, why: Some("it did not respond".to_owned()), ..SwitchStatus::default() }
    }
}

/// The state of a host's shim.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShimStatus {
    /// Number of times that it was started again.
    pub restarts: u64,
    /// The last report; null if there is none yet.
    pub report: Value,
    /// Time since then, in seconds; `None` if there is none yet.
    pub age_s: Option<f64>,
}

/// The state of a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PortStatus {
    /// Port number.
    pub port: u32,
    /// Whether its link is up.
    pub up: bool,
    /// Frames from the other end that the switch received since the lab began. A crash does not reset it.
    pub received: u64,
    /// Frames from the other end that arrived while the switch was down.
    pub lost_while_failed: u64,
    /// Frames that the link accepted.
    pub sent: u64,
    /// Bytes of these frames.
    pub sent_bytes: u64,
    /// Frames to the other end that the link dropped.
    pub dropped: u64,
    /// Frames from the host at the other end; `None` if that is a switch.
    pub from_host: Option<u64>,
    /// Bytes of these frames.
    pub from_host_bytes: Option<u64>,
    /// Frames from the host at the other end that the link dropped.
    pub from_host_dropped: Option<u64>,
    /// The reason why the driver cannot be used any more.
    pub failure: Option<String>,
}

/// The state of a switch's program in the kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KernelStatus {
    /// Whether packets are processed in the kernel at present.
    pub is_active: bool,
    /// The kernel ports. Other ports are ordinary ports.
    pub ports: Vec<u32>,
    /// Packets that were forwarded or dropped in the kernel since the lab began.
    pub packets: u64,
    /// Packets that the switch received since the lab began.
    pub switch_packets: u64,
    /// Packets that were dropped on receive, since the switch was behind with their flow.
    pub crowded: u64,
    /// The reason why no packet is processed in the kernel, if none is.
    #[serde(default)]
    pub reason: Option<String>,
    /// What runs in the kernel, what does not, and why.
    pub notes: Vec<String>,
}
