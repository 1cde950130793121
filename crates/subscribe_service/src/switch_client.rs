//! Implements the service's connection to a switch: the stream that holds the mastership, and calls that block the
//! calling thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p4runtime_client::{
    ArbitrationSender, CONNECT_TIMEOUT, CallError, Client, Code, ControllerStream, Mastership, ServerTarget,
    StreamEvent,
};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{self, ForwardingPipelineConfig};
use tokio::runtime::Handle;

use crate::switch_content::SwitchContent;
use crate::switch_error::{Incompatibility, StreamEnd, SwitchError, Unreachable};

/// Limits of reading a switch: eight entities for each of 1,000,000 rules, and five minutes for each table.
const READ_LIMITS: ReadLimits = ReadLimits { max_entities: 8_000_000, max_time: Duration::from_secs(300) };
/// Time after which a call counts as slow, and the interval at which it is reported from then on.
const SLOW_INTERVAL: Duration = Duration::from_secs(2);

/// Limits of the number of entities in a switch, and of the time in which it sends one table.
struct ReadLimits {
    max_entities: usize,
    max_time: Duration,
}

impl ReadLimits {
    /// Checks a read that has brought this many entities, and has spent this time in one table.
    fn check(&self, entities: usize, time: Duration) -> Result<(), Incompatibility> {
        if entities <= self.max_entities && time <= self.max_time {
            return Ok(());
        }
        let minutes = self.max_time.as_secs() / 60;
        Err(Incompatibility::TooMuchToRead { max_entities: self.max_entities, minutes })
    }
}

/// An event of the stream that matters to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SwitchEvent {
    /// The state of the election.
    Mastership(Mastership),
    /// The stream ended.
    StreamEnded(StreamEnd),
}

/// A connection to the switch.
pub(crate) struct SwitchClient {
    handle: Handle,
    client: Client,
    arbitration: ArbitrationSender,
    /// Time at which all calls of a change have to be done.
    deadline: Option<Instant>,
    /// Called while a call waits, with the seconds that it has waited.
    on_slow: Arc<dyn Fn(u64) + Send + Sync>,
    /// The election id of this controller.
    pub election_id: u128,
}

impl SwitchClient {
    /// Connects, and asks for mastership with `election_id`, or only for the state of the election. A task passes the
    /// events of the stream to `on_event`.
    ///
    /// # Errors
    /// If the switch cannot be reached, or rejects the stream.
    pub fn open(
        handle: &Handle,
        target: &ServerTarget,
        device_id: u64,
        election_id: Option<u128>,
        on_slow: Arc<dyn Fn(u64) + Send + Sync>,
        on_event: impl Fn(SwitchEvent) + Send + 'static,
    ) -> Result<SwitchClient, StreamEnd> {
        let lost = StreamEnd::Lost;
        let opened = async {
            let client = Client::connect(target, device_id).await;
            let client = client.map_err(|error| lost(Unreachable::from_connect(&error)))?;
            let stream = tokio::time::timeout(CONNECT_TIMEOUT, client.open_stream(election_id)).await;
            let stream = stream.map_err(|_| lost(Unreachable::ConnectTimeout))?.map_err(|error| match error {
                CallError::Transport(_) => lost(match error.handshake_failure() {
                    Some(failure) => Unreachable::Handshake(failure),
                    None => Unreachable::BrokenAtStart { is_tls: target.is_tls() },
                }),
                other => StreamEnd::from_call(other),
            })?;
            Ok::<_, StreamEnd>((client, stream))
        };
        let (client, ControllerStream { arbitration, mut events, .. }) = handle.block_on(opened)?;
        handle.spawn(async move {
            let end = loop {
                match events.next().await {
                    Ok(Some(StreamEvent::Mastership(mastership))) => on_event(SwitchEvent::Mastership(mastership)),
                    // Packets and digests are for other controllers.
                    Ok(Some(_)) => {}
                    Ok(None) => break StreamEnd::Lost(Unreachable::StreamEnded),
                    Err(error) => break StreamEnd::from_call(error),
                }
            };
            on_event(SwitchEvent::StreamEnded(end));
        });
        let election_id = election_id.unwrap_or(1);
        Ok(SwitchClient { handle: handle.clone(), client, arbitration, deadline: None, on_slow, election_id })
    }

    /// Sets the time at which all calls from now on have to be done, in addition to the timeout of each call.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Asks for mastership. The answer is an event.
    pub fn claim(&mut self, election_id: u128) {
        self.election_id = election_id;
        // A request that cannot be queued belongs to a stream that is about to end, which is an event too.
        let _ = self.arbitration.request(election_id);
    }

    fn call<T>(&self, call: impl Future<Output = Result<T, CallError>>) -> Result<T, SwitchError> {
        self.handle.block_on(self.bounded(call))?.map_err(SwitchError::from_call)
    }

    /// Waits for an answer until the deadline, and reports a slow call.
    async fn bounded<T>(&self, call: impl Future<Output = T>) -> Result<T, SwitchError> {
        let begun = Instant::now();
        tokio::pin!(call);
        loop {
            let left = self.deadline.map_or(SLOW_INTERVAL, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(SwitchError::Unreachable(Unreachable::ChangeTimeout));
            }
            // The client library limits the time of the call itself.
            match tokio::time::timeout(left.min(SLOW_INTERVAL), &mut call).await {
                Ok(answer) => return Ok(answer),
                Err(_) => (self.on_slow)(begun.elapsed().as_secs()),
            }
        }
    }

    /// Reads the pipeline configuration, if the switch has one.
    pub fn pipeline_config(&self) -> Result<Option<ForwardingPipelineConfig>, SwitchError> {
        self.call(async {
            match self.client.pipeline_config().await {
                Err(error) if error.code() == Some(Code::FailedPrecondition) => Ok(None),
                other => other,
            }
        })
    }

    /// Loads a program. The switch loses its forwarding state.
    pub fn set_pipeline_config(&self, config: ForwardingPipelineConfig) -> Result<(), SwitchError> {
        self.call(self.client.set_pipeline_config(self.election_id, config))
    }

    /// Whether the switch applies a batch atomically. An empty write shows it.
    pub fn is_atomic(&self) -> Result<bool, SwitchError> {
        match self.write(Vec::new(), Atomicity::DataplaneAtomic) {
            Ok(()) => Ok(true),
            Err(SwitchError::Unimplemented | SwitchError::Rejected(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// UpdateMode updates. A rejection carries the first update that failed by itself.
    pub fn write(&self, updates: Vec<v1::Update>, atomicity: Atomicity) -> Result<(), SwitchError> {
        let known = updates.clone();
        let written = self.bounded(self.client.write(self.election_id, updates, atomicity));
        self.handle.block_on(written)?.map_err(|error| match error {
            CallError::Rejected(rejection) => SwitchError::from_write(&rejection, &known),
            other => SwitchError::from_call(other),
        })
    }

    /// Reads the entries of these tables, the multicast groups and the clone sessions.
    pub fn read_content(&self, tables: &[u32]) -> Result<SwitchContent, SwitchError> {
        let table = |table_id: &u32| Kind::TableEntry(v1::TableEntry { table_id: *table_id, ..Default::default() });
        let replication = [
            Replication::MulticastGroupEntry(v1::MulticastGroupEntry::default()),
            Replication::CloneSessionEntry(v1::CloneSessionEntry::default()),
        ];
        let replication = replication
            .map(|kind| Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) }));
        let mut content = SwitchContent::default();
        for kind in tables.iter().map(table).chain(replication) {
            let is_optional = !matches!(kind, Kind::TableEntry(_));
            match self.read(kind, &mut content) {
                // Not every switch can read its replication engine.
                Err(SwitchError::Unimplemented) if is_optional => {}
                other => other?,
            }
        }
        Ok(content)
    }

    fn read(&self, kind: Kind, content: &mut SwitchContent) -> Result<(), SwitchError> {
        let begun = Instant::now();
        self.handle.block_on(async {
            let mut answers = self.bounded(self.client.read(vec![kind])).await?.map_err(SwitchError::from_call)?;
            // Each message has the timeout of a call, and the table as a whole has its own.
            while let Some(entities) = self.bounded(answers.next()).await?.map_err(SwitchError::from_call)? {
                entities.into_iter().filter(|entity| !is_default_entry(entity)).for_each(|entity| content.put(entity));
                READ_LIMITS.check(content.len(), begun.elapsed())?;
            }
            Ok(())
        })
    }
}

fn is_default_entry(entity: &v1::Entity) -> bool {
    matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_has_a_limit() {
        let limits = ReadLimits { max_entities: 3, max_time: Duration::from_secs(60) };
        assert_eq!(limits.check(3, Duration::from_secs(60)), Ok(()));
        for (entities, seconds) in [(4, 0), (0, 61)] {
            let stopped = limits.check(entities, Duration::from_secs(seconds));
            assert_eq!(stopped, Err(Incompatibility::TooMuchToRead { max_entities: 3, minutes: 1 }));
            let text = stopped.expect_err("it is too much").to_string();
            assert!(text.contains("more than 3 entries, or takes more than 1 minutes"), "{text}");
        }
    }
}
