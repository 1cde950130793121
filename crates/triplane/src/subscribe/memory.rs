//! Determines the memory limit of diagrams on this machine.

use std::fs::read_to_string;
use std::path::Path;

use subscribe::Limits;

use super::report::digits;

/// The source of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitSource {
    /// The default limit.
    Ordinary,
    /// The user.
    User,
    /// Half of an available amount: the whole amount in bytes, and a phrase that names its source.
    Half(u64, &'static str),
}

/// The memory that diagrams may take, and the source of this limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    bytes: usize,
    set: LimitSource,
}

impl MemoryLimit {
    /// Returns the limit that the user asked for, or else the minimum of the default limit and half of each amount that
    /// limits this process now. The other half is for the results of diagrams: entries, and their text.
    pub fn now(asked: Option<u64>) -> MemoryLimit {
        MemoryLimit::of(asked, &available())
    }

    fn of(asked: Option<u64>, available: &[(u64, &'static str)]) -> MemoryLimit {
        if let Some(bytes) = asked {
            return MemoryLimit { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), set: LimitSource::User };
        }
        let ordinary = MemoryLimit { bytes: Limits::default().bytes, set: LimitSource::Ordinary };
        let half = |(bytes, whose): &(u64, &'static str)| MemoryLimit {
            bytes: usize::try_from(bytes / 2).unwrap_or(usize::MAX),
            set: LimitSource::Half(*bytes, whose),
        };
        available.iter().map(half).chain([ordinary]).min_by_key(|limit| limit.bytes).unwrap_or(ordinary)
    }

    /// Returns the limits of the compiler.
    pub fn limits(self) -> Limits {
        Limits { bytes: self.bytes, ..Limits::default() }
    }

    /// Names the limit, as the rest of a sentence.
    pub fn describe(self) -> String {
        let why = match self.set {
            LimitSource::Ordinary => "the default limit".to_owned(),
            LimitSource::User => return "the limit of --memory".to_owned(),
            LimitSource::Half(bytes, whose) => format!("half of the {} MB {whose}", digits(bytes >> 20)),
        };
        format!("{why}; --memory changes it")
    }
}

/// Parses a number of bytes as people write it: `512M`, `2G`, `100000K`, or bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len());
    let shift = match unit {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("`{unit}` is not a valid unit: expected K, M or G, as in 512M or 2G")),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a number with the suffix K, M or G, such as 512M or 2G".to_owned())
}

/// Returns the remaining bytes of each resource that limits this process, with a phrase that names the resource.
fn available() -> Vec<(u64, &'static str)> {
    let read = |path: &str| read_to_string(path).unwrap_or_default();
    let machine = kilobytes(&read("/proc/meminfo"), "MemAvailable:");
    let in_use = kilobytes(&read("/proc/self/status"), "VmSize:").unwrap_or(0);
    let space = address_space(&read("/proc/self/limits")).map(|bytes| bytes.saturating_sub(in_use));
    let group = group(&read("/proc/self/cgroup"), &|path| read_to_string(path).ok());
    let named = [
        (machine, "available on this machine"),
        (space, "of address space left by `ulimit -v`"),
        (group, "left by the control group (memory.max)"),
    ];
    named.into_iter().filter_map(|(bytes, whose)| Some((bytes?, whose))).collect()
}

/// Parses a line of a file in /proc, such as `MemAvailable:    1234 kB`, and returns bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the soft limit of the address space, from /proc/self/limits.
fn address_space(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the minimum that any control group (version 2) of this process leaves: groups limit the groups inside them,
/// too.
fn group(of_process: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let own = of_process.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounted = Path::new("/sys/fs/cgroup");
    let own = mounted.join(own.trim());
    let number = |path: &Path, name: &str| read(&path.join(name))?.trim().parse::<u64>().ok();
    let left = |path: &Path| Some(number(path, "memory.max")?.saturating_sub(number(path, "memory.current")?));
    own.ancestors().take_while(|path| path.starts_with(mounted)).filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_limits_counts_and_says_which_it_is() {
        let limit = |available: &[(u64, &'static str)]| MemoryLimit::of(None, available);
        assert_eq!(limit(&[]).limits(), Limits::default());
        assert_eq!(limit(&[(64 << 30, "here")]).limits(), Limits::default());
        let least = limit(&[(6 << 30, "here"), (300 << 20, "there")]);
        assert_eq!(
            (least.limits().bytes, least.describe()),
            (150 << 20, "half of the 300 MB there; --memory changes it".to_owned())
        );
        let asked = MemoryLimit::of(Some(8 << 30), &[(300 << 20, "there")]);
        assert_eq!((asked.limits().bytes, asked.describe().as_str()), (8 << 30, "the limit of --memory"));
    }

    #[test]
    fn files_of_the_system_are_read_as_they_are() {
        assert_eq!(kilobytes("MemTotal:  9 kB\nMemAvailable:   2048 kB\n", "MemAvailable:"), Some(2 << 20));
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \nMax address \
                      space         2048000000           unlimited            bytes     \n";
        assert_eq!(address_space(limits), Some(2_048_000_000));
        assert_eq!(address_space(&limits.replace("2048000000", "unlimited ")), None);
        let files = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/a/memory.current" => "400\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(group("1:name=systemd:/x\n0::/a/b\n", &files), Some(600));
        assert_eq!(group("0::/\n", &files), None);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(["512M", "2G", "10k", "7"].map(size), [Ok(512 << 20), Ok(2 << 30), Ok(10 << 10), Ok(7)]);
        assert!(["", "M", "0", "2T", "-1", "99999999999G"].iter().all(|text| size(text).is_err()));
    }
}
