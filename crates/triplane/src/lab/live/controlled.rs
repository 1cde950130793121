//! The P4Runtime server of a switch in a live network.
//!
//! The socket was opened before the process went into the network's namespace, so controllers reach it where everything
//! else of the machine is. It outlives the switch: while that is down, whoever connects is turned away.

use std::net::TcpListener;
use std::os::fd::RawFd;
use std::sync::Arc;

use anyhow::Context;
use ir::Program;
use p4runtime_server::{Listening, NotificationSender, OperationHook, RunChannels, Server, Settings};
use runtime::{Hook, HookContext, NotificationSink};
use switch::{Frame, Notification, PacketSwitch, SwitchControl, Time};

use super::super::endpoints::Served;
use super::super::network::Network;
use crate::load::ARCHITECTURE;
use crate::output::Failure;

/// Where controllers of a switch connect.
pub struct Door {
    listener: TcpListener,
    network: Arc<Network>,
    at: usize,
    seed: u64,
    served: Served,
}

/// The server of a switch that runs; its clients are cut off when this is dropped.
pub struct Controlled {
    _listening: Listening,
    sink: NotificationSender,
    hook: OperationHook,
}

/// Takes the address of a server, in the namespace in which this is called.
pub fn bind(served: &Served) -> Result<TcpListener, Failure> {
    let address = served.address;
    let listener = TcpListener::bind(address).with_context(|| {
        format!("cannot serve P4Runtime at {address}; begin somewhere else: --p4runtime 127.0.0.1:50100, for example")
    })?;
    listener.set_nonblocking(true).context("cannot set a socket up")?;
    Ok(listener)
}

impl Door {
    /// The door of the switch at a place of the network.
    pub fn new(listener: TcpListener, network: Arc<Network>, at: usize, seed: u64, served: Served) -> Door {
        Door { listener, network, at, seed, served }
    }

    /// Serves controllers of a switch that starts.
    pub fn open(&self, switch: &dyn SwitchControl) -> Result<Controlled, Failure> {
        let (network, at, seed) = (Arc::clone(&self.network), self.at, self.seed);
        let builder = p4runtime_server::switch_builder(move |program| network.switch_for(at, seed, program));
        let channels = RunChannels::new(builder).context("cannot make a pair of sockets")?;
        let settings = Settings {
            device_id: self.served.device_id,
            ..Settings::new(ARCHITECTURE, switch.ports().ids().map(|port| port.0), switch.cpu_port().map(|port| port.0))
        };
        let server = match self.network.pipeline(at) {
            Some(pipeline) => Server::new(settings).with_pipeline(pipeline, switch),
            None => Server::new(settings),
        };
        let listener = self.listener.try_clone().context("cannot share a socket")?;
        let listening = p4runtime_server::listen_on(server, channels.handle, channels.notifications, listener);
        let listening = listening.map_err(anyhow::Error::from)?;
        Ok(Controlled { _listening: listening, sink: channels.notifier, hook: channels.hook })
    }

    /// Turns whoever waits away: the switch is down.
    pub fn turn_away(&self) {
        turn_away(&self.listener);
    }
}

/// Closes every connection that waits to be taken.
pub fn turn_away(listener: &TcpListener) {
    while let Ok((connection, _)) = listener.accept() {
        drop(connection);
    }
}

impl Controlled {
    /// Lets controllers change the switch.
    pub fn poll<S: PacketSwitch>(&mut self, now: u64, switch: &mut S, output: &mut Vec<Frame>) {
        let (now, injected) = (Time::from_ns(now), &mut Vec::new());
        self.hook.poll(&mut HookContext { now, switch, output, injected, stop_others: &|| () });
    }

    /// Whether a controller's operation waits.
    pub fn is_due(&self) -> bool {
        self.hook.is_due()
    }

    /// Returns the descriptor that is readable when an operation waits.
    pub fn poll_fd(&self) -> Option<RawFd> {
        Some(self.hook.poll_fd())
    }

    /// Passes on what the switch told.
    pub fn tell(&self, program: &Arc<Program>, told: Vec<Notification>) {
        self.sink.receive(program, &told);
    }
}
