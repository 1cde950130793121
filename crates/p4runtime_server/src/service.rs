//! The server over gRPC: tasks, queues and time around the [`Server`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_server::P4Runtime;
use switch::{Frame, SwitchControl};
use tokio::sync::{Notify, Semaphore};
use tonic::{Request, Response};

use crate::arbitration::{Outbox, StreamId};
use crate::budget::{Budget, Charge};
use crate::gate::Owed;
use crate::keep::Keeper;
use crate::mirror::Mirror;
use crate::pipeline::Pipeline;
use crate::plane::{Notified, Plane, PlaneHandle};
use crate::queue::{self, queue};
use crate::read::{Chunks, Piece};
use crate::seats::{READS_A_CONNECTION, Seat};
use crate::server::{ConfigAction, ConfigPlan, Server, reconcile};
use crate::status::{Code, MAX_STATUS_BYTES, Refusal, Status, cut};

/// Bytes of messages that wait for one client at most. What comes from packets, and errors, are dropped when it is full; a
/// client that does not even take arbitration messages is let go.
const QUEUE_BYTES: usize = 2 << 20;
/// Bytes of a read's answer that wait for its client.
const ANSWER_BYTES: usize = 128 << 10;
/// Reads under way on all connections; others wait.
const READS: usize = 64;
/// Updates run between two batches of packets, unless a write is atomic.
const UPDATES_AT_ONCE: usize = 128;

type Answer<T> = Result<Response<T>, tonic::Status>;
type Queue = queue::Sender<v1::StreamMessageResponse>;

impl From<Status> for tonic::Status {
    fn from(status: Status) -> tonic::Status {
        let code = tonic::Code::from_i32(status.code as i32);
        let details = status.detail_bytes();
        let mut message = status.message;
        // A trailer has no room for more.
        cut(&mut message, MAX_STATUS_BYTES);
        tonic::Status::with_details(code, message, details.into())
    }
}

impl From<Refusal> for tonic::Status {
    fn from(refusal: Refusal) -> tonic::Status {
        Status::from(refusal).into()
    }
}

/// What all tasks of a server share.
pub(crate) struct Hub {
    server: Mutex<Server>,
    queues: Mutex<BTreeMap<StreamId, Queue>>,
    plane: PlaneHandle,
    keeper: Option<Keeper>,
    /// Writes and new pipelines take turns.
    turn: tokio::sync::Mutex<()>,
    /// Something may have to be sent earlier than was thought.
    earlier: Notify,
    started: Instant,
    /// Messages that clients were too slow for.
    dropped: AtomicU64,
    budget: Budget,
    reads: Semaphore,
}

/// The service: cheap to clone, one for all connections.
#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<Hub>);

impl Hub {
    pub(crate) fn new(server: Server, plane: PlaneHandle, keeper: Option<Keeper>) -> Hub {
        let budget = Budget::new(server.settings().patience);
        Hub {
            server: Mutex::new(server),
            queues: Mutex::default(),
            plane,
            keeper,
            turn: tokio::sync::Mutex::new(()),
            earlier: Notify::new(),
            started: Instant::now(),
            dropped: AtomicU64::new(0),
            budget,
            reads: Semaphore::new(READS),
        }
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<StreamId, Queue>> {
        self.queues.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// What is left for messages of all calls.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Messages that were dropped because a client did not take them.
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
                match essential {
                    true => queue.give_up(),
                    false => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
                }
            }
        }
    }

    /// Handles messages of one stream until it ends.
    async fn run_stream(self: Arc<Self>, stream: StreamId, mut requests: tonic::Streaming<v1::StreamMessageRequest>) {
        let queue = self.queues().get(&stream).cloned();
        let Some(queue) = queue else { return };
        // Those who say nothing would keep others from their places.
        let patience = tokio::time::sleep(self.server().settings().patience);
        tokio::pin!(patience);
        let mut is_live = false;
        loop {
            let message = tokio::select! {
                message = requests.message() => message,
                () = queue.closed() => break,
                () = queue.given_up() => {
                    let slow = Refusal::new(Code::ResourceExhausted, "the client does not take its messages");
                    queue.end(slow.into());
                    break;
                }
                () = &mut patience, if !is_live => {
                    let silent = Refusal::new(Code::DeadlineExceeded, "the stream has not said who it is");
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
        self.server().close_stream(stream, &mut outbox);
        self.deliver(outbox);
    }

    fn packet_out(&self, stream: StreamId, frame: Frame) {
        let inject = move |plane: &mut Plane<'_>| plane.switch.step(plane.now, &mut vec![frame], plane.output);
        let posted = self.plane.post(Box::new(inject));
        if !posted {
            let refusal = Refusal::new(Code::ResourceExhausted, "packets come faster than the switch takes them");
            let details = v1::stream_error::Details::PacketOut(v1::PacketOutError { packet_out: None });
            let mut outbox = Outbox::new();
            self.server().stream_error(stream, refusal, details, &mut outbox);
            self.deliver(outbox);
        }
    }

    /// Passes on what the switch tells, and sends digest lists when their time comes.
    pub(crate) async fn run_notifications(self: Arc<Self>, mut notified: Notified) {
        /// The longest sleep, when there is nothing to wait for.
        const IDLE: Duration = Duration::from_secs(3600);
        loop {
            let wait = match self.server().next_ns() {
                Some(next_ns) => Duration::from_nanos(next_ns.saturating_sub(self.now_ns())),
                None => IDLE,
            };
            let told = tokio::select! {
                told = notified.batches.recv() => match told {
                    Some(told) => Some(told),
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
                if let Some(told) = told {
                    server.told(told, now_ns, wall_ns, &mut outbox);
                }
                server.tick(now_ns, wall_ns, &mut outbox);
            }
            self.deliver(outbox);
        }
    }

    /// A write from begin to end. It goes on although its client may be gone.
    async fn write(self: Arc<Self>, request: v1::WriteRequest) -> Result<(), Status> {
        let turn = self.turn.lock().await;
        let mut batch = self.server().begin_write(&request)?;
        drop(request);
        let count = if batch.is_atomic() { usize::MAX } else { UPDATES_AT_ONCE };
        {
            let mut server = self.server();
            if let Some(switch) = server.saved_switch() {
                batch.run(switch, usize::MAX);
            }
        }
        while !batch.is_finished() {
            let run = self.plane.run(move |plane| {
                batch.run(plane.switch, count);
                batch
            });
            batch = run.await?;
        }
        let mut outbox = Outbox::new();
        let result = self.server().finish_write(batch, &mut outbox);
        self.deliver(outbox);
        self.earlier.notify_one();
        self.keep(turn).await?;
        result
    }

    /// Waits until what was done in this turn is durable. The next turn may begin as soon as the order is settled, so
    /// that many writes share a transaction.
    async fn keep(&self, turn: tokio::sync::MutexGuard<'_, ()>) -> Result<(), Refusal> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let changes = self.server().take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        let durable = keeper.keep(changes).await;
        drop(turn);
        durable.wait().await
    }

    /// A read from begin to end, as fast as its client takes the answer.
    async fn read(self: Arc<Self>, request: v1::ReadRequest, answers: queue::Sender<v1::ReadResponse>) {
        let Ok(Ok(_turn)) = tokio::time::timeout(self.budget.patience, self.reads.acquire()).await else {
            return answers.end(Refusal::new(Code::ResourceExhausted, format!("{READS} reads are under way")).into());
        };
        if let Err(status) = self.answer(request, &answers).await {
            answers.end(status.into());
        }
    }

    async fn answer(&self, request: v1::ReadRequest, answers: &queue::Sender<v1::ReadResponse>) -> Result<(), Status> {
        let mut reader = self.server().begin_read(request)?;
        let mut chunks = Chunks::default();
        while let Some(piece) = reader.next() {
            let entities = match piece {
                Piece::Ready(entities) => entities,
                Piece::Live(ask) => self.ask(reader.program().clone(), ask).await?,
            };
            for entity in reader.visible(entities) {
                if let Some(chunk) = chunks.add(entity) {
                    self.send(answers, chunk).await?;
                }
            }
        }
        if let Some(chunk) = chunks.rest() {
            self.send(answers, chunk).await?;
        }
        reader.status()
    }

    /// Sends a part of an answer when there is room for it.
    async fn send(&self, answers: &queue::Sender<v1::ReadResponse>, chunk: v1::ReadResponse) -> Result<(), Refusal> {
        match tokio::time::timeout(self.budget.patience, answers.send(chunk)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::new(Code::Aborted, "the client has gone")),
            Err(_) => Err(Refusal::new(Code::DeadlineExceeded, "the client does not take the answer")),
        }
    }

    /// Asks the switch that reads refer to, if it still runs the program that is asked about.
    async fn ask(&self, program: Arc<ir::Program>, ask: crate::read::Ask) -> Result<Vec<v1::entity::Entity>, Refusal> {
        let changed = || Refusal::new(Code::Aborted, "the pipeline was changed while it was read");
        let now_ns = self.now_ns();
        if let Some(switch) = self.server().saved_switch() {
            return match Arc::ptr_eq(switch.program(), &program) {
                true => Ok(ask(switch, now_ns)),
                false => Err(changed()),
            };
        }
        let answer = self.plane.run(move |plane| {
            Arc::ptr_eq(plane.switch.program(), &program).then(|| ask(plane.switch, plane.now.as_ns()))
        });
        answer.await?.ok_or_else(changed)
    }

    /// A new pipeline from begin to end.
    async fn set_config(self: Arc<Self>, request: v1::SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let turn = self.turn.lock().await;
        let (admission, plan) = self.server().begin_config(request)?;
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
                let (pipeline, mirror, switch) =
                    self.server().take_saved().ok_or_else(|| Refusal::not_found("no config is saved"))?;
                return self.commit(pipeline, mirror, switch, false).await;
            }
            ConfigPlan::Compile(config, action) => (config, action),
        };
        let plane = self.plane.clone();
        let hub = self.clone();
        let architecture = self.server().settings().architecture;
        // Compiling takes its time, and streams go on meanwhile.
        let made = tokio::task::spawn_blocking(move || {
            let pipeline = Pipeline::compile(*config, architecture)?;
            let built = plane.build(pipeline.program().clone());
            let mut switch =
                built.map_err(|error| Refusal::invalid(format!("the switch cannot run the program: {error}")))?;
            let mirror = match action {
                ConfigAction::Reconcile => {
                    let (updates, ports) = {
                        let server = hub.server();
                        (server.replay(), server.settings().ports.clone())
                    };
                    reconcile(&pipeline, &ports, &updates, &mut *switch)?
                }
                _ => Mirror::of(&pipeline.schema, &*switch),
            };
            Ok::<_, Refusal>((pipeline, mirror, switch))
        });
        let made = made.await.map_err(|_| Refusal::new(Code::Internal, "the compiler failed; this is a bug"))?;
        let (pipeline, mirror, switch) = made?;
        match action {
            ConfigAction::Verify => Ok(()),
            ConfigAction::Save => {
                self.server().save(pipeline, switch);
                Ok(())
            }
            ConfigAction::Commit => self.commit(pipeline, mirror, switch, false).await,
            ConfigAction::Reconcile => self.commit(pipeline, mirror, switch, true).await,
        }
    }

    /// Lets packets run another program.
    async fn commit(
        &self,
        pipeline: Pipeline,
        mirror: Mirror,
        switch: Box<dyn SwitchControl>,
        keep: bool,
    ) -> Result<(), Refusal> {
        let old = self.plane.run(move |plane| crate::swap::swap(plane, switch, keep)).await?;
        self.server().committed(pipeline, mirror);
        // What it owns is given back here, not on the packets' time.
        tokio::task::spawn_blocking(move || drop(old));
        Ok(())
    }
}

/// Runs to its end although the caller may go away.
async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, tonic::Status> {
    match tokio::spawn(work).await {
        Ok(result) => result.map_err(tonic::Status::from),
        Err(_) => Err(Refusal::new(Code::Internal, "the server failed at this request; this is a bug").into()),
    }
}

/// What a request has of the budget; it is given back when its last owner is dropped.
fn charge<T>(request: &Request<T>) -> Option<Charge> {
    request.extensions().get::<Charge>().cloned()
}

impl Service {
    /// Room for one more read on a connection, as soon as there is some.
    async fn room(&self, seat: &Seat) -> Result<Owed, Refusal> {
        let taken = tokio::time::timeout(self.0.budget.patience, seat.own.reads.clone().acquire_owned()).await;
        let room = taken.ok().and_then(Result::ok).ok_or_else(|| {
            let message = format!("{READS_A_CONNECTION} reads are under way on this connection");
            Refusal::new(Code::ResourceExhausted, message)
        })?;
        Ok(Owed { _room: Arc::new(room), patience: None })
    }
}

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<v1::WriteRequest>) -> Answer<v1::WriteResponse> {
        let charge = charge(&request);
        let write = self.0.clone().write(request.into_inner());
        detached(async move { (write.await, charge).0 }).await?;
        Ok(Response::new(v1::WriteResponse {}))
    }

    type ReadStream = queue::Receiver<v1::ReadResponse>;

    async fn read(&self, request: Request<v1::ReadRequest>) -> Answer<Self::ReadStream> {
        let charge = charge(&request);
        let owed = match request.extensions().get::<Arc<Seat>>() {
            Some(seat) => Some(self.room(seat).await?),
            None => None,
        };
        let (answers, stream) = queue(ANSWER_BYTES);
        let read = self.0.clone().read(request.into_inner(), answers);
        tokio::spawn(async move { (read.await, charge).0 });
        let mut response = Response::new(stream);
        owed.and_then(|owed| response.extensions_mut().insert(owed));
        Ok(response)
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Answer<v1::SetForwardingPipelineConfigResponse> {
        let charge = charge(&request);
        let set = self.0.clone().set_config(request.into_inner());
        detached(async move { (set.await, charge).0 }).await?;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Answer<v1::GetForwardingPipelineConfigResponse> {
        let budget = request.extensions().get::<Budget>().unwrap_or(&self.0.budget).clone();
        let bytes = self.0.server().pipeline_bytes();
        let room = Arc::new(budget.answer(bytes).await?);
        let config = self.0.server().pipeline_config(&request.into_inner())?;
        let mut response = Response::new(config);
        response.extensions_mut().insert(Owed { _room: room, patience: Some(budget.patience_for(bytes)) });
        Ok(response)
    }

    type StreamChannelStream = queue::Receiver<v1::StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<tonic::Streaming<v1::StreamMessageRequest>>,
    ) -> Answer<Self::StreamChannelStream> {
        let peer = request.extensions().get::<Arc<Seat>>().map(|seat| seat.peer);
        let stream = self.0.server().open_stream(peer)?;
        let (queue, messages) = queue(QUEUE_BYTES);
        self.0.queues().insert(stream, queue);
        tokio::spawn(self.0.clone().run_stream(stream, request.into_inner()));
        Ok(Response::new(messages))
    }

    async fn capabilities(&self, request: Request<v1::CapabilitiesRequest>) -> Answer<v1::CapabilitiesResponse> {
        Ok(Response::new(self.0.server().capabilities(&request.into_inner())?))
    }
}
