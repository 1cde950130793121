//! Measures chains of two stores over UDP on the loopback interface, compared with two redis servers.

use std::error::Error;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use resilient_store::{Cluster, StoreDirectory, StoreServer, random_number};

use crate::redis::RedisPair;
use crate::wire_client::{WireClient, write_length};

/// Numbers of writes under way.
const WINDOWS: [usize; 3] = [1, 64, 512];
/// Time of a measurement.
const TIME: Duration = Duration::from_millis(500);
const ROUNDS: usize = 7;
/// Length of values, in bytes.
const VALUE_BYTES: usize = 8;
/// Datagrams a second that are prepared, more than can be answered.
const MOST_A_SECOND: f64 = 200_000.0;

/// A chain of two stores, each in a thread, and its client. The threads end when this is dropped.
struct UdpChain {
    client: WireClient,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl UdpChain {
    fn start(directory: &Path, is_durable: bool) -> Result<UdpChain, Box<dyn Error>> {
        let mut text = "lease = \"60s\"\n".to_owned();
        let sockets = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
        for (name, socket) in ["stores.a", "stores.b", "switches.s"].into_iter().zip(&sockets) {
            text.push_str(&format!("[{name}]\naddress = \"{}\"\n", socket.local_addr()?));
        }
        let cluster = Cluster::read(&text, directory)?;
        let socket = sockets.into_iter().last().ok_or("there are three")?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for member in cluster.stores() {
            let path = directory.join(format!("chain-{is_durable}-{}", member.name));
            let mut directory = StoreDirectory::open(&path)?;
            let mut server = match is_durable {
                true => StoreServer::open_durable(&cluster, member, &mut directory, false)?,
                false => StoreServer::open(&cluster, member, &mut directory, false)?,
            };
            let stop = Arc::clone(&stop);
            threads.push(std::thread::spawn(move || {
                if let Err(error) = server.run(&stop) {
                    println!("a store has stopped: {error}");
                }
                drop(directory);
            }));
        }
        let client = WireClient::connect(cluster, socket, random_number(), false)?;
        Ok(UdpChain { client, stop, threads })
    }

    /// Keeps a number of writes under way for a time, and returns the acknowledged ones a second.
    fn measure(&mut self, window: usize) -> Result<f64, Box<dyn Error>> {
        let each = (window / 8).clamp(1, 10);
        self.client.renew()?;
        let writes = self.client.writes((MOST_A_SECOND * TIME.as_secs_f64()) as usize, each, VALUE_BYTES);
        let answered = self.client.measure(&writes, window, TIME)?;
        if answered.lost > 0 {
            println!("{} writes were lost", answered.lost);
        }
        Ok(answered.rate())
    }
}

impl Drop for UdpChain {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Measures chains and pairs of servers in turn, and prints the results.
pub fn compare(directory: &Path) -> Result<(), Box<dyn Error>> {
    let mut chains = [UdpChain::start(directory, false)?, UdpChain::start(directory, true)?];
    let pairs = [false, true].map(|is_durable| RedisPair::start(directory, is_durable));
    let mut pairs: Vec<Option<RedisPair>> =
        pairs.into_iter().map(|pair| pair.map_err(|error| println!("redis is left out: {error}")).ok()).collect();
    println!("\nchains of two over UDP, beside two servers of redis with SET and WAIT 1; acknowledged writes, K/s:");
    println!("median (range) of {ROUNDS} rounds; a datagram with one write has {} bytes\n", write_length(VALUE_BYTES));
    println!("| under way | chain in memory | redis | ratio | durable chain | redis, synced always | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for window in WINDOWS {
        let mut rounds: Vec<[f64; 4]> = Vec::new();
        for _ in 0..ROUNDS {
            let mut round = [f64::NAN; 4];
            for (at, (chain, pair)) in chains.iter_mut().zip(&mut pairs).enumerate() {
                round[2 * at] = chain.measure(window)?;
                if let Some(pair) = pair {
                    round[2 * at + 1] = pair.measure(window, TIME)?;
                }
            }
            rounds.push(round);
        }
        let told = |of: &dyn Fn(&[f64; 4]) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2} to {:.2})", values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let rate = |at: usize| told(&|round| round[at] / 1e3);
        let ratio = |at: usize| told(&|round| round[at] / round[at + 1]);
        let (memory, durable) = ((rate(0), rate(1), ratio(0)), (rate(2), rate(3), ratio(2)));
        println!(
            "| {window} | {} | {} | {} | {} | {} | {} |",
            memory.0, memory.1, memory.2, durable.0, durable.1, durable.2
        );
    }
    Ok(())
}
