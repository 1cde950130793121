//! Programs that are compiled while they run already.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtime::{Hook, HookContext, RunConfig, TakeoverCallback};
use switch::{CompileJob, CompiledCode, SwitchControl, Takeover};

use crate::rig::{Repeater, TEST_TIMEOUT, frame, program, run_while, two_ports};

/// A repeater whose compilation says when it begins, and then ends with the code of its program when it may.
fn repeater(name: &'static str, began: Sender<&'static str>, may_end: Receiver<()>) -> Repeater {
    let may_end = Mutex::new(may_end);
    let job = CompileJob::new(move |_: &AtomicBool| {
        began.send(name).expect("the test waits");
        // An error means that the test is over.
        _ = may_end.lock().unwrap().recv();
        CompiledCode::new(name.to_owned())
    });
    Repeater::with_job(program(name), job)
}

/// Returns a callback that appends each takeover to a list.
fn noting(list: &Arc<Mutex<Vec<Takeover>>>) -> TakeoverCallback {
    let list = Arc::clone(list);
    Box::new(move |takeover, _| list.lock().unwrap().push(takeover.clone()))
}

fn wait_for<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(TEST_TIMEOUT).expect("it happens")
}

fn wait_until_noted(list: &Mutex<Vec<Takeover>>) {
    while list.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn packets_are_forwarded_before_the_code_is_there_and_the_takeover_is_reported_once() {
    for workers in [1, 2] {
        let (began_sender, began) = channel();
        let (may_end, may_end_receiver) = channel();
        let noted = Arc::new(Mutex::new(Vec::new()));
        let (ports, [first, second]) = two_ports();
        let switch = repeater("a", began_sender, may_end_receiver);
        let config = RunConfig { workers, on_takeover: noting(&noted), ..RunConfig::new(switch, ports) };
        run_while(config, || {
            assert_eq!(wait_for(&began), "a");
            first.send(&frame(1, 1));
            assert_eq!(second.receive(), Some(frame(1, 1)));
            assert!(noted.lock().unwrap().is_empty());
            may_end.send(()).unwrap();
            wait_until_noted(&noted);
            first.send(&frame(2, 1));
            assert_eq!(second.receive(), Some(frame(2, 1)));
        });
        assert_eq!(*noted.lock().unwrap(), [Takeover::Compiled]);
    }
}

/// Replaces the program, once, when it may.
struct Replacement {
    may_replace: Arc<AtomicU32>,
    next: Option<Repeater>,
}

impl Hook<Repeater> for Replacement {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        if self.may_replace.load(Ordering::Relaxed) > 0
            && let Some(mut next) = self.next.take()
        {
            context.quiesce();
            context.switch.swap_with(&mut next);
        }
    }

    fn is_due(&self) -> bool {
        true
    }
}

#[test]
fn the_code_of_a_program_that_was_replaced_is_not_installed() {
    for workers in [1, 2] {
        let (began_sender, began) = channel();
        let [(end_first, first_receiver), (end_second, second_receiver)] = [channel(), channel()];
        let noted = Arc::new(Mutex::new(Vec::new()));
        let (ports, _cables) = two_ports();
        let may_replace = Arc::new(AtomicU32::new(0));
        let next = Some(repeater("b", began_sender.clone(), second_receiver));
        let hooks: Vec<Box<dyn Hook<_>>> = vec![Box::new(Replacement { may_replace: Arc::clone(&may_replace), next })];
        let switch = repeater("a", began_sender, first_receiver);
        let config = RunConfig { workers, hooks, on_takeover: noting(&noted), ..RunConfig::new(switch, ports) };
        let (report, ()) = run_while(config, || {
            assert_eq!(wait_for(&began), "a");
            may_replace.store(1, Ordering::Relaxed);
            // The second one begins only when the first has ended: there is one thread at a time.
            assert!(began.recv_timeout(Duration::from_millis(50)).is_err());
            end_first.send(()).unwrap();
            assert_eq!(wait_for(&began), "b");
            end_second.send(()).unwrap();
            wait_until_noted(&noted);
        });
        assert_eq!(*noted.lock().unwrap(), [Takeover::Compiled]);
        assert_eq!(report.switch.program().arch, "b");
    }
}

#[test]
fn a_run_that_ends_cancels_the_compilation_and_does_not_wait_for_it() {
    let (ended_sender, ended) = channel();
    let (began_sender, began) = channel();
    let job = CompileJob::new(move |is_cancelled: &AtomicBool| {
        began_sender.send(()).expect("the test waits");
        while !is_cancelled.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The run is over already.
        ended_sender.send(()).expect("the test waits");
        CompiledCode::new("a".to_owned())
    });
    let (ports, _cables) = two_ports();
    let switch = Repeater::with_job(program("a"), job);
    let noted = Arc::new(Mutex::new(Vec::new()));
    let config = RunConfig { on_takeover: noting(&noted), ..RunConfig::new(switch, ports) };
    run_while(config, || wait_for(&began));
    wait_for(&ended);
    assert!(noted.lock().unwrap().is_empty());
}

#[test]
fn a_compilation_that_panics_leaves_the_program_running() {
    let (ended_sender, ended) = channel::<()>();
    let job = CompileJob::new(move |_: &AtomicBool| {
        let _dropped_at_the_end = &ended_sender;
        panic!("the code generator of a test")
    });
    let (ports, [first, second]) = two_ports();
    let switch = Repeater::with_job(program("a"), job);
    run_while(RunConfig::new(switch, ports), || {
        assert!(ended.recv_timeout(TEST_TIMEOUT).is_err());
        first.send(&frame(1, 1));
        assert_eq!(second.receive(), Some(frame(1, 1)));
    });
}
