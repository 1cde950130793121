//! Users by the names in their certificates: what they may do at a P4Runtime server and at the subscription service.

use std::net::SocketAddr;

use authorization::Policy;
use diagnostics::{Diagnostics, SourceMap};
use p4runtime_client::{ClientTls, ServerTarget};
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_server::Tls;
use testing::port::reserved_address;
use tonic::Code;
use tonic::transport::Channel;
use v1::entity::Entity;
use v1::stream_message_request::Update as Request;
use v1::stream_message_response::Update as Answer;
use v1::update::Type;

use crate::support::authority::Authority;
use crate::support::rig::Rig;
use crate::support::service::Service;
use crate::support::{Directory, Done, run, triplane};

const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> key; }
struct headers { h_t h; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) { state start { p.extract(hdr.h); transition accept; } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  register<bit<32>>(8) seen;
  action to(bit<9> port) { sm.egress_spec = port; }
  table routes { key = { hdr.h.key : exact; } actions = { to; NoAction; } }
  table acl { key = { hdr.h.key : exact; } actions = { to; NoAction; } }
  apply { routes.apply(); acl.apply(); seen.write(0, hdr.h.key); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

const USERS: &str = r#"
[[user]]
name = "ops.test"
roles = ["*"]
read = ["*"]
write = ["*"]
pipeline = true
packets = true

[[user]]
name = "routing@test"
roles = ["routing"]
read = ["I.routes"]
write = ["I.routes"]

[[user]]
name = "spiffe://test/*"
read = ["I.routes", "multicast"]

[[user]]
name = "backup"
roles = [""]
"#;

/// A user's connection.
struct User<'a> {
    runtime: &'a tokio::runtime::Runtime,
    client: P4RuntimeClient<Channel>,
}

/// A stream that stays open as long as this value lives.
struct Stream {
    requests: tokio::sync::mpsc::Sender<v1::StreamMessageRequest>,
    answers: tonic::Streaming<v1::StreamMessageResponse>,
}

type Outcome<T> = Result<T, (Code, String)>;

fn outcome<T>(result: Result<tonic::Response<T>, tonic::Status>) -> Outcome<T> {
    result.map(tonic::Response::into_inner).map_err(|status| (status.code(), status.message().to_owned()))
}

/// Returns the first error of a batch, or else the status of the call.
fn first_error(status: &tonic::Status) -> (Code, String) {
    let status_of_call = p4runtime_proto::google::rpc::Status::decode(status.details());
    let details = status_of_call.expect("details are a status").details;
    let mut errors = details.iter().map(|any| v1::Error::decode(&*any.value).expect("an error of P4Runtime"));
    match errors.find(|error| error.canonical_code != 0) {
        Some(error) => (Code::from_i32(error.canonical_code), error.message),
        None => (status.code(), status.message().to_owned()),
    }
}

#[track_caller]
fn denied<T: std::fmt::Debug>(outcome: Outcome<T>, expected: &str) {
    let (code, message) = outcome.expect_err("it is denied");
    assert_eq!((code, message.as_str()), (Code::PermissionDenied, expected));
}

impl<'a> User<'a> {
    fn connect(runtime: &'a tokio::runtime::Runtime, address: SocketAddr, authority: &Authority, name: &str) -> Self {
        let text = |file: &str| String::from_utf8(authority.read(file)).expect("PEM is ASCII");
        let tls = ClientTls {
            authority: text("ca.pem"),
            identity: Some((text(&format!("{name}.pem")), text(&format!("{name}.key")))),
            server_name: Some("switch.test".to_owned()),
        };
        let target = ServerTarget::new(&address.to_string(), Some(&tls)).expect("the files are right");
        let channel = runtime.block_on(target.connect()).expect("the server admits the authority's certificates");
        User { runtime, client: P4RuntimeClient::new(channel) }
    }

    /// Claims a role with an election ID. Returns the stream and the first answer.
    fn claim(&self, role: &str, election: u64) -> (Stream, Outcome<v1::StreamMessageResponse>) {
        self.claim_with(role, election, None)
    }

    fn claim_with(
        &self,
        role: &str,
        election: u64,
        config: Option<prost_types::Any>,
    ) -> (Stream, Outcome<v1::StreamMessageResponse>) {
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: election }),
            role: Some(v1::Role { name: role.to_owned(), config, ..Default::default() }),
            ..Default::default()
        };
        let (requests, sent) = tokio::sync::mpsc::channel(4);
        let sent = tonic::codegen::tokio_stream::wrappers::ReceiverStream::new(sent);
        let mut client = self.client.clone();
        let answers = self.runtime.block_on(client.stream_channel(sent)).expect("the stream opens").into_inner();
        let mut stream = Stream { requests, answers };
        let answer = self.ask(&mut stream, Request::Arbitration(arbitration));
        (stream, answer)
    }

    fn ask(&self, stream: &mut Stream, request: Request) -> Outcome<v1::StreamMessageResponse> {
        self.runtime.block_on(async {
            stream.requests.send(v1::StreamMessageRequest { update: Some(request) }).await.expect("there is room");
            match stream.answers.message().await {
                Ok(answer) => Ok(answer.expect("the stream stays")),
                Err(status) => Err((status.code(), status.message().to_owned())),
            }
        })
    }

    fn set(&self, role: &str, election: u64, config: v1::ForwardingPipelineConfig) -> Outcome<()> {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            role: role.to_owned(),
            election_id: Some(v1::Uint128 { high: 0, low: election }),
            action: v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into(),
            config: Some(config),
            ..Default::default()
        };
        let mut client = self.client.clone();
        outcome(self.runtime.block_on(client.set_forwarding_pipeline_config(request))).map(drop)
    }

    fn get(&self, what: v1::get_forwarding_pipeline_config_request::ResponseType) -> Outcome<()> {
        let request = v1::GetForwardingPipelineConfigRequest { device_id: 1, response_type: what.into() };
        let mut client = self.client.clone();
        outcome(self.runtime.block_on(client.get_forwarding_pipeline_config(request))).map(drop)
    }

    /// Inserts entities, or modifies registers.
    fn write(&self, role: &str, election: u64, entities: Vec<Entity>) -> Outcome<()> {
        let update = |entity| v1::Update {
            r#type: if matches!(entity, Entity::RegisterEntry(_)) { Type::Modify } else { Type::Insert }.into(),
            entity: Some(v1::Entity { entity: Some(entity) }),
        };
        let request = v1::WriteRequest {
            device_id: 1,
            role: role.to_owned(),
            election_id: Some(v1::Uint128 { high: 0, low: election }),
            updates: entities.into_iter().map(update).collect(),
            ..Default::default()
        };
        let mut client = self.client.clone();
        self.runtime.block_on(client.write(request)).map(drop).map_err(|status| first_error(&status))
    }

    fn read(&self, entities: Vec<Entity>) -> Outcome<Vec<Entity>> {
        let entities = entities.into_iter().map(|entity| v1::Entity { entity: Some(entity) }).collect();
        let request = v1::ReadRequest { device_id: 1, entities, ..Default::default() };
        let mut client = self.client.clone();
        self.runtime.block_on(async {
            let mut answers = client.read(request).await.map_err(|status| first_error(&status))?.into_inner();
            let mut found = Vec::new();
            while let Some(answer) = answers.message().await.map_err(|status| first_error(&status))? {
                found.extend(answer.entities.into_iter().filter_map(|entity| entity.entity));
            }
            Ok(found)
        })
    }
}

/// The IDs of a program's objects.
struct Ids {
    routes: u32,
    acl: u32,
    seen: u32,
    to: u32,
}

impl Ids {
    fn entry(&self, table_id: u32, key: u8) -> Entity {
        let exact = v1::field_match::FieldMatchType::Exact(v1::field_match::Exact { value: vec![key] });
        let params = vec![v1::action::Param { param_id: 1, value: vec![1] }];
        let action = v1::table_action::Type::Action(v1::Action { action_id: self.to, params });
        Entity::TableEntry(v1::TableEntry {
            table_id,
            r#match: vec![v1::FieldMatch { field_id: 1, field_match_type: Some(exact) }],
            action: Some(v1::TableAction { r#type: Some(action) }),
            ..Default::default()
        })
    }

    fn table(&self, table_id: u32) -> Entity {
        Entity::TableEntry(v1::TableEntry { table_id, ..Default::default() })
    }
}

fn group(multicast_group_id: u32) -> Entity {
    let group = v1::MulticastGroupEntry { multicast_group_id, ..Default::default() };
    let group = v1::packet_replication_engine_entry::Type::MulticastGroupEntry(group);
    Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(group) })
}

fn policy(text: &str) -> Policy {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("users.toml", text);
    Policy::parse(file, text, &mut diagnostics).unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)))
}

/// Compiles the program to a config and its IDs.
fn pipeline() -> (v1::ForwardingPipelineConfig, Ids) {
    let directory = Directory::new();
    let program = directory.write("program.p4", PROGRAM);
    let p4info = run(&mut triplane(&["p4info", &program])).ok().stdout;
    let p4info: p4runtime_proto::config::P4Info = p4runtime_proto::from_text(&p4info).expect("a P4Info");
    let id = |name: &str| {
        let tables = p4info.tables.iter().map(|it| &it.preamble);
        let actions = p4info.actions.iter().map(|it| &it.preamble);
        let mut all = tables.chain(actions).chain(p4info.registers.iter().map(|it| &it.preamble)).flatten();
        all.find(|preamble| preamble.name == name).unwrap_or_else(|| panic!("there is no {name}")).id
    };
    let ids = Ids { routes: id("I.routes"), acl: id("I.acl"), seen: id("I.seen"), to: id("I.to") };
    let source = PROGRAM.as_bytes().to_vec();
    (v1::ForwardingPipelineConfig { p4info: Some(p4info), p4_device_config: source, cookie: None }, ids)
}

#[test]
fn users_of_a_switch_have_the_rights_of_the_file_and_no_others() {
    use v1::get_forwarding_pipeline_config_request::ResponseType;
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    for (name, names) in [
        ("switch", "subjectAltName=DNS:switch.test"),
        ("ops", "subjectAltName=DNS:other.test,DNS:Ops.Test"),
        ("routing", "subjectAltName=email:routing@test"),
        ("reader", "subjectAltName=URI:spiffe://test/reader"),
        // Without an alternative name, its common name counts.
        ("backup", "keyUsage=digitalSignature"),
        ("ops.test", "subjectAltName=DNS:stranger.test"),
    ] {
        authority.certificate(name, names, Some("ca"));
    }
    let address = reserved_address();
    let tls = Tls {
        certificate: authority.read("switch.pem"),
        key: authority.read("switch.key"),
        client_authority: Some(authority.read("ca.pem")),
    };
    let _rig = Rig::admitting(4, address, Some(tls), Some(policy(USERS)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let user = |name: &str| User::connect(&runtime, address, &authority, name);
    let (config, ids) = pipeline();

    // Its common name is that of a user, but it has an alternative name, which is not.
    let stranger = user("ops.test");
    let unknown = "the authorization file has no user `stranger.test`";
    let mut client = stranger.client.clone();
    denied(outcome(runtime.block_on(client.capabilities(v1::CapabilitiesRequest::default()))), unknown);
    denied(stranger.read(vec![ids.table(0)]), unknown);
    denied(stranger.get(ResponseType::CookieOnly), unknown);

    let ops = user("ops");
    let (mut primary, answer) = ops.claim("", 5);
    answer.expect("ops may hold any role");
    ops.set("", 5, config.clone()).expect("ops may set the pipeline");

    // Roles.
    let (routing, reader) = (user("routing"), user("reader"));
    denied(reader.claim("", 9).1, "user `spiffe://test/reader` may not hold the default role");
    denied(routing.claim("", 9).1, "user `routing@test` may not hold the default role");
    denied(routing.claim("other", 9).1, "user `routing@test` may not hold the role `other`");
    let exclusive = |id: u32| {
        let mut config = vec![0x08];
        p4runtime_proto::prost::encoding::encode_varint(id.into(), &mut config);
        prost_types::Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".to_owned(), value: config }
    };
    let claims = |id: u32| routing.claim_with("routing", 6, Some(exclusive(id))).1;
    denied(claims(ids.acl), "user `routing@test` may not claim `I.acl` exclusively");
    denied(claims(7), "user `routing@test` may not claim the id 0x00000007 exclusively");
    claims(ids.routes).expect("it may write this table");
    let (mut stream, answer) = routing.claim("routing", 7);
    answer.expect("it is the user's role");
    // The election ID of another user's role is no secret.
    let default = "user `routing@test` may not hold the default role";
    denied(routing.write("", 5, vec![ids.entry(ids.routes, 1)]), default);
    denied(routing.set("routing", 7, config.clone()), "user `routing@test` may not set the pipeline");
    let backup = user("backup").write("", 5, vec![ids.entry(ids.routes, 1)]);
    denied(backup, "user `backup` may not write any object");

    // Writes.
    routing.write("routing", 7, vec![ids.entry(ids.routes, 1)]).expect("it may write this table");
    denied(routing.write("routing", 7, vec![ids.entry(ids.acl, 1)]), "user `routing@test` may not write table `I.acl`");
    denied(routing.write("routing", 7, vec![group(1)]), "user `routing@test` may not write multicast groups");
    let register = v1::RegisterEntry { register_id: ids.seen, ..Default::default() };
    let register = Entity::RegisterEntry(register);
    denied(routing.write("routing", 7, vec![register]), "user `routing@test` may not write register `I.seen`");
    let both = vec![ids.entry(ids.routes, 2), ids.entry(ids.acl, 2)];
    denied(routing.write("routing", 7, both), "user `routing@test` may not write table `I.acl`");
    ops.write("", 5, vec![ids.entry(ids.acl, 3), group(1)]).expect("ops may write everything");

    // Reads: a wildcard returns what the user may read, another object is denied.
    let tables = |found: Outcome<Vec<Entity>>| {
        let table = |entity| match entity {
            Entity::TableEntry(entry) => entry.table_id,
            other => panic!("{other:?}"),
        };
        let mut tables: Vec<_> = found.expect("it is answered").into_iter().map(table).collect();
        tables.sort_unstable_by_key(|table| *table == ids.acl);
        tables
    };
    assert_eq!(tables(reader.read(vec![ids.table(0)])), [ids.routes, ids.routes]);
    assert_eq!(tables(ops.read(vec![ids.table(0)])), [ids.routes, ids.routes, ids.acl]);
    denied(reader.read(vec![ids.table(ids.acl)]), "user `spiffe://test/reader` may not read table `I.acl`");
    assert_eq!(reader.read(vec![group(0)]).map(|found| found.len()), Ok(1));
    assert_eq!(routing.read(vec![group(0)]).map(|found| found.len()), Ok(0));
    denied(routing.read(vec![group(1)]), "user `routing@test` may not read multicast groups");
    reader.get(ResponseType::P4infoAndCookie).expect("names are needed to read");
    denied(
        reader.get(ResponseType::All),
        "user `spiffe://test/reader` may not read the program in the pipeline; ask for P4INFO_AND_COOKIE or COOKIE_ONLY",
    );
    ops.get(ResponseType::All).expect("ops may set it");

    // Packets.
    let packet = || Request::Packet(v1::PacketOut { payload: vec![0; 4], metadata: Vec::new() });
    let answer = routing.ask(&mut stream, packet()).expect("the stream stays").update;
    let Some(Answer::Error(error)) = answer else { panic!("{answer:?}") };
    assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
    assert_eq!(error.message, "user `routing@test` may not send packets");
    // The first packet of ops is not answered; the digest acknowledgement after it is refused.
    runtime.block_on(async {
        let message = v1::StreamMessageRequest { update: Some(packet()) };
        primary.requests.send(message).await.expect("there is room");
    });
    let answer = ops.ask(&mut primary, Request::DigestAck(v1::DigestListAck::default())).expect("it stays").update;
    assert!(matches!(&answer, Some(Answer::Error(error)) if !error.message.contains("packets")), "{answer:?}");
}

#[test]
fn a_list_leaves_out_what_its_user_may_not_read() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    authority.certificate("switch", "subjectAltName=DNS:switch.test", Some("ca"));
    authority.certificate("ops", "subjectAltName=DNS:ops.test", Some("ca"));
    authority.certificate("reader", "subjectAltName=URI:spiffe://test/reader", Some("ca"));
    let address = reserved_address();
    let tls = Tls {
        certificate: authority.read("switch.pem"),
        key: authority.read("switch.key"),
        client_authority: Some(authority.read("ca.pem")),
    };
    // The name in the file may have capital letters as well.
    let users = USERS.replace("ops.test", "Ops.Test");
    let _rig = Rig::admitting(4, address, Some(tls), Some(policy(&users)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let ops = User::connect(&runtime, address, &authority, "ops");
    let (_primary, answer) = ops.claim("", 5);
    answer.expect("ops may hold any role");
    ops.set("", 5, pipeline().0).expect("ops may set the pipeline");
    let [ca, certificate, key] = ["ca.pem", "reader.pem", "reader.key"].map(|name| authority.path(name));
    let address = address.to_string();
    let ctl = |words: &[&str]| {
        let tls = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key, "--tls-name", "switch.test"];
        run(&mut triplane(&[&["ctl"], words, &["--addr", &address], &tls].concat()))
    };
    for (words, shown, hidden) in [
        (&["tables"][..], "I.routes", "I.acl"),
        (&["entries"], "I.routes", "I.acl"),
        (&["entries", "--json"], "I.routes", "I.acl"),
        (&["registers"], "", "I.seen"),
    ] {
        let done = ctl(words).ok();
        assert!(done.stdout.contains(shown) && !done.stdout.contains(hidden), "{words:?}: {done:?}");
        assert_eq!(done.stderr, "1 object is left out: this user may not read it\n", "{words:?}");
    }
    assert_eq!(ctl(&["entries", "routes"]).ok().stderr, "");
    for (words, object) in [(["entries", "acl"], "table `I.acl`"), (["registers", "seen"], "register `I.seen`")] {
        let done = ctl(&words);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains(&format!("user `spiffe://test/reader` may not read {object}")), "{done:?}");
    }
}

#[test]
fn a_right_to_an_object_that_is_not_there_is_warned_about() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    authority.certificate("switch", "subjectAltName=DNS:switch.test", Some("ca"));
    let directory = Directory::new();
    let users = directory.write("users.toml", "[[user]]\nname = \"a\"\nread = [\"I.route\", \"I.*\", \"clone\"]\n");
    let program = directory.write("program.p4", PROGRAM);
    let [ca, certificate, key] = ["ca.pem", "switch.pem", "switch.key"].map(|name| authority.path(name));
    let tls = ["--tls-cert", &certificate, "--tls-key", &key, "--tls-ca", &ca, "--authorize", &users];
    let done =
        run(&mut triplane(&[&["run", &program, "--port", "1=no-such-if", "--p4runtime", "0"], &tls[..]].concat()));
    for expected in ["users.toml:3:9", "`I.route` matches no object of the program", "did you mean `I.routes`?"] {
        assert!(done.stderr.contains(expected), "no `{expected}`: {done:?}");
    }
    assert_eq!(done.stderr.matches("matches no object").count(), 1, "{done:?}");
}

/// Users of the subscription service.
const SUBSCRIBERS: &str = r#"
[[user]]
name = "alice.test"
rules = { ports = [2] }

[[user]]
name = "bob.test"
rules = { ports = ["3-4"], actions = ["to_controller"], remove = "all", list = "all" }

[[user]]
name = "carol.test"
read = ["*"]
"#;

#[test]
fn subscribers_change_the_rules_that_the_file_allows() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    for name in ["service", "alice", "bob", "carol", "dave"] {
        authority.certificate(name, &format!("subjectAltName=DNS:{name}.test"), Some("ca"));
    }
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let users = directory.write("users.toml", SUBSCRIBERS);
    let keep = directory.path("added.rules");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let [ca, certificate, key] = ["ca.pem", "service.pem", "service.key"].map(|name| authority.path(name));
    let served = ["--tls-cert", &certificate, "--tls-key", &key, "--tls-ca", &ca, "--authorize", &users];
    let start = || {
        let mut service = Service::start(&rules, address, &[&served[..], &["--keep", &keep]].concat());
        service.running.wait_for("the switch applies");
        service
    };
    let as_user = |service: &Service, name: &str, words: &[&str]| -> Done {
        let [certificate, key] = ["pem", "key"].map(|kind| authority.path(&format!("{name}.{kind}")));
        let tls = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key, "--tls-name", "service.test"];
        run(&mut triplane(&[&["subscribe"], words, &["--service", &service.address], &tls].concat()))
    };
    let denied = |done: Done, expected: &str| {
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains(expected), "no `{expected}`: {done:?}");
    };

    let service = start();
    let id = as_user(&service, "alice", &["add", "price > 5 : fwd(2)"]).ok().stdout.trim().to_owned();
    denied(
        as_user(&service, "alice", &["add", "price > 6 : fwd(2)", "price > 7 : fwd(2, 3)"]),
        "user `alice.test` may not add rules that forward to port 3",
    );
    denied(
        as_user(&service, "alice", &["add", "price > 6 : fwd(2); to_controller"]),
        "user `alice.test` may not add rules with the action `to_controller`",
    );
    denied(as_user(&service, "carol", &["add", "price > 6 : fwd(2)"]), "user `carol.test` may not add rules");
    denied(as_user(&service, "carol", &["list"]), "user `carol.test` may not list rules");
    denied(as_user(&service, "dave", &["list"]), "the authorization file has no user `dave.test`");
    let other = as_user(&service, "bob", &["add", "price > 9 : fwd(3); to_controller"]).ok().stdout.trim().to_owned();
    let seen = as_user(&service, "alice", &["list"]).ok().stdout;
    assert!(seen.lines().count() == 1 && seen.contains("price > 5 : fwd(2)"), "{seen}");
    let seen = as_user(&service, "bob", &["list"]).ok().stdout;
    assert!(seen.lines().count() == 3 && seen.contains("// alice.test"), "{seen}");
    denied(
        as_user(&service, "alice", &["remove", &other]),
        &format!("user `alice.test` may not remove rule {other}, which another user added"),
    );
    denied(as_user(&service, "alice", &["remove", &id, &other]), "may not remove rule");
    drop(service);

    // Rules keep their owners.
    let service = start();
    let seen = as_user(&service, "bob", &["list"]).ok().stdout;
    assert!(seen.lines().count() == 3 && seen.contains("// alice.test"), "{seen}");
    as_user(&service, "alice", &["remove", &id]).ok();
    let id = as_user(&service, "alice", &["add", "price > 5 : fwd(2)"]).ok().stdout.trim().to_owned();
    as_user(&service, "bob", &["remove", &id, &other]).ok();
    assert!(as_user(&service, "alice", &["list"]).ok().stdout.is_empty());
}

#[test]
fn a_file_without_certificates_or_with_mistakes_is_refused_at_the_start() {
    let directory = Directory::new();
    let users = directory.write("users.toml", "[[user]]\nname = \"a\"\nwrites = [\"*\"]\n");
    let rules = directory.write("rules.sub", "");
    let program = directory.write("program.p4", PROGRAM);
    let served = ["run", &program, "--port", "1=lo", "--p4runtime", "0", "--authorize", &users];
    let service =
        ["subscribe", "serve", "examples/market-data/feed.p4", &rules, "--listen", "0", "--authorize", &users];
    for command in [&served[..], &service] {
        let done = run(&mut triplane(command));
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains("--authorize requires TLS client certificates"), "{done:?}");
        let Some(authority) = Authority::new() else { continue };
        let [ca, key] = ["ca.pem", "ca.key"].map(|name| authority.path(name));
        let done = run(&mut triplane(&[command, &["--tls-cert", &ca, "--tls-key", &key, "--tls-ca", &ca]].concat()));
        assert_eq!(done.code, Some(1), "{done:?}");
        for expected in ["users.toml:3:1", "a user has no `writes`", "did you mean `write`?", "1 error found"] {
            assert!(done.stderr.contains(expected), "no `{expected}`: {done:?}");
        }
    }
}
