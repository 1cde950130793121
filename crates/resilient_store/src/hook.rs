//! Exchanges a switch's messages with the stores between two batches.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};

use resilient::{Peer, RefusedDatagrams, StoreMessage};
use resilient_switch::ResilientSwitch;
use runtime::{Hook, HookContext};
use switch::{Device, RowSwitch, Time};

use crate::cluster::Cluster;
use crate::socket::{ClusterNotice, ClusterSocket, NoticeHandler};

/// Maximum number of datagrams that one turn receives.
const BATCH: usize = 64;

/// Interval at which a switch without a layout asks for one.
const ASK_INTERVAL_NS: u64 = 100_000_000;

/// Number of turns without sleep after which packets count as keeping the switch busy.
const BUSY_TURNS: u32 = 8;

/// Interval at which a busy switch exchanges messages with the stores: each datagram, sent or looked for, costs system
/// calls, so those of some batches of packets share them. A switch that sleeps between packets sends at once, and
/// datagrams wake it.
const EXCHANGE_INTERVAL_NS: u64 = 100_000;

/// Minimum time without a message after which the stores are considered unreachable.
const SILENCE_NS: u64 = 3_000_000_000;

/// The connection of a switch to the stores.
pub struct StoreHook {
    socket: ClusterSocket,
    /// The members that have layouts.
    sources: Vec<Peer>,
    /// The next time at which they are asked for one, until there is one.
    ask_at: Option<Time>,
    deadline: Option<Time>,
    /// Whether more than a batch of datagrams may have arrived.
    has_more: bool,
    /// Messages that have not been sent.
    outgoing: Vec<(Peer, StoreMessage)>,
    /// Whether the loop has slept since the last exchange.
    has_slept: bool,
    /// Number of turns since then.
    turns: u32,
    /// The next time of an exchange while the switch is busy.
    exchange_at: Time,
    /// Time without a message after which the stores are considered unreachable.
    silence_ns: u64,
    /// Time of the last message.
    heard: Time,
    is_silent: bool,
}

impl StoreHook {
    /// Creates the hook of a switch for a socket at its address. `start` is random, and never used before. As the
    /// incarnation of the switch it makes messages shorter.
    ///
    /// # Errors
    /// If the socket cannot be configured.
    pub fn new(cluster: Cluster, me: Peer, socket: UdpSocket, start: u64) -> io::Result<StoreHook> {
        socket.set_nonblocking(true)?;
        let sources = cluster.stores().chain(cluster.operators()).map(|member| member.peer).collect();
        let ask_at = cluster.is_operated().then_some(Time::ZERO);
        let silence_ns = cluster.lease_ns().max(SILENCE_NS);
        Ok(StoreHook {
            socket: ClusterSocket::new(socket, cluster, me, start),
            sources,
            ask_at,
            deadline: None,
            has_more: true,
            outgoing: Vec::new(),
            has_slept: true,
            turns: 0,
            exchange_at: Time::ZERO,
            silence_ns,
            heard: Time::ZERO,
            is_silent: false,
        })
    }

    /// Returns the start number, which is the incarnation of the switch.
    pub fn start(&self) -> u64 {
        self.socket.start()
    }

    /// Sets the handler of notices.
    pub fn on_notice(&mut self, handler: NoticeHandler) {
        self.socket.on_notice(handler);
    }

    /// Returns the counts of datagrams that were refused.
    pub fn refused(&self) -> RefusedDatagrams {
        self.socket.refused()
    }

    /// Reports if no store was heard for a while, and if one is heard again.
    fn note_silence(&mut self, now: Time, has_heard: bool) {
        if has_heard {
            self.heard = now;
        }
        let is_silent = now.since_ns(self.heard) >= self.silence_ns;
        if is_silent != std::mem::replace(&mut self.is_silent, is_silent) {
            self.socket.notice(if is_silent { &ClusterNotice::StoresSilent } else { &ClusterNotice::StoresHeard });
        }
    }

    /// Asks for a layout until the switch has one.
    fn ask_for_layout(&mut self, now: Time, epoch: u64) {
        if epoch > 0 {
            self.ask_at = None;
        } else if self.ask_at.is_some_and(|at| at <= now) {
            self.ask_at = Some(now.after_ns(ASK_INTERVAL_NS));
            let ask = |peer: &Peer| (*peer, StoreMessage::LayoutRequest(epoch));
            let asks: Vec<_> = self.sources.iter().map(ask).collect();
            self.socket.send(now, &asks);
        }
    }

    /// Sends the messages that wait.
    fn send(&mut self, now: Time) {
        if !self.outgoing.is_empty() {
            self.socket.send(now, &self.outgoing);
            self.outgoing.clear();
        }
    }

    /// Collects the messages of the switch for the stores.
    fn collect<S: RowSwitch>(&mut self, context: &mut HookContext<'_, ResilientSwitch<S>>) {
        let messages = context.switch.take_messages().into_iter();
        self.outgoing.extend(messages.map(|(to, message)| (Peer::Node(to), message)));
    }

    /// Handles arrived messages, at most a batch. Returns whether there was any.
    fn receive<S: RowSwitch>(&mut self, context: &mut HookContext<'_, ResilientSwitch<S>>) -> bool {
        let (mut received, mut has_heard) = (0, false);
        while received < BATCH {
            let Some(messages) = self.socket.receive(context.now) else { break };
            received += 1;
            has_heard |= !messages.is_empty();
            let of_stores = messages.iter().filter_map(|(from, message)| Some((from.node()?, message)));
            context.switch.deliver_all(context.now, of_stores, context.output);
            for (from, message) in &messages {
                if let (Peer::Operator(_), StoreMessage::Layout(layout)) = (from, message) {
                    context.switch.set_layout(context.now, layout, context.output);
                }
            }
        }
        self.has_more = received == BATCH;
        has_heard
    }
}

impl<S: RowSwitch> Hook<ResilientSwitch<S>> for StoreHook {
    fn poll(&mut self, context: &mut HookContext<'_, ResilientSwitch<S>>) {
        let now = context.now;
        self.turns = self.turns.saturating_add(1);
        let is_overdue = self.deadline.is_some_and(|deadline| deadline <= now);
        let exchanges = is_overdue || self.has_slept || self.has_more || now >= self.exchange_at;
        self.collect(context);
        if exchanges {
            // Writes leave first: packets wait for them.
            self.send(now);
            let has_heard = self.receive(context);
            self.note_silence(now, has_heard);
            self.has_slept = false;
            self.exchange_at = now.after_ns(EXCHANGE_INTERVAL_NS);
        }
        if is_overdue {
            context.switch.step(now, &mut Vec::new(), context.output);
        }
        self.collect(context);
        if exchanges || self.turns < BUSY_TURNS {
            self.send(now);
        }
        if self.ask_at.is_some() {
            self.ask_for_layout(context.now, context.switch.layout_epoch());
        }
        let silent_at = (!self.is_silent).then(|| self.heard.after_ns(self.silence_ns));
        self.deadline = context.switch.next_event().into_iter().chain(self.ask_at).chain(silent_at).min();
    }

    fn is_due(&self) -> bool {
        self.has_more || !self.outgoing.is_empty()
    }

    fn on_wake(&mut self) {
        (self.has_slept, self.turns) = (true, 0);
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.socket.as_raw_fd())
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }
}
