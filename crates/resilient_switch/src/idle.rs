//! Finds rows that no packet has used for their idle time.

use engine::{Objects, StateRow};
use resilient::{PacedSweep, idle_ns};
use switch::Time;

/// The visits of the groups whose rows age. A visit takes a bounded time for any number of rows.
#[derive(Debug)]
pub(crate) struct IdleRows {
    groups: Vec<IdleGroup>,
}

#[derive(Debug)]
struct IdleGroup {
    group: u32,
    idle_ms: u32,
    sweep: PacedSweep,
}

impl IdleRows {
    /// Creates the visits from the idle time of each group in milliseconds; 0 if its rows do not age.
    pub fn new(idle_ms: impl Iterator<Item = u32>) -> IdleRows {
        let group = |(group, idle_ms)| IdleGroup { group: group as u32, idle_ms, sweep: PacedSweep::default() };
        IdleRows { groups: idle_ms.enumerate().filter(|(_, idle_ms)| *idle_ms > 0).map(group).collect() }
    }

    /// Records that the switch got a row of a group.
    pub fn granted(&mut self, now: Time, group: usize) {
        if let Some(group) = self.groups.iter_mut().find(|it| it.group as usize == group) {
            group.sweep.start(now, PacedSweep::idle_pass_ns(group.idle_ms));
        }
    }

    /// Visits the rows that are due, and returns those that are idle.
    pub fn take_due(&mut self, now: Time, objects: &Objects) -> Vec<StateRow> {
        let mut idle = Vec::new();
        for IdleGroup { group, idle_ms, sweep } in &mut self.groups {
            let positions = objects.row_positions(*group);
            let Some((visited, _)) = sweep.step(now, positions) else { continue };
            if let Some(before_ns) = now.as_ns().checked_sub(idle_ns(*idle_ms)) {
                idle.extend(objects.idle_rows(*group, visited, before_ns));
            }
            if positions == 0 {
                sweep.stop();
            }
        }
        idle
    }

    /// Returns the time of the next visit.
    pub fn next_due(&self) -> Option<Time> {
        self.groups.iter().filter_map(|group| group.sweep.due()).min()
    }
}
