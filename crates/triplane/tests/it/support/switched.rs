//! Two hosts of one subnet with a switch between them, in namespaces without names:
//!
//! ```text
//!  h1 10.0.0.1/24 ── eth0   p1 ── switch ── p2   eth0 ── 10.0.0.2/24 h2
//! ```

use std::net::IpAddr;

use ports::namespace::{Namespace, NamespaceError, veth_with_queues};

use super::TEST_TIMEOUT;

/// The namespaces. The hosts know each other's MAC address.
pub struct SwitchedHosts {
    pub switch: Namespace,
    pub h1: Namespace,
    pub h2: Namespace,
}

impl SwitchedHosts {
    /// Creates the network. `None`, and the test is skipped, where that is not possible.
    pub fn new() -> Option<SwitchedHosts> {
        match SwitchedHosts::create() {
            Err(error @ NamespaceError::Refused { .. }) => {
                testing::skip(&error.to_string());
                None
            }
            network => Some(network.expect("a network")),
        }
    }

    fn create() -> Result<SwitchedHosts, NamespaceError> {
        let (switch, h1, h2) = (Namespace::new("switch")?, Namespace::new("h1")?, Namespace::new("h2")?);
        switch.disable_ipv6()?;
        switch.set_up("lo")?;
        for (host, number) in [(&h1, 1), (&h2, 2)] {
            let end = format!("p{number}");
            host.disable_ipv6()?;
            veth_with_queues(host, "eth0", &switch, &end, 1)?;
            host.set_mac("eth0", [2, 0, 0, 0, 0, number])?;
            host.add_address("eth0", IpAddr::from([10, 0, 0, number]), 24)?;
            host.set_up("eth0")?;
            switch.set_up(&end)?;
            assert!(host.wait_for_link("eth0", TEST_TIMEOUT)? && switch.wait_for_link(&end, TEST_TIMEOUT)?);
            let other = 3 - number;
            host.add_neighbour("eth0", IpAddr::from([10, 0, 0, other]), [2, 0, 0, 0, 0, other])?;
        }
        Ok(SwitchedHosts { switch, h1, h2 })
    }
}
