//! Checksums over a header whose count, number and lengths change, at any position within its words.

use crate::subscribe::run_rules;
use crate::support::Directory;

/// A header's fields and their widths in bits.
type Layout = &'static [(&'static str, u32)];

const LAYOUTS: [Layout; 6] = [
    &[("len", 16), ("csum", 16), ("count", 16), ("pad", 16), ("seq", 64)],
    &[("v", 8), ("len", 16), ("z", 8), ("csum", 16), ("count", 16)],
    &[("len", 16), ("csum", 16), ("count", 16), ("pad", 16), ("seq", 32)],
    &[("v", 4), ("len", 20), ("count", 8), ("csum", 16), ("z", 8), ("seq", 40)],
    &[("count", 8), ("seq", 48), ("z", 8), ("csum", 16), ("len", 32), ("v", 3), ("clear", 13)],
    &[("v", 7), ("count", 12), ("len", 13), ("csum", 16), ("z", 1), ("seq", 48), ("clear", 15)],
];

/// Returns the value of a header field.
fn get(layout: Layout, header: &[u8], name: &str) -> Option<u128> {
    let bits: u32 = layout.iter().map(|(_, width)| width).sum();
    let all = header[..bits as usize / 8].iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
    let mut left = bits;
    layout.iter().find_map(|(field, width)| {
        left -= width;
        (*field == name).then(|| all >> left & ((1 << width) - 1))
    })
}

/// Returns the ones' complement sum of a header's words: all ones if the checksum is correct.
fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0)));
    let sum: u64 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

fn packet(layout: Layout, sequence: u64, items: &[(u8, u8)]) -> Vec<u8> {
    let length = bytes(layout) + 2 * items.len();
    let build = |checksum: u16| {
        let mut left = 8 * bytes(layout) as u32;
        let all = layout.iter().fold(0u128, |all, (field, width)| {
            left -= width;
            let value = match *field {
                "len" => length as u128,
                "csum" => checksum.into(),
                "count" => items.len() as u128,
                "seq" => sequence.into(),
                _ => 0x5a5a & ((1 << width) - 1),
            };
            all | value << left
        });
        all.to_be_bytes()[16 - bytes(layout)..].to_vec()
    };
    let header = build(!sum(&build(0)));
    assert_eq!(sum(&header), 0xffff);
    [header, items.iter().flat_map(|(value, id)| [*value, *id]).collect()].concat()
}

fn bytes(layout: Layout) -> usize {
    layout.iter().map(|(_, width)| *width as usize).sum::<usize>() / 8
}

fn format(layout: Layout) -> String {
    let fields: String = layout.iter().map(|(name, width)| format!("bit<{width}> {name}; ")).collect();
    let says = |key: &str, name: &str| {
        if layout.iter().any(|(field, _)| *field == name) { format!("{key} = \"h.{name}\", ") } else { String::new() }
    };
    let (sequence, clear) = (says("sequence", "seq"), says("clear", "clear"));
    format!(
        r#"#include <v1model.p4>
header h_t {{ {fields} }}
header a_t {{ @query_field("x") bit<8> x; bit<8> id; }}
struct headers_t {{
    h_t h;
    @query_messages[count = "h.count", {sequence}{clear}lengths = "h.len", checksum = "h.csum"]
    a_t[4] items;
}}
struct metadata_t {{ bit<16> left; }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    state start {{
        packet.extract(hdr.h);
        meta.left = (bit<16>)hdr.h.count;
        transition select(meta.left) {{ 0: accept; 1 .. 4: item; default: full; }}
    }}
    state full {{ meta.left = 4; transition item; }}
    state item {{
        packet.extract(hdr.items.next);
        meta.left = meta.left - 1;
        transition select(meta.left) {{ 0: accept; default: item; }}
    }}
}}
"#
    )
}

#[test]
fn no_wrong_checksum_leaves_wherever_what_changes_lies() {
    let directory = Directory::new();
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        let path = directory.write(&format!("{number}.p4"), format(layout));
        let sent: [&[(u8, u8)]; 4] = [
            &[(9, 1), (7, 2), (0, 3), (9, 4), (9, 5), (6, 6)],
            &[(0, 7), (0, 8), (0, 9), (0, 10), (0, 11), (7, 12)],
            &[(7, 13)],
            &[(1, 14), (9, 15)],
        ];
        let sequence = 0xfffe;
        let frames: Vec<Vec<u8>> = sent.iter().map(|items| packet(layout, sequence, items)).collect();
        for shape in [&[][..], &["--messages-per-pass", "1"]] {
            let got = run_rules(&path, "x > 5 : fwd(2)\nx == 9 : fwd(3)\n", shape, &frames, &[2, 3]);
            let all: Vec<Vec<u8>> = got.concat();
            let ids: Vec<u8> =
                got[0].iter().flat_map(|frame| frame[bytes(layout)..].chunks(2).map(|item| item[1])).collect();
            assert_eq!(ids, [1, 2, 4, 5, 6, 12, 13, 15], "{layout:?}");
            let mut number = 1;
            for (at, frame) in all.iter().enumerate() {
                let (header, items) = frame.split_at(bytes(layout));
                let count = items.len() as u128 / 2;
                assert_eq!(sum(header), 0xffff, "{layout:?}, {shape:?}: {frame:02x?}");
                assert_eq!(get(layout, header, "count"), Some(count), "{layout:?}");
                assert_eq!(get(layout, header, "len"), Some(frame.len() as u128), "{layout:?}");
                assert_eq!(get(layout, header, "clear").unwrap_or(0), 0, "{layout:?}");
                if at == got[0].len() {
                    number = 1;
                }
                assert_eq!(get(layout, header, "seq").unwrap_or(number), number, "{layout:?}");
                number += count;
            }
        }
    }
}

/// The ones' complement sum of a checksum of 0, a word of 0 and the 1 that replaces it carries twice.
#[test]
fn carries_of_carries_count() {
    let layout = LAYOUTS[0];
    let header = [0, 18, 0, 0, 0, 1, 0xff, 0xec, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!((sum(&header), get(layout, &header, "csum")), (0xffff, Some(0)));
    let directory = Directory::new();
    let path = directory.write("carries.p4", format(layout));
    let got = run_rules(&path, "x > 5 : fwd(2)\n", &[], &[[&header[..], &[7, 1]].concat()], &[2]);
    let leaves = &got[0][0][..bytes(layout)];
    assert_eq!((sum(leaves), get(layout, leaves, "seq")), (0xffff, Some(1)), "{leaves:02x?}");
}
