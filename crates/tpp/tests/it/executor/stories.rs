//! Requests whose packets the test carries by hand.

use std::net::IpAddr;
use std::sync::Arc;

use tpp::executor::{
    ExecutedProgram, ExecutionOptions, ExecutionPlan, ExecutorSettings, OutgoingProgram, ProgramExecutor,
    RequestOutcome, ScatterGather, ScatterTarget, StoreVerdict,
};
use tpp::probe::echo;
use tpp::{AccessRights, MemoryMap, SparseMemory, Tcpu, TinyProgram};
use wire::tpp::{Packet, UDP_PORT};

use super::network::address;
use super::source::assembled;

const SETTINGS: ExecutorSettings =
    ExecutorSettings { timeout_ns: 100, longest_timeout_ns: 250, in_flight: 2, requests: 8 };

fn to() -> IpAddr {
    address(0)
}

fn plan(text: &str, options: &ExecutionOptions) -> Result<Arc<ExecutionPlan>, String> {
    let plan = ExecutionPlan::new(&assembled(text), options).map(Arc::new);
    plan.map_err(|findings| format!("{}: {}", findings[0].code, findings[0].message))
}

fn on_switch(switch: u32) -> ExecutionOptions {
    ExecutionOptions { switch: Some(switch), ..ExecutionOptions::default() }
}

/// A switch with a word of applications.
fn switch(id: u64) -> SparseMemory {
    let (map, mut memory) = (MemoryMap::new(), SparseMemory::new());
    let address = |name: &str| map.find(name).expect("it is in the map").address;
    memory.fixed(address("Switch:ID"), id);
    memory.fixed(address("Queue:QueueOccupancy"), 10 + id);
    memory.fixed(address("Link:Capacity"), id << 32 | 7);
    memory.word(address("Switch:AppSpecific_0") as u16, 0);
    memory
}

fn word_of(memory: &SparseMemory) -> u64 {
    let map = MemoryMap::new();
    memory.value(map.find("Switch:AppSpecific_0").expect("it is in the map").address).expect("it exists")
}

fn sent(executor: &mut ProgramExecutor, now_ns: u64) -> OutgoingProgram {
    executor.send(now_ns, || 1 + now_ns).expect("a datagram")
}

/// Passes switches and returns the echo of the host behind them, or of the switch that reflected it.
fn carried(mut datagram: Vec<u8>, switches: &mut [SparseMemory]) -> Vec<u8> {
    let reflects = |memory: &mut SparseMemory| Tcpu::execute(&mut datagram, memory, &AccessRights::all()).reflect;
    if !switches.iter_mut().any(reflects) {
        assert!(echo(40_000, &mut datagram));
    }
    datagram
}

fn executed(executor: &mut ProgramExecutor, now_ns: u64) -> ExecutedProgram {
    match executor.completed(now_ns).expect("an outcome").outcome {
        RequestOutcome::Executed(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Executes a program on a path without faults.
fn run(text: &str, options: &ExecutionOptions, switches: &mut [SparseMemory]) -> ExecutedProgram {
    let mut executor = ProgramExecutor::new(SETTINGS);
    executor.execute(to(), plan(text, options).expect("it can be executed"), 1000).expect("there is room");
    while let Some(outgoing) = executor.send(0, || 5) {
        executor.receive(0, (to(), UDP_PORT), &carried(outgoing.datagram, switches));
    }
    executed(&mut executor, 0)
}

fn words(program: &TinyProgram) -> Vec<Vec<u32>> {
    let hops = program.words_by_hop(&MemoryMap::new());
    hops.into_iter().map(|hop| hop.into_iter().map(|(_, value)| value).collect()).collect()
}

#[test]
fn a_lost_packet_is_sent_again_and_waits_longer_each_time() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    let plan = plan("PUSH [Switch:ID]\n", &ExecutionOptions::default()).expect("it stores nothing");
    executor.execute(to(), plan, 10_000).expect("there is room");
    let first = sent(&mut executor, 0);
    assert_eq!((executor.send(99, || 1), executor.next_deadline()), (None, Some(100)));
    let second = sent(&mut executor, 100);
    assert_ne!(first.datagram, second.datagram, "each try has its name");
    assert_eq!(executor.next_deadline(), Some(300));
    sent(&mut executor, 300);
    // The third one waits 250 instead of 400.
    assert_eq!(executor.next_deadline(), Some(550));
    // The echo of the first one counts, and the others are repeated ones.
    executor.receive(400, (to(), UDP_PORT), &carried(first.datagram, &mut [switch(4)]));
    let found = executed(&mut executor, 400);
    assert_eq!((found.rtt_ns, found.sent, words(&found.program)), (400, 3, vec![vec![4]]));
    executor.receive(410, (to(), UDP_PORT), &carried(second.datagram, &mut [switch(4)]));
    assert_eq!((executor.refused().repeated, executor.completed(9_999)), (1, None));
    assert_eq!(executor.next_deadline(), None);
}

#[test]
fn requests_end_after_the_last_try_and_at_the_deadline() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    let plan = plan("PUSH [Switch:ID]\n", &ExecutionOptions { tries: 2, ..ExecutionOptions::default() });
    let plan = plan.expect("it stores nothing");
    executor.execute(to(), Arc::clone(&plan), 10_000).expect("there is room");
    let late = executor.execute(address(1), plan, 150).expect("there is room");
    for now_ns in [0, 0, 100, 100] {
        sent(&mut executor, now_ns);
    }
    assert_eq!(executor.completed(149), None);
    let completion = executor.completed(150).expect("the deadline");
    assert_eq!(completion.request, late);
    assert_eq!(completion.outcome, RequestOutcome::TooLate { sent: 2, echoed: (0, 1) });
    assert_eq!(executor.completed(299), None);
    let outcome = executor.completed(300).expect("no try is left").outcome;
    assert_eq!(outcome, RequestOutcome::Unanswered { sent: 2, echoed: (0, 1) });
}

#[test]
fn a_store_that_a_retry_would_repeat_is_refused() {
    let once = ExecutionOptions { tries: 1, ..ExecutionOptions::default() };
    let many = ExecutionOptions::default();
    let stores = [
        ".memory 5\nSTORE [Switch:AppSpecific_0], [Packet:0]\n",
        ".memory 5\nPOP [Switch:AppSpecific_0]\n",
        // The values come from the switch.
        ".mode hop\nLOAD [Switch:AppSpecific_0], [Packet:hop[0]]\n\
         CSTORE [Switch:AppSpecific_0], [Packet:hop[0]], [Packet:hop[1]]\n",
        // A failure at one switch changes what the next one compares.
        "CSTORE [Switch:AppSpecific_0], 0, 5\n",
        // The second store makes the first one possible again.
        ".mode hop\nCSTORE [Switch:AppSpecific_0], 0, 5\nCSTORE [Switch:AppSpecific_0], 5, 0\n",
        // `old` and `new` are equal, so the first store always succeeds.
        ".mode hop\nCSTORE [Switch:AppSpecific_1], 5, 5\nSTORE [Switch:AppSpecific_0], [Packet:hop[0]]\n",
        // The retry would go on to the next switch.
        ".mode hop\n.reflect\nCSTORE [Switch:AppSpecific_0], 0, 5\n",
        ".memory 5\nSTORE [Switch:AppSpecific_0], [Packet:0]\nCSTORE [Switch:AppSpecific_1], 0, 5\n",
    ];
    for text in stores {
        let refused = plan(text, &many).expect_err(text);
        assert!(refused.starts_with("unsafe-retry: "), "{text}{refused}");
        plan(text, &once).expect(text);
    }
    // A retry that fails does not come back, so a store would look like a lost packet.
    let reflects = ExecutionOptions { reflects: true, ..on_switch(3) };
    for text in ["CSTORE [Switch:AppSpecific_0], 0, 5\n", "CEXEC [Switch:ID], 3\nCSTORE [Switch:AppSpecific_0], 0, 5\n"]
    {
        assert!(plan(text, &reflects).expect_err(text).contains("does not send it back"), "{text}");
        plan(text, &ExecutionOptions { tries: 1, ..reflects }).expect(text);
    }
    let conditional = [
        ".mode hop\nCSTORE [Switch:AppSpecific_0], 0, 5\nSTORE [Switch:AppSpecific_1], [Packet:hop[0]]\n",
        "CEXEC [Switch:ID], 3\nCSTORE [Switch:AppSpecific_0], 0, 5\n",
        "CEXEC [PacketMetadata:TPP-Hop], 0xff, 1\nCSTORE [Switch:AppSpecific_0], 0, 5\n",
        ".readonly\n.memory 5\nSTORE [Switch:AppSpecific_0], [Packet:0]\n",
    ];
    conditional.iter().for_each(|text| drop(plan(text, &many).expect(text)));
    plan("CSTORE [Switch:AppSpecific_0], 0, 5\n", &on_switch(3)).expect("one switch compares");
    // A mask that leaves two hops.
    plan("CEXEC [PacketMetadata:TPP-Hop], 0xfe, 0\nCSTORE [Switch:AppSpecific_0], 0, 5\n", &many)
        .expect_err("two hops share `old`");
}

#[test]
fn a_store_whose_echo_was_lost_is_told_from_that_of_another() {
    let cstore = "CSTORE [Switch:AppSpecific_0], 0, 5\n";
    let has_new_value = StoreVerdict::HasNewValue { may_have_stored: true };
    for (owns_values, expected) in [(true, StoreVerdict::StoredEarlier), (false, has_new_value)] {
        let mut path = [switch(1), switch(2)];
        let mut executor = ProgramExecutor::new(SETTINGS);
        let options = ExecutionOptions { owns_values, ..on_switch(2) };
        executor.execute(to(), plan(cstore, &options).expect("it is conditional"), 10_000).expect("there is room");
        let first = carried(sent(&mut executor, 0).datagram, &mut path);
        let second = carried(sent(&mut executor, 100).datagram, &mut path);
        assert_eq!([&path[0], &path[1]].map(word_of), [0, 5]);
        executor.receive(150, (to(), UDP_PORT), &second);
        let found = executed(&mut executor, 150);
        assert_eq!(found.stores[0].verdict, expected);
        // The first echo was only late.
        executor.receive(160, (to(), UDP_PORT), &first);
        assert_eq!(executor.refused().repeated, 1);
    }
    // Another host was first.
    let mut path = [switch(1)];
    run("CSTORE [Switch:AppSpecific_0], 0, 9\n", &on_switch(1), &mut path);
    let found = run(cstore, &on_switch(1), &mut path);
    assert_eq!(found.stores[0].verdict, StoreVerdict::Other { found: 9, may_have_stored: false });
    assert_eq!((found.program.repr.hop, found.place), (1, None), "the switch executed some of it");
    let found = run(cstore, &on_switch(7), &mut path);
    assert_eq!(found.stores[0].verdict, StoreVerdict::NotReached);
    // Another host was first, with the same value: there was no earlier try.
    let found = run("CSTORE [Switch:AppSpecific_0], 0, 9\n", &on_switch(1), &mut path);
    assert_eq!(found.stores[0].verdict, StoreVerdict::HasNewValue { may_have_stored: false });
}

#[test]
fn one_switch_executes_a_targeted_program() {
    let text = "PUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]\nPUSH [Link:Capacity]\nPUSH [Link:Capacity.High]\n";
    let found = run(text, &on_switch(2), &mut [switch(1), switch(2), switch(3)]);
    assert_eq!(words(&found.program), [[2, 12, 7, 2]]);
    assert_eq!((found.place, found.program.memory.len(), found.sent), (Some(1), 16, 2));
    let found = run(text, &on_switch(9), &mut [switch(1), switch(2)]);
    assert_eq!((found.place, found.program.repr.hop), (None, 0));
    // In hop mode and with 16-bit words, too.
    let text = ".word 16\n.mode hop\nLOAD [Queue:QueueOccupancy], [Packet:hop[1]]\nPUSH [Switch:ID]\n";
    let found = run(text, &on_switch(3), &mut [switch(1), switch(2), switch(3)]);
    assert_eq!((words(&found.program), found.place), (vec![vec![3, 13]], Some(2)));
}

#[test]
fn a_switch_sends_a_reflective_program_back() {
    let options = ExecutionOptions { reflects: true, ..on_switch(2) };
    let mut path = [switch(1), switch(2), switch(3)];
    let found = run("PUSH [Switch:ID]\n", &options, &mut path);
    assert_eq!((words(&found.program), found.place), (vec![vec![2]], Some(1)));
    // Nobody else sent it back: it passed two switches.
    let text = "CEXEC [Switch:ID], 2\nSTORE [Switch:AppSpecific_0], [Packet:0]\n";
    let found = run(text, &ExecutionOptions { reflects: true, tries: 1, ..ExecutionOptions::default() }, &mut path);
    assert_eq!(found.program.repr.hop, 2);
}

#[test]
fn a_large_program_is_split_by_instructions_and_by_hops() {
    let names = ["Switch:ID", "Queue:QueueOccupancy", "Link:Capacity", "Link:Capacity.High"];
    let text: String = (0..13).map(|at| format!("PUSH [{}]\n", names[at % 4])).collect();
    let text = format!(".hops 30\n{text}");
    let mut path: Vec<SparseMemory> = (1..=30).map(switch).collect();
    let plan = plan(&text, &ExecutionOptions::default()).expect("its instructions are independent");
    // Halves stay together, so the groups have 5, 5 and 3 instructions; 478 bytes have room for 23 hops of five words.
    assert_eq!(plan.packets(), 5);
    let found = run(&text, &ExecutionOptions::default(), &mut path);
    let expected: Vec<Vec<u32>> = (1..=30).map(|id| (0..13).map(|at| [id, 10 + id, 7, id][at % 4]).collect()).collect();
    assert_eq!(words(&found.program), expected);
    assert!(!found.paths_differ && !found.program.repr.status.contains(wire::tpp::Status::FULL));
    // One switch more than there is memory for.
    path.push(switch(31));
    let found = run(&text, &ExecutionOptions::default(), &mut path);
    assert_eq!(words(&found.program), expected);
    assert!(found.program.repr.status.contains(wire::tpp::Status::FULL));
}

#[test]
fn packets_of_different_paths_are_noticed() {
    let text = "PUSH [Switch:ID]\n".repeat(6);
    let mut executor = ProgramExecutor::new(SETTINGS);
    executor.execute(to(), plan(&text, &ExecutionOptions::default()).expect("it splits"), 1000).expect("there is room");
    let [one, other] = [sent(&mut executor, 0), sent(&mut executor, 0)];
    executor.receive(1, (to(), UDP_PORT), &carried(one.datagram, &mut [switch(1), switch(2)]));
    executor.receive(1, (to(), UDP_PORT), &carried(other.datagram, &mut [switch(1)]));
    assert!(executed(&mut executor, 1).paths_differ);
}

#[test]
fn what_cannot_be_split_is_refused_with_its_reason() {
    let many = "PUSH [Switch:ID]\n".repeat(5);
    let loads = |count: usize| (0..count).map(|at| format!("LOAD [Switch:ID], [Packet:hop[{}]]\n", at + 2));
    let loads = |count: usize| loads(count).collect::<String>();
    let cases = [
        (format!("CSTORE [Switch:AppSpecific_0], 0, 5\n{many}"), "its failure ends the instructions behind it"),
        (format!(".mode hop\nCEXEC [Queue:QueueOccupancy], 3\n{}", loads(5)), "its failure ends"),
        (format!("{many}POP [Switch:AppSpecific_0]\n"), "a `POP` takes what others push"),
        (format!(".sp 0\nMAX [Switch:ID], [Packet:0]\n{many}"), "an operand of this program is a word of the stack"),
        (format!("PUSH [Link:Capacity]\n{many}PUSH [Link:Capacity.High]\n"), "the other half of the same value"),
        (format!("CEXEC [Switch:ID], 1\n{many}"), "a `CEXEC` before a `PUSH` hides the hop of its word"),
        (format!("{many}PUSH [PacketMetadata:TPP-SP]\n"), "this field differs in each packet"),
        (
            format!(".memory 1\nSTORE [Switch:AppSpecific_0], [Packet:0]\n{}", many.repeat(5) + ".hops 30\n"),
            "would be executed by several packets",
        ),
    ];
    let once = ExecutionOptions { tries: 1, ..ExecutionOptions::default() };
    for (text, reason) in cases {
        let refused = plan(&text, &once).expect_err(&text);
        assert!(refused.starts_with("unsplittable: ") && refused.contains(reason), "{text}{refused}");
    }
    // What every packet can repeat is no reason.
    plan(&format!(".mode hop\nCEXEC [Switch:ID], 1\n{}", loads(9)), &once).expect("each packet compares the number");
    plan(&format!(".mode hop\n{}CSTORE [Switch:AppSpecific_0], 0, 5\n", loads(9)), &once)
        .expect("nothing is behind it");
}

#[test]
fn packets_in_flight_and_requests_are_bounded() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    let plan = plan(&"PUSH [Switch:ID]\n".repeat(15), &ExecutionOptions::default()).expect("three packets");
    for _ in 0..SETTINGS.requests {
        executor.execute(to(), Arc::clone(&plan), 90).expect("there is room");
    }
    assert_eq!(executor.execute(to(), plan, 90), None);
    assert!([executor.send(0, || 1), executor.send(0, || 1)].iter().all(Option::is_some));
    assert_eq!((executor.send(0, || 1), executor.in_flight()), (None, 2));
    let ended: Vec<_> = std::iter::from_fn(|| executor.completed(90)).map(|it| it.outcome).collect();
    let sent = ended.iter().map(|outcome| match outcome {
        RequestOutcome::TooLate { sent, .. } => *sent,
        other => panic!("{other:?}"),
    });
    assert_eq!(sent.collect::<Vec<_>>(), [2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((executor.in_flight(), executor.next_deadline()), (0, None));
}

#[test]
fn packets_of_all_requests_are_bounded() {
    let mut executor = ProgramExecutor::new(ExecutorSettings { requests: usize::MAX, ..SETTINGS });
    let plan = plan(&"PUSH [Switch:ID]\n".repeat(15), &ExecutionOptions::default()).expect("three packets");
    let accepted = std::iter::from_fn(|| executor.execute(to(), Arc::clone(&plan), 90)).count();
    assert_eq!(accepted, 65_536 / 3);
}

#[test]
fn an_echo_with_another_constant_or_header_is_refused() {
    // In stack mode the constants are before the stack, in hop mode behind the words of each hop.
    for text in
        ["CEXEC [Switch:ID], 0xff, 1\nPUSH [Switch:ID]\n", ".mode hop\nCEXEC [Switch:ID], 0xff, 1\nPUSH [Switch:ID]\n"]
    {
        let mut executor = ProgramExecutor::new(SETTINGS);
        let plan = plan(text, &ExecutionOptions::default()).expect("it stores nothing");
        executor.execute(to(), plan, 1000).expect("there is room");
        let genuine = carried(sent(&mut executor, 0).datagram, &mut [switch(1)]);
        let length = Packet::new_checked(&genuine).expect("an echo").length();
        let begin = 12 + 2 * 4;
        let mut accepted = Vec::new();
        for at in (0..length).filter(|at| !(6..8).contains(at)) {
            let mut altered = genuine.clone();
            altered[at] ^= 1;
            let Ok(mut packet) = Packet::new_checked(&mut altered[..]) else { continue };
            packet.fill_checksum();
            let mut executor = executor.clone();
            executor.receive(1, (to(), UDP_PORT), &altered);
            if executor.completed(1).is_some() {
                accepted.push(at);
            }
        }
        // Switches change the hop number, the stack pointer and the words of the stack, or word 0 of each hop.
        let is_stack = !text.starts_with(".mode");
        let is_changed = |at: &usize| match at {
            4 => true,
            5 => is_stack,
            at if *at < begin => false,
            at if is_stack => *at >= begin + 8,
            at => (*at - begin) % 12 < 4,
        };
        let changed: Vec<usize> = (0..length).filter(is_changed).collect();
        assert_eq!(accepted, changed, "{text}");
    }
}

#[test]
fn a_retry_that_is_due_is_not_sent_after_its_echo() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    let plan = plan(&"PUSH [Switch:ID]\n".repeat(6), &ExecutionOptions::default()).expect("two packets");
    executor.execute(to(), plan, 1000).expect("there is room");
    let [one, other] = [sent(&mut executor, 0), sent(&mut executor, 0)];
    // Both retries are due when the echo of one arrives.
    executor.receive(100, (to(), UDP_PORT), &carried(one.datagram, &mut [switch(1)]));
    assert_eq!(executor.in_flight(), 1);
    let again = sent(&mut executor, 100);
    let end = other.datagram.len() - 16;
    assert_eq!(again.datagram[..end], other.datagram[..end]);
    assert_eq!((executor.send(100, || 1), executor.in_flight()), (None, 1));
}

#[test]
fn many_targets_are_gathered_and_failures_are_theirs() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    // More targets than the executor takes at once; every third one is silent.
    let target = |at: usize| ScatterTarget {
        to: address(at),
        plan: plan("PUSH [Switch:ID]\n", &on_switch(at as u32)).expect("it stores nothing"),
    };
    let mut gather = ScatterGather::new((0..20).map(target).collect(), 100_000);
    let (mut now_ns, mut order) = (0, Vec::new());
    while !gather.is_complete() {
        order.extend(gather.poll(&mut executor, now_ns).0);
        while let Some(OutgoingProgram { to, datagram, .. }) = executor.send(now_ns, || now_ns) {
            let target = (0..20).find(|at| address(*at) == to).expect("a target");
            if target % 3 > 0 {
                executor.receive(now_ns, (to, UDP_PORT), &carried(datagram, &mut [switch(target as u64)]));
            }
        }
        now_ns = executor.next_deadline().unwrap_or(0).max(now_ns);
    }
    order.sort_unstable();
    assert_eq!(order, (0..20).collect::<Vec<_>>(), "each has one outcome");
    for (target, outcome) in gather.outcomes().iter().enumerate() {
        match outcome.as_ref().expect("an outcome") {
            RequestOutcome::Executed(found) => assert_eq!(words(&found.program), [[target as u32]]),
            RequestOutcome::Unanswered { sent: 3, .. } => assert_eq!(target % 3, 0),
            other => panic!("{other:?}"),
        }
    }
    let mut late = ScatterGather::new(vec![target(1)], 5);
    late.poll(&mut executor, 5);
    let expected = RequestOutcome::TooLate { sent: 0, echoed: (0, 1) };
    assert_eq!((late.is_complete(), late.outcomes()), (true, &[Some(expected)][..]));
}

#[test]
fn a_request_that_is_cancelled_has_no_outcome() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    let plan = plan("PUSH [Switch:ID]\n", &ExecutionOptions::default()).expect("it stores nothing");
    let request = executor.execute(to(), plan, 1000).expect("there is room");
    let outgoing = sent(&mut executor, 0);
    executor.cancel(request);
    executor.receive(1, (to(), UDP_PORT), &carried(outgoing.datagram, &mut [switch(1)]));
    assert_eq!((executor.completed(2000), executor.in_flight()), (None, 0));
    assert_eq!((executor.refused().repeated, executor.next_deadline()), (1, None));
}

#[test]
fn an_echo_counts_from_its_target_with_its_tag_only() {
    let mut executor = ProgramExecutor::new(SETTINGS);
    let plan = plan("PUSH [Switch:ID]\n", &ExecutionOptions::default()).expect("it stores nothing");
    executor.execute(to(), plan, 1000).expect("there is room");
    let outgoing = sent(&mut executor, 0);
    let genuine = carried(outgoing.datagram.clone(), &mut [switch(1)]);
    let mut guessed = genuine.clone();
    *guessed.last_mut().expect("a tag") ^= 1;
    let mut later = genuine.clone();
    // A sequence number that was not sent yet.
    let at = later.len() - 9;
    later[at] += 1;
    executor.receive(1, (address(1), UDP_PORT), &genuine);
    executor.receive(1, (to(), 53), &genuine);
    executor.receive(1, (to(), UDP_PORT), &guessed);
    executor.receive(1, (to(), UDP_PORT), &later);
    assert_eq!(executor.refused().foreign, 4);
    // What was sent is no echo.
    executor.receive(1, (to(), UDP_PORT), &outgoing.datagram);
    assert_eq!(executor.refused().altered, 1);
    assert_eq!(executor.completed(2), None);
    executor.receive(3, (to(), UDP_PORT), &genuine);
    assert_eq!(executed(&mut executor, 3).rtt_ns, 3);
}
