//! All packet tests and examples of the project: whatever compiled code does not hand over, it does right. As root,
//! the kernel runs some of the packets, too.

use std::path::Path;

use rng::SplitMix64;
use v1model::Executor;

use crate::kernel::InKernel;
use crate::rig::{self, PORTS, Rig, Ways};

fn sources(directory: &str) -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let mut files = Vec::new();
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "p4") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Packets whose bytes are small, so that they meet the constants of programs.
fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let length = 1 + rng.below(rng.clone().pick(&[(1, 20), (2, 64), (1, 120)]));
    let kind = rng.below(3);
    let mut data: Vec<u8> = (0..length)
        .map(|_| match kind {
            0 => rng.below(3) as u8,
            1 => rng.pick(&[(1, 0), (1, 1), (1, 0xff), (1, 8), (1, 6), (1, 0x45)]),
            _ => rng.next_u64() as u8,
        })
        .collect();
    if rng.percent(40) && data.len() > 14 {
        data[12..14].copy_from_slice(&[8, 0]);
        data[14] = 0x45;
    }
    data
}

fn run(path: &Path, packets: usize) -> Option<Ways> {
    let text = std::fs::read_to_string(path).expect("the file is there");
    let program = rig::compile_text(&text, path.parent())?;
    let mut rig = Rig::try_new(&program, &[Executor::Interpreter], |_, _| {})?;
    let mut rng = SplitMix64::new(9);
    for _ in 0..packets {
        let port = rng.below(PORTS.into()) as u32;
        let data = packet(&mut rng);
        rig.packet(port, &data);
    }
    rig.compare_counts();
    // The kernel begins with the registers that these packets left.
    if let Ok(kernel) = InKernel::load(&rig, 1) {
        eprintln!("  {} instructions processed", kernel.verified_instructions());
        let packets = (0..packets).map(|_| packet(&mut rng)).filter(|data| data.len() >= 14);
        packets.for_each(|data| kernel.compare(&rig, 0, &data));
    }
    Some(rig.ways)
}

#[test]
fn programs_mean_the_same() {
    let (mut ran, mut with_fast) = (0, 0);
    for path in sources("testdata/stf").iter().chain(&sources("examples")).chain(&sources("crates/lower/testdata")) {
        eprintln!("{}", path.display());
        if let Some(ways) = run(path, 60) {
            ran += 1;
            with_fast += usize::from(ways.fast() > 0);
            eprintln!("  {ways:?}");
        }
    }
    eprintln!("{with_fast} of {ran} programs have fast packets");
    assert!(ran > 60, "{ran} programs ran");
    assert!(with_fast * 10 > ran * 6, "{with_fast} of {ran} programs have fast packets");
}
