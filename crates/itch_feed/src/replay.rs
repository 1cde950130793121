//! Plays a recorded day: packs the messages of a BinaryFILE into datagrams.

use std::io::Read;

use rng::SplitMix64;
use traffic_gen::Zipf;
use wire::itch::TIMESTAMP;
use wire::moldudp64::{self, HEADER_LEN, LENGTH_LEN};

use crate::binary_file::{BinaryFileError, BinaryFileReader, RecordedMessage};
use crate::{DatagramMessages, DatagramSource};

/// Maximum time between the first and the last message of a datagram, in ns of the file. Without it, a message would
/// wait for others at quiet hours.
pub const GATHER_NS: u64 = 1_000_000;

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Name of the session, padded with spaces.
    pub session: [u8; 10],
    /// Number of messages in a datagram, if it has room for them.
    pub counts: DatagramMessages,
    /// Maximum payload of a datagram in bytes.
    pub max_payload: usize,
    /// Maximum time between the messages of a datagram, in ns of the file; `None` for any.
    pub gather_ns: Option<u64>,
    /// Time of day before which messages are skipped, in ns since midnight.
    pub from_ns: u64,
    /// Whether messages keep the timestamps of the file instead of the time at which they are sent.
    pub keeps_timestamps: bool,
    /// Seed of the numbers of messages.
    pub seed: u64,
}

/// The datagrams of a file. It holds the messages of one datagram and one more.
#[derive(Debug)]
pub struct Replay<R> {
    reader: BinaryFileReader<R>,
    options: ReplayOptions,
    zipf: Option<Zipf>,
    rng: SplitMix64,
    /// Sequence number of the next message to send.
    sequence: u64,
    /// The message that did not belong to the last datagram.
    ahead: Option<RecordedMessage>,
    prepared: Vec<Vec<u8>>,
    /// An error that is reported once the messages before it are sent.
    failure: Option<BinaryFileError>,
    /// Timestamps of the first message played and of the latest one, in ns since midnight.
    first_ns: Option<u64>,
    latest_ns: u64,
}

impl<R: Read> Replay<R> {
    /// Creates a replay that starts at sequence number 1.
    ///
    /// # Panics
    /// If a datagram could have no messages.
    pub fn new(input: R, options: ReplayOptions) -> Replay<R> {
        let zipf = match options.counts {
            DatagramMessages::Exactly(count) => {
                assert!(count > 0, "a datagram has messages");
                None
            }
            DatagramMessages::Zipf { most, exponent } => Some(Zipf::new(most.into(), exponent)),
        };
        let rng = SplitMix64::new(options.seed);
        Replay {
            reader: BinaryFileReader::new(input),
            options,
            zipf,
            rng,
            sequence: 1,
            ahead: None,
            prepared: Vec::new(),
            failure: None,
            first_ns: None,
            latest_ns: 0,
        }
    }

    /// Returns the next message that is not skipped.
    fn next(&mut self) -> Result<Option<RecordedMessage>, BinaryFileError> {
        if let Some(message) = self.ahead.take() {
            return Ok(Some(message));
        }
        while let Some(message) = self.reader.read()? {
            let (room, len) = (self.options.max_payload, message.bytes.len());
            if HEADER_LEN + LENGTH_LEN + len > room {
                return Err(BinaryFileError::TooLong { offset: message.offset, len, room });
            }
            if self.first_ns.is_some() || message.timestamp_ns() >= self.options.from_ns {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn count(&mut self) -> usize {
        match (&self.zipf, self.options.counts) {
            (Some(zipf), _) => 1 + zipf.next(&mut self.rng) as usize,
            (None, DatagramMessages::Exactly(count) | DatagramMessages::Zipf { most: count, .. }) => count.into(),
        }
    }
}

impl<R: Read> DatagramSource for Replay<R> {
    /// Reads the messages of the next datagram. It is due when its last message is; a timestamp below an earlier one
    /// counts as that one.
    fn prepare(&mut self) -> Result<Option<u64>, BinaryFileError> {
        if self.prepared.is_empty() {
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
            let most = self.count();
            let mut len = HEADER_LEN;
            let mut opened_ns = None;
            while self.prepared.len() < most {
                let message = match self.next() {
                    Ok(Some(message)) => message,
                    Ok(None) => break,
                    Err(error) if self.prepared.is_empty() => return Err(error),
                    Err(error) => {
                        self.failure = Some(error);
                        break;
                    }
                };
                let time_ns = message.timestamp_ns().max(self.latest_ns);
                let opened = *opened_ns.get_or_insert(time_ns);
                len += LENGTH_LEN + message.bytes.len();
                let is_late = self.options.gather_ns.is_some_and(|gather_ns| time_ns - opened > gather_ns);
                if len > self.options.max_payload || is_late {
                    self.ahead = Some(message);
                    break;
                }
                self.latest_ns = time_ns;
                self.first_ns.get_or_insert(time_ns);
                self.prepared.push(message.bytes);
            }
        }
        let since_first = self.latest_ns - self.first_ns.unwrap_or(self.latest_ns);
        Ok((!self.prepared.is_empty()).then_some(since_first))
    }

    fn take(&mut self, timestamp_ns: u64) -> Vec<u8> {
        let mut messages = std::mem::take(&mut self.prepared);
        if !self.options.keeps_timestamps {
            for message in &mut messages {
                message[TIMESTAMP].copy_from_slice(&timestamp_ns.to_be_bytes()[2..]);
            }
        }
        let payload = moldudp64::datagram(self.options.session, self.sequence, &messages);
        self.sequence += messages.len() as u64;
        payload
    }

    fn next_sequence(&self) -> u64 {
        self.sequence
    }

    fn session(&self) -> [u8; 10] {
        self.options.session
    }

    fn start_ns(&self) -> u64 {
        self.first_ns.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{binary_file, messages};

    /// Returns a file of deletions with these timestamps.
    fn file(times: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for time in times {
            let mut message = vec![0; 19];
            message[0] = b'D';
            message[TIMESTAMP].copy_from_slice(&time.to_be_bytes()[2..]);
            binary_file::write_record(&mut bytes, &message).unwrap();
        }
        bytes
    }

    fn options(count: u16) -> ReplayOptions {
        ReplayOptions {
            session: *b"RECORDED  ",
            counts: DatagramMessages::Exactly(count),
            max_payload: 1_472,
            gather_ns: None,
            from_ns: 0,
            keeps_timestamps: true,
            seed: 1,
        }
    }

    /// Returns the due time, the first sequence number and the timestamps of each datagram.
    fn play(bytes: &[u8], options: ReplayOptions) -> Vec<(u64, u64, Vec<u64>)> {
        let mut replay = Replay::new(bytes, options);
        let mut played = Vec::new();
        while let Some(due_ns) = replay.prepare().unwrap() {
            let sequence = replay.next_sequence();
            let messages = messages(&replay.take(9)).unwrap();
            let times = messages.iter().map(|message| message.header.timestamp_ns).collect();
            played.push((due_ns, sequence, times));
        }
        played
    }

    #[test]
    fn datagrams_are_due_with_their_last_message_and_time_does_not_run_back() {
        let played = play(&file(&[100, 150, 140, 500, 900]), options(2));
        assert_eq!(played, [(50, 1, vec![100, 150]), (400, 3, vec![140, 500]), (800, 5, vec![900])]);
    }

    #[test]
    fn a_message_waits_for_others_only_within_the_gathering_time() {
        let options = ReplayOptions { gather_ns: Some(50), ..options(10) };
        let played = play(&file(&[100, 150, 151, 500]), options);
        assert_eq!(played, [(50, 1, vec![100, 150]), (51, 3, vec![151]), (400, 4, vec![500])]);
    }

    #[test]
    fn a_datagram_has_no_more_messages_than_it_has_room_for() {
        let options = ReplayOptions { max_payload: HEADER_LEN + 3 * 21, ..options(60_000) };
        let counts: Vec<usize> = play(&file(&[1; 7]), options).iter().map(|(_, _, times)| times.len()).collect();
        assert_eq!(counts, [3, 3, 1]);
    }

    #[test]
    fn messages_before_the_start_are_skipped_and_later_ones_are_not() {
        let options = ReplayOptions { from_ns: 200, keeps_timestamps: false, ..options(1) };
        let played = play(&file(&[100, 199, 200, 150]), options);
        assert_eq!(played, [(0, 1, vec![9]), (0, 2, vec![9])]);
    }

    #[test]
    fn messages_before_a_malformed_record_are_played() {
        let bytes = file(&[1, 2, 3]);
        let mut replay = Replay::new(&bytes[..bytes.len() - 1], options(12));
        assert_eq!(replay.prepare().unwrap(), Some(1));
        assert_eq!(messages(&replay.take(0)).unwrap().len(), 2);
        assert_eq!(replay.prepare().unwrap_err().to_string(), "byte 42: the file ends within this record");
    }

    #[test]
    fn a_message_longer_than_a_datagram_is_an_error() {
        let options = ReplayOptions { max_payload: HEADER_LEN + 20, ..options(1) };
        let error = Replay::new(&file(&[1])[..], options).prepare().unwrap_err().to_string();
        assert!(error.starts_with("byte 0: a message of 19 bytes does not fit a datagram of 40 bytes"), "{error}");
    }
}
