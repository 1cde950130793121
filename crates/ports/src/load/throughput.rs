//! Measures the throughput of any forwarder between two interfaces (RFC 2544, 26.1): frames are offered to one and
//! counted on the other.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::rate_search::RateSearch;
use super::{Link, Pace, Sink, payload_len};
use crate::{PortError, PortSpec, SpecError};

/// Time without an arrival after which no more frames are expected.
const QUIET_TIME: Duration = Duration::from_millis(100);

/// Maximum time to wait for frames in flight.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which arrivals are read.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The interface on which frames are offered, and the one on which they are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPath {
    /// The sender as [`PortSpec`] has it: `eth1` or `xdp:eth1`.
    pub from: String,
    /// The receiver's interface.
    pub to: String,
}

impl LoadPath {
    /// Parses `A:B`; A may be `xdp:NAME`.
    pub fn parse(text: &str) -> Option<LoadPath> {
        let (from, to) = text.rsplit_once(':')?;
        let plain = from.strip_prefix("xdp:").unwrap_or(from);
        let is_name = |name: &str| !name.is_empty() && !name.contains([':', '=', ',']);
        (is_name(plain) && is_name(to) && plain != to).then(|| LoadPath { from: from.to_owned(), to: to.to_owned() })
    }

    /// Returns the sender's interface.
    fn sender(&self) -> &str {
        self.from.strip_prefix("xdp:").unwrap_or(&self.from)
    }

    /// Checks that frames with payloads of up to `longest` bytes can leave by the one interface, and that the other can
    /// receive frames.
    fn check(&self, longest: usize) -> Result<(), LoadError> {
        let (from, to) = (Link::of(self.sender())?, Link::of(&self.to)?);
        for (link, name) in [(from, self.sender()), (to, &self.to)] {
            if !link.is_up {
                return Err(LoadError::Down { interface: name.to_owned() });
            }
        }
        if longest > from.mtu {
            Err(LoadError::TooLong { longest, from: self.sender().to_owned(), mtu: from.mtu })
        } else {
            Ok(())
        }
    }
}

/// The results of a trial: frames were offered at a rate for a time, and counted until no more arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadTrial {
    /// Intended load (RFC 2285 section 3.5.1) in frames per second; 0 for the maximum.
    pub intended_pps: f64,
    /// Time for which frames were sent, in seconds.
    pub seconds: f64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that arrived.
    pub received: u64,
}

impl LoadTrial {
    /// Returns the number of frames that did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Returns the frames per second that were sent.
    pub fn sent_pps(&self) -> f64 {
        self.sent as f64 / self.seconds.max(1e-9)
    }

    /// Returns the frames per second that arrived.
    pub fn received_pps(&self) -> f64 {
        self.received as f64 / self.seconds.max(1e-9)
    }

    /// Whether the sender sent all it could, and less than the requested rate.
    pub fn is_short(&self) -> bool {
        self.intended_pps == 0.0 || self.sent_pps() < self.intended_pps * 0.95
    }

    /// Returns lost frames as a part of those sent, from 0 to 1.
    pub fn loss(&self) -> f64 {
        self.lost() as f64 / self.sent.max(1) as f64
    }
}

/// An error that prevents a measurement.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An interface cannot be used.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The name of an interface is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An interface carries nothing.
    #[error("{interface} or its peer is down: run `ip link set {interface} up`, and bring up the other end as well")]
    Down {
        /// The interface.
        interface: String,
    },
    /// The frames are longer than the sender's interface accepts.
    #[error("frames have up to {longest} bytes after the Ethernet header, but the MTU of {from} is {mtu}")]
    TooLong {
        /// The longest payload, in bytes.
        longest: usize,
        /// The interface.
        from: String,
        /// Its MTU, in bytes.
        mtu: usize,
    },
    /// Nothing that was sent arrived.
    #[error("none of {sent} frames sent on {from} arrived at {to}")]
    NothingArrived {
        /// Number of frames.
        sent: u64,
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
}

/// A sender and a receiver, for trials.
pub struct ThroughputTest {
    path: LoadPath,
    pace: Pace,
    sink: Sink,
    /// A note on how the sender's port was opened.
    note: Option<String>,
}

impl ThroughputTest {
    /// Opens both interfaces. The frames are sent in turn.
    ///
    /// # Errors
    /// Returns an error if an interface cannot be opened, is down, or its MTU is too small for the frames.
    ///
    /// # Panics
    /// Panics if there are no frames.
    pub fn open(path: &LoadPath, frames: Vec<Vec<u8>>) -> Result<ThroughputTest, LoadError> {
        let spec = PortSpec::parse_all(&[format!("1={}", path.from)], 1)?;
        path.check(frames.iter().map(|frame| payload_len(frame)).max().unwrap_or(0))?;
        // Counting comes first, so that nothing is sent uncounted.
        let sink = Sink::open(&path.to)?;
        let mut opened = PortSpec::open_all(&spec)?;
        let port = opened.pop().expect("one port was asked for");
        let note = port.note().map(|note| note.to_string());
        Ok(ThroughputTest { path: path.clone(), pace: Pace::new(port, frames), sink, note })
    }

    /// Returns a note on how the sender's port was opened, if that is not as requested.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Sends at a rate for a time, and waits until nothing more arrives.
    fn trial(&mut self, intended_pps: f64, time: Duration) -> Result<LoadTrial, LoadError> {
        let before = self.sink.arrived()?.frames;
        let begin = Instant::now();
        let sent = self.pace.run(intended_pps, time, &AtomicBool::new(false))?;
        let seconds = begin.elapsed().as_secs_f64();
        let (mut last, mut quiet_since, waiting_since) = (before, Instant::now(), Instant::now());
        while quiet_since.elapsed() < QUIET_TIME && waiting_since.elapsed() < DRAIN_TIMEOUT && last - before < sent {
            std::thread::sleep(POLL_INTERVAL);
            let arrived = self.sink.arrived()?.frames;
            if arrived != last {
                (last, quiet_since) = (arrived, Instant::now());
            }
        }
        Ok(LoadTrial { intended_pps, seconds, sent, received: last - before })
    }

    /// Searches for the highest rate at which no more than `tolerated` (from 0 to 1) is lost, in trials of `time`.
    /// Calls `on_trial` with each trial.
    ///
    /// # Errors
    /// Returns an error if a port can no longer be used, or nothing arrives.
    pub fn search(
        &mut self,
        time: Duration,
        tolerated: f64,
        on_trial: &mut dyn FnMut(&LoadTrial),
    ) -> Result<Vec<LoadTrial>, LoadError> {
        // Gives the forwarder an opportunity to learn, resolve and warm up.
        let first = self.trial(10_000.0, Duration::from_millis(200))?;
        if first.received == 0 {
            let LoadPath { from, to } = self.path.clone();
            return Err(LoadError::NothingArrived { sent: first.sent, from, to });
        }
        let mut trials = Vec::new();
        let most = self.trial(0.0, time)?;
        on_trial(&most);
        trials.push(most);
        if most.loss() <= tolerated {
            return Ok(trials);
        }
        let mut search = RateSearch::below(most.sent_pps());
        while let Some(rate) = search.next() {
            let trial = self.trial(rate, time)?;
            on_trial(&trial);
            search.record(trial.loss() <= tolerated);
            trials.push(trial);
        }
        Ok(trials)
    }
}

/// Returns the trial with the highest rate at which no more than `tolerated` was lost.
pub fn best_trial(trials: &[LoadTrial], tolerated: f64) -> Option<&LoadTrial> {
    let good = trials.iter().filter(|trial| trial.loss() <= tolerated);
    good.max_by(|a, b| a.sent_pps().total_cmp(&b.sent_pps()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_two_interfaces() {
        let path = |from: &str, to: &str| Some(LoadPath { from: from.into(), to: to.into() });
        assert_eq!(LoadPath::parse("a:b"), path("a", "b"));
        assert_eq!(LoadPath::parse("xdp:a:b"), path("xdp:a", "b"));
        for wrong in ["a", "a:", ":b", "a:a", "xdp:a:a", "a:b:c", "tap:a:b", ""] {
            assert_eq!(LoadPath::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_best_trial_is_the_fastest_without_loss() {
        let trial = |sent, received| LoadTrial { intended_pps: 0.0, seconds: 2.0, sent, received };
        let trials = [trial(1000, 600), trial(500, 500), trial(700, 693), trial(400, 401)];
        assert_eq!(best_trial(&trials, 0.0).map(|trial| trial.sent), Some(500));
        assert_eq!(best_trial(&trials, 0.01).map(LoadTrial::sent_pps), Some(350.0));
        assert_eq!(best_trial(&trials[..1], 0.0), None);
        assert_eq!((trials[0].lost(), trials[0].loss(), trials[3].lost()), (400, 0.4, 0));
    }
}
