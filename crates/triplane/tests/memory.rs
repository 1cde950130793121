//! Bounds on memory: bytes per table entry, and the peak while an entries file is loaded.

#[path = "../benches/memory/fill.rs"]
mod fill;

use std::io::Cursor;

use diagnostics::{Diagnostics, SourceMap};
use entries_file::{StreamCheck, apply, check_stream, parse};
use testing::allocations::{CountingAllocator, measure};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MAX_PORT: u32 = 510;

#[test]
fn entries_take_few_bytes() {
    let compiled = fill::program();
    // Upper bounds: in the switch, in its second copy, in the P4Runtime server.
    let bounds = [(90, 90, 150), (200, 200, 150), (200, 200, 150), (300, 300, 150), (300, 300, 150)];
    for (kind, bound) in fill::KINDS.iter().zip(bounds) {
        let memory = fill::measure_table(&compiled, kind, 40_000);
        let found = (memory.switch as i64, memory.second_copy as i64, memory.mirror as i64);
        println!("{}: {found:?} bytes an entry", kind.kind);
        assert!(found.0 <= bound.0 && found.1 <= bound.1 && found.2 <= bound.2, "{}: {found:?}", kind.kind);
    }
}

#[test]
fn loading_a_file_takes_little_more_than_its_entries() {
    let (compiled, text) = (fill::program(), fill::routes_file(60_000));
    let mut streamed = fill::new_switch(&compiled);
    let mut diagnostics = Diagnostics::new();
    let ((), memory) = measure(|| {
        let input = Cursor::new(text.as_bytes());
        let checked = check_stream(Box::new(input), diagnostics::FileId(0), &compiled.ir, MAX_PORT, &mut diagnostics);
        let Ok(StreamCheck::Entries(stream)) = checked else { panic!("the file is right") };
        stream.apply(&mut streamed, &mut diagnostics);
    });
    assert!(diagnostics.is_empty());
    assert!(memory.peak as f64 <= 1.3 * memory.kept as f64, "{memory:?}");

    let mut whole = fill::new_switch(&compiled);
    let mut map = SourceMap::new();
    let file = map.add("routes.json", text);
    let entries = parse(&map, file, &compiled.ir, MAX_PORT, &mut diagnostics).expect("the file is right");
    apply(&mut whole, &entries, &mut diagnostics);
    assert_eq!(format!("{:?}", whole.objects()), format!("{:?}", streamed.objects()));
}

#[test]
fn a_mistake_in_the_last_entry_is_found_before_anything_is_applied() {
    let compiled = fill::program();
    let text = fill::routes_file(5_000);
    let (head, tail) = text.rsplit_once("I.forward").expect("there are entries");
    for wrong in [format!("{head}I.froward{tail}"), format!("{head}I.forward,{tail}")] {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let file = map.add("routes.json", &*wrong);
        let input = Cursor::new(wrong.as_bytes());
        let checked = check_stream(Box::new(input), file, &compiled.ir, MAX_PORT, &mut diagnostics);
        assert!(matches!(checked, Ok(StreamCheck::Mistakes)));
        assert_eq!(diagnostics.error_count(), 1);
        // The last entry begins four lines before the end, and its action is in the second of its lines.
        let line = map.position(diagnostics.iter().next().expect("an error").primary.span).line as usize;
        assert_eq!(line, wrong.lines().count() - 2, "{}", diagnostics.render(&map, false));
    }
}
