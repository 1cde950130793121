//! Writes of whole arrays: a few bytes of a message that mean millions of elements.

use crate::spec::batches::update;
use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_data::Data;
use p4runtime_proto::v1::write_request::Atomicity;

/// Size of the array: two of it are more elements than a write may keep for a rollback.
const SIZE: i64 = (1 << 23) + 1;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<8>>(8388609) cells;
    apply { bit<8> value; cells.read(value, 1); cells.write(0, value); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn cells(rig: &Rig, index: Option<i64>, value: u8) -> v1::RegisterEntry {
    let register_id = rig.info.registers[0].preamble.as_ref().expect("it has one").id;
    let data = Some(v1::P4Data { data: Some(Data::Bitstring(vec![value])) });
    v1::RegisterEntry { register_id, index: index.map(|index| v1::Index { index }), data }
}

fn write(rig: &Rig, atomicity: Atomicity, updates: Vec<v1::Update>) -> Result<(), Failed> {
    rig.write_as(v1::WriteRequest {
        device_id: DEVICE,
        election_id: Some(uint128(1)),
        atomicity: atomicity.into(),
        updates,
        ..Default::default()
    })
}

/// 12.2 A batch with too many elements of whole arrays has no effect if it may be rolled back.
#[test]
fn a_write_that_would_keep_too_much_for_a_rollback_has_no_effect() {
    let rig = Rig::with(PROGRAM);
    rig.modify(cells(&rig, Some(7), 9)).expect("it is written");
    let all = |value| update(v1::update::Type::Modify, cells(&rig, None, value));
    let refused = write(&rig, Atomicity::RollbackOnError, vec![all(1), all(2)]).expect_err("these are too many");
    assert_eq!(refused.codes(), [Code::Aborted, Code::ResourceExhausted]);
    assert_eq!(rig.read(cells(&rig, Some(7), 0)), [cells(&rig, Some(7), 9).entity()]);
    assert_eq!(rig.read(cells(&rig, Some(8), 0)), [cells(&rig, Some(8), 0).entity()]);
    write(&rig, Atomicity::ContinueOnError, vec![all(3), all(4)]).expect("nothing is kept for these");
    assert_eq!(rig.read(cells(&rig, Some(SIZE - 1), 0)), [cells(&rig, Some(SIZE - 1), 4).entity()]);
}
