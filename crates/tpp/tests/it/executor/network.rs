//! A network that loses, copies, delays and damages datagrams, with hosts that echo programs and one that lies.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use rng::SplitMix64;
use tpp::executor::{OutgoingProgram, RequestId};
use tpp::probe::echo;
use tpp::{AccessRights, SwitchMemory, Tcpu};
use wire::tpp::{Packet, Status, UDP_PORT};

/// `Switch:Clock`, whose halves are equal at each execution.
pub const CLOCK: u16 = 0x0004;
/// Words of applications of the switch.
pub const FIRST_WORD: u16 = 0x0800;
pub const WORDS: u16 = 8;

/// Returns what a switch has at an address that never changes.
pub fn fixed(switch: u32, address: u32) -> Option<u64> {
    match address {
        0 => Some(switch.into()),
        0x3000..0x3040 => Some(rng::mix([switch.into(), address.into(), 5])),
        _ => None,
    }
}

/// A store by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedStore {
    pub request: Option<RequestId>,
    pub address: u16,
    pub value: u32,
}

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    pub id: u32,
    clock: u32,
    pub words: BTreeMap<u16, u32>,
    pub log: Vec<LoggedStore>,
    /// The request whose program is executed.
    current: Option<RequestId>,
}

impl Switch {
    fn new(id: u32) -> Switch {
        let words = (0..WORDS).map(|word| (FIRST_WORD + 2 * word, 0)).collect();
        Switch { id, clock: 0, words, log: Vec::new(), current: None }
    }
}

impl SwitchMemory for Switch {
    fn read(&mut self, address: u32) -> Option<u64> {
        if address == u32::from(CLOCK) {
            self.clock += 1;
            return Some(u64::from(self.clock) << 32 | u64::from(self.clock));
        }
        let word = u16::try_from(address).ok().and_then(|address| self.words.get(&address));
        word.map(|word| u64::from(*word)).or(fixed(self.id, address))
    }

    fn write(&mut self, address: u16, value: u32) -> Option<()> {
        *self.words.get_mut(&address)? = value;
        self.log.push(LoggedStore { request: self.current, address, value });
        Some(())
    }

    fn swap(&mut self, address: u16, old: u32, new: u32) -> Option<u32> {
        let prior = *self.words.get(&address)?;
        if prior == old {
            self.write(address, new)?;
        }
        Some(prior)
    }
}

/// Chances in percent, and the longest delay of a way in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: u64,
    pub copies: u64,
    pub damage: u64,
    pub lies: u64,
    pub delay_ns: u64,
}

enum Event {
    /// A program passes the switches.
    Program { request: RequestId, to: IpAddr, datagram: Vec<u8> },
    /// A datagram arrives at the executor.
    Reply { from: (IpAddr, u16), datagram: Vec<u8>, is_genuine: bool },
    /// Another host stores a value.
    Write { switch: usize, address: u16, value: u32 },
}

/// A reply that arrived.
pub struct Reply {
    pub from: (IpAddr, u16),
    pub datagram: Vec<u8>,
    /// Whether it is an echo as its host sent it.
    pub is_genuine: bool,
}

pub struct Network {
    pub switches: Vec<Switch>,
    /// The switches to each target, by index, and whether the target echoes.
    pub paths: Vec<(Vec<usize>, bool)>,
    faults: Faults,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    rng: SplitMix64,
}

pub fn address(target: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, target as u8 + 1).into()
}

impl Network {
    pub fn new(switches: usize, paths: Vec<(Vec<usize>, bool)>, faults: Faults, seed: u64) -> Network {
        let switches = (1..=switches as u32).map(Switch::new).collect();
        Network { switches, paths, faults, events: BTreeMap::new(), count: 0, rng: SplitMix64::new(seed) }
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.count += 1;
        self.events.insert((at_ns, self.count), event);
    }

    /// Lets another host store a value at a time.
    pub fn write_at(&mut self, at_ns: u64, switch: usize, address: u16, value: u32) {
        self.at(at_ns, Event::Write { switch, address, value });
    }

    /// Returns the times at which the copies of a datagram arrive.
    fn arrivals(&mut self, now_ns: u64) -> Vec<u64> {
        let copies = 1 + u64::from(self.rng.percent(self.faults.copies));
        let delays = (0..copies).map(|_| now_ns + 1 + self.rng.below(self.faults.delay_ns));
        delays.collect()
    }

    pub fn send(&mut self, now_ns: u64, outgoing: OutgoingProgram) {
        for at_ns in self.arrivals(now_ns) {
            let OutgoingProgram { request, to, datagram } = outgoing.clone();
            self.at(at_ns, Event::Program { request, to, datagram });
        }
    }

    pub fn next(&self) -> Option<u64> {
        self.events.keys().next().map(|(at_ns, _)| *at_ns)
    }

    /// Lets everything happen that is due. Returns the replies that arrived.
    pub fn poll(&mut self, now_ns: u64) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            match entry.remove() {
                Event::Program { request, to, datagram } => self.pass(now_ns, request, to, datagram),
                Event::Reply { from, datagram, is_genuine } => replies.push(Reply { from, datagram, is_genuine }),
                Event::Write { switch, address, value } => {
                    self.switches[switch].current = None;
                    self.switches[switch].write(address, value).expect("the word exists");
                }
            }
        }
        replies
    }

    /// Lets a program pass its switches. It may be lost before each of them.
    fn pass(&mut self, now_ns: u64, request: RequestId, to: IpAddr, mut datagram: Vec<u8>) {
        let target = (0..self.paths.len()).find(|target| address(*target) == to).expect("a target");
        let (path, is_echoing) = self.paths[target].clone();
        // The chance of a loss is that of the whole way.
        let lost_at = self.rng.percent(self.faults.loss).then(|| self.rng.below(path.len() as u64 + 1) as usize);
        let mut is_reflected = false;
        for (hop, switch) in path.into_iter().enumerate() {
            if lost_at == Some(hop) {
                return;
            }
            self.switches[switch].current = Some(request);
            is_reflected = Tcpu::execute(&mut datagram, &mut self.switches[switch], &AccessRights::all()).reflect;
            if is_reflected {
                break;
            }
        }
        let returns = is_reflected || is_echoing && echo(40_000, &mut datagram);
        if lost_at.is_some() || !returns {
            return;
        }
        self.lie(now_ns, to, &datagram);
        if self.rng.percent(self.faults.loss) {
            return;
        }
        for at_ns in self.arrivals(now_ns) {
            let (mut datagram, mut is_genuine) = (datagram.clone(), true);
            if self.rng.percent(self.faults.damage) {
                let bit = self.rng.below(8 * datagram.len() as u64) as usize;
                datagram[bit / 8] ^= 1 << (bit % 8);
                is_genuine = false;
            }
            self.at(at_ns, Event::Reply { from: (to, UDP_PORT), datagram, is_genuine });
        }
    }

    /// Sends a datagram that no receiver of the program sent.
    fn lie(&mut self, now_ns: u64, to: IpAddr, echo: &[u8]) {
        if !self.rng.percent(self.faults.lies) {
            return;
        }
        let mut bytes = echo.to_vec();
        let mut packet = Packet::new_checked(&mut bytes[..]).expect("an echo");
        packet.memory_mut().iter_mut().for_each(|byte| *byte ^= 0x5a);
        packet.fill_checksum();
        let (len, words) = (bytes.len(), u64::from(len_of(echo)));
        let from = match self.rng.below(6) {
            // From another address, or another port.
            0 => (address(self.paths.len()), UDP_PORT),
            1 => (to, 7),
            // With a tag that is guessed.
            2 => {
                bytes[len - 1] ^= 1 << self.rng.below(8);
                (to, UDP_PORT)
            }
            // With another program: words of another application, or other operands.
            3 => {
                bytes[11] ^= 1;
                Packet::new_checked(&mut bytes[..]).expect("an echo").fill_checksum();
                (to, UDP_PORT)
            }
            4 if words > 0 => {
                bytes[13] ^= 0x10;
                Packet::new_checked(&mut bytes[..]).expect("an echo").fill_checksum();
                (to, UDP_PORT)
            }
            _ => {
                bytes.truncate(self.rng.below(len as u64) as usize);
                bytes.iter_mut().take(2).for_each(|byte| *byte ^= Status::DONE.0);
                (to, UDP_PORT)
            }
        };
        self.at(now_ns + 1, Event::Reply { from, datagram: bytes, is_genuine: false });
    }
}

/// Returns the number of instructions of a program.
fn len_of(bytes: &[u8]) -> u8 {
    Packet::new_checked(bytes).map_or(0, |packet| packet.instruction_count() as u8)
}
