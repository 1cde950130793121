//! Layouts: every window is one READ, for any arc; parsing an answer never panics.

use elastic::ElasticMutation;
use elastic::cell::{CellForm, CellSecret};
use elastic::layout::{AnswerContext, CellArc, LayoutKind, TableLayout, WindowAnswer};
use elastic::record::{ActionForm, RecordForm};
use rng::SplitMix64;

const SECRET: CellSecret = CellSecret { k0: 3, k1: 4 };
const EPOCH: u64 = 11;

fn records() -> RecordForm {
    let action = |bits: &[u32], is_default_only| ActionForm { parameter_bits: bits.to_vec(), is_default_only };
    RecordForm::new(vec![action(&[16], false), action(&[9], false), action(&[], true)])
}

fn context(records: &RecordForm) -> AnswerContext<'_> {
    AnswerContext { secret: &SECRET, epoch: EPOCH, records, mutation: ElasticMutation::default() }
}

fn layouts() -> Vec<TableLayout> {
    let form = CellForm::new(2, records().record_bytes());
    let windows = [1, 2, 5, 8].map(|cells| LayoutKind::Windows { cells });
    let buckets =
        [(1, 0), (2, 0), (3, 100)].map(|(cells, scratchpad_bytes)| LayoutKind::TwoBuckets { cells, scratchpad_bytes });
    windows.into_iter().chain(buckets).map(|kind| TableLayout::new(kind, form, 1, 60)).collect()
}

/// Writes a copy in which cell `c` holds the key `c`, cell by cell or block by block.
fn copy(layout: &TableLayout, arc: CellArc, by_blocks: bool) -> Vec<u8> {
    let mut memory = vec![0; layout.copy_bytes(arc.cells) as usize];
    let cell_bytes = |cell: u32| {
        let mut bytes = Vec::new();
        let entry = [0, cell as u8, 0, 1, cell as u8];
        layout.form().emit(&SECRET, layout.place(cell, EPOCH), 1, Some(&entry), &mut bytes);
        bytes
    };
    let mut put =
        |offset: u64, bytes: &[u8]| memory[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    if by_blocks {
        for number in 0..layout.blocks(arc) {
            let block = layout.block(arc, number);
            let bytes: Vec<u8> =
                (0..block.count).flat_map(|ahead| cell_bytes(layout.wrap(block.first, ahead))).collect();
            put(block.offset, &bytes);
        }
    } else {
        for cell in 0..layout.cells() {
            layout.cell_offsets(arc, cell).iter().for_each(|offset| put(*offset, &cell_bytes(cell)));
        }
    }
    memory
}

fn arcs(layout: &TableLayout) -> Vec<CellArc> {
    let (cells, distance) = (layout.cells(), layout.home_distance());
    let arc = |start: u32, homes: u32| CellArc { start: start * distance, cells: homes * distance };
    let homes = cells / distance;
    vec![arc(0, homes), arc(3, homes), arc(0, 1), arc(homes - 1, 1), arc(homes - 2, 5), arc(2, homes - 1), arc(4, 7)]
}

#[test]
fn a_read_covers_the_window_of_each_home_in_each_arc() {
    let records = records();
    for layout in layouts() {
        for arc in arcs(&layout) {
            let memory = copy(&layout, arc, false);
            assert_eq!(memory, copy(&layout, arc, true), "{layout:?} {arc:?}");
            for home in (0..layout.cells()).step_by(layout.home_distance() as usize) {
                if !layout.serves(arc, home) {
                    continue;
                }
                let start = layout.read_offset(arc, home) as usize;
                let bytes = &memory[start..start + layout.read_bytes() as usize];
                for cell in 0..layout.cells() {
                    let is_in = layout.distance(home, cell) < layout.window();
                    let answer = layout.parse(context(&records), home, &[0, cell as u8], bytes);
                    let expected = if is_in { WindowAnswer::Hit(&[0, 1, cell as u8][..]) } else { WindowAnswer::Miss };
                    let wanted = match expected {
                        WindowAnswer::Hit(_) => {
                            let WindowAnswer::Hit(record) = answer else { panic!("{layout:?} {arc:?} {home} {cell}") };
                            record == [0, 1, cell as u8]
                        }
                        _ => answer == WindowAnswer::Miss,
                    };
                    assert!(wanted, "{layout:?} {arc:?} home {home} cell {cell}: {answer:?}");
                }
            }
        }
    }
}

#[test]
fn scratchpads_follow_the_cells_of_their_read_and_overlap_nothing() {
    let form = CellForm::new(2, 3);
    let layout = TableLayout::new(LayoutKind::TwoBuckets { cells: 2, scratchpad_bytes: 1500 }, form, 1, 24);
    let arc = CellArc { start: 0, cells: layout.cells() };
    let pads: Vec<u64> =
        (0..layout.cells()).step_by(2).filter_map(|home| layout.scratchpad_offset(arc, home)).collect();
    for (at, pad) in pads.iter().enumerate() {
        assert_eq!(*pad, layout.read_offset(arc, 2 * at as u32) + u64::from(layout.read_bytes()));
        for cell in 0..layout.cells() {
            for offset in layout.cell_offsets(arc, cell) {
                assert!(offset + form.cell_bytes() as u64 <= *pad || offset >= pad + 1500);
            }
        }
    }
    let windows = TableLayout::new(LayoutKind::Windows { cells: 4 }, form, 1, 24);
    assert_eq!(windows.scratchpad_offset(arc, 0), None);
}

#[test]
fn sizes_follow_from_the_widths() {
    let layout = TableLayout::new(
        LayoutKind::Windows { cells: 8 },
        CellForm::new(13, 7),
        1,
        TableLayout::cells_for(10_000_000, 675),
    );
    assert_eq!((layout.form().cell_bytes(), layout.read_bytes()), (32, 256));
    assert_eq!(layout.cells(), 14_814_816);
    assert_eq!(layout.copy_bytes(layout.cells()), (14_814_816 + 7) * 32);
}

#[test]
fn no_bytes_make_a_parse_panic_or_hit() {
    let records = records();
    let mut random = SplitMix64::new(1);
    for layout in layouts() {
        for _ in 0..2000 {
            let size = match random.below(4) {
                0 => random.below(600) as usize,
                _ => layout.read_bytes() as usize,
            };
            let bytes: Vec<u8> = (0..size).map(|_| random.next_u64() as u8).collect();
            let key = [random.next_u64() as u8 & 1, random.next_u64() as u8];
            let key = &key[..2 - usize::from(random.percent(10))];
            let answer = layout.parse(context(&records), layout.home(random.next_u64()), key, &bytes);
            assert!(matches!(answer, WindowAnswer::Torn | WindowAnswer::Invalid), "{answer:?}");
        }
    }
}

#[test]
fn damage_of_the_key_s_cell_or_of_an_absence_is_no_answer_and_other_damage_spares_a_hit() {
    let records = records();
    let layout = &layouts()[2];
    let arc = CellArc { start: 0, cells: layout.cells() };
    let memory = copy(layout, arc, false);
    let size = layout.form().cell_bytes();
    let window = &memory[..layout.read_bytes() as usize];
    for at in 0..window.len() {
        let mut damaged = window.to_vec();
        damaged[at] ^= 0x40;
        let answer = layout.parse(context(&records), 0, &[0, 1], &damaged);
        match at / size {
            // The key itself may have changed, so that it looks absent; then the check decides.
            1 => assert_eq!(answer, WindowAnswer::Torn, "byte {at}"),
            _ => assert_eq!(answer, WindowAnswer::Hit(&[0, 1, 1]), "byte {at}"),
        }
        assert_eq!(layout.parse(context(&records), 0, &[0, 99], &damaged), WindowAnswer::Torn);
    }
    let blank = vec![0; window.len()];
    assert_eq!(layout.parse(context(&records), 0, &[0, 0], &blank), WindowAnswer::Invalid);
}

#[test]
fn an_authentic_record_of_no_action_is_invalid() {
    let records = records();
    let layout = &layouts()[0];
    for (record, is_valid) in [([1, 1, 0xff], true), ([1, 2, 0], false), ([2, 0, 0], false), ([9, 0, 0], false)] {
        let mut bytes = Vec::new();
        let entry = [&[0, 5][..], &record].concat();
        layout.form().emit(&SECRET, layout.place(7, EPOCH), 1, Some(&entry), &mut bytes);
        let answer = layout.parse(context(&records), 7, &[0, 5], &bytes);
        assert_eq!(answer == WindowAnswer::Hit(&record), is_valid, "{record:?}: {answer:?}");
        assert!(is_valid || answer == WindowAnswer::Invalid);
    }
}

#[test]
fn the_later_of_two_cells_of_a_key_counts() {
    let records = records();
    let layout = &layouts()[1];
    for (first, second, expected) in [(7, 8, 2), (8, 7, 1), ((1 << 31) - 1, 0, 2)] {
        let mut bytes = Vec::new();
        layout.form().emit(&SECRET, layout.place(3, EPOCH), first, Some(&[0, 5, 0, 0, 1]), &mut bytes);
        layout.form().emit(&SECRET, layout.place(4, EPOCH), second, Some(&[0, 5, 0, 0, 2]), &mut bytes);
        assert_eq!(layout.parse(context(&records), 3, &[0, 5], &bytes), WindowAnswer::Hit(&[0, 0, expected]));
    }
}
