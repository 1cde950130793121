//! Computes checksums and hashes: [`ir::Algorithm`] computed over bit strings.

use bits::Bits;
use ir::Algorithm;

use crate::BitString;

/// The parameters of a CRC of up to 32 bits, in the terms of Williams, "A Painless Guide to CRC Error Detection
/// Algorithms" (1993).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcParams {
    /// Width in bits: 8 to 32.
    pub width: u32,
    /// The polynomial, without its highest bit, most significant bit first.
    pub polynomial: u32,
    /// Initial value of the register.
    pub init: u32,
    /// Whether each byte is processed least significant bit first.
    pub reflect_in: bool,
    /// Whether the final register is reversed.
    pub reflect_out: bool,
    /// Value that is exclusive-ored to the result.
    pub xor_out: u32,
}

impl CrcParams {
    /// CRC-16/ARC.
    pub const CRC16: CrcParams =
        CrcParams { width: 16, polynomial: 0x8005, init: 0, reflect_in: true, reflect_out: true, xor_out: 0 };
    /// CRC-32 of IEEE 802.3.
    pub const CRC32: CrcParams = CrcParams {
        width: 32,
        polynomial: 0x04c1_1db7,
        init: u32::MAX,
        reflect_in: true,
        reflect_out: true,
        xor_out: u32::MAX,
    };
}

/// A CRC with its lookup table. The register is kept at the top of 32 bits, so one loop serves every width.
#[derive(Clone, Debug)]
struct Crc {
    params: CrcParams,
    table: [u32; 256],
}

impl Crc {
    fn new(params: CrcParams) -> Self {
        let polynomial = params.polynomial << (32 - params.width);
        let remainder = |byte: usize| {
            let step = |register: u32, _| (register << 1) ^ if register >> 31 == 1 { polynomial } else { 0 };
            (0..8).fold((byte as u32) << 24, step)
        };
        Crc { params, table: std::array::from_fn(remainder) }
    }

    fn compute(&self, data: &[u8]) -> u32 {
        let params = &self.params;
        let spare = 32 - params.width;
        let register = data.iter().fold(params.init << spare, |register, byte| {
            let byte = if params.reflect_in { byte.reverse_bits() } else { *byte };
            (register << 8) ^ self.table[usize::from((register >> 24) as u8 ^ byte)]
        });
        let result = if params.reflect_out { register.reverse_bits() } else { register >> spare };
        result ^ (params.xor_out & (u32::MAX >> spare))
    }
}

/// All algorithms, with the parameters that the control plane may have set.
#[derive(Clone, Debug)]
pub struct Algorithms {
    crc16: Crc,
    crc32: Crc,
    crc16_custom: Crc,
    crc32_custom: Crc,
}

impl Default for Algorithms {
    fn default() -> Self {
        let (crc16, crc32) = (Crc::new(CrcParams::CRC16), Crc::new(CrcParams::CRC32));
        Algorithms { crc16_custom: crc16.clone(), crc32_custom: crc32.clone(), crc16, crc32 }
    }
}

impl Algorithms {
    /// Sets the parameters of [`Algorithm::Crc16Custom`]. `params.width` is taken as 16.
    pub fn set_crc16_custom(&mut self, params: CrcParams) {
        self.crc16_custom = Crc::new(CrcParams { width: 16, ..params });
    }

    /// Sets the parameters of [`Algorithm::Crc32Custom`]. `params.width` is taken as 32.
    pub fn set_crc32_custom(&mut self, params: CrcParams) {
        self.crc32_custom = Crc::new(CrcParams { width: 32, ..params });
    }

    /// Returns the result in the algorithm's own width; for identity the width of the data.
    pub fn compute(&self, algorithm: Algorithm, data: &BitString) -> Bits {
        let bytes = data.as_bytes();
        match algorithm {
            Algorithm::Csum16 => Bits::new(u128::from(csum16(bytes)), 16),
            Algorithm::Xor16 => Bits::new(u128::from(xor16(bytes)), 16),
            Algorithm::Crc16 => Bits::new(u128::from(self.crc16.compute(bytes)), 16),
            Algorithm::Crc16Custom => Bits::new(u128::from(self.crc16_custom.compute(bytes)), 16),
            Algorithm::Crc32 => Bits::new(u128::from(self.crc32.compute(bytes)), 32),
            Algorithm::Crc32Custom => Bits::new(u128::from(self.crc32_custom.compute(bytes)), 32),
            Algorithm::Identity => data.to_bits(data.len_bits().min(bits::MAX_WIDTH as usize) as u32),
        }
    }

    /// Returns the result zero-extended or truncated (low bits kept) to `width` bits.
    pub fn compute_to_width(&self, algorithm: Algorithm, data: &BitString, width: u32) -> Bits {
        match algorithm {
            Algorithm::Identity => data.to_bits(width),
            _ => self.compute(algorithm, data).resize(width),
        }
    }
}

/// Iterates over the 16-bit words of the data, padded with zeros.
fn words(data: &[u8]) -> impl Iterator<Item = u16> {
    data.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
}

/// Returns the Internet checksum (RFC 1071).
fn csum16(data: &[u8]) -> u16 {
    let mut sum: u64 = words(data).map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn xor16(data: &[u8]) -> u16 {
    words(data).fold(0, |all, word| all ^ word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(data: &[u8], algorithm: Algorithm) -> u128 {
        let mut string = BitString::new();
        string.push_bytes(data);
        Algorithms::default().compute(algorithm, &string).low_u128()
    }

    #[test]
    fn catalogued_check_values() {
        assert_eq!(over(b"123456789", Algorithm::Crc16), 0xbb3d);
        assert_eq!(over(b"123456789", Algorithm::Crc32), 0xcbf4_3926);
        assert_eq!(over(b"", Algorithm::Crc32), 0);
        assert_eq!(over(b"", Algorithm::Crc16), 0);
    }

    #[test]
    fn custom_parameters() {
        let mut algorithms = Algorithms::default();
        let mut data = BitString::new();
        data.push_bytes(b"123456789");
        assert_eq!(algorithms.compute(Algorithm::Crc16Custom, &data).low_u64(), 0xbb3d);
        // CRC-16/XMODEM and CRC-32/BZIP2 and CRC-32C of the same catalogue.
        let xmodem =
            CrcParams { width: 16, polynomial: 0x1021, init: 0, reflect_in: false, reflect_out: false, xor_out: 0 };
        algorithms.set_crc16_custom(xmodem);
        assert_eq!(algorithms.compute(Algorithm::Crc16Custom, &data).low_u64(), 0x31c3);
        algorithms.set_crc32_custom(CrcParams { reflect_in: false, reflect_out: false, ..CrcParams::CRC32 });
        assert_eq!(algorithms.compute(Algorithm::Crc32Custom, &data).low_u64(), 0xfc89_1918);
        algorithms.set_crc32_custom(CrcParams { polynomial: 0x1edc_6f41, ..CrcParams::CRC32 });
        assert_eq!(algorithms.compute(Algorithm::Crc32Custom, &data).low_u64(), 0xe306_9283);
        assert_eq!(algorithms.compute(Algorithm::Crc32, &data).low_u64(), 0xcbf4_3926);
    }

    #[test]
    fn internet_checksum() {
        // The example of RFC 1071, section 3: the sum is ddf2.
        assert_eq!(over(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], Algorithm::Csum16), 0x220d);
        assert_eq!(over(&[], Algorithm::Csum16), 0xffff);
        assert_eq!(over(&[0xff], Algorithm::Csum16), 0x00ff);
    }

    #[test]
    fn exclusive_or_and_identity() {
        assert_eq!(over(&[0x12, 0x34, 0xff, 0x00, 0x01], Algorithm::Xor16), 0xec34);
        assert_eq!(over(&[0x12, 0x34], Algorithm::Identity), 0x1234);
        let mut string = BitString::new();
        string.push(&Bits::new(0x5, 3));
        let algorithms = Algorithms::default();
        assert_eq!(algorithms.compute(Algorithm::Identity, &string), Bits::new(5, 3));
        assert_eq!(algorithms.compute_to_width(Algorithm::Identity, &string, 9), Bits::new(5, 9));
        assert_eq!(algorithms.compute_to_width(Algorithm::Identity, &string, 2), Bits::new(1, 2));
    }
}
