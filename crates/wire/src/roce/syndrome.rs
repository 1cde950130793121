//! The syndrome of AETH: an acknowledgement, or the reason for its absence (volume 1, tables 43 to 46).

/// An acknowledgement, or the reason for its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All packets up to this one are acknowledged. The value encodes credits for SENDs; 31 means *not limited*.
    Ack(u8),
    /// The receiver is not ready: retry after [`rnr_timer_ns`] of this value.
    RnrNak(u8),
    /// The packet, and all packets after it, were refused.
    Nak(NakCode),
    /// A reserved value.
    Reserved(u8),
}

impl Syndrome {
    /// An acknowledgement without a limit of credits.
    pub const ACK: Syndrome = Syndrome::Ack(31);
}

/// The reason for which a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    /// Packets before it are missing: the sequence number of the answer is the expected one.
    SequenceError,
    /// An unsupported or misplaced opcode, or a message that is too long.
    InvalidRequest,
    /// The key, the range or the permission does not allow the access.
    RemoteAccessError,
    /// The responder failed.
    RemoteOperationalError,
    /// Another code: of another transport, or reserved.
    Other(u8),
}

impl From<u8> for Syndrome {
    #[inline]
    fn from(byte: u8) -> Syndrome {
        let value = byte & 0x1f;
        match byte >> 5 {
            0b000 => Syndrome::Ack(value),
            0b001 => Syndrome::RnrNak(value),
            0b011 => Syndrome::Nak(match value {
                0 => NakCode::SequenceError,
                1 => NakCode::InvalidRequest,
                2 => NakCode::RemoteAccessError,
                3 => NakCode::RemoteOperationalError,
                other => NakCode::Other(other),
            }),
            _ => Syndrome::Reserved(byte),
        }
    }
}

impl From<Syndrome> for u8 {
    #[inline]
    fn from(syndrome: Syndrome) -> u8 {
        match syndrome {
            Syndrome::Ack(value) => value & 0x1f,
            Syndrome::RnrNak(value) => 0x20 | value & 0x1f,
            Syndrome::Nak(NakCode::SequenceError) => 0x60,
            Syndrome::Nak(NakCode::InvalidRequest) => 0x61,
            Syndrome::Nak(NakCode::RemoteAccessError) => 0x62,
            Syndrome::Nak(NakCode::RemoteOperationalError) => 0x63,
            Syndrome::Nak(NakCode::Other(value)) => 0x60 | value & 0x1f,
            Syndrome::Reserved(byte) => byte,
        }
    }
}

/// Returns the minimum wait that a *receiver not ready* with this value requires, in nanoseconds (table 45). Values
/// above 31 are taken modulo 32.
pub fn rnr_timer_ns(value: u8) -> u64 {
    /// Tens of microseconds.
    const STEPS: [u64; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
        4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    STEPS[usize::from(value & 0x1f)] * 10_000
}
