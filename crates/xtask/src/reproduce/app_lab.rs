//! Runs `triplane lab sim` on labs that are generated for an experiment.
//!
//! ```text
//!   sender ── edge ══ app ── tor ── a, b, c        4 links there and back; to k stores and back 2 (k + 1)
//! ```
//!
//! The edge switch forwards the sender's frames to port 1 of the application's switch, and returning frames to the
//! sender. Stores have a link of their own, so its frames are those of the replication.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use wire::pcap;

use super::application::{Application, frame_number};
use super::trace::TracePacket;

/// Time at which traffic begins: switches have their leases then.
const START_NS: u64 = 10_000_000;

/// Time after the last packet of a trace that is simulated, too. Snapshots would continue meanwhile.
const REST_NS: u64 = 50_000_000;
const SNAPSHOT_REST_NS: u64 = 1_000_000;

/// Size of tables without annotations.
const TABLE_SIZE: usize = 65_536;

/// The command that simulates, and the directory of its labs.
pub struct LabCommand {
    triplane: PathBuf,
    work: PathBuf,
    figure: std::cell::RefCell<String>,
}

impl LabCommand {
    /// Creates the command with a directory for labs, which gets copies of the common include files of the examples.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn new(triplane: PathBuf, work: PathBuf) -> Result<LabCommand> {
        let common = work.join("common");
        fs::create_dir_all(&common).with_context(|| format!("cannot create {}", common.display()))?;
        for file in ["edge.p4", "packet.p4", "checksum.p4"] {
            let from = crate::root().join("examples/common").join(file);
            fs::copy(&from, common.join(file)).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Ok(LabCommand { triplane, work, figure: Default::default() })
    }

    /// Begins the progress of a figure.
    pub fn begin(&self, figure: &str) {
        figure.clone_into(&mut self.figure.borrow_mut());
        super::show(figure);
    }

    /// Removes the line of progress.
    pub fn clear(&self) {
        super::show("");
    }

    /// Writes the program of an application, with or without its annotations. Returns its path from a lab's directory.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn program(&self, application: Application, is_plain: bool) -> Result<String> {
        let (directory, file) = application.program();
        let from = crate::root().join("examples").join(directory).join(file);
        let text = fs::read_to_string(&from).with_context(|| format!("cannot read {}", from.display()))?;
        let text = if is_plain { without_annotations(&text) } else { application.adjusted(&text) };
        let kind = if is_plain { "plain" } else { "resilient" };
        self.write(&format!("{directory}/{kind}-{file}"), &text)?;
        Ok(format!("../{directory}/{kind}-{file}"))
    }

    /// Returns the directory of a lab.
    pub fn directory(&self, lab: &str) -> PathBuf {
        self.work.join(lab)
    }

    /// Writes a file of a lab.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.work.join(path);
        let directory = path.parent().expect("it has a directory");
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads a file of a lab.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, path: &str) -> Result<String> {
        let path = self.work.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Runs the command in the directory of a lab, and returns its output.
    ///
    /// # Errors
    /// If it cannot be run, or fails.
    pub fn output(&self, lab: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.triplane);
        command.args(arguments).current_dir(self.work.join(lab)).stdin(Stdio::null());
        let done = command.output().with_context(|| format!("cannot run {}", self.triplane.display()))?;
        if !done.status.success() {
            bail!("`triplane {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim());
        }
        String::from_utf8(done.stdout).context("the output is no text")
    }

    /// Simulates the scenario in the directory of a lab, and returns the results. `note` is shown meanwhile.
    ///
    /// # Errors
    /// If the lab or scenario is wrong, or a change of entries is refused.
    pub fn simulate(&self, lab: &str, note: &str) -> Result<Value> {
        super::show(&format!("{}: {note}", self.figure.borrow()));
        let directory = self.directory(lab);
        let arguments = ["lab", "sim", "lab.toml", "--scenario", "scenario.toml", "--json", "--out", "out"];
        let again = || format!("in {}", directory.display());
        let text = self.output(lab, &arguments).with_context(again)?;
        let results: Value = serde_json::from_str(&text).with_context(again)?;
        match results["refused_writes"].as_array() {
            Some(refused) if refused.is_empty() => Ok(results),
            refused => bail!("{}: refused changes: {refused:?}", again()),
        }
    }
}

/// Returns a program's text without annotations of resilient state. Tables that had one get a size, as the default of
/// plain tables is smaller.
pub fn without_annotations(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("@resilient") {
        plain.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(settings) => settings.split_once(']').map_or("", |(_, after)| after),
            None => after,
        };
        if rest.trim_start().starts_with("table ")
            && let Some((name, body)) = rest.split_once('{')
        {
            plain.push_str(&format!("{name}{{ size = {TABLE_SIZE};"));
            rest = body;
        }
    }
    plain + rest
}

/// A lab of one application.
pub struct AppLab<'a> {
    /// Name of its directory.
    pub name: &'a str,
    /// The application.
    pub application: Application,
    /// Number of stores, which form a chain; without, the program has no annotations.
    pub stores: usize,
    /// Number of flows, which have entries if there are no stores.
    pub flows: usize,
    /// Rate of every link, as labs spell it.
    pub rate: &'a str,
    /// Delay of every link in nanoseconds.
    pub delay_ns: u64,
    /// Chance that a frame between the switch and its stores is lost, each way.
    pub loss: f64,
}

/// A frame of the trace that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedFrame {
    /// Time of arrival at the switch, in nanoseconds.
    pub came_ns: u64,
    /// Time at which it left the switch.
    pub left_ns: u64,
    /// Bytes.
    pub size: usize,
}

impl PassedFrame {
    /// Returns the time in the switch.
    pub fn time_ns(&self) -> u64 {
        self.left_ns - self.came_ns
    }
}

/// The results of a lab of one application.
pub struct AppResults {
    /// The frames of the trace, by their numbers; `None` if one did not leave the switch.
    pub frames: Vec<Option<PassedFrame>>,
    /// Bytes of the replication at the switch, both ways.
    pub store_bytes: u64,
    /// Bytes of the application's frames at the switch, both ways.
    pub data_bytes: u64,
}

impl AppLab<'_> {
    /// Simulates a trace.
    ///
    /// # Errors
    /// As [`LabCommand::simulate`], or if a file cannot be written or read.
    pub fn run(&self, command: &LabCommand, packets: &[TracePacket]) -> Result<AppResults> {
        let is_plain = self.stores == 0;
        let program = command.program(self.application, is_plain)?;
        let file = |name: &str| format!("{}/{name}", self.name);
        command.write(&file("lab.toml"), &self.topology(&program))?;
        let entries = self.application.entries(is_plain, self.flows)?;
        command.write(&file("app.json"), &entries.to_string())?;
        let crossing = |(from, to): &(u32, u32)| {
            json!({
                "table": "EdgeIngress.crossings", "match": { "standard.ingress_port": from },
                "action_name": "EdgeIngress.leave_by", "action_params": { "port": to },
            })
        };
        let crossings: Vec<Value> = [(1, 2), (2, 1), (3, 1)].iter().map(crossing).collect();
        command.write(&file("edge.json"), &json!({ "table_entries": crossings }).to_string())?;
        let rest_ns = match self.application {
            Application::HeavyHitters { .. } => SNAPSHOT_REST_NS,
            _ => REST_NS,
        };
        let end_ns = START_NS + packets.last().map_or(0, |packet| packet.time_ns) + rest_ns;
        let scenario = format!(
            "duration = \"{end_ns}ns\"\n\n[[traffic]]\nname = \"trace\"\nkind = \"replay\"\nfrom = \"sender\"\n\
             file = \"trace.pcap\"\nstart = \"{START_NS}ns\"\n{}{}",
            capture("app:1", "in.pcap"),
            capture("app:2", "out.pcap"),
        );
        command.write(&file("scenario.toml"), &scenario)?;
        let directory = command.directory(self.name);
        let frames = packets.iter().map(|packet| (packet.time_ns, self.application.frame(packet)));
        write_trace(&directory.join("trace.pcap"), frames)?;
        let note = match self.stores {
            0 => format!("{}, plain", self.application.title()),
            stores => format!("{}, chain of {stores}", self.application.title()),
        };
        let results = command.simulate(self.name, &note)?;
        let frames = read_frames(&directory.join("out"), packets.len())?;
        let bytes = |from: &str| -> u64 {
            let links = results["links"].as_array().into_iter().flatten();
            links.filter(|link| link["from"] == from).filter_map(|link| link["carried_bytes"].as_u64()).sum()
        };
        let store_bytes = bytes("app:9") + bytes("tor:1");
        let data_bytes = ["app:1", "app:2", "edge:2", "edge:3"].map(bytes).iter().sum();
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        Ok(AppResults { frames, store_bytes, data_bytes })
    }

    /// Returns the lab's topology.
    fn topology(&self, program: &str) -> String {
        let AppLab { rate, delay_ns, .. } = self;
        // Queues hold every frame, so only configured losses occur.
        let mut text = format!(
            "[defaults]\nlink = {{ rate = \"{rate}\", delay = \"{delay_ns}ns\", queue = 1000000 }}\nlease = \"1s\"\n\n\
             [hosts.sender]\n\n[switches.edge]\nprogram = \"../common/edge.p4\"\nentries = \"edge.json\"\n\n\
             [switches.app]\nprogram = \"{program}\"\nentries = \"app.json\"\n\n"
        );
        let mut links = vec![["sender", "edge:1"], ["app:1", "edge:2"], ["app:2", "edge:3"]];
        let names = ["a", "b", "c", "d", "e"];
        let ports = ["tor:2", "tor:3", "tor:4", "tor:5", "tor:6"];
        if self.stores > 0 {
            text.push_str("[switches.tor]\nprogram = \"../common/edge.p4\"\n\n");
        }
        for (name, port) in names.into_iter().zip(ports).take(self.stores) {
            text.push_str(&format!("[stores.{name}]\n\n"));
            links.push([name, port]);
        }
        for [one, other] in links {
            text.push_str(&format!("[[links]]\nends = [\"{one}\", \"{other}\"]\n\n"));
        }
        if self.stores > 0 {
            text.push_str(&format!("[[links]]\nends = [\"app:9\", \"tor:1\"]\nloss = {:?}\n", self.loss));
        }
        text
    }

    /// Returns the time from the first bit of a frame at the sender until its last bit returned there.
    pub fn round_trip_ns(&self, frame: &PassedFrame, rate_bps: f64) -> u64 {
        let link = self.delay_ns + (frame.size as f64 * 8e9 / rate_bps).ceil() as u64;
        frame.time_ns() + 4 * link
    }
}

/// Returns the part of a scenario that captures a port.
pub fn capture(at: &str, file: &str) -> String {
    format!("\n[[captures]]\nat = \"{at}\"\nfile = \"{file}\"\n")
}

/// Writes a capture with frames and their times in nanoseconds.
///
/// # Errors
/// If it cannot be written.
pub fn write_trace(path: &Path, frames: impl Iterator<Item = (u64, Vec<u8>)>) -> Result<()> {
    let wrong = || format!("cannot write {}", path.display());
    let mut writer = pcap::Writer::new(BufWriter::new(File::create(path).with_context(wrong)?)).with_context(wrong)?;
    for (time_ns, frame) in frames {
        writer.write(time_ns, &frame).with_context(wrong)?;
    }
    writer.flush().with_context(wrong)
}

/// Reads the frames of a trace at both ports of the switch. A frame arrives at port 1, and leaves by either port.
///
/// # Errors
/// If a capture cannot be read.
pub fn read_frames(directory: &Path, count: usize) -> Result<Vec<Option<PassedFrame>>> {
    let mut came: BTreeMap<u32, u64> = BTreeMap::new();
    let mut frames = vec![None; count];
    for name in ["in.pcap", "out.pcap"] {
        let path = directory.join(name);
        let wrong = || format!("cannot read {}", path.display());
        let file = BufReader::new(File::open(&path).with_context(wrong)?);
        let mut reader = pcap::Reader::new(file).with_context(wrong)?;
        while let Some(captured) = reader.read().with_context(wrong)? {
            let Some(number) = frame_number(&captured.data).filter(|number| (*number as usize) < count) else {
                continue;
            };
            match came.remove(&number) {
                None if name == "in.pcap" => _ = came.insert(number, captured.time_ns),
                None => bail!("frame {number} left by port 2 and never came"),
                Some(came_ns) => {
                    let passed = PassedFrame { came_ns, left_ns: captured.time_ns, size: captured.data.len() };
                    frames[number as usize] = Some(passed);
                }
            }
        }
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_removed_and_nothing_else() {
        let text = "a @resilient register<bit<8>>(1) x;\n@resilient[group = \"g\"]\ntable t {}\n@name(\"n\") b";
        let expected = "a  register<bit<8>>(1) x;\n\ntable t { size = 65536;}\n@name(\"n\") b";
        assert_eq!(without_annotations(text), expected);
    }
}
