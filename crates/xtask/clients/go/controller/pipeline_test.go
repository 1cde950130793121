package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"triplane/clients/testbed"
)

func TestTheVersionOfTheAPIIsReported(t *testing.T) {
	_, controller := start(t)
	response, err := controller.Client.Capabilities(context.Background(), &p4.CapabilitiesRequest{})
	do(t, err)
	if !strings.HasPrefix(response.P4RuntimeApiVersion, "1.") {
		t.Fatal(response.P4RuntimeApiVersion)
	}
}

func TestThePipelineIsReturnedAsItWasSet(t *testing.T) {
	bed, controller := start(t)
	pipeline, err := controller.Pipeline()
	do(t, err)
	equal(t, pipeline.Cookie.Cookie, 7)
	equal(t, string(pipeline.P4DeviceConfig), string(testbed.Read(t, bed.Program)))
	if !proto.Equal(pipeline.P4Info, p4info(t, bed)) {
		t.Fatal("another P4Info")
	}
}

func TestASavedPipelineIsCommitted(t *testing.T) {
	bed, controller := start(t)
	row := Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))
	do(t, controller.Insert(row))
	info, program := p4info(t, bed), testbed.Read(t, bed.Program)
	do(t, controller.SetPipeline(p4.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE, info, program, 8))
	do(t, controller.SetPipeline(p4.SetForwardingPipelineConfigRequest_COMMIT, nil, nil, 0))
	pipeline, err := controller.Pipeline()
	do(t, err)
	equal(t, pipeline.Cookie.Cookie, 8)
	equal(t, len(read(t, controller, &p4.TableEntry{TableId: controller.ID("exact_t")})), 0)
	err = controller.SetPipeline(p4.SetForwardingPipelineConfigRequest_COMMIT, nil, nil, 0)
	equal(t, status.Code(err), codes.NotFound)
}

func TestReconcilingKeepsEntries(t *testing.T) {
	bed, controller := start(t)
	do(t, controller.Insert(Entity(controller.Row("exact_t", Key(Exact(1)), "forward", 2))))
	info, program := p4info(t, bed), testbed.Read(t, bed.Program)
	do(t, controller.SetPipeline(p4.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, info, program, 9))
	equal(t, len(read(t, controller, &p4.TableEntry{TableId: controller.ID("exact_t")})), 1)
}

func TestMistakesInAProgramAreReportedWhateverTheirNumber(t *testing.T) {
	bed, controller := start(t)
	info, program := p4info(t, bed), string(testbed.Read(t, bed.Program))
	for _, mistakes := range []int{1, 40, 1000} {
		var lines strings.Builder
		for number := 0; number < mistakes; number++ {
			fmt.Fprintf(&lines, "meta.wrong_%d = %d;\n", number, number)
		}
		wrong := strings.Replace(program, "meta.special = 1;", lines.String(), 1)
		err := controller.SetPipeline(p4.SetForwardingPipelineConfigRequest_VERIFY, info, []byte(wrong), 0)
		equal(t, status.Code(err), codes.InvalidArgument)
		if message := status.Convert(err).Message(); !strings.Contains(message, "wrong_0") {
			t.Fatal(message)
		}
	}
}

func TestAnotherProgramsP4InfoIsRefused(t *testing.T) {
	bed, controller := start(t)
	info := p4info(t, bed)
	info.Registers = nil
	err := controller.SetPipeline(
		p4.SetForwardingPipelineConfigRequest_VERIFY, info, testbed.Read(t, bed.Program), 0)
	equal(t, status.Code(err), codes.InvalidArgument)
	if message := status.Convert(err).Message(); !strings.Contains(message, "register") {
		t.Fatal(message)
	}
}

func TestTheHighestElectionIDIsPrimary(t *testing.T) {
	bed, first := start(t)
	backup := connect(t, bed, election-1)
	expectRole(t, backup, codes.AlreadyExists)
	backup.names = first.names
	row := Entity(first.Row("exact_t", Key(Exact(1)), "forward", 2))
	equal(t, status.Code(backup.Insert(row)), codes.PermissionDenied)

	do(t, backup.Claim(election+1))
	expectRole(t, backup, codes.OK)
	expectRole(t, first, codes.AlreadyExists)
	equal(t, status.Code(first.Insert(row)), codes.PermissionDenied)
	do(t, backup.Insert(row))

	backup.Close()
	expectRole(t, first, codes.NotFound)
	do(t, first.Claim(election+1))
	expectRole(t, first, codes.OK)
	do(t, first.Delete(row))
}

func TestAnElectionIDInUseIsRefused(t *testing.T) {
	bed, _ := start(t)
	second := connect(t, bed, election)
	if _, err := second.Role(); err == nil {
		t.Fatal("the stream did not end")
	}
}
