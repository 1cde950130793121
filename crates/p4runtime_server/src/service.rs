//! Implements the gRPC service: tasks, queues and timeouts around the [`Server`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use authorization::Policy;
use p4runtime_proto::prost::Message as _;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_server::P4Runtime;
use switch::{Frame, SwitchControl};
use tokio::sync::{Notify, Semaphore};
use tonic::{Request, Response};

use crate::arbitration::{Outbox, StreamId};
use crate::bounded_queue::{self, queue};
use crate::caller::Caller;
use crate::connections::{ConnectionSlot, ConnectionState, READS_A_CONNECTION, READS_A_PEER};
use crate::data_plane::{DataPlane, DataPlaneHandle, NotificationReceiver};
use crate::memory_budget::{MemoryBudget, MemoryCharge};
use crate::message_admission::HeldResources;
use crate::pipeline::{self, Pipeline};
use crate::read::{LiveQuery, ReadPiece, ResponseChunks};
use crate::read_pace::ReadPace;
use crate::server::{ConfigAction, ConfigPlan, Server, reconcile};
use crate::shadow::ShadowState;
use crate::status::{Code, Refusal, Status};
use crate::store::StoreWriter;
use crate::stream_place::StreamPlace;
use crate::trailer;

/// Maximum size of the messages queued for one client, in bytes. When the queue is full, packets, digests and errors
/// are dropped; a client that does not even take arbitration messages is disconnected.
const QUEUE_BYTES: usize = 2 << 20;
/// Maximum size of a read's responses queued for its client, in bytes.
const ANSWER_BYTES: usize = 128 << 10;
/// Maximum number of concurrent reads on all connections. Others wait.
pub(crate) const READS: usize = 64;
/// Number of updates run between two batches of packets, unless a write is atomic.
const UPDATES_AT_ONCE: usize = 128;

type RpcResult<T> = Result<Response<T>, tonic::Status>;
type StreamQueue = bounded_queue::BoundedSender<v1::StreamMessageResponse>;

impl From<Status> for tonic::Status {
    fn from(status: Status) -> tonic::Status {
        let status = trailer::fit(status);
        let details = status.detail_bytes();
        tonic::Status::with_details(tonic::Code::from_i32(status.code as i32), status.message, details.into())
    }
}

impl From<Refusal> for tonic::Status {
    fn from(refusal: Refusal) -> tonic::Status {
        Status::from(refusal).into()
    }
}

/// State shared by all tasks of a server.
pub(crate) struct ServiceState {
    server: Mutex<Server>,
    queues: Mutex<BTreeMap<StreamId, StreamQueue>>,
    pub(crate) plane: DataPlaneHandle,
    pub(crate) store: Option<StoreWriter>,
    /// Serializes writes and changes of the pipeline.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Wakes the notification task when a message may be due earlier than planned.
    earlier: Notify,
    started: Instant,
    /// Number of messages dropped because their client was too slow.
    dropped: AtomicU64,
    budget: MemoryBudget,
    reads: Semaphore,
    policy: Option<Arc<Policy>>,
}

/// The service. One instance, cheap to clone, serves all connections.
#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<ServiceState>);

impl ServiceState {
    pub(crate) fn new(server: Server, plane: DataPlaneHandle, store: Option<StoreWriter>) -> ServiceState {
        let budget = MemoryBudget::new(server.settings().client_timeout);
        ServiceState {
            policy: server.settings().policy.clone(),
            server: Mutex::new(server),
            queues: Mutex::default(),
            plane,
            store,
            turn: tokio::sync::Mutex::new(()),
            earlier: Notify::new(),
            started: Instant::now(),
            dropped: AtomicU64::new(0),
            budget,
            reads: Semaphore::new(READS),
        }
    }

    pub(crate) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<StreamId, StreamQueue>> {
        self.queues.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the client of a call. Its certificate is read once for each connection.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` if an authorization file is used and has no entry for it.
    pub(crate) fn caller(&self, extensions: &tonic::Extensions) -> Result<Caller, Refusal> {
        let of_certificate = || {
            let certificate = grpc_admission::client_certificate::<ConnectionState>(extensions);
            Caller::of(self.policy.as_deref(), certificate.as_deref())
        };
        match extensions.get::<Arc<ConnectionSlot>>() {
            Some(slot) => slot.state.caller.get_or_init(of_certificate).clone(),
            None => of_certificate(),
        }
    }

    /// Checks before the first byte of a message is read that the client may make such a call at all.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`
    pub(crate) fn check_call(&self, extensions: &tonic::Extensions, method: &str) -> Result<(), Refusal> {
        let caller = self.caller(extensions)?;
        match method {
            "Write" => caller.check_write(),
            "SetForwardingPipelineConfig" => caller.check_pipeline(),
            _ => Ok(()),
        }
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Returns the memory budget of all calls.
    pub(crate) fn budget(&self) -> MemoryBudget {
        self.budget.clone()
    }

    /// Returns the number of messages dropped because their client did not take them.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Puts messages into the queues of their streams.
    fn deliver(&self, outbox: Outbox) {
        use v1::stream_message_response::Update;
        if outbox.is_empty() {
            return;
        }
        let queues = self.queues();
        for (stream, message) in outbox {
            let Some(queue) = queues.get(&stream) else { continue };
            let essential = matches!(message.update, Some(Update::Arbitration(_)));
            if !queue.try_send(message) {
                if essential {
                    queue.mark_too_slow();
                } else {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Handles the messages of one stream until it ends.
    async fn run_stream(self: Arc<Self>, stream: StreamId, mut requests: tonic::Streaming<v1::StreamMessageRequest>) {
        let queue = self.queues().get(&stream).cloned();
        let Some(queue) = queue else { return };
        // Streams that never send arbitration would use up the limit of streams.
        let timeout = tokio::time::sleep(self.server().settings().client_timeout);
        tokio::pin!(timeout);
        let mut is_live = false;
        loop {
            let message = tokio::select! {
                message = requests.message() => message,
                () = queue.closed() => break,
                () = queue.until_marked_too_slow() => {
                    let slow = Refusal::new(Code::ResourceExhausted, "the client is not reading its messages");
                    queue.end(slow.into());
                    break;
                }
                () = &mut timeout, if !is_live => {
                    let silent = Refusal::new(Code::DeadlineExceeded, "the stream has sent no arbitration update in time");
                    queue.end(silent.into());
                    break;
                }
            };
            let message = match message {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(status) => {
                    queue.end(status);
                    break;
                }
            };
            let mut outbox = Outbox::new();
            let handled = self.server().stream_message(stream, message, &mut outbox);
            is_live = is_live || self.server().is_live(stream);
            self.deliver(outbox);
            match handled {
                Ok(None) => {}
                Ok(Some(frame)) => self.packet_out(stream, frame),
                Err(status) => {
                    queue.end(status.into());
                    break;
                }
            }
        }
        let mut outbox = Outbox::new();
        self.queues().remove(&stream);
        self.server().end_stream(stream, &mut outbox);
        self.deliver(outbox);
    }

    fn packet_out(&self, stream: StreamId, frame: Frame) {
        let inject = move |plane: &mut DataPlane<'_>| plane.switch.step(plane.now, &mut vec![frame], plane.output);
        let posted = self.plane.post(inject);
        if !posted {
            let refusal = Refusal::new(Code::ResourceExhausted, "packets arrive faster than the switch processes them");
            let details = v1::stream_error::Details::PacketOut(v1::PacketOutError { packet_out: None });
            let mut outbox = Outbox::new();
            self.server().stream_error(stream, refusal, details, &mut outbox);
            self.deliver(outbox);
        }
    }

    /// Forwards notifications of the switch, and sends digest lists when they are due.
    pub(crate) async fn run_notifications(self: Arc<Self>, mut notifications: NotificationReceiver) {
        /// Maximum time to sleep when nothing is due.
        const IDLE: Duration = Duration::from_secs(3600);
        loop {
            let wait = match self.server().next_ns() {
                Some(next_ns) => Duration::from_nanos(next_ns.saturating_sub(self.now_ns())),
                None => IDLE,
            };
            let batch = tokio::select! {
                batch = notifications.batches.recv() => match batch {
                    Some(batch) => Some(batch),
                    None => return,
                },
                () = self.earlier.notified() => None,
                () = tokio::time::sleep(wait) => None,
            };
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let (now_ns, wall_ns) = (self.now_ns(), i64::try_from(wall.as_nanos()).unwrap_or(i64::MAX));
            let mut outbox = Outbox::new();
            {
                let mut server = self.server();
                if let Some(batch) = batch {
                    server.notify(batch, now_ns, wall_ns, &mut outbox);
                }
                server.tick(now_ns, wall_ns, &mut outbox);
            }
            self.deliver(outbox);
        }
    }

    /// Performs a write. It completes even if its client is gone.
    async fn write(self: Arc<Self>, request: v1::WriteRequest, caller: Caller) -> Result<(), Status> {
        let turn = self.turn.lock().await;
        self.check_store().await?;
        let mut batch = self.server().begin_write(&request, &caller)?;
        let touched = self.server().touched_elements(&request);
        drop(request);
        let count = if batch.is_atomic() { usize::MAX } else { UPDATES_AT_ONCE };
        {
            let mut server = self.server();
            if let Some(switch) = server.saved_switch() {
                batch.run(switch, usize::MAX, &|| ());
            }
        }
        while !batch.is_finished() {
            let run = self.plane.run(move |plane| {
                batch.run_between_packets(plane, count);
                batch
            });
            batch = run.await?;
        }
        let mut outbox = Outbox::new();
        let result = self.server().finish_write(batch, &mut outbox);
        self.deliver(outbox);
        self.earlier.notify_one();
        let recorded = self.record_touched(touched).await;
        self.keep(turn).await?;
        recorded?;
        result
    }

    /// Checks, before anything is applied, that the store does not lag behind after a failure. The caller has the turn.
    async fn check_store(&self) -> Result<(), Refusal> {
        match &self.store {
            Some(store) => store.check().await,
            None => Ok(()),
        }
    }

    /// Waits until the changes of this turn are durable. The next turn begins as soon as the order is fixed, so that
    /// many writes share a transaction.
    pub(crate) async fn keep(&self, turn: tokio::sync::MutexGuard<'_, ()>) -> Result<(), Refusal> {
        let Some(store) = &self.store else { return Ok(()) };
        let changes = self.server().take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        let durable = store.submit(changes).await;
        drop(turn);
        durable.wait().await
    }

    /// Performs a read, as fast as its client takes the responses.
    async fn read(
        self: Arc<Self>,
        request: v1::ReadRequest,
        caller: Caller,
        answers: bounded_queue::BoundedSender<v1::ReadResponse>,
    ) {
        let Ok(Ok(_turn)) = tokio::time::timeout(self.budget.timeout, self.reads.acquire()).await else {
            return answers.end(Refusal::new(Code::ResourceExhausted, format!("{READS} reads are in progress")).into());
        };
        if let Err(status) = self.answer(request, &caller, &answers).await {
            answers.end(status.into());
        }
    }

    async fn answer(
        &self,
        request: v1::ReadRequest,
        caller: &Caller,
        answers: &bounded_queue::BoundedSender<v1::ReadResponse>,
    ) -> Result<(), Status> {
        let mut reader = self.server().begin_read(request, caller)?;
        let (mut chunks, mut pace) = (ResponseChunks::default(), ReadPace::default());
        while let Some(piece) = reader.next() {
            // Many pieces in a row may have nothing that the caller sees. Other calls have their turns in between.
            tokio::task::consume_budget().await;
            let entities = match piece {
                ReadPiece::Ready(entities) => entities,
                ReadPiece::Live(query) => self.query(reader.program().clone(), query).await?,
            };
            for entity in reader.visible(entities) {
                if let Some(chunk) = chunks.add(entity) {
                    self.send(answers, chunk, &mut pace).await?;
                }
            }
        }
        if let Some(chunk) = chunks.rest() {
            self.send(answers, chunk, &mut pace).await?;
        }
        reader.status()
    }

    /// Sends a part of a response when there is room for it.
    async fn send(
        &self,
        answers: &bounded_queue::BoundedSender<v1::ReadResponse>,
        chunk: v1::ReadResponse,
        pace: &mut ReadPace,
    ) -> Result<(), Refusal> {
        let (begin, left) = (Instant::now(), pace.left(self.budget.timeout));
        pace.bytes += chunk.encoded_len() as u64;
        let sent = tokio::time::timeout(left, answers.send(chunk)).await;
        pace.waited += begin.elapsed();
        match sent {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::new(Code::Aborted, "the client is gone")),
            Err(_) => Err(Refusal::new(Code::DeadlineExceeded, "the client is not reading the response")),
        }
    }

    /// Runs a query on the switch that reads refer to, if it still runs the program of the query.
    async fn query(&self, program: Arc<ir::Program>, query: LiveQuery) -> Result<Vec<v1::entity::Entity>, Refusal> {
        let changed = || Refusal::new(Code::Aborted, "the pipeline changed during the read");
        let now_ns = self.now_ns();
        if let Some(switch) = self.server().saved_switch() {
            return if Arc::ptr_eq(switch.program(), &program) { Ok(query(switch, now_ns)) } else { Err(changed()) };
        }
        let answer = self.plane.run(move |plane| {
            if plane.switch.objects().owns_rows() {
                // Rows whose lease has ended are lost before they are read.
                plane.switch.step(plane.now, &mut Vec::new(), plane.output);
            }
            plane.switch.collect_counts();
            Arc::ptr_eq(plane.switch.program(), &program).then(|| query(plane.switch, plane.now.as_ns()))
        });
        answer.await?.ok_or_else(changed)
    }

    /// Sets a pipeline.
    async fn set_config(
        self: Arc<Self>,
        request: v1::SetForwardingPipelineConfigRequest,
        caller: Caller,
    ) -> Result<(), Status> {
        let turn = self.turn.lock().await;
        self.check_store().await?;
        let (admission, plan) = self.server().begin_config(request, &caller)?;
        let result = self.clone().apply_config(plan).await;
        let mut outbox = Outbox::new();
        self.server().finish_config(admission, &mut outbox);
        self.deliver(outbox);
        self.earlier.notify_one();
        self.keep(turn).await?;
        result.map_err(Status::from)
    }

    async fn apply_config(self: Arc<Self>, plan: ConfigPlan) -> Result<(), Refusal> {
        let (config, action) = match plan {
            ConfigPlan::CommitSaved => {
                let (pipeline, shadow, switch) =
                    self.server().take_saved().ok_or_else(|| Refusal::not_found("no config is saved"))?;
                return self.commit(pipeline, shadow, switch, false).await;
            }
            ConfigPlan::Compile(config, action) => (config, action),
        };
        let plane = self.plane.clone();
        let hub = self.clone();
        let architecture = self.server().settings().architecture;
        // Compilation takes long, so it must not block the streams.
        let made = tokio::task::spawn_blocking(move || {
            let pipeline = Pipeline::compile(*config, architecture)?;
            let built = plane.build(pipeline.program().clone());
            let mut switch =
                built.map_err(|error| Refusal::invalid(format!("the switch cannot run the program: {error}")))?;
            let shadow = match action {
                ConfigAction::Reconcile => {
                    let (updates, ports) = {
                        let server = hub.server();
                        (server.replay(), server.settings().ports.clone())
                    };
                    reconcile(&pipeline, &ports, &updates, &mut *switch)?
                }
                _ => ShadowState::of(&pipeline.schema, &*switch),
            };
            Ok::<_, Refusal>((pipeline, shadow, switch))
        });
        let made = made.await.map_err(|_| Refusal::new(Code::Internal, "the compiler failed; this is a bug"))?;
        let (pipeline, shadow, switch) = made?;
        match action {
            ConfigAction::Verify => Ok(()),
            ConfigAction::Save => {
                self.server().save(pipeline, switch);
                Ok(())
            }
            ConfigAction::Commit => self.commit(pipeline, shadow, switch, false).await,
            ConfigAction::Reconcile => self.commit(pipeline, shadow, switch, true).await,
        }
    }

    /// Exchanges the running switch for one with another program.
    async fn commit(
        &self,
        pipeline: Pipeline,
        shadow: ShadowState,
        switch: Box<dyn SwitchControl>,
        keep: bool,
    ) -> Result<(), Refusal> {
        let old = self.plane.run(move |plane| crate::exchange::exchange(plane, switch, keep)).await?;
        let kept = {
            let mut server = self.server();
            server.committed(pipeline, shadow);
            server.kept_chunks()
        };
        self.record_chunks(kept).await?;
        // The old switch is dropped here, so that the packet thread does not spend time on it.
        tokio::task::spawn_blocking(move || drop(old));
        Ok(())
    }
}

/// Runs to completion even if the caller goes away.
async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, tonic::Status> {
    match tokio::spawn(work).await {
        Ok(result) => result.map_err(tonic::Status::from),
        Err(_) => Err(Refusal::new(Code::Internal, "the server failed on this request; this is a bug").into()),
    }
}

/// Returns the memory charged for a request. It is released when its last owner is dropped.
fn charge<T>(request: &Request<T>) -> Option<MemoryCharge> {
    request.extensions().get::<MemoryCharge>().cloned()
}

impl Service {
    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Refusal> {
        self.0.caller(request.extensions())
    }

    /// Reserves a permit for reads of a connection and one of its address, and waits for them if necessary.
    async fn reserve_read(&self, slot: &ConnectionSlot) -> Result<HeldResources, Refusal> {
        let take = async |permits: &Arc<Semaphore>, message: String| {
            let taken = tokio::time::timeout(self.0.budget.timeout, permits.clone().acquire_owned()).await;
            taken.ok().and_then(Result::ok).ok_or(Refusal::new(Code::ResourceExhausted, message))
        };
        let of_connection = format!("{READS_A_CONNECTION} reads are in progress on this connection");
        let of_peer = format!("{READS_A_PEER} reads are in progress from {}", slot.peer);
        let reserved = take(&slot.state.reads, of_connection).await?;
        let reserved_of_peer = take(&slot.state.reads_of_peer, of_peer).await?;
        Ok(HeldResources { _room: Arc::new((reserved, reserved_of_peer)), timeout: None })
    }
}

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<v1::WriteRequest>) -> RpcResult<v1::WriteResponse> {
        let charge = charge(&request);
        let caller = self.caller(&request)?;
        let write = self.0.clone().write(request.into_inner(), caller);
        detached(async move { (write.await, charge).0 }).await?;
        Ok(Response::new(v1::WriteResponse {}))
    }

    type ReadStream = bounded_queue::BoundedReceiver<v1::ReadResponse>;

    async fn read(&self, request: Request<v1::ReadRequest>) -> RpcResult<Self::ReadStream> {
        let charge = charge(&request);
        let caller = self.caller(&request)?;
        let held = match request.extensions().get::<Arc<ConnectionSlot>>() {
            Some(slot) => Some(self.reserve_read(slot).await?),
            None => None,
        };
        let (answers, stream) = queue(ANSWER_BYTES);
        let read = self.0.clone().read(request.into_inner(), caller, answers);
        tokio::spawn(async move { (read.await, charge).0 });
        let mut response = Response::new(stream);
        held.and_then(|held| response.extensions_mut().insert(held));
        Ok(response)
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> RpcResult<v1::SetForwardingPipelineConfigResponse> {
        let charge = charge(&request);
        let caller = self.caller(&request)?;
        // Before memory is reserved, and before a program is decoded.
        caller.check_pipeline()?;
        let budget = request.extensions().get::<MemoryBudget>().unwrap_or(&self.0.budget).clone();
        let request = request.into_inner();
        let bytes = request.config.as_ref().map_or(0, |config| pipeline::p4info_memory(&config.p4_device_config));
        if let Some(charge) = &charge
            && bytes > 0
        {
            // The P4Info of a compiled program is in memory beside the one of the message.
            let reserved = budget.decode(bytes).await?;
            charge.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(reserved);
        }
        let set = self.0.clone().set_config(request, caller);
        detached(async move { (set.await, charge).0 }).await?;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> RpcResult<v1::GetForwardingPipelineConfigResponse> {
        let caller = self.caller(&request)?;
        let budget = request.extensions().get::<MemoryBudget>().unwrap_or(&self.0.budget).clone();
        let bytes = self.0.server().pipeline_bytes();
        let reserved = Arc::new(budget.answer(bytes).await?);
        let config = self.0.server().pipeline_config(&request.into_inner(), &caller)?;
        let mut response = Response::new(config);
        response.extensions_mut().insert(HeldResources { _room: reserved, timeout: Some(budget.timeout_for(bytes)) });
        Ok(response)
    }

    type StreamChannelStream = bounded_queue::BoundedReceiver<v1::StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<tonic::Streaming<v1::StreamMessageRequest>>,
    ) -> RpcResult<Self::StreamChannelStream> {
        let peer = request.extensions().get::<Arc<ConnectionSlot>>().map(|slot| slot.peer);
        let caller = self.caller(&request)?;
        let stream = self.0.server().open_stream(peer, caller)?;
        let place = Arc::new(StreamPlace { hub: self.0.clone(), stream });
        let (queue, messages) = queue(QUEUE_BYTES);
        self.0.queues().insert(stream, queue);
        let run = self.0.clone().run_stream(stream, request.into_inner());
        let place_of_run = place.clone();
        tokio::spawn(async move { (run.await, place_of_run).0 });
        let mut response = Response::new(messages);
        response.extensions_mut().insert(HeldResources { _room: place, timeout: None });
        Ok(response)
    }

    async fn capabilities(&self, request: Request<v1::CapabilitiesRequest>) -> RpcResult<v1::CapabilitiesResponse> {
        self.caller(&request)?;
        Ok(Response::new(self.0.server().capabilities(&request.into_inner())?))
    }
}
