// Package testbed gives tests the switch that `cargo xtask clients` started for them, and the far ends of its ports.
package testbed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is the longest time that a test waits for the switch.
const Patience = 60 * time.Second

// packetOutgoing is the type of frames that this machine sent (PACKET_OUTGOING of Linux).
const packetOutgoing = 4

// Testbed is a running switch. Its files are for tests to read.
type Testbed struct {
	Address string // HOST:PORT of the P4Runtime server
	P4Info  string // file with the P4Info of Program, as protobuf text
	Program string // file with the P4 program
	sockets map[uint32]int
}

// Open returns the switch that the environment names, with a socket on each of its ports. Skips the test if there is
// none.
func Open(t *testing.T) *Testbed {
	t.Helper()
	address := os.Getenv("TRIPLANE_ADDRESS")
	if address == "" {
		t.Skip("there is no switch; `cargo xtask clients` starts one")
	}
	bed := &Testbed{
		Address: address,
		P4Info:  os.Getenv("TRIPLANE_P4INFO"),
		Program: os.Getenv("TRIPLANE_PROGRAM"),
		sockets: map[uint32]int{},
	}
	for _, port := range strings.Fields(os.Getenv("TRIPLANE_PORTS")) {
		number, name, _ := strings.Cut(port, "=")
		parsed, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			t.Fatalf("TRIPLANE_PORTS: %v", err)
		}
		socket, err := openPort(name)
		if err != nil {
			t.Fatalf("port %s: %v", port, err)
		}
		t.Cleanup(func() { syscall.Close(socket) })
		bed.sockets[uint32(parsed)] = socket
	}
	return bed
}

// openPort opens a packet socket on an interface. Receiving from it takes at most 100 ms.
func openPort(name string) (int, error) {
	port, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	everything := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, syscall.ETH_P_ALL))
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, int(everything))
	if err != nil {
		return 0, err
	}
	limit := syscall.NsecToTimeval((100 * time.Millisecond).Nanoseconds())
	if err := syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit); err != nil {
		return 0, err
	}
	return socket, syscall.Bind(socket, &syscall.SockaddrLinklayer{Protocol: everything, Ifindex: port.Index})
}

// Send lets a frame arrive at a port of the switch.
func (bed *Testbed) Send(t *testing.T, port uint32, frame []byte) {
	t.Helper()
	if _, err := syscall.Write(bed.sockets[port], frame); err != nil {
		t.Fatalf("port %d: %v", port, err)
	}
}

// Expect waits until a frame leaves at a port of the switch, and passes over other frames.
func (bed *Testbed) Expect(t *testing.T, port uint32, frame []byte) {
	t.Helper()
	if !bed.receives(t, port, frame, Patience) {
		t.Fatalf("port %d: no frame %x", port, frame)
	}
}

// ExpectNone fails if a frame leaves at a port of the switch within 300 ms.
func (bed *Testbed) ExpectNone(t *testing.T, port uint32, frame []byte) {
	t.Helper()
	if bed.receives(t, port, frame, 300*time.Millisecond) {
		t.Fatalf("port %d: unexpected frame %x", port, frame)
	}
}

func (bed *Testbed) receives(t *testing.T, port uint32, frame []byte, limit time.Duration) bool {
	t.Helper()
	buffer := make([]byte, 2048)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		length, from, err := syscall.Recvfrom(bed.sockets[port], buffer, 0)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			t.Fatalf("port %d: %v", port, err)
		}
		sender, ok := from.(*syscall.SockaddrLinklayer)
		if ok && sender.Pkttype != packetOutgoing && bytes.Equal(buffer[:length], frame) {
			return true
		}
	}
	return false
}

// Read returns the contents of a file.
func Read(t *testing.T, file string) []byte {
	t.Helper()
	contents, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(fmt.Errorf("cannot read a file of the testbed: %w", err))
	}
	return contents
}

// Fields are the values of a header of every.p4.
type Fields struct {
	A, B uint16
	C    uint32
	D, E uint8
}

// Frame returns a frame with the header of every.p4 and a payload of 54 bytes.
func Frame(fields Fields) []byte {
	frame := binary.BigEndian.AppendUint16(nil, fields.A)
	frame = binary.BigEndian.AppendUint16(frame, fields.B)
	frame = binary.BigEndian.AppendUint32(frame, fields.C)
	frame = append(frame, fields.D, fields.E)
	for value := byte(0); value < 54; value++ {
		frame = append(frame, value)
	}
	return frame
}
