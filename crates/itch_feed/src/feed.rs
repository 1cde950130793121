//! Generates the datagrams of a feed.

use rng::SplitMix64;
use traffic_gen::Zipf;
use wire::itch::{
    AddOrder, AddOrderAttributed, Body, Message, MessageHeader, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, Price, Side, Symbol, Trade,
};
use wire::moldudp64;

use crate::book::{Book, Order};
use crate::{BinaryFileError, DatagramMessages, DatagramSource, Spec};

/// Names of fictitious market participants.
const PARTICIPANTS: [&[u8; 4]; 4] = [b"MM01", b"MM02", b"MM03", b"MM04"];

/// Generates the datagrams of one feed.
#[derive(Clone, Debug)]
pub struct Feed {
    spec: Spec,
    rng: SplitMix64,
    counts: Option<Zipf>,
    book: Book,
    /// Next sequence number, order number and match number.
    sequence: u64,
    order: u64,
    match_number: u64,
}

#[derive(Clone, Copy)]
enum MessageKind {
    Add,
    Attribute,
    Execute,
    ExecuteAt,
    Cancel,
    Delete,
    Replace,
    Trade,
}

impl Feed {
    /// Creates a feed that starts at sequence number 1.
    ///
    /// # Panics
    /// If a datagram could have no messages, or the share or weights are out of range.
    pub fn new(spec: Spec) -> Feed {
        let counts = match spec.counts {
            DatagramMessages::Exactly(count) => {
                assert!(count > 0, "a datagram has messages");
                None
            }
            DatagramMessages::Zipf { most, exponent } => {
                assert!(most > 0 && exponent > 0.0, "a datagram has messages");
                Some(Zipf::new(most.into(), exponent))
            }
        };
        assert!((0.0..=1.0).contains(&spec.share), "a share is from 0 to 1");
        let mix = &spec.mix;
        assert!(mix.add + mix.attribute + mix.trade > 0, "there are orders or trades");
        let rng = SplitMix64::new(spec.seed);
        Feed { spec, rng, counts, book: Book::default(), sequence: 1, order: 1, match_number: 1 }
    }

    /// Returns the payload of the next datagram. Its messages have the given timestamp, in ns since midnight.
    pub fn datagram(&mut self, timestamp_ns: u64) -> Vec<u8> {
        let count = match (&self.spec.counts, &self.counts) {
            (_, Some(zipf)) => 1 + zipf.next(&mut self.rng) as u16,
            (DatagramMessages::Exactly(count), None) => *count,
            (DatagramMessages::Zipf { .. }, None) => unreachable!("made with the feed"),
        };
        let messages: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let mut bytes = Vec::with_capacity(Trade::LEN);
                self.message(timestamp_ns).emit(&mut bytes);
                bytes
            })
            .collect();
        let payload = moldudp64::datagram(self.spec.session, self.sequence, &messages);
        self.sequence += u64::from(count);
        payload
    }

    /// Returns the next message. A kind that needs an open order becomes a new order if there is none.
    pub(crate) fn message(&mut self, timestamp_ns: u64) -> Message {
        let mix = self.spec.mix;
        let kind = self.rng.pick(&[
            (mix.add, MessageKind::Add),
            (mix.attribute, MessageKind::Attribute),
            (mix.execute, MessageKind::Execute),
            (mix.execute_at, MessageKind::ExecuteAt),
            (mix.cancel, MessageKind::Cancel),
            (mix.delete, MessageKind::Delete),
            (mix.replace, MessageKind::Replace),
            (mix.trade, MessageKind::Trade),
        ]);
        let (stock_locate, body) = match kind {
            MessageKind::Add => None,
            MessageKind::Trade => Some(self.trade()),
            MessageKind::Attribute => Some(self.attribute()),
            MessageKind::Execute => self.execute(),
            MessageKind::ExecuteAt => self.execute_at(),
            MessageKind::Cancel => self.cancel(),
            MessageKind::Delete => self.delete(),
            MessageKind::Replace => self.replace(),
        }
        .unwrap_or_else(|| self.add());
        Message { header: MessageHeader { stock_locate, tracking: 0, timestamp_ns }, body }
    }

    fn add(&mut self) -> (u16, Body) {
        let (stock_locate, stock) = self.stock();
        let order = self.number();
        let (side, shares, price) = (self.side(), self.shares(), self.price());
        self.book.add(Order { number: order, stock_locate, shares }, &mut self.rng);
        (stock_locate, AddOrder { order, side, shares, stock, price }.into())
    }

    fn attribute(&mut self) -> (u16, Body) {
        let attribution = *PARTICIPANTS[self.rng.below(PARTICIPANTS.len() as u64) as usize];
        let (stock_locate, body) = self.add();
        let Body::AddOrder(AddOrder { order, side, shares, stock, price }) = body else {
            unreachable!("an order was added")
        };
        (stock_locate, AddOrderAttributed { order, side, shares, stock, price, attribution }.into())
    }

    fn trade(&mut self) -> (u16, Body) {
        let (stock_locate, stock) = self.stock();
        let (side, shares, price) = (self.side(), self.shares(), self.price());
        let match_number = self.next_match();
        (stock_locate, Trade { order: 0, side, shares, stock, price, match_number }.into())
    }

    fn execute(&mut self) -> Option<(u16, Body)> {
        let (order, executed) = self.book.reduce(true, &mut self.rng)?;
        let match_number = self.next_match();
        Some((order.stock_locate, OrderExecuted { order: order.number, executed, match_number }.into()))
    }

    /// Nine of ten executions are printable; the others are reported again in bulk.
    fn execute_at(&mut self) -> Option<(u16, Body)> {
        let (order, executed) = self.book.reduce(true, &mut self.rng)?;
        let match_number = self.next_match();
        let printable = if self.rng.percent(90) { b'Y' } else { b'N' };
        let price = self.price();
        let body = OrderExecutedWithPrice { order: order.number, executed, match_number, printable, price };
        Some((order.stock_locate, body.into()))
    }

    fn cancel(&mut self) -> Option<(u16, Body)> {
        let (order, cancelled) = self.book.reduce(false, &mut self.rng)?;
        Some((order.stock_locate, OrderCancel { order: order.number, cancelled }.into()))
    }

    fn delete(&mut self) -> Option<(u16, Body)> {
        let order = self.book.take(&mut self.rng)?;
        Some((order.stock_locate, OrderDelete { order: order.number }.into()))
    }

    fn replace(&mut self) -> Option<(u16, Body)> {
        let old = self.book.take(&mut self.rng)?;
        let (replacement, shares, price) = (self.number(), self.shares(), self.price());
        self.book.add(Order { number: replacement, shares, ..old }, &mut self.rng);
        Some((old.stock_locate, OrderReplace { order: old.number, replacement, shares, price }.into()))
    }

    /// Returns a stock and its locate code: 1 for the stock of interest, then the others, from `S0002`.
    fn stock(&mut self) -> (u16, Symbol) {
        if self.spec.others == 0 || self.rng.fraction() < self.spec.share {
            return (1, self.spec.symbol);
        }
        let locate = 2 + self.rng.below(self.spec.others.into()) as u16;
        (locate, Feed::symbol(locate))
    }

    /// Returns the symbol of one of the other stocks, which have the locate codes from 2 on.
    pub(crate) fn symbol(locate: u16) -> Symbol {
        format!("S{locate:04}").parse().expect("five or six letters and digits")
    }

    fn number(&mut self) -> u64 {
        self.order += 1;
        self.order - 1
    }

    fn next_match(&mut self) -> u64 {
        self.match_number += 1;
        self.match_number - 1
    }

    fn side(&mut self) -> Side {
        if self.rng.percent(50) { Side::Buy } else { Side::Sell }
    }

    /// Returns a number of round lots, 100 to 1,000 shares.
    fn shares(&mut self) -> u32 {
        100 * (1 + self.rng.below(10) as u32)
    }

    /// Returns a price from 1 to 1,000 dollars, in whole cents.
    fn price(&mut self) -> Price {
        Price(100 * (100 + self.rng.below(99_901) as u32))
    }
}

/// A generated feed has no end and no times of its own.
impl DatagramSource for Feed {
    fn prepare(&mut self) -> Result<Option<u64>, BinaryFileError> {
        Ok(Some(0))
    }

    fn take(&mut self, timestamp_ns: u64) -> Vec<u8> {
        self.datagram(timestamp_ns)
    }

    fn next_sequence(&self) -> u64 {
        self.sequence
    }

    fn session(&self) -> [u8; 10] {
        self.spec.session
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{Mix, Workload};

    fn messages(spec: Spec, datagrams: usize) -> Vec<Vec<Message>> {
        let mut feed = Feed::new(spec);
        (0..datagrams).map(|_| crate::messages(&feed.datagram(5)).unwrap()).collect()
    }

    #[test]
    fn the_workloads_have_the_shares_and_counts_of_the_talk() {
        for workload in Workload::ALL {
            let spec = workload.spec(7);
            let datagrams = messages(spec.clone(), 20_000);
            let all: Vec<&Message> = datagrams.iter().flatten().collect();
            let wanted = all.iter().filter(|message| message.stock() == Some(spec.symbol)).count();
            let share = wanted as f64 / all.len() as f64;
            let deviation = (spec.share * (1.0 - spec.share) / all.len() as f64).sqrt();
            assert!((share - spec.share).abs() <= 4.0 * deviation, "{}: {share}", workload.name());
            let most = datagrams.iter().map(Vec::len).max();
            let single = datagrams.iter().filter(|messages| messages.len() == 1).count();
            match workload {
                // The sum 1/1 + ... + 1/12 is about 3.1, so that a share of 1/3.1 has one message.
                Workload::Synthetic => assert!(most == Some(12) && (6_200..6_700).contains(&single), "{single}"),
                Workload::WorstCase => assert!(most == Some(12) && single == 0),
                Workload::Sample => assert_eq!((most, single), (Some(1), 20_000)),
            }
        }
    }

    #[test]
    fn orders_have_a_consistent_life_cycle() {
        let spec = Spec { mix: Mix::BOOK, ..Workload::Synthetic.spec(3) };
        let mut open: HashMap<u64, (u16, u32)> = HashMap::new();
        let mut kinds: HashMap<u8, u32> = HashMap::new();
        for Message { header, body } in messages(spec, 20_000).into_iter().flatten() {
            *kinds.entry(body.letter()).or_default() += 1;
            let locate = header.stock_locate;
            match body {
                Body::AddOrder(add) => assert!(open.insert(add.order, (locate, add.shares)).is_none()),
                Body::AddOrderAttributed(add) => assert!(open.insert(add.order, (locate, add.shares)).is_none()),
                Body::OrderExecuted(part) => reduce(&mut open, part.order, locate, part.executed),
                Body::OrderExecutedWithPrice(part) => reduce(&mut open, part.order, locate, part.executed),
                Body::OrderCancel(part) => {
                    reduce(&mut open, part.order, locate, part.cancelled);
                    assert!(open.contains_key(&part.order), "a cancel leaves something");
                }
                Body::OrderDelete(delete) => assert_eq!(open.remove(&delete.order).map(|(at, _)| at), Some(locate)),
                Body::OrderReplace(replace) => {
                    assert_eq!(open.remove(&replace.order).map(|(at, _)| at), Some(locate));
                    assert!(open.insert(replace.replacement, (locate, replace.shares)).is_none());
                }
                _ => {}
            }
        }
        assert!("AFECXDUP".bytes().all(|letter| kinds[&letter] > 100), "{kinds:?}");
    }

    fn reduce(open: &mut HashMap<u64, (u16, u32)>, order: u64, locate: u16, by: u32) {
        let (at, shares) = open.get_mut(&order).expect("an open order");
        assert_eq!(*at, locate);
        *shares = shares.checked_sub(by).expect("no more than there are");
        if *shares == 0 {
            open.remove(&order);
        }
    }

    #[test]
    fn a_seed_is_a_feed() {
        let feed = |seed| messages(Workload::Synthetic.spec(seed), 100);
        assert_eq!(feed(1), feed(1));
        assert_ne!(feed(1), feed(2));
    }
}
