//! A controller of the switch that listens on the P4Runtime port in this network namespace, and one for any address.

use p4runtime_client::{CallError, Client, ServerTarget};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use tonic::transport::Channel;

/// Election id of the controller as primary.
pub const ELECTION: Option<v1::Uint128> = Some(v1::Uint128 { high: 0, low: 1 });

/// Connects to the switch.
pub async fn connect() -> P4RuntimeClient<Channel> {
    let channel = Channel::from_static("http://127.0.0.1:9559").connect().await.expect("the switch listens");
    P4RuntimeClient::new(channel).max_decoding_message_size(usize::MAX)
}

/// A stream of the primary controller, which stays primary as long as this value lives.
pub struct Primary {
    _requests: tokio::sync::mpsc::Sender<v1::StreamMessageRequest>,
    _answers: tonic::Streaming<v1::StreamMessageResponse>,
}

/// Becomes the primary, and returns the P4Info of the running program.
pub async fn become_primary(mut client: P4RuntimeClient<Channel>) -> (Primary, P4Info) {
    let arbitration = v1::MasterArbitrationUpdate { device_id: 1, election_id: ELECTION, ..Default::default() };
    let update = Some(v1::stream_message_request::Update::Arbitration(arbitration));
    let (sender, requests) = tokio::sync::mpsc::channel(1);
    sender.send(v1::StreamMessageRequest { update }).await.expect("there is room");
    let requests = tonic::codegen::tokio_stream::wrappers::ReceiverStream::new(requests);
    let mut answers = client.stream_channel(requests).await.expect("a stream opens").into_inner();
    answers.message().await.expect("an answer comes");
    let request = v1::GetForwardingPipelineConfigRequest { device_id: 1, response_type: 0 };
    let config = client.get_forwarding_pipeline_config(request).await.expect("it is told").into_inner().config;
    let info = config.and_then(|config| config.p4info).expect("there is a pipeline");
    (Primary { _requests: sender, _answers: answers }, info)
}

/// Sets a program in P4 as the primary of the switch at an address.
pub fn set_program(address: &str, path: &str) -> Result<(), CallError> {
    let text = std::fs::read_to_string(path).expect("a program");
    let compiled = compiler::expect_program(&compiler::Source::new(path, &text), &v1model::V1Model);
    let config = v1::ForwardingPipelineConfig {
        p4info: Some(compiled.p4info),
        p4_device_config: text.into_bytes(),
        cookie: None,
    };
    let set = async {
        let target = ServerTarget::new(address, None).expect("an address");
        let client = Client::connect(&target, 1).await.expect("the switch listens");
        let (_stream, election) = client.become_primary(None).await.expect("there is no other controller");
        client.set_pipeline_config(election, config).await
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made").block_on(set)
}
