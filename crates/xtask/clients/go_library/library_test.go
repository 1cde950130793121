// Package library drives a switch with the client library p4runtime-go-client, and runs the examples of that library.
//
// It is no module of its own, since the library is not fetched: `cargo xtask clients --go-client DIR` copies it, with
// package testbed, into a module that replaces the library with a checkout.
package library

import (
	"context"
	"testing"
	"time"

	"github.com/antoninbas/p4runtime-go-client/pkg/client"
	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"triplane/clients/testbed"
)

// device is the ID that the library's examples use if they are not told another one.
const device = 0

// election is the election ID of the running test: higher than all before, since a switch remembers the highest.
var election uint64

// start connects to the switch as the primary, and sets the program anew: each test begins with empty tables.
func start(t *testing.T) (*testbed.Testbed, *client.Client, chan *p4.StreamMessageResponse) {
	t.Helper()
	bed := testbed.Open(t)
	connection, err := grpc.Dial(bed.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	do(t, err)
	election++
	controller := client.NewClient(p4.NewP4RuntimeClient(connection), device, &p4.Uint128{Low: election})
	stop, primary := make(chan struct{}), make(chan bool, 16)
	messages := make(chan *p4.StreamMessageResponse, 1024)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(stop, primary, messages) }()
	// The connection stays open, so that the library sees the end of its stream and not an error.
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	select {
	case is := <-primary:
		if !is {
			t.Fatal("not the primary")
		}
	case <-time.After(testbed.Patience):
		t.Fatal("no arbitration update")
	}
	_, err = controller.SetFwdPipe(context.Background(), bed.Program, bed.P4Info, election)
	do(t, err)
	return bed, controller, messages
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Fatalf("%v instead of %v", found, expected)
	}
}

// row inserts an entry of a table with one field.
func row(
	t *testing.T, controller *client.Client, table, field string, match client.MatchInterface,
	options *client.TableEntryOptions, action string, arguments ...[]byte,
) *p4.TableEntry {
	t.Helper()
	call := controller.NewTableActionDirect(action, arguments)
	entry := controller.NewTableEntry(table, map[string]client.MatchInterface{field: match}, call, options)
	do(t, controller.InsertTableEntry(context.Background(), entry))
	return entry
}

// receive returns the next message for which a condition holds.
func receive(
	t *testing.T, messages chan *p4.StreamMessageResponse, holds func(*p4.StreamMessageResponse) bool,
) *p4.StreamMessageResponse {
	t.Helper()
	limit := time.After(testbed.Patience)
	for {
		select {
		case message := <-messages:
			if holds(message) {
				return message
			}
		case <-limit:
			t.Fatal("no message")
		}
	}
}

func TestThePipelineIsReturned(t *testing.T) {
	bed, controller, _ := start(t)
	for _, kind := range []client.GetFwdPipeResponseType{client.GetFwdPipeAll, client.GetFwdPipeCookieOnly} {
		pipeline, err := controller.GetFwdPipe(context.Background(), kind)
		do(t, err)
		equal(t, pipeline.Cookie, election)
		if kind == client.GetFwdPipeAll {
			equal(t, string(pipeline.P4DeviceConfig), string(testbed.Read(t, bed.Program)))
		}
	}
}

func TestASavedPipelineIsCommitted(t *testing.T) {
	bed, controller, _ := start(t)
	program, info := testbed.Read(t, bed.Program), testbed.Read(t, bed.P4Info)
	_, err := controller.SaveFwdPipeFromBytes(context.Background(), program, info, 99)
	do(t, err)
	_, err = controller.CommitFwdPipe(context.Background())
	do(t, err)
	pipeline, err := controller.GetFwdPipe(context.Background(), client.GetFwdPipeCookieOnly)
	do(t, err)
	equal(t, pipeline.Cookie, 99)
}

func TestEntriesOfEveryKindForward(t *testing.T) {
	bed, controller, _ := start(t)
	priority := &client.TableEntryOptions{Priority: 5}
	for _, kind := range []struct {
		table, field string
		match        client.MatchInterface
		options      *client.TableEntryOptions
		fields       testbed.Fields
	}{
		{"I.exact_t", "hdr.data.a", &client.ExactMatch{Value: []byte{0, 1}}, nil, testbed.Fields{A: 1}},
		{"I.lpm_t", "hdr.data.c", &client.LpmMatch{Value: []byte{10, 1, 2, 3}, PLen: 8}, nil,
			testbed.Fields{C: 0x0a020304}},
		{"I.ternary_t", "hdr.data.b", &client.TernaryMatch{Value: []byte{0x12, 0x34}, Mask: []byte{0xff, 0}}, priority,
			testbed.Fields{B: 0x1256}},
		{"I.range_t", "hdr.data.b", &client.RangeMatch{Low: []byte{0, 3}, High: []byte{0, 9}}, priority,
			testbed.Fields{B: 9}},
		{"I.optional_t", "hdr.data.d", &client.OptionalMatch{Value: []byte{7}}, priority, testbed.Fields{D: 7}},
	} {
		entry := row(t, controller, kind.table, kind.field, kind.match, kind.options, "I.forward", []byte{2})
		frame := testbed.Frame(kind.fields)
		bed.Send(t, 1, frame)
		bed.Expect(t, 2, frame)
		entries, err := controller.ReadTableEntryWildcard(context.Background(), kind.table)
		do(t, err)
		equal(t, len(entries), 1)
		entry.Action = controller.NewTableActionDirect("I.forward", [][]byte{{3}})
		do(t, controller.ModifyTableEntry(context.Background(), entry))
		bed.Send(t, 1, frame)
		bed.Expect(t, 3, frame)
		do(t, controller.DeleteTableEntry(context.Background(), entry))
		if controller.DeleteTableEntry(context.Background(), entry) == nil {
			t.Fatal("deleted twice")
		}
	}
}

func TestOneEntryIsRead(t *testing.T) {
	_, controller, _ := start(t)
	match := &client.ExactMatch{Value: []byte{0, 1}}
	row(t, controller, "I.exact_t", "hdr.data.a", match, nil, "I.forward", []byte{2})
	row(t, controller, "I.exact_t", "hdr.data.a", &client.ExactMatch{Value: []byte{2}}, nil, "I.forward", []byte{2})
	found, err := controller.ReadTableEntry(context.Background(), "I.exact_t", []client.MatchInterface{match})
	do(t, err)
	equal(t, string(found.Match[0].GetExact().Value), "\x01")
}

func TestTheDefaultActionIsChangedAndReset(t *testing.T) {
	bed, controller, _ := start(t)
	frame := testbed.Frame(testbed.Fields{A: 77})
	call := controller.NewTableActionDirect("I.forward", [][]byte{{2}})
	do(t, controller.ModifyTableEntry(context.Background(), controller.NewTableEntry("I.exact_t", nil, call, nil)))
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	do(t, controller.ModifyTableEntry(context.Background(), controller.NewTableEntry("I.exact_t", nil, nil, nil)))
	bed.Send(t, 1, frame)
	bed.ExpectNone(t, 2, frame)
}

func TestCountersAndMeters(t *testing.T) {
	_, controller, _ := start(t)
	data := &p4.CounterData{PacketCount: 10, ByteCount: 100}
	do(t, controller.ModifyCounterEntry(context.Background(), "I.counted", 1, data))
	found, err := controller.ReadCounterEntry(context.Background(), "I.counted", 1)
	do(t, err)
	equal(t, found.PacketCount, 10)
	all, err := controller.ReadCounterEntryWildcard(context.Background(), "I.counted")
	do(t, err)
	equal(t, len(all), 4)
	equal(t, all[1].ByteCount, 100)
	rates, err := controller.ReadMeterEntry(context.Background(), "I.metered", 1)
	do(t, err)
	if rates != nil {
		t.Fatal(rates)
	}
	meters, err := controller.ReadMeterEntryWildcard(context.Background(), "I.metered")
	do(t, err)
	equal(t, len(meters), 4)
}

func TestMembersAndGroups(t *testing.T) {
	bed, controller, _ := start(t)
	var members []*p4.ActionProfileGroup_Member
	for member := uint32(1); member <= 2; member++ {
		entry := controller.NewActionProfileMember("I.selector", member, "I.forward", [][]byte{{2}})
		do(t, controller.InsertActionProfileMember(context.Background(), entry))
		entry.Action.Params[0].Value = []byte{3}
		do(t, controller.ModifyActionProfileMember(context.Background(), entry))
		members = append(members, &p4.ActionProfileGroup_Member{MemberId: member, Weight: 1})
	}
	group := controller.NewActionProfileGroup("I.selector", 9, members[:1], 4)
	do(t, controller.InsertActionProfileGroup(context.Background(), group))
	group.Members = members
	do(t, controller.ModifyActionProfileGroup(context.Background(), group))
	match := map[string]client.MatchInterface{"hdr.data.a": &client.ExactMatch{Value: []byte{1}}}
	entry := controller.NewTableEntry("I.group_t", match, controller.NewTableActionGroup(9), nil)
	do(t, controller.InsertTableEntry(context.Background(), entry))
	frame := testbed.Frame(testbed.Fields{A: 1, C: 5})
	bed.Send(t, 1, frame)
	bed.Expect(t, 3, frame)
	do(t, controller.DeleteTableEntry(context.Background(), entry))
	do(t, controller.DeleteActionProfileGroup(context.Background(), group))
	member := controller.NewActionProfileMember("I.selector", 1, "I.forward", [][]byte{{3}})
	do(t, controller.DeleteActionProfileMember(context.Background(), member))
}

func TestActionSetsOfAnEntry(t *testing.T) {
	bed, controller, _ := start(t)
	set := controller.NewActionProfileActionSet()
	set.AddAction("I.forward", [][]byte{{2}}, 1, client.NewPortFromInt(2))
	set.AddAction("I.forward", [][]byte{{2}}, 2, client.NewPortFromInt(2))
	match := map[string]client.MatchInterface{"hdr.data.a": &client.ExactMatch{Value: []byte{1}}}
	do(t, controller.InsertTableEntry(
		context.Background(), controller.NewTableEntry("I.group_t", match, set.TableAction(), nil)))
	frame := testbed.Frame(testbed.Fields{A: 1, C: 5})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
}

func TestMulticastGroups(t *testing.T) {
	bed, controller, _ := start(t)
	do(t, controller.InsertMulticastGroup(context.Background(), 7, []uint32{2, 3}))
	row(t, controller, "I.exact_t", "hdr.data.a", &client.ExactMatch{Value: []byte{1}}, nil, "I.replicate", []byte{7})
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 1, frame)
	bed.Expect(t, 2, frame)
	bed.Expect(t, 3, frame)
	do(t, controller.DeleteMulticastGroup(context.Background(), 7))
}

func TestCloneSessions(t *testing.T) {
	bed, controller, _ := start(t)
	options := client.CloneSessionOptions{PacketLenBytes: 32}
	do(t, controller.InsertCloneSession(context.Background(), 5, []uint32{4}, options))
	row(t, controller, "I.exact_t", "hdr.data.a", &client.ExactMatch{Value: []byte{1}}, nil, "I.mirror")
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 1, frame)
	bed.Expect(t, 4, frame[:32])
	do(t, controller.DeleteCloneSession(context.Background(), 5))
}

func TestDigestsAreReceivedAndAcknowledged(t *testing.T) {
	bed, controller, messages := start(t)
	config := &p4.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: time.Hour.Nanoseconds()}
	do(t, controller.EnableDigest(context.Background(), "learned_t", config))
	row(t, controller, "I.exact_t", "hdr.data.a", &client.ExactMatch{Value: []byte{1}}, nil, "I.learn")
	bed.Send(t, 2, testbed.Frame(testbed.Fields{A: 1}))
	message := receive(t, messages, func(message *p4.StreamMessageResponse) bool { return message.GetDigest() != nil })
	equal(t, len(message.GetDigest().Data), 1)
	do(t, controller.AckDigestList(context.Background(), message.GetDigest()))
	config.MaxListSize = 2
	do(t, controller.ModifyDigest(context.Background(), "learned_t", config))
	do(t, controller.DisableDigest(context.Background(), "learned_t"))
}

func TestPacketsToAndFromTheController(t *testing.T) {
	bed, controller, messages := start(t)
	row(t, controller, "I.exact_t", "hdr.data.a", &client.ExactMatch{Value: []byte{1}}, nil, "I.to_cpu", []byte{5})
	frame := testbed.Frame(testbed.Fields{A: 1})
	bed.Send(t, 3, frame)
	message := receive(t, messages, func(message *p4.StreamMessageResponse) bool { return message.GetPacket() != nil })
	equal(t, string(message.GetPacket().Payload), string(frame))
	frame = testbed.Frame(testbed.Fields{A: 9})
	packet := &p4.PacketOut{Payload: frame, Metadata: []*p4.PacketMetadata{
		{MetadataId: 1, Value: []byte{4}},
		{MetadataId: 2, Value: []byte{0}},
	}}
	do(t, controller.SendPacketOut(context.Background(), packet))
	bed.Expect(t, 4, frame)
}

func TestIdleEntriesAreReported(t *testing.T) {
	_, controller, messages := start(t)
	options := &client.TableEntryOptions{IdleTimeout: 50 * time.Millisecond}
	row(t, controller, "I.idle_t", "hdr.data.a", &client.ExactMatch{Value: []byte{1}}, options, "NoAction")
	message := receive(t, messages, func(message *p4.StreamMessageResponse) bool {
		return message.GetIdleTimeoutNotification() != nil
	})
	equal(t, len(message.GetIdleTimeoutNotification().TableEntry), 1)
}
