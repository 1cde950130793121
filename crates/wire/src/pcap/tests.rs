use super::*;

/// Builds a classic file with one frame of four bytes at 3 s and 5 units, in either byte order.
fn classic(magic: u32, big: bool, link_type: u32) -> Vec<u8> {
    let words = |words: &[u32]| -> Vec<u8> {
        words.iter().flat_map(|w| if big { w.to_be_bytes() } else { w.to_le_bytes() }).collect()
    };
    let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut file = words(&[magic]);
    file.extend(version);
    file.extend(words(&[0, 0, 65535, link_type, 3, 5, 4, 9]));
    file.extend([1, 2, 3, 4]);
    file
}

fn frames(file: &[u8]) -> Result<Vec<Captured>, PcapError> {
    Reader::new(file)?.collect()
}

#[test]
fn classic_files_of_both_units_and_orders_read_alike() {
    for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
        for big in [false, true] {
            let read = frames(&classic(magic, big, 1)).unwrap();
            let expected = Captured { data: vec![1, 2, 3, 4], time_ns: 3_000_000_000 + 5 * unit, original_len: 9 };
            assert_eq!(read, [expected]);
        }
    }
}

#[test]
fn truncated_frames_are_counted() {
    let file = classic(0xa1b2_c3d4, false, 1);
    let mut reader = Reader::new(&file[..]).unwrap();
    assert!(reader.read().unwrap().unwrap().is_truncated());
    assert_eq!((reader.packets(), reader.truncated()), (1, 1));
}

#[test]
fn captures_round_trip() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.write(1_234_567_890_123_456_789, &[7; 60]).unwrap();
    writer.write(1, &[8; 1514]).unwrap();
    assert!(matches!(writer.write(2, &vec![0; 300_000]), Err(PcapError::TooLong { packet: 3, len: 300_000, .. })));
    let read = frames(&writer.into_inner()).unwrap();
    assert_eq!((read[0].time_ns, read[0].data.len()), (1_234_567_890_123_456_789, 60));
    assert_eq!((read[1].time_ns, read[1].data.len(), read.len()), (1, 1514, 2));
}

#[test]
fn complaints_say_what_is_wrong() {
    let complaint = |file: &[u8]| frames(file).unwrap_err().to_string();
    assert!(complaint(&[]).contains("empty"));
    assert!(complaint(&[0x1f, 0x8b, 8, 0]).contains("gzip"));
    assert!(complaint(b"hello").contains("not a capture file"));
    let cooked = complaint(&classic(0xa1b2_c3d4, true, 113));
    assert!(cooked.contains("113 (Linux cooked capture)") && cooked.contains("Ethernet"), "{cooked}");
    let mut cut = classic(0xa1b2_c3d4, false, 1);
    cut.pop();
    assert!(complaint(&cut).contains("ends inside packet 1"));
    let mut huge = classic(0xa1b2_c3d4, false, 1);
    huge[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(complaint(&huge).contains("4294967295 bytes"), "{}", complaint(&huge));
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = body.len() as u32 + 12;
    let mut block: Vec<u8> = [kind, len].iter().flat_map(|w| w.to_le_bytes()).collect();
    block.extend(body);
    block.extend(len.to_le_bytes());
    block
}

/// Builds a section with a nanosecond interface, an unknown block, an enhanced and a simple frame.
fn ng(link_type: u16) -> Vec<u8> {
    let mut file = block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let mut interface = link_type.to_le_bytes().to_vec();
    interface.extend([0, 0, 6, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0]);
    interface.extend([14, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(block(1, &interface));
    file.extend(block(77, b"statistics"));
    let ticks = 5_000_000_007u64;
    let mut frame: Vec<u8> =
        [0, (ticks >> 32) as u32, ticks as u32, 5, 60].iter().flat_map(|w| w.to_le_bytes()).collect();
    frame.extend(b"hello\0\0\0options!");
    file.extend(block(6, &frame));
    let mut simple = 9u32.to_le_bytes().to_vec();
    simple.extend(b"simple..");
    file.extend(block(3, &simple));
    file
}

#[test]
fn pcapng_blocks_are_read_with_their_interfaces_clock() {
    let read = frames(&ng(1)).unwrap();
    assert_eq!(read[0], Captured { data: b"hello".to_vec(), time_ns: 7_000_000_007, original_len: 60 });
    assert_eq!(read[1], Captured { data: b"simple".to_vec(), time_ns: 0, original_len: 9 });
    assert!(frames(&ng(101)).unwrap_err().to_string().contains("raw IP"));
}

#[test]
fn a_big_endian_pcapng_section_reads_too() {
    let mut file = vec![0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0];
    file.extend([255; 8]);
    file.extend([0, 0, 0, 28]);
    file.extend([0, 0, 0, 1, 0, 0, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20]);
    file.extend([0, 0, 0, 6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 0, 0]);
    file.extend([0, 0, 0, 36]);
    assert_eq!(frames(&file).unwrap(), [Captured { data: vec![1, 2], time_ns: 9000, original_len: 2 }]);
}

/// Valid files damaged byte by byte, and noise: no panic, no hang, no growth.
#[test]
fn damaged_files_are_refused_or_read_but_never_panic() {
    let mut rng = rng::SplitMix64::new(1);
    let mut random = move || rng.next_u64();
    let good = [classic(0xa1b2_c3d4, false, 1), classic(0xa1b2_3c4d, true, 1), ng(1)];
    for round in 0..30_000usize {
        let mut file = good[round % good.len()].clone();
        for _ in 0..=random() % 4 {
            let at = random() as usize % file.len();
            file[at] = match random() % 3 {
                0 => 0xff,
                1 => 0,
                _ => random() as u8,
            };
        }
        file.truncate(file.len() - random() as usize % 8);
        let kept: usize = Reader::new(&file[..]).into_iter().flatten().flatten().map(|frame| frame.data.len()).sum();
        assert!(kept <= file.len(), "more came out than went in");
    }
}
