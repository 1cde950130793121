//! A switch's P4Runtime server: the stream on which a primary is made, and the calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_proto::v1::set_forwarding_pipeline_config_request::Action as Install;
use p4runtime_proto::v1::stream_message_request::Update as Request;
use p4runtime_proto::v1::stream_message_response::Update as Response;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{self, ForwardingPipelineConfig};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::content::Content;
use crate::trouble::{End, Trouble, causes};

/// How long a switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to be reached.
const REACH: Duration = Duration::from_secs(5);
/// What is read of a switch: eight entities for each of the rules that there may be, and five minutes for each table.
const READ: Reading = Reading { entities: 8_000_000, time: Duration::from_secs(300) };
/// The largest message that is taken or sent, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// How much a switch may hold, and how long it may take to say what a table holds.
struct Reading {
    entities: usize,
    time: Duration,
}

impl Reading {
    /// After so many entities and so long in one table.
    fn check(&self, entities: usize, time: Duration) -> Result<(), Trouble> {
        if entities <= self.entities && time <= self.time {
            return Ok(());
        }
        let (most, minutes) = (self.entities, self.time.as_secs() / 60);
        let why = format!("what the switch holds is more than {most} entries, or than it says in {minutes} minutes");
        Err(Trouble::Unfit(why))
    }
}

/// Where a controller stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Primary,
    /// Another one is, with this election id.
    Other(u128),
    /// Nobody is; the highest election id so far.
    Nobody(u128),
}

/// What a stream brings.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Standing(Standing),
    Ended(End),
}

/// A connection.
pub(crate) struct Link {
    handle: Handle,
    stub: P4RuntimeClient<Channel>,
    device_id: u64,
    requests: mpsc::Sender<v1::StreamMessageRequest>,
    /// When all calls together have to be done.
    until: Option<Instant>,
    /// Told while a call waits for so many seconds.
    slow: Arc<dyn Fn(u64) + Send + Sync>,
    /// Who this wants to be.
    pub election_id: u128,
}

impl Link {
    /// Connects, and asks to be primary with `election_id`, or else only who is. What the stream brings is told from a task.
    ///
    /// # Errors
    /// Why not.
    pub fn open(
        handle: &Handle,
        endpoint: &Endpoint,
        device_id: u64,
        election_id: Option<u128>,
        slow: Arc<dyn Fn(u64) + Send + Sync>,
        tell: impl Fn(Told) + Send + 'static,
    ) -> Result<Link, End> {
        let gone = |why: &str| End::Gone(why.to_owned());
        let is_tls = endpoint.uri().scheme_str() == Some("https");
        let opened = async {
            let channel = tokio::time::timeout(REACH, endpoint.connect()).await.map_err(|_| gone("no answer"))?;
            let channel = channel.map_err(|error| End::Gone(unreached(&causes(&error), is_tls)))?;
            let mut stub = P4RuntimeClient::new(channel)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES);
            let (requests, receiver) = mpsc::channel(16);
            // Servers may answer only when they have heard something.
            let first = arbitration(device_id, election_id);
            requests.send(first).await.map_err(|_| gone("the stream ended"))?;
            let stream = tokio::time::timeout(REACH, stub.stream_channel(ReceiverStream::new(receiver))).await;
            let stream = stream.map_err(|_| gone("no answer"))?.map_err(|status| match End::of(&status) {
                End::Gone(_) if std::error::Error::source(&status).is_some() => End::Gone(unheard(is_tls)),
                end => end,
            })?;
            Ok::<_, End>((stub, requests, stream.into_inner()))
        };
        let (stub, requests, mut stream) = handle.block_on(opened)?;
        handle.spawn(async move {
            loop {
                match stream.message().await {
                    Ok(Some(response)) => {
                        // Packets and digests are for others.
                        if let Some(Response::Arbitration(update)) = response.update {
                            tell(Told::Standing(standing(&update)));
                        }
                    }
                    Ok(None) => break tell(Told::Ended(End::Gone("the switch ended the stream".to_owned()))),
                    Err(status) => break tell(Told::Ended(End::of(&status))),
                }
            }
        });
        let handle = handle.clone();
        let election_id = election_id.unwrap_or(1);
        Ok(Link { handle, stub, device_id, requests, until: None, slow, election_id })
    }

    /// All calls from now on have to be done until then; each of them has its own time besides.
    pub fn wait_until(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// Asks to be primary.
    pub fn claim(&mut self, election_id: u128) {
        self.election_id = election_id;
        // A full queue is a stream that goes nowhere, which its end tells.
        let _ = self.requests.try_send(arbitration(self.device_id, Some(election_id)));
    }

    fn call<T>(&self, future: impl Future<Output = Result<T, Status>>) -> Result<T, Trouble> {
        self.handle.block_on(self.answered(future))?.map_err(|status| Trouble::of(&status))
    }

    /// Waits for an answer, and tells that it does when that takes long.
    async fn answered<T>(&self, future: impl Future<Output = T>) -> Result<T, Trouble> {
        /// When waiting is told first, and how often then.
        const TOLD: Duration = Duration::from_secs(2);
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let patience = left.map_or(PATIENCE, |left| left.min(PATIENCE));
        let begun = Instant::now();
        tokio::pin!(future);
        loop {
            let waited = begun.elapsed();
            let Some(left) = patience.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(Trouble::Gone(match waited >= PATIENCE {
                    true => format!("no answer in {} s", PATIENCE.as_secs()),
                    false => "it takes too long for one change".to_owned(),
                }));
            };
            match tokio::time::timeout(left.min(TOLD), &mut future).await {
                Ok(answer) => return Ok(answer),
                Err(_) => (self.slow)(begun.elapsed().as_secs()),
            }
        }
    }

    fn election(&self) -> Option<v1::Uint128> {
        Some(v1::Uint128 { high: (self.election_id >> 64) as u64, low: self.election_id as u64 })
    }

    /// What the switch runs, if it runs something.
    pub fn config(&self) -> Result<Option<ForwardingPipelineConfig>, Trouble> {
        let response_type = ResponseType::P4infoAndCookie.into();
        let request = v1::GetForwardingPipelineConfigRequest { device_id: self.device_id, response_type };
        let answer = async {
            match self.stub.clone().get_forwarding_pipeline_config(request).await {
                Err(status) if status.code() == Code::FailedPrecondition => Ok(None),
                other => other.map(|answer| answer.into_inner().config),
            }
        };
        self.call(answer)
    }

    /// Makes it run something else; what it held is gone then.
    pub fn install(&self, config: ForwardingPipelineConfig) -> Result<(), Trouble> {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            election_id: self.election(),
            action: Install::VerifyAndCommit.into(),
            config: Some(config),
            ..Default::default()
        };
        self.call(self.stub.clone().set_forwarding_pipeline_config(request)).map(drop)
    }

    /// Whether it makes a batch visible as a whole.
    pub fn is_atomic(&self) -> Result<bool, Trouble> {
        match self.write(Vec::new(), Atomicity::DataplaneAtomic) {
            Ok(()) => Ok(true),
            Err(Trouble::Unimplemented | Trouble::Refused(_)) => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Writes. What is refused is told with the update that was refused first.
    pub fn write(&self, updates: Vec<v1::Update>, atomicity: Atomicity) -> Result<(), Trouble> {
        let known = updates.clone();
        let request = v1::WriteRequest {
            device_id: self.device_id,
            election_id: self.election(),
            updates,
            atomicity: atomicity.into(),
            ..Default::default()
        };
        self.call(self.stub.clone().write(request)).map(drop).map_err(|trouble| trouble.about(&known))
    }

    /// What these tables hold, and the groups and sessions.
    pub fn content(&self, tables: &[u32]) -> Result<Content, Trouble> {
        let table = |table_id: &u32| Kind::TableEntry(v1::TableEntry { table_id: *table_id, ..Default::default() });
        let of = |of| Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(of) });
        use v1::packet_replication_engine_entry::Type::{CloneSessionEntry, MulticastGroupEntry};
        let replication = [MulticastGroupEntry(Default::default()), CloneSessionEntry(Default::default())].map(of);
        let mut content = Content::default();
        for kind in tables.iter().map(table).chain(replication) {
            let is_optional = !matches!(kind, Kind::TableEntry(_));
            match self.read(kind, &mut content) {
                // Not every switch reads these.
                Err(Trouble::Unimplemented) if is_optional => {}
                other => other?,
            }
        }
        Ok(content)
    }

    fn read(&self, kind: Kind, content: &mut Content) -> Result<(), Trouble> {
        let entities = vec![v1::Entity { entity: Some(kind) }];
        let request = v1::ReadRequest { device_id: self.device_id, entities, ..Default::default() };
        let mut stub = self.stub.clone();
        // A table may be long: each piece of it has its own time. Neither pieces nor time are without end.
        let begun = Instant::now();
        self.handle.block_on(async {
            let refused = |status: Status| Trouble::of(&status);
            let mut answers = self.answered(stub.read(request)).await?.map_err(refused)?.into_inner();
            while let Some(answer) = self.answered(answers.message()).await?.map_err(refused)? {
                answer.entities.into_iter().filter(|entity| !is_default(entity)).for_each(|entity| content.put(entity));
                READ.check(content.len(), begun.elapsed())?;
            }
            Ok(())
        })
    }
}

/// Why there is no connection, with what helps where one side speaks TLS and the other does not.
fn unreached(why: &str, is_tls: bool) -> String {
    let is_plain = ["corrupt message", "InvalidContentType", "invalid content type"].iter().any(|it| why.contains(it));
    match is_tls && is_plain {
        true => "what answers there does not use TLS: leave out --switch-tls-ca and what goes with it".to_owned(),
        false => why.to_owned(),
    }
}

/// The same where a connection ends before it brings anything.
fn unheard(is_tls: bool) -> String {
    let remedy = match is_tls {
        true => "if it lets only clients with a certificate in, give --switch-tls-cert and --switch-tls-key",
        false => "if it uses TLS, give --switch-tls-ca, the authority that signed its certificate",
    };
    format!("the connection broke before the first answer; {remedy}")
}

fn is_default(entity: &v1::Entity) -> bool {
    matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action)
}

fn arbitration(device_id: u64, id: Option<u128>) -> v1::StreamMessageRequest {
    let election_id = id.map(|id| v1::Uint128 { high: (id >> 64) as u64, low: id as u64 });
    let update = v1::MasterArbitrationUpdate { device_id, election_id, ..Default::default() };
    v1::StreamMessageRequest { update: Some(Request::Arbitration(update)) }
}

fn standing(update: &v1::MasterArbitrationUpdate) -> Standing {
    let id = update.election_id.as_ref().map_or(0, |id| u128::from(id.high) << 64 | u128::from(id.low));
    match Code::from_i32(update.status.as_ref().map_or(0, |status| status.code)) {
        // BMv2's server takes who names no election id for the primary as long as nobody is; it cannot write like that.
        Code::Ok if id == 0 => Standing::Nobody(0),
        Code::Ok => Standing::Primary,
        Code::NotFound => Standing::Nobody(id),
        _ => Standing::Other(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_has_an_end() {
        let limits = Reading { entities: 3, time: Duration::from_secs(60) };
        assert_eq!(limits.check(3, Duration::from_secs(60)), Ok(()));
        for (entities, seconds) in [(4, 0), (0, 61)] {
            let stopped = limits.check(entities, Duration::from_secs(seconds));
            let Err(Trouble::Unfit(why)) = stopped else { panic!("{entities} in {seconds} s are read") };
            assert!(why.contains("more than 3 entries, or than it says in 1 minutes"), "{why}");
        }
    }
}
