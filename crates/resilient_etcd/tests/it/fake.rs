//! A server of etcd's interface that keeps one key, and misbehaves on request.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use resilient_etcd::proto::kv_server::{Kv, KvServer};
use resilient_etcd::proto::{
    KeyValue, PutResponse, RangeRequest, RangeResponse, ResponseOp, TxnRequest, TxnResponse, compare, request_op,
    response_op,
};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The behaviour of a server.
#[derive(Clone, Debug, Default)]
pub enum Behaviour {
    /// The behaviour of etcd.
    #[default]
    Right,
    /// Transactions are executed, but not answered.
    AnswersLost,
    /// Transactions are executed later, with the next read, and not answered.
    Delayed,
    /// Calls are not answered.
    Silent,
    /// Transactions end with this error.
    TransactionsRefused(tonic::Code),
    /// Reads have this answer.
    Reads(RangeResponse),
    /// Transactions have this answer.
    Transactions(TxnResponse),
}

/// The state of a server.
#[derive(Default)]
pub struct FakeState {
    pub behaviour: Behaviour,
    pub value: Option<(i64, Vec<u8>)>,
    pub transactions: usize,
    delayed: Vec<TxnRequest>,
}

/// A server, and its state.
#[derive(Clone, Default)]
pub struct FakeEtcd(pub Arc<Mutex<FakeState>>);

impl FakeEtcd {
    /// Starts a server in a thread, and returns its URL.
    pub fn start(&self) -> String {
        let (told, address) = std::sync::mpsc::channel();
        let service = KvServer::new(self.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
                told.send(listener.local_addr().expect("it listens")).expect("the test waits");
                let (sender, incoming) = tokio::sync::mpsc::channel(4);
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        let _ = sender.send(Ok::<_, std::io::Error>(stream)).await;
                    }
                });
                let incoming = ReceiverStream::new(incoming);
                let _ = tonic::transport::Server::builder().serve_with_incoming(service, incoming).await;
            });
        });
        let address: SocketAddr = address.recv().expect("it starts");
        format!("http://{address}")
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.0.lock().unwrap().behaviour = behaviour;
    }

    pub fn transactions(&self) -> usize {
        self.0.lock().unwrap().transactions
    }
}

impl FakeState {
    fn read(&self, key: &[u8]) -> RangeResponse {
        let found = |(revision, value): &(i64, Vec<u8>)| KeyValue {
            key: key.to_vec(),
            mod_revision: *revision,
            value: value.clone(),
        };
        RangeResponse { kvs: self.value.iter().map(found).collect() }
    }

    fn execute(&mut self, request: &TxnRequest) -> TxnResponse {
        let revision = self.value.as_ref().map_or(0, |(revision, _)| *revision);
        let [comparison] = &request.compare[..] else { panic!("one comparison") };
        assert_eq!(comparison.target(), compare::CompareTarget::Mod);
        let succeeded = comparison.target_union == Some(compare::TargetUnion::ModRevision(revision));
        let operations = if succeeded { &request.success } else { &request.failure };
        let answer = |operation: &resilient_etcd::proto::RequestOp| match &operation.request {
            Some(request_op::Request::RequestRange(range)) => {
                response_op::Response::ResponseRange(self.read(&range.key))
            }
            Some(request_op::Request::RequestPut(put)) => {
                self.value = Some((revision + 1, put.value.clone()));
                response_op::Response::ResponsePut(PutResponse {})
            }
            None => panic!("an operation"),
        };
        let responses = operations.iter().map(answer).map(|response| ResponseOp { response: Some(response) });
        TxnResponse { succeeded, responses: responses.collect() }
    }
}

#[tonic::async_trait]
impl Kv for FakeEtcd {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        let answer = {
            let mut state = self.0.lock().unwrap();
            let answer = state.read(&request.get_ref().key);
            // Executed after the read, which does not see them.
            for request in std::mem::take(&mut state.delayed) {
                state.execute(&request);
            }
            match &state.behaviour {
                Behaviour::Silent => None,
                Behaviour::Reads(answer) => Some(answer.clone()),
                _ => Some(answer),
            }
        };
        match answer {
            Some(answer) => Ok(Response::new(answer)),
            None => std::future::pending().await,
        }
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let outcome = {
            let mut state = self.0.lock().unwrap();
            state.transactions += 1;
            match state.behaviour.clone() {
                Behaviour::Right | Behaviour::Reads(_) => Some(Ok(state.execute(request.get_ref()))),
                Behaviour::AnswersLost => {
                    state.execute(request.get_ref());
                    None
                }
                Behaviour::Delayed => {
                    state.delayed.push(request.into_inner());
                    None
                }
                Behaviour::Silent => None,
                Behaviour::TransactionsRefused(code) => Some(Err(Status::new(code, "etcdserver: not\nnow"))),
                Behaviour::Transactions(answer) => Some(Ok(answer)),
            }
        };
        match outcome {
            Some(outcome) => outcome.map(Response::new),
            None => std::future::pending().await,
        }
    }
}
