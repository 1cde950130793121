//! The feed: datagrams of new orders, and the ports that want each stock.

use rng::SplitMix64;

/// Number of messages of a datagram.
pub const MESSAGES: usize = 12;
/// Size of a message with its length.
pub const MESSAGE: usize = 38;
/// Size of the headers in front of the messages: Ethernet, IPv4, UDP, MoldUDP64.
pub const HEADERS: usize = 14 + 20 + 8 + 20;
/// Number of stocks, and of those that a subscriber wants.
const STOCKS: usize = 40;
const WANTED: usize = 20;
/// Offset of the stock's name in a message.
pub const STOCK: usize = 26;

#[derive(Clone)]
pub struct Feed {
    pub frames: Vec<Vec<u8>>,
    /// The ports that want each stock, from 1.
    pub wanted: Vec<Vec<u32>>,
}

/// Returns the name of a stock, filled up with spaces.
pub fn name(stock: usize) -> [u8; 8] {
    let mut name = *b"S       ";
    name[1] = b'A' + (stock / 26) as u8;
    name[2] = b'A' + (stock % 26) as u8;
    name
}

impl Feed {
    pub fn new(subscribers: u32, datagrams: usize) -> Feed {
        let mut rng = SplitMix64::new(1);
        let mut wanted = vec![Vec::new(); STOCKS];
        for port in 1..=subscribers {
            let mut stocks: Vec<usize> = (0..STOCKS).collect();
            for _ in 0..WANTED {
                let stock = stocks.swap_remove(rng.below(stocks.len() as u64) as usize);
                wanted[stock].push(port);
            }
        }
        let frames = (0..datagrams).map(|number| datagram(&mut rng, number)).collect();
        Feed { frames, wanted }
    }

    /// Gives all datagrams the session with this number.
    pub fn begin_session(&mut self, number: u64) {
        for frame in &mut self.frames {
            frame[42..52].copy_from_slice(format!("{number:010}").as_bytes());
        }
    }

    /// Returns the packets and bytes if each subscriber gets one packet with what it wants.
    pub fn minimum(&self) -> (usize, usize) {
        let (mut packets, mut bytes) = (0, 0);
        for frame in &self.frames {
            let mut messages = std::collections::BTreeMap::<u32, usize>::new();
            for message in frame[HEADERS..].chunks(MESSAGE) {
                let stock = (0..STOCKS).find(|stock| message[STOCK..STOCK + 8] == name(*stock)).expect("a stock");
                self.wanted[stock].iter().for_each(|port| *messages.entry(*port).or_default() += 1);
            }
            packets += messages.len();
            bytes += messages.values().map(|count| HEADERS + count * MESSAGE).sum::<usize>();
        }
        (packets, bytes)
    }
}

/// Returns the checksum of an IPv4 header whose checksum is 0.
pub fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn datagram(rng: &mut SplitMix64, number: usize) -> Vec<u8> {
    let udp = 8 + 20 + MESSAGES * MESSAGE;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 1, 1, 1];
    ip[2..4].copy_from_slice(&(20 + udp as u16).to_be_bytes());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend([0x30, 0x39, 0x67, 0x20]);
    frame.extend((udp as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(b"0000000000");
    frame.extend((1 + number as u64 * MESSAGES as u64).to_be_bytes());
    frame.extend((MESSAGES as u16).to_be_bytes());
    for _ in 0..MESSAGES {
        let mut message = vec![0, 36, b'A', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        message.extend(rng.below(u64::MAX).to_be_bytes());
        message.push(b'B');
        message.extend(100u32.to_be_bytes());
        message.extend(name(rng.below(STOCKS as u64) as usize));
        message.extend((rng.below(1 << 24) as u32).to_be_bytes());
        assert_eq!(message.len(), MESSAGE);
        frame.extend(message);
    }
    frame
}
