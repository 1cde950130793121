//! Counts requests by kind.

use crate::message::{RequestBody, StoreMessage};

/// Numbers of requests of switches by kind, repeated ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Renewals of leases.
    pub renewals: u64,
    /// Asks for rows.
    pub asks: u64,
    /// Writes.
    pub writes: u64,
    /// Rows given back.
    pub releases: u64,
}

impl RequestCounts {
    /// Counts a message if it is a request.
    pub fn note(&mut self, message: &StoreMessage) {
        let StoreMessage::Request(request) = message else { return };
        *match request.body {
            RequestBody::Renew { .. } => &mut self.renewals,
            RequestBody::Acquire { .. } => &mut self.asks,
            RequestBody::Write { .. } => &mut self.writes,
            RequestBody::Release { .. } => &mut self.releases,
        } += 1;
    }

    /// Returns the name and the number of each kind.
    pub fn by_kind(&self) -> [(&'static str, u64); 4] {
        [("renew", self.renewals), ("ask", self.asks), ("write", self.writes), ("release", self.releases)]
    }
}
