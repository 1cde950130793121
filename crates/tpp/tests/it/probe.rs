//! Probes and their echoes.

use diagnostics::{Diagnostics, SourceMap};
use tpp::probe::{MAX_WAITING, Prober, RefusedEchoes, echo};
use tpp::{AccessRights, MemoryMap, SparseMemory, Tcpu, TinyProgram};
use wire::tpp::{Packet, Status, UDP_PORT};

const TIMEOUT_NS: u64 = 1_000;

fn program() -> TinyProgram {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = ".hops 3\nPUSH [Switch:ID]\n";
    tpp::assemble(&mut sources, "id.tpp", text, &MemoryMap::new(), &mut diagnostics).expect("no mistakes")
}

fn pass(datagram: &mut [u8], switch: u64) {
    let mut memory = SparseMemory::new();
    memory.fixed(MemoryMap::new().find("Switch:ID").expect("it exists").address, switch);
    Tcpu::execute(datagram, &mut memory, &AccessRights::read_only());
}

#[test]
fn an_echo_has_the_words_of_the_switches_and_its_time() {
    let mut prober = Prober::new(program(), 7, TIMEOUT_NS);
    prober.send(100).unwrap();
    let mut datagram = prober.send(200).unwrap();
    [4, 5].iter().for_each(|switch| pass(&mut datagram, *switch));
    assert!(echo(40_000, &mut datagram));
    let found = prober.receive(650, &datagram).expect("an echo");
    assert_eq!((found.sequence, found.rtt_ns), (2, 450));
    let words: Vec<u32> = found.program.words_by_hop(&MemoryMap::new()).iter().map(|words| words[0].1).collect();
    assert_eq!(words, [4, 5]);
    assert_eq!(prober.receive(700, &datagram), None, "it came twice");
    assert_eq!(prober.refused(), RefusedEchoes { unmatched: 1, ..RefusedEchoes::default() });
    assert_eq!(prober.next_deadline(), Some(1_100));
    assert_eq!((prober.expire(1_099), prober.expire(1_100), prober.expire(5_000)), (vec![], vec![1], vec![]));
    assert_eq!(prober.next_deadline(), None);
}

#[test]
fn what_is_no_echo_of_a_probe_is_counted() {
    let mut prober = Prober::new(program(), 7, TIMEOUT_NS);
    let datagram = prober.send(0).unwrap();
    let foreign = Prober::new(program(), 8, TIMEOUT_NS).send(0).unwrap();
    let mut damaged = datagram.clone();
    damaged[13] ^= 1;
    let mut other = program();
    other.instructions.push(other.instructions[0]);
    let name = &datagram[datagram.len() - 16..];
    let (altered, nameless) = (other.packet(name), program().packet(&name[..15]));
    for datagram in [&foreign, &damaged, &altered, &nameless, &Vec::new()] {
        assert_eq!(prober.receive(1, datagram), None);
    }
    assert_eq!(prober.refused(), RefusedEchoes { damaged: 2, unmatched: 2, altered: 1 });
    assert!(prober.receive(2, &datagram).is_some(), "the probe itself still waits");
}

#[test]
fn probes_that_wait_are_bounded() {
    let mut prober = Prober::new(program(), 7, TIMEOUT_NS);
    assert!((0..MAX_WAITING).all(|_| prober.send(0).is_some()));
    assert_eq!(prober.send(1), None);
    assert_eq!(prober.expire(TIMEOUT_NS).len(), MAX_WAITING);
    assert!(prober.send(TIMEOUT_NS).is_some());
}

#[test]
fn only_programs_that_are_no_echoes_are_echoed() {
    let sent = program().packet(&[]);
    let echoed = |source_port: u16, datagram: &[u8]| {
        let mut datagram = datagram.to_vec();
        echo(source_port, &mut datagram).then_some(datagram)
    };
    let answer = echoed(40_000, &sent).expect("it is a program");
    let packet = Packet::new_checked(&answer).expect("a program");
    assert!(packet.status().contains(Status::DONE) && packet.is_checksum_right());
    assert_eq!(echoed(40_000, &answer), None, "it is done");
    assert_eq!(echoed(UDP_PORT, &sent), None, "two receivers would echo for ever");
    assert_eq!(echoed(7, &sent), None, "so would a receiver and a service that returns what it gets");
    let mut damaged = sent.clone();
    damaged[13] ^= 1;
    assert_eq!(echoed(40_000, &damaged), None);
    assert_eq!(echoed(40_000, b"GET / HTTP/1.1\r\n"), None);
}
