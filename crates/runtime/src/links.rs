//! Follows the links of a switch's ports: a port without a link is down.

use std::io;
use std::os::fd::RawFd;

use ports::{Link, LinkWatcher};
use switch::{PacketSwitch, PortId};

use crate::port_set::PortSet;

/// Called when a port has lost its link or has one again.
pub type LinkCallback = Box<dyn FnMut(PortId, bool) + Send>;

/// A port whose link is watched.
struct WatchedPort {
    /// Index of the port in its set.
    index: usize,
    link: Link,
    is_up: bool,
}

/// The links of the ports of a set.
pub(crate) struct PortLinks {
    watcher: LinkWatcher,
    ports: Vec<WatchedPort>,
    on_change: LinkCallback,
}

impl PortLinks {
    /// Watches the ports whose drivers have links in the calling thread's network namespace. Takes those down in the
    /// switch that have none now. Returns `None` if this process may not watch links: all ports count as having one.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn watch<S: PacketSwitch>(
        ports: &PortSet,
        switch: &mut S,
        on_change: LinkCallback,
    ) -> io::Result<Option<PortLinks>> {
        let Some(watcher) = LinkWatcher::open()? else { return Ok(None) };
        let links = ports.as_slice().iter().enumerate().filter_map(|(index, port)| Some((index, port.driver.link()?)));
        let watched = links.filter(|(_, link)| watcher.sees(link));
        let ports_now = watched.map(|(index, link)| WatchedPort { index, link, is_up: true }).collect();
        let mut links = PortLinks { watcher, ports: ports_now, on_change };
        // The watcher was opened first, so that no change is missed.
        (0..links.ports.len()).for_each(|at| _ = links.update(at, ports, switch));
        Ok(Some(links))
    }

    /// Returns the descriptor that is readable when a link may have changed; `None` if no link is watched.
    pub fn fd(&self) -> Option<RawFd> {
        (!self.ports.is_empty()).then(|| self.watcher.fd())
    }

    /// Takes ports up and down whose links have changed. Returns whether there was news.
    pub fn follow<S: PacketSwitch>(&mut self, ports: &PortSet, switch: &mut S) -> bool {
        if self.ports.is_empty() {
            return false;
        }
        let changes = self.watcher.take_changes();
        if changes.is_empty() {
            return false;
        }
        for at in 0..self.ports.len() {
            if changes.contains(&self.ports[at].link)
                && let Some(id) = self.update(at, ports, switch)
            {
                // A worker may have taken it up. What the owner sets reaches all of them.
                switch.set_port_up(id, self.ports[at].is_up);
            }
        }
        true
    }

    /// Forgets a port that can be used no longer.
    pub fn forget(&mut self, id: PortId, ports: &PortSet) {
        self.ports.retain(|watched| ports.as_slice()[watched.index].id != id);
    }

    /// Takes the port with this index up or down if its link has changed.
    pub fn recheck<S: PacketSwitch>(&mut self, index: usize, ports: &PortSet, switch: &mut S) {
        if let Some(at) = self.ports.iter().position(|watched| watched.index == index) {
            self.update(at, ports, switch);
        }
    }

    /// Asks for the link of a port, and takes the port up or down if it has changed. Returns the port, unless it is
    /// lost.
    fn update<S: PacketSwitch>(&mut self, at: usize, ports: &PortSet, switch: &mut S) -> Option<PortId> {
        let watched = &mut self.ports[at];
        let port = &ports.as_slice()[watched.index];
        if !port.is_live() {
            return None;
        }
        let is_up = watched.link.is_up();
        if watched.is_up != is_up {
            watched.is_up = is_up;
            switch.set_port_up(port.id, is_up);
            (self.on_change)(port.id, is_up);
        }
        Some(port.id)
    }
}
