//! Machine code replaces the interpreter between two batches, and nothing else changes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::rng::SplitMix64;
use ::switch::{Device, Egress, HeadroomBuf, PortId, Takeover, Time};
use jit::Speed;

use super::in_place::{BATCHES, Pair, Random, Setting, probe, run_story};
use super::traced::router;
use super::workers::{of_flow, routes};
use crate::switch::state::Machine;
use crate::{Config, Executor, Path, Switch};

/// Compiles the program of a switch and installs the code.
#[track_caller]
fn install(switch: &mut Switch) {
    let job = switch.take_compile_job().expect("its code is deferred");
    assert_eq!(switch.install(job.run(&AtomicBool::new(false))), Takeover::Compiled);
}

#[test]
fn a_takeover_at_any_batch_keeps_packets_counters_and_queues_exact() {
    let mut in_place = 0;
    for is_paced in [true, false] {
        for seed in 0..20 {
            let setting = |executor| Setting { executor, is_paced, ..Setting::USUAL };
            // One is interpreted to the end, or runs machine code from the beginning.
            let other = if seed % 2 == 0 { Executor::Interpreter } else { Executor::Jit };
            let mut pair = Pair::of(probe(setting(other)), probe(setting(Executor::Auto)));
            let mut random = Random(SplitMix64::new(seed));
            let at = random.below(BATCHES as u64) as usize;
            run_story(&mut pair, &mut random, &mut |pair, number| {
                assert_eq!(pair.lent.is_compiled(), number > at);
                if number == at {
                    install(&mut pair.lent);
                }
            });
            assert_eq!(pair.lent.why_interpreted(), None);
            in_place += pair.in_place;
        }
    }
    assert!(in_place > 200, "only {in_place} frames left in place");
}

#[test]
fn code_with_a_short_compile_time_comes_to_the_same() {
    // What large programs get: slots in the frame, and no code for the whole pipeline of a packet outside a batch.
    for (is_paced, reads_length) in [(true, true), (false, false), (false, true)] {
        for seed in 0..10 {
            let setting = |executor| Setting { executor, is_paced, reads_length, ..Setting::USUAL };
            let mut lent = probe(setting(Executor::Interpreter));
            let cancelled = AtomicBool::new(false);
            let machine = Machine::with_speed(lent.program(), &lent.layout, None, Speed::Compile, &cancelled);
            lent.run_machine(Arc::new(machine.expect("the probe becomes machine code")));
            let mut pair = Pair::of(probe(setting(Executor::Interpreter)), lent);
            run_story(&mut pair, &mut Random(SplitMix64::new(seed)), &mut |_, _| ());
            assert!(pair.in_place > 0);
        }
    }
}

/// Returns a router whose code is deferred.
fn deferred_router() -> Switch {
    let program = Arc::clone(router(|text| text).program());
    let mut switch = Switch::deferred(program, Config::with_ports(4)).expect("the router fits the switch");
    routes(&mut switch, 8);
    switch
}

/// Number of flows of [`left_in_place`] that have a route: those of [`routes`] and one that the program has itself.
const ROUTED: usize = 5;

/// Sends a frame of each flow. Returns the number of frames that left in place.
fn left_in_place(switch: &mut Switch, number: u16) -> usize {
    let mut frames: Vec<HeadroomBuf> = (0..8).map(|flow| HeadroomBuf::new(&of_flow(flow, number), 64)).collect();
    let mut output = Vec::new();
    switch.step_in_place(Time::from_us(number.into()), PortId(0), &mut frames, &mut output);
    assert_eq!(output.len(), ROUTED, "the other flows have no route");
    output.iter().filter(|egress| matches!(egress, Egress::InPlace { .. })).count()
}

#[test]
fn workers_follow_their_owner() {
    let mut owner = deferred_router();
    let mut workers = owner.workers(2);
    for worker in &mut workers {
        assert!(worker.take_compile_job().is_none(), "the owner has it for all");
        assert_eq!(left_in_place(worker, 1), 0);
    }
    install(&mut owner);
    assert_eq!(left_in_place(&mut workers[0], 2), 0, "nothing is published yet");
    owner.publish();
    for worker in &mut workers {
        // The batch that finds the code is begun by the interpreter.
        left_in_place(worker, 3);
        assert!(worker.is_compiled());
        assert_eq!(left_in_place(worker, 4), ROUTED);
    }
    owner.step(Time::from_us(5), &mut Vec::new(), &mut Vec::new());
    assert_eq!(owner.registry().get("port.0.rx.packets"), Some(7 * 8));
}

#[test]
fn only_the_code_of_the_same_program_is_installed() {
    let (mut first, mut second) = (deferred_router(), deferred_router());
    let job = first.take_compile_job().expect("its code is deferred");
    assert!(first.take_compile_job().is_none(), "there is one job");
    let code = job.run(&AtomicBool::new(false));
    assert_eq!(second.install(code), Takeover::OtherProgram);
    assert!(!second.is_compiled());
    assert_eq!(left_in_place(&mut second, 1), 0);
    install(&mut second);
    assert_eq!(left_in_place(&mut second, 2), ROUTED);
    let paths = second.path_counts();
    assert!(paths.iter().any(|count| count.path == Path::Batched && count.packets == 8), "{paths:?}");
}

#[test]
fn a_cancelled_compilation_leaves_the_interpreter() {
    let mut switch = deferred_router();
    let job = switch.take_compile_job().expect("its code is deferred");
    let takeover = switch.install(job.run(&AtomicBool::new(true)));
    assert_eq!(takeover, Takeover::Interpreted("the compilation was cancelled".to_owned()));
    assert_eq!(switch.why_interpreted(), Some("the compilation was cancelled"));
    assert_eq!(left_in_place(&mut switch, 1), 0);
}

#[test]
fn the_interpreter_on_request_and_machine_code_at_once_have_nothing_to_compile() {
    let program = Arc::clone(router(|text| text).program());
    for executor in [Executor::Interpreter, Executor::Jit] {
        let config = Config { executor, ..Config::with_ports(4) };
        let mut switch = Switch::deferred(Arc::clone(&program), config).expect("the router fits the switch");
        assert!(switch.take_compile_job().is_none());
        assert_eq!(switch.is_compiled(), executor == Executor::Jit);
    }
}
