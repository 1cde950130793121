//! A P4Runtime server without a switch: it holds elections, rejects chosen updates, and can stop to answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use p4runtime_client::{Client, Code, ServerTarget};
use p4runtime_proto::config::{Documentation, P4Info, PkgInfo, Table};
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use p4runtime_proto::v1::stream_message_request::Update as FromController;
use p4runtime_proto::v1::stream_message_response::Update as ToController;
use p4runtime_proto::{google, v1};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::tokio_stream::{self, Stream};
use tonic::{Request, Response, Status, Streaming};

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type EventSender = mpsc::Sender<Result<v1::StreamMessageResponse, Status>>;

/// The election of one device.
#[derive(Default)]
pub struct Election {
    next: u64,
    highest: u128,
    streams: BTreeMap<u64, (Option<u128>, EventSender)>,
}

/// The behaviour of a server.
#[derive(Clone, Default)]
pub struct FakeServer {
    /// The election, which every clone shares.
    pub election: Arc<Mutex<Election>>,
    /// Codes of the updates that are rejected, by position. Codes beyond the updates are ignored.
    pub rejected: Vec<(usize, Code)>,
    /// Whether calls except the stream are never answered.
    pub is_silent: bool,
    /// Whether the second message of a read is never sent.
    pub stops_reading: bool,
    /// The bytes of the P4Info's description.
    pub description_bytes: usize,
    /// Number of empty tables in the P4Info, and of empty entities in the first message of a read. Each is two bytes.
    pub empty_elements: usize,
    /// What streams get instead of an election.
    pub noise: Option<StreamNoise>,
}

/// The behaviour of a server that takes no requests of a stream.
#[derive(Clone, Copy)]
pub struct StreamNoise {
    /// The report that each stream begins with, if any.
    pub first: Option<Code>,
    /// The bytes of a packet that follows every 10 ms.
    pub packet_bytes: usize,
}

impl StreamNoise {
    async fn send(self, sender: EventSender) {
        let first = self.first.map(|code| {
            let status = Some(google::rpc::Status { code: code as i32, ..Default::default() });
            ToController::Arbitration(v1::MasterArbitrationUpdate { device_id: 1, status, ..Default::default() })
        });
        let packet = v1::PacketIn { payload: vec![0; self.packet_bytes], ..Default::default() };
        let packets = std::iter::repeat(ToController::Packet(packet));
        for update in first.into_iter().chain(packets) {
            if sender.send(Ok(v1::StreamMessageResponse { update: Some(update) })).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn emit_id(id: u128) -> v1::Uint128 {
    v1::Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

impl Election {
    /// Reports the state of the election to every stream.
    fn report(&self) {
        let primary = self.streams.values().filter_map(|(id, _)| *id).max().filter(|id| *id == self.highest);
        for (id, sender) in self.streams.values() {
            let code = match primary {
                Some(primary) if *id == Some(primary) => Code::Ok,
                Some(_) => Code::AlreadyExists,
                None => Code::NotFound,
            };
            let update = v1::MasterArbitrationUpdate {
                device_id: 1,
                election_id: (self.highest > 0).then(|| emit_id(self.highest)),
                status: Some(google::rpc::Status { code: code as i32, ..Default::default() }),
                ..Default::default()
            };
            let update = Some(ToController::Arbitration(update));
            let _ = sender.try_send(Ok(v1::StreamMessageResponse { update }));
        }
    }
}

impl FakeServer {
    /// Starts the server on a port of its own, in the current executor.
    pub async fn start(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it listens");
        let (sender, incoming) = mpsc::channel(4);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = sender.send(Ok::<_, std::io::Error>(stream)).await;
            }
        });
        let service = P4RuntimeServer::new(self);
        tokio::spawn(async move {
            let incoming = ReceiverStream::new(incoming);
            // A small window, so a stream whose requests are not taken is full soon.
            let server = tonic::transport::Server::builder().initial_stream_window_size(1_000);
            let _ = server.serve_with_incoming(service, incoming).await;
        });
        address
    }

    /// Starts the server, and connects a client to it.
    pub async fn connect(self) -> Client {
        let target = ServerTarget::new(&self.start().await.to_string(), None).expect("an address");
        Client::connect(&target, 1).await.expect("it answers")
    }

    async fn answer<T>(&self, answer: T) -> Result<Response<T>, Status> {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl P4Runtime for FakeServer {
    type ReadStream = ResponseStream<v1::ReadResponse>;
    type StreamChannelStream = ResponseStream<v1::StreamMessageResponse>;

    async fn write(&self, request: Request<v1::WriteRequest>) -> Result<Response<v1::WriteResponse>, Status> {
        let count = request.into_inner().updates.len();
        if self.rejected.is_empty() {
            return self.answer(v1::WriteResponse::default()).await;
        }
        let mut details = vec![v1::Error::default(); count];
        for (index, code) in self.rejected.iter().filter(|(index, _)| *index < count) {
            details[*index].canonical_code = *code as i32;
            details[*index].message = format!("update {index} is wrong");
        }
        let any = |error: &v1::Error| prost_types::Any { type_url: String::new(), value: error.encode_to_vec() };
        let status = google::rpc::Status { details: details.iter().map(any).collect(), ..Default::default() };
        Err(Status::with_details(Code::Unknown, "some updates failed", status.encode_to_vec().into()))
    }

    async fn read(&self, _: Request<v1::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let stops = self.stops_reading;
        let entity = v1::entity::Entity::CounterEntry(v1::CounterEntry::default());
        let page = match self.empty_elements {
            0 => v1::ReadResponse { entities: vec![v1::Entity { entity: Some(entity) }; 2] },
            count => v1::ReadResponse { entities: vec![v1::Entity::default(); count] },
        };
        let (sender, receiver) = mpsc::channel(2);
        tokio::spawn(async move {
            let _ = sender.send(Ok(page.clone())).await;
            if stops {
                std::future::pending::<()>().await;
            }
            let _ = sender.send(Ok(page)).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        _: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        self.answer(v1::SetForwardingPipelineConfigResponse::default()).await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        _: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        let mut answer = v1::GetForwardingPipelineConfigResponse::default();
        if self.description_bytes > 0 {
            let doc = Documentation { brief: "x".repeat(self.description_bytes), ..Default::default() };
            let pkg_info = Some(PkgInfo { doc: Some(doc), ..Default::default() });
            answer.config.get_or_insert_default().p4info = Some(P4Info { pkg_info, ..Default::default() });
        }
        if self.empty_elements > 0 {
            let tables = vec![Table::default(); self.empty_elements];
            answer.config.get_or_insert_default().p4info = Some(P4Info { tables, ..Default::default() });
        }
        self.answer(answer).await
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        if self.is_silent {
            return Ok(Response::new(Box::pin(tokio_stream::pending())));
        }
        let mut requests = request.into_inner();
        let (sender, receiver) = mpsc::channel(64);
        if let Some(noise) = self.noise {
            tokio::spawn(async move {
                noise.send(sender).await;
                drop(requests);
            });
            return Ok(Response::new(Box::pin(ReceiverStream::new(receiver))));
        }
        let election = self.election.clone();
        tokio::spawn(async move {
            let number = {
                let mut election = election.lock().expect("no test panics with it");
                election.next += 1;
                election.next
            };
            while let Ok(Some(request)) = requests.message().await {
                let Some(FromController::Arbitration(update)) = request.update else { continue };
                let id = update.election_id.map(|id| u128::from(id.high) << 64 | u128::from(id.low));
                let mut election = election.lock().expect("no test panics with it");
                let is_taken = |(other, (taken, _)): (&u64, &(Option<u128>, _))| *other != number && *taken == id;
                if id.is_some() && election.streams.iter().any(is_taken) {
                    let _ = sender.try_send(Err(Status::invalid_argument("election id already exists")));
                    break;
                }
                election.highest = election.highest.max(id.unwrap_or(0));
                election.streams.insert(number, (id, sender.clone()));
                election.report();
            }
            let mut election = election.lock().expect("no test panics with it");
            election.streams.remove(&number);
            election.report();
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn capabilities(
        &self,
        _: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        self.answer(v1::CapabilitiesResponse::default()).await
    }
}

/// Runs a test in an executor, for at most 120 s.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let bounded = async { tokio::time::timeout(Duration::from_secs(120), test).await };
    runtime.block_on(bounded).expect("the test ends in time");
}
