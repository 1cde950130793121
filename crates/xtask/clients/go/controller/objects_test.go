package controller

import (
	"testing"

	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"

	"triplane/clients/testbed"
)

func TestCounters(t *testing.T) {
	bed, controller := start(t)
	counter := &p4.CounterEntry{
		CounterId: controller.ID("counted"),
		Index:     &p4.Index{Index: 1},
		Data:      &p4.CounterData{PacketCount: 10, ByteCount: 100},
	}
	do(t, controller.Modify(Entity(counter)))
	do(t, controller.Insert(Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))))
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	counter.Data = nil
	found := readOne(t, controller, counter).GetCounterEntry().Data
	equal(t, found.PacketCount, 11)
	equal(t, found.ByteCount, int64(100+len(frame)))
	equal(t, len(read(t, controller, &p4.CounterEntry{CounterId: counter.CounterId})), 4)
}

func TestDirectCounters(t *testing.T) {
	bed, controller := start(t)
	row := controller.Row("counted_t", Key(Exact(1)), "count_hit")
	row.CounterData = &p4.CounterData{PacketCount: 5}
	do(t, controller.Insert(Entity(row), Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))))
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	direct := &p4.DirectCounterEntry{TableEntry: &p4.TableEntry{TableId: row.TableId, Match: row.Match}}
	equal(t, readOne(t, controller, direct).GetDirectCounterEntry().Data.PacketCount, 6)
	direct.Data = &p4.CounterData{PacketCount: 7}
	do(t, controller.Modify(Entity(direct)))
	pattern := &p4.TableEntry{TableId: row.TableId, CounterData: &p4.CounterData{}}
	equal(t, readOne(t, controller, pattern).GetTableEntry().CounterData.PacketCount, 7)
}

func TestMeters(t *testing.T) {
	_, controller := start(t)
	rates := &p4.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}
	meter := &p4.MeterEntry{MeterId: controller.ID("metered"), Index: &p4.Index{Index: 2}, Config: rates}
	do(t, controller.Modify(Entity(meter)))
	pattern := &p4.MeterEntry{MeterId: meter.MeterId, Index: meter.Index}
	if found := readOne(t, controller, pattern); !proto.Equal(found, Entity(meter)) {
		t.Fatalf("%v instead of %v", found, meter)
	}
	row := controller.Row("metered_t", Key(Exact(1)), "meter_hit")
	do(t, controller.Insert(Entity(row)))
	direct := &p4.DirectMeterEntry{TableEntry: &p4.TableEntry{TableId: row.TableId, Match: row.Match}, Config: rates}
	do(t, controller.Modify(Entity(direct)))
	direct = &p4.DirectMeterEntry{TableEntry: direct.TableEntry}
	equal(t, readOne(t, controller, direct).GetDirectMeterEntry().Config.Pburst, 4)
	// Without a config, the meter is as at first.
	do(t, controller.Modify(Entity(direct), Entity(pattern)))
	if config := readOne(t, controller, pattern).GetMeterEntry().Config; config != nil {
		t.Fatal(config)
	}
}

func TestRegistersAreRead(t *testing.T) {
	bed, controller := start(t)
	do(t, controller.Insert(Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))))
	frame := testbed.Frame(testbed.Fields{A: 1, B: 0x1234})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	register := &p4.RegisterEntry{RegisterId: controller.ID("remembered"), Index: &p4.Index{Index: 1}}
	equal(t, Number(readOne(t, controller, register).GetRegisterEntry().Data.GetBitstring()), 0x1234)
}

func TestValueSets(t *testing.T) {
	bed, controller := start(t)
	set := &p4.ValueSetEntry{ValueSetId: controller.ID("specials"), Members: []*p4.ValueSetMember{{Match: Key(Exact(9))}}}
	do(t, controller.Modify(Entity(set)))
	frame := testbed.Frame(testbed.Fields{A: 9})
	bed.Send(t, 1, frame)
	bed.Expect(t, 3, frame)
	found := readOne(t, controller, &p4.ValueSetEntry{ValueSetId: set.ValueSetId})
	equal(t, len(found.GetValueSetEntry().Members), 1)
}

func TestMulticastGroups(t *testing.T) {
	bed, controller := start(t)
	group := &p4.MulticastGroupEntry{MulticastGroupId: 7, Replicas: Replicas(2, 3)}
	do(t, controller.Insert(Entity(group), Entity(controller.Row("exact_t", Key(Exact(1)), "replicate", 7))))
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	bed.Expect(t, 3, frame)
	found := readOne(t, controller, &p4.MulticastGroupEntry{})
	if !proto.Equal(found, Entity(group)) {
		t.Fatalf("%v instead of %v", found, group)
	}
	group.Replicas = Replicas(4)
	do(t, controller.Modify(Entity(group)))
	bed.Send(t, 1, frame)
	bed.Expect(t, 4, frame)
	do(t, controller.Delete(Entity(group)))
	refused(t, controller.Delete(Entity(group)), code.Code_NOT_FOUND)
}

func TestCloneSessions(t *testing.T) {
	bed, controller := start(t)
	session := &p4.CloneSessionEntry{SessionId: 5, Replicas: Replicas(4), PacketLengthBytes: 32}
	do(t, controller.Insert(Entity(session), Entity(controller.Row("exact_t", Key(Exact(1)), "mirror"))))
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 1, frame)
	bed.Expect(t, 4, frame[:32])
	found := readOne(t, controller, &p4.CloneSessionEntry{SessionId: 5})
	if !proto.Equal(found, Entity(session)) {
		t.Fatalf("%v instead of %v", found, session)
	}
}

func TestPacketsToTheController(t *testing.T) {
	bed, controller := start(t)
	do(t, controller.Insert(Entity(controller.Row("exact_t", Key(Exact(1)), "to_cpu", 5))))
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 3, frame)
	message := receive(t, controller, func(message *p4.StreamMessageResponse) bool { return message.GetPacket() != nil })
	packet := message.GetPacket()
	equal(t, string(packet.Payload), string(frame))
	equal(t, len(packet.Metadata), 2)
	equal(t, Number(packet.Metadata[0].Value), 3)
	equal(t, Number(packet.Metadata[1].Value), 5)
}

func TestPacketsFromTheController(t *testing.T) {
	bed, controller := start(t)
	frame := testbed.Frame(testbed.Fields{A: 9})
	packet := &p4.PacketOut{Payload: frame, Metadata: []*p4.PacketMetadata{
		{MetadataId: 1, Value: Bytes(4)},
		{MetadataId: 2, Value: Bytes(0)},
	}}
	send := func() {
		do(t, controller.Send(&p4.StreamMessageRequest{Update: &p4.StreamMessageRequest_Packet{Packet: packet}}))
	}
	send()
	bed.Expect(t, 4, frame)
	packet.Metadata = packet.Metadata[1:]
	send()
	message := receive(t, controller, func(message *p4.StreamMessageResponse) bool { return message.GetError() != nil })
	equal(t, code.Code(message.GetError().CanonicalCode), code.Code_INVALID_ARGUMENT)
}

func TestDigests(t *testing.T) {
	bed, controller := start(t)
	digest := &p4.DigestEntry{
		DigestId: controller.ID("learned_t"),
		Config:   &p4.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: 3_600_000_000_000},
	}
	do(t, controller.Insert(Entity(digest), Entity(controller.Row("exact_t", Key(Exact(1)), "learn"))))
	frame := testbed.Frame(testbed.Fields{A: 1})
	learned := func() *p4.DigestList {
		bed.Send(t, 2, frame)
		return receive(t, controller, func(message *p4.StreamMessageResponse) bool {
			return message.GetDigest() != nil
		}).GetDigest()
	}
	first := learned()
	members := first.Data[0].GetStruct().Members
	equal(t, Number(members[0].GetBitstring()), 1)
	equal(t, Number(members[1].GetBitstring()), 2)
	// What was acknowledged is reported again.
	acknowledgement := &p4.DigestListAck{DigestId: first.DigestId, ListId: first.ListId}
	do(t, controller.Send(&p4.StreamMessageRequest{
		Update: &p4.StreamMessageRequest_DigestAck{DigestAck: acknowledgement},
	}))
	// The acknowledgement and the packet take different ways into the switch.
	do(t, controller.Modify(Entity(digest)))
	if second := learned(); second.ListId == first.ListId {
		t.Fatal("the same list")
	}
}
