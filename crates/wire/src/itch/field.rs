//! Parses and emits the field types of messages.

use super::{FORMAT, Price, Side, Symbol};
use crate::Malformed;

/// A field of a fixed length.
pub(super) trait WireField: Sized {
    /// Its bytes.
    const LEN: usize;

    /// Takes it from the front of bytes that are long enough.
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed>;

    /// Appends it.
    fn put(&self, bytes: &mut Vec<u8>);
}

/// Takes `N` bytes from the front.
fn front<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (field, rest) = bytes.split_at(N);
    *bytes = rest;
    crate::field::array(field, 0)
}

macro_rules! number {
    ($($type:ty),*) => {
        $(impl WireField for $type {
            const LEN: usize = size_of::<$type>();

            fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(<$type>::from_be_bytes(front(bytes)))
            }

            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }
        })*
    };
}

number!(u8, u16, u32, u64);

impl<const N: usize> WireField for [u8; N] {
    const LEN: usize = N;

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(front(bytes))
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl WireField for Symbol {
    const LEN: usize = 8;

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Symbol(front(bytes)))
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }
}

impl WireField for Price {
    const LEN: usize = 4;

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        u32::take(bytes).map(Price)
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }
}

impl WireField for Side {
    const LEN: usize = 1;

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        match u8::take(bytes)? {
            b'B' => Ok(Side::Buy),
            b'S' => Ok(Side::Sell),
            other => Err(Malformed::Field { format: FORMAT, field: "side", value: other.into() }),
        }
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(match self {
            Side::Buy => b'B',
            Side::Sell => b'S',
        });
    }
}
