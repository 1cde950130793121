//! A connection to a P4Runtime server, and how calls fail.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_proto::v1::stream_message_request::Update as Request;
use p4runtime_proto::v1::stream_message_response::Update as Response;
use p4runtime_proto::{google, v1};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

use super::args::ServerArgs;
use crate::dial::{causes, is_plain};
use crate::output::Failure;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// A primary that is one for so long is none of those that write one thing and go.
const STAYS: Duration = Duration::from_secs(2);
/// How long others that write one thing may be faster.
const QUEUE: Duration = Duration::from_secs(15);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);
/// The largest message that is taken, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A server's device.
pub struct Client {
    runtime: Runtime,
    stub: P4RuntimeClient<Channel>,
    device_id: u64,
    election_id: Option<u128>,
}

/// What a server says about roles: whether this one is primary, and the highest election id that it has seen.
type Standing = (Code, Option<u128>);

/// A stream on which a role was asked for.
pub struct Session {
    /// What the server tells.
    pub responses: Streaming<v1::StreamMessageResponse>,
    requests: mpsc::Sender<v1::StreamMessageRequest>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// If nobody answers there, or not in the way the options say.
    pub fn connect(args: &ServerArgs) -> Result<Client, Failure> {
        let dial = args.dial();
        let (address, is_tls) = (dial.address(), dial.tls_ca.is_some());
        let endpoint = dial.endpoint()?.connect_timeout(Duration::from_secs(5));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        let channel = runtime.block_on(async { endpoint.connect().await }).map_err(|error| {
            let causes = causes(&format!("no P4Runtime server answers on {address}"), &error);
            // What answers a greeting of TLS with something else does not speak it.
            if is_tls && is_plain(&causes) {
                return anyhow!("the server on {address} does not use TLS; leave out --tls-ca and what goes with it");
            }
            let hint = if is_tls { "" } else { "; `triplane run PROG.p4 ... --p4runtime` starts a server" };
            anyhow!("{causes}{hint}")
        })?;
        let stub = P4RuntimeClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Client { runtime, stub, device_id: args.device_id, election_id: args.election_id })
    }

    /// Waits for what comes, for as long as it takes.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn call<T>(&self, future: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, Failure> {
        let bounded = async { tokio::time::timeout(PATIENCE, future).await };
        match self.runtime.block_on(bounded) {
            Ok(result) => result.map_err(|status| failure(&status)),
            Err(_) => Err(anyhow!("the server does not answer").into()),
        }
    }

    /// What the program of the switch is to a controller.
    pub fn info(&self) -> Result<P4Info, Failure> {
        let response_type = ResponseType::P4infoAndCookie.into();
        let request = v1::GetForwardingPipelineConfigRequest { device_id: self.device_id, response_type };
        let answer = self.call(self.stub.clone().get_forwarding_pipeline_config(request))?;
        let config = answer.into_inner().config;
        config
            .and_then(|config| config.p4info)
            .ok_or_else(|| Failure::Input("the switch has no program yet".to_owned()))
    }

    /// Reads, and hands over each entity as it comes.
    pub fn read(&self, entities: Vec<Kind>, mut each: impl FnMut(Kind) -> Result<(), Failure>) -> Result<(), Failure> {
        let entities = entities.into_iter().map(|kind| v1::Entity { entity: Some(kind) }).collect();
        let request = v1::ReadRequest { device_id: self.device_id, entities, ..Default::default() };
        let mut answers = self.call(self.stub.clone().read(request))?.into_inner();
        while let Some(answer) = self.call(answers.message())? {
            answer.entities.into_iter().filter_map(|entity| entity.entity).try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Opens a stream on which a role is asked for, and gives what the server says to that.
    fn stream(&self, id: Option<u128>) -> Result<(Session, Standing), Failure> {
        let (requests, receiver) = mpsc::channel(16);
        // Servers may begin to answer only when they have heard something.
        requests.try_send(self.arbitration(id)).expect("a new queue has room");
        let responses = self.call(self.stub.clone().stream_channel(ReceiverStream::new(receiver)))?.into_inner();
        let mut session = Session { responses, requests };
        let standing = self.arbitrated(&mut session)?;
        Ok((session, standing))
    }

    /// Becomes the primary of the default role, and gives the election id of that.
    ///
    /// Without an id of its own it does so only while nobody is primary, with the highest id that the server has seen:
    /// a controller that comes back with its id is not locked out by someone who looked after the switch meanwhile.
    ///
    /// # Errors
    /// If another controller is primary; without an id of its own, if it stays that.
    pub fn primary(&self) -> Result<(Session, u128), Failure> {
        match self.election_id {
            Some(id) => self.claim(id),
            None => self.take_turn(),
        }
    }

    fn claim(&self, wanted: u128) -> Result<(Session, u128), Failure> {
        let (session, standing) = self.stream(Some(wanted))?;
        match standing {
            (Code::Ok, _) => Ok((session, wanted)),
            (Code::NotFound, Some(highest)) => Err(Failure::Input(format!(
                "election id {wanted} is below {highest}, the highest that the switch has seen; nobody is primary, and \
                 --election-id {highest} or a higher one would be"
            ))),
            (_, highest) => Err(taken(highest)),
        }
    }

    /// Becomes the primary when nobody is. Others like this one are primary for a moment only, and all want the same
    /// election id: which of them gets it the server decides, and those that do not try again.
    fn take_turn(&self) -> Result<(Session, u128), Failure> {
        let begin = Instant::now();
        loop {
            let (mut session, mut standing) = self.stream(None)?;
            while standing.0 == Code::AlreadyExists {
                // A timer has to be made where the runtime is.
                let told = async { tokio::time::timeout(STAYS, session.responses.message()).await };
                standing = match self.wait(told) {
                    Ok(Ok(Some(v1::StreamMessageResponse { update: Some(Response::Arbitration(update)) }))) => {
                        self::standing(&update)
                    }
                    Ok(Ok(Some(_))) => standing,
                    Ok(Ok(None) | Err(_)) => break,
                    Err(_) => return Err(taken(standing.1)),
                };
            }
            let wanted = standing.1.unwrap_or(1);
            let claimed = self.arbitrate(&mut session, Some(wanted));
            match claimed {
                Ok((Code::Ok, highest)) if highest == Some(wanted) => return Ok((session, wanted)),
                _ if begin.elapsed() < QUEUE => std::thread::sleep(PAUSE),
                Ok((_, highest)) => return Err(taken(highest)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// As [`Client::primary`], or else a stream that only listens: without an election id.
    pub fn listen(&self) -> Result<(Session, Option<u128>), Failure> {
        match self.election_id {
            Some(_) => self.primary().map(|(session, id)| (session, Some(id))),
            None => {
                let (mut session, standing) = self.stream(None)?;
                match standing {
                    (Code::AlreadyExists, _) => Ok((session, None)),
                    (_, highest) => {
                        let wanted = highest.unwrap_or(1);
                        let (code, _) = self.arbitrate(&mut session, Some(wanted))?;
                        Ok((session, (code == Code::Ok).then_some(wanted)))
                    }
                }
            }
        }
    }

    fn arbitration(&self, id: Option<u128>) -> v1::StreamMessageRequest {
        let election_id = id.map(|id| v1::Uint128 { high: (id >> 64) as u64, low: id as u64 });
        let update = v1::MasterArbitrationUpdate { device_id: self.device_id, election_id, ..Default::default() };
        v1::StreamMessageRequest { update: Some(Request::Arbitration(update)) }
    }

    fn arbitrate(&self, session: &mut Session, id: Option<u128>) -> Result<Standing, Failure> {
        let sent = self.wait(session.requests.send(self.arbitration(id)));
        sent.map_err(|_| anyhow!("the server ended the stream"))?;
        self.arbitrated(session)
    }

    /// What the server says next about roles.
    fn arbitrated(&self, session: &mut Session) -> Result<Standing, Failure> {
        loop {
            let answer = self.call(session.responses.message())?;
            let answer = answer.ok_or_else(|| anyhow!("the server ended the stream"))?;
            if let Some(Response::Arbitration(update)) = answer.update {
                return Ok(standing(&update));
            }
        }
    }

    /// Writes one update as the primary.
    pub fn write(&self, election_id: u128, kind: v1::update::Type, entity: Kind) -> Result<(), Failure> {
        let request = v1::WriteRequest {
            device_id: self.device_id,
            election_id: Some(v1::Uint128 { high: (election_id >> 64) as u64, low: election_id as u64 }),
            updates: vec![v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(entity) }) }],
            ..Default::default()
        };
        self.call(self.stub.clone().write(request)).map(drop)
    }
}

/// Where a controller stands after an update, and the highest election id so far.
pub fn standing(update: &v1::MasterArbitrationUpdate) -> Standing {
    let code = Code::from_i32(update.status.as_ref().map_or(0, |status| status.code));
    let id = update.election_id.as_ref().map(|id| u128::from(id.high) << 64 | u128::from(id.low));
    match (code, id.filter(|id| *id > 0)) {
        // BMv2's server takes who names no election id for the primary as long as nobody is.
        (Code::Ok, None) => (Code::NotFound, None),
        standing => standing,
    }
}

fn taken(highest: Option<u128>) -> Failure {
    let id = highest.map_or(String::new(), |id| format!(", with election id {id}"));
    let next = highest.and_then(|id| id.checked_add(1));
    let remedy = next.map_or(String::new(), |id| format!("; --election-id {id} takes its place"));
    Failure::Input(format!("another controller is primary{id}{remedy}"))
}

/// What a call failed with: what the server says of each update, if it does.
fn failure(status: &tonic::Status) -> Failure {
    let details = google::rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
    let errors = details.iter().filter_map(|any| v1::Error::decode(&*any.value).ok());
    let told: Vec<String> = errors
        .filter(|error| error.canonical_code != 0)
        .map(|error| words(error.canonical_code, &error.message))
        .collect();
    let text = match told.is_empty() {
        true => words(status.code().into(), status.message()),
        false => told.join("\n"),
    };
    // What the transport has to say is no answer of the server's.
    let is_transport = std::error::Error::source(status).is_some();
    match status.code() {
        _ if is_transport => anyhow!(
            "what answers there speaks no P4Runtime without TLS; if the server uses TLS, give --tls-ca, the authority \
                 that signed its certificate ({text})"
        )
        .into(),
        Code::Unavailable | Code::Cancelled => anyhow!("the server went away: {text}").into(),
        _ => Failure::Input(text),
    }
}

/// `NOT_FOUND: there is none to delete`
pub fn words(code: i32, message: &str) -> String {
    let name = format!("{:?}", Code::from_i32(code));
    let mut canonical = String::new();
    for (at, letter) in name.char_indices() {
        let is_word = at > 0 && letter.is_uppercase();
        canonical.extend(is_word.then_some('_').into_iter().chain(letter.to_uppercase()));
    }
    format!("{canonical}: {}", diagnostics::visible(message))
}
