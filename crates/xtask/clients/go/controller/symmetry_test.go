package controller

import (
	"testing"

	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"triplane/clients/testbed"
)

// wildcards are patterns for everything that a switch has.
func wildcards() []*p4.Entity {
	everything := &p4.TableEntry{CounterData: &p4.CounterData{}, MeterConfig: &p4.MeterConfig{}}
	return []*p4.Entity{
		Entity(everything),
		Entity(&p4.TableEntry{IsDefaultAction: true}),
		Entity(&p4.ActionProfileMember{}),
		Entity(&p4.ActionProfileGroup{}),
		Entity(&p4.CounterEntry{}),
		Entity(&p4.DirectCounterEntry{TableEntry: &p4.TableEntry{}}),
		Entity(&p4.MeterEntry{}),
		Entity(&p4.DirectMeterEntry{TableEntry: &p4.TableEntry{}}),
		Entity(&p4.RegisterEntry{}),
		Entity(&p4.ValueSetEntry{}),
		Entity(&p4.MulticastGroupEntry{}),
		Entity(&p4.CloneSessionEntry{}),
		Entity(&p4.DigestEntry{}),
	}
}

// fill writes something of every kind, and leaves some meters unset.
func fill(t *testing.T, controller *Controller) {
	t.Helper()
	selector, profile := controller.ID("selector"), controller.ID("profile")
	members := []*p4.ActionProfileGroup_Member{{MemberId: 1, Weight: 2}}
	idle := controller.Row("idle_t", Key(Exact(1)), "NoAction")
	idle.IdleTimeoutNs = 3_600_000_000_000
	metered := controller.Row("metered_t", Key(Exact(1)), "meter_hit")
	metered.MeterConfig = &p4.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}
	in := func(table string, action *p4.TableAction) *p4.Entity {
		return Entity(&p4.TableEntry{TableId: controller.ID(table), Match: Key(Exact(1)), Action: action})
	}
	do(t, controller.Insert(
		Entity(&p4.ActionProfileMember{ActionProfileId: selector, MemberId: 1, Action: controller.Call("forward", 2)}),
		Entity(&p4.ActionProfileMember{ActionProfileId: profile, MemberId: 1, Action: controller.Call("forward", 3)}),
		Entity(&p4.ActionProfileGroup{ActionProfileId: selector, GroupId: 9, Members: members, MaxSize: 4}),
		in("group_t", &p4.TableAction{Type: &p4.TableAction_ActionProfileGroupId{ActionProfileGroupId: 9}}),
		in("member_t", &p4.TableAction{Type: &p4.TableAction_ActionProfileMemberId{ActionProfileMemberId: 1}}),
		Entity(controller.Row("exact_t", Key(Exact(1)), "pair", 2, 3)),
		Entity(controller.Row("lpm_t", Key(LPM(0x0a000000, 8)), "forward", 2)),
		Entity(controller.Row("counted_t", Key(Exact(1)), "count_hit")),
		Entity(metered),
		Entity(controller.Row("metered_t", Key(Exact(2)), "meter_hit")),
		Entity(idle),
		Entity(&p4.MulticastGroupEntry{MulticastGroupId: 7, Replicas: Replicas(2, 3)}),
		Entity(&p4.CloneSessionEntry{SessionId: 5, Replicas: Replicas(4), PacketLengthBytes: 32, ClassOfService: 1}),
		Entity(&p4.DigestEntry{DigestId: controller.ID("learned_t"), Config: &p4.DigestEntry_Config{MaxListSize: 1}}),
	))
	set := &p4.ValueSetEntry{ValueSetId: controller.ID("specials"), Members: []*p4.ValueSetMember{{Match: Key(Exact(9))}}}
	do(t, controller.Modify(
		Entity(controller.Row("keyless_t", nil, "forward", 4)),
		Entity(&p4.MeterEntry{
			MeterId: controller.ID("metered"), Index: &p4.Index{Index: 2}, Config: metered.MeterConfig,
		}),
		Entity(set),
	))
}

// writable returns the entities whose writes the specification does not forbid (9.1.3, 9.1.4, 9.1.5).
func writable(entities []*p4.Entity) []*p4.Entity {
	var rest []*p4.Entity
	for _, entity := range entities {
		if !entity.GetTableEntry().GetIsConst() {
			rest = append(rest, entity)
		}
	}
	return rest
}

// Section 8.2 of the specification.
func TestEverythingThatIsReadCanBeWrittenBack(t *testing.T) {
	bed, controller := start(t)
	for _, when := range []string{"fresh", "busy"} {
		if when == "busy" {
			fill(t, controller)
		}
		for _, atomicity := range []p4.WriteRequest_Atomicity{
			p4.WriteRequest_CONTINUE_ON_ERROR, p4.WriteRequest_ROLLBACK_ON_ERROR, p4.WriteRequest_DATAPLANE_ATOMIC,
		} {
			bed.Send(t, 1, testbed.Frame(testbed.Fields{A: 1, B: 2, C: 0x0a000001}))
			before, err := controller.Read(wildcards()...)
			do(t, err)
			if err := controller.Write(atomicity, Updates(p4.Update_MODIFY, writable(before))...); err != nil {
				t.Fatalf("%s, %v: %v, %v", when, atomicity, err, updateErrors(t, err))
			}
			after, err := controller.Read(wildcards()...)
			do(t, err)
			equal(t, len(after), len(before))
			for index := range before {
				if volatile(before[index]) {
					continue
				}
				if !proto.Equal(before[index], after[index]) {
					t.Fatalf("%s, %v: %v became %v", when, atomicity, before[index], after[index])
				}
			}
		}
	}
}

// volatile tells whether packets change an entity (8.2.1).
func volatile(entity *p4.Entity) bool {
	return entity.GetCounterEntry() != nil || entity.GetDirectCounterEntry() != nil ||
		entity.GetRegisterEntry() != nil || entity.GetTableEntry().GetCounterData() != nil
}
