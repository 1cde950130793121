//! Measures the time from a client to the switch and back: of a read, of a write, and of an echo with as many bytes.
//!
//! ```text
//!   plain, read   client ─> switch ─> client
//!   write         client ─> switch ─> store (─> store ─> store) ─> switch ─> client
//!   relay         client ─> relay  ─> echo  (─> echo ─> echo)   ─> relay  ─> client
//!   echo                    socket ─> echo ─> socket
//! ```
//!
//! The client polls; all others sleep when there is nothing to do, on one processor.

use std::error::Error;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use ports::{Frame, Port, XdpPort, XdpSettings};

use crate::Settings;
use crate::applications::{KEY_VALUE, Programs};
use crate::echo::{ECHO, RELAY};
use crate::figures::{median, sorted};
use crate::site::{SWITCH_ADDRESS, SWITCH_PROCESSOR, Site, store_address};
use crate::wire_client::write_length;

/// Number of frames in a round.
const COUNT: usize = 400;
/// Time after which an answer counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(10);
/// Number of keys.
const KEYS: usize = 128;
/// Bytes of a row of the key-value store.
const ROW_BYTES: usize = 8;
/// Time within which switches have their machine code.
const COMPILE_TIME: Duration = Duration::from_millis(1500);

const READ: u8 = 0;
const ADD: u8 = 2;

/// A measurement: its name, its place, and the operation.
const PATHS: [(&str, usize, u8); 7] = [
    ("plain program, read", 0, READ),
    ("read of an owned row, one store", 1, READ),
    ("write, one store", 1, ADD),
    ("write, chain of three", 2, ADD),
    ("relay and an echo", 3, ADD),
    ("relay and three echoes", 4, ADD),
    ("plain program, write", 0, ADD),
];

/// Measures all paths and prints them.
pub fn measure(settings: &Settings, programs: &Programs, directory: &Path) -> Result<(), Box<dyn Error>> {
    let bytes = write_length(ROW_BYTES);
    let mut sites = sites(bytes, programs, directory)?;
    let echo = sites[3].switch.enter(|| UdpSocket::bind((SWITCH_ADDRESS.ip(), 0)))??;
    let open = |site: &Site| -> Result<XdpPort, Box<dyn Error>> {
        Ok(site.client.enter(|| XdpPort::open("eth0", XdpSettings::default()))??)
    };
    let mut clients: Vec<XdpPort> = sites.iter().map(open).collect::<Result<_, _>>()?;
    std::thread::sleep(COMPILE_TIME);
    for (_, at, operation) in PATHS {
        round_trips(&mut clients[at], operation, settings.gap)?;
    }
    let mut rounds: Vec<Vec<[f64; 2]>> = Vec::new();
    for _ in 0..settings.rounds {
        let mut round = Vec::new();
        for (_, at, operation) in PATHS {
            round.push(quantiles(&round_trips(&mut clients[at], operation, settings.gap)?));
        }
        round.push(quantiles(&echoes(&echo, bytes, settings.gap)?));
        rounds.push(round);
    }
    println!(
        "\nFrom the client to the switch and back, us; {COUNT} frames a round, {:?} apart; datagrams of {bytes} bytes\n",
        settings.gap
    );
    println!("| | median (range of the rounds) | p99 |\n|---|---|---|");
    let names = PATHS.iter().map(|(name, ..)| *name).chain(["echo alone, from a socket beside the switch"]);
    for (at, name) in names.enumerate() {
        let medians = sorted(rounds.iter().map(|round| round[at][0]));
        let p99 = median(rounds.iter().map(|round| round[at][1]));
        let (first, last) = (medians[0], medians[medians.len() - 1]);
        println!("| {name} | {:.1} ({first:.1} to {last:.1}) | {p99:.1} |", medians[medians.len() / 2]);
    }
    println!("\n| ratio | median (range) | wanted |\n|---|---|---|");
    let tell = |name: &str, wanted: &str, of: &dyn Fn(&Vec<[f64; 2]>) -> f64| {
        let ratios = sorted(rounds.iter().map(of));
        let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
        println!("| {name} | **{:.2}** ({first:.2} to {last:.2}) | {wanted} |", ratios[ratios.len() / 2]);
    };
    tell("read of an owned row / plain program", "1.05", &|round| round[1][0] / round[0][0]);
    tell("write, one store / relay and an echo", "1.5", &|round| round[2][0] / round[4][0]);
    tell("write, chain of three / relay and three echoes", "1.5", &|round| round[3][0] / round[5][0]);
    tell("time that a write adds to a read / echo alone", "1.5", &|round| (round[2][0] - round[1][0]) / round[7][0]);
    for site in &mut sites {
        site.stop_switch()?;
    }
    Ok(())
}

/// Starts the plain program, the annotated one with one and with three stores, and relays with one and three echoes.
fn sites(bytes: usize, programs: &Programs, directory: &Path) -> Result<Vec<Site>, Box<dyn Error>> {
    let new = |name: &str| Site::new(directory.join(format!("latency-{name}")));
    let mut plain = new("plain")?;
    plain.start_switch(&programs.path(&KEY_VALUE, true), None)?;
    let mut sites = vec![plain];
    for stores in [1, 3] {
        let mut site = new(&format!("stores-{stores}"))?;
        site.start_stores(stores, "1s", SWITCH_PROCESSOR)?;
        site.start_switch(&programs.path(&KEY_VALUE, false), None)?;
        sites.push(site);
    }
    let own = SWITCH_ADDRESS.to_string();
    for echoes in [1, 3] {
        let mut site = new(&format!("echoes-{echoes}"))?;
        for number in 1..=echoes {
            // Without a next address, an echo answers the sender.
            let next = match (echoes, number) {
                (1, _) => String::new(),
                (_, 3) => own.clone(),
                _ => store_address(number + 1).to_string(),
            };
            site.start_own_store(&[ECHO, &store_address(number).to_string(), &next])?;
        }
        site.start_own_switch(&[RELAY, &own, &store_address(1).to_string(), &bytes.to_string()])?;
        sites.push(site);
    }
    Ok(sites)
}

/// Sends requests one at a time, `gap` after the last answer, and returns the times until their answers, in
/// nanoseconds. Answers that do not arrive in time are left out.
fn round_trips(client: &mut XdpPort, operation: u8, gap: Duration) -> Result<Vec<u64>, Box<dyn Error>> {
    let (mut batch, mut times): (Vec<Frame>, Vec<u64>) = (Vec::new(), Vec::with_capacity(COUNT));
    for number in 0..COUNT {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6, operation, 0, (number % KEYS) as u8];
        frame.extend([0, 0, 0, 1]);
        frame.resize(60, 0);
        let until = Instant::now() + gap;
        while Instant::now() < until {
            client.receive_frames(&mut batch, 64)?;
        }
        batch.clear();
        let sent = Instant::now();
        client.send(&frame)?;
        client.flush()?;
        while sent.elapsed() < ANSWER_TIMEOUT {
            if client.receive_frames(&mut batch, 1)? > 0 && batch.iter().any(|answer| answer[12..17] == frame[12..17]) {
                times.push(sent.elapsed().as_nanos() as u64);
                break;
            }
            batch.clear();
        }
    }
    Ok(times)
}

/// Sends datagrams to the echo one at a time from this process, which polls like the client.
fn echoes(socket: &UdpSocket, bytes: usize, gap: Duration) -> Result<Vec<u64>, Box<dyn Error>> {
    socket.set_nonblocking(true)?;
    let (datagram, mut buffer) = (vec![0; bytes], [0; 2048]);
    let mut times = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let until = Instant::now() + gap;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let sent = Instant::now();
        socket.send_to(&datagram, store_address(1))?;
        while sent.elapsed() < ANSWER_TIMEOUT {
            if socket.recv_from(&mut buffer).is_ok() {
                times.push(sent.elapsed().as_nanos() as u64);
                break;
            }
        }
    }
    Ok(times)
}

/// Returns the median and the 99th percentile of nanoseconds, in microseconds.
fn quantiles(times: &[u64]) -> [f64; 2] {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).map_or(f64::NAN, |time| *time as f64 / 1e3);
    [at(0.5), at(0.99)]
}
