//! Runs a program in both executors, packet after packet, and reports differences.

pub mod guard;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bits::Bits;
use engine::{Ending, Interpreter, MeterConfig, Now, Objects, PacketState, Requested, TableEntry};
use ir::{BodyId, KeyValue, LocId, MatchKind, Program};
use jit::{NativeProgram, Packet, Plan, Speed, Step, Unit, UnitOutcome};
use rng::SplitMix64;

thread_local! {
    /// Number of packets in batches that code specialised for their path through the parser has finished, and number of
    /// those that the shared code has finished. A test runs on a thread of its own, so it counts only its own packets.
    static FINISHED: Cell<[usize; 2]> = const { Cell::new([0, 0]) };
}

/// Fails unless both kinds of code processed at least `least` packets.
pub fn assert_both_ways(least: usize) {
    let [special, shared] = FINISHED.get();
    println!("{special} packets had code of their own, {shared} had not");
    assert!(special >= least && shared >= least, "{special} and {shared} packets test too little");
}

/// A source of random values for programs, entries and packets.
#[derive(Clone)]
pub struct RandomValues(SplitMix64);

impl RandomValues {
    pub fn new(seed: u64) -> RandomValues {
        RandomValues(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    pub fn bits(&mut self, width: u32) -> Bits {
        let words: Vec<u64> = (0..width.div_ceil(64)).map(|_| self.next()).collect();
        match self.below(4) {
            0 => Bits::new(u128::from(self.below(4)), width),
            1 => Bits::ones(width).sub(&Bits::new(u128::from(self.below(2)), width)),
            _ => Bits::from_words(&words, width),
        }
    }

    fn call(&mut self, program: &Program, action: ir::ActionId) -> engine::ActionCall {
        let widths = program.actions[action].params.iter().map(|param| program.slots[param.slot].width);
        engine::ActionCall { action, args: widths.map(|width| self.bits(width)).collect() }
    }
}

/// Fills tables, meters and registers at random; the same seed gives the same contents.
pub fn fill(program: &Program, objects: &mut Objects, seed: u64) {
    let mut rng = RandomValues::new(seed);
    for profile in program.profiles.keys() {
        for member in 0..4 {
            let Some((action, _)) = program.actions.iter().nth(rng.below(program.actions.len() as u64) as usize) else {
                continue;
            };
            let call = rng.call(program, action);
            _ = objects.insert_member(profile, member, call);
        }
        let member = |member| engine::GroupMember { member, weight: 1 + member, watch_port: Some(member) };
        _ = objects.insert_group(profile, 1, vec![member(0), member(1), member(2)], 0);
        _ = objects.insert_group(profile, 2, vec![member(3)], 0);
    }
    objects.set_port_up(3, false);
    set_defaults(program, objects, &mut rng);
    for (id, table) in &program.tables {
        for _ in 0..rng.below(12) {
            let keys = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).map(|key| {
                let value = rng.bits(key.width);
                match key.kind {
                    MatchKind::Exact | MatchKind::Optional => KeyValue::Exact(value),
                    MatchKind::Lpm => {
                        let length = rng.below(u64::from(key.width) + 1) as u32;
                        KeyValue::Lpm(value.shr(key.width - length).shl(key.width - length), length)
                    }
                    MatchKind::Ternary => {
                        let mask = rng.bits(key.width);
                        KeyValue::Ternary(value.and(&mask), mask)
                    }
                    _ => {
                        let other = rng.bits(key.width);
                        let swap = if key.signed {
                            value.signed_cmp(&other).is_gt()
                        } else {
                            value.unsigned_cmp(&other).is_gt()
                        };
                        if swap { KeyValue::Range(other, value) } else { KeyValue::Range(value, other) }
                    }
                }
            });
            let keys = keys.collect();
            let action = table.actions[rng.below(table.actions.len() as u64) as usize].action;
            let prioritised = table
                .keys
                .iter()
                .any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
            let call = rng.call(program, action);
            let mut entry = TableEntry::new(keys, i32::from(prioritised), action, call.args.clone());
            if table.profile.is_some() {
                entry.action = match rng.below(3) {
                    0 => engine::ActionSpec::Member(rng.below(4) as u32),
                    1 => engine::ActionSpec::Group(1 + rng.below(2) as u32),
                    _ => engine::ActionSpec::OneShot(vec![engine::WeightedCall { call, weight: 1, watch_port: None }]),
                };
            }
            _ = objects.insert(id, entry);
        }
    }
    for meter in program.meters.keys() {
        _ = objects.configure_meters(meter, Some(MeterConfig { cir: 50, cbs: 100, pir: 100, pbs: 200 }));
    }
    for (id, register) in &program.registers {
        for index in 0..register.size.min(4) {
            _ = objects.set_register(id, index, rng.bits(register.width));
        }
    }
    for (id, set) in &program.value_sets {
        for _ in 0..rng.below(3) {
            let member = set.fields.iter().map(|(_, width, _)| {
                let (value, mask) = (rng.bits(*width), rng.bits(*width));
                KeyValue::Ternary(value.and(&mask), mask)
            });
            _ = objects.insert_value_set_member(id, member.collect());
        }
    }
}

/// Sets other default actions, where the control plane may.
fn set_defaults(program: &Program, objects: &mut Objects, rng: &mut RandomValues) {
    for (id, table) in &program.tables {
        let action = table.actions[rng.below(table.actions.len() as u64) as usize].action;
        let call = rng.call(program, action);
        if rng.below(2) == 0 {
            _ = objects.set_default_action(id, call);
        }
    }
}

/// Returns the bodies of a program's roles in execution order.
pub fn roles(program: &Program) -> Vec<BodyId> {
    let order = ["parser", "verify_checksum", "ingress", "egress", "compute_checksum", "deparser"];
    order.into_iter().filter_map(|role| program.blocks.get(role).copied()).collect()
}

/// Returns a plan with one unit per body, which keeps all state visible, or with one fused unit.
pub fn plan(bodies: &[BodyId], fused: bool) -> Plan {
    let steps: Vec<Step> = bodies.iter().map(|body| Step::Run(*body)).collect();
    if fused {
        return Plan { units: vec![Unit { steps, fresh: true, ..Unit::default() }], ..Plan::default() };
    }
    let count = steps.len();
    let unit = |step| Unit { steps: vec![step], next: (0..count).collect(), ..Unit::default() };
    Plan { units: steps.into_iter().map(unit).collect(), ..Plan::default() }
}

/// Returns the first difference between the two packets and their objects.
pub fn difference(program: &Program, state: &PacketState, packet: &Packet) -> Option<String> {
    for (id, slot) in &program.slots {
        if *state.slot(id) != packet.slot(id) {
            return Some(format!("slot {} {id}: {:?}, compiled {:?}", slot.name, state.slot(id), packet.slot(id)));
        }
    }
    for (id, header) in &program.headers {
        // Assembling the outgoing packet in place may overwrite headers.
        if packet.output().is_some() {
            break;
        }
        let compiled = packet.header(id);
        if *state.header(id) != compiled {
            return Some(format!("header {} {id}: {:?}, compiled {compiled:?}", header.name, state.header(id)));
        }
    }
    let facts = [
        ("cursor", state.cursor_bits() as u64, packet.cursor_bits() as u64),
        ("error", u64::from(state.parser_error()), u64::from(packet.parser_error())),
    ];
    for (what, interpreted, compiled) in facts {
        if interpreted != compiled {
            return Some(format!("{what}: {interpreted}, compiled {compiled}"));
        }
    }
    if state.requests() != packet.requests() {
        return Some(format!("requests: {:?}, compiled {:?}", state.requests(), packet.requests()));
    }
    None
}

/// Runs packets through both executors. Returns the first difference.
pub fn run(
    program: &Arc<Program>,
    seed: u64,
    fused: bool,
    packets: usize,
    make: &mut dyn FnMut(&mut RandomValues) -> Vec<u8>,
) -> Option<String> {
    jit::verify_code();
    let bodies = roles(program);
    let plan = plan(&bodies, fused);
    let speed = if seed.is_multiple_of(4) { Speed::Compile } else { Speed::Run };
    // Probed code must behave the same.
    extern "C" fn probe(_: u64) {}
    let compiled = match seed % 3 {
        0 => NativeProgram::probed(program, &plan, speed, probe),
        _ => NativeProgram::new(program, &plan, speed),
    };
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(unsupported) => return Some(unsupported.to_string()),
    };
    let (mut one, mut other) = (Objects::new(program), Objects::new(program));
    fill(program, &mut one, seed);
    fill(program, &mut other, seed);
    let mut rng = RandomValues::new(seed ^ 0x5eed);
    let mut state = PacketState::new(program, Vec::new());
    let mut packet = compiled.packet(Vec::new());
    for number in 0..packets {
        let data = make(&mut rng);
        let now = Now { ns: number as u64 * 100_000_000 };
        state.reset(program, data.clone());
        let room = rng.below(3) as usize * 20;
        let mut buffer = vec![0xee; room];
        buffer.extend_from_slice(&data);
        // A fresh unit has to clear the state of the previous packet; bodies on their own begin with zeros.
        if fused {
            packet.reset_inputs(buffer, room)
        } else {
            packet.reset(buffer, room)
        };
        let context = |what: String| Some(format!("packet {number} {data:02x?}: {what}"));
        if fused {
            let mut ending = Ending::Return;
            for body in &bodies {
                ending = Interpreter::run(program, &mut one, *body, &mut state, now, &mut ());
                if matches!(ending, Ending::AssertFailed(_) | Ending::OutOfFuel(_) | Ending::Pending(_)) {
                    break;
                }
            }
            let outcome = compiled.run(0, &mut packet, &mut other, now);
            let same = match outcome {
                UnitOutcome::Done(compiled) | UnitOutcome::Failed(_, compiled) => compiled == ending,
                UnitOutcome::Stopped(_) => false,
            };
            if !same {
                return context(format!("ends with {ending:?}, compiled {outcome:?}"));
            }
            if let Some(difference) = difference(program, &state, &packet) {
                return context(difference);
            }
            if let (UnitOutcome::Done(_), true) = (outcome, state.finish() != packet.finish()) {
                return context(format!("sends {:02x?}, compiled {:02x?}", state.finish(), packet.finish()));
            }
        } else {
            for (unit, body) in bodies.iter().enumerate() {
                let ending = Interpreter::run(program, &mut one, *body, &mut state, now, &mut ());
                let outcome = compiled.run(unit, &mut packet, &mut other, now);
                let name = &program.bodies[*body].name;
                let same = match outcome {
                    UnitOutcome::Done(compiled) | UnitOutcome::Failed(_, compiled) => compiled == ending,
                    UnitOutcome::Stopped(_) => false,
                };
                if !same {
                    return context(format!("{name} ends with {ending:?}, compiled {outcome:?}"));
                }
                if let Some(difference) = difference(program, &state, &packet) {
                    return context(format!("after {name}: {difference}"));
                }
                if matches!(ending, Ending::AssertFailed(_) | Ending::OutOfFuel(_) | Ending::Pending(_)) {
                    break;
                }
                let last = unit + 1 == bodies.len();
                if last && state.finish() != packet.finish() {
                    return context(format!("sends {:02x?}, compiled {:02x?}", state.finish(), packet.finish()));
                }
            }
        }
    }
    let (interpreted, compiled) = (format!("{one:?}"), format!("{other:?}"));
    if interpreted != compiled {
        let at = interpreted.bytes().zip(compiled.bytes()).position(|(a, b)| a != b).unwrap_or(0);
        let from = at.saturating_sub(200);
        let around = |text: &str| text.get(from..(at + 200).min(text.len())).unwrap_or_default().to_owned();
        return Some(format!("objects: {}\ncompiled: {}", around(&interpreted), around(&compiled)));
    }
    None
}

/// Runs packets through the interpreter and, in batches, through machine code, in memory that ends where the packet
/// does or begins where its buffer does. Returns the first difference.
pub fn run_batches(
    program: &Arc<Program>,
    seed: u64,
    packets: usize,
    make: &mut dyn FnMut(&mut RandomValues) -> Vec<u8>,
) -> Option<String> {
    let bodies = roles(program);
    let mut rng = RandomValues::new(seed ^ 0xba7c4);
    let mut plan = plan(&bodies, true);
    // Some slots are set before the unit, and some are read after it. One slot can drop the packet early.
    let slots: Vec<ir::SlotId> = program.slots.keys().collect();
    let some = |rng: &mut RandomValues| -> Vec<ir::SlotId> {
        let all = slots.iter().copied();
        all.filter(|slot| program.slots[*slot].width <= 64 && rng.below(4) == 0).collect()
    };
    plan.given = some(&mut rng);
    let results: Vec<ir::SlotId> = some(&mut rng).into_iter().take(jit::RESULTS).collect();
    plan.units[0].results = Some(results.clone());
    let length = some(&mut rng).first().copied();
    plan.units[0].steps.splice(0..0, length.map(Step::LengthTo));
    let drop = some(&mut rng).first().map(|slot| (*slot, rng.below(3)));
    plan.units[0].steps.extend(drop.map(|(slot, value)| Step::DropIf(slot, value)));
    jit::verify_code();
    let mut compiled = match NativeProgram::new(program, &plan, Speed::Run) {
        Ok(compiled) => compiled,
        Err(unsupported) => return Some(unsupported.to_string()),
    };
    let (mut one, mut other) = (Objects::new(program), Objects::new(program));
    fill(program, &mut one, seed);
    fill(program, &mut other, seed);
    let mut memory: Vec<guard::Guarded> = (0..50).map(|_| guard::Guarded::new(64 << 10)).collect();
    let mut state = PacketState::new(program, Vec::new());
    let mut packet = compiled.packet(Vec::new());
    let mut done = 0;
    while done < packets {
        let now = Now { ns: done as u64 * 100_000_000 };
        // All, some or hardly any tables are looked up inline.
        compiled = compiled.with_near_bytes([0, 600, 5000, usize::MAX][rng.below(4) as usize]);
        let count = 1 + rng.below(memory.len() as u64) as usize;
        let room = rng.below(3) as usize * 20;
        let values: Vec<Bits> = plan.given.iter().map(|slot| rng.bits(program.slots[*slot].width)).collect();
        let given: Vec<(ir::SlotId, u64)> = plan.given.iter().copied().zip(values.iter().map(Bits::low_u64)).collect();
        let mut expected = Vec::new();
        let mut buffers = Vec::new();
        for memory in &mut memory[..count] {
            let data = make(&mut rng);
            state.reset(program, data.clone());
            for (slot, value) in plan.given.iter().zip(&values) {
                state.set_slot(*slot, value.clone());
            }
            if let Some(slot) = length {
                state.set_slot_to(slot, data.len() as u64);
            }
            let mut ending = Ending::Return;
            for body in &bodies {
                ending = Interpreter::run(program, &mut one, *body, &mut state, now, &mut ());
                if matches!(ending, Ending::AssertFailed(_) | Ending::OutOfFuel(_) | Ending::Pending(_)) {
                    break;
                }
            }
            let failed = matches!(ending, Ending::AssertFailed(_) | Ending::OutOfFuel(_) | Ending::Pending(_));
            let cut = |slot: ir::SlotId, value: u64| Bits::new(u128::from(value), program.slots[slot].width);
            let dropped = !failed && drop.is_some_and(|(slot, value)| *state.slot(slot) == cut(slot, value));
            let results: Vec<u64> = results.iter().map(|slot| state.slot(*slot).low_u64()).collect();
            let buffer = memory.place(room + data.len(), rng.below(4) > 0);
            buffer[..room].fill(0xee);
            buffer[room..].copy_from_slice(&data);
            buffers.push(buffer);
            let ends = (ending, dropped, state.parser_error(), results);
            expected.push((data, ends, state.finish(), state.requests().to_vec()));
        }
        let mut difference = None;
        let mut seen = Vec::new();
        let mut later: BTreeMap<usize, Vec<(Requested, LocId)>> = BTreeMap::new();
        let mut first = 0;
        for buffers in buffers.chunks_mut(jit::BATCH) {
            let (mut batch, count) = (compiled.batch(0, &mut packet), buffers.len());
            given.iter().for_each(|(slot, value)| batch.set_slot_to(*slot, *value));
            // Adding packets one by one or together must be equivalent.
            let (some, others) = buffers.split_at_mut(rng.below(count as u64) as usize);
            for buffer in some {
                batch.push(buffer, room);
            }
            batch.extend(others.iter_mut().map(|buffer| (&mut **buffer, room)));
            let ends = |batch: &jit::Batch<'_>, number: usize| {
                let ended = batch.finished(number);
                let results = (0..results.len()).map(|at| ended.result(at)).collect::<Vec<_>>();
                ((ended.outcome(), ended.parser_error(), results), ended.output_start())
            };
            let mut next = 0;
            while next < count {
                let jit::Progress { done, stopped } = batch.run(&mut other, now);
                next = done.end + usize::from(stopped);
                for number in done.clone() {
                    let [special, shared] = FINISHED.get();
                    let is_special = batch.finished(number).is_special();
                    FINISHED.set([special + usize::from(is_special), shared + usize::from(!is_special)]);
                    let (ends, start) = ends(&batch, number);
                    let leaves = matches!(ends.0, UnitOutcome::Done(_));
                    assert_eq!(leaves, start.is_some(), "packet {number} leaves from where it lies, or is dropped");
                    seen.push((first + number, ends, start, batch.output_copy(number), Vec::new()));
                }
                let mut deferred = Vec::new();
                batch.take_deferred(&mut deferred);
                for deferred in deferred {
                    let all = later.entry(first + deferred.packet).or_default();
                    all.push((deferred.request, deferred.loc));
                }
                if stopped {
                    let (ends, start) = ends(&batch, done.end);
                    let mut whole = batch.stopped();
                    let replaced = start.is_none().then(|| whole.output_copy());
                    seen.push((first + done.end, ends, start, replaced, whole.take_requests()));
                }
            }
            first += count;
        }
        for (place, (number, (outcome, error, results), start, replaced, requests)) in seen.into_iter().enumerate() {
            let (data, (ending, dropped, expected_error, expected_results), finished, asked) = &expected[number];
            let whole = match (start, replaced) {
                (Some(start), copy) => {
                    let there = buffers[number][start..].to_vec();
                    assert!(copy.is_none_or(|copy| copy == there), "the copy of packet {number} is another");
                    there
                }
                (None, replaced) => replaced.unwrap_or_default(),
            };
            let (same, sends) = match outcome {
                UnitOutcome::Done(compiled) => (compiled == *ending && !dropped, true),
                UnitOutcome::Failed(_, compiled) => (compiled == *ending, false),
                UnitOutcome::Stopped(_) => (*dropped, false),
            };
            // Digests and truncations do not stop a batch, so they are kept apart from other requests.
            let is_deferred =
                |(request, _): &(Requested, LocId)| matches!(request, Requested::Digest(..) | Requested::Truncate(_));
            let asked: (Vec<_>, Vec<_>) = asked.iter().cloned().partition(is_deferred);
            let requests = (later.remove(&number).unwrap_or_default(), requests);
            let what = if place != number {
                format!("packet {number} came as number {place}")
            } else if !same {
                format!("ends with {ending:?}, compiled {outcome:?}")
            } else if sends && whole != *finished {
                format!("sends {finished:02x?}, compiled {whole:02x?}")
            } else if requests != asked {
                format!("requests {asked:?}, compiled {requests:?}")
            } else if (error, &results) != (*expected_error, expected_results) {
                format!("results are {expected_error}, {expected_results:?}, compiled {error}, {results:?}")
            } else {
                continue;
            };
            difference =
                difference.or_else(|| Some(format!("in a batch: packet {} {data:02x?}: {what}", done + number)));
        }
        if difference.is_some() {
            return difference;
        }
        done += count;
        let (one_dice, other_dice) = (&mut rng.clone(), &mut rng);
        set_defaults(program, &mut one, one_dice);
        set_defaults(program, &mut other, other_dice);
        // Tables with more entries may have moved.
        fill(program, &mut one, seed ^ done as u64);
        fill(program, &mut other, seed ^ done as u64);
    }
    (format!("{one:?}") != format!("{other:?}")).then(|| "in batches: objects differ".to_owned())
}
