//! Runs packets on compiled code in the machine, with a switch for those that are handed over, and on a switch alone,
//! and compares everything that can be seen.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use bpf::asm::{Links, MapRef};
use bpf::machine::{self, Environment, MachineFault, RunOutcome};
use bpf::{CountSink, EntryHits, KernelCode, KernelOptions, PortState, RegionCounts, RegionError, RegionWriter};
use compiler::Source;
use engine::{EntryHandle, Objects};
use ir::{Program, Register, RegisterId, TableId};
use switch::{Device, DropReason, DropSite, Frame, Time};
use v1model::{Config, Executor, Switch, V1Model};

/// Number of ports of the switches; all are fast.
pub const PORTS: u32 = 8;
const SOCKETS: u32 = 2;
/// Number of processors with scratch memory, and the one that runs packets.
pub const CPUS: u32 = 4;
pub const CPU: u32 = 1;
/// Time of the first packets, and that of the kernel's clock at the start of the run.
const TIME_NS: u64 = 7_654_321_999;
const ORIGIN_NS: u64 = 1_234_567;

/// Compiles a file of the repository.
pub fn program(path: &str) -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = std::fs::read_to_string(&path).expect("the file is there");
    compile_text(&text, path.parent()).expect("a valid program")
}

/// Compiles a text; `None` if it is not a program for v1model that can run.
pub fn compile_text(text: &str, include: Option<&Path>) -> Option<Arc<Program>> {
    let (mut map, mut diagnostics) = (diagnostics::SourceMap::new(), diagnostics::Diagnostics::new());
    let include_dirs: Vec<_> = include.map(Path::to_owned).into_iter().collect();
    let source = Source { include_dirs: &include_dirs, ..Source::new("program.p4", text) };
    let compiled = compiler::compile(&source, &V1Model, &mut map, &mut diagnostics)?;
    Some(Arc::new(compiled.ir))
}

/// The way of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    Sent { port: u32, data: Vec<u8> },
    Dropped,
    HandedOver,
}

/// Numbers of packets by their way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    pub sent: u64,
    pub dropped: u64,
    pub handed_over: u64,
}

impl Ways {
    pub fn fast(self) -> u64 {
        self.sent + self.dropped
    }

    pub fn all(self) -> u64 {
        self.fast() + self.handed_over
    }
}

/// Adds up the hits of entries.
#[derive(Debug, Default)]
pub struct Hits(pub BTreeMap<(u32, u32), u64>);

impl CountSink for Hits {
    fn hit(&mut self, _: TableId, entry: EntryHandle, hits: EntryHits) {
        *self.0.entry((entry.number, entry.generation)).or_default() += hits.count.packets;
    }
}

pub struct Rig {
    pub program: Arc<Program>,
    pub compiled: KernelCode,
    pub region: Arc<Vec<AtomicU64>>,
    pub writer: RegionWriter,
    /// The code of each port.
    code: Vec<Vec<u64>>,
    /// Time of the packets since the start of the run.
    pub time_ns: u64,
    /// Runs the packets that are handed over.
    slow: Switch,
    /// Run all packets: the interpreter, and perhaps machine code.
    references: Vec<Switch>,
    pub ways: Ways,
    /// Hits of entries that were replaced.
    pub hits: Hits,
    sent: BTreeMap<u32, [u64; 2]>,
    received: BTreeMap<u32, [u64; 2]>,
}

/// Waits for a packet that another thread runs.
pub fn wait_for_packet(waited: u64) -> bool {
    std::thread::yield_now();
    waited < 1000
}

/// Runs a packet on two processors of the machine, again and again, until `beside` has ended. Returns the number of
/// runs that ended with a redirect to a device.
pub fn run_while(rig: &Rig, data: &[u8], time_ns: u64, beside: impl FnOnce()) -> u64 {
    let code = rig.compiled.encode(&links(0), true).expect("code");
    let (region, layout) = (&rig.region, &rig.compiled.layout);
    let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
    let run = |cpu| {
        start.wait();
        let mut fast = 0;
        while !is_over.load(Ordering::Relaxed) {
            let environment = Environment { links: links(0), region, devices: 64, sockets: SOCKETS, cpu, time_ns };
            let outcome = machine::run(&code, &mut data.to_vec(), environment).expect("no fault");
            fast += u64::from(matches!(outcome.redirect, Some((MapRef::Devices, _))));
            bpf::finish_hand_overs(layout, region);
        }
        fast
    };
    std::thread::scope(|scope| {
        let run = &run;
        let threads = [0, 2].map(|cpu| scope.spawn(move || run(cpu)));
        start.wait();
        beside();
        is_over.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().expect("no panic")).iter().sum()
    })
}

/// Returns the links with which the code of a port is encoded for the machine.
pub fn links(port: u32) -> Links {
    Links { region: 3, devices: 4, sockets: 5, port, has_local_senders: false }
}

impl Rig {
    /// Compiles a program. `write` writes the entries into each switch.
    pub fn new(program: &Arc<Program>, write: impl Fn(&Program, &mut Objects)) -> Rig {
        Rig::try_new(program, &[Executor::Interpreter, Executor::Jit], write).expect("the program is not too large")
    }

    /// Does the same for a program that may be too large, and these executors. The first is the interpreter.
    pub fn try_new(
        program: &Arc<Program>,
        executors: &[Executor],
        write: impl Fn(&Program, &mut Objects),
    ) -> Option<Rig> {
        let pipeline = v1model::kernel_pipeline(program).expect("a v1model program");
        let compiled = bpf::compile(program, &pipeline, KernelOptions { cpus: CPUS, ports: PORTS }).ok()?;
        let switch = |executor| {
            let config = Config { executor, cpu_port: None, ..Config::with_ports(PORTS) };
            let mut switch = Switch::new(program.clone(), config).expect("a switch");
            write(program, switch.objects_mut());
            switch
        };
        let region: Vec<AtomicU64> = (0..compiled.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let region = Arc::new(region);
        for port in 0..PORTS {
            let state = PortState::Fast { device: port + 10, max_frame: 1514 };
            bpf::set_port(&compiled.layout, &region, port, state, true);
        }
        bpf::set_clock_origin(&compiled.layout, &region, ORIGIN_NS);
        let mut references: Vec<Switch> = executors.iter().map(|executor| switch(*executor)).collect();
        let mut writer = RegionWriter::new(&compiled.layout, wait_for_packet);
        writer.fill(&region, program, references[0].objects()).expect("the entries fit");
        references[0].objects_mut().record_changes();
        let mut slow = switch(Executor::Interpreter);
        for (register, first) in compiled.layout.registers() {
            slow.objects_mut().share_register(register, Arc::<Vec<AtomicU64>>::clone(&region), first);
        }
        for (meter, first) in compiled.layout.meters() {
            slow.objects_mut().share_meter(meter, Arc::<Vec<AtomicU64>>::clone(&region), first);
        }
        for (table, first, count) in compiled.layout.direct_meters() {
            slow.objects_mut().share_direct_meter(table, Arc::<Vec<AtomicU64>>::clone(&region), first, count);
        }
        if let Some(at) = compiled.layout.atomic_lock() {
            slow.objects_mut().share_atomic_lock(Arc::<Vec<AtomicU64>>::clone(&region), at);
        }
        let code = (0..PORTS).map(|port| compiled.encode(&links(port), true).expect("code")).collect();
        Some(Rig {
            program: program.clone(),
            compiled,
            region,
            writer,
            code,
            time_ns: TIME_NS,
            slow,
            references,
            ways: Ways::default(),
            hits: Hits::default(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
        })
    }

    /// Changes the tables of every switch, and then those of the region.
    pub fn change(&mut self, write: impl Fn(&Program, &mut Objects)) -> Result<(), RegionError> {
        for switch in self.references.iter_mut().chain([&mut self.slow]) {
            write(&self.program, switch.objects_mut());
        }
        let objects = self.references[0].objects_mut();
        let changes = objects.take_changes();
        self.writer.update(&self.region, &self.program, objects, &changes, &mut self.hits)
    }

    /// Sets whether the ports have local senders.
    pub fn set_local_senders(&mut self, has_local_senders: bool) {
        let code = |port| self.compiled.encode(&Links { has_local_senders, ..links(port) }, true).expect("code");
        self.code = (0..PORTS).map(code).collect();
    }

    pub fn code(&self) -> String {
        bpf::disassemble(&self.code[0])
    }

    /// Forgets or restores the time of the machine's packets, which are then handed over if they read it.
    pub fn set_has_time(&self, has_time: bool) {
        bpf::set_clock_origin(&self.compiled.layout, &self.region, if has_time { ORIGIN_NS } else { 0 });
    }

    /// Runs code on a packet in the machine.
    pub fn machine(&self, port: u32, packet: &mut Vec<u8>) -> Result<RunOutcome, MachineFault> {
        self.machine_on(CPU, port, packet)
    }

    /// Does the same on this processor.
    pub fn machine_on(&self, cpu: u32, port: u32, packet: &mut Vec<u8>) -> Result<RunOutcome, MachineFault> {
        let environment = Environment {
            links: links(port),
            region: &self.region,
            devices: 64,
            sockets: SOCKETS,
            cpu,
            time_ns: ORIGIN_NS + self.time_ns,
        };
        machine::run(&self.code[port as usize], packet, environment)
    }

    /// The words of the region that packets may change only at their commit, up to the first megabytes: all counts,
    /// except in large programs.
    pub fn shared_words(&self) -> Vec<u64> {
        let private = self.compiled.layout.private_bytes() as usize / 8;
        shared(&self.region[private..])
    }

    /// Runs a packet everywhere and compares.
    pub fn packet(&mut self, port: u32, data: &[u8]) -> Way {
        self.packet_as(port, data, data)
    }

    /// Does the same with a packet that the switch gets as `data`, as its ports complete checksums.
    pub fn packet_as(&mut self, port: u32, received: &[u8], data: &[u8]) -> Way {
        let (before, mut packet) = (self.shared_words(), received.to_vec());
        let outcome = self.machine(port, &mut packet).unwrap_or_else(|fault| panic!("{fault}\n{}", self.code()));
        let way = match (outcome.verdict as i32, outcome.redirect) {
            (bpf::uapi::XDP_DROP, None) => Way::Dropped,
            (bpf::uapi::XDP_REDIRECT, Some((MapRef::Sockets, 0))) => Way::HandedOver,
            (bpf::uapi::XDP_REDIRECT, Some((MapRef::Devices, device))) => {
                Way::Sent { port: device - 10, data: packet.clone() }
            }
            other => panic!("{other:?} of {data:02x?}"),
        };
        let time = Time::from_ns(self.time_ns);
        let mut frames: Vec<Vec<Frame>> = Vec::new();
        for reference in &mut self.references {
            let mut output = Vec::new();
            reference.step(time, &mut vec![Frame::new(port, data.to_vec())], &mut output);
            frames.push(output);
        }
        assert!(frames.iter().all(|other| *other == frames[0]), "interpreter and machine code");
        let bytes = data.len() as u64;
        match &way {
            Way::Sent { port: to, data } => {
                assert_eq!(frames[0], [Frame::new(*to, data.clone())], "sent");
                self.ways.sent += 1;
                add(&mut self.sent, *to, data.len() as u64);
            }
            Way::Dropped => {
                assert_eq!(frames[0], [], "dropped");
                self.ways.dropped += 1;
            }
            Way::HandedOver => {
                assert!(packet == data || packet == received, "a hand-over changes nothing else");
                assert_eq!(self.shared_words(), before, "a hand-over changes nothing");
                self.ways.handed_over += 1;
                bpf::finish_hand_overs(&self.compiled.layout, &self.region);
                let mut output = Vec::new();
                self.slow.step(time, &mut vec![Frame::new(port, data.to_vec())], &mut output);
                assert_eq!(frames[0], output);
            }
        }
        if way != Way::HandedOver {
            add(&mut self.received, port, bytes);
        }
        way
    }

    /// Returns the switch that interprets all packets.
    pub fn reference(&self) -> &Switch {
        &self.references[0]
    }

    /// Compares the counts of fast and slow packets together with those of the switch that had all.
    pub fn compare_counts(&self) {
        self.references[1..].iter().for_each(|other| self.compare_with_reference(other));
        let counts = RegionCounts::new(&self.compiled.layout, &self.region);
        for port in 0..PORTS {
            for (count, expected) in [(counts.sent(port), &self.sent), (counts.received(port), &self.received)] {
                assert_eq!([count.packets, count.bytes], expected.get(&port).copied().unwrap_or_default());
            }
        }
        for (id, counter) in &self.program.counters {
            for index in 0..counter.size.unwrap_or(0) {
                let all = self.references[0].objects().counter(id, index).expect("an element");
                let slow = self.slow.objects().counter(id, index).expect("an element");
                let fast = counts.counter(id, index as u32).unwrap_or_default();
                let sum = [slow.packets + fast.packets, slow.bytes + fast.bytes];
                assert_eq!(sum, [all.packets, all.bytes], "counter {} at {index}", counter.name);
            }
        }
        self.compare_registers();
        self.compare_hits(&counts);
        self.compare_drops(&counts);
        let errors = |switch: &Switch| switch.registry().get("parser.errors").unwrap_or(0);
        let fast: u64 = (0..self.program.errors.len() as u32).map(|error| counts.errors(error)).sum();
        assert_eq!(errors(&self.slow) + fast, errors(&self.references[0]), "parser errors");
    }

    /// Compares registers, counters and drops of machine code with those of the interpreter.
    fn compare_with_reference(&self, other: &Switch) {
        let reference = self.reference();
        for (id, counter) in &self.program.counters {
            for index in 0..counter.size.unwrap_or(0) {
                let counts = [reference, other].map(|switch| switch.objects().counter(id, index));
                assert_eq!(counts[0], counts[1], "counter {} at {index}", counter.name);
            }
        }
        for (id, register) in &self.program.registers {
            assert_eq!(words(reference, id, register), words(other, id, register), "register {}", register.name);
        }
        assert_eq!(sites(reference), sites(other), "drops by reason and place");
    }

    /// Compares the registers, which fast and slow packets share.
    fn compare_registers(&self) {
        for (id, register) in &self.program.registers {
            let (fast, all) = (words(&self.slow, id, register), words(self.reference(), id, register));
            let differs =
                (0..fast.len().max(all.len())).find(|at| fast.get(*at).unwrap_or(&0) != all.get(*at).unwrap_or(&0));
            assert_eq!(differs, None, "register {}", register.name);
        }
    }

    fn compare_hits(&self, counts: &RegionCounts<'_>) {
        let sum = |objects: &Objects, table| {
            let hits = objects.entries(table).map(|entry| entry.counter);
            hits.fold([0, 0], |sum, one| [sum[0] + one.packets, sum[1] + one.bytes])
        };
        for (id, table) in self.program.tables.iter().filter(|(_, table)| table.counter.is_some()) {
            let records = (1..).map_while(|record| counts.hits(id, record));
            let fast = records.fold([0, 0], |sum, one| [sum[0] + one.packets, sum[1] + one.bytes]);
            let (slow, all) = (sum(self.slow.objects(), id), sum(self.references[0].objects(), id));
            assert_eq!([slow[0] + fast[0], slow[1] + fast[1]], all, "hits of {}", table.name);
        }
    }

    fn compare_drops(&self, counts: &RegionCounts<'_>) {
        let mut drops = sites(&self.slow);
        for (is_egress, loc, packets) in counts.drops() {
            let reason = if is_egress { DropReason::EgressProgram } else { DropReason::IngressProgram };
            let place = if loc.as_u32() == 0 { String::new() } else { self.program.locs[loc].to_string() };
            *drops.entry((reason.name(), place)).or_default() += packets;
        }
        let all = sites(self.reference());
        assert_eq!(drops, all, "drops by reason and place");
    }
}

/// Returns the first words of a register.
fn words(switch: &Switch, id: RegisterId, register: &Register) -> Vec<u64> {
    let mut words = Vec::new();
    switch.objects().read_register_words(id, 0..register.size.min(1 << 16), &mut words);
    words
}

/// Returns the numbers of dropped packets by reason and place.
fn sites(switch: &Switch) -> BTreeMap<(&'static str, String), u64> {
    let place = |site: &DropSite| site.place.as_ref().map_or_else(String::new, |(place, _)| place.to_string());
    let mut sites = BTreeMap::new();
    for site in switch.drop_sites() {
        *sites.entry((site.reason.name(), place(&site))).or_default() += site.packets;
    }
    sites
}

/// Returns the first words of a region behind its scratch memory.
pub fn shared(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().take(1 << 18).map(|word| word.load(Ordering::Relaxed)).collect()
}

fn add(to: &mut BTreeMap<u32, [u64; 2]>, port: u32, bytes: u64) {
    let count = to.entry(port).or_default();
    *count = [count[0] + 1, count[1] + bytes];
}
