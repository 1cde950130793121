//! The memory of processes, as the kernel reports it in `/proc/PID/status` and `smaps` (proc(5)).

use std::process::{Child, ExitStatus};
use std::time::Duration;

/// Returns the resident memory of a process in bytes; `None` if it has ended.
pub fn resident_bytes(process: u32) -> Option<u64> {
    read(process, "VmRSS:")
}

/// Waits until a process ends. Returns its status and the maximum of its resident memory in bytes, read every 5 ms.
pub fn wait_and_measure(child: &mut Child) -> std::io::Result<(ExitStatus, u64)> {
    let mut most = 0;
    loop {
        most = read(child.id(), "VmHWM:").unwrap_or(0).max(most);
        if let Some(status) = child.try_wait()? {
            return Ok((status, most));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn read(process: u32, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kib << 10)
}

/// Returns the KiB of anonymous executable memory of this process.
pub fn executable_kib() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let (mut is_code, mut kib) = (false, 0);
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, flags, _, _, _] if flags.len() == 4 => is_code = flags.contains('x'),
            [_, flags, _, _, _, ..] if flags.len() == 4 => is_code = false,
            ["Rss:", size, "kB"] if is_code => kib += size.parse::<u64>().unwrap_or(0),
            _ => {}
        }
    }
    kib
}
