//! Wraps [`Client`] for programs that make one blocking call at a time.

use std::sync::mpsc;
use std::time::Duration;

use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::ForwardingPipelineConfig;
use p4runtime_proto::v1::entity::Entity;
use p4runtime_proto::v1::write_request::Atomicity;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::connect::{ConnectError, ServerTarget};
use crate::election::ElectionError;
use crate::error::CallError;
use crate::stream::{ControllerStream, StreamEvent};

/// A [`Client`] whose calls block. It makes progress only during calls: between them nothing is polled, and events
/// stay buffered in the connection.
#[derive(Debug)]
pub struct BlockingClient {
    runtime: Runtime,
    client: Client,
}

/// Why [`BlockingClient::next_event`] returned.
#[derive(Clone, Debug)]
pub enum Wakeup {
    /// An event arrived.
    Event(StreamEvent),
    /// The process received SIGINT.
    Interrupted,
}

impl BlockingClient {
    /// Connects.
    ///
    /// # Errors
    /// As [`ServerTarget::connect`].
    pub fn connect(target: &ServerTarget, device_id: u64) -> Result<BlockingClient, ConnectError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ConnectError::Start)?;
        let client = runtime.block_on(Client::connect(target, device_id))?;
        Ok(BlockingClient { runtime, client })
    }

    /// Reads P4Info and the cookie of the pipeline configuration.
    ///
    /// # Errors
    /// As [`Client::pipeline_config`].
    pub fn pipeline_config(&self) -> Result<Option<ForwardingPipelineConfig>, CallError> {
        self.runtime.block_on(self.client.pipeline_config())
    }

    /// Reads the entities that match the templates in `entities`, and calls `each` for every one as it arrives.
    ///
    /// # Errors
    /// A [`CallError`], or the first error that `each` returns; either ends the read.
    pub fn read<E: From<CallError>>(
        &self,
        entities: Vec<Entity>,
        mut each: impl FnMut(Entity) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut answers = self.runtime.block_on(self.client.read(entities))?;
        while let Some(entities) = self.runtime.block_on(answers.next())? {
            entities.into_iter().filter_map(|entity| entity.entity).try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Writes updates as the primary with this election id.
    ///
    /// # Errors
    /// As [`Client::write`].
    pub fn write(&self, election_id: u128, updates: Vec<v1::Update>, atomicity: Atomicity) -> Result<(), CallError> {
        self.runtime.block_on(self.client.write(election_id, updates, atomicity))
    }

    /// Becomes the primary. The mastership lasts as long as the stream. Without an election
    /// id it waits until no controller is primary. Returns the stream and the election id in use.
    ///
    /// # Errors
    /// As [`Client::become_primary`].
    pub fn become_primary(&self, election_id: Option<u128>) -> Result<(ControllerStream, u128), ElectionError> {
        self.runtime.block_on(self.client.become_primary(election_id))
    }

    /// Becomes the primary, or only listens; then no election id is returned.
    ///
    /// # Errors
    /// As [`Client::become_primary_or_listen`].
    pub fn become_primary_or_listen(
        &self,
        election_id: Option<u128>,
    ) -> Result<(ControllerStream, Option<u128>), ElectionError> {
        self.runtime.block_on(self.client.become_primary_or_listen(election_id))
    }

    /// Waits for an event of a stream or for SIGINT, without a time limit.
    ///
    /// # Errors
    /// If the server ends the stream.
    pub fn next_event(&self, stream: &mut ControllerStream) -> Result<Wakeup, CallError> {
        self.runtime.block_on(async {
            tokio::select! {
                event = stream.events.next() => event?.map(Wakeup::Event).ok_or(CallError::StreamEnded),
                _ = tokio::signal::ctrl_c() => Ok(Wakeup::Interrupted),
            }
        })
    }
}

/// Reads the P4Info of a device, for callers that cannot wait long and do not need the reason of a failure, such as
/// completion in a shell. Returns `None` after `timeout`; the thread is detached if it is still blocked, for example in
/// DNS resolution.
pub fn fetch_p4info(target: ServerTarget, device_id: u64, timeout: Duration) -> Option<P4Info> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let config = BlockingClient::connect(&target, device_id).ok().and_then(|client| client.pipeline_config().ok());
        // The receiver is gone after the timeout.
        let _ = sender.send(config.flatten().and_then(|config| config.p4info));
    });
    receiver.recv_timeout(timeout).ok().flatten()
}
