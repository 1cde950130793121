//! Tests that machine code that uses rows of resilient arrays inline agrees with the interpreter.

use std::path::PathBuf;
use std::sync::Arc;

use compiler::Source;
use engine::{RowState, StateRow};
use rng::SplitMix64;
use switch::{Frame, MulticastGroup, Notification, Replica, RowSwitch};
use v1model::{Config, Switch, V1Model};

use crate::rows::{WAYS, Way, step};

/// Groups in the order of the program, and their numbers of rows.
const SKETCH: u32 = 2;
const ROWS: [u64; 4] = [16, 16, 4, 16];

/// Whether egress uses rows. If it does, packets that write them leave their batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EgressRows {
    Used,
    /// It uses another row than ingress.
    Other,
    Unused,
}

fn switch(way: Way, egress: EgressRows) -> Switch {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/inline_rows.p4");
    let mut text = std::fs::read_to_string(path).expect("the program can be read");
    let (read, own) = ("left.read(value, (bit<32>) hdr.h.row);", "hdr.h.ways[13:13] == 1 && hdr.h.ways[0:0] == 1");
    assert!(text.contains(read) && text.contains(own), "the program is another");
    match egress {
        EgressRows::Used => {}
        EgressRows::Unused => text = text.replace(read, "value = 1;"),
        EgressRows::Other => {
            text = text.replace(own, "true").replace(read, "left.read(value, (bit<32>) hdr.h.row ^ 1);");
        }
    }
    let program = Arc::new(compiler::expect_program(&Source::new("inline_rows.p4", &text), &V1Model).ir);
    let config = Config { executor: way.executor, ..Config::with_ports(5) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    let replicas = [(1, 1), (3, 2)].map(|(port, rid)| Replica::new(port, rid));
    switch.set_multicast_group(1, Some(MulticastGroup { replicas: replicas.to_vec() }));
    switch
}

/// Returns a frame that causes each action with this probability, in percent.
fn frame(rng: &mut SplitMix64, percent: u64) -> Frame {
    let ways = (0..16).filter(|_| rng.below(100) < percent).fold(0u16, |ways, way| ways | 1 << way);
    // Small values, so that equal ones are written.
    let values = [rng.below(18), rng.below(18), rng.below(18), rng.below(18)].map(|value| value as u8);
    let data = [&ways.to_be_bytes()[..], &values, &[0, 0, 0, rng.below(3) as u8], &[0; 24]].concat();
    Frame::new(1, data)
}

/// Returns all rows of the program.
fn all_rows() -> impl Iterator<Item = StateRow> {
    (0..).zip(ROWS).flat_map(|(group, rows)| (0..rows).map(move |index| StateRow { group, index }))
}

/// Returns everything that can be seen of a switch after a step.
fn seen(switch: &mut Switch, left: &[Frame]) -> String {
    let notifications: Vec<Notification> = switch.take_notifications();
    let (held, awaited) = (switch.take_held(), switch.take_awaited());
    let (writes, changed) = (switch.objects_mut().take_row_writes(), switch.objects_mut().take_changed_rows());
    let objects = format!("{:?}", switch.objects());
    let owned = all_rows().filter(|_| switch.objects().owns_rows());
    let states: Vec<RowState> = owned.map(|row| switch.objects().row_state(row)).collect();
    format!("{left:?}\n{notifications:?}\n{held:?}\n{awaited:?}\n{writes:?}\n{changed:?}\n{states:?}\n{objects}")
}

/// Changes the states of rows and makes cuts, the same in all switches.
fn change_rows(rng: &mut SplitMix64, switches: &mut [Switch]) {
    for (group, rows) in (0..).zip(ROWS) {
        for index in 0..rows {
            let row = StateRow { group, index };
            let state = match (rng.below(12), group) {
                (0, _) => RowState::Absent,
                (1, SKETCH) => RowState::Stale,
                (1..3, group) if group != SKETCH => RowState::Unacknowledged,
                _ => RowState::Owned,
            };
            switches.iter_mut().for_each(|switch| switch.objects_mut().set_row_state(row, state));
            if group == SKETCH && rng.below(4) == 0 {
                let cuts: Vec<_> = switches.iter_mut().map(|switch| cut(switch, row)).collect();
                assert!(cuts.windows(2).all(|cuts| cuts[0] == cuts[1]), "{cuts:?}");
            }
        }
    }
}

/// Makes a cut and returns its pages.
fn cut(switch: &mut Switch, row: StateRow) -> Vec<(u32, Vec<u8>)> {
    let pages = switch.objects_mut().begin_cut(row);
    pages.into_iter().map(|page| (page, switch.objects_mut().cut_page(row, page))).collect()
}

#[test]
fn rows_used_in_line_are_those_of_the_interpreter() {
    compare(EgressRows::Used);
}

#[test]
fn rows_written_in_line_are_those_of_the_interpreter() {
    compare(EgressRows::Unused);
}

fn compare(egress: EgressRows) {
    let mut switches = WAYS.map(|way| switch(way, egress));
    switches.iter_mut().for_each(|switch| switch.own_rows(1_000));
    let mut rng = SplitMix64::new(3);
    let (mut batched, mut resumed) = (0, 0);
    for round in 0..600 {
        change_rows(&mut rng, &mut switches);
        let percent = [4, 10, 25][round % 3];
        let frames: Vec<Frame> = (0..32).map(|_| frame(&mut rng, percent)).collect();
        let all: Vec<String> = run(&mut switches, &frames);
        assert!(all.windows(2).all(|all| all[0] == all[1]), "round {round}:\n{}\n\n{}\n\n{}", all[0], all[1], all[2]);
        batched += usize::from(all[0].contains("Frame"));
        while switches[0].all_parked() > 0 {
            resumed += switches[0].all_parked();
            switches.iter_mut().for_each(resume);
            let all = run(&mut switches, &[]);
            assert!(all.windows(2).all(|all| all[0] == all[1]), "round {round}, resumed");
        }
        let counts = switches.each_ref().map(|switch| switch.registry().to_json());
        assert!(counts.windows(2).all(|counts| counts[0] == counts[1]), "round {round}: {counts:?}");
    }
    assert!(batched > 500 && resumed > 1_000, "{batched} {resumed}");
}

/// Grants a switch all rows for which packets wait.
fn resume(switch: &mut Switch) {
    for row in all_rows() {
        if switch.parked(row) > 0 {
            switch.objects_mut().set_row_state(row, RowState::Owned);
            switch.resume(row);
        }
    }
}

fn run(switches: &mut [Switch], frames: &[Frame]) -> Vec<String> {
    let step = |(switch, way): (&mut Switch, Way)| {
        let left = step(switch, way, frames.to_vec());
        seen(switch, &left)
    };
    switches.iter_mut().zip(WAYS).map(step).collect()
}

#[test]
fn what_ingress_wrote_stays_if_egress_is_refused_a_row() {
    let mut switches = WAYS.map(|way| switch(way, EgressRows::Other));
    switches.iter_mut().for_each(|switch| switch.own_rows(1_000));
    let row = |index| StateRow { group: 0, index };
    for value in 1..4 {
        (0..16).for_each(|index| {
            let state = if value == 1 { RowState::Owned } else { RowState::Unacknowledged };
            switches.iter_mut().for_each(|switch| switch.objects_mut().set_row_state(row(index), state));
        });
        // Ingress writes the row, and egress uses a second one.
        let frame = |index| Frame::new(1, [&[0, 1 << 5, index, 0, 0, 0, 0, 0, 0, value][..], &[0; 24]].concat());
        let frames: Vec<Frame> = (0..8).map(frame).collect();
        let all = run(&mut switches, &frames);
        assert!(all.windows(2).all(|all| all[0] == all[1]), "{value}:\n{}\n\n{}\n\n{}", all[0], all[1], all[2]);
        let written = switches[2].objects().row_values(row(7))[0].low_u64();
        assert_eq!(written, u64::from(value));
        let dropped = switches.each_ref().map(|switch| switch.registry().to_json());
        assert!(dropped.windows(2).all(|counts| counts[0] == counts[1]), "{dropped:?}");
    }
}

#[test]
fn rows_without_an_owner_are_arrays() {
    let mut switches = WAYS.map(|way| switch(way, EgressRows::Unused));
    let mut rng = SplitMix64::new(4);
    for round in 0..200 {
        let frames: Vec<Frame> = (0..32).map(|_| frame(&mut rng, 20)).collect();
        let all = run(&mut switches, &frames);
        assert!(all.windows(2).all(|all| all[0] == all[1]), "round {round}:\n{}\n\n{}\n\n{}", all[0], all[1], all[2]);
    }
}
