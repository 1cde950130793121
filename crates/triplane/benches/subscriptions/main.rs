//! Measures the time from a subscriber's request for a rule to the last table entry that the rule needs in the switch,
//! by the number of symbols in the rules:
//! `cargo bench -p triplane --bench subscriptions [-- rules=100000 changes=400 symbols=100]`. With `reload=1000000`, it
//! measures instead how long a changed line takes in a file of that number of rules.
//!
//! The switch and its P4Runtime server run in this process, `triplane subscribe serve` runs in another. The calls are
//! gRPC over the loopback interface, as is P4Runtime. A call returns when the switch delivers by the rule. The rules
//! are those of the paper (thresholds 1 to 1000, 200 hosts); one is added or removed at a time.

#[path = "../../tests/it/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use rng::SplitMix64;
use subscribe::workload::{self, HOSTS};
use subscribe_service::proto::subscriptions_client::SubscriptionsClient;
use subscribe_service::proto::{SubscribeRequest, UnsubscribeRequest};
use support::rig::Rig;
use support::{Directory, Running, triplane};
use testing::port::reserved_address;
use tonic::transport::Channel;

const SYMBOLS: [u64; 5] = [1, 100, 1000, 8000, 100_000];

fn argument(name: &str) -> Option<usize> {
    let value = std::env::args().find_map(|word| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned));
    value.map(|value| value.parse().unwrap_or_else(|_| panic!("{name}= takes a number")))
}

/// The changes of one set of rules.
struct Measured {
    /// Time until the rules are read, compiled and installed.
    start: Duration,
    /// Time of each change, ascending.
    changes: Vec<Duration>,
    /// Number of table entries that each change wrote, ascending.
    writes: Vec<u64>,
}

fn main() {
    if let Some(rules) = argument("reload") {
        return reload(rules);
    }
    let (rules, changes) = (argument("rules").unwrap_or(100_000), argument("changes").unwrap_or(400));
    let one = argument("symbols").map(|symbols| vec![symbols as u64]);
    println!("{rules} rules, {changes} changes of one rule; times of changes in ms");
    let head = ["symbols", "start, s", "median", "p90", "p99", "max", "writes", "p90", "p99", "none"];
    println!("{}", head.map(|name| format!("{name:>9}")).concat());
    for symbols in one.unwrap_or_else(|| SYMBOLS.to_vec()) {
        let Measured { start, changes, writes } = measure(rules, changes, symbols);
        let at = |share: f64| ((changes.len() - 1) as f64 * share) as usize;
        let times = [0.5, 0.9, 0.99, 1.0].map(|share| format!("{:>9.2}", changes[at(share)].as_secs_f64() * 1e3));
        let counts = [0.5, 0.9, 0.99].map(|share| format!("{:>9}", writes[at(share)]));
        let none = writes.iter().filter(|writes| **writes == 0).count();
        println!("{symbols:>9}{:>9.2}{}{}{none:>9}", start.as_secs_f64(), times.concat(), counts.concat());
    }
}

/// Measures the time from a changed line of the rules file to its effect in the switch. The service notices a change
/// within 0.1 s, and reads the file when it has been the same for 0.2 s.
fn reload(rules: usize) {
    const SYMBOLS: u64 = 100;
    let directory = Directory::new();
    let text = workload::with_symbols(1, rules, SYMBOLS).text;
    let mut lines: Vec<&str> = text.lines().collect();
    let file = directory.write("rules.sub", &text);
    let switch = reserved_address();
    let _rig = Rig::new(HOSTS as u32, switch);
    let begin = Instant::now();
    let (addr, listen, ports) = (switch.to_string(), reserved_address().to_string(), (HOSTS + 1).to_string());
    let options = ["--addr", &addr, "--listen", &listen, "--bitmaps", &ports];
    let arguments = [&["subscribe", "serve", "examples/market-data/orders.p4", &file], &options[..]].concat();
    let mut serve = Running::start(&mut triplane(&arguments));
    serve.wait_for("the switch applies");
    println!("{rules} rules of {SYMBOLS} symbols: the whole file takes {:.2} s", begin.elapsed().as_secs_f64());
    let changed: Vec<String> = (0..9).map(|at| format!("stock == \"NEW{at}\" and price > {at} : fwd(1)")).collect();
    let mut times: Vec<f64> = Vec::new();
    for (at, line) in changed.iter().enumerate() {
        let place = lines.len() * (at + 1) / 10;
        lines[place] = line;
        std::fs::write(&file, lines.join("\n") + "\n").expect("the file can be written");
        let begin = Instant::now();
        serve.wait_for("1 rule added, 1 removed");
        times.push(begin.elapsed().as_secs_f64());
        println!("line {:>7}: {:.2} s", place + 1, times[at]);
    }
    times.sort_by(f64::total_cmp);
    println!("one line of it: {:.2} s in the median of {}, at most {:.2} s", times[4], times.len(), times[8]);
}

/// Measures changes among `rules` rules over a number of symbols.
fn measure(rules: usize, count: usize, symbols: u64) -> Measured {
    let directory = Directory::new();
    let file = directory.write("rules.sub", workload::with_symbols(1, rules, symbols).text);
    let (switch, service) = (reserved_address(), reserved_address());
    let _rig = Rig::new(HOSTS as u32, switch);
    let begin = Instant::now();
    let (addr, listen, ports) = (switch.to_string(), service.to_string(), (HOSTS + 1).to_string());
    let format = "examples/market-data/orders.p4";
    let options = ["--addr", &addr, "--listen", &listen, "--bitmaps", &ports];
    let mut serve = Running::start(&mut triplane(&[&["subscribe", "serve", format, &file], &options[..]].concat()));
    serve.wait_for("the switch applies");
    let start = begin.elapsed();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let mut rng = SplitMix64::new(2);
    let (mut changes, mut writes) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let endpoint = Channel::from_shared(format!("http://{service}")).expect("an address").tcp_nodelay(true);
        let mut client = SubscriptionsClient::new(endpoint.connect().await.expect("the service answers"));
        let mut ids = Vec::new();
        for at in 0..count {
            let begin = Instant::now();
            writes.push(if at % 2 == 0 || ids.is_empty() {
                let request = SubscribeRequest { rules: workload::rule(&mut rng, symbols) };
                let done = client.subscribe(request).await.expect("it is right").into_inner();
                ids.extend(done.ids);
                done.writes
            } else {
                let ids = vec![ids.swap_remove(rng.below(ids.len() as u64) as usize)];
                client.unsubscribe(UnsubscribeRequest { ids }).await.expect("it is there").into_inner().writes
            });
            changes.push(begin.elapsed());
        }
    });
    changes.sort();
    writes.sort_unstable();
    Measured { start, changes, writes }
}
