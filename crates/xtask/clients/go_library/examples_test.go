package library

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antoninbas/p4runtime-go-client/pkg/client"
	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"triplane/clients/testbed"
)

// example is one of the library's own programs, as a process.
type example struct {
	process *exec.Cmd
	lines   chan string
}

// runExample starts a program of the library and collects its log. These programs always claim the election ID 1, and a
// switch takes none below the highest that it has seen, so they run before the other tests.
func runExample(t *testing.T, bed *testbed.Testbed, name, program, p4info string, arguments ...string) *example {
	t.Helper()
	arguments = append(arguments, "--addr", bed.Address, "--bin", program, "--p4info", p4info)
	process := exec.Command(filepath.Join(os.Getenv("TRIPLANE_EXAMPLES"), name), arguments...)
	output, err := process.StderrPipe()
	do(t, err)
	do(t, process.Start())
	running := &example{process, make(chan string, 1024)}
	go func() {
		defer close(running.lines)
		for lines := bufio.NewScanner(io.Reader(output)); lines.Scan(); {
			running.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	return running
}

// expect waits for a line that contains a text. Fails if a line before it reports an error.
func (e *example) expect(t *testing.T, text string) {
	t.Helper()
	limit := time.After(testbed.Patience)
	for {
		select {
		case line, open := <-e.lines:
			if !open || strings.Contains(line, "level=error") || strings.Contains(line, "level=fatal") {
				t.Fatalf("no `%s`: %s", text, line)
			}
			if strings.Contains(line, text) {
				return
			}
		case <-limit:
			t.Fatalf("no `%s`", text)
		}
	}
}

// stop ends the program as Ctrl-C does. Fails if it reports an error.
func (e *example) stop(t *testing.T) {
	t.Helper()
	do(t, e.process.Process.Signal(syscall.SIGINT))
	e.expect(t, "Stopping client")
	do(t, e.process.Wait())
}

func TestExamplePushesAnyPipeline(t *testing.T) {
	bed := testbed.Open(t)
	running := runExample(t, bed, "example", bed.Program, bed.P4Info)
	running.expect(t, "We are the primary client!")
	running.expect(t, "Do Ctrl-C to quit")
}

func TestExampleWCMPInsertsActionSets(t *testing.T) {
	bed := testbed.Open(t)
	files := os.Getenv("TRIPLANE_EXAMPLES")
	program, p4info := filepath.Join(files, "wcmp.p4"), filepath.Join(files, "wcmp.p4info.txtpb")
	running := runExample(t, bed, "wcmp", program, p4info)
	running.expect(t, "Deleting test groups")
	running.expect(t, "Done")
	running.stop(t)
}

func TestExampleL2SwitchLearns(t *testing.T) {
	bed := testbed.Open(t)
	files := os.Getenv("TRIPLANE_EXAMPLES")
	program, p4info := filepath.Join(files, "l2_switch.p4"), filepath.Join(files, "l2_switch.p4info.txtpb")
	running := runExample(t, bed, "l2_switch", program, p4info, "--verbose", "--ports", "1,2,3,4")
	running.expect(t, "Do Ctrl-C to quit")
	ethernet := func(to, from byte) []byte {
		return append([]byte{2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x08, 0x00}, make([]byte, 50)...)
	}
	// The first frame is flooded, and its sender learned. The answer goes to that port only.
	first, answer := ethernet(2, 1), ethernet(1, 2)
	bed.Send(t, 1, first)
	for port := uint32(2); port <= 4; port++ {
		bed.Expect(t, port, first)
	}
	running.expect(t, "Learning MAC")
	waitForEntries(t, bed, p4info, program, 1)
	bed.Send(t, 2, answer)
	bed.Expect(t, 1, answer)
	bed.ExpectNone(t, 3, answer)
	// After 10 s without a frame, the switch reports the entries, and the program deletes them.
	running.expect(t, "Expiring MAC")
	running.stop(t)
}

// waitForEntries waits until the table of destinations has a number of entries.
func waitForEntries(t *testing.T, bed *testbed.Testbed, p4info, program string, count int) {
	t.Helper()
	connection, err := grpc.Dial(bed.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	do(t, err)
	defer connection.Close()
	reader := client.NewClient(p4.NewP4RuntimeClient(connection), device, nil)
	_, err = reader.GetFwdPipe(context.Background(), client.GetFwdPipeAll)
	do(t, err)
	for end := time.Now().Add(testbed.Patience); ; time.Sleep(10 * time.Millisecond) {
		entries, err := reader.ReadTableEntryWildcard(context.Background(), "IngressImpl.dmac")
		do(t, err)
		if len(entries) >= count {
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing was learned")
		}
	}
}
