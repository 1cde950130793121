//! Runs the P4Runtime server of a switch in a live lab.
//!
//! Its socket was opened before the daemon entered its namespace, so that controllers reach it from the machine's own
//! namespace. The socket outlives the switch: while the switch is down, connections are closed at once.

use std::net::TcpListener;
use std::sync::Arc;

use p4runtime_server::{Listening, NotificationSender, OperationHook, RunChannels, Server, Settings};
use switch::SwitchControl;

use crate::LabError;
use crate::endpoints::ControllerEndpoint;
use crate::error::failed_to;
use crate::live_network::LiveNetwork;

/// The socket on which controllers of a switch connect.
pub struct ControllerListener<N: ?Sized> {
    listener: TcpListener,
    network: Arc<N>,
    at: usize,
    seed: u64,
    endpoint: ControllerEndpoint,
}

/// The P4Runtime server of a switch that runs.
pub struct ControllerServer {
    /// The server. Its connections are closed when this is dropped.
    pub listening: Listening,
    /// Sends the switch's notifications to its controllers.
    pub sink: NotificationSender,
    /// Applies the waiting operations of controllers to the switch.
    pub hook: OperationHook,
}

/// Binds the address of a server, in the current namespace.
pub fn bind(endpoint: &ControllerEndpoint) -> Result<TcpListener, LabError> {
    let address = endpoint.address;
    let listener = TcpListener::bind(address).map_err(|source| LabError::Bind { address, source })?;
    listener.set_nonblocking(true).map_err(failed_to("set up a socket"))?;
    Ok(listener)
}

impl<N: LiveNetwork + ?Sized> ControllerListener<N> {
    /// Returns the listener of a switch, by its index in the topology.
    pub fn new(listener: TcpListener, network: Arc<N>, at: usize, seed: u64, endpoint: ControllerEndpoint) -> Self {
        ControllerListener { listener, network, at, seed, endpoint }
    }

    /// Starts a server for a switch that starts.
    pub fn serve(&self, switch: &dyn SwitchControl) -> Result<ControllerServer, LabError> {
        let (network, at, seed) = (Arc::clone(&self.network), self.at, self.seed);
        let builder = p4runtime_server::switch_builder(move |program| network.switch_for(at, seed, program));
        let channels = RunChannels::new(builder).map_err(failed_to("create a socket pair"))?;
        let settings = Settings {
            device_id: self.endpoint.device_id,
            ..Settings::new(
                self.network.architecture(),
                switch.ports().ids().map(|port| port.0),
                switch.cpu_port().map(|port| port.0),
            )
        };
        let server = match self.network.pipeline(at) {
            Some(pipeline) => Server::new(settings).with_pipeline(pipeline, switch),
            None => Server::new(settings),
        };
        let listener = self.listener.try_clone().map_err(failed_to("share a socket"))?;
        let listening = p4runtime_server::listen_on(server, channels.handle, channels.notifications, listener);
        Ok(ControllerServer { listening: listening?, sink: channels.notifier, hook: channels.hook })
    }

    /// Closes every waiting connection, since the switch is down.
    pub fn reject_all(&self) {
        reject_all(&self.listener);
    }
}

/// Accepts and closes every waiting connection.
pub fn reject_all(listener: &TcpListener) {
    while let Ok((connection, _)) = listener.accept() {
        drop(connection);
    }
}
