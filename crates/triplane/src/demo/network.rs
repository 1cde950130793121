//! Creates the demo's network: two hosts in namespaces, each linked to a third namespace in which the router runs.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ports::namespace::{Namespace, NamespaceError, veth};
use wire::ethernet::Address;

/// Maximum wait for a link.
const LINK_TIMEOUT: Duration = Duration::from_secs(2);

/// Address of the first host.
pub const H1: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// Address of the second host.
pub const H2: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// An address that no route leads to.
pub const UNREACHABLE: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
/// MAC address of the first host, as `examples/router/entries.json` expects it.
pub const H1_MAC: Address = Address([2, 0, 0, 0, 1, 1]);
/// MAC address of the second host.
pub const H2_MAC: Address = Address([2, 0, 0, 0, 2, 2]);
/// The router's MAC addresses on its two ports.
pub const GATEWAY_MACS: [Address; 2] = [Address([2, 0, 0, 0, 1, 0xfe]), Address([2, 0, 0, 0, 2, 0xfe])];
/// The router's interfaces, in its namespace.
pub const INTERFACES: [&str; 2] = ["router-1", "router-2"];

/// The network of the live demo. It is removed on drop.
pub struct Network {
    /// The first host.
    pub h1: Namespace,
    /// The second host.
    pub h2: Namespace,
    /// The namespace of the router, which is that of this process.
    _router: Namespace,
}

impl Network {
    /// Creates the network.
    ///
    /// # Errors
    /// If namespaces cannot be created here.
    pub fn new() -> Result<Network, NamespaceError> {
        let router = Namespace::new_user()?;
        router.disable_ipv6()?;
        let h1 = host("h1", H1, H1_MAC, &router, INTERFACES[0])?;
        let h2 = host("h2", H2, H2_MAC, &router, INTERFACES[1])?;
        Ok(Network { h1, h2, _router: router })
    }
}

fn host(
    name: &str,
    address: Ipv4Addr,
    mac: Address,
    router: &Namespace,
    interface: &str,
) -> Result<Namespace, NamespaceError> {
    let host = Namespace::new(name)?;
    host.disable_ipv6()?;
    veth(&host, "eth0", router, interface)?;
    host.set_mac("eth0", mac.0)?;
    host.set_up("eth0")?;
    router.set_up(interface)?;
    host.wait_for_link("eth0", LINK_TIMEOUT)?;
    router.wait_for_link(interface, LINK_TIMEOUT)?;
    host.add_address("eth0", IpAddr::V4(address), 24)?;
    let [a, b, c, _] = address.octets();
    host.add_route(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, IpAddr::from([a, b, c, 254]))?;
    Ok(host)
}
