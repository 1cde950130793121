//! Defines counter values.

use ir::Unit;

/// The value of a counter. Both numbers are kept for every counter; its unit decides which of them the control plane
/// sees.
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

    /// Returns the value with the numbers that this unit does not count set to 0.
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
