//! Generates a recorded day: a small BinaryFILE with all types of message.

use std::io::{self, Write};

use rng::SplitMix64;
use wire::itch::{Body, BrokenTrade, CrossTrade, Message, MessageHeader, Price, Symbol, SystemEvent, TradingAction};

use crate::binary_file::{write_end, write_record};
use crate::{Feed, Spec};

const SECOND_NS: u64 = 1_000_000_000;
/// Time of day at which the messages begin, in ns since midnight.
const MESSAGES_NS: u64 = 11_000 * SECOND_NS;
/// Time of day at which system hours begin.
const SYSTEM_NS: u64 = 4 * 3_600 * SECOND_NS;
/// Time of day at which market hours begin.
const MARKET_NS: u64 = 34_200 * SECOND_NS;

/// Writes a day: events and the stock directory before market hours, `messages` messages of a feed at `rate` a second
/// with random intervals from 9:30 on, and the events of the end. Returns the number of all messages.
///
/// # Errors
/// If the output fails.
pub fn write_sample(output: &mut impl Write, spec: Spec, messages: u64, rate: f64) -> io::Result<u64> {
    let (others, symbol, seed) = (spec.others, spec.symbol, spec.seed);
    let mut day = Day { output, count: 0, now_ns: MESSAGES_NS };
    day.event(b'O')?;
    day.now_ns += SECOND_NS;
    for locate in 1..=others + 1 {
        let stock = if locate == 1 { symbol } else { Feed::symbol(locate) };
        day.directory(locate, stock)?;
    }
    day.now_ns = SYSTEM_NS;
    day.event(b'S')?;
    day.before_market(symbol)?;
    day.now_ns = MARKET_NS;
    day.event(b'Q')?;
    day.put(
        1,
        CrossTrade { shares: 5_000, stock: symbol, price: Price::dollars(50), match_number: 0, cross: b'O' }.into(),
    )?;

    let mut feed = Feed::new(spec);
    let mut rng = SplitMix64::new(seed);
    let mut now_ns = day.now_ns as f64;
    for _ in 0..messages {
        // Arrivals of a Poisson process.
        now_ns -= (1.0 - rng.fraction()).ln() / rate * 1e9;
        day.message(&feed.message(now_ns as u64))?;
    }
    day.now_ns = (now_ns as u64).max(MARKET_NS) + SECOND_NS;
    day.put(1, BrokenTrade { match_number: 1 }.into())?;
    for event in [b'M', b'E', b'C'] {
        day.event(event)?;
        day.now_ns += SECOND_NS;
    }
    write_end(day.output)?;
    Ok(day.count)
}

/// A day that is being written.
struct Day<'a, W> {
    output: &'a mut W,
    count: u64,
    now_ns: u64,
}

impl<W: Write> Day<'_, W> {
    fn put(&mut self, stock_locate: u16, body: Body) -> io::Result<()> {
        let header = MessageHeader { stock_locate, tracking: 0, timestamp_ns: self.now_ns };
        self.message(&Message { header, body })
    }

    fn message(&mut self, message: &Message) -> io::Result<()> {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        self.count += 1;
        write_record(self.output, &bytes)
    }

    fn event(&mut self, event: u8) -> io::Result<()> {
        self.put(0, SystemEvent { event }.into())
    }

    /// Writes a message of a type that is kept as bytes.
    fn other(&mut self, stock_locate: u16, letter: u8, fields: &[&[u8]]) -> io::Result<()> {
        self.put(stock_locate, Body::Other(letter, fields.concat()))
    }

    /// Writes the messages that introduce a stock: its directory entry, its trading state, and its market maker.
    fn directory(&mut self, locate: u16, stock: Symbol) -> io::Result<()> {
        // A common stock in round lots of 100, first tier, no fund.
        self.other(locate, b'R', &[&stock.0, b"QN", &100u32.to_be_bytes(), b"NCZ PNN1N", &[0; 4], b"N"])?;
        self.put(locate, TradingAction { stock, state: b'T', reserved: b' ', reason: *b"    " }.into())?;
        self.other(locate, b'Y', &[&stock.0, b"0"])?;
        self.other(locate, b'L', &[b"MM01", &stock.0, b"YNA"])
    }

    /// Writes one message of each type that is rare: circuit breakers, auctions, halts, and direct listings.
    fn before_market(&mut self, stock: Symbol) -> io::Result<()> {
        let price = |dollars: u32| Price::dollars(dollars).0.to_be_bytes();
        let levels = [3_000u64, 2_800, 2_500].map(|level| (level * 100_000_000).to_be_bytes());
        self.other(0, b'V', &[&levels[0], &levels[1], &levels[2]])?;
        self.other(0, b'W', &[b"1"])?;
        let time = 34_200u32.to_be_bytes();
        self.other(1, b'K', &[&stock.0, &time, b"A", &price(50)])?;
        self.other(1, b'J', &[&stock.0, &price(50), &price(55), &price(45), &0u32.to_be_bytes()])?;
        self.other(1, b'h', &[&stock.0, b"QT"])?;
        let shares = [5_000u64, 100].map(u64::to_be_bytes);
        let prices = [price(50), price(51), price(50)].concat();
        self.other(1, b'I', &[&shares[0], &shares[1], b"B", &stock.0, &prices, b"OL"])?;
        self.other(1, b'N', &[&stock.0, b"N"])?;
        let time = MARKET_NS.to_be_bytes();
        self.other(1, b'O', &[&stock.0, b"N", &price(40), &price(60), &price(50), &time, &price(45), &price(55)])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wire::itch::LETTERS;

    use super::*;
    use crate::binary_file::BinaryFileReader;
    use crate::{Mix, Workload};

    fn sample(seed: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let spec = Spec { mix: Mix::BOOK, ..Workload::Sample.spec(seed) };
        assert_eq!(write_sample(&mut bytes, spec, 5_000, 1_000.0).unwrap(), 5_000 + 1 + 400 + 1 + 8 + 2 + 4);
        bytes
    }

    #[test]
    fn a_sample_has_all_types_in_order_of_time_and_an_end() {
        let bytes = sample(1);
        assert_eq!(bytes[bytes.len() - 2..], [0, 0]);
        let mut reader = BinaryFileReader::new(&bytes[..]);
        let (mut letters, mut latest, mut count) = (BTreeSet::new(), 0, 0);
        while let Some(message) = reader.read().unwrap() {
            assert!(message.timestamp_ns() >= latest);
            latest = message.timestamp_ns();
            letters.insert(message.bytes[0]);
            count += 1;
        }
        assert_eq!((letters, count), (BTreeSet::from(LETTERS), 5_416));
        // The messages of the feed take about 5 s, and the events of the end 3 s more.
        assert!((latest - MARKET_NS).abs_diff(8 * SECOND_NS) < SECOND_NS, "{latest}");
    }

    #[test]
    fn a_seed_is_a_sample() {
        assert_eq!(sample(3), sample(3));
        assert_ne!(sample(3), sample(4));
    }
}
