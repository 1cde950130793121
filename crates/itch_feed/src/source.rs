//! Defines where the datagrams of a feed come from.

use wire::moldudp64;

use crate::BinaryFileError;

/// A source of datagrams: a generated feed, or a recorded one.
pub trait DatagramSource {
    /// Prepares the next datagram, unless one is prepared already. Returns the time at which it was recorded, in ns
    /// since the first one (0 if it was not recorded), or `None` after the last one.
    ///
    /// # Errors
    /// If the recording cannot be read.
    fn prepare(&mut self) -> Result<Option<u64>, BinaryFileError>;

    /// Returns the payload of the prepared datagram, for this time of day in ns since midnight.
    fn take(&mut self, timestamp_ns: u64) -> Vec<u8>;

    /// Returns the sequence number of the next message.
    fn next_sequence(&self) -> u64;

    /// Returns the name of the session, padded with spaces.
    fn session(&self) -> [u8; 10];

    /// Returns the time of day of the beginning, in ns since midnight, as far as it is known.
    fn start_ns(&self) -> u64 {
        0
    }

    /// Returns a heartbeat: a datagram without messages that carries the next sequence number, so that a receiver
    /// detects the loss of the last message.
    fn heartbeat(&self) -> Vec<u8> {
        moldudp64::datagram::<[u8; 0]>(self.session(), self.next_sequence(), &[])
    }

    /// Returns a datagram that marks the end of the session.
    fn end_of_session(&self) -> Vec<u8> {
        let (session, sequence) = (self.session(), self.next_sequence());
        let mut payload = vec![0; moldudp64::HEADER_LEN];
        moldudp64::Repr { session, sequence, count: moldudp64::END_OF_SESSION }.emit(&mut payload);
        payload
    }
}
