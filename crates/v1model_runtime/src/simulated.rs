//! The switches of simulated networks.

use std::any::Any;
use std::sync::Arc;

use elastic_switch::{ElasticSwitch, MemoryServerPort};
use lab::sim::{Element, WriteRefusal};
use resilient_switch::InBandSwitch;
use switch::{Device, Frame, Notification, PacketSwitch, PortId, SwitchControl, Time};
use v1model::Switch;

/// A memory server that joins or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioServer {
    /// It joins.
    Add(MemoryServerPort),
    /// It leaves.
    Remove(MemoryServerPort),
}

/// The changes of entries and memory servers in a scenario.
pub trait ScenarioWrites: Send + Sync {
    /// Applies a change to a switch.
    ///
    /// # Errors
    /// The entries that the switch refuses, for people. The rest of the change is applied.
    fn apply(&self, number: usize, switch: &mut dyn SwitchControl) -> Result<(), String>;

    /// Returns the memory server that joins or leaves, if the change is such a one.
    fn server(&self, number: usize) -> Option<ScenarioServer>;
}

/// Adds or removes a memory server of a switch.
type ServerControl<S> = fn(&mut S, ScenarioServer) -> Result<(), String>;

fn change_servers(switch: &mut ElasticSwitch<Switch>, change: ScenarioServer) -> Result<(), String> {
    let changed = match change {
        ScenarioServer::Add(place) => switch.add_server(place),
        ScenarioServer::Remove(place) => switch.remove_server(place.address),
    };
    changed.map_err(|error| error.to_string())
}

/// Maximum number of INT reports that a switch keeps.
const MAX_REPORTS: usize = 1_000_000;

/// Maximum size of the INT reports that a switch keeps, in bytes.
const MAX_REPORT_BYTES: usize = 64 << 20;

/// A switch without a controller. Its notifications are discarded, except INT reports; only the scenario changes its
/// entries.
pub struct Simulated<S> {
    /// The switch.
    pub switch: S,
    writes: Arc<dyn ScenarioWrites>,
    change_servers: ServerControl<S>,
    /// The first INT reports.
    reports: Vec<(Time, Vec<u8>)>,
    report_bytes: usize,
}

impl<S> Simulated<S> {
    fn new(switch: S, writes: Arc<dyn ScenarioWrites>, change_servers: ServerControl<S>) -> Simulated<S> {
        Simulated { switch, writes, change_servers, reports: Vec::new(), report_bytes: 0 }
    }

    fn keep(&mut self, notification: Notification) {
        let Notification::IntReport { report, time } = notification else { return };
        self.report_bytes += report.len();
        if self.reports.len() < MAX_REPORTS && self.report_bytes <= MAX_REPORT_BYTES {
            self.reports.push((time, report));
        }
    }
}

impl<S: PacketSwitch> Device for Simulated<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.switch.step(now, input, output);
        if self.switch.has_notifications() {
            self.switch.take_notifications().into_iter().for_each(|notification| self.keep(notification));
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.switch.next_event()
    }
}

impl<S: PacketSwitch> Element for Simulated<S> {
    fn set_port_up(&mut self, port: PortId, up: bool) {
        self.switch.set_port_up(port, up);
    }

    fn queue(&self, port: PortId) -> (u64, u64) {
        self.switch.queue(port)
    }

    fn write(&mut self, now: Time, number: usize) -> Result<(), WriteRefusal> {
        if let Some(change) = self.writes.server(number) {
            return (self.change_servers)(&mut self.switch, change).map_err(WriteRefusal::Rejected);
        }
        // Entries have the time of the change, and not that of the packet before it.
        self.switch.objects_mut().advance_clock(now.as_ns());
        self.writes.apply(number, &mut self.switch).map_err(WriteRefusal::Rejected)
    }

    fn int_reports(&self) -> &[(Time, Vec<u8>)] {
        &self.reports
    }

    fn tiny_counters(&self) -> Vec<(String, u64)> {
        let is_tiny =
            |name: &str| name.starts_with("port.") && [".tpp.", ".int."].iter().any(|part| name.contains(part));
        self.switch.registry().iter().filter(|(name, value)| *value > 0 && is_tiny(name)).collect()
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Boxes a switch: with replicated state, or without.
pub fn in_band(switch: InBandSwitch<Switch>, writes: Arc<dyn ScenarioWrites>) -> Box<dyn Element> {
    Box::new(Simulated::new(switch, writes, |_, _| Err("it has no memory servers".to_owned())))
}

/// Boxes a switch with tables in the memory of servers.
pub fn elastic(switch: ElasticSwitch<Switch>, writes: Arc<dyn ScenarioWrites>) -> Box<dyn Element> {
    Box::new(Simulated::new(switch, writes, change_servers))
}

#[cfg(test)]
mod tests {
    use compiler::Source;
    use engine::{ActionCall, ActionSpec, EntryHandle, TableEntry};
    use ir::{KeyValue, TableId};
    use v1model::{Config, V1Model};

    use super::*;

    const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
struct headers {}
struct meta { bit<8> key; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) { state start { transition accept; } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  table known { key = { m.key : exact; } actions = { NoAction; } }
  apply { known.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control V(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

    /// Inserts an entry.
    struct Insertion;

    impl ScenarioWrites for Insertion {
        fn apply(&self, _: usize, switch: &mut dyn SwitchControl) -> Result<(), String> {
            let action = switch.program().tables[TableId::from_u32(0)].actions[0].action;
            let action = ActionSpec::Direct(ActionCall { action, args: Vec::new() });
            let keys = vec![KeyValue::Exact(bits::Bits::new(5, 8))];
            let entry = TableEntry { keys, priority: 0, action, metadata: Vec::new(), idle_timeout_ns: 0 };
            switch.objects_mut().insert(TableId::from_u32(0), entry).map_err(|error| error.to_string())
        }

        fn server(&self, _: usize) -> Option<ScenarioServer> {
            None
        }
    }

    #[test]
    fn entries_have_the_time_of_the_change() {
        let program = Arc::new(compiler::expect_program(&Source::new("known.p4", PROGRAM), &V1Model).ir);
        let switch = Switch::new(program, Config::with_ports(1)).expect("the program fits the switch");
        let mut element = in_band(InBandSwitch::plain(switch, None), Arc::new(Insertion));
        element.step(Time::from_us(1), &mut vec![Frame::new(0, vec![0; 60])], &mut Vec::new());
        assert!(element.write(Time::from_us(5_000_000), 0).is_ok());
        let simulated: &mut Simulated<InBandSwitch<Switch>> = element.as_any().downcast_mut().expect("its type");
        let handle = EntryHandle { number: 0, generation: 1 };
        let stats = simulated.switch.objects().entry_stats(TableId::from_u32(0), handle).expect("the entry");
        assert_eq!(stats.written_ns, 5_000_000_000);
    }
}
