//! Comparison of computed footprints with the decoder's actual allocations.

use p4runtime_proto::config::P4Info;
use p4runtime_proto::footprint::bytes_of;
use p4runtime_proto::prost::{Message, Name};
use p4runtime_proto::{from_bytes, v1};
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};
use rng::SplitMix64;
use testing::allocations::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Returns the maximum memory in use while decoding, whether it succeeds or not.
fn decoded<M: Message + Default>(wire: &[u8]) -> u64 {
    let ((), memory) = allocations::measure(|| drop(M::decode(wire)));
    memory.peak as u64 + size_of::<M>() as u64
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns an encoded message of this type, with many elements in repeated fields.
fn message(of: &MessageDescriptor, depth: u32, rng: &mut SplitMix64) -> Vec<u8> {
    let mut out = Vec::new();
    let fields: Vec<_> = of.fields().collect();
    for _ in 0..rng.below(4) {
        let Some(field) = fields.get(rng.below(fields.len().max(1) as u64) as usize) else { break };
        let many = field.is_list() || field.is_map();
        let count = if many { [1, 2, 5, 40][rng.below(4) as usize] } else { 1 };
        for _ in 0..count {
            let contents = match field.kind() {
                Kind::Message(inner) if depth > 0 => message(&inner, depth - 1, rng),
                Kind::Message(_) => Vec::new(),
                Kind::String => vec![b'a'; rng.below(40) as usize],
                Kind::Bytes => vec![7; rng.below(40) as usize],
                _ if field.is_list() => vec![1; rng.below(60) as usize],
                // These have another encoding, and take no more memory than other numbers.
                Kind::Float | Kind::Fixed32 | Kind::Sfixed32 | Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => {
                    continue;
                }
                _ => {
                    varint(u64::from(field.number()) << 3, &mut out);
                    varint(rng.below(1 << 20), &mut out);
                    continue;
                }
            };
            varint(u64::from(field.number()) << 3 | 2, &mut out);
            varint(contents.len() as u64, &mut out);
            out.extend(contents);
        }
    }
    out
}

fn holds<M: Message + Name + Default>(rng: &mut SplitMix64) {
    let pool = DescriptorPool::decode(include_bytes!("../src/generated/descriptors.bin").as_slice());
    let pool = pool.expect("the generator wrote them");
    let descriptor = pool.get_message_by_name(&M::full_name()).expect("it is there");
    for round in 0..1500 {
        let mut wire = message(&descriptor, 2 + rng.below(8) as u32, rng);
        for _ in 0..if round % 3 == 0 { 1 + rng.below(4) } else { 0 } {
            if !wire.is_empty() {
                let at = rng.below(wire.len() as u64) as usize;
                wire[at] = rng.below(256) as u8;
            }
        }
        let (told, took) = (bytes_of::<M>(&wire, u64::MAX), decoded::<M>(&wire));
        assert!(told >= took, "{}: {told} told, {took} taken for {wire:02x?}", M::NAME);
    }
}

#[test]
fn no_message_takes_more_than_its_footprint() {
    let mut rng = SplitMix64::new(1);
    holds::<v1::WriteRequest>(&mut rng);
    holds::<v1::ReadRequest>(&mut rng);
    holds::<v1::SetForwardingPipelineConfigRequest>(&mut rng);
    holds::<v1::GetForwardingPipelineConfigRequest>(&mut rng);
    holds::<v1::StreamMessageRequest>(&mut rng);
    holds::<v1::StreamMessageResponse>(&mut rng);
}

#[test]
fn footprints_of_empty_elements_count_their_decoded_size() {
    for (field, of) in [(0x22, "updates"), (0x1a, "a field of another type")] {
        let wire = [field, 0].repeat(1 << 16);
        let (told, took) = (bytes_of::<v1::WriteRequest>(&wire, u64::MAX), decoded::<v1::WriteRequest>(&wire));
        assert!(told >= took && told <= 2 * took.max(1 << 14), "{of}: {told} told, {took} taken");
    }
    let wire = [0x22, 0].repeat(1 << 16);
    assert!(decoded::<v1::WriteRequest>(&wire) > 100 * wire.len() as u64, "the danger is real");
}

#[test]
fn a_message_that_becomes_too_much_is_not_decoded() {
    let tables = [0x12, 0].repeat(7 << 20);
    let (refused, memory) = allocations::measure(|| from_bytes::<P4Info>(&tables, 256 << 20));
    let (refused, took) = (refused.expect_err("it is too much"), memory.peak);
    assert_eq!(refused.to_string(), "a p4.config.v1.P4Info that would take more than 256 MiB of memory");
    assert!(took < 64 << 20, "{took} bytes taken");
    assert!(from_bytes::<P4Info>(&tables[..2 << 10], 256 << 20).is_ok());
}

#[test]
fn footprints_of_entries_are_close_to_the_memory_used() {
    let param = |id| v1::action::Param { param_id: id, value: vec![1, 2, 3, 4, 5, 6] };
    let action = v1::Action { action_id: 1, params: vec![param(1), param(2)] };
    let exact = v1::field_match::Exact { value: vec![10, 0, 0, 1] };
    let field = v1::FieldMatch { field_id: 1, field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)) };
    let entry = v1::TableEntry {
        table_id: 0x0200_0001,
        r#match: vec![field],
        action: Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) }),
        ..Default::default()
    };
    let entity = v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) };
    let update = v1::Update { r#type: 1, entity: Some(entity) };
    let wire = v1::WriteRequest { updates: vec![update; 100_000], ..Default::default() }.encode_to_vec();
    let (told, took) = (bytes_of::<v1::WriteRequest>(&wire, u64::MAX), decoded::<v1::WriteRequest>(&wire));
    println!("{} bytes, {told} told, {took} taken", wire.len());
    assert!(told >= took && told < 2 * took, "{} bytes, {told} told, {took} taken", wire.len());
    assert!(bytes_of::<v1::WriteRequest>(&wire, 1 << 20) < 2 << 20, "it ends at the limit");
}
