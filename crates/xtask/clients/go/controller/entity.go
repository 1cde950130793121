package controller

import (
	"encoding/binary"
	"fmt"
	"math"

	p4 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Entity puts an entry of any kind into the message of writes and reads.
func Entity(entry any) *p4.Entity {
	switch entry := entry.(type) {
	case *p4.TableEntry:
		return &p4.Entity{Entity: &p4.Entity_TableEntry{TableEntry: entry}}
	case *p4.ActionProfileMember:
		return &p4.Entity{Entity: &p4.Entity_ActionProfileMember{ActionProfileMember: entry}}
	case *p4.ActionProfileGroup:
		return &p4.Entity{Entity: &p4.Entity_ActionProfileGroup{ActionProfileGroup: entry}}
	case *p4.CounterEntry:
		return &p4.Entity{Entity: &p4.Entity_CounterEntry{CounterEntry: entry}}
	case *p4.DirectCounterEntry:
		return &p4.Entity{Entity: &p4.Entity_DirectCounterEntry{DirectCounterEntry: entry}}
	case *p4.MeterEntry:
		return &p4.Entity{Entity: &p4.Entity_MeterEntry{MeterEntry: entry}}
	case *p4.DirectMeterEntry:
		return &p4.Entity{Entity: &p4.Entity_DirectMeterEntry{DirectMeterEntry: entry}}
	case *p4.RegisterEntry:
		return &p4.Entity{Entity: &p4.Entity_RegisterEntry{RegisterEntry: entry}}
	case *p4.ValueSetEntry:
		return &p4.Entity{Entity: &p4.Entity_ValueSetEntry{ValueSetEntry: entry}}
	case *p4.DigestEntry:
		return &p4.Entity{Entity: &p4.Entity_DigestEntry{DigestEntry: entry}}
	case *p4.MulticastGroupEntry:
		group := &p4.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: entry}
		return replication(&p4.PacketReplicationEngineEntry{Type: group})
	case *p4.CloneSessionEntry:
		session := &p4.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: entry}
		return replication(&p4.PacketReplicationEngineEntry{Type: session})
	}
	panic(fmt.Sprintf("%T is no entry", entry))
}

func replication(entry *p4.PacketReplicationEngineEntry) *p4.Entity {
	return &p4.Entity{Entity: &p4.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: entry}}
}

// Bytes returns a number in the shortest form, as P4Runtime sends it.
func Bytes(number uint64) []byte {
	bytes := binary.BigEndian.AppendUint64(nil, number)
	for len(bytes) > 1 && bytes[0] == 0 {
		bytes = bytes[1:]
	}
	return bytes
}

// Match is the value of a key field.
type Match func(field uint32) *p4.FieldMatch

// Exact matches one value.
func Exact(value uint64) Match {
	return func(field uint32) *p4.FieldMatch {
		exact := &p4.FieldMatch_Exact{Value: Bytes(value)}
		return &p4.FieldMatch{FieldId: field, FieldMatchType: &p4.FieldMatch_Exact_{Exact: exact}}
	}
}

// LPM matches a prefix.
func LPM(value uint64, length int32) Match {
	return func(field uint32) *p4.FieldMatch {
		prefix := &p4.FieldMatch_LPM{Value: Bytes(value), PrefixLen: length}
		return &p4.FieldMatch{FieldId: field, FieldMatchType: &p4.FieldMatch_Lpm{Lpm: prefix}}
	}
}

// Ternary matches the bits that are set in a mask.
func Ternary(value, mask uint64) Match {
	return func(field uint32) *p4.FieldMatch {
		ternary := &p4.FieldMatch_Ternary{Value: Bytes(value), Mask: Bytes(mask)}
		return &p4.FieldMatch{FieldId: field, FieldMatchType: &p4.FieldMatch_Ternary_{Ternary: ternary}}
	}
}

// Range matches the values from low to high.
func Range(low, high uint64) Match {
	return func(field uint32) *p4.FieldMatch {
		values := &p4.FieldMatch_Range{Low: Bytes(low), High: Bytes(high)}
		return &p4.FieldMatch{FieldId: field, FieldMatchType: &p4.FieldMatch_Range_{Range: values}}
	}
}

// Optional matches one value. A field without a match matches all.
func Optional(value uint64) Match {
	return func(field uint32) *p4.FieldMatch {
		optional := &p4.FieldMatch_Optional{Value: Bytes(value)}
		return &p4.FieldMatch{FieldId: field, FieldMatchType: &p4.FieldMatch_Optional_{Optional: optional}}
	}
}

// Key returns the matches of a table's fields 1, 2, and so on.
func Key(matches ...Match) []*p4.FieldMatch {
	var key []*p4.FieldMatch
	for index, match := range matches {
		key = append(key, match(uint32(index+1)))
	}
	return key
}

// Call returns an action with its arguments.
func (c *Controller) Call(action string, arguments ...uint64) *p4.Action {
	call := &p4.Action{ActionId: c.ID(action)}
	for index, argument := range arguments {
		parameter := &p4.Action_Param{ParamId: uint32(index + 1), Value: Bytes(argument)}
		call.Params = append(call.Params, parameter)
	}
	return call
}

// Row returns a table entry that runs an action. The default entry has no key.
func (c *Controller) Row(table string, key []*p4.FieldMatch, action string, arguments ...uint64) *p4.TableEntry {
	call := &p4.TableAction{Type: &p4.TableAction_Action{Action: c.Call(action, arguments...)}}
	return &p4.TableEntry{TableId: c.ID(table), Match: key, Action: call, IsDefaultAction: key == nil}
}

// Replicas returns copies for ports, with instances from 1 on.
func Replicas(ports ...uint32) []*p4.Replica {
	var replicas []*p4.Replica
	for index, port := range ports {
		replicas = append(replicas, &p4.Replica{
			PortKind: &p4.Replica_EgressPort{EgressPort: port},
			Instance: uint32(index + 1),
		})
	}
	return replicas
}

// Number returns the value of bytes of P4Runtime. Panics if it has more than 64 bits.
func Number(bytes []byte) uint64 {
	if len(bytes) > 8 {
		panic(fmt.Sprintf("%d bytes are no number of 64 bits (at most %d)", len(bytes), uint64(math.MaxUint64)))
	}
	number := uint64(0)
	for _, digit := range bytes {
		number = number<<8 | uint64(digit)
	}
	return number
}
