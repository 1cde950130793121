//! A layer 2 switch.

use bits::Bits;
use engine::Objects;
use ir::KeyValue;
use rng::SplitMix64;
use tables::{Exact, MISS, PackedLookup};

use crate::lab::{self, BATCH, ByHand, Case, NOWHERE, Output};
use crate::packets;

/// Builds a switch that knows this many stations, in the tables of both sides.
pub fn switch(stations: usize) -> (Case, impl ByHand) {
    let program = lab::p4_program("l2.p4");
    let table = lab::table(&program, "stations");
    let mut objects = Objects::new(&program);
    let (mut known, mut macs, mut ports) = (Exact::new(1), Vec::new(), Vec::new());
    let mut rng = SplitMix64::new(1);
    while macs.len() < stations {
        let mac = rng.next_u64() >> 16;
        let port = (mac % 500) as u16;
        let keys = vec![KeyValue::Exact(Bits::new(u128::from(mac), 48))];
        if objects.insert(table, lab::entry(&program, table, keys, &[(u128::from(port), 9)])).is_ok() {
            known.insert(&[mac], macs.len() as u32);
            macs.push(mac);
            ports.push(port);
        }
    }
    let mut bytes = Vec::new();
    for _ in 0..(1 << 15) {
        let mut packet = [0; 64];
        packet[..6].copy_from_slice(&packets::mac_bytes(macs[rng.below(macs.len() as u64) as usize]));
        packet[6..14].copy_from_slice(&rng.next_u64().to_be_bytes());
        bytes.extend_from_slice(&packet);
    }
    let load = lab::Load::new(bytes, 0);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut found) = ([0; BATCH], [MISS; BATCH]);
        for (key, buffer) in keys.iter_mut().zip(batch.iter()) {
            *key = buffer.first_chunk::<14>().map_or(u64::MAX, |ethernet| packets::mac(ethernet));
        }
        known.lookup_batch(&keys, &mut found);
        for (sent, found) in sent.iter_mut().zip(found) {
            *sent = (0, ports.get(found as usize).copied().unwrap_or(NOWHERE));
        }
    };
    (Case { program, objects, load, ingress_port: 1 }, by_hand)
}
