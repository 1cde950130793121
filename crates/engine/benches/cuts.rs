//! Measures the cost of snapshots in the engine: a write of an element, alone and in a row with snapshots; the pause of
//! a cut of a row of 1 MiB in which all pages have changed; and the copying of 4 of its pages, as one step does.
//!
//! `cargo bench -p engine --bench cuts`

use std::hint::black_box;
use std::time::Instant;

use engine::{Objects, RowState, StateRow};
use ir::{Annotation, Program, RESILIENT, Register, RegisterId};

const TURNS: usize = 101;
const ELEMENTS: u64 = 1 << 18;
const PAGE_ELEMENTS: u64 = 256;
const WRITES: u64 = 4096;
const ROW: StateRow = StateRow { group: 0, index: 0 };

/// Returns the objects of a program with one array, with this text of an annotation.
fn objects(annotation: Option<&str>) -> (Objects, RegisterId) {
    let annotations = annotation.map(|text| Annotation { name: RESILIENT.to_owned(), text: text.to_owned() });
    let mut program = Program::default();
    let annotations = annotations.into_iter().collect();
    program.registers.push(Register { name: "r".to_owned(), width: 32, size: ELEMENTS, annotations });
    let mut objects = Objects::new(&program);
    let groups = program.resilient_groups().expect("the annotation is right");
    if !groups.is_empty() {
        objects.own_rows(&program, &groups);
        objects.set_snapshot_row_state(ROW, RowState::Owned);
    }
    (objects, program.registers.keys().next().expect("it has a register"))
}

/// Returns nanoseconds of this work, once.
fn time(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64
}

fn report(name: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let (median, longest) = (values[values.len() / 2], values[values.len() - 1]);
    println!("| {name} | {median:.1} | {longest:.1} |");
}

/// Writes elements of all pages, three in a pass. Returns nanoseconds a write.
fn write(objects: &mut Objects, register: RegisterId, value: u64) -> f64 {
    let all = time(|| {
        for number in 0..WRITES / 3 {
            objects.begin_pass(None);
            for index in [number * 191, number * 191 + 64, number * 191 + 128] {
                let before = objects.read_word_in_pass(register, index).expect("the row is owned");
                objects.write_word_in_pass(register, index, before ^ value).expect("the row is owned");
            }
            black_box(objects.end_pass());
        }
    });
    all / WRITES as f64
}

fn main() {
    println!("| | median, ns | longest, ns |\n|---|---|---|");
    let (mut plain, register) = objects(None);
    report(
        "a read and a write, without an annotation",
        (1..=TURNS).map(|turn| write(&mut plain, register, turn as u64)).collect(),
    );
    let (mut rows, register) = objects(Some("every = \"1ms\""));
    report(
        "the same in a row with snapshots",
        (1..=TURNS).map(|turn| write(&mut rows, register, turn as u64)).collect(),
    );
    let (mut cuts, mut copies) = (Vec::new(), Vec::new());
    for turn in 1..=TURNS as u64 {
        rows.begin_pass(None);
        for index in (0..ELEMENTS).step_by(PAGE_ELEMENTS as usize) {
            rows.write_word_in_pass(register, index, turn).expect("the row is owned");
        }
        rows.end_pass();
        let mut pages = Vec::new();
        cuts.push(time(|| pages = rows.begin_cut(ROW)));
        assert_eq!(pages.len() as u64, ELEMENTS / PAGE_ELEMENTS);
        for pages in pages.chunks(4) {
            copies.push(time(|| pages.iter().for_each(|page| _ = black_box(rows.cut_page(ROW, *page)))));
        }
    }
    report("a cut of 1 MiB after changes in all pages", cuts);
    report("copying 4 pages of it", copies);
}
