//! Removes rows that no switch has used for their idle time, at the head of a shard.
//!
//! ```text
//!   owned ── released as idle ──────────────────────────────> over ── partner over, too ──> Remove
//!     └──── given back, or the owner is dead ──> idle time ────^
//! ```
//!
//! The owner of a row knows when packets last used it. A row without an owner is not used, so its idle time counts from
//! the moment at which the head finds it without an owner. A new head restarts all counts. A row and its partner are
//! removed in one operation.
//!
//! A row that several switches read stays until the last of them has found it idle. The uses by the others count: if a
//! reader gave the row back in use, or its session ended, the row is not removed before the idle time after that is
//! over.
//!
//! The head visits the rows in turn ([`PacedSweep`]), so it needs no timers, and a missed visit does no harm.

use switch::Time;

use super::ShardContext;
use super::shard::ShardNode;
use crate::holders::RowReader;
use crate::message::{Operation, ReplyBody, RowRecord};
use crate::mutant::Mutant;
use crate::row::RowId;
use crate::sweep::{PacedSweep, idle_ns};

/// Number of idle times after which the owner of a row is probed. A switch whose lease has ended forgets rows that the
/// store still considers owned if the lease is renewed late.
const PROBE_IDLE_TIMES: u64 = 4;

/// The clock of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum RowClock {
    /// None.
    #[default]
    Stopped,
    /// The row has an owner or readers, which are probed.
    Held {
        /// Time of the next probe.
        probe_at: Time,
        /// End of the idle time that began when another reader gave the row back.
        over_at: Time,
    },
    /// The row has no owner. Its idle time ends at this time.
    Free(Time),
}

impl RowClock {
    /// Returns the end of the idle time that follows from switches that no longer have the row.
    fn over_at(self) -> Time {
        match self {
            RowClock::Stopped => Time::ZERO,
            RowClock::Held { over_at, .. } | RowClock::Free(over_at) => over_at,
        }
    }
}

/// The clocks of a shard's rows, by their positions. Only the head has them.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(super) struct RowClocks {
    clocks: Vec<RowClock>,
    sweep: PacedSweep,
    /// The shortest idle time in this pass.
    shortest_ms: Option<u32>,
    /// The time since which the node has seen all uses, if it took rows over: it does not know those that an earlier
    /// head recorded.
    since: Option<Time>,
}

impl RowClocks {
    /// Stops all clocks. A head that has rows begins to visit them, in a first pass of this length.
    pub fn restart(&mut self, now: Time, first_pass_ns: Option<u64>) {
        *self = RowClocks { since: first_pass_ns.map(|_| now), ..RowClocks::default() };
        if let Some(pass_ns) = first_pass_ns {
            self.sweep.start(now, pass_ns);
        }
    }

    /// Stops the clock of a row that is granted. The uses of readers that gave the row back still count for other
    /// readers.
    pub fn granted(&mut self, now: Time, position: usize, idle_ms: u32, is_shared: bool) {
        let Some(clock) = self.clocks.get_mut(position) else { return };
        *clock = match *clock {
            held @ RowClock::Held { .. } if is_shared => held,
            RowClock::Free(over_at) if is_shared => RowClock::Held { probe_at: probe_time(now, idle_ms), over_at },
            _ => RowClock::Stopped,
        };
    }

    /// Begins to visit rows if one with an idle time was granted.
    pub fn see_grant(&mut self, now: Time, idle_ms: u32) {
        if idle_ms > 0 {
            self.see(idle_ms);
            self.sweep.start(now, PacedSweep::idle_pass_ns(idle_ms));
        }
    }

    /// Returns the time of the next visit.
    pub fn due(&self) -> Option<Time> {
        self.sweep.due()
    }

    /// Returns the time until which uses that an earlier head recorded may count.
    fn unseen_until(&self, idle_ms: u32) -> Time {
        self.since.map_or(Time::ZERO, |since| since.after_ns(idle_ns(idle_ms)))
    }

    fn see(&mut self, idle_ms: u32) {
        self.shortest_ms = Some(self.shortest_ms.map_or(idle_ms, |known| known.min(idle_ms)));
    }

    fn get(&self, position: usize) -> RowClock {
        self.clocks.get(position).copied().unwrap_or_default()
    }

    fn set(&mut self, position: usize, clock: RowClock) {
        if self.clocks.len() <= position {
            self.clocks.resize(position + 1, RowClock::Stopped);
        }
        self.clocks[position] = clock;
    }

    /// Ends a pass. The next one has the pace of the shortest idle time, if any.
    fn end_pass(&mut self) {
        match self.shortest_ms.take() {
            Some(idle_ms) => self.sweep.set_pass(PacedSweep::idle_pass_ns(idle_ms)),
            None => self.sweep.stop(),
        }
    }
}

impl ShardNode {
    /// Records that a holder of a row gave it back, and removes the row if it was idle and has no other holder.
    pub fn released(&mut self, context: &mut ShardContext<'_>, row: &RowId, is_idle: bool) {
        let Some((position, state)) = self.rows.find_row(row).filter(|(_, state)| state.idle_ms > 0) else { return };
        let idle_ms = state.idle_ms;
        let held = state.holders.iter(state.ask, state.epoch).count();
        let live = self.live_holders(context, row).count();
        // A reader whose session has ended may have used the row until then.
        let is_idle = is_idle && held == live;
        let over_at = if is_idle { context.now } else { context.now.after_ns(idle_ns(idle_ms)) };
        let clock = self.clocks.get(position);
        // Readers that gave the row back at an earlier head may have used it until then.
        let unseen = self.clocks.unseen_until(idle_ms);
        let over_at = over_at.max(if matches!(clock, RowClock::Stopped) { unseen } else { clock.over_at() });
        if live > 0 && !context.is(Mutant::OtherReadersIgnored) {
            let probe_at =
                if let RowClock::Held { probe_at, .. } = clock { probe_at } else { probe_time(context.now, idle_ms) };
            return self.clocks.set(position, RowClock::Held { probe_at, over_at });
        }
        self.clocks.set(position, RowClock::Free(over_at));
        self.remove_if_over(context, row);
    }

    /// Visits the rows whose turn it is.
    pub fn visit_rows(&mut self, context: &mut ShardContext<'_>) {
        if self.clocks.due().is_none_or(|due| due > context.now) {
            return;
        }
        if !self.serves(context) {
            // It visits the rows when it serves.
            return self.clocks.restart(context.now, Some(context.config.lease_ns));
        }
        let Some((positions, is_last)) = self.clocks.sweep.step(context.now, self.rows.positions()) else { return };
        positions.for_each(|position| self.visit(context, position));
        if is_last {
            self.clocks.end_pass();
        }
    }

    fn visit(&mut self, context: &mut ShardContext<'_>, position: usize) {
        let Some(state) = self.rows.at(position).filter(|state| state.idle_ms > 0) else { return };
        let RowRecord { row, epoch, idle_ms, .. } = *state;
        let has_holders = !state.holders.is_empty();
        self.clocks.see(idle_ms);
        let live: Vec<RowReader> = self.live_holders(context, &row).collect();
        match self.clocks.get(position) {
            _ if !live.is_empty() => self.visit_held(context, position, &live),
            RowClock::Free(_) => self.remove_if_over(context, &row),
            _ if epoch == 0 => self.remove_if_over(context, &row),
            _ if context.is(Mutant::DeadOwnerKept) && has_holders => {}
            _ => {
                let wait_ns = if context.is(Mutant::RemovedWithOwner) { 0 } else { idle_ns(idle_ms) };
                self.clocks.set(position, RowClock::Free(context.now.after_ns(wait_ns)));
            }
        }
    }

    /// Probes the holders of a row when that is due, and ends the grants of readers whose sessions have ended.
    fn visit_held(&mut self, context: &mut ShardContext<'_>, position: usize, live: &[RowReader]) {
        let Some(state) = self.rows.at(position) else { return };
        let (row, idle_ms) = (state.row, state.idle_ms);
        let dead: Vec<RowReader> =
            state.holders.readers().iter().filter(|reader| !live.contains(reader)).copied().collect();
        for reader in dead {
            if self.log.len() < context.config.max_log {
                self.end_reading(context, &row, reader);
            }
        }
        let clock = self.clocks.get(position);
        let (is_due, is_new) = match clock {
            RowClock::Held { probe_at, .. } => (probe_at <= context.now, false),
            _ => (false, !context.is(Mutant::IdleClockKept)),
        };
        if is_due && !context.is(Mutant::LostRowUnprobed) {
            for RowReader { owner, epoch, .. } in live {
                context.outbox.reply(*owner, ReplyBody::Probe { row, epoch: *epoch });
            }
        }
        if is_due || is_new {
            let probe_at = probe_time(context.now, idle_ms);
            let unseen = self.clocks.unseen_until(idle_ms);
            let over_at = if is_new { unseen.max(clock.over_at()) } else { clock.over_at() };
            self.clocks.set(position, RowClock::Held { probe_at, over_at });
        }
    }

    /// Removes a row and its partner if no switch has or awaits them, and the idle times of both are over.
    fn remove_if_over(&mut self, context: &mut ShardContext<'_>, row: &RowId) {
        let Some(state) = self.rows.get(row) else { return };
        let partner = self.rows.partner(state);
        let highest = partner.map_or(state.epoch, |partner| partner.epoch.max(state.epoch));
        let partner = partner.map(|partner| partner.row);
        let is_partner_over = match &partner {
            None => true,
            Some(_) if context.is(Mutant::PartnerIgnored) => true,
            Some(partner) => self.is_over(context, partner),
        };
        if self.is_over(context, row) && is_partner_over && self.log.len() < context.config.max_log {
            let partner = partner.filter(|_| !context.is(Mutant::HalfRemoved));
            let operation = Operation::Remove { row: *row, partner, epoch: highest };
            if context.is(Mutant::RemovedAtHead) {
                self.rows.apply(&operation, context.config.mutation);
                return;
            }
            self.apply(context, operation);
        }
    }

    /// Whether a row may be removed. The row of a number that was never granted was never used.
    fn is_over(&self, context: &ShardContext<'_>, row: &RowId) -> bool {
        let Some((position, state)) = self.rows.find_row(row) else { return false };
        let is_over = match self.clocks.get(position) {
            _ if state.epoch == 0 => true,
            RowClock::Free(over_at) => over_at <= context.now,
            _ => false,
        };
        let is_held = self.is_held(context, row) && !context.is(Mutant::OtherReadersIgnored);
        is_over && state.idle_ms > 0 && self.waiters.is_empty(row) && !is_held
    }
}

/// Returns the time at which the current holders of a row are probed.
fn probe_time(now: Time, idle_ms: u32) -> Time {
    now.after_ns(idle_ns(idle_ms).saturating_mul(PROBE_IDLE_TIMES))
}
