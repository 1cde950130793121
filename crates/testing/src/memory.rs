//! The memory of processes, as the kernel reports it in `/proc/PID/status` (proc(5)).

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
