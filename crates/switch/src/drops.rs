//! Reasons and places of dropped packets.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use diagnostics::SourcePosition;

use crate::{Registry, Stat};

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident, $name:literal, $sentence:literal;)*) => {
        /// The reason why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropReason {
            $($(#[$doc])* $reason,)*
        }

        impl DropReason {
            /// All reasons.
            pub const ALL: &[DropReason] = &[$(DropReason::$reason),*];

            /// Returns the stable name, which follows `drop.` in the [`Registry`].
            pub fn name(self) -> &'static str {
                match self { $(DropReason::$reason => $name,)* }
            }

            /// Returns the text that completes the sentence "12 dropped ...".
            pub fn sentence(self) -> &'static str {
                match self { $(DropReason::$reason => $sentence,)* }
            }
        }
    };
}

reasons! {
    /// The frame is shorter than the switch accepts.
    Runt, "rx.runt", "on receipt: the frame is too short";
    /// The frame is longer than the switch accepts.
    Oversized, "rx.oversized", "on receipt: the frame is too long";
    /// The switch does not have the port on which the frame arrived.
    NoIngressPort, "rx.no-such-port", "on receipt: the switch has no such port";
    /// The port on which the frame arrived is down.
    IngressPortDown, "rx.port-down", "on receipt: the port is down";
    /// The frame has a tiny packet program, and the port on which it arrived refuses them.
    ProgramRefused, "rx.tpp-refused", "on receipt: the port refuses tiny packet programs";
    /// The parser rejected the packet, on an architecture that drops such packets.
    Parser, "parser", "by the parser";
    /// The ingress program dropped the packet.
    IngressProgram, "ingress.program", "in ingress by the program";
    /// An assertion of ingress was false.
    IngressAssert, "ingress.assert", "in ingress: an assertion of the program failed";
    /// The multicast group that ingress chose does not exist.
    NoGroup, "multicast.no-such-group", "after ingress: the multicast group does not exist";
    /// The multicast group that ingress chose has no members.
    EmptyGroup, "multicast.empty-group", "after ingress: the multicast group has no members";
    /// The mirror session of a clone does not exist; only the clone is lost.
    NoMirrorSession, "clone.no-such-session", "as clones: the mirror session does not exist";
    /// The egress queue was full.
    QueueFull, "queue.full", "after ingress: the egress queue is full";
    /// The egress program dropped the packet.
    EgressProgram, "egress.program", "in egress by the program";
    /// An assertion of egress was false.
    EgressAssert, "egress.assert", "in egress: an assertion of the program failed";
    /// The packet became longer than the switch sends.
    TooLong, "tx.too-long", "on sending: the program made the frame too long";
    /// The switch does not have the egress port.
    NoEgressPort, "tx.no-such-port", "on sending: the switch has no such port";
    /// The egress port is down.
    EgressPortDown, "tx.port-down", "on sending: the port is down";
    /// The INT header of the packet asks the sink to discard it.
    IntDiscard, "tx.int-discard", "on sending: their INT header asks for it at the sink";
    /// The port takes tiny packet programs out of frames, and that of the frame cannot be taken out.
    ProgramStays, "tx.tpp-strip", "on sending: the port strips programs, and theirs is damaged, done or without packet";
    /// The transmit queue of the port's device was full.
    PortFull, "tx.device-full", "on sending: the device's queue is full";
    /// The port's device does not send frames of this length.
    PortLength, "tx.device-length", "on sending: too long for the device, or too short for a frame";
    /// The port's device has no link or is gone.
    PortLost, "tx.device-down", "on sending: the device is down or gone";
    /// A block of the program exceeded its execution limit.
    OutOfFuel, "program-limit", "for running too long";
    /// A table with remote entries has not answered.
    NotYet, "table.not-ready", "because a table had not answered yet";
    /// Too many packets wait for the entries of tables in the memory of servers.
    TableQueueFull, "table.queue-full", "because too many packets wait for entries in the memory of servers";
    /// No server with the part of the table that the packet needs is connected.
    NoMemoryServer, "table.no-server", "because no memory server with the part of the table was connected";
    /// The links to all servers with the part of the table were at the maximum rate of READs.
    MemoryLinksBusy, "table.links-busy", "because the links to all memory servers were at the maximum rate";
    /// No memory server gave a valid answer.
    NoMemoryAnswer, "table.no-answer", "because no memory server gave a valid answer";
    /// The switch stopped while the packet waited for an entry in the memory of a server.
    TableWaitEnded, "table.stopped", "because the switch stopped while they waited for entries of a table";
    /// No store gave the switch the row that the packet needs, or the row was lost before its writes were acknowledged.
    RowUnavailable, "resilient.unavailable", "because no store gave or kept the row of their state";
    /// All numbers of the pool of the packet's row are taken.
    RowPoolExhausted, "resilient.pool-exhausted", "because all numbers of a pool are taken";
    /// The stores have their maximum number of rows.
    RowStoreFull, "resilient.store-full", "because the stores are full of resilient state";
    /// The switch owns or asks for its maximum number of rows, or a table of resilient state is full.
    RowSwitchFull, "resilient.switch-full", "because the switch has its maximum number of rows of resilient state";
    /// The rows of the packet's group were moved away from the switch.
    RowsAway, "resilient.away", "because their state was moved to other switches";
    /// The switch stopped while the packet waited for a row, or its outputs for an acknowledgement.
    RowWaitEnded, "resilient.stopped", "because the switch stopped while they waited for resilient state";
    /// Too many packets wait for rows or for acknowledgements.
    RowQueueFull, "resilient.hold-full", "because too many packets wait for resilient state";
    /// The frame travelled with a write of its row, and did not return with the acknowledgement.
    RowOutputLost, "resilient.output-lost", "because the stores did not return the frames that travelled with a write";
    /// The packet used a second row of resilient registers.
    SecondRow, "resilient.two-rows", "because they use two rows of resilient registers";
    /// The packet used resilient registers whose last snapshot is older than their bound.
    StaleSnapshot, "resilient.bound", "because the snapshot of resilient registers is older than its bound";
    /// The packet exceeded the limit of passes or copies.
    LoopLimit, "loop-limit", "by the limit on passes and copies of one packet";
}

/// A statement of the program and the number of packets that it dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropSite {
    /// The reason.
    pub reason: DropReason,
    /// The statement, and the action or control that contains it; `None` if no statement caused the drop.
    pub place: Option<(SourcePosition, String)>,
    /// Number of packets.
    pub packets: u64,
}

impl DropSite {
    /// Returns `{"reason": .., "packets": .., "place": .., "body": ..}`; place and body are null where there is none.
    pub fn to_json(&self) -> serde_json::Value {
        let place = self.place.as_ref();
        serde_json::json!({
            "reason": self.reason.name(),
            "packets": self.packets,
            "place": place.map(|(place, _)| place.to_string()),
            "body": place.map(|(_, body)| body),
        })
    }
}

impl std::fmt::Display for DropSite {
    /// `12 dropped in ingress by the program at router.p4:88:9 (MyIngress.drop)`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} dropped {}", self.packets, self.reason.sentence())?;
        match &self.place {
            Some((place, body)) if body.is_empty() => write!(f, " at {place}"),
            Some((place, body)) => write!(f, " at {place} ({body})"),
            None => Ok(()),
        }
    }
}

/// Number of sites that are found without a search.
const RECENT: usize = 32;

/// Drop counters by reason and place, in a [`Registry`]: `drop.ingress.program` counts all drops of a reason,
/// `drop.ingress.program.at.router.p4:88:9` those at one place.
///
/// Clones, for other workers, share the list of sites.
#[derive(Clone, Debug)]
pub struct Drops {
    reasons: Vec<Stat>,
    /// The sites at which this worker has dropped packets.
    sites: BTreeMap<(DropReason, u32), Stat>,
    /// Some of them, each at the place that its number selects.
    recent: [Option<(DropReason, u32, Stat)>; RECENT],
    /// The sites of all workers.
    all: Arc<Mutex<BTreeMap<(DropReason, u32), Stat>>>,
    places: Arc<HashMap<u32, (SourcePosition, String)>>,
}

impl Drops {
    /// Registers all reasons. `places` maps the site numbers of [`Drops::count`] to source positions and to the
    /// bodies that contain them.
    pub fn new(registry: &mut Registry, places: HashMap<u32, (SourcePosition, String)>) -> Drops {
        let reasons = DropReason::ALL.iter().map(|reason| registry.register(format!("drop.{}", reason.name())));
        Drops {
            reasons: reasons.collect(),
            sites: BTreeMap::new(),
            recent: [None; RECENT],
            all: Arc::default(),
            places: Arc::new(places),
        }
    }

    /// Counts a packet. `site` is the number of a place in the program, 0 for none.
    pub fn count(&mut self, registry: &mut Registry, reason: DropReason, site: u32) {
        self.count_many(registry, reason, site, 1);
    }

    /// Counts packets that were dropped for the same reason at the same place.
    pub fn count_many(&mut self, registry: &mut Registry, reason: DropReason, site: u32, packets: u64) {
        registry.add(self.reasons[reason as usize], packets);
        let at = (site as usize ^ reason as usize) % RECENT;
        let stat = match self.recent[at] {
            Some(recent) if (recent.0, recent.1) == (reason, site) => recent.2,
            _ => {
                let stat = self.stat(registry, reason, site);
                self.recent[at] = Some((reason, site, stat));
                stat
            }
        };
        registry.add(stat, packets);
    }

    /// Returns the counter of a site, which is registered with its first drop.
    #[cold]
    fn stat(&mut self, registry: &mut Registry, reason: DropReason, site: u32) -> Stat {
        if let Some(stat) = self.sites.get(&(reason, site)) {
            return *stat;
        }
        // Programs can write numbers that denote no place. These count as none, so that the map stays bounded.
        let site = if self.places.contains_key(&site) { site } else { 0 };
        let name = match self.places.get(&site) {
            Some((place, _)) => format!("drop.{}.at.{place}", reason.name()),
            None => format!("drop.{}.at.unknown", reason.name()),
        };
        let stat = registry.register(name);
        self.sites.insert((reason, site), stat);
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert((reason, site), stat);
        stat
    }

    /// Counts the drops of another registry, without their places: these are those of another program.
    pub fn count_all(&mut self, registry: &mut Registry, before: &Registry) {
        for reason in DropReason::ALL {
            match before.get(&format!("drop.{}", reason.name())) {
                Some(packets) if packets > 0 => self.count_many(registry, *reason, 0, packets),
                _ => {}
            }
        }
    }

    /// Returns the place with this number and the body that contains it.
    pub fn place(&self, site: u32) -> Option<&(SourcePosition, String)> {
        self.places.get(&site)
    }

    /// Returns all reasons and places that dropped packets, by reason, then by descending count.
    pub fn sites(&self, registry: &Registry) -> Vec<DropSite> {
        let site = |((reason, site), stat): (&(DropReason, u32), &Stat)| DropSite {
            reason: *reason,
            place: self.places.get(site).cloned(),
            packets: registry.value(*stat),
        };
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sites: Vec<DropSite> = all.iter().map(site).collect();
        sites.sort_by_key(|site| (site.reason, std::cmp::Reverse(site.packets)));
        sites
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_by_reason_and_site() {
        let mut registry = Registry::default();
        let place = SourcePosition { file: "router.p4".into(), line: 88, column: 9 };
        let mut drops = Drops::new(&mut registry, HashMap::from([(7, (place, "MyIngress.drop".to_string()))]));
        for site in [7, 7, 0, 1_000_000] {
            drops.count(&mut registry, DropReason::IngressProgram, site);
        }
        drops.count(&mut registry, DropReason::QueueFull, 0);
        let told: Vec<String> = drops.sites(&registry).iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3);
        assert!(told.contains(&"2 dropped in ingress by the program at router.p4:88:9 (MyIngress.drop)".to_string()));
        assert!(told.contains(&"2 dropped in ingress by the program".to_string()));
        assert_eq!(told[2], "1 dropped after ingress: the egress queue is full");
        assert_eq!(registry.get("drop.ingress.program"), Some(4));
        assert_eq!(registry.get("drop.ingress.program.at.router.p4:88:9"), Some(2));
    }

    #[test]
    fn drops_of_another_program_have_no_place_in_this_one() {
        let place = || SourcePosition { file: "router.p4".into(), line: 88, column: 9 };
        let made = |registry: &mut Registry| Drops::new(registry, HashMap::from([(7, (place(), String::new()))]));
        let (mut before, mut after) = (Registry::default(), Registry::default());
        made(&mut before).count_many(&mut before, DropReason::IngressProgram, 7, 3);
        let mut drops = made(&mut after);
        drops.count(&mut after, DropReason::IngressProgram, 7);
        drops.count_all(&mut after, &before);
        assert_eq!(after.get("drop.ingress.program"), Some(4));
        let told: Vec<String> = drops.sites(&after).iter().map(ToString::to_string).collect();
        let expected = ["3 dropped in ingress by the program", "1 dropped in ingress by the program at router.p4:88:9"];
        assert_eq!(told, expected);
    }

    #[test]
    fn names_are_all_different() {
        let names: std::collections::HashSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
    }
}
