//! Assigns P4Runtime addresses to the switches of a live lab.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use diagnostics::{Diagnostic, Diagnostics};
use lab::{Endpoint, Topology};

/// The P4Runtime port of the first switch, as in the public tutorials.
pub const DEFAULT_CONTROLLER_PORT: u16 = 50051;

/// The P4Runtime address and device id of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerEndpoint {
    /// The address on this machine, outside the lab's namespaces.
    pub address: SocketAddr,
    /// The device id that controllers specify.
    pub device_id: u64,
}

/// Assigns addresses: switch `i` is device `i`, and its port is `i` ports after the first. With `first`, every switch
/// gets an address; without it, only those for which the topology requests one.
pub fn assign_endpoints(
    topology: &Topology,
    first: Option<SocketAddr>,
    diagnostics: &mut Diagnostics,
) -> Vec<Option<ControllerEndpoint>> {
    let base = first.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_CONTROLLER_PORT));
    let mut seen = BTreeMap::new();
    let mut served = Vec::new();
    for (at, switch) in topology.switches.iter().enumerate() {
        let port = u16::try_from(at).ok().and_then(|at| base.port().checked_add(at));
        let address = match (switch.p4runtime, first) {
            (Some(Endpoint::At(address)), _) => Some(address),
            (Some(Endpoint::Allotted), _) | (None, Some(_)) if port.is_none() => {
                let message = format!("no port is left for P4Runtime on `{}`", switch.name);
                let finding = Diagnostic::error("topology", switch.span, message);
                diagnostics.push(finding.help(format!("start at a port below {}", base.port())));
                None
            }
            (Some(Endpoint::Allotted), _) | (None, Some(_)) => port.map(|port| SocketAddr::new(base.ip(), port)),
            (None, None) => None,
        };
        if let Some(address) = address
            && let Some(earlier) = seen.insert(address, switch)
        {
            let message = format!("`{}` and `{}` both serve P4Runtime at {address}", earlier.name, switch.name);
            let finding = Diagnostic::error("topology", switch.span, message);
            diagnostics.push(finding.also(earlier.span, "first used here"));
        }
        let device_id = switch.device_id.unwrap_or(at as u64);
        served.push(address.map(|address| ControllerEndpoint { address, device_id }));
    }
    served
}
