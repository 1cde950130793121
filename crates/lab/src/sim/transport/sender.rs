//! One direction of a connection: which segments are sent when, and sent again.

use super::control::{CongestionControl, Law, Window};
use super::flight::{Due, Flight, Heard};
use super::rtt::RoundTrip;

/// A sender's view of a connection.
#[derive(Debug)]
pub struct Sender {
    pub flight: Flight,
    window: Window,
    trip: RoundTrip,
    /// What was lost is being made up for until this byte is acknowledged.
    recovers: Option<u64>,
    /// A round ends when this byte is acknowledged; `None` if nothing was on the way when the last one ended.
    round_ends: Option<u64>,
    /// When nothing was heard for too long.
    timeout: Option<u64>,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement<'a> {
    /// All bytes before this one.
    pub up_to: u64,
    /// Ranges behind it (RFC 2018).
    pub ranges: &'a [(u64, u64)],
    /// Whether it echoes a mark.
    pub echo: bool,
}

impl Sender {
    /// A sender whose first byte has this number.
    pub fn new(first: u64, control: CongestionControl, segment: u64) -> Sender {
        Sender {
            flight: Flight::new(first),
            window: Window::new(control, segment),
            trip: RoundTrip::default(),
            recovers: None,
            round_ends: None,
            timeout: None,
        }
    }

    /// An acknowledgement came. True if its mark made the window smaller.
    pub fn acknowledged(&mut self, now: u64, said: Acknowledgement<'_>, law: Option<Law>) -> bool {
        let (flight, window) = (&mut self.flight, &mut self.window);
        // Whoever has more to send than the window allows may have a larger one.
        let held_up = flight.is_waiting();
        let round_ends = *self.round_ends.get_or_insert(flight.next());
        let Heard { arrived, in_order, trip_ns } =
            flight.acknowledged(now, said.up_to, said.ranges, self.trip.least_ns());
        if let Some(ns) = trip_ns {
            self.trip.took(ns);
            window.took(ns);
        }
        if arrived > 0 {
            self.trip.heard();
        }
        self.recovers = self.recovers.filter(|until| flight.oldest() < *until);
        let reduced = law.is_some_and(|law| window.marked(in_order, said.echo, law));
        if let Some(last) = flight.overtaken()
            && self.recovers.is_none()
        {
            debug_assert!(last <= flight.next(), "what was lost was sent");
            self.recovers = Some(flight.next());
            window.lost();
        } else if held_up && self.recovers.is_none() && !reduced && !said.echo {
            window.acknowledged(now, in_order, self.trip.smoothed_ns());
        }
        if flight.oldest() >= round_ends {
            window.round();
            self.round_ends = Some(flight.next()).filter(|_| flight.outstanding() > 0);
        }
        if in_order > 0 || arrived > 0 {
            self.timeout = (flight.outstanding() > 0).then(|| now + self.trip.timeout_ns());
        }
        reduced
    }

    /// The next segment to send now.
    pub fn send(&mut self, now: u64) -> Option<Due<'_>> {
        let allowed = self.window.bytes().saturating_sub(self.flight.on_the_way());
        let due = self.flight.send(now, allowed)?;
        let timeout_ns = self.trip.timeout_ns();
        self.timeout.get_or_insert(now + timeout_ns);
        Some(due)
    }

    /// When it wants to be asked again, if nothing is heard.
    pub fn timeout(&self) -> Option<u64> {
        self.timeout
    }

    /// Nothing was heard for too long, if that is so: everything is sent again (RFC 6298 section 5).
    pub fn poll(&mut self, now: u64) {
        if self.timeout.is_none_or(|timeout| now < timeout) {
            return;
        }
        self.timeout = None;
        if self.flight.outstanding() == 0 {
            return;
        }
        let is_first = self.trip.timed_out();
        self.flight.all_lost();
        self.window.timed_out(is_first);
        // It grows again from one segment; what was lost before is no new sign of congestion.
        self.recovers = None;
        self.round_ends = Some(self.flight.next());
    }
}
