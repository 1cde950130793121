//! Cost of the whole switch per packet in memory: `examples/router`, batches of 32, in place and by `step`.
//!
//! `cargo bench -p v1model --bench in_place`. The best round counts: the benchmark is for finding hot spots. The cost
//! of tiny packet programs and INT is the median of the ratios within a round; `-- telemetry` measures nothing else.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bits::Bits;
use compiler::Source;
use engine::TableEntry;
use ir::KeyValue;
use switch::{Device, Egress, Frame, HeadroomBuf, PortId, Time};
use v1model::{Config, IntSettings, Switch, TinySettings, V1Model};
use wire::int::Marker;

const ROUNDS: usize = 40;
const BATCHES: usize = 2000;

/// Rounds of the ratios, and batches of a switch in each.
const TURNS: usize = 2001;
const BATCHES_A_TURN: usize = 40;

fn main() {
    telemetry();
    if std::env::args().all(|argument| argument != "telemetry") {
        hot_spots();
    }
}

/// Compares a switch that executes tiny packet programs or adds INT with itself when it does neither. No packet has
/// either. One switch takes turns, as another one would have other places in the caches.
fn telemetry() {
    let (udp, dscp) = (Some(Marker::default()), Some(Marker::Dscp(0x17)));
    let settings = [
        ("neither", false, None),
        ("neither, again", false, None),
        ("tiny programs", true, None),
        ("INT, UDP port", false, udp),
        ("INT, DSCP", false, dscp),
        ("tiny programs, INT, UDP port", true, udp),
    ];
    let mut switch = router();
    let fresh: Vec<HeadroomBuf> = (0..32).map(|number| HeadroomBuf::new(&packet(number), 128)).collect();
    let (mut batch, mut departed): (_, Vec<Egress>) = (fresh.clone(), Vec::new());
    let mut run = |switch: &mut Switch, batches| {
        time(batches, |now| {
            batch.clone_from_slice(&fresh);
            switch.step_in_place(now, PortId(1), &mut batch, &mut departed);
            assert_eq!(black_box(&departed).len(), 32);
            departed.clear();
        })
    };
    let mut renewed = fresh.clone();
    let mut times = [const { Vec::new() }; 6];
    let mut ratios = times.clone();
    for turn in 0..TURNS {
        let renewing = time(BATCHES_A_TURN, |_| renewed.clone_from_slice(black_box(&fresh)));
        for number in 0..settings.len() {
            let number = (number + turn) % settings.len();
            let (_, programs, marker) = settings[number];
            switch.set_tiny_programs(programs.then(|| TinySettings::new(1, false)));
            switch.set_int(marker.map(|marker| IntSettings::new(1, marker)));
            run(&mut switch, BATCHES_A_TURN / 4);
            times[number].push(run(&mut switch, BATCHES_A_TURN) - renewing);
        }
        (0..settings.len()).for_each(|number| ratios[number].push(times[number][turn] / times[0][turn]));
    }
    for (((name, ..), times), ratios) in settings.iter().zip(&mut times).zip(&mut ratios) {
        times.sort_by(f64::total_cmp);
        ratios.sort_by(f64::total_cmp);
        let [low, median, high] = [1, 2, 3].map(|quarter| ratios[quarter * TURNS / 4]);
        println!("{name:30} {:6.1} ns, ratio {median:.3} ({low:.3} to {high:.3})", times[TURNS / 2]);
    }
}

fn hot_spots() {
    let mut switch = router();
    let traffic: Vec<Vec<u8>> = (0..32).map(packet).collect();
    let mut batch: Vec<HeadroomBuf> = traffic.iter().map(|data| HeadroomBuf::new(data, 128)).collect();
    let fresh = batch.clone();
    let mut departed: Vec<Egress> = Vec::new();
    let mut best = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        let times = [
            time(BATCHES, |now| {
                batch.clone_from_slice(&fresh);
                switch.step_in_place(now, PortId(1), &mut batch, &mut departed);
                assert_eq!(black_box(&departed).len(), 32);
                departed.clear();
            }),
            time(BATCHES, |_| batch.clone_from_slice(black_box(&fresh))),
            time(BATCHES, |now| {
                if std::env::args().any(|argument| argument == "only-in-place") {
                    return;
                }
                let mut input = traffic.iter().map(|data| Frame::new(1, data.clone())).collect();
                let mut output = Vec::new();
                switch.step(now, &mut input, &mut output);
                assert_eq!(black_box(output).len(), 32);
            }),
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    let [in_place, renewing, handed] = best;
    println!("a packet: {:.1} ns in place, {handed:.1} ns handed over", in_place - renewing);
}

/// Returns nanoseconds per packet of a batch.
fn time(batches: usize, mut work: impl FnMut(Time)) -> f64 {
    let begin = Instant::now();
    for at in 0..batches {
        work(Time::from_us(at as u64));
    }
    begin.elapsed().as_nanos() as f64 / (32 * batches) as f64
}

fn packet(number: u8) -> Vec<u8> {
    let mut data = vec![2, 0, 0, 0, 1, 0xfe, 2, 0, 0, 0, 1, 1, 8, 0];
    data.extend([0x45, 0, 0, 46, 0xff - number, 0xff, 0, 0, 64, 17, 0, 0, 10, 0, 1, 1, 10, 2, number, 0]);
    let sum: u32 = data[14..].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    data[24..26].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    data.resize(60, 0x5a);
    data
}

fn router() -> Switch {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/router/router.p4");
    let text = std::fs::read_to_string(path).expect("the router can be read");
    let program = compiler::expect_program(&Source::new("router.p4", &text), &V1Model).ir;
    let mut switch = Switch::new(Arc::new(program), Config::with_ports(3)).expect("it is a v1model program");
    let program = switch.program().clone();
    let mut insert = |table: &str, key: KeyValue, args: Vec<Bits>| {
        let id = program.table_named(table).expect("the router has its tables");
        let action = program.tables[id].actions[0].action;
        switch.objects_mut().insert(id, TableEntry::new(vec![key], 0, action, args)).expect("the entry fits");
    };
    for net in 0..256u128 {
        let key = KeyValue::Lpm(Bits::new(0x0a02_0000 | net << 8, 32), 24);
        insert("RouterIngress.ipv4_lpm", key, vec![Bits::new(0x0200_0000_0202, 48), Bits::new(2, 9)]);
    }
    for port in 1..3 {
        let mac = Bits::new(0x0200_0000_00fe | port << 8, 48);
        insert("RouterEgress.port_mac", KeyValue::Exact(Bits::new(port, 9)), vec![mac]);
    }
    switch
}
