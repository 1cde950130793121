//! Simulates a network function on one switch, whose table is in the switch or in the memory of servers.
//!
//! ```text
//!   sender ── 1 s1 2 ── sink        links without a rate: a frame is in the switch for the time of its lookup
//!             11, 12, ...           a link of 40 Gbit/s and 780 ns to each memory server
//!   other ─── 3                     traffic that leaves by port 11, if there is any
//! ```
//!
//! A server takes [`SERVICE_NS`] for a frame, like the network cards of the paper at their highest rate. Packets of the
//! trace come when the servers have been filled.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::super::app_lab::{LabCommand, PassedFrame, capture, read_frames, write_trace};
use super::super::trace::TracePacket;
use super::function::{NetworkFunction, PROGRAM};

/// Time that a server takes for a frame: the paper's network cards serve at most 10.9 million lookups a second.
pub const SERVICE_NS: u64 = 92;

/// Rate of the links to servers, as in the paper.
pub const LINK_BPS: f64 = 40e9;

/// Delay of the links to servers: with READs of 576 bytes, a lookup takes the paper's 1.8 us.
pub const LINK_DELAY_NS: u64 = 780;

/// Number of flows of a trace, as in the paper; the table has room for as many entries.
pub const FLOWS: usize = 1_000_000;

/// Time at which traffic begins.
pub const START_NS: u64 = 400_000_000;

/// Time after the last packet of a trace that is simulated, too.
const REST_NS: u64 = 20_000_000;

/// The place of a table's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablePlace {
    /// In the switch.
    Local,
    /// In the memory of this many servers, with a cache of this many entries in the switch.
    Servers { servers: usize, cache: usize },
}

/// Traffic of others on the link to the first server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherTraffic {
    /// Rate in bits per second.
    pub bps: f64,
    /// Times of the first and the last packet, after the start of the trace.
    pub times_ns: [u64; 2],
    /// Rate of a link, in bits per second, above which READs avoid it.
    pub memory_bps: Option<f64>,
}

impl OtherTraffic {
    /// Returns frames of 1,500 bytes with their times after the first one.
    fn frames(self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        const BYTES: usize = 1500;
        let number = (self.times_ns[1] - self.times_ns[0]) as f64 * self.bps / (BYTES as f64 * 8e9);
        let interval_ns = BYTES as f64 * 8e9 / self.bps;
        (0..number as u64).map(move |number| ((number as f64 * interval_ns) as u64, vec![0xff; BYTES]))
    }
}

/// A network function and its traffic.
pub struct RemoteLab<'a> {
    /// Name of the lab's directory.
    pub name: &'a str,
    /// The function.
    pub function: NetworkFunction,
    /// The place of its table.
    pub place: TablePlace,
    /// Traffic of others.
    pub others: Option<OtherTraffic>,
    /// Further sections of the scenario.
    pub faults: &'a str,
}

/// The results of a simulation.
pub struct RemoteResults {
    /// The frames of the trace, by their numbers; `None` if one did not leave the switch.
    pub frames: Vec<Option<PassedFrame>>,
    /// READs of the table.
    pub reads: u64,
    /// READs that each server answered.
    pub server_reads: Vec<u64>,
}

impl RemoteLab<'_> {
    /// Simulates a trace.
    ///
    /// # Errors
    /// If the simulation fails, or a file cannot be written or read.
    pub fn run(&self, command: &LabCommand, packets: &[TracePacket]) -> Result<RemoteResults> {
        self.write(command, packets)?;
        let directory = command.directory(self.name);
        let results = command.simulate(self.name, &self.describe())?;
        let frames = read_frames(&directory.join("out"), packets.len())?;
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let servers = results["memory"]["servers"].as_array().into_iter().flatten();
        let table = &results["memory"]["tables"][0];
        if self.place != TablePlace::Local {
            ensure!(table["settled"] == true, "the servers were not filled: {table}");
        }
        let results = RemoteResults {
            frames,
            reads: number(&table["reads"]),
            server_reads: servers.map(|server| number(&server["reads"])).collect(),
        };
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        Ok(results)
    }

    /// Returns the processor time of a packet in nanoseconds, in memory: `triplane bench` repeats the trace.
    ///
    /// # Errors
    /// If it fails, or a file cannot be written.
    pub fn bench(&self, command: &LabCommand, packets: &[TracePacket]) -> Result<f64> {
        self.write(command, packets)?;
        let arguments = ["bench", "function.p4", "--entries", "s1.json", "--traffic", "trace.pcap", "--json"];
        let results: Value = serde_json::from_str(&command.output(self.name, &arguments)?)?;
        let directory = command.directory(self.name);
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        results["speed"]["median_ns"].as_f64().with_context(|| format!("no time in {results}"))
    }

    /// Writes the files of the lab.
    fn write(&self, command: &LabCommand, packets: &[TracePacket]) -> Result<()> {
        let file = |name: &str| format!("{}/{name}", self.name);
        let settings = match self.place {
            TablePlace::Local => None,
            TablePlace::Servers { cache, .. } => Some(format!("[cache = \"{cache}\"]")),
        };
        command.write(&file("remote-tables.p4"), PROGRAM)?;
        let mut source = self.function.source("remote-tables.p4", FLOWS, settings.as_deref());
        if self.others.is_some() {
            source.insert_str(0, "#define OTHERS_TO 11\n");
        }
        command.write(&file("function.p4"), &source)?;
        let flows: BTreeSet<u32> = packets.iter().map(|packet| packet.flow).collect();
        command.write(&file("s1.json"), &self.function.entries(flows.into_iter()))?;
        command.write(&file("lab.toml"), &self.topology())?;
        command.write(&file("scenario.toml"), &self.scenario(packets))?;
        let directory = command.directory(self.name);
        let frames = packets.iter().map(|packet| (packet.time_ns, self.function.frame(packet)));
        write_trace(&directory.join("trace.pcap"), frames)?;
        self.others.map_or(Ok(()), |others| write_trace(&directory.join("others.pcap"), others.frames()))
    }

    fn describe(&self) -> String {
        let place = match self.place {
            TablePlace::Local => "local table".to_owned(),
            TablePlace::Servers { servers, cache } => format!("{servers} servers, {cache} cached"),
        };
        format!("{}, {place}", self.function.title())
    }

    fn topology(&self) -> String {
        let servers = match self.place {
            TablePlace::Local => 0,
            TablePlace::Servers { servers, .. } => servers,
        };
        let rate = self.others.and_then(|others| others.memory_bps);
        let mut text = rate
            .map_or("[defaults]\n".to_owned(), |rate| format!("[defaults]\nmemory_rate = \"{}Gbps\"\n", rate / 1e9));
        text += "link = { rate = \"unlimited\", delay = \"1us\", queue = 1000000 }\n\n\
                        [hosts.sender]\n\n[hosts.sink]\n\n[switches.s1]\nprogram = \"function.p4\"\nentries = \"s1.json\"\n\n\
                        [[links]]\nends = [\"sender\", \"s1:1\"]\n\n[[links]]\nends = [\"sink\", \"s1:2\"]\n";
        if self.others.is_some() {
            text += "\n[hosts.other]\n\n[[links]]\nends = [\"other\", \"s1:3\"]\n";
        }
        for server in 1..=servers {
            text.push_str(&format!(
                "\n[hosts.m{server}]\nip = \"10.9.0.{server}/24\"\nmemory = \"1GiB\"\n\n[[links]]\nends = [\"m{server}\", \
                 \"s1:{}\"]\nrate = \"{}Gbps\"\ndelay = \"{LINK_DELAY_NS}ns\"\n",
                server + 10,
                LINK_BPS / 1e9
            ));
        }
        text
    }

    fn scenario(&self, packets: &[TracePacket]) -> String {
        let end_ns = START_NS + packets.last().map_or(0, |packet| packet.time_ns) + REST_NS;
        let mut text = format!(
            "duration = \"{end_ns}ns\"\n\n[[traffic]]\nname = \"trace\"\nkind = \"replay\"\nfrom = \"sender\"\nfile = \
             \"trace.pcap\"\nstart = \"{START_NS}ns\"\n"
        );
        text += &(capture("s1:1", "in.pcap") + &capture("s1:2", "out.pcap"));
        if let TablePlace::Servers { servers, .. } = self.place {
            let names: Vec<String> = (1..=servers).map(|server| format!("\"m{server}\"")).collect();
            text += &format!("\n[[faults]]\nat = \"0s\"\nslow = [{}]\nby = \"{SERVICE_NS}ns\"\n", names.join(", "));
        }
        if let Some(OtherTraffic { times_ns: [start_ns, _], .. }) = self.others {
            text += &format!(
                "\n[[traffic]]\nname = \"others\"\nkind = \"replay\"\nfrom = \"other\"\nfile = \"others.pcap\"\n\
                 start = \"{}ns\"\n",
                START_NS + start_ns
            );
        }
        text + self.faults
    }
}

/// The share of a trace after which its packets are measured: popular entries are cached then.
const WARM: f64 = 0.5;

impl RemoteResults {
    /// Returns the frames of the second half of the trace, in which popular entries are cached.
    pub fn measured(&self) -> &[Option<PassedFrame>] {
        &self.frames[(self.frames.len() as f64 * WARM) as usize..]
    }

    /// Returns the times in the switch of the measured packets, in nanoseconds.
    pub fn times_ns(&self) -> impl Iterator<Item = u64> {
        self.measured().iter().flatten().map(PassedFrame::time_ns)
    }

    /// Returns the share of the measured packets that did not wait.
    pub fn local_share(&self) -> f64 {
        let local = self.times_ns().filter(|ns| *ns == 0).count();
        local as f64 / self.measured().len().max(1) as f64
    }

    /// Returns the share of the measured packets that left.
    pub fn left_share(&self) -> f64 {
        self.times_ns().count() as f64 / self.measured().len().max(1) as f64
    }

    /// Returns the mean of the times in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.times_ns().sum::<u64>() as f64 / self.times_ns().count().max(1) as f64
    }

    /// Returns the packets a second that left while the measured ones arrived.
    ///
    /// # Errors
    /// If none of them arrived.
    pub fn rate(&self) -> Result<f64> {
        let came = || self.measured().iter().flatten().map(|frame| frame.came_ns);
        let (Some(first), Some(last)) = (came().min(), came().max()) else { bail!("no packet left the switch") };
        let left = self.frames.iter().flatten().filter(|frame| (first..=last).contains(&frame.left_ns)).count();
        Ok(left as f64 * 1e9 / (last - first).max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_their_rate_until_they_stop() {
        let others = OtherTraffic { bps: 12e9, times_ns: [5000, 15_000], memory_bps: None };
        let frames: Vec<_> = others.frames().collect();
        assert_eq!(frames.len(), 10);
        assert!(
            frames.iter().enumerate().all(|(at, (time_ns, frame))| (*time_ns, frame.len()) == (at as u64 * 1000, 1500))
        );
    }

    #[test]
    fn shares_and_rates_are_those_of_the_second_half() {
        let frame = |came_ns, left_ns| Some(PassedFrame { came_ns, left_ns, size: 66 });
        let frames = vec![frame(0, 0), frame(10, 10), frame(20, 20), None, frame(40, 45), frame(50, 90)];
        let results = RemoteResults { frames, reads: 0, server_reads: Vec::new() };
        let mut times: Vec<u64> = results.times_ns().collect();
        times.sort_unstable();
        assert_eq!(times, [5, 40]);
        assert_eq!((results.local_share(), results.mean_ns()), (0.0, 22.5));
        assert_eq!(results.left_share(), 2.0 / 3.0);
        // Of 40 to 50 ns, one frame left.
        assert_eq!(results.rate().expect("frames left"), 1e8);
    }
}
