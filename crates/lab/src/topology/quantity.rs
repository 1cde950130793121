//! Parses and formats rates, delays and sizes, with their units.

use std::fmt;
use std::str::FromStr;

/// A rate in bits per second; `100Mbps` as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

/// A time in nanoseconds; `10us` as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay(u64);

/// A size of memory in bytes, at least 1; `64MiB` as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

/// A text that is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAQuantity {
    /// Not a rate.
    #[error("`{0}` is not a rate: write a number and its unit, `10Mbps`, `1.5Gbps`")]
    Rate(String),
    /// Not a delay.
    #[error("`{0}` is not a time: write a number and its unit, `10us`, `1.5ms`")]
    Delay(String),
    /// Not a size.
    #[error("`{0}` is not a size: write a number and its unit, `64MiB`, `1GiB`")]
    Size(String),
    /// More than [`Rate::MAX`], or less than 1 bit/s.
    #[error("`{0}` is out of range: rates must be from 1bps to {most}", most = Rate::MAX)]
    RateOutOfReach(String),
    /// More than [`Delay::MAX`].
    #[error("`{0}` is too long: the maximum is {most}", most = Delay::MAX)]
    DelayTooLong(String),
}

const RATES: [(&str, u64); 5] =
    [("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];

const DELAYS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// The number before a unit, in the smallest unit; exact for up to 9 digits after the decimal point. It saturates at
/// `u64::MAX`.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 9 || number.ends_with('.') {
        return None;
    }
    let scale = 10_u128.pow(part.len() as u32);
    // The text is all digits, so parsing fails only if the number is too large.
    let value: u128 = format!("{whole}{part}").parse().unwrap_or(u128::MAX);
    Some(u64::try_from(value.saturating_mul(u128::from(unit)) / scale).unwrap_or(u64::MAX))
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let (_, unit) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    scaled(number.trim(), *unit)
}

fn write(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits =
        units.iter().filter(|(_, unit)| value >= *unit && (u128::from(value) * 1000).is_multiple_of(u128::from(*unit)));
    let (name, unit) =
        fits.max_by_key(|(_, unit)| *unit).or(units.iter().min_by_key(|(_, unit)| *unit)).expect("units");
    let (whole, thousandths) = (value / unit, value % unit * 1000 / unit);
    let part = if thousandths == 0 { String::new() } else { format!(".{thousandths:03}") };
    write!(f, "{whole}{}{name}", part.trim_end_matches('0'))
}

impl Rate {
    /// The fastest rate: 1 Tbit/s.
    pub const MAX: Rate = Rate(1_000_000_000_000);

    /// Creates a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// Returns the rate in bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Returns the nanoseconds that `bytes` take at this rate, rounded up.
    pub const fn ns_for(self, bytes: u64) -> u64 {
        (bytes * 8 * 1_000_000_000).div_ceil(self.0)
    }
}

impl Delay {
    /// The longest delay: an hour.
    pub const MAX: Delay = Delay(3_600_000_000_000);

    /// Creates a delay of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Delay {
        Delay(ns)
    }

    /// Creates a delay of `us` microseconds.
    pub const fn from_us(us: u64) -> Delay {
        Delay(us * 1_000)
    }

    /// Creates a delay of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Delay {
        Delay(ms * 1_000_000)
    }

    /// Returns the delay in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}

impl Size {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Rate, NotAQuantity> {
        let rate = parse(text, &RATES).map(Rate).ok_or_else(|| NotAQuantity::Rate(text.to_owned()))?;
        let reached = rate.0 > 0 && rate <= Rate::MAX;
        reached.then_some(rate).ok_or_else(|| NotAQuantity::RateOutOfReach(text.to_owned()))
    }
}

impl FromStr for Delay {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Delay, NotAQuantity> {
        let delay = parse(text, &DELAYS).map(Delay).ok_or_else(|| NotAQuantity::Delay(text.to_owned()))?;
        (delay <= Delay::MAX).then_some(delay).ok_or_else(|| NotAQuantity::DelayTooLong(text.to_owned()))
    }
}

impl FromStr for Size {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Size, NotAQuantity> {
        let bytes = parse(text, &SIZES).filter(|bytes| (1..u64::MAX).contains(bytes));
        bytes.map(Size).ok_or_else(|| NotAQuantity::Size(text.to_owned()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &SIZES)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &RATES)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &DELAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly_and_written_back() {
        for (text, bps) in
            [("10Mbps", 10_000_000), ("1.5Gbps", 1_500_000_000), ("9600bps", 9600), ("0.5 Mbps", 500_000)]
        {
            assert_eq!(text.parse::<Rate>().unwrap().bps(), bps);
            assert_eq!(Rate(bps).to_string().parse(), Ok(Rate(bps)));
        }
        for (text, ns) in [("10us", 10_000), ("0.25ms", 250_000), ("2s", 2_000_000_000), ("0ns", 0)] {
            assert_eq!(text.parse::<Delay>().unwrap().as_ns(), ns);
            assert_eq!(Delay(ns).to_string().parse(), Ok(Delay(ns)));
        }
        for (text, bytes) in [("64MiB", 64 << 20), ("1.5 KiB", 1536), ("2GiB", 2 << 30), ("1B", 1)] {
            assert_eq!(text.parse::<Size>().unwrap().bytes(), bytes);
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
        assert_eq!(Delay(1_500).to_string(), "1.5us");
        assert_eq!(Size(16 << 20).to_string(), "16MiB");
        assert_eq!(Size(u64::MAX - 1).to_string().parse(), Ok(Size(u64::MAX - 1)));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", "10", "Mbps", "-1Mbps", "0Mbps", "2Tbps", "1e3bps", "1.Mbps", "99999999999999999999Mbps", "10us"]
        {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["", "5", "-1ms", "2h", "3601s"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
        for text in ["", "64", "MiB", "0KiB", "99999999999999GiB", "1MB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        let message = |text: &str| text.parse::<Delay>().unwrap_err().to_string();
        assert_eq!(message("3601s"), "`3601s` is too long: the maximum is 3600s");
        assert_eq!(message(&format!("{}s", "9".repeat(60))).split(' ').nth(1), Some("is"));
        assert!(message("2h").contains("is not a time"));
        let message = "2Tbps".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(message, "`2Tbps` is out of range: rates must be from 1bps to 1Tbps");
    }

    #[test]
    fn bytes_take_their_time_rounded_up() {
        assert_eq!(Rate(10_000_000).ns_for(1250), 1_000_000);
        assert_eq!(Rate(3).ns_for(1), 2_666_666_667);
    }
}
