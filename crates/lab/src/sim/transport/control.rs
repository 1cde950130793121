//! Computes congestion windows: Reno (RFC 5681), CUBIC (RFC 9438), and the reaction to ECN marks (RFC 3168, RFC 8257).

/// Congestion control algorithm of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// No congestion control: only the receiver's window limits the bytes in flight.
    None,
    /// Halves the window after a loss (RFC 5681).
    Reno,
    /// Grows the window by a cubic function of the time since the last loss (RFC 9438), and ends slow start when delays
    /// grow, as Linux does.
    #[default]
    Cubic,
}

/// Reaction of a sender to ECN marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Reacts to a mark as to a loss, once per round trip (RFC 3168).
    Classic,
    /// Reduces the window in proportion to the share of marked bytes (RFC 8257).
    Dctcp,
}

/// Number of segments in the initial window (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;

/// Number of segments in the smallest window after a loss (RFC 5681 section 3.1).
const MIN_WINDOW: f64 = 2.0;

/// Multiplicative decrease factor of CUBIC, and its growth constant C in segments per second cubed (RFC 9438 section
/// 5).
const CUBIC_KEEPS: f64 = 0.7;
const CUBIC_C: f64 = 0.4;

/// Weight of the newest window in DCTCP's estimate (RFC 8257 section 4.2).
const GAIN: f64 = 1.0 / 16.0;

/// Number of samples in a round before its delay counts, and bounds of the increase that ends slow start, which is an
/// eighth within these bounds (RFC 9406 section 4.3).
const DELAY_SAMPLES: u32 = 8;
const DELAY_GROWS_NS: std::ops::RangeInclusive<u64> = 4_000_000..=16_000_000;

/// The congestion window of a sender.
#[derive(Debug)]
pub struct Window {
    control: CongestionControl,
    /// Bytes of a segment.
    segment: f64,
    bytes: f64,
    /// Slow start threshold in bytes; `None` until the first loss.
    threshold: Option<f64>,
    cubic: Cubic,
    delay: Delay,
    marks: Marking,
}

/// CUBIC's variables of RFC 9438 section 4.1: W_max, cwnd_prior, and those of the time since a loss.
#[derive(Debug, Default)]
struct Cubic {
    most: f64,
    before: f64,
    growth: Option<Growth>,
}

/// CUBIC's variables t_epoch, K and W_est.
#[derive(Debug)]
struct Growth {
    since: u64,
    until_most_s: f64,
    reno: f64,
}

/// Minimum round-trip times of the current round and of the previous one.
#[derive(Debug, Default)]
struct Delay {
    last_ns: Option<u64>,
    this_ns: Option<u64>,
    samples: u32,
}

/// Bytes acknowledged in the current round, and the marked bytes among them.
#[derive(Debug)]
struct Marking {
    share: f64,
    all: f64,
    marked: f64,
    reduced: bool,
}

impl Window {
    /// Creates the initial window for segments of `segment` bytes.
    pub fn new(control: CongestionControl, segment: u64) -> Window {
        let segment = segment as f64;
        let marks = Marking { share: 1.0, all: 0.0, marked: 0.0, reduced: false };
        let (cubic, delay) = (Cubic::default(), Delay::default());
        Window { control, segment, bytes: FIRST_WINDOW * segment, threshold: None, cubic, delay, marks }
    }

    /// Returns the number of bytes that may be in flight.
    pub fn bytes(&self) -> u64 {
        if self.control == CongestionControl::None { u64::MAX } else { self.bytes as u64 }
    }

    fn is_slow_start(&self) -> bool {
        self.threshold.is_none_or(|threshold| self.bytes < threshold)
    }

    /// Grows the window after an acknowledgement of bytes that were sent while the window limited the sender.
    pub fn acknowledged(&mut self, now: u64, bytes: u64, trip_ns: u64) {
        let bytes = bytes as f64;
        if self.is_slow_start() {
            self.bytes += bytes;
        } else if self.control == CongestionControl::Cubic {
            self.bytes = self.cubic.grown(now, self.bytes, bytes, self.segment, trip_ns);
        } else {
            self.bytes += self.segment * bytes / self.bytes;
        }
    }

    /// Reduces the window after the first loss in a window.
    pub fn lost(&mut self) {
        let share = if self.control == CongestionControl::Cubic { CUBIC_KEEPS } else { 0.5 };
        self.cubic.lost(self.bytes);
        self.reduce(share);
    }

    /// Reduces the window after a retransmission timeout. Only the first timeout in a row lowers the threshold.
    pub fn timed_out(&mut self, is_first: bool) {
        if is_first {
            self.lost();
        }
        self.bytes = self.segment;
    }

    fn reduce(&mut self, share: f64) {
        self.bytes = (self.bytes * share).max(MIN_WINDOW * self.segment);
        self.threshold = Some(self.bytes);
    }

    /// Records a round-trip time. Slow start ends when delays grow.
    pub fn took(&mut self, trip_ns: u64) {
        let delay = &mut self.delay;
        delay.samples += 1;
        delay.this_ns = Some(delay.this_ns.unwrap_or(u64::MAX).min(trip_ns));
        if self.control == CongestionControl::Cubic
            && delay.samples >= DELAY_SAMPLES
            && let (Some(last), Some(this)) = (delay.last_ns, delay.this_ns)
            && this >= last + (last / 8).clamp(*DELAY_GROWS_NS.start(), *DELAY_GROWS_NS.end())
            && self.threshold.is_none()
        {
            self.threshold = Some(self.bytes);
        }
    }

    /// Counts acknowledged bytes, with or without the echo of a mark. Returns true if the window was reduced.
    pub fn marked(&mut self, bytes: u64, echo: bool, law: Law) -> bool {
        let marks = &mut self.marks;
        marks.all += bytes as f64;
        if !echo {
            return false;
        }
        marks.marked += bytes as f64;
        if std::mem::replace(&mut marks.reduced, true) {
            return false;
        }
        match law {
            Law::Classic => self.lost(),
            Law::Dctcp => self.reduce(1.0 - self.marks.share / 2.0),
        }
        true
    }

    /// Starts a new round: all bytes that were in flight at the previous call are acknowledged.
    pub fn round(&mut self) {
        let marks = &mut self.marks;
        if marks.all > 0.0 {
            marks.share = (1.0 - GAIN) * marks.share + GAIN * marks.marked / marks.all;
        }
        (marks.all, marks.marked, marks.reduced) = (0.0, 0.0, false);
        self.delay = Delay { last_ns: self.delay.this_ns, this_ns: None, samples: 0 };
    }
}

impl Cubic {
    /// Returns the window after some bytes were acknowledged (RFC 9438 sections 4.2 to 4.5).
    fn grown(&mut self, now: u64, window: f64, bytes: f64, segment: f64, trip_ns: u64) -> f64 {
        let growth = self.growth.get_or_insert_with(|| {
            self.most = self.most.max(window);
            let until_most_s = libm::cbrt((self.most - window) / segment / CUBIC_C);
            Growth { since: now, until_most_s, reno: window }
        });
        let elapsed_s = now.saturating_sub(growth.since) as f64 / 1e9;
        let at = |elapsed_s: f64| {
            let from_most_s = elapsed_s - growth.until_most_s;
            self.most + CUBIC_C * segment * from_most_s * from_most_s * from_most_s
        };
        let target = at(elapsed_s + trip_ns as f64 / 1e9).clamp(window, 1.5 * window);
        let cubic = at(elapsed_s);
        let share = if growth.reno >= self.before { 1.0 } else { 3.0 * (1.0 - CUBIC_KEEPS) / (1.0 + CUBIC_KEEPS) };
        growth.reno += share * segment * bytes / window;
        if cubic < growth.reno { growth.reno.max(window) } else { window + (target - window) * bytes / window }
    }

    /// Records the window at a loss. W_max is lower than the window if the window had not grown back (section 4.7).
    fn lost(&mut self, window: f64) {
        self.most = if window < self.most { window * (1.0 + CUBIC_KEEPS) / 2.0 } else { window };
        self.before = window;
        self.growth = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{CongestionControl, Law, Window};

    const SEGMENT: u64 = 1_000;

    fn window(control: CongestionControl) -> Window {
        Window::new(control, SEGMENT)
    }

    #[test]
    fn reno_doubles_until_a_loss_then_grows_by_a_segment_a_round_trip() {
        let mut window = window(CongestionControl::Reno);
        window.acknowledged(0, 10_000, 0);
        assert_eq!(window.bytes(), 20_000);
        window.lost();
        assert_eq!(window.bytes(), 10_000);
        (0..10).for_each(|_| window.acknowledged(0, 1_000, 0));
        assert!((10_900..11_000).contains(&window.bytes()), "{}", window.bytes());
    }

    #[test]
    fn cubic_is_back_where_it_was_after_the_time_that_its_law_says() {
        let mut window = window(CongestionControl::Cubic);
        window.acknowledged(0, 90_000, 0);
        window.lost();
        assert_eq!(window.bytes(), 70_000);
        // K is the cube root of 30 segments over 0.4: 4.2 s. A window is acknowledged every 100 ms.
        for round in 0..42 {
            window.acknowledged(round * 100_000_000, window.bytes(), 0);
        }
        assert!((99_000..101_500).contains(&window.bytes()), "{}", window.bytes());
    }

    /// RFC 9438 section 4.7: after a loss before the window has grown back, an established flow takes less.
    #[test]
    fn cubic_claims_less_when_it_loses_before_it_is_back() {
        let mut window = window(CongestionControl::Cubic);
        window.acknowledged(0, 90_000, 0);
        window.lost();
        assert_eq!(window.cubic.most, 100_000.0);
        window.lost();
        assert_eq!((window.bytes(), window.cubic.most), (49_000, 70_000.0 * 0.85));
    }

    /// RFC 9438 section 4.3: with short round trips, the cubic function would grow more slowly than Reno.
    #[test]
    fn cubic_grows_no_less_than_reno() {
        let mut window = window(CongestionControl::Cubic);
        window.acknowledged(0, 90_000, 0);
        window.lost();
        // 100 round trips of 1 ms grow the window by 0.53 segments each.
        for round in 0..100 {
            window.acknowledged(round * 1_000_000, window.bytes(), 1_000_000);
        }
        // Beyond the window of the loss, which is reached after 57 of them, growth is one segment each.
        assert!((138_000..145_000).contains(&window.bytes()), "{}", window.bytes());
    }

    /// RFC 9438 section 4.2: the bound holds however long the sender was idle.
    #[test]
    fn cubic_grows_by_half_a_window_in_a_round_trip_at_most() {
        let mut window = window(CongestionControl::Cubic);
        window.acknowledged(0, 90_000, 0);
        window.lost();
        window.acknowledged(0, 1_000, 0);
        let before = window.bytes();
        window.acknowledged(100_000_000_000, before, 0);
        assert!(window.bytes() > before && window.bytes() <= before + before / 2 + 1, "{}", window.bytes());
    }

    #[test]
    fn cubic_leaves_slow_start_when_the_round_trip_grows() {
        let mut window = window(CongestionControl::Cubic);
        for trip_ms in [20, 21, 30] {
            (0..10).for_each(|_| window.took(trip_ms * 1_000_000));
            assert_eq!(window.is_slow_start(), trip_ms < 30, "{trip_ms} ms");
            window.round();
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_halves_the_threshold_once() {
        let mut window = window(CongestionControl::Reno);
        window.timed_out(true);
        window.timed_out(false);
        assert_eq!((window.bytes(), window.threshold), (1_000, Some(5_000.0)));
    }

    #[test]
    fn marks_halve_a_window_once_a_round_trip() {
        let mut window = window(CongestionControl::Reno);
        assert!(!window.marked(1_000, false, Law::Classic));
        assert!(window.marked(1_000, true, Law::Classic));
        assert!(!window.marked(1_000, true, Law::Classic));
        assert_eq!(window.bytes(), 5_000);
        window.round();
        assert!(window.marked(1_000, true, Law::Classic));
    }

    #[test]
    fn dctcp_gives_way_by_the_share_of_marks() {
        let mut window = window(CongestionControl::Reno);
        // Fifty rounds of ten segments; one segment in each round is marked.
        for _ in 0..50 {
            (0..10).for_each(|segment| _ = window.marked(1_000, segment == 9, Law::Dctcp));
            window.round();
        }
        let share = window.marks.share;
        assert!((0.09..0.15).contains(&share), "{share}");
        window.bytes = 100_000.0;
        window.marked(1_000, true, Law::Dctcp);
        assert!((93_000..96_000).contains(&window.bytes()), "{}", window.bytes());
    }
}
