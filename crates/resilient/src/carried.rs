//! Outputs that travel with a write instead of waiting in the switch's memory (piggyback).
//!
//! ```text
//!   switch ── Write + outputs ──> head ──> … ──> tail ── Acked + outputs ──> switch: the outputs leave
//! ```
//!
//! RedPlane, section 5.4.1. Only the first send of a write carries its outputs. If the write or its acknowledgement is
//! lost, the outputs are lost like packets in a network, and the write is retransmitted without them.

use std::fmt;
use std::sync::Arc;

use crate::message::{Operation, Reply, ReplyBody, Request, RequestBody, StoreMessage};
use crate::wire_form::MAX_PAYLOAD;

/// The place in which the outputs of a packet wait for the acknowledgement of its write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HoldMode {
    /// In the memory of the switch.
    #[default]
    Local,
    /// In the request and its acknowledgement, if they fit into a datagram; otherwise in the memory of the switch.
    Piggyback,
}

impl HoldMode {
    /// Returns the mode with this name in a file; `None` if there is none.
    pub fn from_name(name: &str) -> Option<HoldMode> {
        [HoldMode::Local, HoldMode::Piggyback].into_iter().find(|mode| mode.name() == name)
    }

    /// Returns the name of the mode in files.
    pub fn name(self) -> &'static str {
        match self {
            HoldMode::Local => "local",
            HoldMode::Piggyback => "piggyback",
        }
    }
}

/// Outputs in the format of the switch that sent them. Stores return them as opaque bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CarriedOutputs(Arc<[u8]>);

impl CarriedOutputs {
    /// Copies the bytes, or returns `None` if there are none, or more than [`MAX_PAYLOAD`].
    pub fn new(bytes: &[u8]) -> Option<CarriedOutputs> {
        (1..=MAX_PAYLOAD).contains(&bytes.len()).then(|| CarriedOutputs(bytes.into()))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for CarriedOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Operation {
    /// Returns the outputs that travel with the operation.
    pub fn outputs(&self) -> Option<&CarriedOutputs> {
        if let Operation::Write { outputs, .. } = self { outputs.as_ref() } else { None }
    }

    /// Returns the length of the outputs that travel with the operation, in bytes.
    pub fn carried_bytes(&self) -> usize {
        self.outputs().map_or(0, |outputs| outputs.bytes().len())
    }

    /// Removes and returns the outputs that travel with the operation.
    pub fn take_outputs(&mut self) -> Option<CarriedOutputs> {
        if let Operation::Write { outputs, .. } = self { outputs.take() } else { None }
    }
}

impl StoreMessage {
    /// Returns the length of the outputs that travel in the message, in bytes.
    pub fn carried_bytes(&self) -> usize {
        let outputs = match self {
            StoreMessage::Request(Request { body: RequestBody::Write { outputs, .. }, .. }) => outputs,
            StoreMessage::Reply(Reply { body: ReplyBody::Acked { outputs, .. }, .. }) => outputs,
            StoreMessage::Forward(forward) => return forward.operations.iter().map(Operation::carried_bytes).sum(),
            _ => return 0,
        };
        outputs.as_ref().map_or(0, |outputs| outputs.bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_have_a_length_and_modes_a_name() {
        assert_eq!(CarriedOutputs::new(&[]), None);
        assert_eq!(CarriedOutputs::new(&[7; MAX_PAYLOAD]).unwrap().bytes().len(), MAX_PAYLOAD);
        assert_eq!(CarriedOutputs::new(&[7; MAX_PAYLOAD + 1]), None);
        for mode in [HoldMode::Local, HoldMode::Piggyback] {
            assert_eq!(HoldMode::from_name(mode.name()), Some(mode));
        }
        assert_eq!(HoldMode::from_name("Local"), None);
    }
}
