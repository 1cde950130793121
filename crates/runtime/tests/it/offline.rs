//! Captures: frames enter in the order of their times.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use ports::{Port, PortError, PortStats, Received, Sent};
use runtime::{PortDrivers, RunConfig};
use switch::PortId;

use crate::rig::{Repeater, frame, program};

/// A capture in memory.
struct Replay(VecDeque<Received>);

impl Replay {
    /// Returns frames with these times, in nanoseconds, and marks.
    fn new(frames: &[(u64, u8)]) -> Replay {
        let received = |(time_ns, mark): &(u64, u8)| Received { data: frame(0, *mark), time_ns: Some(*time_ns) };
        Replay(frames.iter().map(received).collect())
    }
}

impl Port for Replay {
    fn name(&self) -> &str {
        "replay"
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let count = max.min(self.0.len());
        batch.extend(self.0.drain(..count));
        Ok(count)
    }

    fn send(&mut self, _: &[u8]) -> Result<Sent, PortError> {
        Ok(Sent::Sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn stats(&self) -> PortStats {
        PortStats::default()
    }

    fn finished(&self) -> bool {
        self.0.is_empty()
    }
}

#[test]
fn frames_of_all_captures_enter_by_time_and_the_clock_does_not_go_back() {
    let ports = vec![
        PortDrivers::single(PortId(1), Replay::new(&[(1000, 1), (1300, 3), (1200, 4)])),
        PortDrivers::single(PortId(2), Replay::new(&[(1100, 2), (1400, 5)])),
    ];
    let report = RunConfig::new(Repeater::new(program("a")), ports).run_offline();
    let times: Vec<_> = report.switch.times.iter().map(|(time, mark)| (time.as_ns(), *mark)).collect();
    assert_eq!(times, [(0, 1), (100, 2), (300, 3), (300, 4), (400, 5)]);
}
