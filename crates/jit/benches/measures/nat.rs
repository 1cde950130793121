//! Source NAT with many flows.

use bits::Bits;
use engine::Objects;
use ir::KeyValue;
use rng::SplitMix64;
use tables::{Exact, MISS, PackedLookup};

use crate::lab::{self, BATCH, ByHand, Case, NOWHERE, Output};
use crate::packets::{self, ETHERNET, IPV4};

/// Distribution of packets over flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popularity {
    Uniform,
    /// The flow of rank r has a share proportional to 1 / r^0.99.
    Zipf,
}

#[derive(Clone, Copy)]
struct Translation {
    address: u32,
    source: u16,
    port: u16,
    next_hop: [u8; 6],
}

/// Returns the index of the first cumulative sum that exceeds a random number.
fn draw(rng: &mut SplitMix64, sums: &[f64]) -> usize {
    let number = rng.next_u64() as f64 / 2f64.powi(64) * sums[sums.len() - 1];
    sums.partition_point(|sum| *sum <= number).min(sums.len() - 1)
}

/// Builds a NAT with this many flows.
pub fn nat(flows: usize, popularity: Popularity) -> (Case, impl ByHand) {
    let program = lab::p4_program("nat.p4");
    let table = lab::table(&program, "flows");
    let mut objects = Objects::new(&program);
    let mut rng = SplitMix64::new(5);
    // 32 + 32 bits, then 8 + 16 + 16, in the words that tables pack keys to.
    let mut known = Exact::with_capacity(2, flows);
    let (mut tuples, mut translations) = (Vec::new(), Vec::new());
    while tuples.len() < flows {
        let (source, destination) = (0x0a00_0000 | rng.next_u64() as u32 & 0xff_ffff, rng.next_u64() as u32);
        let (from, to) = (rng.next_u64() as u16, rng.next_u64() as u16);
        let (address, port) = (0xc633_6400 | rng.below(256) as u32, rng.below(500) as u16);
        let (outside, next_hop) = (rng.next_u64() as u16, rng.next_u64() >> 16);
        let exact = |value: u128, width| KeyValue::Exact(Bits::new(value, width));
        let keys = vec![
            exact(u128::from(source), 32),
            exact(u128::from(destination), 32),
            exact(17, 8),
            exact(u128::from(from), 16),
            exact(u128::from(to), 16),
        ];
        let args =
            [(u128::from(address), 32), (u128::from(outside), 16), (u128::from(next_hop), 48), (u128::from(port), 9)];
        if objects.insert(table, lab::entry(&program, table, keys, &args)).is_ok() {
            let key =
                [u64::from(source) | u64::from(destination) << 32, 17 | u64::from(from) << 8 | u64::from(to) << 24];
            known.insert(&key, tuples.len() as u32);
            tuples.push(([source, destination], [from, to]));
            let next_hop = packets::mac_bytes(next_hop);
            translations.push(Translation { address, source: outside, port, next_hop });
        }
    }
    let mut sum = 0.0;
    let share = |rank: usize| if popularity == Popularity::Zipf { (rank as f64).powf(-0.99) } else { 1.0 };
    let sums: Vec<f64> = (1..=flows)
        .map(|rank| {
            sum += share(rank);
            sum
        })
        .collect();
    let mut bytes = Vec::new();
    for _ in 0..(1 << 20) {
        let (addresses, ports) = tuples[draw(&mut rng, &sums)];
        bytes.extend(packets::ipv4(&mut rng, 64, addresses, 17, ports));
    }
    drop(tuples);
    let load = lab::Load::new(bytes, 0);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut who, mut found) = ([0; 2 * BATCH], [0u8; BATCH], [MISS; BATCH]);
        let mut count = 0;
        for (number, buffer) in batch.iter_mut().enumerate() {
            sent[number] = (0, NOWHERE);
            if let Some((_, ip, rest)) = packets::checked_ipv4(buffer)
                && ip[8] > 1
                && ip[9] == 17
                && let Some(udp) = rest.first_chunk::<8>()
            {
                keys[count * 2] = u64::from(packets::word(ip, 12)) | u64::from(packets::word(ip, 16)) << 32;
                let ports = u64::from(packets::half(udp, 0)) << 8 | u64::from(packets::half(udp, 2)) << 24;
                keys[count * 2 + 1] = 17 | ports;
                who[count] = number as u8;
                count += 1;
            }
        }
        known.lookup_batch(&keys[..count * 2], &mut found[..count]);
        for found in &found[..count] {
            tables::prefetch(&translations, *found as usize);
        }
        for (number, found) in who[..count].iter().zip(found) {
            let number = usize::from(*number);
            let translation = translations.get(found as usize);
            let port = translation.and_then(|translation| translation.apply(&mut batch[number]));
            sent[number].1 = port.unwrap_or(NOWHERE);
        }
    };
    (Case { program, objects, load, ingress_port: 1 }, by_hand)
}

impl Translation {
    #[inline]
    fn apply(&self, packet: &mut [u8]) -> Option<u16> {
        let (ethernet, rest) = packet.split_first_chunk_mut::<ETHERNET>()?;
        let (ip, rest) = rest.split_first_chunk_mut::<IPV4>()?;
        let udp = rest.first_chunk_mut::<8>()?;
        let old = [packets::half(ip, 12), packets::half(ip, 14), packets::half(udp, 0)];
        let new = [(self.address >> 16) as u16, self.address as u16, self.source];
        let sum = |words: &[u16], inverted: bool| -> u32 {
            words.iter().map(|word| u32::from(if inverted { !word } else { *word })).sum()
        };
        let folded = |checksum: u16, changes: u32| {
            let sum = u32::from(!checksum) + changes;
            let sum = (sum >> 16) + (sum & 0xffff);
            !(((sum >> 16) + sum) as u16)
        };
        let udp_sum = packets::half(udp, 6);
        if udp_sum != 0 {
            let changed = folded(udp_sum, sum(&old, true) + sum(&new, false));
            udp[6..8].copy_from_slice(&changed.to_be_bytes());
        }
        let ttl = packets::half(ip, 8);
        let changes = sum(&old[..2], true) + sum(&new[..2], false) + u32::from(!ttl) + u32::from(ttl - 0x100);
        let ip_sum = folded(packets::half(ip, 10), changes);
        ip[8] -= 1;
        ip[10..12].copy_from_slice(&ip_sum.to_be_bytes());
        ip[12..16].copy_from_slice(&self.address.to_be_bytes());
        udp[..2].copy_from_slice(&self.source.to_be_bytes());
        ethernet[..6].copy_from_slice(&self.next_hop);
        Some(self.port)
    }
}
