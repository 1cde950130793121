//! Skips tests that a machine cannot run: they need a privilege or a tool that it lacks.
//!
//! ```no_run
//! # fn is_root() -> bool { false }
//! fn pings_cross_the_router() {
//!     if !is_root() {
//!         return testing::skip("needs root");
//!     }
//!     // ...
//! }
//! ```
//!
//! The test harness knows no skipped tests: one that returns early has passed. So a skip is reported in three ways. It
//! is printed. It is a line of the file that `TRIPLANE_SKIP_LOG` names, which `cargo xtask ci` counts. And it is a
//! failure where `TRIPLANE_NO_SKIP` is `1`, because a machine that is meant to run every test must not silently run
//! fewer. For a feature that cannot be installed, such as one that the kernel was built without, there is [`optional`].

use std::io::Write;

/// Whether a test that would skip fails instead.
pub fn forbidden() -> bool {
    std::env::var_os("TRIPLANE_NO_SKIP").is_some_and(|value| value == "1")
}

/// Records that the calling test does not run, with the reason (`needs root`). The test returns right after.
///
/// # Panics
/// Where skipping is [`forbidden`].
#[track_caller]
pub fn skip(reason: &str) {
    assert!(!forbidden(), "this test may not be skipped here (TRIPLANE_NO_SKIP=1), but: {reason}");
    optional(reason);
}

/// Like [`skip`], for a feature that a machine may lack even where every test is meant to run.
pub fn optional(reason: &str) {
    println!("skipped: {reason}");
    let Some(path) = std::env::var_os("TRIPLANE_SKIP_LOG") else { return };
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // One `write` of a whole line, appended: test processes that run at the same time do not tear each other's lines.
    let line = format!("{name}: {reason}\n");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file that TRIPLANE_SKIP_LOG names");
}
