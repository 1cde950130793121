//! Keeps the ports of a switch: their state and counters.

use crate::{PRIORITIES, PortId, Registry, Stat};

/// Maximum port number.
const MAX_PORT: u32 = u16::MAX as u32;

#[derive(Clone, Debug)]
struct Port {
    id: PortId,
    up: bool,
    rx: (Stat, Stat),
    tx: (Stat, Stat),
    queues: [QueueStats; PRIORITIES],
}

/// The counters of one egress queue.
#[derive(Clone, Copy, Debug)]
struct QueueStats {
    depth: Stat,
    packets: Stat,
    dropped: Stat,
}

/// What a packet needs of a port, in few bytes: packets go to any port.
#[derive(Clone, Copy, Debug, Default)]
struct PortEntry {
    /// Index of the port plus 1; 0 if there is none.
    index: u32,
    up: bool,
    /// The first of the port's counters, if they follow each other in the order of [`Port::stats`].
    first: Option<Stat>,
}

/// Positions of counters after the first one of a port.
mod position {
    pub const TX_PACKETS: u32 = 2;
    pub const TX_BYTES: u32 = 3;
    /// Those of the first queue; those of the next follow [`QUEUE`] later.
    pub const QUEUE_DEPTH: u32 = 4;
    pub const QUEUE_PACKETS: u32 = 5;
    pub const QUEUE_DROPPED: u32 = 6;
    pub const QUEUE: u32 = 3;
}

impl Port {
    /// Returns the counters in the order in which they are registered.
    fn stats(&self) -> impl Iterator<Item = Stat> {
        let queues = self.queues.into_iter().flat_map(|queue| [queue.depth, queue.packets, queue.dropped]);
        [self.rx.0, self.rx.1, self.tx.0, self.tx.1].into_iter().chain(queues)
    }
}

/// The counters of a port.
enum PortCounters<'p> {
    /// They follow this one, the first.
    Contiguous(Stat),
    /// Some existed before the port.
    Scattered(&'p Port),
}

impl PortCounters<'_> {
    /// Returns the counter at one of the [`position`]s.
    #[inline]
    fn at(&self, position: u32) -> Stat {
        match self {
            PortCounters::Contiguous(first) => first.after(position),
            PortCounters::Scattered(port) => port.stats().nth(position as usize).expect("a position of a counter"),
        }
    }
}

/// The ports of a switch. All are up at first.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    ports: Vec<Port>,
    /// By port number.
    entries: Vec<PortEntry>,
}

impl Ports {
    /// Registers the counters of these ports: `port.N.{rx,tx}.{packets,bytes}` and
    /// `queue.N.P.{depth,packets,dropped}`.
    ///
    /// # Errors
    /// A number that is given twice or exceeds 65535.
    pub fn new(ids: &[PortId], registry: &mut Registry) -> Result<Ports, PortId> {
        let mut this = Ports::default();
        for id in ids {
            this.add(*id, registry).map_err(|()| *id)?;
        }
        Ok(this)
    }

    fn add(&mut self, id: PortId, registry: &mut Registry) -> Result<(), ()> {
        if id.0 > MAX_PORT || self.find(id).is_some() {
            return Err(());
        }
        let at = id.0 as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, PortEntry::default());
        }
        let mut pair = |way: &str| {
            let packets = registry.register(format!("port.{id}.{way}.packets"));
            (packets, registry.register(format!("port.{id}.{way}.bytes")))
        };
        let (rx, tx) = (pair("rx"), pair("tx"));
        let queues = std::array::from_fn(|priority| {
            let mut stat = |what: &str| registry.register(format!("queue.{id}.{priority}.{what}"));
            QueueStats { depth: stat("depth"), packets: stat("packets"), dropped: stat("dropped") }
        });
        let port = Port { id, up: true, rx, tx, queues };
        let are_consecutive = port.stats().zip(0..).all(|(stat, at)| stat == rx.0.after(at));
        self.ports.push(port);
        let index = self.ports.len() as u32;
        self.entries[at] = PortEntry { index, up: true, first: are_consecutive.then_some(rx.0) };
        Ok(())
    }

    #[inline]
    fn find(&self, id: PortId) -> Option<&Port> {
        self.ports.get((self.entry(id).index as usize).checked_sub(1)?)
    }

    /// Returns the counters of a port, if the switch has it.
    #[inline]
    fn counters(&self, id: PortId) -> Option<PortCounters<'_>> {
        let contiguous = self.entry(id).first.map(PortCounters::Contiguous);
        contiguous.or_else(|| self.find(id).map(PortCounters::Scattered))
    }

    #[inline]
    fn entry(&self, id: PortId) -> PortEntry {
        self.entries.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Whether the switch has this port.
    #[inline]
    pub fn contains(&self, id: PortId) -> bool {
        self.entry(id).index != 0
    }

    /// Whether the switch has this port and it is up.
    #[inline]
    pub fn is_up(&self, id: PortId) -> bool {
        self.entry(id).up
    }

    /// Takes a port up or down. Returns false if there is no such port.
    pub fn set_up(&mut self, id: PortId, up: bool) -> bool {
        let entry = self.entries.get_mut(id.0 as usize).filter(|entry| entry.index != 0);
        let Some((entry, port)) = entry.and_then(|entry| {
            let port = self.ports.get_mut(entry.index as usize - 1)?;
            Some((entry, port))
        }) else {
            return false;
        };
        (entry.up, port.up) = (up, up);
        true
    }

    /// Returns the port numbers in the order in which they were given.
    pub fn ids(&self) -> impl Iterator<Item = PortId> {
        self.ports.iter().map(|port| port.id)
    }

    /// Counts a received frame. Ports that do not exist are ignored.
    pub fn count_rx(&self, registry: &mut Registry, id: PortId, bytes: usize) {
        self.count_many_rx(registry, id, 1, bytes as u64);
    }

    /// Counts received frames and their total length. Ports that do not exist are ignored.
    pub fn count_many_rx(&self, registry: &mut Registry, id: PortId, frames: u64, bytes: u64) {
        if let Some(Port { rx: (packets, total), .. }) = self.find(id) {
            registry.add(*packets, frames);
            registry.add(*total, bytes);
        }
    }

    /// Counts a transmitted frame. Ports that do not exist are ignored.
    #[inline]
    pub fn count_tx(&self, registry: &mut Registry, id: PortId, bytes: usize) {
        if let Some(counters) = self.counters(id) {
            registry.add(counters.at(position::TX_PACKETS), 1);
            registry.add(counters.at(position::TX_BYTES), bytes as u64);
        }
    }

    /// Counts packets that passed an open queue of a port at once, and those of them that were transmitted, with their
    /// total length. Ports that do not exist are ignored.
    #[inline]
    pub fn count_passed(&self, registry: &mut Registry, (id, priority): (PortId, usize), queued: u64, sent: [u64; 2]) {
        if let Some(counters) = self.counters(id).filter(|_| priority < PRIORITIES) {
            registry.add(counters.at(position::QUEUE_PACKETS + position::QUEUE * priority as u32), queued);
            registry.add(counters.at(position::TX_PACKETS), sent[0]);
            registry.add(counters.at(position::TX_BYTES), sent[1]);
        }
    }

    /// Prefetches the counters that [`Ports::count_passed`] changes for the first queues of a port.
    #[inline]
    pub fn prefetch_passed(&self, registry: &Registry, id: PortId) {
        if let Some(first) = self.entry(id).first {
            registry.prefetch(first.after(position::TX_PACKETS));
            registry.prefetch(first.after(position::QUEUE_PACKETS));
        }
    }

    /// Returns the numbers of bytes received and transmitted by a port; 0 if it does not exist.
    pub fn bytes(&self, registry: &Registry, id: PortId) -> [u64; 2] {
        self.find(id).map_or([0; 2], |port| [port.rx.1, port.tx.1].map(|stat| registry.value(stat)))
    }

    /// Subtracts transmitted frames and their total length, because the driver could not send them.
    pub fn take_back_tx(&self, registry: &mut Registry, id: PortId, frames: u64, bytes: u64) {
        if let Some(Port { tx: (packets, total), .. }) = self.find(id) {
            registry.take_back(*packets, frames);
            registry.take_back(*total, bytes);
        }
    }

    /// Returns the number of packets that the queues of a port dropped.
    pub fn queue_drops(&self, registry: &Registry, id: PortId) -> u64 {
        self.find(id).map_or(0, |port| port.queues.iter().map(|queue| registry.value(queue.dropped)).sum())
    }

    /// Counts a packet that entered a queue (`accepted`) or found it full, and records the queue's depth.
    #[inline]
    pub fn count_enqueue(&self, registry: &mut Registry, id: PortId, priority: usize, accepted: bool, depth: usize) {
        if let Some(counters) = self.counters(id).filter(|_| priority < PRIORITIES) {
            let counter = if accepted { position::QUEUE_PACKETS } else { position::QUEUE_DROPPED };
            registry.add(counters.at(counter + position::QUEUE * priority as u32), 1);
            registry.set(counters.at(position::QUEUE_DEPTH + position::QUEUE * priority as u32), depth as u64);
        }
    }

    /// Records the depth of a queue.
    pub fn set_depth(&self, registry: &mut Registry, id: PortId, priority: usize, depth: usize) {
        if let Some(queue) = self.find(id).and_then(|port| port.queues.get(priority)) {
            registry.set(queue.depth, depth as u64);
        }
    }

    /// Renders received and transmitted packets as a table for people, one line per port. Ports without packets are
    /// left out.
    pub fn render(&self, registry: &Registry) -> String {
        let head = ["port", "rx packets", "rx bytes", "tx packets", "tx bytes", ""].map(String::from);
        let mut rows = vec![head];
        for port in &self.ports {
            let numbers = [port.rx.0, port.rx.1, port.tx.0, port.tx.1].map(|stat| registry.value(stat));
            if port.up && numbers == [0; 4] {
                continue;
            }
            let [a, b, c, d] = numbers.map(|number| number.to_string());
            rows.push([port.id.to_string(), a, b, c, d, if port.up { "" } else { "down" }.to_string()]);
        }
        if rows.len() == 1 {
            return "no packets received or sent\n".to_string();
        }
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        let line = |row: &[String; 6]| {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            format!("{}\n", cells.join("  ").trim_end())
        };
        rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_count_frames_and_render_as_a_table() {
        let mut registry = Registry::default();
        let mut ports = Ports::new(&[PortId(1), PortId(20), PortId(3)], &mut registry).unwrap();
        ports.count_rx(&mut registry, PortId(1), 60);
        ports.count_tx(&mut registry, PortId(20), 1500);
        ports.count_tx(&mut registry, PortId(9), 1500);
        assert!(ports.set_up(PortId(20), false) && !ports.set_up(PortId(9), false));
        let expected = "\
port  rx packets  rx bytes  tx packets  tx bytes
   1           1        60           0         0
  20           0         0           1      1500  down
";
        assert_eq!(ports.render(&registry), expected);
        assert_eq!(registry.get("port.20.tx.bytes"), Some(1500));
        assert_eq!((ports.is_up(PortId(3)), ports.is_up(PortId(20)), ports.is_up(PortId(0))), (true, false, false));
    }

    #[test]
    fn packets_are_counted_wherever_their_counters_are() {
        // Counters that exist already are not where those of a new port would be.
        for scattered in [false, true] {
            let mut registry = Registry::default();
            if scattered {
                registry.register("port.7.tx.bytes");
                registry.register("queue.7.3.packets");
            }
            let ports = Ports::new(&[PortId(7)], &mut registry).unwrap();
            ports.count_passed(&mut registry, (PortId(7), 3), 5, [4, 260]);
            ports.count_passed(&mut registry, (PortId(7), PRIORITIES), 1, [1, 64]);
            ports.count_passed(&mut registry, (PortId(8), 0), 1, [1, 64]);
            ports.count_enqueue(&mut registry, PortId(7), 2, true, 9);
            ports.count_enqueue(&mut registry, PortId(7), 2, false, 8);
            ports.count_enqueue(&mut registry, PortId(7), PRIORITIES, true, 9);
            ports.count_enqueue(&mut registry, PortId(8), 0, true, 9);
            ports.count_tx(&mut registry, PortId(7), 40);
            ports.count_tx(&mut registry, PortId(8), 40);
            let counted: Vec<_> = registry.iter().filter(|(_, value)| *value > 0).collect();
            let expected = [
                ("port.7.tx.bytes", 300),
                ("port.7.tx.packets", 5),
                ("queue.7.2.depth", 8),
                ("queue.7.2.dropped", 1),
                ("queue.7.2.packets", 1),
                ("queue.7.3.packets", 5),
            ];
            assert_eq!(counted, expected.map(|(name, value)| (name.to_owned(), value)));
        }
    }

    #[test]
    fn a_port_given_twice_or_out_of_range_is_refused() {
        let mut registry = Registry::default();
        assert_eq!(Ports::new(&[PortId(1), PortId(1)], &mut registry).err(), Some(PortId(1)));
        assert_eq!(Ports::new(&[PortId(65536)], &mut registry).err(), Some(PortId(65536)));
    }
}
