package controller

import (
	"testing"

	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"

	"triplane/clients/testbed"
)

func TestExactEntries(t *testing.T) {
	bed, controller := start(t)
	frame := testbed.Frame(testbed.Fields{A: 1})
	do(t, controller.Insert(Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))))
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	row := Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 3))
	do(t, controller.Modify(row))
	bed.Send(t, 1, frame)
	bed.Expect(t, 3, frame)
	found := readOne(t, controller, &p4.TableEntry{TableId: controller.ID("exact_t")})
	if !proto.Equal(found, row) {
		t.Fatalf("%v instead of %v", found, row)
	}
	do(t, controller.Delete(row))
	equal(t, len(read(t, controller, &p4.TableEntry{TableId: controller.ID("exact_t")})), 0)
}

func TestTheLongestPrefixMatches(t *testing.T) {
	bed, controller := start(t)
	do(t, controller.Insert(
		Entity(controller.Row("lpm_t", Key(LPM(0x0a000000, 8)), "forward", 2)),
		Entity(controller.Row("lpm_t", Key(LPM(0x0a010000, 16)), "forward", 3)),
	))
	for _, expected := range []struct{ address, port uint32 }{{0x0a020304, 2}, {0x0a010304, 3}} {
		frame := testbed.Frame(testbed.Fields{C: expected.address})
		bed.Send(t, 1, frame)
		bed.Expect(t, expected.port, frame)
	}
	// Every entry of the table is read, and a prefix is read alone.
	equal(t, len(read(t, controller, &p4.TableEntry{TableId: controller.ID("lpm_t")})), 2)
	readOne(t, controller, &p4.TableEntry{TableId: controller.ID("lpm_t"), Match: Key(LPM(0x0a000000, 8))})
}

func TestTheHighestPriorityMatches(t *testing.T) {
	bed, controller := start(t)
	for _, entry := range []struct {
		key      []*p4.FieldMatch
		priority int32
		port     uint64
	}{{Key(Ternary(0x1200, 0xff00)), 5, 2}, {Key(Ternary(0x1000, 0xf000)), 6, 3}} {
		row := controller.Row("ternary_t", entry.key, "forward", entry.port)
		row.Priority = entry.priority
		do(t, controller.Insert(Entity(row)))
	}
	frame := testbed.Frame(testbed.Fields{B: 0x1234})
	bed.Send(t, 1, frame)
	bed.Expect(t, 3, frame)
}

func TestRangesAndOptionalFields(t *testing.T) {
	bed, controller := start(t)
	ranges := controller.Row("range_t", Key(Range(3, 9)), "forward", 2)
	optional := controller.Row("optional_t", Key(Optional(7)), "forward", 3)
	ranges.Priority, optional.Priority = 1, 1
	do(t, controller.Insert(Entity(ranges), Entity(optional)))
	for _, expected := range []struct {
		fields testbed.Fields
		port   uint32
	}{{testbed.Fields{B: 9}, 2}, {testbed.Fields{D: 7}, 3}} {
		frame := testbed.Frame(expected.fields)
		bed.Send(t, 1, frame)
		bed.Expect(t, expected.port, frame)
	}
}

func TestTheDefaultActionIsChangedAndReset(t *testing.T) {
	bed, controller := start(t)
	frame := testbed.Frame(testbed.Fields{A: 77})
	do(t, controller.Modify(Entity(controller.Row("exact_t", nil, "forward", 2))))
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	pattern := &p4.TableEntry{TableId: controller.ID("exact_t"), IsDefaultAction: true}
	do(t, controller.Modify(Entity(pattern)))
	found := readOne(t, controller, pattern).GetTableEntry()
	equal(t, found.Action.GetAction().ActionId, controller.ID("NoAction"))
}

func TestRefusalsHaveACode(t *testing.T) {
	_, controller := start(t)
	row := Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))
	refused(t, controller.Delete(row), code.Code_NOT_FOUND)
	refused(t, controller.Modify(row), code.Code_NOT_FOUND)
	do(t, controller.Insert(row))
	refused(t, controller.Insert(row), code.Code_ALREADY_EXISTS)
	wide := Entity(controller.Row("exact_t", Key(Exact(2)), "forward", 512))
	refused(t, controller.Insert(wide), code.Code_OUT_OF_RANGE)
	constant := read(t, controller, &p4.TableEntry{TableId: controller.ID("const_t")})
	equal(t, len(constant), 3)
	refused(t, controller.Delete(constant[0]), code.Code_PERMISSION_DENIED)
}

func TestTheCauseOfAFailedBatchIsReported(t *testing.T) {
	_, controller := start(t)
	good := Entity(&p4.CounterEntry{CounterId: controller.ID("counted"), Index: &p4.Index{}, Data: &p4.CounterData{}})
	bad := Entity(&p4.TableEntry{TableId: 1})
	for _, atomicity := range []p4.WriteRequest_Atomicity{
		p4.WriteRequest_CONTINUE_ON_ERROR, p4.WriteRequest_ROLLBACK_ON_ERROR, p4.WriteRequest_DATAPLANE_ATOMIC,
	} {
		for _, culprit := range []int{0, 90, 91, 299} {
			var batch []*p4.Entity
			for index := 0; index < 300; index++ {
				batch = append(batch, good)
			}
			batch[culprit] = bad
			errors := updateErrors(t, controller.Write(atomicity, Updates(p4.Update_MODIFY, batch)...))
			equal(t, code.Code(errors[0].CanonicalCode), code.Code_NOT_FOUND)
		}
	}
}

func TestMembersAndGroups(t *testing.T) {
	bed, controller := start(t)
	selector := controller.ID("selector")
	group := &p4.ActionProfileGroup{ActionProfileId: selector, GroupId: 9, MaxSize: 4}
	for member := uint32(1); member <= 2; member++ {
		call := controller.Call("forward", uint64(member+1))
		do(t, controller.Insert(Entity(&p4.ActionProfileMember{
			ActionProfileId: selector, MemberId: member, Action: call,
		})))
		group.Members = append(group.Members, &p4.ActionProfileGroup_Member{MemberId: member, Weight: 1})
	}
	group.Members = group.Members[:1]
	do(t, controller.Insert(Entity(group)))
	row := controller.Row("group_t", Key(Exact(1)), "NoAction")
	row.Action = &p4.TableAction{Type: &p4.TableAction_ActionProfileGroupId{ActionProfileGroupId: 9}}
	do(t, controller.Insert(Entity(row)))
	frame := testbed.Frame(testbed.Fields{A: 1, C: 5})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	group.Members[0].MemberId = 2
	do(t, controller.Modify(Entity(group)))
	bed.Send(t, 1, frame)
	bed.Expect(t, 3, frame)
	refused(t, controller.Delete(Entity(group)), code.Code_FAILED_PRECONDITION)
	do(t, controller.Delete(Entity(row), Entity(group)))
	equal(t, len(read(t, controller, &p4.ActionProfileMember{ActionProfileId: selector})), 2)
}

func TestActionSetsOfAnEntry(t *testing.T) {
	bed, controller := start(t)
	row := controller.Row("group_t", Key(Exact(1)), "NoAction")
	set := &p4.ActionProfileActionSet{}
	for weight := int32(1); weight <= 2; weight++ {
		set.ActionProfileActions = append(set.ActionProfileActions, &p4.ActionProfileAction{
			Action:    controller.Call("forward", 2),
			Weight:    weight,
			WatchKind: &p4.ActionProfileAction_WatchPort{WatchPort: Bytes(2)},
		})
	}
	row.Action = &p4.TableAction{Type: &p4.TableAction_ActionProfileActionSet{ActionProfileActionSet: set}}
	do(t, controller.Insert(Entity(row)))
	frame := testbed.Frame(testbed.Fields{A: 1, C: 5})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	found := readOne(t, controller, &p4.TableEntry{TableId: controller.ID("group_t")})
	if !proto.Equal(found, Entity(row)) {
		t.Fatalf("%v instead of %v", found, row)
	}
}

func TestIdleEntriesAreReported(t *testing.T) {
	_, controller := start(t)
	row := controller.Row("idle_t", Key(Exact(1)), "NoAction")
	row.IdleTimeoutNs = 50_000_000
	do(t, controller.Insert(Entity(row)))
	message := receive(t, controller, func(message *p4.StreamMessageResponse) bool {
		return message.GetIdleTimeoutNotification() != nil
	})
	idle := message.GetIdleTimeoutNotification().TableEntry[0]
	equal(t, Number(idle.Match[0].GetExact().Value), 1)
}
