//! Keeps the copies of routes and permanent neighbours equal to the originals, which may change.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{neighbours, routes};
use crate::namespace::netlink::{ChangeSocket, RouteChange};

/// Maximum time of a wait for a change.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Time from a change until the copies are compared: changes come in groups, and each comparison reads all routes.
const PAUSE: Duration = Duration::from_millis(20);

/// Follows the changes of routes and permanent neighbours of the wire. Needs CAP_NET_ADMIN.
pub struct RouteFollower {
    changes: ChangeSocket,
    copies: Copies,
}

/// The copies at a device.
pub(super) struct Copies {
    pub wire: c_int,
    pub device: c_int,
    /// MTU of the device, in bytes.
    pub mtu: usize,
    /// The copies of permanent neighbours, by address.
    pub neighbours: BTreeMap<Vec<u8>, neighbours::Neighbour>,
    /// The copies of routes that the kernel refused.
    pub refused: Vec<routes::CopiedRoute>,
}

impl RouteFollower {
    /// Copies the permanent neighbours and the routes of an interface, and returns the numbers of routes. Changes from
    /// now on are not missed.
    pub(super) fn start(wire: c_int, device: c_int, mtu: usize) -> io::Result<(RouteFollower, routes::RouteCounts)> {
        let changes = ChangeSocket::open()?;
        let mut copies = Copies { wire, device, mtu, neighbours: BTreeMap::new(), refused: Vec::new() };
        copies.update_neighbours()?;
        let counts = copies.update_routes()?;
        Ok((RouteFollower { changes, copies }, counts))
    }

    /// Follows changes until `stop` is set.
    pub fn follow(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !crate::wait(&[self.changes.as_raw_fd()], LONGEST_WAIT).unwrap_or(false) {
                continue;
            }
            std::thread::sleep(PAUSE);
            let changed = self.changes.take();
            // Without a copy, the original remains, and is tried again at the next change.
            if changed.contains(&RouteChange::Neighbour) {
                let _ = self.copies.update_neighbours();
            }
            if changed.contains(&RouteChange::Route) {
                let _ = self.copies.update_routes();
            }
        }
    }
}

impl Copies {
    /// Makes the copies of routes equal to the originals.
    fn update_routes(&mut self) -> io::Result<routes::RouteCounts> {
        routes::update(self.wire, self.device, self.mtu, &mut self.refused)
    }

    /// Makes the copies of permanent neighbours equal to the originals. Nobody may answer requests for their addresses.
    fn update_neighbours(&mut self) -> io::Result<()> {
        let originals = neighbours::permanent(self.wire)?;
        for (address, copy) in &self.neighbours {
            if !originals.contains_key(address) {
                // The kernel or a user may have removed it.
                let _ = copy.remove_from(self.device).send();
            }
        }
        let mut copied = BTreeMap::new();
        for (address, found) in originals {
            let is_copied = self.neighbours.get(&address) == Some(&found);
            if is_copied || routes::allowed(found.add_to(self.device).send())? {
                copied.insert(address, found);
            }
        }
        self.neighbours = copied;
        Ok(())
    }
}
