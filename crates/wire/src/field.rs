//! Reads and writes numbers within bytes, in network order. Callers have checked the positions: these functions index.

use crate::Malformed;

#[inline]
pub(crate) fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(crate) fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns the `N` bytes from `at`.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[inline]
pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Returns an error if there are fewer than `needed` bytes.
#[inline]
pub(crate) fn require(format: &'static str, bytes: &[u8], needed: usize) -> Result<(), Malformed> {
    let have = bytes.len();
    if have < needed { Err(Malformed::Truncated { format, needed, have }) } else { Ok(()) }
}

/// Returns a header of `len` zero bytes with `payload` after it.
pub(crate) fn with_payload(len: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + payload.len());
    bytes.resize(len, 0);
    bytes.extend_from_slice(payload);
    bytes
}
