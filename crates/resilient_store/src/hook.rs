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

/// Minimum time without a message after which the stores are taken for silent.
const SILENCE_NS: u64 = 3_000_000_000;

/// The connection of a switch to the stores.
pub struct StoreHook {
    socket: ClusterSocket,
    /// The members that have layouts.
    sources: Vec<Peer>,
    /// The next time at which they are asked for one, until there is one.
    ask_at: Option<Time>,
    deadline: Option<Time>,
    is_due: bool,
    /// Time without a message after which the stores are taken for silent.
    silence_ns: u64,
    /// Time of the last message.
    heard: Time,
    is_silent: bool,
}

impl StoreHook {
    /// Creates the hook of a switch for a socket at its address. `start` is random, and never used before.
    ///
    /// # Errors
    /// If the socket cannot be configured.
    pub fn new(cluster: Cluster, me: Peer, socket: UdpSocket, start: u64) -> io::Result<StoreHook> {
        socket.set_nonblocking(true)?;
        let sources = cluster.stores().chain(cluster.operator()).map(|member| member.peer).collect();
        let ask_at = cluster.operator().map(|_| Time::ZERO);
        let silence_ns = cluster.lease_ns().max(SILENCE_NS);
        Ok(StoreHook {
            socket: ClusterSocket::new(socket, cluster, me, start),
            sources,
            ask_at,
            deadline: None,
            is_due: true,
            silence_ns,
            heard: Time::ZERO,
            is_silent: false,
        })
    }

    /// Lets `handler` take the notices.
    pub fn on_notice(&mut self, handler: NoticeHandler) {
        self.socket.on_notice(handler);
    }

    /// Returns the counts of datagrams that were refused.
    pub fn refused(&self) -> RefusedDatagrams {
        self.socket.refused()
    }

    /// Notices if no store has been heard for a while, and if one is heard again.
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
}

impl<S: RowSwitch> Hook<ResilientSwitch<S>> for StoreHook {
    fn poll(&mut self, context: &mut HookContext<'_, ResilientSwitch<S>>) {
        let (mut received, mut has_heard) = (0, false);
        while received < BATCH {
            let Some(messages) = self.socket.receive(context.now) else { break };
            received += 1;
            has_heard |= !messages.is_empty();
            for (from, message) in &messages {
                match (from, message) {
                    (Peer::Node(node), _) => context.switch.deliver(context.now, *node, message, context.output),
                    (Peer::Operator, StoreMessage::Layout(layout)) => {
                        context.switch.set_layout(context.now, layout, context.output);
                    }
                    _ => {}
                }
            }
        }
        self.is_due = received == BATCH;
        self.note_silence(context.now, has_heard);
        if self.deadline.is_some_and(|deadline| deadline <= context.now) {
            context.switch.step(context.now, &mut Vec::new(), context.output);
        }
        let messages = context.switch.take_messages().into_iter();
        let messages: Vec<_> = messages.map(|(to, message)| (Peer::Node(to), message)).collect();
        self.socket.send(context.now, &messages);
        if self.ask_at.is_some() {
            self.ask_for_layout(context.now, context.switch.layout_epoch());
        }
        let silent_at = (!self.is_silent).then(|| self.heard.after_ns(self.silence_ns));
        self.deadline = context.switch.next_event().into_iter().chain(self.ask_at).chain(silent_at).min();
    }

    fn is_due(&self) -> bool {
        self.is_due
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.socket.as_raw_fd())
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }
}
