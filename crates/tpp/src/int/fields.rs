//! Names the instructions of INT, and decodes the metadata that they request.

use wire::int::WORD;

use crate::map::{INT_FIELDS, IntField};

/// Names of the INT instructions in scenario files, and their bits in the bitmap.
pub const INSTRUCTIONS: [(&str, u8); 9] = [
    ("node", 0),
    ("interfaces", 1),
    ("latency", 2),
    ("queue", 3),
    ("ingress_time", 4),
    ("egress_time", 5),
    ("logical_interfaces", 6),
    ("utilization", 7),
    ("buffer", 8),
];

/// Returns the fields that instructions request of a hop, in wire order.
pub fn fields(instructions: u16) -> impl Iterator<Item = &'static IntField> {
    INT_FIELDS.iter().filter(move |field| instructions & 0x8000 >> field.bit != 0)
}

/// Returns the values of the metadata of one hop, in the order of [`fields`]; `None` for those that the hop lacks.
/// Fields that are cut are lacking, and further words are ignored.
pub fn values(instructions: u16, mut metadata: &[u8]) -> Vec<Option<u64>> {
    let (mut word, mut left) = (0u64, 0);
    let value = |field: &IntField| {
        if left == 0 {
            let len = (field.width as usize / 8).max(WORD);
            let (bytes, rest) = metadata.split_at_checked(len)?;
            word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            (metadata, left) = (rest, 8 * len as u32);
        }
        left -= field.width;
        let ones = u64::MAX >> (64 - field.width);
        Some(word >> left & ones).filter(|value| *value != ones)
    };
    fields(instructions).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_decoded_field_by_field() {
        let bytes = [0, 1, 0, 2, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 8, 7];
        let instructions = 0b0101_1010_0000_0000;
        let names: Vec<_> = fields(instructions).map(|field| field.name).collect();
        assert_eq!((names[0], names.len()), ("Ingress interface ID", 7));
        let expected = [Some(1), Some(2), Some(3), Some(256), Some(9), None, Some(8)];
        assert_eq!(values(instructions, &bytes), expected);
        assert_eq!(values(instructions, &bytes[..7]), [Some(1), Some(2), None, None, None, None, None]);
        assert_eq!(values(0x1000, &[0xff, 0, 0, 1]), [None, Some(1)]);
        for (_, bit) in INSTRUCTIONS {
            assert!(fields(0x8000 >> bit).count() > 0, "{bit}");
        }
    }
}
