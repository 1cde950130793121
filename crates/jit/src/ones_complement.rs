//! Adds payloads for Internet checksums.

/// Adds the 16-bit words of memory (RFC 1071), in the machine's byte order, two at a time. A last odd byte is padded
/// with a zero. Returns at most 32 bits.
pub(crate) fn sum(memory: &[u8]) -> u64 {
    let (words, rest) = memory.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let sum: u64 = words.iter().chain([&last]).map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    (sum & 0xffff_ffff) + (sum >> 32)
}
