//! The same packets in the kernel, as root: every program that is emitted loads, and does what it does in the machine.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use bpf::RegionCounts;
use bpf::asm::Links;
use ports::{KernelProgram, KernelRegion, RedirectMap};
use rng::SplitMix64;

use crate::rig::{self, PORTS, Rig};

/// A program of a rig in the kernel, with the region of its own.
pub struct InKernel {
    region: KernelRegion,
    programs: Vec<KernelProgram>,
    _targets: [RedirectMap; 2],
}

impl InKernel {
    /// Loads the code of a rig for the first ports, with the rig's tables.
    ///
    /// # Errors
    /// If the process lacks the privileges.
    ///
    /// # Panics
    /// If the verifier refuses the code.
    pub fn load(rig: &Rig, ports: u32) -> io::Result<InKernel> {
        InKernel::load_for(rig, ports, false)
    }

    /// Does the same for ports that may have local senders.
    pub fn load_for(rig: &Rig, ports: u32, has_local_senders: bool) -> io::Result<InKernel> {
        let region = KernelRegion::new(rig.compiled.layout.bytes())?;
        for (to, from) in region.words().iter().zip(rig.region.iter()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Times would differ from those of the machine.
        bpf::set_clock_origin(&rig.compiled.layout, region.words(), 0);
        let (devices, sockets) = (RedirectMap::devices(64)?, RedirectMap::sockets(2)?);
        // The loopback interface stands for all devices: redirects are not carried out.
        (10..10 + PORTS).try_for_each(|device| devices.set_device(device, 1))?;
        let load = |port| {
            let links = Links {
                region: region.descriptor(),
                devices: devices.descriptor(),
                sockets: sockets.descriptor(),
                port,
                has_local_senders,
            };
            let code = rig.compiled.encode(&links, true).expect("code");
            match KernelProgram::load(&code) {
                Ok(program) => Ok(program),
                Err(refused) if refused.error.kind() == io::ErrorKind::PermissionDenied && refused.log.is_empty() => {
                    Err(refused.error)
                }
                Err(refused) => {
                    let log = refused.log.len().saturating_sub(4000);
                    panic!("{refused}\n...{}", refused.log.get(log..).unwrap_or_default())
                }
            }
        };
        let programs = (0..ports).map(load).collect::<io::Result<_>>()?;
        Ok(InKernel { region, programs, _targets: [devices, sockets] })
    }

    pub fn verified_instructions(&self) -> u64 {
        self.programs[0].verified_instructions().expect("the kernel says how many instructions it processed")
    }

    /// Runs a packet here and in the machine of the rig, and compares verdicts, bytes and regions.
    pub fn compare(&self, rig: &Rig, port: u32, data: &[u8]) {
        let mut packet = data.to_vec();
        rig.set_has_time(false);
        let outcome = rig.machine(port, &mut packet).expect("no fault");
        rig.set_has_time(true);
        let (verdict, frame) = self.run(port, data);
        for region in [self.region.words(), &rig.region] {
            bpf::finish_hand_overs(&rig.compiled.layout, region);
        }
        let is_socket = matches!(outcome.redirect, Some((bpf::asm::MapRef::Sockets, _)));
        // No queue has a socket here.
        let expected = if is_socket { bpf::uapi::XDP_PASS as u32 } else { outcome.verdict };
        // What lies in front of the frame comes with it. Numbers of hand-overs differ if the machine ran more packets.
        let front = frame.len() - packet.len();
        let mark = frame[..front].try_into().map(u64::from_ne_bytes).ok();
        let is_marked = mark.is_some_and(|mark| mark >> 48 == bpf::HAND_OVER_MARK >> 48);
        let is_right = if outcome.meta.is_some() { is_marked } else { front == 0 };
        assert!(is_right, "port {port}: {front} bytes in front of {data:02x?}");
        assert_eq!((verdict, &frame[front..]), (expected, &packet[..]), "port {port}: {data:02x?}");
    }

    /// Runs a packet here. Returns the verdict and the frame.
    pub fn run(&self, port: u32, data: &[u8]) -> (u32, Vec<u8>) {
        self.programs[port as usize].run(data).expect("a run")
    }

    /// Runs a packet on two ports at the same time, 2,000 times in each of a number of rounds.
    pub fn run_on_two_ports(&self, rig: &Rig, data: &[u8], rounds: u32) {
        let start = Barrier::new(2);
        let run = |port: u32| {
            for _ in 0..rounds {
                // Both begin at once.
                start.wait();
                self.programs[port as usize].run_repeatedly(data, 2000).expect("a run");
                bpf::finish_hand_overs(&rig.compiled.layout, self.region());
            }
        };
        std::thread::scope(|scope| [0, 1].map(|port| scope.spawn(move || run(port))).map(drop));
    }

    pub fn region(&self) -> &[AtomicU64] {
        self.region.words()
    }

    /// Sets the time of the kernel's clock at the start of the run.
    pub fn set_clock_origin(&self, rig: &Rig, origin_ns: u64) {
        bpf::set_clock_origin(&rig.compiled.layout, self.region.words(), origin_ns);
    }

    /// Compares the regions, but for the scratch memory, and the counts by port.
    pub fn compare_regions(&self, rig: &Rig) {
        let [ours, theirs] =
            [self.region.words(), &rig.region[..]].map(|region| RegionCounts::new(&rig.compiled.layout, region));
        for port in 0..PORTS {
            assert_eq!(
                (ours.received(port), ours.sent(port)),
                (theirs.received(port), theirs.sent(port)),
                "port {port}"
            );
        }
        let private = rig.compiled.layout.private_bytes() as usize / 8;
        assert_eq!(rig::shared(&self.region.words()[private..]), rig.shared_words());
    }
}

/// Compares packets of at least 14 bytes here and in the machine of a rig that has run none, and then the regions. Says
/// that the test skips this if the program could not be loaded.
pub fn replay(kernel: io::Result<InKernel>, before: &Rig, packets: &[(u32, Vec<u8>)]) {
    match kernel {
        Ok(kernel) => {
            let packets = packets.iter().filter(|(_, data)| data.len() >= 14);
            packets.for_each(|(port, data)| kernel.compare(before, *port, data));
            kernel.compare_regions(before);
        }
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}

#[test]
fn the_router_in_the_kernel_is_the_router() {
    let program = crate::rig::program("examples/router/router.p4");
    let rig = Rig::new(&program, |program, objects| crate::router::write(2, 200, program, objects));
    let kernel = match InKernel::load(&rig, PORTS) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    let mut rng = SplitMix64::new(4);
    for _ in 0..2000 {
        let mut data = crate::router::packet(&mut rng);
        if rng.percent(30) {
            data.truncate(14 + rng.below(data.len() as u64 - 13) as usize);
        }
        kernel.compare(&rig, rng.below(PORTS.into()) as u32, &data);
    }
    kernel.compare_regions(&rig);
    eprintln!("{} instructions processed", kernel.verified_instructions());
    assert!(kernel.verified_instructions() < 20_000, "{} instructions were processed", kernel.verified_instructions());
}

/// Returns a program with this many tables in a row, each with four actions.
fn many_tables(count: u32) -> String {
    let (mut tables, mut applications) = (String::new(), String::new());
    for number in 0..count {
        let actions: String = (0..4)
            .map(|action| {
                format!("action a{number}_{action}(bit<32> x) {{ meta.m = meta.m + x; hdr.h.b = meta.m; }}\n")
            })
            .collect();
        tables += &format!(
            "{actions}table t{number} {{ key = {{ meta.m: exact; hdr.h.a: exact; }} \
             actions = {{ a{number}_0; a{number}_1; a{number}_2; a{number}_3; }} \
             default_action = a{number}_0({number}); size = 64; }}\n"
        );
        applications += &format!("t{number}.apply();\n");
    }
    let program = include_str!("many_tables.p4");
    program.replace("/* tables */", &tables).replace("/* applications */", &applications)
}

#[test]
fn the_work_of_the_verifier_grows_with_the_tables_and_no_faster() {
    let processed = |count: u32| {
        let program = rig::compile_text(&many_tables(count), None).expect("a valid program");
        let mut rig = Rig::new(&program, |_, _| ());
        let begin = std::time::Instant::now();
        let kernel = InKernel::load(&rig, 1).ok()?;
        let elapsed = begin.elapsed();
        let packet = [7; 40];
        assert!(matches!(rig.packet(0, &packet), crate::rig::Way::Sent { .. }));
        kernel.compare(&rig, 0, &packet);
        eprintln!("{count} tables: {} instructions processed, {elapsed:?}", kernel.verified_instructions());
        Some(kernel.verified_instructions())
    };
    let Some(fifty) = processed(50) else { return testing::skip("needs root") };
    let hundred = processed(100).expect("it was possible a moment ago");
    assert!(fifty <= 50_000, "{fifty} instructions for 50 tables of four actions");
    assert!(hundred * 10 <= fifty * 22, "{hundred} for 100 tables, {fifty} for 50");
}

#[test]
fn a_rejection_names_the_line_of_the_program() {
    let program = crate::rig::program("examples/router/router.p4");
    let rig = Rig::new(&program, |_, _| {});
    let code = rig.compiled.encode(&rig::links(0), true).expect("code");
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/router/router.p4"));
    let line = text.expect("the program").lines().position(|line| line.contains("ttl = ")).expect("a line") as u32 + 1;
    let is_there = |at: &usize| {
        let place = rig.compiled.place_of(*at, true).map(|loc| program.locs[loc].to_string());
        place.is_some_and(|place| place.contains(&format!("program.p4:{line}:")))
    };
    let at = (0..code.len()).find(is_there).expect("an instruction of the line");
    let region = match KernelRegion::new(rig.compiled.layout.bytes()) {
        Ok(region) => region,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    let links = Links { region: region.descriptor(), ..rig::links(0) };
    let (devices, sockets) = (RedirectMap::devices(64).expect("a map"), RedirectMap::sockets(2).expect("a map"));
    let links = Links { devices: devices.descriptor(), sockets: sockets.descriptor(), ..links };
    let mut code = rig.compiled.encode(&links, true).expect("code");
    // Loads a word behind the end of the stack to r0.
    code[at] = 0x79 | 10 << 12 | 8 << 16;
    let rejected = KernelProgram::load(&code).expect_err("the verifier sees it");
    assert_eq!(rejected.instruction(), Some(at), "{}", rejected.reason());
    assert!(rejected.reason().contains("invalid"), "{}", rejected.reason());
}
