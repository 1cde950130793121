//! Measures the requests that a store answers over UDP, compared with a bare echo of as many bytes.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use crate::Settings;
use crate::echo::ECHO;
use crate::figures::{median, sorted};
use crate::site::{SWITCH_PROCESSOR, Site, store_address};
use crate::wire_client::{Answered, WireClient, exchange};

/// Numbers of writes in a datagram, and of datagrams under way.
const SHAPES: [(usize, usize); 2] = [(1, 64), (10, 64)];
/// Bytes of a row's values.
const ROW_BYTES: usize = 8;
/// Datagrams a second that are prepared, more than can be answered.
const MOST_A_SECOND: f64 = 600_000.0;
/// A lease that does not have to be renewed within a round.
const LEASE: &str = "60s";

/// Results of one round: requests per second, and processor time of the server for a request, in nanoseconds.
type RoundFigures = [(f64, f64); 2];

/// Measures the store and the echo in turn, and prints the results.
pub fn measure(settings: &Settings, directory: &Path) -> Result<(), Box<dyn Error>> {
    let mut stored = Site::new(directory.join("store"))?;
    stored.start_stores(1, LEASE, SWITCH_PROCESSOR)?;
    let mut client = WireClient::connect(stored.cluster()?, stored.switch_socket()?, 7, true)?;
    let mut echoed = Site::new(directory.join("echo"))?;
    echoed.start_own_store(&[ECHO, &store_address(1).to_string()])?;
    let socket = echoed.switch_socket()?;
    socket.set_nonblocking(true)?;
    let time = Duration::from_secs_f64(settings.seconds);
    println!(
        "\nWrites over UDP, requests/s: median (range) of the rounds; processor time of the server, ns a request\n"
    );
    println!("| writes in a datagram, bytes | echo | store | ratio | ratio of processor times | wanted |");
    println!("|---|---|---|---|---|---|");
    for (each, datagrams) in SHAPES {
        let (mut rounds, mut bytes): (Vec<RoundFigures>, usize) = (Vec::new(), 0);
        for round in 0..=settings.rounds {
            client.renew()?;
            let requests = client.writes((MOST_A_SECOND * settings.seconds) as usize, each, ROW_BYTES);
            bytes = requests.datagrams[0].len();
            let window = each * datagrams;
            let by_echo =
                used(&echoed, || exchange(&socket, store_address(1), &requests, (window, time), |_| each as u64))?;
            let by_store = used(&stored, || client.measure(&requests, window, time))?;
            // The first one warms up.
            if round > 0 {
                rounds.push([by_echo, by_store]);
            }
        }
        let told = |at: usize| {
            let rates = sorted(rounds.iter().map(|round| round[at].0 / 1e3));
            let cpu = median(rounds.iter().map(|round| round[at].1));
            let (middle, last) = (rates[rates.len() / 2], rates[rates.len() - 1]);
            format!("{middle:.0} K ({:.0} to {last:.0}), {cpu:.0}", rates[0])
        };
        let ratio = median(rounds.iter().map(|[echo, store]| store.0 / echo.0));
        let cpu = median(rounds.iter().map(|[echo, store]| echo.1 / store.1));
        println!("| {each}, {bytes} | {} | {} | **{ratio:.2}** | {cpu:.2} | 0.8 |", told(0), told(1));
    }
    Ok(())
}

/// Measures, and returns requests per second and the processor time of the server for a request, in nanoseconds.
fn used(site: &Site, work: impl FnOnce() -> std::io::Result<Answered>) -> Result<(f64, f64), Box<dyn Error>> {
    let before = site.store_cpu();
    let answered = work()?;
    let used = site.store_cpu() - before;
    if answered.lost > 0 {
        println!("  {} requests were lost", answered.lost);
    }
    Ok((answered.rate(), used.as_nanos() as f64 / answered.requests.max(1) as f64))
}
