//! Rules about messages before: the generated program's registers, interpreted and as machine code, hold what the language
//! says of the same sequence of messages.

mod switch;

use dice::Dice;
use subscribe::{Delivery, Layout, Memory, Message, Options, Subscriptions};
use subscribe_p4::entries::Installer;
use v1model::Executor;

use switch::{Made, Switch};

const METER: &str = include_str!("../../testdata/meter.p4");
const PORTS: u32 = 4;

fn one(dice: &mut Dice, list: &[&'static str]) -> &'static str {
    list[dice.below(list.len() as u64) as usize]
}

/// A test of what messages before left. Of some aggregates there are few slots, so that rules have few conditions beside.
fn remembered(dice: &mut Dice) -> String {
    let compare = one(dice, &["<", "<=", ">", ">=", "==", "!="]);
    let subject = match dice.below(9) {
        0 | 1 => format!("avg(value) by site {compare} {}", dice.below(12)),
        2 => format!("count() by site, unit {compare} {}", dice.below(5)),
        3 => format!("sum(large) {compare} {}", if dice.percent(20) { u64::MAX } else { dice.below(40) }),
        4 => format!("min(value) by unit {compare} {}", dice.below(12)),
        5 => format!("max(weight) {compare} {}", dice.below(12)),
        6 => format!("count() {compare} {}", dice.below(6)),
        _ => format!("{} {compare} {}", one(dice, &["total", "lately", "few"]), dice.below(16)),
    };
    if dice.percent(15) { format!("not ({subject})") } else { subject }
}

fn plain(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => format!("site == {}", dice.below(4)),
        1 => format!("value {} {}", one(dice, &["<", ">="]), dice.below(12)),
        2 => format!("unit {} \"{}\"", one(dice, &["==", "!="]), one(dice, &["A", "B"])),
        _ => "valid(extra)".to_owned(),
    }
}

fn rule(dice: &mut Dice) -> String {
    let word = |dice: &mut Dice| one(dice, &["and", "and", "or"]);
    let condition = match dice.below(6) {
        0 => plain(dice),
        1 => format!("{} {} {}", remembered(dice), word(dice), remembered(dice)),
        2 => format!("site == {} and {}", dice.below(4), remembered(dice)),
        3 => format!("unit == \"{}\" and {}", one(dice, &["A", "B"]), remembered(dice)),
        4 => format!("{} {} {}", plain(dice), word(dice), remembered(dice)),
        _ => remembered(dice),
    };
    let operand = match dice.below(4) {
        0 => one(dice, &["value", "large", "unit", "weight"]).to_owned(),
        _ => dice.below(9).to_string(),
    };
    let counter = one(dice, &["total", "lately", "few"]);
    let action = match dice.below(9) {
        0 => format!("{counter} += {operand}"),
        1 => format!("{counter} -= {operand}; fwd({})", dice.below(4)),
        2 => format!("{counter} <- {operand}"),
        3 => format!("{counter} <- {}({counter}, {operand}); fwd(0, 1)", one(dice, &["min", "max"])),
        _ => format!("fwd({})", dice.below(4)),
    };
    format!("{condition} : {action}")
}

/// A message and its bytes. Values are small, and at times the largest.
fn message(dice: &mut Dice, made: &Made) -> (Message, Vec<u8>) {
    let format = &made.rules.format;
    let mut message = Message::empty(format);
    let mut bytes = vec![dice.below(2) as u8];
    let mut field = |name: &str, width: u32, value: u128| {
        let Ok(subscribe::Subject::Field(id)) = format.subject(name) else { panic!("there is no field {name}") };
        message.set(format, id, value);
        bytes.extend(&value.to_be_bytes()[16 - width as usize / 8..]);
    };
    field("site", 16, dice.below(5).into());
    field("value", 32, if dice.percent(5) { u32::MAX.into() } else { dice.below(12).into() });
    field("large", 72, if dice.percent(5) { subscribe::max_of(72) } else { dice.below(20).into() });
    if bytes[0] == 1 {
        let mut field = |name: &str, value: u8| {
            let Ok(subscribe::Subject::Field(id)) = format.subject(name) else { panic!("there is no field {name}") };
            message.set(format, id, value.into());
            bytes.push(value);
        };
        field("unit", b"ABC"[dice.below(3) as usize]);
        field("weight", dice.below(12) as u8);
    }
    (message, bytes)
}

/// Rules that fit, of several tried, and their tables.
fn rules(dice: &mut Dice, made: &Made) -> (Vec<String>, Subscriptions, Memory) {
    let format = &made.rules.format;
    let options = Options { target: subscribe_p4::Options::default().target, ..Options::default() };
    let mut all = Subscriptions::new(format.clone(), Layout::sensible(format, &[]), options);
    let mut memory = Memory::new(format);
    let mut kept = Vec::new();
    for _ in 0..12 {
        let text = rule(dice);
        if let Ok(applied) = all.change(&[], made.parse(&text)) {
            memory.assign(&applied.slots);
            kept.push(text);
        }
    }
    (kept, all, memory)
}

/// What a message's delivery is at the ports.
fn ports(delivery: &Delivery) -> Vec<u32> {
    delivery.ports.clone()
}

#[test]
fn sequences_of_messages_leave_the_program_and_the_language_with_the_same_state() {
    let made = Made::new(METER, PORTS);
    let format = &made.rules.format;
    let (mut stateful, mut used, mut refused) = (0, vec![0usize; usize::from(format.slots)], 0);
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let (text, all, memory) = rules(&mut dice, &made);
        refused += 12 - text.len();
        all.slots().iter().for_each(|slot| used[usize::from(slot.slot)] += 1);
        let tables = all.tables();
        for executor in [Executor::Interpreter, Executor::Jit] {
            let mut switch = Switch::new(&made, executor);
            let mut installer = Installer::new(&made.format, &made.rules, all.layout(), &made.options, 510);
            installer.install(&tables).expect("few groups").iter().for_each(|update| switch.apply(update));
            let (mut dice, mut memory) = (Dice::new(1000 + seed), memory.clone());
            let mut micros = 0;
            for step in 0..150 {
                micros += dice.pick(&[(6, 1), (3, 7), (1, 45), (1, 200)]);
                let (mut message, bytes) = message(&mut dice, &made);
                memory.fill(format, &mut message, micros);
                let expected = all.evaluate(&message);
                let got = switch.message(micros, bytes);
                assert_eq!(
                    got,
                    ports(&expected),
                    "seed {seed}, {executor:?}, message {step} at {micros} us: {message:?}\n{}",
                    text.join("\n")
                );
                memory.update(format, &message, &expected, micros);
                stateful += usize::from(message.slots.iter().chain(&message.counters).any(|value| *value > 0));
            }
            for (at, counter) in format.counters().iter().enumerate() {
                let mut last = Message::empty(format);
                memory.fill(format, &mut last, micros);
                let kept = switch.register(&format!("kept_{}_value", counter.name), 0);
                let is_over = last.counters[at] == 0 && counter.window.is_some();
                assert!(is_over || kept == last.counters[at], "seed {seed}: {} is {kept}", counter.name);
            }
        }
    }
    assert!(stateful > 5000, "{stateful} messages saw what others left");
    assert!(used.iter().all(|uses| *uses > 3), "every slot was used: {used:?}");
    assert!(refused > 0 && refused < 300, "{refused} rules needed more than there is");
}
