//! Tests an attacker that reads all datagrams, and sends from the addresses of all members, while a client writes.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use resilient::sealed::{HEADER_BYTES, TAG_BYTES};
use resilient::{ChainMember, NodeId, ShardChain, StoreLayout, StoreMessage, wire_form};
use resilient_store::create_key_file;

use crate::live::{Rig, request};

/// Maximum number of datagrams that the attacker keeps.
const MAX_RECORDED: usize = 4096;

/// Place of the counter in a datagram.
const COUNTER: std::ops::Range<usize> = HEADER_BYTES - 8..HEADER_BYTES;

/// Random numbers of the attacker (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % end
    }
}

/// A recorded datagram: its sender and receiver among the sockets, and its bytes.
struct Recorded {
    from: usize,
    to: usize,
    bytes: Vec<u8>,
}

struct Attacker {
    sockets: Vec<UdpSocket>,
    addresses: Vec<SocketAddr>,
    recorded: Vec<Recorded>,
    random: Random,
}

impl Attacker {
    /// Peeks at the next datagram of a socket.
    fn listen(&mut self, to: usize) {
        let mut buffer = [0; 2048];
        // The wait depends on the store's own thread; it is short, since messages arrive all the time.
        let Ok((length, address)) = self.sockets[to].peek_from(&mut buffer) else { return };
        let Some(from) = self.addresses.iter().position(|known| *known == address) else { return };
        let recorded = Recorded { from, to, bytes: buffer[..length].to_vec() };
        match self.recorded.len() {
            // The first ones are kept, because they include the hellos.
            MAX_RECORDED => {
                let at = 16 + self.random.below(MAX_RECORDED - 16);
                self.recorded[at] = recorded;
            }
            _ => self.recorded.push(recorded),
        }
    }

    /// Sends a datagram that is derived from recorded ones.
    fn attack(&mut self) {
        if self.recorded.is_empty() {
            return;
        }
        let at = self.random.below(self.recorded.len());
        let Recorded { from, to, ref bytes } = self.recorded[at];
        let mut bytes = bytes.clone();
        match self.random.below(4) {
            // A replay.
            0 => {}
            // A mutation.
            1 => {
                let at = self.random.below(bytes.len());
                bytes[at] ^= 1 << self.random.below(8);
            }
            // The same messages with an unused counter.
            2 => bytes[COUNTER].copy_from_slice(&(1_000_000 + self.random.0 % 1000).to_be_bytes()),
            // A layout without any store of the cluster, with the highest epoch.
            _ => {
                let chain = ShardChain { members: vec![ChainMember { node: NodeId(9), life: 9 }], learner: None };
                let layout = Arc::new(StoreLayout::new(u64::MAX, vec![chain]));
                let mut forged = wire_form::datagram(&StoreMessage::Layout(layout));
                forged[..HEADER_BYTES].copy_from_slice(&bytes[..HEADER_BYTES]);
                // A datagram with messages, even if a hello was recorded.
                forged[3] &= !1;
                let counter = [1_u64, 100, 1_000, 1_000_000][self.random.below(4)] + self.random.0 % 100;
                forged[COUNTER].copy_from_slice(&counter.to_be_bytes());
                forged.extend([7; TAG_BYTES]);
                bytes = forged;
            }
        }
        _ = self.sockets[from].send_to(&bytes, self.addresses[to]);
    }

    fn run(mut self, stop: Arc<AtomicBool>) -> JoinHandle<usize> {
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                (0..self.sockets.len()).for_each(|to| self.listen(to));
                (0..4).for_each(|_| self.attack());
                std::thread::sleep(Duration::from_micros(50));
            }
            // On a busy machine, this thread may have had little time until now.
            for _ in 0..2_000 {
                self.attack();
                std::thread::sleep(Duration::from_micros(20));
            }
            self.recorded.len()
        })
    }
}

/// A key file that is removed at the end.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new() -> KeyFile {
        let path = std::env::temp_dir().join(format!("triplane-attack-{}.key", std::process::id()));
        _ = std::fs::remove_file(&path);
        create_key_file(&path).expect("the key can be written");
        KeyFile(path)
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn forged_changed_and_repeated_datagrams_do_no_harm() {
    let key = KeyFile::new();
    let mut rig = Rig::with_key(2, Some(&key.0));
    let sockets = rig.taps();
    let addresses = sockets.iter().map(|socket| socket.local_addr().expect("it is bound")).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let attacker = Attacker { sockets, addresses, recorded: Vec::new(), random: Random(0x1234_5678_9abc_def1) };
    let attacker = attacker.run(Arc::clone(&stop));
    let mut first = rig.switch(0);
    for count in 1..=1500 {
        assert_eq!(first.run(vec![request(2, 3, 1)], 1), [(count, count as u16)]);
    }
    drop(first);
    let mut second = rig.switch(1);
    for count in 1501..=2000 {
        assert_eq!(second.run(vec![request(2, 3, 1)], 1), [(count, count as u16)]);
    }
    let refused = second.refused();
    assert!(refused.wrong_tag > 0, "{refused:?}");
    stop.store(true, Ordering::Relaxed);
    let recorded = attacker.join().expect("the attacker does not panic");
    assert!(recorded > 100, "the attacker has seen {recorded} datagrams");
    for store in rig.finish() {
        let refused = store.refused;
        assert_eq!(store.rows, 1);
        assert!(refused.wrong_tag > 0 && refused.replayed > 0, "{refused:?}");
    }
}
