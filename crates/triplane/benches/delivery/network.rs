//! An exchange, a switch and a subscriber, each in its own network namespace. The namespaces end with the value.
//!
//! ```text
//! exchange 10.2.0.1 eth0 ── r1 switch r2 ── eth0 10.2.0.2 subscriber
//! ```

use std::net::IpAddr;
use std::time::Duration;

use ports::namespace::{Namespace, NamespaceError, veth};

/// The hosts' addresses, and the group that the feed goes to.
pub const EXCHANGE: &str = "10.2.0.1";
pub const SUBSCRIBER: &str = "10.2.0.2";
pub const GROUP: &str = "239.1.1.1";

pub struct Network {
    pub exchange: Namespace,
    pub switch: Namespace,
    pub subscriber: Namespace,
}

impl Network {
    pub fn new() -> Result<Network, NamespaceError> {
        let switch = Namespace::new("switch")?;
        let (exchange, subscriber) = (Namespace::new("exchange")?, Namespace::new("subscriber")?);
        switch.disable_ipv6()?;
        for (host, end, last) in [(&exchange, "r1", 1), (&subscriber, "r2", 2)] {
            host.disable_ipv6()?;
            veth(host, "eth0", &switch, end)?;
            host.set_up("eth0")?;
            switch.set_up(end)?;
            host.wait_for_link("eth0", Duration::from_secs(2))?;
            switch.wait_for_link(end, Duration::from_secs(2))?;
            host.add_address("eth0", IpAddr::from([10, 2, 0, last]), 24)?;
        }
        Ok(Network { exchange, switch, subscriber })
    }
}
