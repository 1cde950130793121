//! A switch that is killed at any moment still has, after a restart, everything that it acknowledged, and no part of a
//! batch.
//!
//! The test runs itself again inside a network namespace, where the switch and its controller have the loopback
//! interface to themselves. It needs root and skips without it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::controller::{ELECTION, become_primary, connect};
use crate::support::network::Network;
use crate::support::{Directory, Running, TEST_TIMEOUT, run, triplane, unique};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use rng::SplitMix64;
use tonic::transport::Channel;
use v1::entity::Entity;
use v1::update::Type;

const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> key; }
struct headers { h_t h; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) { state start { p.extract(hdr.h); transition accept; } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  action to(bit<9> port) { sm.egress_spec = port; }
  table t { key = { hdr.h.key : exact; } actions = { to; NoAction; } size = 1000000; }
  apply { t.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

const SEEDS: u64 = 3;
/// Number of times that each seed's switch is killed.
const KILLS: usize = 5;
/// Number of controller calls in flight at the same time.
const WRITERS: u32 = 4;
/// Maximum number of entries of a batch.
const LARGEST: u64 = 40;

/// The known state of a batch of entries, which is inserted and deleted as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    There,
    Gone,
    /// The switch did not answer a call about the batch.
    Either,
}

/// Batches by number (of the writer, of the batch), with their size and known state.
type Batches = BTreeMap<(u32, u32), (u32, Known)>;

#[test]
fn acknowledged_writes_survive_a_kill_and_batches_are_atomic() {
    if let Some(reason) = Network::obstacle(&[]) {
        return testing::skip(&reason);
    }
    let name = format!("triplane-{}-state", unique());
    let ip = |arguments: &[&str]| run(Command::new("ip").args(arguments));
    ip(&["netns", "add", &name]).ok();
    let this = std::env::current_exe().expect("a test is a program");
    let inside = ["state::inside_a_namespace", "--exact", "--ignored", "--nocapture"];
    let done = run(Command::new("ip").args(["netns", "exec", &name]).arg(this).args(inside));
    ip(&["netns", "delete", &name]).ok();
    print!("{}", done.stdout);
    assert!(done.ok().stdout.contains("1 passed"), "the test inside ran");
}

#[test]
#[ignore = "the test above runs it, in a namespace"]
fn inside_a_namespace() {
    for arguments in ["link set lo up", "link add p1 type veth peer name q1", "link set p1 up", "link set q1 up"] {
        run(Command::new("ip").args(arguments.split(' '))).ok();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let directory = Directory::new();
    let program = directory.write("exact.p4", PROGRAM);
    for seed in 1..=SEEDS {
        let state = directory.path(&format!("state-{seed}"));
        let mut rng = SplitMix64::new(seed);
        let batches = Arc::new(Mutex::new(Batches::new()));
        for kill in 0..=KILLS {
            // The first start gets the program as an argument, and so does every second one after it.
            let switch = start(&state, (kill % 2 == 0).then_some(&program));
            let delay = Duration::from_millis(rng.below(400));
            runtime.block_on(async {
                let client = connect().await;
                let found = read(client.clone()).await;
                check(found, &mut batches.lock().unwrap(), seed);
                let (_primary, info) = become_primary(client.clone()).await;
                let (table, action) = ids(&info);
                let writers: Vec<_> = (0..WRITERS)
                    .map(|writer| {
                        let rng = SplitMix64::new((seed << 32) | ((kill as u64) << 16) | u64::from(writer + 1));
                        tokio::spawn(write(client.clone(), table, action, writer, rng, batches.clone()))
                    })
                    .collect();
                if kill == KILLS {
                    have_begun(21, &batches).await;
                }
                tokio::time::sleep(delay).await;
                switch.signal("KILL");
                for writer in writers {
                    writer.await.expect("a writer ends when the switch is gone");
                }
            });
            let batches = batches.lock().unwrap();
            let count = |known| batches.values().filter(|(_, it)| *it == known).count();
            let [there, gone, either] = [Known::There, Known::Gone, Known::Either].map(count);
            println!("seed {seed}, killed after {delay:?}: {there} batches there, {gone} gone, {either} not answered");
        }
        assert!(batches.lock().unwrap().len() > 20, "there was something to lose");
    }
    let state = directory.path("state-saved");
    runtime.block_on(a_saved_pipeline_is_committed_after_kills(&directory, &state, &program));
}

/// A pipeline is saved and written to, the switch is killed, and COMMIT activates the pipeline; it stays active.
async fn a_saved_pipeline_is_committed_after_kills(directory: &Directory, state: &str, program: &String) {
    use v1::set_forwarding_pipeline_config_request::Action;
    let other =
        directory.write("other.p4", PROGRAM.replace("table t {", "table other {").replace("t.apply", "other.apply"));
    let (built, described) = (directory.path("other.tpl"), directory.path("other.txtpb"));
    run(&mut triplane(&["build", &other, "-o", &built, "--p4info-out", &described])).ok();
    let p4info: P4Info = p4runtime_proto::from_text(&std::fs::read_to_string(described).unwrap()).expect("a P4Info");
    let (table, action) = ids(&p4info);
    let config = v1::ForwardingPipelineConfig {
        p4info: Some(p4info),
        p4_device_config: std::fs::read(built).expect("it was built"),
        cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie: 7 }),
    };
    let set = async |mut client: P4RuntimeClient<Channel>, action: Action| {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: ELECTION,
            action: action.into(),
            config: Some(config.clone()).filter(|_| action != Action::Commit),
            ..Default::default()
        };
        client.set_forwarding_pipeline_config(request).await.map_err(|status| status.code())
    };
    let cookie = async |mut client: P4RuntimeClient<Channel>| {
        let request = v1::GetForwardingPipelineConfigRequest { device_id: 1, response_type: 1 };
        let config = client.get_forwarding_pipeline_config(request).await.expect("it is told").into_inner().config;
        config.and_then(|config| config.cookie).map(|cookie| cookie.cookie)
    };
    let mut batches = Batches::new();
    // Three switches in turn: the first one saves, the second one commits, and the third one has the pipeline.
    for turn in 0..3 {
        let switch = start(state, (turn == 0).then_some(program));
        let client = connect().await;
        let (_primary, _) = become_primary(client.clone()).await;
        if turn == 0 {
            set(client.clone(), Action::VerifyAndSave).await.expect("it can be saved");
        }
        assert_eq!(cookie(client.clone()).await, Some(7), "turn {turn}");
        check(read(client.clone()).await, &mut batches, 0);
        match turn {
            0 => {
                let shared = Arc::new(Mutex::new(Batches::new()));
                let writer = tokio::spawn(write(client.clone(), table, action, 0, SplitMix64::new(1), shared.clone()));
                have_begun(4, &shared).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
                switch.signal("KILL");
                writer.await.expect("a writer ends when the switch is gone");
                batches = std::mem::take(&mut shared.lock().unwrap());
                assert!(batches.len() > 3, "there was something to lose");
            }
            1 => {
                set(client.clone(), Action::Commit).await.expect("it is still there to commit");
                switch.signal("KILL");
            }
            _ => assert_eq!(set(client.clone(), Action::Commit).await.err(), Some(tonic::Code::NotFound)),
        }
    }
}

fn start(state: &str, program: Option<&String>) -> Running {
    let mut arguments = vec!["run"];
    arguments.extend(program.map(String::as_str));
    arguments.extend(["--interpret", "--port", "1=p1", "--p4runtime", "--state-dir", state]);
    let mut switch = Running::start(&mut triplane(&arguments));
    switch.wait_for("press Ctrl-C to stop");
    switch
}

/// Returns the ids of the table and of its action.
fn ids(P4Info { tables, actions, .. }: &P4Info) -> (u32, u32) {
    let table = tables[0].preamble.as_ref().expect("it has a name").id;
    let to = actions.iter().filter_map(|action| action.preamble.as_ref()).find(|it| it.name.ends_with("to"));
    (table, to.expect("it is in the program").id)
}

/// Waits until writers have begun this number of batches, however slow the disk is.
async fn have_begun(count: usize, batches: &Mutex<Batches>) {
    let begin = Instant::now();
    while batches.lock().unwrap().len() < count {
        assert!(begin.elapsed() < TEST_TIMEOUT, "fewer than {count} batches are written");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Inserts and deletes batches until the switch is gone.
async fn write(
    mut client: P4RuntimeClient<Channel>,
    table_id: u32,
    action_id: u32,
    writer: u32,
    mut rng: SplitMix64,
    batches: Arc<Mutex<Batches>>,
) {
    loop {
        let (number, size, kind) = {
            let batches = batches.lock().unwrap();
            let own: Vec<_> = batches.range((writer, 0)..(writer + 1, 0)).collect();
            let there: Vec<_> = own.iter().filter(|(_, (_, known))| *known == Known::There).collect();
            match rng.below(4) {
                0 if !there.is_empty() => {
                    let ((_, number), (size, _)) = there[rng.below(there.len() as u64) as usize];
                    (*number, *size, Type::Delete)
                }
                _ => (own.len() as u32, 1 + rng.below(LARGEST) as u32, Type::Insert),
            }
        };
        let update = |at: u32| {
            // The bytes of a number in their shortest form.
            let value = ((writer + 1) << 28 | number << 8 | at).to_be_bytes().to_vec();
            let matched = v1::field_match::FieldMatchType::Exact(v1::field_match::Exact { value });
            let params = vec![v1::action::Param { param_id: 1, value: vec![1] }];
            let action = v1::table_action::Type::Action(v1::Action { action_id, params });
            let entry = v1::TableEntry {
                table_id,
                r#match: vec![v1::FieldMatch { field_id: 1, field_match_type: Some(matched) }],
                action: (kind == Type::Insert).then_some(v1::TableAction { r#type: Some(action) }),
                ..Default::default()
            };
            v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(Entity::TableEntry(entry)) }) }
        };
        let request = v1::WriteRequest {
            device_id: 1,
            election_id: ELECTION,
            atomicity: v1::write_request::Atomicity::DataplaneAtomic.into(),
            updates: (0..size).map(update).collect(),
            ..Default::default()
        };
        let known = |known| {
            batches.lock().unwrap().insert((writer, number), (size, known));
        };
        known(Known::Either);
        match client.write(request).await {
            Ok(_) if kind == Type::Insert => known(Known::There),
            Ok(_) => known(Known::Gone),
            Err(status) => {
                let gone = [tonic::Code::Unavailable, tonic::Code::Unknown, tonic::Code::Cancelled];
                assert!(gone.contains(&status.code()) && status.details().is_empty(), "{status:?}");
                return;
            }
        }
    }
}

/// Returns the number of entries of each batch on the switch.
async fn read(mut client: P4RuntimeClient<Channel>) -> BTreeMap<(u32, u32), u32> {
    let entity = Some(Entity::TableEntry(v1::TableEntry::default()));
    let request = v1::ReadRequest { device_id: 1, entities: vec![v1::Entity { entity }], ..Default::default() };
    let mut answers = client.read(request).await.expect("everybody may read").into_inner();
    let mut found: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    while let Some(answer) = answers.message().await.expect("it is read to the end") {
        for entity in answer.entities {
            let Some(Entity::TableEntry(entry)) = entity.entity else { panic!("no entry: {entity:?}") };
            let matched = entry.r#match.first().and_then(|field| field.field_match_type.as_ref());
            let Some(v1::field_match::FieldMatchType::Exact(exact)) = matched else { panic!("no key: {entry:?}") };
            let value = exact.value.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            *found.entry(((value >> 28) - 1, value >> 8 & 0xf_ffff)).or_default() += 1;
        }
    }
    found
}

/// Checks the entries of the switch against the known states, and resolves the unknown ones.
fn check(mut found: BTreeMap<(u32, u32), u32>, batches: &mut Batches, seed: u64) {
    for (number, (size, known)) in batches.iter_mut() {
        let count = found.remove(number).unwrap_or(0);
        let there = count == *size;
        assert!(there || count == 0, "seed {seed}: {count} of {size} entries of batch {number:?} are there");
        let seen = if there { Known::There } else { Known::Gone };
        assert!(*known == Known::Either || *known == seen, "seed {seed}: batch {number:?} was {known:?}, is {seen:?}");
        *known = seen;
    }
    assert!(found.is_empty(), "seed {seed}: nobody wrote {found:?}");
}
