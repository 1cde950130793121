//! The programs of RCP*, the words that they collect, and the word of a rate.

use super::{LinkPlace, LinkSample};
use crate::asm::TinyProgram;
use crate::hop_words::{DISCOVERED, PROGRAM_HOPS, discovered_link, program, pushes, rows};

/// Maximum number of switches on a path. A hop number beyond 127 is not counted, so 127 may mean more.
pub const MAX_HOPS: usize = 126;

/// Words that each program of a sample pushes at a switch. The identity comes first, as in [`DISCOVERED`].
const COUNTERS: [&str; 5] = ["Switch:ID", "Link:ID", "Switch:Clock", "Link:RX-Bytes", "Link:RX-Bytes.High"];
const RATES: [&str; 4] = ["Switch:ID", "Link:Queued-Bytes", "Link:AppSpecific_0", "Link:AppSpecific_1"];

/// Number of programs for each part of a path in a sample.
const SAMPLED: usize = 2;

/// Words of a hop in an update: version that is replaced, new version, new rate.
pub(super) type LinkUpdate = [u32; 3];

/// Returns the word of a fair rate: the upper half of an IEEE 754 double, which has 20 bits of fraction, and thus an
/// error of at most one part in two million from 1 byte a second to 2^1023.
pub fn rate_word(rate: f64) -> u32 {
    let bits = rate.clamp(1.0, f64::MAX / 2.0).to_bits();
    ((bits + (1 << 31)) >> 32) as u32
}

/// Returns the fair rate in a word, in bytes a second; `None` if none was stored. A word that no sender stores, such as
/// a negative number, counts as none.
pub fn rate_of(word: u32) -> Option<f64> {
    let rate = f64::from_bits(u64::from(word) << 32);
    (rate.is_normal() && rate > 0.0).then_some(rate)
}

/// Returns the first switch and the number of switches of each part of a path.
fn parts(hops: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..hops).step_by(PROGRAM_HOPS).map(move |first| (first, PROGRAM_HOPS.min(hops - first)))
}

/// Returns the programs that discover the first `hops` switches.
pub(super) fn discovery(hops: usize) -> Vec<TinyProgram> {
    // What follows a part may be a switch more than there was.
    parts(hops.max(1)).map(|(first, _)| pushes(first, PROGRAM_HOPS, &DISCOVERED)).collect()
}

/// Returns the number of switches that these echoes of a discovery passed, and the place and capacity of each link that
/// they had memory for; `None` if they passed different paths.
pub(super) fn discovered(echoes: &[TinyProgram]) -> Option<(usize, Vec<(LinkPlace, f64)>)> {
    let passed = usize::try_from(echoes.first()?.repr.hop).ok()?;
    let known = passed.min(echoes.len() * PROGRAM_HOPS);
    let mut links = Vec::with_capacity(known);
    for ((first, hops), echo) in parts(known).zip(echoes) {
        links.extend(rows(echo, first, hops, passed, DISCOVERED.len())?.map(|words| discovered_link(&words)));
    }
    Some((passed, links))
}

/// Returns the programs that collect a sample.
pub(super) fn collection(hops: usize) -> Vec<TinyProgram> {
    parts(hops).flat_map(|(first, hops)| [pushes(first, hops, &COUNTERS), pushes(first, hops, &RATES)]).collect()
}

/// Returns the samples of the links of a path with `hops` switches; `None` if the echoes passed another number of
/// switches, or different ones.
pub(super) fn collected(echoes: &[TinyProgram], hops: usize) -> Option<Vec<(LinkPlace, LinkSample)>> {
    if echoes.len() != SAMPLED * parts(hops).count() {
        return None;
    }
    let mut samples = Vec::with_capacity(hops);
    for ((first, part_hops), pair) in parts(hops).zip(echoes.chunks_exact(SAMPLED)) {
        let counters = rows(&pair[0], first, part_hops, hops, COUNTERS.len())?;
        let rates = rows(&pair[1], first, part_hops, hops, RATES.len())?;
        for (counters, rates) in counters.zip(rates) {
            if counters[0] != rates[0] {
                return None;
            }
            let sample = LinkSample {
                clock_ns: counters[2],
                offered_bytes: u64::from(counters[4]) << 32 | u64::from(counters[3]),
                queued_bytes: rates[1],
                rate: rate_of(rates[2]),
                version: rates[3],
            };
            samples.push((LinkPlace { switch: counters[0], port: counters[1] }, sample));
        }
    }
    Some(samples)
}

/// Returns the programs that update links. A part of the path without an update has none. `None` keeps a link as it is;
/// `samples` has the versions that are replaced.
pub(super) fn updates(updates: &[Option<LinkUpdate>], samples: &[(LinkPlace, LinkSample)]) -> Vec<TinyProgram> {
    let of_part = |(first, hops): (usize, usize)| {
        let part = first..first + hops;
        updates[part.clone()].iter().any(Option::is_some).then(|| {
            let words = updates[part.clone()].iter().zip(&samples[part]);
            // A version that is not there keeps the link as it is.
            let words = words.flat_map(|(update, (_, sample))| update.unwrap_or([!sample.version, 0, 0]));
            TinyProgram { memory: words.flat_map(u32::to_be_bytes).collect(), ..update(first, hops) }
        })
    };
    parts(updates.len()).filter_map(of_part).collect()
}

/// Returns the program that updates links, without its words.
fn update(first: usize, hops: usize) -> TinyProgram {
    program(&format!(
        ".mode hop\n.size {}\n.hops {hops}\n.hop -{first}\nCSTORE [Link:AppSpecific_1], [Packet:hop[0]], \
         [Packet:hop[1]]\nSTORE [Link:AppSpecific_0], [Packet:hop[2]]",
        size_of::<LinkUpdate>()
    ))
}
