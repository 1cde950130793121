//! What clients of older versions of P4Runtime leave off the wire.

use p4runtime_proto::v1;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_server::testing::TestServer;
use switch::PortId;

use crate::v1model_target::V1ModelTarget;

fn entity(group: v1::MulticastGroupEntry) -> v1::Entity {
    let group = v1::packet_replication_engine_entry::Type::MulticastGroupEntry(group);
    let entry = v1::PacketReplicationEngineEntry { r#type: Some(group) };
    v1::Entity { entity: Some(v1::entity::Entity::PacketReplicationEngineEntry(entry)) }
}

/// In P4Runtime 1.3, a replica's port is a number of proto3, which is not sent if it is 0.
#[test]
fn a_replica_without_a_port_is_for_port_0() {
    let mut world = TestServer::<V1ModelTarget>::new(1);
    let replicas = vec![v1::Replica { instance: 5, ..Default::default() }];
    let group = entity(v1::MulticastGroupEntry { multicast_group_id: 1, replicas, ..Default::default() });
    let insert = v1::Update { r#type: v1::update::Type::Insert.into(), entity: Some(group.clone()) };
    world.write(Atomicity::ContinueOnError, vec![insert]).expect("the switch has a port 0");
    let written = world.switch.multicast_groups().get(1).expect("it is there");
    assert_eq!((written.replicas[0].port, written.replicas[0].rid), (PortId(0), 5));
    // The client reads what it wrote.
    let wanted = entity(v1::MulticastGroupEntry { multicast_group_id: 1, ..Default::default() });
    let request = v1::ReadRequest { device_id: 1, entities: vec![wanted], ..Default::default() };
    assert_eq!(world.read(request).0, [group]);
}
