//! What the threads of a scenario measure.

use std::collections::BTreeMap;
use std::thread::JoinHandle;

use lab::sim::traffic::{Measured, Reading};
use switch::Time;

/// The most values that are kept of one reading at one host.
const MOST_READ: usize = 1_000_000;

/// A thread within a host: whether it came there, and whether it came to its end.
pub type Thread = JoinHandle<std::io::Result<std::io::Result<Tally>>>;

/// What was measured of flows, by their numbers, and what probes read, by the place of their traffic.
#[derive(Default)]
pub struct Tally {
    pub flows: BTreeMap<u32, Measured>,
    pub values: BTreeMap<usize, Vec<Vec<(Time, f64)>>>,
}

impl Tally {
    /// What is measured of a flow.
    pub fn flow(&mut self, number: u32) -> &mut Measured {
        self.flows.entry(number).or_default()
    }

    /// Reads the values of a frame that arrived.
    pub fn read(&mut self, traffic: usize, readings: &[Reading], now: Time, frame: &[u8]) {
        let values = self.values.entry(traffic).or_insert_with(|| vec![Vec::new(); readings.len()]);
        for (reading, values) in readings.iter().zip(values) {
            values.extend(reading.of(frame).filter(|_| values.len() < MOST_READ).map(|value| (now, value)));
        }
    }

    /// Adds what another thread measured.
    pub fn add(&mut self, other: Tally) {
        for (number, measured) in other.flows {
            self.flow(number).add(&measured);
        }
        for (traffic, values) in other.values {
            let all = self.values.entry(traffic).or_insert_with(|| vec![Vec::new(); values.len()]);
            all.iter_mut().zip(values).for_each(|(all, values)| all.extend(values));
        }
    }
}
