//! A network for tests: switches that forward between ports 1 and 2, without namespaces. Also directories for tests.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use compiler::{Architecture, Source};
use ir::Program;
use lab::generate::{NetworkKind, generate};
use lab::{Shape, Topology};
use p4runtime_server::Pipeline;
use runtime::{Hook, HookContext};
use switch::{BuildError, Frame, PortId};
use v1model::{Config, Executor, Switch, V1Model};

use crate::{ControllerEndpoint, LiveNetwork, SwitchExtensions};

/// Maximum time of an operation that must end.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// A directory that only this user can write to. Dropping it removes it.
pub struct TestDirectory(PathBuf);

impl TestDirectory {
    /// Creates the directory of a test.
    pub fn new(name: &str) -> TestDirectory {
        let path = std::env::temp_dir().join(format!("triplane-lab-{name}-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).expect("no other test has the name");
        TestDirectory(path)
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What arrives at port 1 leaves by port 2, and the other way round.
const REPEATER: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply { s.egress_spec = 3 - s.ingress_port; } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Two switches in a row, `s1` and `s2`, with one host each.
pub struct TestNetwork {
    topology: Topology,
    program: Arc<Program>,
    /// A frame that a hook injects at port 1 of each switch when it starts.
    injected: Option<Vec<u8>>,
    /// Number of turns of that hook.
    pub turns: Arc<AtomicU32>,
}

impl TestNetwork {
    pub fn new(injected: Option<Vec<u8>>) -> Arc<TestNetwork> {
        let kind = NetworkKind::Line { switches: 2, hosts: 1 };
        let topology = generate(kind, Shape::default(), Shape::default(), 511).expect("two switches in a row");
        let program = compiler::expect_program(&Source::new("repeater.p4", REPEATER), &V1Model).ir;
        Arc::new(TestNetwork { topology, program: Arc::new(program), injected, turns: Arc::default() })
    }
}

impl LiveNetwork for TestNetwork {
    type Switch = Switch;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn endpoint(&self, _: usize) -> Option<ControllerEndpoint> {
        None
    }

    fn architecture(&self) -> &'static dyn Architecture {
        &V1Model
    }

    fn switch(&self, at: usize, seed: u64) -> Switch {
        self.switch_for(at, seed, Arc::clone(&self.program)).expect("the program fits the switch")
    }

    fn switch_for(&self, _: usize, seed: u64, program: Arc<Program>) -> Result<Switch, BuildError> {
        let config = Config { seed, executor: Executor::Interpreter, ..Config::with_ports(3) };
        Ok(Switch::new(program, config)?)
    }

    fn pipeline(&self, _: usize) -> Option<Pipeline> {
        None
    }

    fn extensions(&self, _: usize) -> SwitchExtensions<Switch> {
        let injector = |data: &Vec<u8>| Injector { data: Some(data.clone()), turns: Arc::clone(&self.turns) };
        let hooks = self.injected.iter().map(|data| Box::new(injector(data)) as Box<dyn Hook<Switch>>);
        SwitchExtensions { hooks: hooks.collect(), sinks: Vec::new() }
    }
}

/// Injects a frame once, and counts its turns.
struct Injector {
    data: Option<Vec<u8>>,
    turns: Arc<AtomicU32>,
}

impl Hook<Switch> for Injector {
    fn poll(&mut self, context: &mut HookContext<'_, Switch>) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        context.injected.extend(self.data.take().map(|data| Frame { port: PortId(1), data }));
    }

    fn is_due(&self) -> bool {
        self.data.is_some()
    }
}
