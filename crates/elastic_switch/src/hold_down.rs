//! Hold-down of servers whose links flap.

use switch::Time;

/// Shortest hold-down.
const FIRST_NS: u64 = 1_000_000_000;

/// Longest hold-down.
const LONGEST_NS: u64 = 60_000_000_000;

/// Time in use after which the next loss of the link is the first one again.
const STABLE_NS: u64 = 10_000_000_000;

/// The hold-down of a server's link. A server that returns is filled again, which takes the rate of its link, and all
/// of it is in vain if the link is lost before the end. A link that is lost once is used as soon as it returns. One
/// that is lost again within 10 s is held for 1 s, and each time for twice as long, up to 60 s.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HoldDown {
    /// Time from the link's return to its use, in nanoseconds.
    delay_ns: u64,
    /// When the link returned last, unless it was never lost.
    returned: Option<Time>,
    is_lost: bool,
}

impl HoldDown {
    /// Notes that the link is down.
    pub fn lose(&mut self, now: Time) {
        if std::mem::replace(&mut self.is_lost, true) {
            return;
        }
        let stable = self.returned.map(|returned| returned.after_ns(self.delay_ns + STABLE_NS));
        self.delay_ns = match stable {
            Some(stable) if now < stable => (2 * self.delay_ns).clamp(FIRST_NS, LONGEST_NS),
            _ => 0,
        };
    }

    /// Notes that the link is up. Returns the time from which it may be used.
    pub fn regain(&mut self, now: Time) -> Time {
        if std::mem::take(&mut self.is_lost) {
            self.returned = Some(now);
        }
        self.until().unwrap_or(now)
    }

    /// Returns the time from which the link may be used, if it is up and was down.
    pub fn until(&self) -> Option<Time> {
        self.returned.filter(|_| !self.is_lost).map(|returned| returned.after_ns(self.delay_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Time {
        Time::from_ns(seconds * 1_000_000_000)
    }

    #[test]
    fn the_first_loss_is_not_held_and_each_further_one_twice_as_long() {
        let mut link = HoldDown::default();
        let (mut now, mut delays) = (100, Vec::new());
        for _ in 0..9 {
            link.lose(seconds(now));
            // What is repeated is no further loss.
            link.lose(seconds(now + 1));
            assert_eq!(link.until(), None);
            let until = link.regain(seconds(now + 2));
            assert_eq!(link.regain(seconds(now + 3)), until);
            assert_eq!(link.until(), Some(until));
            delays.push(until.as_ns() / 1_000_000_000 - now - 2);
            now = until.as_ns() / 1_000_000_000 + 9;
        }
        assert_eq!(delays, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        // It was in use for 10 s.
        link.lose(seconds(now + 1));
        assert_eq!(link.regain(seconds(now + 2)), seconds(now + 2));
    }

    #[test]
    fn a_link_that_is_lost_while_it_is_held_is_held_longer() {
        let mut link = HoldDown::default();
        link.lose(seconds(1));
        link.regain(seconds(2));
        link.lose(seconds(3));
        assert_eq!(link.regain(seconds(4)), seconds(5));
        link.lose(Time::from_ns(4_500_000_000));
        assert_eq!(link.regain(seconds(5)), seconds(7));
    }
}
