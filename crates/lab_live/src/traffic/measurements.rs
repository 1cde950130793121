//! Collects the measurements of a scenario's threads.

use std::collections::BTreeMap;
use std::thread::JoinHandle;

use lab::sim::traffic::{Measured, Reading};
use switch::Time;

/// Maximum number of values of one reading at one host.
const MAX_VALUES: usize = 1_000_000;

/// A thread within a host. The outer result is that of entering the namespace, the inner one that of the work.
pub type TrafficThread = JoinHandle<std::io::Result<std::io::Result<TrafficMeasurements>>>;

/// Measurements of flows, and the values that probes read.
#[derive(Default)]
pub struct TrafficMeasurements {
    /// Measurements by flow number.
    pub flows: BTreeMap<u32, Measured>,
    /// Values by the index of the traffic, then by reading.
    pub values: BTreeMap<usize, Vec<Vec<(Time, f64)>>>,
}

impl TrafficMeasurements {
    /// Returns the measurements of a flow.
    pub fn flow(&mut self, number: u32) -> &mut Measured {
        self.flows.entry(number).or_default()
    }

    /// Reads the values of a probe that arrived.
    pub fn read(&mut self, traffic: usize, readings: &[Reading], now: Time, frame: &[u8]) {
        let values = self.values.entry(traffic).or_insert_with(|| vec![Vec::new(); readings.len()]);
        for (reading, values) in readings.iter().zip(values) {
            values.extend(reading.of(frame).filter(|_| values.len() < MAX_VALUES).map(|value| (now, value)));
        }
    }

    /// Adds the measurements of another thread.
    pub fn add(&mut self, other: TrafficMeasurements) {
        for (number, measured) in other.flows {
            self.flow(number).add(&measured);
        }
        for (traffic, values) in other.values {
            let all = self.values.entry(traffic).or_insert_with(|| vec![Vec::new(); values.len()]);
            all.iter_mut().zip(values).for_each(|(all, values)| all.extend(values));
        }
    }
}
