//! Measures any forwarder between two interfaces from outside: frames are offered to one and counted on the other.
//!
//! A trial offers frames at a rate for a time, waits until nothing more arrives, and compares what was sent with what
//! arrived. [`search`] looks for the highest rate at which no more is lost than is tolerated; [`latency`] then measures
//! single frames at a light load.

pub mod latency;
pub mod report;
pub mod search;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ::traffic_gen::Generator;
use ports::load::{Link, Pace, Sink, payload_len};
use ports::{PortError, PortSpec, SpecError};

use search::Search;

/// Number of different frames that are generated beforehand and sent in turn.
const FRAMES: usize = 16_384;

/// Time without an arrival after which no more frames are expected.
const QUIET: Duration = Duration::from_millis(100);

/// Maximum time to wait for frames in flight.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interface on which frames are offered, and the one on which they are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sender as [`PortSpec`] has it: `eth1` or `xdp:eth1`.
    pub from: String,
    /// The receiver's interface.
    pub to: String,
}

impl Ends {
    /// Reads `A:B`; A may be `xdp:NAME`.
    pub fn parse(text: &str) -> Option<Ends> {
        let (from, to) = text.rsplit_once(':')?;
        let plain = from.strip_prefix("xdp:").unwrap_or(from);
        let is_name = |name: &str| !name.is_empty() && !name.contains([':', '=', ',']);
        (is_name(plain) && is_name(to) && plain != to).then(|| Ends { from: from.to_owned(), to: to.to_owned() })
    }

    /// The sender's interface.
    fn sender(&self) -> &str {
        self.from.strip_prefix("xdp:").unwrap_or(&self.from)
    }

    /// Checks that frames with payloads of up to `longest` bytes can leave by the one interface, and that the other can
    /// receive frames.
    fn check(&self, longest: usize) -> Result<(), LiveError> {
        let (from, to) = (Link::of(self.sender())?, Link::of(&self.to)?);
        for (link, name) in [(from, self.sender()), (to, &self.to)] {
            if !link.is_up {
                return Err(LiveError::Down(name.to_owned()));
            }
        }
        match longest > from.mtu {
            true => Err(LiveError::TooLong { longest, from: self.sender().to_owned(), mtu: from.mtu }),
            false => Ok(()),
        }
    }
}

/// The results of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Requested frames a second; 0 for the maximum.
    pub asked_pps: f64,
    /// Time for which frames were sent, in seconds.
    pub seconds: f64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that arrived.
    pub received: u64,
}

impl Trial {
    /// Frames that did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Frames a second that were sent.
    pub fn sent_pps(&self) -> f64 {
        self.sent as f64 / self.seconds.max(1e-9)
    }

    /// Frames a second that arrived.
    pub fn received_pps(&self) -> f64 {
        self.received as f64 / self.seconds.max(1e-9)
    }

    /// Whether the sender sent all it could, and not a rate it was asked for.
    pub fn is_short(&self) -> bool {
        self.asked_pps == 0.0 || self.sent_pps() < self.asked_pps * 0.95
    }

    /// Lost frames as a part of those sent, from 0 to 1.
    pub fn loss(&self) -> f64 {
        self.lost() as f64 / self.sent.max(1) as f64
    }
}

/// An error that prevents the measurement.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// An interface cannot be used.
    #[error(transparent)]
    Port(#[from] PortError),
    /// An interface's name cannot be.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An interface carries nothing.
    #[error("{0} is down, or what it is connected to is: `ip link set {0} up`, and the same at its other end")]
    Down(String),
    /// The sender's interface does not take such frames.
    #[error(
        "frames have up to {longest} bytes behind their Ethernet header, and {from} takes {mtu}: offer smaller ones \
         (--traffic …,size=64), or raise its MTU with `ip link set {from} mtu {longest}`"
    )]
    TooLong {
        /// The longest payload, in bytes.
        longest: usize,
        /// The interface.
        from: String,
        /// Its MTU, in bytes.
        mtu: usize,
    },
    /// Nothing that was sent arrived.
    #[error(
        "none of {sent} frames sent on {from} arrived at {to}; start the switch between them, and see with its summary or \
         `triplane trace` whether it forwards such frames"
    )]
    NothingArrives {
        /// Frames.
        sent: u64,
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
}

/// The sender and the receiver.
pub struct Live {
    ends: Ends,
    pace: Pace,
    sink: Sink,
    /// A note on how the sender's port was opened.
    note: Option<String>,
}

impl Live {
    /// Opens both interfaces.
    ///
    /// # Errors
    /// If one cannot be had, is down, or too small for the frames.
    pub fn open(ends: &Ends, generator: &mut Generator) -> Result<Live, LiveError> {
        let spec = PortSpec::parse_all(&[format!("1={}", ends.from)], 1)?;
        let mut frame = Vec::new();
        let next = |_| {
            generator.next(&mut frame);
            frame.clone()
        };
        let frames: Vec<Vec<u8>> = (0..FRAMES).map(next).collect();
        ends.check(frames.iter().map(|frame| payload_len(frame)).max().unwrap_or(0))?;
        // Counting comes first, so that nothing is sent uncounted.
        let sink = Sink::open(&ends.to)?;
        let mut opened = PortSpec::open_all(&spec)?;
        let port = opened.pop().expect("one port was asked for");
        let note = port.note().map(|note| note.to_string());
        Ok(Live { ends: ends.clone(), pace: Pace::new(port, frames), sink, note })
    }

    /// Returns a note on how the sender's port was opened, if that is not as requested.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Sends at a rate for a time.
    fn trial(&mut self, asked_pps: f64, time: Duration) -> Result<Trial, LiveError> {
        let before = self.sink.arrived()?.frames;
        let begin = Instant::now();
        let sent = self.pace.run(asked_pps, time, &AtomicBool::new(false))?;
        let seconds = begin.elapsed().as_secs_f64();
        let (mut last, mut quiet_since, waiting_since) = (before, Instant::now(), Instant::now());
        while quiet_since.elapsed() < QUIET && waiting_since.elapsed() < PATIENCE && last - before < sent {
            std::thread::sleep(Duration::from_millis(5));
            let arrived = self.sink.arrived()?.frames;
            if arrived != last {
                (last, quiet_since) = (arrived, Instant::now());
            }
        }
        Ok(Trial { asked_pps, seconds, sent, received: last - before })
    }

    /// Searches for the highest rate at which no more than `tolerated` (from 0 to 1) is lost, in trials of `time`.
    /// Calls the last argument with each trial.
    ///
    /// # Errors
    /// If a port can be used no longer, or nothing arrives.
    pub fn search(
        &mut self,
        time: Duration,
        tolerated: f64,
        told: &mut dyn FnMut(&Trial),
    ) -> Result<Vec<Trial>, LiveError> {
        // Gives the forwarder an opportunity to learn, resolve and warm up.
        let first = self.trial(10_000.0, Duration::from_millis(200))?;
        if first.received == 0 {
            let Ends { from, to } = self.ends.clone();
            return Err(LiveError::NothingArrives { sent: first.sent, from, to });
        }
        let mut trials = Vec::new();
        let most = self.trial(0.0, time)?;
        told(&most);
        trials.push(most);
        if most.loss() <= tolerated {
            return Ok(trials);
        }
        let mut search = Search::below(most.sent_pps());
        while let Some(rate) = search.next() {
            let trial = self.trial(rate, time)?;
            told(&trial);
            search.tried(trial.loss() <= tolerated);
            trials.push(trial);
        }
        Ok(trials)
    }
}

/// The trial with the highest rate at which no more than `tolerated` was lost.
pub fn best(trials: &[Trial], tolerated: f64) -> Option<&Trial> {
    let good = trials.iter().filter(|trial| trial.loss() <= tolerated);
    good.max_by(|a, b| a.sent_pps().total_cmp(&b.sent_pps()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_two_interfaces() {
        let ends = |from: &str, to: &str| Some(Ends { from: from.into(), to: to.into() });
        assert_eq!(Ends::parse("a:b"), ends("a", "b"));
        assert_eq!(Ends::parse("xdp:a:b"), ends("xdp:a", "b"));
        for wrong in ["a", "a:", ":b", "a:a", "xdp:a:a", "a:b:c", "tap:a:b", ""] {
            assert_eq!(Ends::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_best_trial_is_the_fastest_without_loss() {
        let trial = |sent, received| Trial { asked_pps: 0.0, seconds: 2.0, sent, received };
        let trials = [trial(1000, 600), trial(500, 500), trial(700, 693), trial(400, 401)];
        assert_eq!(best(&trials, 0.0).map(|trial| trial.sent), Some(500));
        assert_eq!(best(&trials, 0.01).map(Trial::sent_pps), Some(350.0));
        assert_eq!(best(&trials[..1], 0.0), None);
        assert_eq!((trials[0].lost(), trials[0].loss(), trials[3].lost()), (400, 0.4, 0));
    }
}
