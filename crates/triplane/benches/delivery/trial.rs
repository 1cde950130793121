//! One trial: a switch, a subscriber and an exchange, each in its own process, for about a second.

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use itch_feed::{Feed, Filter, Spec};
use ports::namespace::Namespace;
use serde_json::Value;

use crate::network::{EXCHANGE, GROUP, Network, SUBSCRIBER};
use crate::support::{self, Directory};

/// The subscriber's condition.
pub const WANTED: &str = "stock == \"GOOGL\"";

/// Time that the subscriber waits if the end of a session is lost, in seconds. No queue of the benchmark is as long.
const LATEST_S: f64 = 4.0;

/// Time between the start of the switch and the first datagram.
const WARM_UP: Duration = Duration::from_secs(1);

/// The workload of a figure: one of the feed's, with another share of messages about the stock of interest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    pub name: &'static str,
    of: itch_feed::Workload,
    share: Option<f64>,
}

impl Workload {
    /// The workloads of the talk.
    pub const TALK: [Workload; 3] = [
        Workload { name: "synthetic", of: itch_feed::Workload::Synthetic, share: None },
        Workload { name: "worst-case", of: itch_feed::Workload::WorstCase, share: None },
        Workload { name: "sample", of: itch_feed::Workload::Sample, share: None },
    ];
    /// The workloads of the paper's figure 7: a day with one message per datagram, and a synthetic feed.
    pub const FIGURE_7: [Workload; 2] = [
        Workload { name: "sample, 0.5 % wanted", of: itch_feed::Workload::Sample, share: Some(0.005) },
        Workload { name: "synthetic, 5 % wanted", of: itch_feed::Workload::Synthetic, share: Some(0.05) },
    ];

    fn spec(self, seed: u64) -> Spec {
        let spec = self.of.spec(seed);
        Spec { share: self.share.unwrap_or(spec.share), ..spec }
    }
}

/// The place of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Subscriber,
    Switch,
}

impl Where {
    pub const BOTH: [Where; 2] = [Where::Subscriber, Where::Switch];

    pub fn name(self) -> &'static str {
        match self {
            Where::Subscriber => "subscriber",
            Where::Switch => "switch",
        }
    }
}

/// Parameters of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub workload: Workload,
    pub filters: Where,
    /// Requested datagrams a second.
    pub rate: f64,
    pub seconds: f64,
    pub seed: u64,
}

/// The results of a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Number of datagrams that were sent, and the time that it took in seconds.
    pub datagrams: u64,
    pub seconds: f64,
    /// Number of wanted messages that were sent, and the number of them that arrived.
    pub asked: u64,
    pub got: u64,
    /// Ages of the messages that arrived, in ns, each with the share of messages that were no older.
    pub ages: Vec<(u64, f64)>,
    /// The 50th, 99th and 99.9th percentile of the ages, in ns.
    pub quantiles: [u64; 3],
}

/// Programs and entries that the switches run.
pub struct Programs {
    directory: Directory,
    ports: String,
    realtime: bool,
}

impl Programs {
    /// Compiles the rule. `ports` is the prefix of an interface's name: `xdp:` or nothing. With `realtime`, the
    /// processes have priority over all others on the machine.
    pub fn new(directory: Directory, ports: &str, realtime: bool) -> Programs {
        directory.write("forward.p4", include_str!("forward.p4"));
        let rules = directory.write("rules.sub", format!("{WANTED} : fwd(2)\n"));
        let (entries, program) = (directory.path("filter.json"), directory.path("filter.p4"));
        let format = "examples/market-data/orders.p4";
        let compile = ["subscribe", "compile", format, &rules, "-o", &entries, "--program", &program];
        support::run(&mut support::triplane(&compile)).ok();
        Programs { directory, ports: ports.to_owned(), realtime }
    }

    fn start(&self, network: &Network, filters: Where) -> Result<Process, Box<dyn Error>> {
        let mut command = self.triplane(&network.switch, "run")?;
        match filters {
            Where::Subscriber => command.arg(self.directory.path("forward.p4")),
            Where::Switch => {
                command.arg(self.directory.path("filter.p4")).arg("--entries").arg(self.directory.path("filter.json"))
            }
        };
        for (number, interface) in [(1, "r1"), (2, "r2")] {
            command.arg("--port").arg(format!("{number}={}{interface}", self.ports));
        }
        Process::start(&mut command, "press Ctrl-C to stop")
    }

    /// Returns a command that runs a subcommand of `triplane` on a host.
    fn triplane(&self, host: &Namespace, what: &str) -> Result<Command, Box<dyn Error>> {
        let mut command = host.command(if self.realtime { "chrt" } else { triplane() })?;
        if self.realtime {
            command.args(["--fifo", "10", triplane()]);
        }
        command.arg(what);
        Ok(command)
    }
}

/// Runs a trial.
pub fn trial(network: &Network, programs: &Programs, setting: &Setting) -> Result<Trial, Box<dyn Error>> {
    let switch = programs.start(network, setting.filters)?;
    let mut receive = programs.triplane(&network.subscriber, "market")?;
    receive.args(["receive", "--group", GROUP, "--interface", SUBSCRIBER, "--from-start", "--json"]);
    receive.args(["--seconds", &format!("{}", setting.seconds + LATEST_S)]);
    if setting.filters == Where::Subscriber {
        receive.args(["--filter", WANTED]);
    }
    let subscriber = Process::start(&mut receive, "listening")?;
    // The switch may still be improving its machine code.
    std::thread::sleep(WARM_UP);
    let mut publish = programs.triplane(&network.exchange, "market")?;
    publish.args(["publish", "--to", GROUP, "--interface", EXCHANGE, "--json"]);
    publish.args(["--workload", setting.workload.of.name(), "--seed", &setting.seed.to_string()]);
    if let Some(share) = setting.workload.share {
        publish.args(["--share", &share.to_string()]);
    }
    publish.args(["--datagram-rate", &setting.rate.to_string(), "--seconds", &setting.seconds.to_string()]);
    let published = publish.stderr(Stdio::null()).output()?;
    let sent: Value = serde_json::from_slice(&published.stdout)?;
    let got: Value = serde_json::from_str(&subscriber.finish()?)?;
    switch.interrupt()?;

    let datagrams = sent["datagrams"].as_u64().unwrap_or(0);
    let ages = &got["age_ns"];
    let point = |point: &Value| Some((point[0].as_u64()?, point[1].as_f64()?));
    Ok(Trial {
        datagrams,
        seconds: sent["seconds"].as_f64().ok_or("the exchange does not say for how long it sent")?,
        asked: asked(setting, datagrams),
        got: got["wanted"].as_u64().unwrap_or(0),
        ages: ages["distribution"].as_array().into_iter().flatten().filter_map(point).collect(),
        quantiles: ["p50", "p99", "p99.9"].map(|name| ages[name].as_u64().unwrap_or(0)),
    })
}

/// Returns the number of the feed's messages that match the condition.
fn asked(setting: &Setting, datagrams: u64) -> u64 {
    let filter = Filter::parse(WANTED).expect("a condition");
    let mut feed = Feed::new(setting.workload.spec(setting.seed));
    let messages = (0..datagrams).flat_map(|_| itch_feed::messages(&feed.datagram(0)).expect("the feed's own"));
    messages.filter(|message| filter.wants(message)).count() as u64
}

fn triplane() -> &'static str {
    env!("CARGO_BIN_EXE_triplane")
}

/// A process that is killed when this value is dropped.
struct Process(Child);

impl Process {
    /// Starts a process and waits until it reports that it is ready.
    fn start(command: &mut Command, ready: &str) -> Result<Process, Box<dyn Error>> {
        let mut process = Process(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
        let stderr = process.0.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        for line in lines.by_ref() {
            said += &line?;
            if said.contains(ready) {
                // The rest of the output is ignored, but must be read, or the process would block on a full pipe.
                std::thread::spawn(move || lines.count());
                return Ok(process);
            }
        }
        Err(format!("it ended before it was ready: {said}").into())
    }

    /// Waits for the process to end and returns its output.
    fn finish(mut self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        if let Some(mut out) = self.0.stdout.take() {
            out.read_to_string(&mut text)?;
        }
        self.0.wait()?;
        Ok(text)
    }

    /// Ends the process as Ctrl-C would.
    fn interrupt(self) -> Result<(), Box<dyn Error>> {
        Command::new("kill").args(["-INT", &self.0.id().to_string()]).status()?;
        self.finish().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
