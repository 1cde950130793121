//! Rules with state: the registers of the generated program, interpreted and as machine code, agree with the reference
//! semantics on the same sequence of messages.

mod batch;
mod copies;
mod keys;
mod linked;
mod switch;
mod workers;

use rng::SplitMix64;
use subscribe::{ColumnLayout, CompileOptions, Memory, Message, Subscriptions};
use subscribe_p4::entries::Installer;
use v1model::Executor;

use switch::{Made, TestSwitch};

const METER: &str = include_str!("../../../testdata/meter.p4");
const PORTS: u32 = 4;
const BOTH: [Executor; 2] = [Executor::Interpreter, Executor::Jit];

fn one(rng: &mut SplitMix64, list: &[&'static str]) -> &'static str {
    list[rng.below(list.len() as u64) as usize]
}

/// Returns a test of state. Some aggregates have few slots, so that their rules use few other conditions.
fn remembered(rng: &mut SplitMix64) -> String {
    let compare = one(rng, &["<", "<=", ">", ">=", "==", "!="]);
    let subject = match rng.below(18) {
        0 | 15 | 16 => format!("avg(value) by site over 60us {compare} {}", rng.below(12)),
        1 => format!("avg(value) by site over previous 60us {compare} {}", rng.below(12)),
        9 => format!("min(weight) over previous 3 packets {compare} {}", rng.below(12)),
        10 => format!("sum(value) over previous 25us {compare} {}", rng.below(20)),
        11 => format!("ewma(value) by site {compare} {}", rng.below(12)),
        12 => {
            format!("ewma(large) over 2 packets {compare} {}", if rng.percent(10) { u64::MAX } else { rng.below(20) })
        }
        13 => format!("avg(weight) over all {compare} {}", rng.below(12)),
        14 => format!("{}(value) by unit over all {compare} {}", one(rng, &["min", "max"]), rng.below(12)),
        2 => format!("count() by site, unit {compare} {}", rng.below(5)),
        3 => format!("sum(large) {compare} {}", if rng.percent(20) { u64::MAX } else { rng.below(40) }),
        4 => format!("min(value) by unit over 50us {compare} {}", rng.below(12)),
        5 => format!("max(weight) {compare} {}", rng.below(12)),
        6 => format!("count() {compare} {}", rng.below(6)),
        _ => format!("{} {compare} {}", one(rng, &["total", "lately", "few"]), rng.below(16)),
    };
    if rng.percent(15) { format!("not ({subject})") } else { subject }
}

fn plain(rng: &mut SplitMix64) -> String {
    match rng.below(4) {
        0 => format!("site == {}", rng.below(4)),
        1 => format!("value {} {}", one(rng, &["<", ">="]), rng.below(12)),
        2 => format!("unit {} \"{}\"", one(rng, &["==", "!="]), one(rng, &["A", "B"])),
        _ => "valid(extra)".to_owned(),
    }
}

const COUNTERS: [&str; 3] = ["total", "lately", "few"];

/// Returns a term of an update: a field, a number or one of these counters.
fn term(rng: &mut SplitMix64, counters: &[&'static str]) -> String {
    match rng.below(4) {
        0 | 1 => one(rng, &["value", "large", "unit", "weight"]).to_owned(),
        2 => one(rng, counters).to_owned(),
        _ => rng.below(9).to_string(),
    }
}

fn rule(rng: &mut SplitMix64) -> String {
    let word = |rng: &mut SplitMix64| one(rng, &["and", "and", "or"]);
    let condition = match rng.below(6) {
        0 => plain(rng),
        1 => format!("{} {} {}", remembered(rng), word(rng), remembered(rng)),
        2 => format!("site == {} and {}", rng.below(4), remembered(rng)),
        3 => format!("unit == \"{}\" and {}", one(rng, &["A", "B"]), remembered(rng)),
        4 => format!("{} {} {}", plain(rng), word(rng), remembered(rng)),
        _ => remembered(rng),
    };
    let counter = one(rng, &COUNTERS);
    // `total <- total` alone is no update.
    let others: Vec<&'static str> = COUNTERS.into_iter().filter(|other| *other != counter).collect();
    let operand = match rng.below(4) {
        0 => format!("{} * {}", term(rng, &COUNTERS), term(rng, &COUNTERS)),
        1 => format!("{} - {}", term(rng, &others), term(rng, &COUNTERS)),
        _ => term(rng, &others),
    };
    let action = match rng.below(10) {
        0 => format!("{counter} += {operand}"),
        1 => format!("{counter} -= {operand}; fwd({})", rng.below(4)),
        2 => format!("{counter} <- {operand}"),
        3 | 4 => format!("{counter} <- {}({counter}, {operand}); fwd(0, 1)", one(rng, &["min", "max"])),
        _ => format!("fwd({})", rng.below(4)),
    };
    format!("{condition} : {action}")
}

/// Returns a message and its bytes. Values are small, and sometimes the largest.
fn message(rng: &mut SplitMix64, made: &Made) -> (Message, Vec<u8>) {
    let format = &made.rules.format;
    let mut message = Message::empty(format);
    let extra = rng.below(2) == 1;
    let mut bytes = vec![u8::from(extra)];
    let mut field = |name: &str, width: u32, value: u128| {
        let Ok(subscribe::Subject::Field(id)) = format.subject(name) else { panic!("there is no field {name}") };
        message.set(format, id, value);
        bytes.extend(&value.to_be_bytes()[16 - width as usize / 8..]);
    };
    field("site", 16, rng.below(5).into());
    field("value", 32, if rng.percent(5) { u32::MAX.into() } else { rng.below(12).into() });
    field("large", 72, if rng.percent(12) { subscribe::max_of(72) } else { rng.below(20).into() });
    if extra {
        field("unit", 8, b"ABC"[rng.below(3) as usize].into());
        field("weight", 8, rng.below(12).into());
    }
    (message, bytes)
}

/// Formats the tables of rules as text.
fn compiled(made: &Made, rules: &str) -> Subscriptions {
    let format = &made.rules.format;
    let options = CompileOptions { target: made.options.target, ..CompileOptions::default() };
    let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(format, &[]), options);
    all.change(&[], made.parse(rules)).expect("it fits");
    all
}

/// Returns rules that fit, out of several attempts, and their tables.
fn rules(
    rng: &mut SplitMix64,
    made: &Made,
    rule: fn(&mut SplitMix64) -> String,
) -> (Vec<String>, Subscriptions, Memory) {
    let format = &made.rules.format;
    let options =
        CompileOptions { target: subscribe_p4::ProgramOptions::default().target, ..CompileOptions::default() };
    let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(format, &[]), options);
    let mut memory = Memory::new(format);
    let mut kept = Vec::new();
    for _ in 0..12 {
        let text = rule(rng);
        if let Ok(applied) = all.change(&[], made.parse(&text)) {
            memory.assign(&applied.slots);
            kept.push(text);
        }
    }
    (kept, all, memory)
}

/// Statistics of the comparison.
#[derive(Default)]
struct Tally {
    /// Number of messages that read state left by others.
    stateful: usize,
    /// By slot, the number of rule sets that used it.
    used: Vec<usize>,
    /// Number of rules that exceeded the available state.
    refused: usize,
}

/// Sends a random message to the switch and to the reference semantics, which have the same state. Returns the message
/// with the state that its tests read, or the difference of the destinations.
fn send(
    rng: &mut SplitMix64,
    made: &Made,
    (all, memory): (&Subscriptions, &mut Memory),
    switch: &mut TestSwitch,
    micros: u64,
) -> Result<Message, String> {
    let format = &made.rules.format;
    let (mut message, bytes) = message(rng, made);
    memory.fill(format, &mut message, micros);
    let expected = all.evaluate(&message);
    let got = switch.message(micros, bytes);
    if got != expected.ports {
        return Err(format!("to {got:?}, not {:?}: {message:?}", expected.ports));
    }
    memory.update(format, &message, &expected, micros);
    Ok(message)
}

/// Sends sequences of messages to a program and compares each destination with the reference semantics. Returns the
/// first discrepancy.
fn compare(made: &Made, executors: &[Executor], seeds: std::ops::Range<u64>) -> Result<Tally, String> {
    let format = &made.rules.format;
    let mut tally = Tally { used: vec![0; usize::from(format.slots)], ..Tally::default() };
    for seed in seeds {
        let mut rng = SplitMix64::new(seed);
        let (text, all, memory) = rules(&mut rng, made, rule);
        tally.refused += 12 - text.len();
        all.slots().iter().for_each(|slot| tally.used[usize::from(slot.slot)] += 1);
        let tables = all.tables();
        for executor in executors.iter().copied() {
            let mut switch = TestSwitch::new(made, executor);
            let mut installer = Installer::new(&made.format, &made.rules, all.layout(), &made.options, 510);
            installer.install(&tables).expect("few groups").iter().for_each(|update| switch.apply(update));
            let (mut rng, mut memory) = (SplitMix64::new(1000 + seed), memory.clone());
            // The program's 48-bit clock wraps around in the middle of some sequences.
            let mut micros = if seed % 3 == 0 { (1 << 48) - 1_000 } else { 0 };
            for step in 0..150 {
                micros += rng.pick(&[(3, 5), (3, 10), (2, 1), (1, 45), (1, 200)]);
                let sent = send(&mut rng, made, (&all, &mut memory), &mut switch, micros);
                let message = sent.map_err(|difference| {
                    format!(
                        "seed {seed}, {executor:?}, message {step} at {micros} us: {difference}\n{}",
                        text.join("\n")
                    )
                })?;
                let mut values = message.slots.iter().flatten().chain(&message.counters);
                tally.stateful += usize::from(values.any(|value| *value > 0));
            }
        }
    }
    Ok(tally)
}

#[test]
fn sequences_of_messages_leave_the_program_and_the_language_with_the_same_state() {
    let made = Made::new(METER, PORTS, None, |program| program);
    let tally = compare(&made, &BOTH, 0..40).unwrap_or_else(|difference| panic!("{difference}"));
    let Tally { stateful, used, refused } = tally;
    assert!(stateful > 5000, "{stateful} messages saw what others left");
    assert!(used.iter().all(|uses| *uses > 3), "every slot was used: {used:?}");
    assert!(refused > 0 && refused < 300, "{refused} rules needed more than there is");
}

#[test]
fn codes_take_the_place_of_values() {
    let coded = METER.replace("@query_field(\"value\")", "@query_codes(5) @query_field(\"value\")");
    let coded = coded.replace("@query_field(\"large\")", "@query_codes(6) @query_field(\"large\")");
    let made = Made::new(&coded, PORTS, None, |program| {
        assert!(program.contains("large_codes.apply();"), "{program}");
        program
    });
    let tally = compare(&made, &BOTH, 200..220).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(tally.stateful > 1000);
    // A program that never looks a code up.
    let never = "if (value_code == 1) { value_codes.apply(); }";
    let made = Made::new(&coded, PORTS, None, |program| program.replace("value_codes.apply();", never));
    assert!(compare(&made, &[Executor::Interpreter], 200..220).is_err());
}

/// Possible bugs of a program, as text replacements.
const MISTAKES: [(&str, &str); 28] = [
    // Arithmetic without saturation.
    ("slot_3_amount |+|", "slot_3_amount +"),
    ("total_value |-| operand", "total_value - operand"),
    // Windows that end too late or too early.
    ("slot_0_end - meta.subscription.now - 1", "slot_0_end - meta.subscription.now"),
    // Clocks without wrap-around, and windows that were never opened.
    (
        "slot_0_end == 0 || slot_0_end - meta.subscription.now - 1 >= 1099511627836",
        "meta.subscription.now >= slot_0_end",
    ),
    ("slot_3_end == 0 || ", ""),
    ("slot_2_count >= 4", "slot_2_count >= 5"),
    ("few_count >= 3", "few_count >= 4"),
    ("lately_end = meta.subscription.now + 40", "lately_end = meta.subscription.now + 35"),
    // A minimum that begins with 0; averages and a maximum over no messages that are 0.
    ("slot_5_amount = 0xffffffffffffffff", "slot_5_amount = 0"),
    ("slot_0_value = 0x100000000;", "slot_0_value = 0;"),
    ("slot_6_value = 0x100;", "slot_6_value = 0;"),
    ("slot_11_value = 0x10000000000000000;", "slot_11_value = 0;"),
    // Last complete windows that are not kept, or not after others of their key.
    ("slot_8_previous_amount = slot_8_amount;", ""),
    ("slot_9_previous_count = slot_9_count;", "slot_9_previous_count = 1;"),
    ("slot_9_kept_previous_amount.write(cell_7, slot_9_previous_amount);", ""),
    // Moving averages that start at 0, fall too fast, or are rounded down; values that end.
    ("slot_11_amount = slot_11_given;", "slot_11_amount = 0;"),
    ("(slot_10_amount - slot_10_given) >> 2", "(slot_10_amount - slot_10_given) >> 1"),
    ("(slot_11_amount + 0x2) >> 2", "slot_11_amount >> 2"),
    ("if (slot_12_count == 0)", "if (slot_12_count == 0 || slot_12_count >= 9)"),
    // Cells that do not store their key, or are not found again.
    ("slot_0_kept_of_site.write(cell_0, site_value);", ""),
    (
        "action to_place_0(bit<32> index) { cell_0 = index; }",
        "action to_place_0(bit<32> index) { cell_0 = index + 8; }",
    ),
    // Messages counted for another slot.
    ("counted[1:1] == 1", "counted[0:0] == 1"),
    // A division that omits the last bit, and one that rounds up.
    ("quotient + 64w0x1 : quotient", "quotient : quotient"),
    ("(dividend >> 0) >= divisor", "(dividend >> 0) + 1 >= divisor"),
    // Maximum instead of minimum; a field of an invalid header.
    ("operand < few_value", "operand > few_value"),
    (
        "updates = function & (extra_valid ++ extra_valid ++ extra_valid ++ extra_valid)",
        "updates = function & (reading_valid ++ reading_valid ++ reading_valid ++ reading_valid)",
    ),
    (
        "updates = updates & (extra_valid ++ extra_valid ++ extra_valid ++ extra_valid)",
        "updates = updates & (reading_valid ++ reading_valid ++ reading_valid ++ reading_valid)",
    ),
    // A difference without saturation.
    ("operand = operand |-| number;", "operand = operand - number;"),
];

#[test]
fn mistakes_in_a_program_are_found() {
    let mut missed = Vec::new();
    for (right, wrong) in MISTAKES {
        let made = Made::new(METER, PORTS, None, |program| {
            assert!(program.contains(right), "the program has no `{right}`");
            program.replace(right, wrong)
        });
        if compare(&made, &[Executor::Interpreter], 0..500).is_ok() {
            missed.push(wrong);
        }
    }
    assert!(missed.is_empty(), "these mistakes were not found: {missed:#?}");
}
