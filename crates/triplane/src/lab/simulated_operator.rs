//! Runs the operator of the stores on a simulated host.

use std::any::Any;
use std::sync::Arc;

use lab::sim::{Host, HostProgram};
use resilient::{DatagramSealer, LayoutOperator, LayoutRecord, OperatorEvent, OperatorId, Peer, StoreMessage};
use resilient_switch::in_band;
use switch::Time;

use super::replication::Replication;

/// An operator whose layouts survive a crash.
pub struct SimulatedOperator {
    replication: Arc<Replication>,
    kept: Option<LayoutRecord>,
    seed: u64,
    running: Option<(LayoutOperator, DatagramSealer)>,
    /// The time of the first timer.
    timer: Option<Time>,
}

impl SimulatedOperator {
    /// Creates the operator, without a layout, in a run with this seed.
    pub fn new(replication: Arc<Replication>, seed: u64) -> SimulatedOperator {
        SimulatedOperator { replication, kept: None, seed, running: None, timer: None }
    }

    /// Carries out the effects of the operator, and sets a timer for its next deadline.
    fn act(&mut self, host: &mut Host) {
        let Some((operator, sealer)) = &mut self.running else { return };
        let mut messages: Vec<(Peer, StoreMessage)> = Vec::new();
        loop {
            let events: Vec<OperatorEvent> = operator.take_events().collect();
            if events.is_empty() {
                break;
            }
            for event in events {
                match event {
                    OperatorEvent::Send { to, message } => messages.push((to, message)),
                    OperatorEvent::Commit { record } => {
                        let epoch = record.layout.epoch();
                        self.kept = Some(record);
                        operator.committed(epoch);
                    }
                    OperatorEvent::Reload => operator.superseded(self.kept.clone()),
                    OperatorEvent::Note(_) => {}
                }
            }
        }
        let (now, deadline) = (host.now(), operator.next_deadline());
        sealer.send(now, &messages);
        self.replication.send(host, Peer::Operator(OperatorId::ONLY), sealer);
        if self.timer.is_none_or(|timer| deadline < timer || timer <= now) {
            self.timer = Some(deadline);
            host.set_timer(deadline, 0);
        }
    }
}

impl HostProgram for SimulatedOperator {
    fn on_start(&mut self, host: &mut Host) {
        self.timer = None;
        let (config, seed) = (self.replication.operator_config(), host.random.next_u64());
        let mut operator = LayoutOperator::new(config, self.kept.clone(), seed);
        operator.tick(host.now());
        let sealer = self.replication.sealer(Peer::Operator(OperatorId::ONLY), host.random.next_u64(), self.seed);
        self.running = Some((operator, sealer));
        self.act(host);
    }

    fn on_packet(&mut self, host: &mut Host, frame: Vec<u8>) {
        let Some((source, destination, payload)) = in_band::parse(&frame) else { return };
        if Some(destination) != self.replication.address_of(Peer::Operator(OperatorId::ONLY)) {
            return;
        }
        let Some(from) = self.replication.peer(source) else { return };
        if let Some((operator, sealer)) = &mut self.running {
            let messages = sealer.open(host.now(), from, payload);
            messages.iter().for_each(|message| operator.receive(from, message));
        }
        self.act(host);
    }

    fn on_timer(&mut self, host: &mut Host, _: u64) {
        self.timer = None;
        if let Some((operator, _)) = &mut self.running {
            operator.tick(host.now());
        }
        self.act(host);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
