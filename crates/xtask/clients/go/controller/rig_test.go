package controller

import (
	"testing"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	"triplane/clients/testbed"
)

const device = 1

// election is the election ID of the running test: higher than all before, since a switch remembers the highest.
var election uint64

// start connects to the switch as the primary, and sets the program anew: each test begins with empty tables.
func start(t *testing.T) (*testbed.Testbed, *Controller) {
	t.Helper()
	bed := testbed.Open(t)
	election += 10
	controller := connect(t, bed, election)
	expectRole(t, controller, codes.OK)
	action := p4.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT
	do(t, controller.SetPipeline(action, p4info(t, bed), testbed.Read(t, bed.Program), 7))
	return bed, controller
}

func connect(t *testing.T, bed *testbed.Testbed, election uint64) *Controller {
	t.Helper()
	controller, err := Connect(bed.Address, device, election)
	do(t, err)
	t.Cleanup(controller.Close)
	return controller
}

// p4info reads the P4Info. Its parser refuses fields that release 1.4.1 does not know.
func p4info(t *testing.T, bed *testbed.Testbed) *p4config.P4Info {
	t.Helper()
	info := &p4config.P4Info{}
	do(t, prototext.Unmarshal(testbed.Read(t, bed.P4Info), info))
	return info
}

// do fails unless a call succeeded.
func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (details: %v)", err, status.Convert(err).Details())
	}
}

func equal[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Fatalf("%v instead of %v", found, expected)
	}
}

func expectRole(t *testing.T, controller *Controller, expected codes.Code) {
	t.Helper()
	role, err := controller.Role()
	do(t, err)
	equal(t, role, expected)
}

// refused fails unless a call of one update is refused with a code.
func refused(t *testing.T, err error, expected code.Code) {
	t.Helper()
	errors := updateErrors(t, err)
	equal(t, len(errors), 1)
	equal(t, code.Code(errors[0].CanonicalCode), expected)
}

// updateErrors returns the errors of single updates that the status of a failed call has.
func updateErrors(t *testing.T, err error) []*p4.Error {
	t.Helper()
	if err == nil {
		t.Fatal("not refused")
	}
	var errors []*p4.Error
	for _, detail := range status.Convert(err).Details() {
		one, ok := detail.(*p4.Error)
		if !ok {
			t.Fatalf("%v is no p4.v1.Error", detail)
		}
		errors = append(errors, one)
	}
	return errors
}

// read returns the entities that match a pattern.
func read(t *testing.T, controller *Controller, pattern any) []*p4.Entity {
	t.Helper()
	entities, err := controller.Read(Entity(pattern))
	do(t, err)
	return entities
}

// readOne returns the only entity that matches a pattern.
func readOne(t *testing.T, controller *Controller, pattern any) *p4.Entity {
	t.Helper()
	entities := read(t, controller, pattern)
	equal(t, len(entities), 1)
	return entities[0]
}

// receive returns the next message on the stream for which a condition holds. Fails if it is none within a minute.
func receive(
	t *testing.T, controller *Controller, holds func(*p4.StreamMessageResponse) bool,
) *p4.StreamMessageResponse {
	t.Helper()
	for {
		message, err := controller.Receive()
		do(t, err)
		if holds(message) {
			return message
		}
	}
}
