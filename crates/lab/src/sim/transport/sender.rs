//! Transmits and retransmits the segments of one direction of a connection.

use super::control::{CongestionControl, Law, Window};
use super::flight::{Due, Flight, Heard};
use super::rtt::RoundTrip;

/// A sender's view of a connection.
#[derive(Debug)]
pub struct Sender {
    pub flight: Flight,
    window: Window,
    trip: RoundTrip,
    /// Loss recovery lasts until this byte is acknowledged.
    recovers: Option<u64>,
    /// The round ends when this byte is acknowledged; `None` if nothing was in flight when the last one ended.
    round_ends: Option<u64>,
    /// Time at which the retransmission timer expires.
    timeout: Option<u64>,
}

/// The contents of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement<'a> {
    /// All bytes before this one are acknowledged.
    pub up_to: u64,
    /// Selectively acknowledged ranges beyond it (RFC 2018).
    pub ranges: &'a [(u64, u64)],
    /// Whether it echoes a mark.
    pub echo: bool,
}

impl Sender {
    /// Creates a sender whose first byte has this number.
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

    /// Processes an acknowledgement. Returns true if its mark reduced the window.
    pub fn acknowledged(&mut self, now: u64, said: Acknowledgement<'_>, law: Option<Law>) -> bool {
        let (flight, window) = (&mut self.flight, &mut self.window);
        // Only a sender that has more to send than the window allows may have a larger window.
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

    /// Returns the next segment to send now.
    pub fn send(&mut self, now: u64) -> Option<Due<'_>> {
        let allowed = self.window.bytes().saturating_sub(self.flight.on_the_way());
        let due = self.flight.send(now, allowed)?;
        let timeout_ns = self.trip.timeout_ns();
        self.timeout.get_or_insert(now + timeout_ns);
        Some(due)
    }

    /// Returns the time at which the sender wants to be polled if no acknowledgement arrives.
    pub fn timeout(&self) -> Option<u64> {
        self.timeout
    }

    /// Sends everything again if the retransmission timer has expired (RFC 6298 section 5).
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
        // The window grows again from one segment; earlier losses are not a new sign of congestion.
        self.recovers = None;
        self.round_ends = Some(self.flight.next());
    }
}
