//! Stories: P4 programs under `testdata/stories`, and for each a script of what is sent to a switch that runs it,
//! with what comes back under every command. `UPDATE_EXPECT=1` writes what comes back anew.
//!
//! ```text
//! # A comment.
//! send 0 0102 03             frame 010203 comes in on port 0, now
//!   out 2 010203             this left by port 2
//! at 15                      15 microseconds have passed since the beginning
//! group 5 1/10 2/20          multicast group 5: port 1 with rid 10, port 2 with rid 20
//! mirror 9 3 [max 64]        mirror session 9: to port 3, at most 64 bytes
//! mirror-group 9 5           mirror session 9: to multicast group 5
//! rate 1 1000                port 1 sends 1000 packets a second
//! depth 1 2                  port 1's queues hold two packets
//! down 1, up 1               port 1 goes down, or up
//! trace 0 0102               like send, and prints the trace
//! summary                    what the switch counted
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiler::Source;
use rng::SplitMix64;
use switch::{Device, Frame, MirrorSession, MulticastGroup, Notification, PortId, Replica, Time};
use v1model::{Config, Switch, V1Model};

/// Compiles a program with the built-in `core.p4` and `v1model.p4`.
fn compile(path: &Path) -> ir::Program {
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    compiler::expect_program(&Source::new(&name, &text), &V1Model).ir
}

/// A switch and the time.
struct StoryRunner {
    switch: Switch,
    now: Time,
}

impl StoryRunner {
    /// Executes a line and returns the output.
    fn execute(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let port = |at: usize| number(at).map(|port| PortId(port as u32));
        let frame = || Some(Frame::new(number(1)? as u32, unhex(&words[2..].concat())?));
        let mut frames = Vec::new();
        let mut text = String::new();
        let fine = match *words.first()? {
            "send" => {
                self.switch.step(self.now, &mut vec![frame()?], &mut frames);
                true
            }
            "trace" => {
                let trace = self.switch.trace(self.now, frame()?, &mut frames);
                text = trace.render();
                true
            }
            "at" => {
                self.now = Time::from_us(number(1)?);
                self.switch.step(self.now, &mut Vec::new(), &mut frames);
                true
            }
            "group" => {
                let replica = |word: &&str| {
                    let (port, rid) = word.split_once('/')?;
                    Some(Replica::new(port.parse().ok()?, rid.parse().ok()?))
                };
                let replicas = words[2..].iter().map(replica).collect::<Option<Vec<_>>>()?;
                self.switch.set_multicast_group(number(1)? as u32, Some(MulticastGroup { replicas }))
            }
            "mirror" => {
                let mut session = MirrorSession::to_port(number(2)? as u32);
                if words.get(3) == Some(&"max") {
                    session = session.truncated(number(4)? as u32);
                }
                self.switch.set_mirror_session(number(1)? as u32, Some(session))
            }
            "mirror-group" => {
                let session = MirrorSession::to_group(number(2)? as u32);
                self.switch.set_mirror_session(number(1)? as u32, Some(session))
            }
            "rate" => {
                self.switch.set_port_rate(port(1)?, Some(number(2)?));
                true
            }
            "depth" => {
                self.switch.set_queue_depth(port(1)?, None, number(2)? as usize);
                true
            }
            "down" | "up" => self.switch.set_port_up(port(1)?, words[0] == "up"),
            "summary" => {
                text = self.switch.summary();
                true
            }
            _ => return None,
        };
        for frame in frames {
            let _ = writeln!(text, "out {} {}", frame.port, hex(&frame.data));
        }
        for notification in self.switch.take_notifications() {
            let program = self.switch.program();
            let _ = match notification {
                Notification::Digest { digest, values, .. } => {
                    let digest = &program.digests[digest];
                    let fields = digest.fields.iter().zip(&values);
                    let fields: Vec<String> = fields.map(|((name, _), value)| format!("{name}={value:x}")).collect();
                    writeln!(text, "digest {} {}", digest.name, fields.join(" "))
                }
                Notification::PacketIn { data, .. } => writeln!(text, "packet-in {}", hex(&data)),
                Notification::IntReport { report, .. } => writeln!(text, "int-report {}", hex(&report)),
                Notification::IdleTimeout { table, .. } => writeln!(text, "idle {}", program.tables[table].name),
            };
        }
        fine.then_some(text)
    }
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// Runs the story of this name against its program, and compares the output to the story's.
fn story(name: &str) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/stories");
    let path = directory.join(format!("{name}.story"));
    let program = Arc::new(compile(&directory.join(format!("{name}.p4"))));
    let switch = Switch::new(program, Config::with_ports(4)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut runner = StoryRunner { switch, now: Time::ZERO };
    let expected = std::fs::read_to_string(&path).expect("the story can be read");
    let mut output = String::new();
    for line in expected.lines().filter(|line| !line.starts_with("  ")) {
        output.push_str(line);
        output.push('\n');
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let answer = runner.execute(line).unwrap_or_else(|| panic!("{name}: `{line}` cannot be done"));
        // An empty line would be read as one of the story's own.
        for line in answer.lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(output, "  {line}");
        }
    }
    testing::golden::assert_golden(path, &output);
}

/// Checks that no frame is lost: each received frame, and every copy made of it, left, was dropped for a reason, was
/// replaced by its copies, or waits.
fn nothing_is_lost(switch: &Switch, sent: u64) -> Result<(), String> {
    let sum = |part: &str| -> u64 {
        let wanted = |name: &str| match part {
            "tx" => name.starts_with("port.") && name.ends_with(".tx.packets"),
            _ => name.starts_with("drop.") && !name.contains(".at."),
        };
        switch.registry().iter().filter(|(name, _)| wanted(name)).map(|(_, value)| value).sum()
    };
    let number = |name: &str| switch.value(name).unwrap_or(0);
    let made = number("clone.ingress.packets") + number("clone.egress.packets") + number("multicast.replicas");
    let (came, went) = (sent + made, sum("tx") + sum("drop") + number("multicast.packets") + switch.waiting() as u64);
    if came == went { Ok(()) } else { Err(format!("{came} came, {went} went:\n{}", switch.summary())) }
}

/// Returns a switch with groups, sessions and a rate, of a size that random frames with small numbers hit.
fn busy(program: &Arc<ir::Program>, seed: u64) -> Switch {
    let config = Config { seed, max_work: 200, ..Config::with_ports(4) };
    let mut switch = Switch::new(program.clone(), config).expect("the program fits the switch");
    switch.set_multicast_group(1, Some(MulticastGroup::of_ports([1, 2, 3])));
    switch.set_multicast_group(2, Some(MulticastGroup::default()));
    switch.set_mirror_session(1, Some(MirrorSession::to_port(1)));
    switch.set_mirror_session(2, Some(MirrorSession::to_group(1)));
    switch.set_mirror_session(3, Some(MirrorSession::to_group(9)));
    switch.set_port_rate(PortId(2), Some(1_000));
    switch
}

/// Returns frames of up to 40 small bytes for ports 0 to 4; port 4 does not exist.
fn random_frame(rng: &mut SplitMix64) -> Frame {
    let len = rng.below(40);
    let data: Vec<u8> = (0..len).map(|_| rng.below(8) as u8).collect();
    Frame::new(rng.below(5) as u32, data)
}

#[test]
fn random_frames_are_all_accounted_for_and_traces_change_nothing() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/stories");
    for name in ["router", "copies", "replicas", "queues", "learn", "limits"] {
        let program = Arc::new(compile(&directory.join(format!("{name}.p4"))));
        for seed in 1..=4u64 {
            let (mut stepped, mut traced) = (busy(&program, seed), busy(&program, seed));
            let mut rng = SplitMix64::new(seed);
            for sent in 1..=100 {
                let now = Time::from_us(sent * 100);
                let frame = random_frame(&mut rng);
                let (mut from_step, mut from_trace) = (Vec::new(), Vec::new());
                let trace = traced.trace(now, frame.clone(), &mut from_trace);
                stepped.step(now, &mut vec![frame], &mut from_step);
                assert_eq!(from_step, from_trace, "{name}, seed {seed}, frame {sent}:\n{}", trace.render());
                if let Err(error) = nothing_is_lost(&stepped, sent) {
                    panic!("{name}, seed {seed}, frame {sent}: {error}\n{}", trace.render());
                }
            }
            assert_eq!(stepped.values_json(), traced.values_json(), "{name}, seed {seed}");
            assert_eq!(stepped.take_notifications(), traced.take_notifications(), "{name}, seed {seed}");
        }
    }
}

#[test]
fn router() {
    story("router");
}

#[test]
fn copies() {
    story("copies");
}

#[test]
fn replicas() {
    story("replicas");
}

#[test]
fn queues() {
    story("queues");
}

#[test]
fn learn() {
    story("learn");
}

#[test]
fn limits() {
    story("limits");
}
