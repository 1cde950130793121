//! Streams, and failed calls.

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::stream_message_request::Update as Request;
use p4runtime_proto::v1::stream_message_response::Update as Response;
use p4runtime_proto::{google, v1};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::codegen::tokio_stream::wrappers::UnboundedReceiverStream;

use super::{NEVER, Rig, SOON, uint128};

pub use p4runtime_server::Code;

/// The error of one update or request.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub code: Code,
    pub message: String,
}

/// The error of a call.
#[derive(Clone, Debug)]
pub struct Failed {
    pub code: Code,
    pub message: String,
    /// The errors of a batch's elements, `Ok` for those that succeeded.
    pub errors: Vec<Refused>,
    /// The status in the details, if there is one.
    pub status: Option<google::rpc::Status>,
}

/// Returns the canonical code with this number.
pub fn code(number: i32) -> Code {
    const ALL: [Code; 14] = [
        Code::Ok,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
    ];
    *ALL.iter().find(|code| **code as i32 == number).unwrap_or_else(|| panic!("{number} is not a code of this server"))
}

impl Failed {
    pub fn of(status: tonic::Status) -> Failed {
        let details = (!status.details().is_empty()).then(|| google::rpc::Status::decode(status.details()).unwrap());
        let error = |any: &prost_types::Any| {
            let error = v1::Error::decode(&*any.value).expect("details are p4.v1.Error");
            Refused { code: code(error.canonical_code), message: error.message }
        };
        let errors = details.iter().flat_map(|status| &status.details).map(error).collect();
        Failed { code: code(status.code().into()), message: status.message().to_owned(), errors, status: details }
    }

    /// Returns the codes of the elements.
    pub fn codes(&self) -> Vec<Code> {
        self.errors.iter().map(|error| error.code).collect()
    }
}

/// A stream to the server.
pub struct Session {
    handle: Handle,
    requests: Option<mpsc::UnboundedSender<v1::StreamMessageRequest>>,
    responses: Streaming<v1::StreamMessageResponse>,
}

impl Session {
    pub(super) fn open(rig: &Rig) -> Session {
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut client = rig.client();
        let responses = rig.runtime.block_on(client.stream_channel(UnboundedReceiverStream::new(receiver)));
        let responses = responses.expect("a stream opens").into_inner();
        Session { handle: rig.runtime.handle().clone(), requests: Some(requests), responses }
    }

    pub fn send(&self, update: Request) {
        let requests = self.requests.as_ref().expect("the stream is open");
        // A stream that the server has ended takes no messages; the test reads its status.
        let _ = requests.send(v1::StreamMessageRequest { update: Some(update) });
    }

    /// Sends an arbitration update for a role of a device; `None` is not an election id.
    pub fn arbitrate(&self, device_id: u64, role: &str, election: Option<u128>) {
        let role = (!role.is_empty()).then(|| v1::Role { name: role.to_owned(), ..Default::default() });
        self.claim(v1::MasterArbitrationUpdate {
            device_id,
            role,
            election_id: election.map(uint128),
            ..Default::default()
        });
    }

    pub fn claim(&self, update: v1::MasterArbitrationUpdate) {
        self.send(Request::Arbitration(update));
    }

    /// Returns the next message, or the stream's status. Panics on a timeout.
    #[track_caller]
    pub fn recv(&mut self) -> Result<v1::StreamMessageResponse, Failed> {
        let next = async { tokio::time::timeout(SOON, self.responses.message()).await };
        match self.handle.block_on(next).expect("a message comes soon") {
            Ok(Some(message)) => Ok(message),
            Ok(None) => panic!("the stream ended without a status"),
            Err(status) => Err(Failed::of(status)),
        }
    }

    /// Checks that no message comes.
    #[track_caller]
    pub fn is_quiet(&mut self) {
        let next = async { tokio::time::timeout(NEVER, self.responses.message()).await };
        if let Ok(message) = self.handle.block_on(next) {
            panic!("{message:?} comes");
        }
    }

    /// Receives an arbitration update. Returns its status and election id.
    #[track_caller]
    pub fn mastership(&mut self) -> (Code, Option<u128>) {
        let update = self.arbitration();
        let id = update.election_id.map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        (code(update.status.map_or(0, |status| status.code)), id)
    }

    /// Receives an arbitration update.
    #[track_caller]
    pub fn arbitration(&mut self) -> v1::MasterArbitrationUpdate {
        match self.recv().expect("the stream goes on").update {
            Some(Response::Arbitration(update)) => update,
            other => panic!("no arbitration update: {other:?}"),
        }
    }

    /// Receives an error. Returns its code and the message that it is about.
    #[track_caller]
    pub fn refused(&mut self) -> v1::StreamError {
        match self.recv().expect("the stream goes on").update {
            Some(Response::Error(error)) => error,
            other => panic!("no error: {other:?}"),
        }
    }

    /// Returns the code with which the server ends the stream.
    #[track_caller]
    pub fn ends(&mut self) -> Code {
        self.recv().expect_err("the stream ends").code
    }
}
