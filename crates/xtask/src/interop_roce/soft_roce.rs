//! Connects the soft RoCE of Linux with the responder and with the requester of the crate `rdma`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rdma::{
    AccessRights, FailureReason, FramePath, FrameSink, MemoryKey, MemoryRange, ProtectionDomain, QpEndpoint, QpNumber,
    Receipt, RequestOutcome, Requester, RequesterConfig, Responder, ResponderConfig,
};
use rng::SplitMix64;
use switch::Time;
use wire::checksum::Addresses;
use wire::roce::{Mtu, NakCode, Psn};

use super::virtual_machine::{Files, MACHINE_IP, MACHINE_MAC, OWN_IP, OWN_MAC, VirtualMachine};

/// Maximum time to boot, which takes 3 s on an idle machine, and to answer a command.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// First address of this end's memory, and its size in bytes. The machine has as much.
const BASE: u64 = 0x7000_0000_0000;
const MEMORY: usize = 4 << 20;
const DOMAIN: ProtectionDomain = ProtectionDomain(1);

/// Maximum number of frames that arrive, and that leave, before the other direction has its turn.
const MAX_FRAMES: usize = 32;

/// Maximum number of frames that answers may have: a READ of 1 MiB with packets of 256 bytes has 4,096.
const MAX_ANSWERS: usize = 8192;

/// READs in flight, of both ends.
const MAX_READS: u16 = 8;

/// Sizes of messages in bytes, and the number of messages in a row: at the borders of packets of 256 and 1,024 bytes,
/// and long ones.
const MESSAGES: &[(usize, usize)] =
    &[(1, 4), (7, 32), (256, 64), (257, 16), (1024, 32), (1025, 16), (4096, 32), (65_536, 8), (1 << 20, 1)];

/// `IBV_WC_REM_ACCESS_ERR` of libibverbs.
const REMOTE_ACCESS_ERROR: u32 = 10;

/// The parameters of a connection.
#[derive(Clone, Copy)]
struct Scenario {
    is_v6: bool,
    mtu: Mtu,
    /// Frames in a hundred that are lost, and as many that are duplicated, and that change places.
    fault_percent: u64,
}

impl Scenario {
    fn path(self) -> Result<FramePath> {
        let [own, machine] = [OWN_IP, MACHINE_IP].map(|ip| ip[usize::from(self.is_v6)]);
        let addresses = if self.is_v6 {
            Addresses::V6(own.parse()?, machine.parse()?)
        } else {
            Addresses::V4(own.parse()?, machine.parse()?)
        };
        Ok(FramePath::new(OWN_MAC, MACHINE_MAC, addresses, self.mtu))
    }

    /// Returns the sizes and numbers of messages. Each loss repeats the rest of a READ, so the longest would take long.
    fn messages(self) -> impl Iterator<Item = (usize, usize)> {
        let max_len = if self.fault_percent == 0 { usize::MAX } else { 65_536 };
        MESSAGES.iter().copied().filter(move |(len, _)| *len <= max_len)
    }

    fn name(self) -> String {
        let family = if self.is_v6 { "IPv6" } else { "IPv4" };
        let faults = match self.fault_percent {
            0 => String::new(),
            percent => format!(", {percent} % each lost, twice, out of order"),
        };
        format!("{family}, MTU {}{faults}", self.mtu.bytes())
    }
}

/// One direction of the wire between the ends.
#[derive(Default)]
struct Wire {
    held: Option<Vec<u8>>,
    frames: u64,
    lost: u64,
}

impl Wire {
    /// Returns the frames that arrive when a frame is sent.
    fn pass(&mut self, frame: Vec<u8>, fault_percent: u64, rng: &mut SplitMix64) -> Vec<Vec<u8>> {
        self.frames += 1;
        let roll = rng.below(100);
        let mut arriving = if roll < fault_percent {
            self.lost += 1;
            Vec::new()
        } else if roll < 2 * fault_percent {
            vec![frame.clone(), frame]
        } else if roll < 3 * fault_percent && self.held.is_none() {
            self.held = Some(frame);
            return Vec::new();
        } else {
            vec![frame]
        };
        arriving.extend(self.held.take());
        arriving
    }
}

/// Frames to send, as a port with this much room has them.
struct Outgoing {
    frames: VecDeque<Vec<u8>>,
    lent: Vec<u8>,
    max_frames: usize,
}

impl Outgoing {
    fn new(max_frames: usize) -> Outgoing {
        Outgoing { frames: VecDeque::new(), lent: Vec::new(), max_frames }
    }
}

impl FrameSink for Outgoing {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.frames.len() >= self.max_frames {
            return None;
        }
        self.lent = vec![0; len];
        Some(&mut self.lent)
    }

    fn commit(&mut self, len: usize) {
        let mut frame = std::mem::take(&mut self.lent);
        frame.truncate(len);
        self.frames.push_back(frame);
    }
}

/// Both ends: a virtual machine, and a requester and a responder of this project.
struct Ends {
    machine: VirtualMachine,
    requester: Requester,
    responder: Responder<Vec<u8>>,
    key: MemoryKey,
    rng: SplitMix64,
    begin: Instant,
    fault_percent: u64,
    to_machine: Wire,
    from_machine: Wire,
    requests: Outgoing,
    answers: Outgoing,
}

/// Checks that passed, and their number.
#[derive(Default)]
struct Tally {
    passed: u32,
    all: u32,
}

impl Tally {
    /// Counts a check, and prints what failed.
    fn check(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        self.all += 1;
        self.passed += u32::from(is_right);
        if !is_right {
            println!("  wrong: {}", what());
        }
    }
}

/// Returns the bytes that the machine makes from a seed, too.
fn numbers(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = SplitMix64::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Runs all checks. Returns false if any fails.
pub fn check(files: &Files, seed: u64) -> Result<bool> {
    let mut ends = Ends::boot(files, seed)?;
    let mut is_good = true;
    for fault_percent in [0, 1] {
        for (is_v6, mtu) in [(false, Mtu::Mtu1024), (false, Mtu::Mtu256), (true, Mtu::Mtu1024), (true, Mtu::Mtu256)] {
            let scenario = Scenario { is_v6, mtu, fault_percent };
            for (direction, run) in [
                (
                    "soft RoCE requests, triplane responds",
                    Ends::serve as fn(&mut Ends, Scenario, &mut Tally) -> Result<()>,
                ),
                ("triplane requests, soft RoCE responds", Ends::request),
            ] {
                let mut tally = Tally::default();
                ends.fault_percent = fault_percent;
                let before = (ends.to_machine.lost + ends.from_machine.lost, ends.repeated());
                run(&mut ends, scenario, &mut tally).with_context(|| format!("{direction}, {}", scenario.name()))?;
                is_good &= tally.passed == tally.all && tally.all > 0;
                let lost = ends.to_machine.lost + ends.from_machine.lost - before.0;
                let repeated = ends.repeated() - before.1;
                let faults = if fault_percent > 0 {
                    format!("; {lost} frames lost, {repeated} repeated")
                } else {
                    String::new()
                };
                println!("{direction}, {}: {} of {} agree{faults}", scenario.name(), tally.passed, tally.all);
            }
        }
    }
    Ok(is_good)
}

impl Ends {
    fn boot(files: &Files, seed: u64) -> Result<Ends> {
        let mut rng = SplitMix64::new(seed);
        let requester = Requester::new(RequesterConfig {
            max_reads: MAX_READS,
            // The machine is emulated, and shares its processors with others.
            timeout_ns: 100_000_000,
            max_retries: 50,
            ..RequesterConfig::default()
        });
        let mut responder = Responder::new(ResponderConfig { max_reads: MAX_READS, ..ResponderConfig::default() });
        let key = responder.register(&mut rng, DOMAIN, AccessRights::ALL, BASE, vec![0; MEMORY])?;
        let mut ends = Ends {
            machine: VirtualMachine::boot(files)?,
            requester,
            responder,
            key,
            rng,
            begin: Instant::now(),
            fault_percent: 0,
            to_machine: Wire::default(),
            from_machine: Wire::default(),
            requests: Outgoing::new(MAX_FRAMES),
            answers: Outgoing::new(MAX_ANSWERS),
        };
        let ready = ends.wait(BOOT_LIMIT).context("the virtual machine does not start")?;
        ensure!(ready == "ready", "the virtual machine: {ready}");
        Ok(ends)
    }

    /// Returns the number of requests that either end repeated.
    fn repeated(&self) -> u64 {
        self.requester.counts().repeated + self.responder.counts().duplicates
    }

    fn memory(&mut self) -> &mut Vec<u8> {
        self.responder.memory_mut(self.key).expect("it is registered")
    }

    /// Lets frames of the machine arrive, or time pass, and sends what follows.
    fn turn(&mut self) -> Result<()> {
        let percent = self.fault_percent;
        let mut arriving = Vec::new();
        while let (true, Some(frame)) = (arriving.len() < MAX_FRAMES, self.machine.receive()?) {
            let frame = frame.to_vec();
            arriving.extend(self.from_machine.pass(frame, percent, &mut self.rng));
        }
        let is_idle = arriving.is_empty();
        arriving.extend(self.from_machine.held.take_if(|_| is_idle));
        let now = Time::from_ns(self.begin.elapsed().as_nanos() as u64);
        for frame in arriving {
            if self.requester.on_frame(now, &frame) == Receipt::NotOurs {
                self.responder.on_frame(&frame, &mut self.answers);
            }
        }
        self.requester.tick(now);
        self.requester.transmit(now, &mut self.requests);
        for _ in 0..MAX_FRAMES {
            let next = self.answers.frames.pop_front().or_else(|| self.requests.frames.pop_front());
            let Some(frame) = next else { break };
            let frames = self.to_machine.pass(frame, percent, &mut self.rng);
            frames.iter().for_each(|frame| self.machine.send(frame));
        }
        if let Some(frame) = self.to_machine.held.take_if(|_| is_idle) {
            self.machine.send(&frame);
        }
        Ok(())
    }

    /// Returns the next line of the machine's program.
    fn wait(&mut self, limit: Duration) -> Result<String> {
        let begin = Instant::now();
        loop {
            if let Some(line) = self.machine.answer()? {
                return match line.strip_prefix("error ") {
                    Some(error) => bail!("the virtual machine: {error}"),
                    None => Ok(line),
                };
            }
            ensure!(begin.elapsed() < limit, "no answer for {} s", limit.as_secs());
            self.turn()?;
        }
    }

    /// Sends a command, and returns the numbers of the answer, which begins with `expected`.
    fn ask(&mut self, command: &str, expected: &str) -> Result<Vec<u64>> {
        self.machine.command(command)?;
        let answer = self.wait(ANSWER_LIMIT).with_context(|| format!("`{command}`"))?;
        let mut words = answer.split_whitespace();
        ensure!(words.next() == Some(expected), "`{command}`: `{answer}`");
        words.map(|word| word.parse().with_context(|| format!("`{command}`: `{answer}`"))).collect()
    }

    /// Opens a queue pair of the machine, and returns it.
    fn open(&mut self, scenario: Scenario) -> Result<QpEndpoint> {
        let psn = Psn::new(self.rng.next_u64() as u32);
        let family = if scenario.is_v6 { 6 } else { 4 };
        let command = format!("open {family} {} {MAX_READS} {}", scenario.mtu.bytes(), psn.number());
        let [number] = self.ask(&command, "open")?[..] else { bail!("`{command}` answers with one number") };
        Ok(QpEndpoint { number: QpNumber(number as u32), psn, max_reads: MAX_READS })
    }

    /// Connects the machine's queue pair with one of this end.
    fn connect(&mut self, scenario: Scenario, own: QpEndpoint) -> Result<()> {
        let address = OWN_IP[usize::from(scenario.is_v6)];
        self.ask(&format!("connect {} {} {address}", own.number.0, own.psn.number()), "connected").map(drop)
    }

    /// Opens a connection in which the machine requests.
    fn accept(&mut self, scenario: Scenario) -> Result<QpNumber> {
        let peer = self.open(scenario)?;
        let own = self.responder.accept(&mut self.rng, DOMAIN, scenario.path()?, peer)?;
        self.connect(scenario, own)?;
        Ok(own.number)
    }

    /// Lets the machine make `count` requests in a row, and returns the status of the first that failed, or 0, and the
    /// number that succeeded.
    fn post(
        &mut self,
        kind: &str,
        (count, len): (usize, usize),
        address: u64,
        operands: [u64; 2],
    ) -> Result<(u32, usize)> {
        let ([a, b], key) = (operands, self.key.0);
        let command = format!("post {kind} {count} 0 {len} {address} {key} {a} {b}");
        match self.ask(&command, "done")?[..] {
            [status, completed] => Ok((status as u32, completed as usize)),
            _ => bail!("`{command}` answers with two numbers"),
        }
    }

    /// Whether the machine's memory has the numbers from a seed.
    fn has_numbers(&mut self, seed: u64, len: usize) -> Result<bool> {
        self.machine.command(&format!("check {seed} 0 {len}"))?;
        Ok(self.wait(ANSWER_LIMIT)? == "same")
    }

    /// Returns the first number in the machine's memory.
    fn word(&mut self) -> Result<u64> {
        self.ask("word 0", "word")?.first().copied().context("`word` answers with a number")
    }

    /// Checks requests of the machine.
    fn serve(&mut self, scenario: Scenario, tally: &mut Tally) -> Result<()> {
        let mut number = self.accept(scenario)?;
        for (index, (len, count)) in scenario.messages().enumerate() {
            let (seed, all) = (self.rng.next_u64(), len * count);
            // Odd addresses, too.
            let offset = index % 4;
            self.memory().fill(0);
            self.ask(&format!("fill {seed} 0 {all}"), "filled")?;
            let written = self.post("write", (count, len), BASE + offset as u64, [0; 2])?;
            let expected = numbers(seed, all);
            let memory = self.memory();
            let is_same = memory[offset..][..all] == expected && memory[offset + all..].iter().all(|byte| *byte == 0);
            tally
                .check(written == (0, count) && is_same, || format!("{count} WRITEs of {len}: {written:?}, {is_same}"));
            let seed = self.rng.next_u64();
            self.memory()[offset..][..all].copy_from_slice(&numbers(seed, all));
            let read = self.post("read", (count, len), BASE + offset as u64, [0; 2])?;
            let is_same = self.has_numbers(seed, all)?;
            tally.check(read == (0, count) && is_same, || format!("{count} READs of {len}: {read:?}, {is_same}"));
        }
        self.memory()[..8].copy_from_slice(&1000u64.to_le_bytes());
        let mut value = 1000_u64;
        for round in 0..24 {
            let add = self.rng.next_u64();
            // Every third operation is a comparison that fails.
            let (kind, operands, new) = match round % 3 {
                0 => ("add", [add, 0], value.wrapping_add(add)),
                1 => ("swap", [value, add], add),
                _ => ("swap", [value ^ 1, add], value),
            };
            let done = self.post(kind, (1, 8), BASE, operands)?;
            let (original, memory) = (self.word()?, self.memory()[..8].to_vec());
            let is_right = original == value && memory == new.to_le_bytes();
            tally.check(done == (0, 1) && is_right, || format!("{kind}: {done:?}, {original} instead of {value}"));
            value = new;
        }
        for (what, address, key) in
            [("a wrong key", BASE, self.key.0 ^ 1 << 20), ("past the end", BASE + MEMORY as u64 - 7, self.key.0)]
        {
            let done = self.ask(&format!("post read 1 0 8 {address} {key}"), "done")?;
            tally.check(done == [u64::from(REMOTE_ACCESS_ERROR), 0], || format!("{what}: {done:?}"));
            self.ask("close", "closed")?;
            self.responder.close(number);
            number = self.accept(scenario)?;
        }
        self.ask("close", "closed")?;
        self.responder.close(number);
        Ok(())
    }

    /// Opens a connection in which this end requests.
    fn dial(&mut self, scenario: Scenario) -> Result<QpNumber> {
        let peer = self.open(scenario)?;
        let own = self.requester.open(&mut self.rng, scenario.path()?)?;
        self.connect(scenario, own)?;
        self.requester.connect(own.number, peer)?;
        Ok(own.number)
    }

    /// Waits for the completions of `count` requests, and passes each to `take`.
    fn complete(&mut self, count: usize, mut take: impl FnMut(u64, RequestOutcome<'_>)) -> Result<()> {
        let begin = Instant::now();
        let mut completed = 0;
        while completed < count {
            ensure!(begin.elapsed() < ANSWER_LIMIT, "{completed} of {count} requests completed");
            self.turn()?;
            while let Some(completion) = self.requester.next_completion() {
                take(completion.token, completion.outcome);
                completed += 1;
            }
        }
        Ok(())
    }

    /// Checks requests of this end.
    fn request(&mut self, scenario: Scenario, tally: &mut Tally) -> Result<()> {
        let [address, key, size] = self.ask("region", "region")?[..] else { bail!("`region` answers with numbers") };
        let key = MemoryKey(key as u32);
        let mut number = self.dial(scenario)?;
        for (len, count) in scenario.messages() {
            let (seed, all) = (self.rng.next_u64(), len * count);
            for (index, data) in numbers(seed, all).chunks(len).enumerate() {
                self.requester.write(number, index as u64, address + (index * len) as u64, key, data)?;
            }
            let (mut written, mut failure) = (0, None);
            self.complete(count, |_, outcome| match outcome {
                RequestOutcome::Written => written += 1,
                other => failure = failure.take().or(Some(format!("{other:?}"))),
            })?;
            let is_same = self.has_numbers(seed, all)?;
            tally.check(written == count && is_same, || {
                let counts = self.requester.counts();
                format!("{count} WRITEs of {len}: {written}, {is_same}, {failure:?}, {counts:?}")
            });
            let seed = self.rng.next_u64();
            self.ask(&format!("fill {seed} 0 {all}"), "filled")?;
            for index in 0..count {
                let range = MemoryRange { address: address + (index * len) as u64, key, len: len as u32 };
                self.requester.read(number, index as u64, range)?;
            }
            let (mut read, mut next, mut failure) = (Vec::new(), 0, None);
            self.complete(count, |token, outcome| {
                match outcome {
                    RequestOutcome::Read(bytes) if token == next => read.extend_from_slice(bytes),
                    other => failure = Some(format!("{other:?}")),
                }
                next += 1;
            })?;
            tally.check(read == numbers(seed, all), || {
                format!("{count} READs of {len}: {} bytes, {failure:?}, {:?}", read.len(), self.requester.counts())
            });
        }
        let mut value = self.word()?;
        for round in 0..24 {
            let add = self.rng.next_u64();
            let new = match round % 3 {
                0 => {
                    self.requester.fetch_add(number, 0, address, key, add)?;
                    value.wrapping_add(add)
                }
                1 => {
                    self.requester.compare_swap(number, 0, address, key, value, add)?;
                    add
                }
                _ => {
                    self.requester.compare_swap(number, 0, address, key, value ^ 1, add)?;
                    value
                }
            };
            let mut original = None;
            self.complete(1, |_, outcome| {
                if let RequestOutcome::Original(found) = outcome {
                    original = Some(found);
                }
            })?;
            let present = self.word()?;
            tally.check(original == Some(value) && present == new, || {
                format!("atomic {round}: {original:?}, {present}")
            });
            value = new;
        }
        for (what, address, key) in
            [("a wrong key", address, MemoryKey(key.0 ^ 1)), ("past the end", address + size - 7, key)]
        {
            self.requester.read(number, 0, MemoryRange { address, key, len: 8 })?;
            let mut reason = None;
            self.complete(1, |_, outcome| {
                if let RequestOutcome::Failed(found) = outcome {
                    reason = Some(found);
                }
            })?;
            let expected = FailureReason::Refused(NakCode::RemoteAccessError);
            tally.check(reason == Some(expected), || format!("{what}: {reason:?}"));
            self.ask("close", "closed")?;
            self.requester.close(number);
            number = self.dial(scenario)?;
        }
        self.ask("close", "closed")?;
        self.requester.close(number);
        Ok(())
    }
}
