//! Runs capture files to their end, in the time of the captures.

use ports::Frame;
use switch::{PacketSwitch, PortId, Time};

use crate::worker::Worker;

/// Runs until every capture is at its end and no packet waits in a queue.
pub(crate) fn run<S: PacketSwitch>(worker: &mut Worker<S>) {
    let mut heads: Vec<Option<Frame>> = worker.ports().iter().map(|_| None).collect();
    let mut start = None;
    let mut now = Time::ZERO;
    while let Some((time_ns, index)) = earliest(worker, &mut heads) {
        let start_ns = *start.get_or_insert(time_ns);
        // The switch's clock does not go back in captures whose times do.
        let arrival = now.max(Time::from_ns(time_ns.saturating_sub(start_ns)));
        while let Some(event) = worker.next_departure().filter(|event| *event < arrival) {
            step(worker, event, start_ns, None);
        }
        now = arrival;
        let frame = heads[index].take().map(|frame| (worker.ports()[index].id, frame));
        step(worker, now, start_ns, frame);
    }
    let start_ns = start.unwrap_or(0);
    while let Some(event) = worker.next_departure() {
        now = now.max(event);
        step(worker, now, start_ns, None);
    }
}

/// Reads ahead one frame of each port. Returns the time of the earliest, in nanoseconds since 1970, and the index of
/// its port.
fn earliest<S: PacketSwitch>(worker: &mut Worker<S>, heads: &mut [Option<Frame>]) -> Option<(u64, usize)> {
    for (index, head) in heads.iter_mut().enumerate() {
        if head.is_none() {
            *head = worker.receive_one(index);
        }
    }
    let times = heads.iter().enumerate().filter_map(|(index, head)| Some((head.as_ref()?.time_ns.unwrap_or(0), index)));
    times.min()
}

fn step<S: PacketSwitch>(worker: &mut Worker<S>, now: Time, start_ns: u64, frame: Option<(PortId, Frame)>) {
    worker.set_time(start_ns.saturating_add(now.as_ns()));
    let frame = frame.map(|(port, frame)| switch::Frame { port, data: frame.to_vec() });
    worker.step(now, &mut frame.into_iter().collect());
}
