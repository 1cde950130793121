//! A client of stores over UDP, like a switch, and a peer that exchanges as many bytes: it keeps requests under way and
//! counts the replies.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use resilient::message::{IfMissing, ReplyBody, Request, RequestBody};
use resilient::sealed::TAG_BYTES;
use resilient::{DatagramSealer, OwnerId, Peer, RowAccess, RowId, RowValues, ShardId, StoreMessage};
use resilient_store::Cluster;
use switch::Time;

/// Number of rows that the client owns and writes in turn.
const ROWS: usize = 512;

/// Group of the rows.
const GROUP: u64 = 0x7265_6469;

/// Maximum time of an answer before it counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum time of a step that is not measured.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// A row of the client.
#[derive(Clone, Copy, Debug)]
struct OwnedRow {
    id: RowId,
    epoch: u64,
    seq: u64,
}

/// Requests in datagrams, ready to be sent.
pub struct Requests {
    pub datagrams: Vec<Vec<u8>>,
    /// Number of requests in each datagram.
    pub each: usize,
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that timed out.
    pub lost: u64,
    pub elapsed: Duration,
}

impl Answered {
    /// Returns requests per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }
}

/// The client, in the role of a switch.
pub struct WireClient {
    pub socket: UdpSocket,
    cluster: Cluster,
    sealer: DatagramSealer,
    owner: OwnerId,
    layout: u64,
    head: (Peer, SocketAddr),
    rows: Vec<OwnedRow>,
    next: usize,
    started: Instant,
}

impl WireClient {
    /// Takes the place of a cluster's first switch, with a socket at its address. Acquires the rows. With `polls`, it
    /// polls for answers, and so occupies a core; otherwise it sleeps until they arrive.
    ///
    /// # Errors
    /// If the stores do not answer.
    pub fn connect(cluster: Cluster, socket: UdpSocket, start: u64, polls: bool) -> Result<WireClient, Box<dyn Error>> {
        let me = cluster.switches().next().ok_or("the cluster has no switch")?.peer;
        let head = cluster.stores().next().ok_or("the cluster has no store")?;
        let head = (head.peer, head.address);
        let owner = OwnerId { switch: me.switch().ok_or("it is a switch")?, incarnation: start };
        let (sealer, layout) = (cluster.sealer(me, start), cluster.layout(1).epoch());
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.set_nonblocking(polls)?;
        let (rows, next, started) = (Vec::new(), 0, Instant::now());
        let mut client = WireClient { socket, cluster, sealer, owner, layout, head, rows, next, started };
        client.acquire()?;
        Ok(client)
    }

    fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64)
    }

    fn request(&self, body: RequestBody) -> (Peer, StoreMessage) {
        (self.head.0, StoreMessage::Request(Request { layout: self.layout, owner: self.owner, body }))
    }

    fn send_sealed(&mut self) -> io::Result<()> {
        for (to, datagram) in self.sealer.take_outgoing() {
            let Some(address) = self.cluster.address_of(to) else { continue };
            self.socket.send_to(&datagram, address)?;
        }
        Ok(())
    }

    /// Receives and opens a datagram, and answers a hello.
    fn receive(&mut self) -> Result<Vec<StoreMessage>, Box<dyn Error>> {
        let mut buffer = [0; 2048];
        match self.socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let peer = self.cluster.peer_at(from).ok_or("a stranger sent a datagram")?;
                let messages = self.sealer.open(self.now(), peer, &buffer[..length]);
                self.send_sealed()?;
                Ok(messages)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Renews the session, so that it lasts for a lease.
    ///
    /// # Errors
    /// If the stores do not answer.
    pub fn renew(&mut self) -> Result<(), Box<dyn Error>> {
        let renew = self.request(RequestBody::Renew { shard: ShardId(0), nonce: self.now().as_ns() + 1 });
        self.repeat(&[renew], |reply| matches!(reply, ReplyBody::Renewed { .. }), 1).map(drop)
    }

    fn acquire(&mut self) -> Result<(), Box<dyn Error>> {
        self.renew()?;
        for index in 0..ROWS as u32 {
            let (row, ask) = (RowId::of_index(GROUP, index), u64::from(index) + 1);
            let ask = self.request(RequestBody::Acquire {
                row,
                ask,
                if_missing: IfMissing::Grant,
                idle_ms: 0,
                access: RowAccess::Write,
            });
            let is_it = |reply: &ReplyBody| matches!(reply, ReplyBody::Granted { row: granted, .. } if *granted == row);
            let granted = self.repeat(&[ask], is_it, 1)?;
            let Some(ReplyBody::Granted { epoch, seq, .. }) = granted.first() else {
                return Err("a row is not granted".into());
            };
            self.rows.push(OwnedRow { id: row, epoch: *epoch, seq: *seq });
        }
        Ok(())
    }

    /// Retransmits messages until this number of replies has arrived.
    fn repeat(
        &mut self,
        messages: &[(Peer, StoreMessage)],
        is_wanted: impl Fn(&ReplyBody) -> bool,
        count: usize,
    ) -> Result<Vec<ReplyBody>, Box<dyn Error>> {
        let (begin, mut replies) = (Instant::now(), Vec::new());
        while begin.elapsed() < STEP_TIMEOUT {
            self.sealer.send(self.now(), messages);
            self.send_sealed()?;
            let sent = Instant::now();
            while sent.elapsed() < ANSWER_TIMEOUT {
                for message in self.receive()? {
                    if let StoreMessage::Reply(reply) = message
                        && is_wanted(&reply.body)
                    {
                        replies.push(reply.body);
                    }
                }
                if replies.len() >= count {
                    return Ok(replies);
                }
                std::thread::yield_now();
            }
        }
        Err("the stores do not answer".into())
    }

    /// Returns sealed writes of rows in turn, with new values of `bytes` bytes. They must be sent in order, before
    /// anything else.
    pub fn writes(&mut self, datagrams: usize, each: usize, bytes: usize) -> Requests {
        let now = self.now();
        let mut writes = |_| {
            let messages: Vec<_> = (0..each).map(|_| self.write(bytes)).collect();
            self.sealer.send(now, &messages);
            let mut sealed = self.sealer.take_outgoing().map(|(_, datagram)| datagram);
            let datagram = sealed.next().expect("the stores' start is known");
            assert!(sealed.next().is_none(), "the writes fit a datagram");
            datagram
        };
        Requests { datagrams: (0..datagrams).map(&mut writes).collect(), each }
    }

    fn write(&mut self, bytes: usize) -> (Peer, StoreMessage) {
        let row = &mut self.rows[self.next % ROWS];
        self.next += 1;
        row.seq += 1;
        let OwnedRow { id, epoch, seq } = *row;
        let values = RowValues::new(&vec![seq as u8; bytes]);
        self.request(RequestBody::Write { row: id, epoch, seq, values, outputs: None })
    }

    /// Sends requests to the first store, with at most `window` of them under way, for at most `time`.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn measure(&self, requests: &Requests, window: usize, time: Duration) -> io::Result<Answered> {
        exchange(&self.socket, self.head.1, requests, (window, time), count_messages)
    }
}

/// Returns the length of a datagram that writes one row, in bytes.
pub fn write_length(bytes: usize) -> usize {
    let owner = OwnerId { switch: resilient::SwitchId(1), incarnation: 1 };
    let values = RowValues::new(&vec![0; bytes]);
    let body = RequestBody::Write { row: RowId::of_index(GROUP, 0), epoch: 1, seq: 1, values, outputs: None };
    let message = StoreMessage::Request(Request { layout: 1, owner, body });
    resilient::wire_form::datagram(&message).len() + TAG_BYTES
}

/// Returns the number of messages in a sealed datagram.
fn count_messages(datagram: &[u8]) -> u64 {
    resilient::sealed::peek(datagram).map_or(0, |messages| messages.len() as u64)
}

/// Sends requests to an address, with at most `window` of them under way, for at most `time`. `count` returns the
/// number of replies in a datagram.
///
/// # Errors
/// If the socket cannot be used.
pub fn exchange(
    socket: &UdpSocket,
    to: SocketAddr,
    requests: &Requests,
    (window, time): (usize, Duration),
    count: impl Fn(&[u8]) -> u64,
) -> io::Result<Answered> {
    let mut buffer = [0; 2048];
    let (mut under_way, mut answered, mut lost) = (0, 0, 0);
    let mut datagrams = requests.datagrams.iter();
    let (begin, mut heard) = (Instant::now(), Instant::now());
    while begin.elapsed() < time {
        if under_way + requests.each <= window {
            let Some(datagram) = datagrams.next() else { break };
            socket.send_to(datagram, to)?;
            under_way += requests.each;
            continue;
        }
        match socket.recv_from(&mut buffer) {
            Ok((length, _)) => {
                let replies = count(&buffer[..length]);
                answered += replies;
                under_way = under_way.saturating_sub(replies as usize);
                heard = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if heard.elapsed() > ANSWER_TIMEOUT {
                    (lost, under_way, heard) = (lost + under_way as u64, 0, Instant::now());
                }
            }
            Err(error) => return Err(error),
        }
    }
    let elapsed = begin.elapsed();
    // Drains the replies that are still under way.
    let end = Instant::now();
    while under_way > 0 && end.elapsed() < ANSWER_TIMEOUT {
        if let Ok((length, _)) = socket.recv_from(&mut buffer) {
            under_way = under_way.saturating_sub(count(&buffer[..length]) as usize);
        }
    }
    let elapsed = elapsed.max(Duration::from_nanos(1));
    Ok(Answered { requests: answered, lost, elapsed })
}
