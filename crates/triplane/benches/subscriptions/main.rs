//! Measures the time from a subscriber's request for a rule to the last table entry that the rule needs in the switch:
//! `cargo bench -p triplane --bench subscriptions [-- rules=100000 changes=400]`.
//!
//! The switch and its P4Runtime server run in this process, `triplane subscribe serve` runs in another. The calls are
//! gRPC over the loopback interface, as is P4Runtime. A call returns when the switch delivers by the rule. The rules
//! are those of the paper (100 symbols, thresholds 1 to 1000, 200 hosts); one is added or removed at a time.

#[path = "../../tests/it/support/mod.rs"]
mod support;

use std::time::Instant;

use subscribe_service::proto::subscriptions_client::SubscriptionsClient;
use subscribe_service::proto::{SubscribeRequest, UnsubscribeRequest};
use support::rig::Rig;
use support::{Directory, Running, triplane};
use testing::port::reserved_address;
use tonic::transport::Channel;

fn argument(name: &str, otherwise: usize) -> usize {
    let value = std::env::args().find_map(|word| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned));
    value.map_or(otherwise, |value| value.parse().unwrap_or_else(|_| panic!("{name}= takes a number")))
}

fn main() {
    let (rules, changes) = (argument("rules", 100_000), argument("changes", 400));
    let directory = Directory::new();
    let text = subscribe::workload::paper(1, rules).text;
    let file = directory.write("rules.sub", text);
    let (switch, service) = (reserved_address(), reserved_address());
    let _rig = Rig::new(subscribe::workload::HOSTS as u32, switch);
    let begin = Instant::now();
    let mut serve = Running::start(&mut triplane(&[
        "subscribe",
        "serve",
        "examples/market-data/orders.p4",
        &file,
        "--addr",
        &switch.to_string(),
        "--listen",
        &service.to_string(),
    ]));
    serve.wait_for("the switch applies");
    println!("{rules} rules are read, compiled and installed in {:.2} s", begin.elapsed().as_secs_f64());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let mut rng = rng::SplitMix64::new(2);
    let (mut times, mut all_writes) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let endpoint = Channel::from_shared(format!("http://{service}")).expect("an address").tcp_nodelay(true);
        let mut client = SubscriptionsClient::new(endpoint.connect().await.expect("the service answers"));
        let mut ids = Vec::new();
        for at in 0..changes {
            let begin = Instant::now();
            let writes = if at % 2 == 0 || ids.is_empty() {
                let request = SubscribeRequest { rules: subscribe::workload::paper_rule(&mut rng) };
                let done = client.subscribe(request).await.expect("it is right").into_inner();
                ids.extend(done.ids);
                done.writes
            } else {
                let ids = vec![ids.swap_remove(rng.below(ids.len() as u64) as usize)];
                client.unsubscribe(UnsubscribeRequest { ids }).await.expect("it is there").into_inner().writes
            };
            times.push(begin.elapsed());
            all_writes.push(writes);
        }
    });
    times.sort();
    all_writes.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{changes} changes of one rule, from the call to its answer: median {:.2} ms, p90 {:.2}, p99 {:.2}, most {:.2}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    let writes = |share: f64| all_writes[((all_writes.len() - 1) as f64 * share) as usize];
    println!("writes of one: median {}, p90 {}, p99 {}", writes(0.5), writes(0.9), writes(0.99));
    let none = all_writes.iter().filter(|writes| **writes == 0).count();
    println!("{none} of them needed no write");
}
