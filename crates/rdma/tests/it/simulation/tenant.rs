//! Another tenant of the responder, which tries to access memory that it has no right to.

use rdma::{
    AccessRights, FailureReason, FrameList, MemoryKey, MemoryRange, Mutation, ProtectionDomain, RequestOutcome,
    Requester, RequesterConfig, Responder,
};
use rng::SplitMix64;
use switch::Time;
use wire::roce::{Mtu, NakCode};

use super::Violation;
use crate::pair;

/// Address of the tenant's own memory.
const OWN: u64 = 0x1000;

/// Tries every access that must be refused, without faults of the network.
pub fn probe(
    responder: &mut Responder<Vec<u8>>,
    rng: &mut SplitMix64,
    foreign: (u64, MemoryKey),
    mutation: Mutation,
) -> Result<(), Violation> {
    let domain = ProtectionDomain(2);
    let own = responder.register(rng, domain, AccessRights::ALL, OWN, vec![0; 64]).expect("there is a place");
    let read_only = responder.register(rng, domain, AccessRights::READ, OWN, vec![0; 64]).expect("there is a place");
    let probes = [
        ("memory of another domain", foreign.0, foreign.1, 8, false),
        ("a WRITE to memory of another domain", foreign.0, foreign.1, 8, true),
        ("a key of before", OWN, MemoryKey(own.0 ^ 1 << 20), 8, false),
        ("a WRITE to memory for READs", OWN, read_only, 8, true),
        ("a READ past the end", OWN + 57, own, 8, false),
        ("a WRITE past the end", OWN + 57, own, 8, true),
        ("a READ before the start", OWN - 1, own, 8, false),
        ("a READ at the end of all addresses", u64::MAX - 3, own, 8, false),
    ];
    for (name, address, key, len, is_write) in probes {
        if !is_refused(responder, rng, MemoryRange { address, key, len }, is_write, mutation) {
            return Err(Violation::AccessGranted(name));
        }
    }
    responder.deregister(own).expect("it was registered");
    responder.deregister(read_only).expect("it was registered");
    Ok(())
}

fn is_refused(
    responder: &mut Responder<Vec<u8>>,
    rng: &mut SplitMix64,
    range: MemoryRange,
    is_write: bool,
    mutation: Mutation,
) -> bool {
    let mut requester = Requester::with_mutation(RequesterConfig::default(), mutation);
    let path = pair::path(false, Mtu::Mtu256);
    let local = requester.open(rng, path).expect("it is the first");
    let remote = responder.accept(rng, ProtectionDomain(2), path.reversed(), local).expect("there is a place");
    requester.connect(local.number, remote).expect("it is open");
    let accepted = match is_write {
        true => requester.write(local.number, 0, range.address, range.key, &vec![0xee; range.len as usize]),
        false => requester.read(local.number, 0, range),
    };
    accepted.expect("there is room");
    let (mut requests, mut answers) = (FrameList::default(), FrameList::default());
    requester.transmit(Time::ZERO, &mut requests);
    while let Some(frame) = requests.pop() {
        responder.on_frame(&frame, &mut answers);
    }
    while let Some(frame) = answers.pop() {
        requester.on_frame(Time::ZERO, &frame);
    }
    let refusal = RequestOutcome::Failed(FailureReason::Refused(NakCode::RemoteAccessError));
    let is_refused = requester.next_completion().is_some_and(|completion| completion.outcome == refusal);
    responder.close(remote.number);
    // The responder reports the failure; the others are judged by the world.
    while responder.next_failure().is_some_and(|failure| failure.number != remote.number) {}
    is_refused
}
