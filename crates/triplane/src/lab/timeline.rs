//! Records the events of a failover in a simulated lab, for a drawing and a list of its steps.
//!
//! It reads the frames at the ports of the switches with resilient state, their stores and the hosts, as captures do.
//! An arrow is a datagram: from the time at which its sender hands it to the link until its arrival.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lab::scenario::{Run, Scenario};
use lab::sim::{Capture, Fault, Way};
use lab::{Node, Topology};
use resilient::message::{ReplyBody, RequestBody};
use resilient::{Peer, StoreConfig, StoreMessage, SwitchId, expiry_ns, sealed};
use resilient_switch::in_band;
use switch::Time;

use super::replication::Replication;
use crate::output::Failure;

/// Maximum number of arrows and frames that are recorded.
const MAX_EVENTS: usize = 1_000_000;

/// Maximum number of hosts with a lane.
const MAX_HOSTS: usize = 4;

/// Meaning of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrowKind {
    /// Renews a lease, or confirms the renewal.
    Renewal,
    /// Asks for a row.
    Ask,
    /// Grants a row.
    Grant,
    /// Writes a row, or forwards operations along the chain.
    Write,
    /// Acknowledges a write.
    Acknowledgement,
    /// Recalls a row, gives it back, or confirms that.
    Recall,
}

/// A datagram between two lanes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// Time at which it was sent.
    pub sent: Time,
    /// The lane of the sender.
    pub from: usize,
    /// The lane of the receiver.
    pub to: usize,
    /// Time of its arrival; `None` if it was lost.
    pub arrived: Option<Time>,
    /// Its meaning.
    pub kind: ArrowKind,
}

/// A frame that a host sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostFrame {
    /// Time at which it passes the host's port.
    pub at: Time,
    /// The lane of the host.
    pub lane: usize,
    /// Whether the host receives it.
    pub is_received: bool,
}

/// Events of a run so far.
#[derive(Debug, Default)]
struct TimelineLog {
    under_way: BTreeMap<Vec<u8>, Arrow>,
    arrows: Vec<Arrow>,
    frames: Vec<HostFrame>,
    /// Times at which heads received renewals, by the switch.
    renewals: Vec<(Time, usize, SwitchId)>,
    is_full: bool,
}

/// A row of the drawing.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The node's name.
    pub name: String,
    /// Kind of the node.
    pub kind: &'static str,
    node: Node,
    peer: Option<Peer>,
}

/// The recording of a run.
pub struct TimelineRecorder {
    lanes: Vec<Lane>,
    log: Arc<Mutex<TimelineLog>>,
    death: Time,
    dead: usize,
    dead_switch: SwitchId,
    expiry_ns: u64,
}

/// A failover: the events of a recording around it.
#[derive(Debug)]
pub struct Timeline {
    /// The lanes, from top to bottom.
    pub lanes: Vec<Lane>,
    /// The arrows, in the order of their sending.
    pub arrows: Vec<Arrow>,
    /// Frames of hosts, in the order of their times.
    pub frames: Vec<HostFrame>,
    /// Time of the crash.
    pub death: Time,
    /// The lane of the switch that crashed.
    pub dead: usize,
    /// The lease of the crashed switch as the head counts it: lane, beginning, end.
    pub lease: Option<(usize, Time, Time)>,
    /// The first ask of another switch after the crash: lane and time.
    pub ask: Option<(usize, Time)>,
    /// The first grant to such a switch.
    pub grant: Option<(usize, Time)>,
    /// The longest time without a frame for a host that ends after the crash: lane, beginning, end.
    pub gap: Option<(usize, Time, Time)>,
    /// Whether some events were not recorded.
    pub is_cut: bool,
}

fn kind_of(message: &StoreMessage) -> Option<ArrowKind> {
    Some(match message {
        StoreMessage::Request(request) => match request.body {
            RequestBody::Renew { .. } => ArrowKind::Renewal,
            RequestBody::Acquire { .. } => ArrowKind::Ask,
            RequestBody::Write { .. } => ArrowKind::Write,
            RequestBody::Release { .. } => ArrowKind::Recall,
        },
        StoreMessage::Reply(reply) => match reply.body {
            ReplyBody::Renewed { .. } => ArrowKind::Renewal,
            ReplyBody::Granted { .. } => ArrowKind::Grant,
            ReplyBody::Acked { .. } => ArrowKind::Acknowledgement,
            ReplyBody::Recall { .. } | ReplyBody::Released { .. } => ArrowKind::Recall,
            ReplyBody::Refused { .. } | ReplyBody::Stale { .. } | ReplyBody::Probe { .. } => return None,
        },
        StoreMessage::Forward(forward) if !forward.operations.is_empty() => ArrowKind::Write,
        _ => return None,
    })
}

impl TimelineRecorder {
    /// Begins to record a run.
    ///
    /// # Errors
    /// If no switch with resilient state crashes in the scenario.
    pub fn start(
        topology: &Topology,
        scenario: &Scenario,
        replication: Option<&Arc<Replication>>,
        run: &mut Run,
    ) -> Result<TimelineRecorder, Failure> {
        let refused = || {
            let message = "--timeline requires a lab with stores, and a scenario that crashes a switch with @resilient \
                           state: crash = \"s1\"";
            Failure::Usage(message.to_owned())
        };
        let replication = replication.ok_or_else(refused)?;
        let is_death = |node: Node, fault: Fault| match node {
            Node::Switch(switch) => fault == Fault::Crash && replication.has(switch),
            Node::Host(_) => false,
        };
        let deaths = scenario.faults.iter().filter(|planned| is_death(planned.node, planned.fault));
        let death = deaths.min_by_key(|planned| planned.at.as_ns()).ok_or_else(refused)?;
        let Node::Switch(dead_switch) = death.node else { return Err(refused()) };
        let lanes = lanes(topology, replication);
        let dead = lanes.iter().position(|lane| lane.node == death.node).ok_or_else(refused)?;
        let log: Arc<Mutex<TimelineLog>> = Arc::default();
        for end in topology.links.iter().flat_map(|link| link.ends) {
            let Some(lane) = lanes.iter().position(|lane| lane.node == end.node) else { continue };
            let (log, peer, replication) = (Arc::clone(&log), lanes[lane].peer, Arc::clone(replication));
            let peers: Vec<Option<Peer>> = lanes.iter().map(|lane| lane.peer).collect();
            run.simulation.capture(
                end,
                Capture::new(move |now, way, frame| {
                    let mut log = log.lock().expect("nobody panics while recording");
                    match peer {
                        Some(peer) => log.datagram(now, way, frame, (lane, peer), (&peers, &replication)),
                        None => log.frame(now, way, lane),
                    }
                }),
            );
        }
        let StoreConfig { lease_ns, drift_ppm, .. } = replication.store_config();
        let dead_switch = SwitchId(dead_switch as u32);
        let death = Time::from_ns(death.at.as_ns());
        let expiry_ns = expiry_ns(lease_ns, drift_ppm);
        Ok(TimelineRecorder { lanes, log, death, dead, dead_switch, expiry_ns })
    }

    /// Ends the recording.
    pub fn finish(self) -> Timeline {
        let TimelineRecorder { lanes, log, death, dead, dead_switch, expiry_ns } = self;
        let log = std::mem::take(&mut *log.lock().expect("nobody panics while recording"));
        let mut arrows = log.arrows;
        arrows.extend(log.under_way.into_values());
        arrows.sort_unstable();
        let mut frames = log.frames;
        frames.sort_unstable();
        let after = |kind: ArrowKind| {
            let is_switch = |lane: usize| lane != dead && lanes[lane].peer.and_then(Peer::switch).is_some();
            arrows.iter().filter(move |arrow| {
                let other = if kind == ArrowKind::Ask { arrow.from } else { arrow.to };
                arrow.kind == kind && arrow.sent >= death && is_switch(other)
            })
        };
        let ask = after(ArrowKind::Ask).map(|arrow| (arrow.from, arrow.sent)).next();
        let grant = after(ArrowKind::Grant).find_map(|arrow| Some((arrow.to, arrow.arrived?)));
        let renewals = log.renewals.iter().filter(|(.., switch)| *switch == dead_switch);
        let lease = renewals.max_by_key(|(at, ..)| *at).map(|(at, lane, _)| (*lane, *at, at.after_ns(expiry_ns)));
        let gap = longest_gap(&frames, death);
        Timeline { arrows, frames, death, dead, lease, ask, grant, gap, is_cut: log.is_full, lanes }
    }
}

/// Returns the longest time between two frames that a host received, of those that end after the crash.
fn longest_gap(frames: &[HostFrame], death: Time) -> Option<(usize, Time, Time)> {
    let mut last: BTreeMap<usize, Time> = BTreeMap::new();
    let mut longest: Option<(usize, Time, Time)> = None;
    for &HostFrame { at, lane, .. } in frames.iter().filter(|frame| frame.is_received) {
        let before = last.insert(lane, at);
        let Some(before) = before.filter(|_| at > death) else { continue };
        if longest.is_none_or(|(_, from, to)| at.since_ns(before) > to.since_ns(from)) {
            longest = Some((lane, before, at));
        }
    }
    longest
}

/// Returns the lanes: hosts, switches with resilient state, stores.
fn lanes(topology: &Topology, replication: &Replication) -> Vec<Lane> {
    let lane = |kind: &'static str, node: Node, peer: Option<Peer>| Lane {
        name: topology.name(node).to_owned(),
        kind,
        node,
        peer,
    };
    let hosts = (0..topology.machines()).take(MAX_HOSTS).map(|host| lane("host", Node::Host(host), None));
    let switches = (0..topology.switches.len()).filter(|switch| replication.has(*switch));
    let switches = switches.map(|at| lane("switch", Node::Switch(at), Some(Peer::Switch(SwitchId(at as u32)))));
    let stores = topology.stores().enumerate();
    let stores =
        stores.map(|(at, host)| lane("store", Node::Host(host), Some(Peer::Node(Replication::member(at).node))));
    hosts.chain(switches).chain(stores).collect()
}

impl TimelineLog {
    fn has_room(&mut self) -> bool {
        let has_room = self.arrows.len() + self.frames.len() + self.under_way.len() < MAX_EVENTS;
        self.is_full |= !has_room;
        has_room
    }

    fn frame(&mut self, now: Time, way: Way, lane: usize) {
        if self.has_room() {
            self.frames.push(HostFrame { at: now, lane, is_received: way == Way::In });
        }
    }

    /// Records a datagram that a member sends or receives. Other datagrams at the port are ignored.
    fn datagram(
        &mut self,
        now: Time,
        way: Way,
        frame: &[u8],
        (lane, me): (usize, Peer),
        (peers, replication): (&[Option<Peer>], &Replication),
    ) {
        let Some((source, destination, datagram)) = in_band::parse(frame) else { return };
        let (Some(from), Some(to)) = (replication.peer(source), replication.peer(destination)) else { return };
        let lane_of = |peer: Peer| peers.iter().position(|other| *other == Some(peer));
        let is_mine = way == Way::In && to == me;
        if let Some(arrow) = is_mine.then(|| self.under_way.remove(datagram)).flatten() {
            if let (ArrowKind::Renewal, Some(switch)) = (arrow.kind, from.switch()) {
                self.renewals.push((now, lane, switch));
            }
            self.arrows.push(Arrow { arrived: Some(now), ..arrow });
        }
        if way == Way::Out && from == me && self.has_room() {
            let messages = sealed::peek(datagram).unwrap_or_default();
            let kind = messages.iter().filter_map(kind_of).max();
            if let (Some(kind), Some(to)) = (kind, lane_of(to)) {
                self.under_way.insert(datagram.to_vec(), Arrow { sent: now, from: lane, to, arrived: None, kind });
            }
        }
    }
}

impl Timeline {
    /// Returns a time in milliseconds after the crash.
    pub fn ms(&self, at: Time) -> f64 {
        (at.as_ns() as f64 - self.death.as_ns() as f64) / 1e6
    }

    /// Returns the steps of the failover, with their times in milliseconds after the crash.
    pub fn steps(&self) -> Vec<(f64, String)> {
        let name = |lane: usize| &self.lanes[lane].name;
        let mut steps = vec![(0.0, format!("`{}` dies", name(self.dead)))];
        let mut add = |at: Time, text: String| steps.push((self.ms(at), text));
        if let Some((lane, from, to)) = self.gap {
            add(from, format!("`{}` gets the last answer from `{}`", name(lane), name(self.dead)));
            let gap = to.since_ns(from) as f64 / 1e6;
            add(to, format!("`{}` gets the first answer again: a gap of {gap:.3} ms", name(lane)));
        }
        if let Some((lane, at)) = self.ask {
            add(at, format!("`{}` asks for the row", name(lane)));
        }
        if let Some((lane, _, end)) = self.lease {
            add(end, format!("the lease of `{}` has ended for `{}`", name(self.dead), name(lane)));
        }
        if let Some((lane, at)) = self.grant {
            add(at, format!("`{}` owns the row", name(lane)));
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        steps
    }

    /// Returns the steps as text.
    pub fn text(&self) -> String {
        let steps = self.steps().into_iter().map(|(ms, text)| format!("{ms:>10.3} ms  {text}\n"));
        format!("\nfailover\n{}", steps.collect::<String>())
    }
}
