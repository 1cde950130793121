//! Measures the same tables in BMv2, if the user has one: `bmv2=PATH` is a `simple_switch_grpc`, and `p4c=PATH` a
//! `p4c-bm2-ss`; by default, the one beside it.
//!
//! Bytes are those by which the resident memory of the process grows, so they include what its allocator rounds up.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use compiler::CompiledProgram;
use engine::{ActionSpec, TableEntry};
use ir::KeyValue;
use p4runtime_client::{Client, ServerTarget, names};
use p4runtime_proto::bytestring;
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{self, entity::Entity, table_action};
use testing::memory::resident_bytes;

use crate::fill::{self, TableKind};

const DEVICE: u64 = 1;
const ELECTION: u128 = 1;
/// Number of entries of a write.
const WRITE: usize = 1000;
/// Time for the switch to answer its first call.
const START: Duration = Duration::from_secs(30);

/// The user's programs.
pub struct Bmv2 {
    switch: PathBuf,
    compiler: PathBuf,
}

/// A running switch, which ends with this value.
struct RunningSwitch(Child);

impl Drop for RunningSwitch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bmv2 {
    /// Returns the programs that the arguments name, if they do.
    pub fn of_arguments() -> Option<Bmv2> {
        let named = |name: &str| std::env::args().find_map(|word| word.strip_prefix(name).map(PathBuf::from));
        let switch = named("bmv2=")?;
        let compiler = named("p4c=").unwrap_or_else(|| switch.with_file_name("p4c-bm2-ss"));
        Some(Bmv2 { switch, compiler })
    }

    /// Compiles the program for BMv2.
    ///
    /// # Errors
    /// A sentence for the user.
    fn program(&self) -> Result<Vec<u8>, String> {
        let directory = std::env::temp_dir().join(format!("triplane-bmv2-{}", std::process::id()));
        let (source, made) = (directory.join("memory.p4"), directory.join("memory.json"));
        let io = |error: std::io::Error| format!("{}: {error}", directory.display());
        std::fs::create_dir_all(&directory).map_err(io)?;
        std::fs::write(&source, fill::SOURCE).map_err(io)?;
        let ran = Command::new(&self.compiler).arg("-o").arg(&made).arg(&source).output();
        let result = match ran {
            Err(error) => Err(format!("cannot run {}: {error}", self.compiler.display())),
            Ok(ran) if !ran.status.success() => {
                let told = String::from_utf8_lossy(&ran.stderr).into_owned();
                Err(format!("{} refuses the program: {told}", self.compiler.display()))
            }
            Ok(_) => std::fs::read(&made).map_err(io),
        };
        let _ = std::fs::remove_dir_all(&directory);
        result
    }

    /// Returns the bytes that an entry of a table takes in BMv2.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn bytes_an_entry(&self, compiled: &CompiledProgram, kind: &TableKind, count: u64) -> Result<f64, String> {
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(compiled.p4info.clone()),
            p4_device_config: self.program()?,
            ..Default::default()
        };
        let address = testing::port::reserved_address().to_string();
        let device = DEVICE.to_string();
        let arguments = ["--no-p4", "--device-id", &device, "--", "--grpc-server-addr", &address];
        let mut command = Command::new(&self.switch);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("cannot run {}: {error}", self.switch.display()))?;
        let switch = RunningSwitch(child);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let updates = updates(compiled, kind, count);
        let grown = runtime.block_on(async {
            let client = connect(&address).await?;
            let failed = |what: &str, error: &dyn std::fmt::Display| format!("BMv2 {what}: {error}");
            let elected = client.become_primary(Some(ELECTION)).await;
            let (_stream, election) = elected.map_err(|error| failed("has another controller", &error))?;
            let set = client.set_pipeline_config(election, config).await;
            set.map_err(|error| failed("refuses the program", &error))?;
            let resident = || resident_bytes(switch.0.id()).ok_or("BMv2 has ended");
            let before = resident()?;
            for write in updates.chunks(WRITE) {
                let written = client.write(election, write.to_vec(), Atomicity::ContinueOnError).await;
                written.map_err(|error| failed("refuses an entry", &error))?;
            }
            Ok::<f64, String>(resident()? as f64 - before as f64)
        })?;
        Ok(grown / count as f64)
    }
}

/// Connects to a switch that has just been started.
async fn connect(address: &str) -> Result<Client, String> {
    let target = ServerTarget::new(address, None).map_err(|error| error.to_string())?;
    let begin = Instant::now();
    loop {
        match Client::connect(&target, DEVICE).await {
            Ok(client) => return Ok(client.with_call_timeout(Duration::from_secs(120))),
            Err(error) if begin.elapsed() > START => return Err(format!("BMv2 does not answer: {error}")),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Returns the writes of the entries that the other columns are about.
fn updates(compiled: &CompiledProgram, kind: &TableKind, count: u64) -> Vec<v1::Update> {
    let mut switch = fill::new_switch(compiled);
    fill::fill(&mut switch, kind, count);
    let table = fill::table_named(&switch, kind.table);
    let entries = switch.objects().entries(table);
    entries.map(|installed| update(&compiled.p4info, &switch, kind, installed.entry)).collect()
}

fn update(info: &P4Info, switch: &v1model::Switch, kind: &TableKind, entry: TableEntry) -> v1::Update {
    let (table, _) =
        names::tables(info).into_iter().find(|(_, name)| *name == kind.table).expect("P4Info has the table");
    let ActionSpec::Direct(call) = &entry.action else { unreachable!("the tables have no profiles") };
    let name = &switch.program().actions[call.action].name;
    let action = info.actions.iter().find(|action| names::name(&action.preamble) == name).expect("P4Info has it");
    let fields =
        table.match_fields.iter().zip(&entry.keys).filter_map(|(field, key)| {
            Some(v1::FieldMatch { field_id: field.id, field_match_type: Some(matched(key)?) })
        });
    let params = action.params.iter().zip(&call.args);
    let params = params.map(|(param, value)| v1::action::Param { param_id: param.id, value: bytestring::print(value) });
    let entry = v1::TableEntry {
        table_id: names::id(&table.preamble),
        r#match: fields.collect(),
        action: Some(v1::TableAction {
            r#type: Some(table_action::Type::Action(v1::Action {
                action_id: names::id(&action.preamble),
                params: params.collect(),
            })),
        }),
        priority: entry.priority,
        ..Default::default()
    };
    v1::Update {
        r#type: v1::update::Type::Insert.into(),
        entity: Some(v1::Entity { entity: Some(Entity::TableEntry(entry)) }),
    }
}

/// Returns the match of a key; `None` if it matches any value.
fn matched(key: &KeyValue) -> Option<FieldMatchType> {
    Some(match key {
        KeyValue::Exact(value) => FieldMatchType::Exact(Exact { value: bytestring::print(value) }),
        KeyValue::Lpm(_, 0) | KeyValue::Any => return None,
        KeyValue::Lpm(value, length) => {
            FieldMatchType::Lpm(Lpm { value: bytestring::print(value), prefix_len: *length as i32 })
        }
        KeyValue::Ternary(_, mask) if mask.is_zero() => return None,
        KeyValue::Ternary(value, mask) => {
            FieldMatchType::Ternary(Ternary { value: bytestring::print(value), mask: bytestring::print(mask) })
        }
        KeyValue::Range(low, high) => {
            FieldMatchType::Range(Range { low: bytestring::print(low), high: bytestring::print(high) })
        }
    })
}
