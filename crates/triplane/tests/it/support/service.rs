//! `triplane subscribe serve` as a process, and its clients.

// Not every test uses all of these items.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::support::{Done, Running, TEST_TIMEOUT, run, triplane};

pub const FORMAT: &str = "examples/market-data/feed.p4";

/// A running service.
pub struct Service {
    pub running: Running,
    pub address: String,
}

impl Service {
    pub fn start(rules: &str, switch: SocketAddr, more: &[&str]) -> Service {
        Service::of(FORMAT, rules, switch, more)
    }

    pub fn of(format: &str, rules: &str, switch: SocketAddr, more: &[&str]) -> Service {
        let switch = switch.to_string();
        let serve = ["subscribe", "serve", format, rules, "--addr", &switch, "--listen", "127.0.0.1:0"];
        let mut running = Running::start(&mut triplane(&[&serve[..], more].concat()));
        let address = running.wait_for_address("subscriptions on ");
        Service { running, address }
    }

    pub fn tell(&self, arguments: &[&str]) -> Done {
        run(&mut triplane(&[&["subscribe"], arguments, &["--service", &self.address]].concat()))
    }

    /// Adds a rule and returns its id.
    #[track_caller]
    pub fn add(&self, rule: &str) -> String {
        self.tell(&["add", rule]).ok().stdout.trim().to_owned()
    }

    pub fn list(&self) -> String {
        self.tell(&["list"]).ok().stdout
    }
}

/// Repeats an action until it succeeds.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "{what} never happens");
        std::thread::sleep(Duration::from_millis(50));
    }
}
