//! Hashes packed words: folded multiplication, one for each two words.
//!
//! Keys of tables come from the control plane, not from packets, so collisions cannot be provoked. A fixed seed keeps
//! runs repeatable.

/// Four words of random bits.
pub const SECRET: [u64; 4] =
    [0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9, 0x4b33_a62e_d433_d4a3, 0x4d5a_2da5_1de1_aa47];

/// Returns the exclusive or of the product's halves: every input bit reaches the whole word.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the hash of `count` words. The loop is unrolled where `count` is a constant.
#[inline(always)]
pub(crate) fn hash_words(count: usize, word: impl Fn(usize) -> u64) -> u64 {
    match count {
        0 => SECRET[0],
        1 => fold(word(0) ^ SECRET[0], SECRET[1]),
        2 => fold(word(0) ^ SECRET[0], word(1) ^ SECRET[1]),
        _ => {
            let mut state = fold(word(0) ^ SECRET[0], word(1) ^ SECRET[1]);
            let mut at = 2;
            while at + 1 < count {
                state = fold(word(at) ^ state, word(at + 1) ^ SECRET[2]);
                at += 2;
            }
            if at < count {
                state = fold(word(at) ^ state, SECRET[3]);
            }
            state
        }
    }
}

/// Maps the high half of a hash to `0..end`, which need not be a power of two.
#[inline(always)]
pub(crate) fn scale(hash: u64, end: usize) -> usize {
    (((hash >> 32) * end as u64) >> 32) as usize
}
