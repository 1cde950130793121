//! Processing in place and processing of copies have the same results.

use std::sync::Arc;

use ::rng::SplitMix64;
use ::switch::{Device, Egress, Frame, HeadroomBuf, MirrorSession, MulticastGroup, PortId, Replica, Time};

use super::probe::{Do, frame, program};
use super::traced::{packet, router};
use crate::{Config, Executor, Path, PathReason, Switch};

/// A reproducible generator.
pub struct Random(pub SplitMix64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Two switches with the same configuration: one processes copies, the other in place.
pub struct Pair {
    pub handed: Switch,
    pub lent: Switch,
    /// Number of frames that left in place.
    pub in_place: usize,
    /// Number of frames offered in batches.
    pub offered: u64,
}

impl Pair {
    fn new(make: impl Fn() -> Switch) -> Pair {
        Pair::of(make(), make())
    }

    pub fn of(handed: Switch, lent: Switch) -> Pair {
        Pair { handed, lent, in_place: 0, offered: 0 }
    }

    pub fn both(&mut self, mut change: impl FnMut(&mut Switch)) {
        change(&mut self.handed);
        change(&mut self.lent);
    }

    /// Sends a batch through both and compares everything that can be observed.
    #[track_caller]
    pub fn send(&mut self, now: Time, port: u32, frames: &[Vec<u8>], room: usize) {
        let mut expected = Vec::new();
        let mut input = frames.iter().map(|data| Frame::new(port, data.clone())).collect();
        self.handed.step(now, &mut input, &mut expected);
        let mut batch: Vec<HeadroomBuf> = frames.iter().map(|data| HeadroomBuf::new(data, room)).collect();
        let mut departed = Vec::new();
        self.offered += frames.len() as u64;
        self.lent.step_in_place(now, PortId(port), &mut batch, &mut departed);
        let left = departed.into_iter().map(|departed| match departed {
            Egress::Owned(frame) => frame,
            Egress::InPlace { index: number, port } => {
                self.in_place += 1;
                Frame { port, data: batch[number].bytes().to_vec() }
            }
        });
        assert_eq!(left.collect::<Vec<_>>(), expected, "at {now}, with {room} bytes of room");
        self.compare();
    }

    #[track_caller]
    fn compare(&mut self) {
        let counted = |switch: &Switch| -> Vec<(String, u64)> {
            let all = switch.registry().iter().map(|(name, value)| (name.to_owned(), value));
            all.filter(|(_, value)| *value > 0).collect()
        };
        assert_eq!(counted(&self.lent), counted(&self.handed));
        assert_eq!(self.lent.drop_sites(), self.handed.drop_sites());
        assert_eq!(self.lent.take_notifications(), self.handed.take_notifications());
        assert_eq!(self.lent.next_event(), self.handed.next_event());
        assert_eq!(self.lent.waiting(), self.handed.waiting());
        let paths = self.lent.path_counts();
        assert_eq!(paths.iter().map(|count| count.packets).sum::<u64>(), self.offered, "{paths:?}");
    }
}

/// The parameters of a test.
#[derive(Clone, Copy)]
pub struct Setting {
    /// [`Executor::Auto`] stands for machine code that is installed later.
    pub executor: Executor,
    pub max_work: u32,
    pub max_passes: u16,
    /// Whether egress reads the packet's length, which ingress may change.
    pub reads_length: bool,
    /// Whether a queue has a rate, so packets may have to wait.
    pub is_paced: bool,
    /// Whether the packet as received can be requested, so each must be copied before it runs.
    pub keeps_originals: bool,
    /// Whether egress requests clones and recirculations, so copies may cause others.
    pub asks_in_egress: bool,
}

impl Setting {
    pub const USUAL: Setting = Setting {
        executor: Executor::Jit,
        max_work: 4096,
        max_passes: 64,
        reads_length: true,
        is_paced: true,
        keeps_originals: true,
        asks_in_egress: true,
    };
}

/// Returns the probe with a report that says 0 for the length.
fn without_length() -> ir::Program {
    let mut program = program();
    let length = program.slot_named("standard_metadata.packet_length").expect("the probe has it");
    let is_length = |value: &ir::Expr| matches!(value, ir::Expr::Slice(from, ..) if **from == ir::Expr::Slot(length));
    for block in program.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        for instr in &mut block.instrs {
            if let ir::Op::Assign(_, value) = &mut instr.op
                && is_length(value)
            {
                *value = ir::Expr::Const(bits::Bits::new(0, 16));
            }
        }
    }
    program
}

/// Removes everything that requests the packet as received.
fn without_originals(mut program: ir::Program) -> ir::Program {
    for block in program.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        let asks = |op: &ir::Op| matches!(op, ir::Op::Request(ir::Request::Clone { .. } | ir::Request::Resubmit(_)));
        block.instrs.retain(|instr| !asks(&instr.op));
    }
    program
}

/// Removes what makes a pass through egress cause another pass.
fn without_egress_requests(mut program: ir::Program) -> ir::Program {
    let egress = program.blocks["egress"];
    for block in program.bodies[egress].blocks.values_mut() {
        let asks = |op: &ir::Op| matches!(op, ir::Op::Request(ir::Request::Clone { .. } | ir::Request::Recirculate(_)));
        block.instrs.retain(|instr| !asks(&instr.op));
    }
    program
}

/// Returns a switch with the probe and all settings.
pub fn probe(setting: Setting) -> Switch {
    let program = if setting.reads_length { program() } else { without_length() };
    let program = if setting.keeps_originals { program } else { without_originals(program) };
    let program = if setting.asks_in_egress { program } else { without_egress_requests(program) };
    let Setting { executor, max_work, max_passes, .. } = setting;
    let config = Config { executor, max_work, max_passes, ..Config::with_ports(6) };
    let make = if executor == Executor::Auto { Switch::deferred } else { Switch::new };
    let mut switch = make(Arc::new(program), config).expect("the probe fits the switch");
    let replicas = |ports: &[u32]| ports.iter().map(|port| Replica::new(*port, 7)).collect();
    switch.set_multicast_group(1, Some(MulticastGroup { replicas: replicas(&[1, 2, 3]) }));
    switch.set_multicast_group(2, Some(MulticastGroup { replicas: Vec::new() }));
    let session = MirrorSession { replicas: replicas(&[2]), group: None, max_bytes: Some(20), ..Default::default() };
    switch.set_mirror_session(1, Some(session));
    switch.set_mirror_session(2, Some(MirrorSession::to_group(1)));
    if setting.is_paced {
        switch.set_queue_rate(PortId(4), None, Some(100_000));
        switch.set_queue_depth(PortId(4), None, 3);
        switch.set_queue_depth(PortId(5), Some(2), 0);
    }
    switch
}

const OPS: [Do; 16] = [
    Do::Unicast,
    Do::Drop,
    Do::DropWithoutSite,
    Do::Multicast,
    Do::CloneIngress,
    Do::ResubmitOnce,
    Do::ResubmitAlways,
    Do::Digest,
    Do::AssertInIngress,
    Do::CloneEgress,
    Do::CloneEgressAlways,
    Do::Recirculate,
    Do::RecirculateAlways,
    Do::Truncate,
    Do::DropInEgress,
    Do::SecondByteIsPriority,
];

/// Returns a frame for the probe, sometimes too short or too long.
fn any_frame(random: &mut Random) -> Vec<u8> {
    let op = if random.below(2) == 0 { Do::Unicast } else { random.one_of(&OPS) };
    let port = random.one_of(&[0, 1, 2, 3, 4, 5, 6, 510, 511]);
    let payload = if random.below(40) == 0 { 10_240 } else { random.below(80) as usize };
    let mut data = frame(op, port, random.below(5) as u16, payload);
    if random.below(20) == 0 {
        data.truncate(random.below(6) as usize);
    }
    data
}

/// Number of batches of a story.
pub const BATCHES: usize = 60;

fn story(seed: u64, setting: Setting) -> usize {
    let mut pair = Pair::new(|| probe(setting));
    run_story(&mut pair, &mut Random(SplitMix64::new(seed)), &mut |_, _| ());
    pair.in_place
}

/// Sends random batches, and calls `between` before each with its number.
pub fn run_story(pair: &mut Pair, random: &mut Random, between: &mut dyn FnMut(&mut Pair, usize)) {
    let mut now = 0;
    for number in 0..BATCHES {
        between(pair, number);
        now += random.below(30);
        if random.below(10) == 0 {
            let (port, up) = (PortId(random.below(7) as u32), random.below(3) > 0);
            pair.both(|switch| _ = switch.set_port_up(port, up));
        }
        let most = if random.below(8) == 0 { 80 } else { 9 };
        let frames: Vec<Vec<u8>> = (0..random.below(most)).map(|_| any_frame(random)).collect();
        let (port, room) = (random.below(7) as u32, random.one_of(&[0, 8, 64]));
        pair.send(Time::from_us(now), port, &frames, room);
    }
}

#[test]
fn whatever_a_program_asks_for_comes_to_the_same() {
    for (reads_length, is_paced) in [(true, true), (true, false), (false, true), (false, false)] {
        for asks_in_egress in [true, false] {
            let setting = Setting { reads_length, is_paced, asks_in_egress, ..Setting::USUAL };
            let in_place: usize = (0..20).map(|seed| story(seed, setting)).sum();
            assert!(in_place > 200, "only {in_place} frames left in place");
        }
    }
}

#[test]
fn frames_that_run_together_come_to_the_same() {
    // Packets run together if the pipeline is one unit and no queue delays anything.
    for (reads_length, keeps_originals) in [(false, false), (true, false), (false, true), (true, true)] {
        let setting = Setting { reads_length, keeps_originals, is_paced: false, ..Setting::USUAL };
        let machine = probe(setting).machine.expect("there is machine code");
        assert_eq!(machine.keeps_original, keeps_originals);
        for asks_in_egress in [true, false] {
            let setting = Setting { asks_in_egress, ..setting };
            let in_place: usize = (100..130).map(|seed| story(seed, setting)).sum();
            assert!(in_place > 500, "only {in_place} frames left in place");
        }
    }
    // If a queue does, each runs by itself.
    story(130, Setting { is_paced: true, ..Setting::USUAL });
}

/// Returns a switch that runs this program as machine code.
fn compiled(program: ir::Program) -> Switch {
    let config = Config { executor: Executor::Jit, ..Config::with_ports(6) };
    Switch::new(Arc::new(program), config).expect("the probe fits the switch")
}

/// Inserts an operation at the beginning of the block of this name in the body with this role.
fn insert(program: &mut ir::Program, role: &str, name: &str, op: ir::Op) {
    let body = program.blocks[role];
    let mut blocks = program.bodies[body].blocks.values_mut();
    let block = blocks.find(|block| block.name == name).expect("the probe has the block");
    block.instrs.insert(0, ir::Instr { op, loc: ir::LocId::from_u32(0) });
}

#[test]
fn egress_reads_the_length_with_the_present_headers() {
    let seen = || ir::HeaderRef::Header(ir::HeaderId::from_u32(1));
    // Ingress adds a header, or removes one that the parser made valid and that is longer than short frames.
    for removes in [false, true] {
        let mut pair = Pair::new(|| {
            let mut program = program();
            let op = if removes { ir::Op::SetInvalid(seen()) } else { ir::Op::SetValid(seen()) };
            insert(&mut program, "ingress", "SecondByteIsPriority", op);
            if removes {
                insert(&mut program, "parser", "start", ir::Op::SetValid(seen()));
            }
            compiled(program)
        });
        let op = |length: usize| if length.is_multiple_of(3) { Do::Unicast } else { Do::SecondByteIsPriority };
        let frames: Vec<Vec<u8>> = (0..60).map(|length| frame(op(length), 2, 0, length)).collect();
        pair.send(Time::from_us(7), 1, &frames, 64);
        assert_eq!(paths(&pair.lent), [(Path::Batched, None)]);
    }
}

#[test]
fn batches_go_on_where_a_program_overwrites_what_the_switch_counts_by() {
    for (role, slot) in [
        ("ingress", "standard_metadata.ingress_global_timestamp"),
        ("egress", "standard_metadata.priority"),
        ("egress", "standard_metadata.egress_port"),
    ] {
        let mut pair = Pair::new(|| {
            let mut program = program();
            let slot = program.slot_named(slot).expect("the probe has the metadata");
            let one = ir::Expr::Const(bits::Bits::new(1, program.slots[slot].width));
            insert(&mut program, role, "start", ir::Op::Assign(ir::LValue::Slot(slot), one));
            compiled(program)
        });
        let op = |number: usize| if number.is_multiple_of(3) { Do::SecondByteIsPriority } else { Do::Unicast };
        let frames: Vec<Vec<u8>> = (0..40).map(|number| frame(op(number), 2, number as u16 % 5, number)).collect();
        pair.send(Time::from_us(7_000_001), 1, &frames, 64);
        assert_eq!(paths(&pair.lent), [(Path::Batched, None)]);
    }
}

/// Returns the paths of frames with one operation each, which both ways into the switch treat alike, and the number of
/// those that left in place.
fn paths_of(op: Do, arg: u16, keeps_originals: bool) -> (usize, Vec<(Path, Option<PathReason>)>) {
    paths_with(op, arg, Setting { keeps_originals, is_paced: false, ..Setting::USUAL })
}

fn paths_with(op: Do, arg: u16, setting: Setting) -> (usize, Vec<(Path, Option<PathReason>)>) {
    let mut pair = Pair::new(|| probe(setting));
    let frames: Vec<Vec<u8>> = (0..40).map(|length| frame(op, 2, arg, length)).collect();
    pair.send(Time::from_us(7), 1, &frames, 64);
    (pair.in_place, paths(&pair.lent))
}

#[test]
fn digests_and_truncated_packets_stay_in_their_batch() {
    for (op, arg) in [(Do::Digest, 3), (Do::Truncate, 20), (Do::Truncate, 0), (Do::Truncate, u16::MAX)] {
        assert_eq!(paths_of(op, arg, true), (40, vec![(Path::Batched, None)]), "{op:?}");
    }
    // What a packet requests before it fails is carried out.
    let mut pair = Pair::new(|| {
        let mut program = program();
        let body = program.blocks["ingress"];
        let find = |op: Do| {
            let blocks = &program.bodies[body].blocks;
            let named = blocks.values().find(|block| block.name == format!("{op:?}"));
            named.expect("the probe has the block").instrs[0].clone()
        };
        let (digest, assertion) = (find(Do::Digest), find(Do::AssertInIngress));
        insert(&mut program, "ingress", "start", digest.op);
        insert(&mut program, "egress", "DropInEgress", assertion.op);
        compiled(program)
    });
    let frames: Vec<Vec<u8>> = [Do::Unicast, Do::DropInEgress, Do::AssertInIngress, Do::Drop, Do::Multicast]
        .into_iter()
        .map(|op| frame(op, 2, 1, 9))
        .collect();
    pair.send(Time::from_us(7), 1, &frames, 64);
    assert_eq!(pair.lent.registry().get("notification.digests"), Some(4));
}

#[test]
fn a_packet_stays_in_place_while_its_copies_leave() {
    let single = |reason| vec![(Path::Single, Some(reason))];
    assert_eq!(paths_of(Do::Multicast, 1, true), (40, single(PathReason::Multicast)));
    for op in [Do::CloneIngress, Do::CloneEgress] {
        assert_eq!(paths_of(op, 1, true), (40, single(PathReason::Cloned)), "{op:?}");
    }
    let ends = Setting { asks_in_egress: false, is_paced: false, ..Setting::USUAL };
    assert_eq!(paths_with(Do::Multicast, 1, ends), (40, single(PathReason::Multicast)));
}

#[test]
fn clones_and_further_passes_wait_for_their_batch() {
    let batched = || vec![(Path::Batched, None)];
    let ends = Setting { asks_in_egress: false, is_paced: false, ..Setting::USUAL };
    // Sessions with one destination, with three, and one that does not exist.
    for session in 1..4 {
        assert_eq!(paths_with(Do::CloneIngress, session, ends), (40, batched()));
    }
    for op in [Do::ResubmitOnce, Do::ResubmitAlways] {
        let (in_place, paths) = paths_of(op, 1, true);
        assert_eq!((in_place, paths), (if matches!(op, Do::ResubmitOnce) { 40 } else { 0 }, batched()), "{op:?}");
    }
    assert_eq!(paths_of(Do::Recirculate, 1, false), (40, batched()));
    assert_eq!(paths_of(Do::RecirculateAlways, 1, false).1, batched());
}

#[test]
fn a_packet_whose_requests_wait_is_copied_for_want_of_room_only() {
    let ends = Setting { asks_in_egress: false, is_paced: false, ..Setting::USUAL };
    for op in [Do::Unicast, Do::CloneIngress] {
        let mut pair = Pair::new(|| probe(ends));
        let frames: Vec<Vec<u8>> = (0..40).map(|length| frame(op, 2, 1, length)).collect();
        pair.send(Time::from_us(7), 1, &frames, 0);
        assert_eq!(paths(&pair.lent), [(Path::Copied, Some(PathReason::Moved))], "{op:?}");
    }
}

#[test]
fn requests_wait_only_if_packets_do_not_see_each_other() {
    let mut program = without_egress_requests(program());
    assert!(compiled(program.clone()).machine.expect("there is machine code").requests_wait);
    let slot = program.slot_named("meta.lost").expect("the probe has metadata");
    let number = || ir::Expr::Const(bits::Bits::new(3, 16));
    insert(&mut program, "egress", "start", ir::Op::Random(ir::LValue::Slot(slot), number(), number()));
    assert!(!compiled(program).machine.expect("there is machine code").requests_wait);
}

/// Returns a switch with several groups, sessions of one and of several destinations, and truncated clones.
pub fn kinds_of_copies(asks_in_egress: bool) -> Switch {
    let mut switch = probe(Setting { asks_in_egress, is_paced: false, ..Setting::USUAL });
    for group in 3..9 {
        let ports = (0..group).map(|member| (group + member) % 6);
        switch.set_multicast_group(group, Some(MulticastGroup::of_ports(ports)));
        let session = MirrorSession { max_bytes: Some(4 * group), ..MirrorSession::to_group(group) };
        switch.set_mirror_session(group, Some(session));
    }
    switch
}

/// Returns one of many frames that ask for all operations, of all groups and sessions.
pub fn any_copy(number: u16) -> Vec<u8> {
    frame(OPS[usize::from(number) * 7 % 16], number % 5, 1 + number % 9, usize::from(number % 60))
}

#[test]
fn packets_of_all_kinds_leave_in_order() {
    for asks_in_egress in [true, false] {
        let mut pair = Pair::new(|| kinds_of_copies(asks_in_egress));
        for time in 0..5 {
            let frames: Vec<Vec<u8>> = (0..64).map(|number| any_copy(64 * time + number)).collect();
            pair.send(Time::from_us(time.into()), 1, &frames, 64);
        }
        assert!(pair.in_place > 50, "only {} frames left in place", pair.in_place);
    }
}

#[test]
fn limits_on_work_hold_in_place() {
    for max_work in 0..5 {
        for (reads_length, asks_in_egress) in [(true, true), (true, false), (false, true), (false, false)] {
            let setting = Setting { max_work, reads_length, asks_in_egress, is_paced: false, ..Setting::USUAL };
            story(u64::from(max_work) + 1000, setting);
        }
    }
    for max_passes in 0..4 {
        for (keeps_originals, asks_in_egress) in [(true, true), (true, false), (false, true)] {
            let setting = Setting { max_passes, keeps_originals, asks_in_egress, is_paced: false, ..Setting::USUAL };
            story(u64::from(max_passes) + 2000, setting);
        }
    }
}

#[test]
fn without_machine_code_frames_are_copied() {
    assert_eq!(story(1, Setting { executor: Executor::Interpreter, ..Setting::USUAL }), 0);
}

/// Returns the path and the reason of each count.
fn paths(switch: &Switch) -> Vec<(Path, Option<PathReason>)> {
    switch.path_counts().iter().map(|count| (count.path, count.reason)).collect()
}

#[test]
fn frames_of_a_program_that_emits_nothing_stay_in_their_batch() {
    let mut program = without_originals(without_length());
    for block in program.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        block.instrs.retain(|instr| !matches!(instr.op, ir::Op::Emit(_)));
    }
    let mut pair = Pair::new(|| compiled(program.clone()));
    let frames: Vec<Vec<u8>> = (0..40).map(|length| frame(Do::Unicast, 2, 0, length)).collect();
    pair.send(Time::ZERO, 1, &frames, 0);
    assert_eq!(pair.in_place, frames.len());
    assert_eq!(paths(&pair.lent), [(Path::Batched, None)]);
}

#[test]
fn paths_and_their_reasons_are_counted() {
    let setting = Setting { reads_length: false, is_paced: false, keeps_originals: false, ..Setting::USUAL };
    let first = |setting: Setting| {
        let mut switch = probe(setting);
        let mut batch = [HeadroomBuf::new(&packet(0), 64)];
        switch.step_in_place(Time::ZERO, PortId(1), &mut batch, &mut Vec::new());
        paths(&switch)[0]
    };
    assert_eq!(first(setting), (Path::Batched, None));
    assert_eq!(first(Setting { is_paced: true, ..setting }), (Path::Single, Some(PathReason::Rate)));
    let interpreted = Setting { executor: Executor::Interpreter, ..setting };
    assert_eq!(first(interpreted), (Path::Copied, Some(PathReason::Interpreted)));
}

#[test]
fn a_router_forwards_in_place_and_counts_what_it_always_counts() {
    let mut pair = Pair::new(|| router(|text| text.to_owned()));
    let mut random = Random(SplitMix64::new(9));
    for time in 0..200 {
        let mut any = || {
            let mut data = packet(random.below(9) as u8);
            if random.below(3) == 0 {
                let at = random.below(data.len() as u64) as usize;
                data[at] ^= 1 << random.below(8);
            }
            data.truncate(random.below(4 * data.len() as u64).max(1) as usize);
            data
        };
        let frames: Vec<Vec<u8>> = (0..5).map(|_| any()).collect();
        pair.send(Time::from_us(time), 1, &frames, 128);
    }
    assert!(pair.in_place > 100, "only {} frames left in place", pair.in_place);
    for table in pair.handed.program().clone().tables.keys() {
        let entries = |switch: &Switch| format!("{:?}", switch.objects().entries(table).collect::<Vec<_>>());
        assert_eq!(entries(&pair.lent), entries(&pair.handed));
    }
}
