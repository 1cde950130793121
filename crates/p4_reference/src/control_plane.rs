//! Holds the state that outlives packets and that a control plane writes (sections 14.2 and 13.11): entries, default
//! actions, value sets, registers and counters, by their control-plane names.

use std::collections::HashMap;

use num_bigint::BigUint;

use crate::value::Value;

/// A match of one key element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyMatch {
    /// Equality.
    Exact(BigUint),
    /// The first bits are equal; the number of them.
    Prefix(BigUint, u32),
    /// The bits of the mask are equal.
    Masked(BigUint, BigUint),
    /// Both bounds are inclusive.
    Range(BigUint, BigUint),
    /// Everything.
    Any,
}

/// An action with the values of its directionless parameters, in order; a struct counts as its scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// Control-plane name.
    pub name: String,
    /// Values.
    pub args: Vec<BigUint>,
}

/// A table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceEntry {
    /// A match for each key element, selectors excepted.
    pub keys: Vec<KeyMatch>,
    /// Priority; larger wins.
    pub priority: i64,
    /// Its action.
    pub action: ActionCall,
}

/// The entries that the control plane has added to a table.
#[derive(Clone, Debug, Default)]
pub struct TableState {
    /// Entries in the order of insertion.
    pub entries: Vec<ReferenceEntry>,
    /// The default action, if the control plane has set one.
    pub default: Option<ActionCall>,
}

/// Packets and bytes counted by an element of a counter.
pub type Count = (u64, u64);

/// Parameters of a custom CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcParameters {
    /// Width in bits: 16 or 32.
    pub width: u32,
    /// Polynomial without its highest bit.
    pub polynomial: u32,
    /// Initial value.
    pub initial: u32,
    /// Value exclusive-ored to the result.
    pub final_xor: u32,
    /// Whether the bits of each byte are taken from the least significant one on.
    pub reflect_in: bool,
    /// Whether the bits of the result are reversed.
    pub reflect_out: bool,
}

/// All state that outlives a packet.
#[derive(Clone, Debug, Default)]
pub struct ControlPlane {
    /// Tables.
    pub tables: HashMap<String, TableState>,
    /// Members of value sets.
    pub value_sets: HashMap<String, Vec<Vec<KeyMatch>>>,
    /// Elements of registers that were written.
    pub registers: HashMap<String, HashMap<u64, Value>>,
    /// Elements of counters that have counted.
    pub counters: HashMap<String, HashMap<u64, Count>>,
    /// Parameters of `crc16_custom` and `crc32_custom`, if they were set.
    pub custom_crcs: [Option<CrcParameters>; 2],
}
