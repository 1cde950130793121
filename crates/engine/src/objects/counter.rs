//! What counters count.

use ir::Unit;

/// What a counter has counted. Both numbers are kept whatever the counter's unit; the unit says which of them mean
/// something to the control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CounterValue {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// The value with the numbers that are not counted in this unit set to 0.
    pub fn in_unit(self, unit: Unit) -> CounterValue {
        match unit {
            Unit::Packets => CounterValue { bytes: 0, ..self },
            Unit::Bytes => CounterValue { packets: 0, ..self },
            Unit::PacketsAndBytes => self,
        }
    }

    pub(crate) fn plus(self, other: CounterValue) -> CounterValue {
        let (packets, bytes) = (self.packets.wrapping_add(other.packets), self.bytes.wrapping_add(other.bytes));
        CounterValue { packets, bytes }
    }

    pub(crate) fn minus(self, other: CounterValue) -> CounterValue {
        let (packets, bytes) = (self.packets.wrapping_sub(other.packets), self.bytes.wrapping_sub(other.bytes));
        CounterValue { packets, bytes }
    }
}
