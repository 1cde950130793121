// Package controller is a small P4Runtime controller. It stands on the Go code that the P4Runtime project generates
// from its protos (release 1.4.1) and on gRPC, and on nothing of Triplane.
package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// callLimit is the longest time of a call.
const callLimit = 60 * time.Second

// Controller is a connection to a switch with a stream, on which it competes to be the primary controller.
type Controller struct {
	// Client makes calls that have no method here.
	Client p4.P4RuntimeClient
	// Arbitrations are the answers to Claim, and news of other controllers.
	Arbitrations chan *p4.MasterArbitrationUpdate
	// Messages are packet-ins, digests, idle timeouts and errors.
	Messages chan *p4.StreamMessageResponse

	connection *grpc.ClientConn
	stream     p4.P4Runtime_StreamChannelClient
	device     uint64
	election   *p4.Uint128
	names      names
}

// Connect opens a connection and a stream to a switch, and claims to be the primary with an election ID.
func Connect(address string, device, election uint64) (*Controller, error) {
	connection, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	client := p4.NewP4RuntimeClient(connection)
	stream, err := client.StreamChannel(context.Background())
	if err != nil {
		connection.Close()
		return nil, err
	}
	controller := &Controller{
		Client:       client,
		Arbitrations: make(chan *p4.MasterArbitrationUpdate, 64),
		Messages:     make(chan *p4.StreamMessageResponse, 1024),
		connection:   connection,
		stream:       stream,
		device:       device,
	}
	go controller.receive()
	return controller, controller.Claim(election)
}

// Close ends the stream and the connection.
func (c *Controller) Close() {
	c.connection.Close()
}

// receive sorts the messages of the stream until it ends.
func (c *Controller) receive() {
	defer close(c.Arbitrations)
	defer close(c.Messages)
	for {
		message, err := c.stream.Recv()
		if err != nil {
			return
		}
		if arbitration := message.GetArbitration(); arbitration != nil {
			c.Arbitrations <- arbitration
		} else {
			c.Messages <- message
		}
	}
}

// Claim sends an election ID: the controller with the highest is the primary.
func (c *Controller) Claim(election uint64) error {
	c.election = &p4.Uint128{Low: election}
	update := &p4.MasterArbitrationUpdate{DeviceId: c.device, ElectionId: c.election}
	return c.Send(&p4.StreamMessageRequest{Update: &p4.StreamMessageRequest_Arbitration{Arbitration: update}})
}

// Role waits for the next arbitration update. Its code is OK for the primary, ALREADY_EXISTS for the backups of a
// primary, and NOT_FOUND if there is none.
func (c *Controller) Role() (codes.Code, error) {
	select {
	case update, open := <-c.Arbitrations:
		if !open {
			return codes.Unknown, errors.New("the stream has ended")
		}
		return codes.Code(update.GetStatus().GetCode()), nil
	case <-time.After(callLimit):
		return codes.Unknown, errors.New("no arbitration update")
	}
}

// Send sends a message on the stream.
func (c *Controller) Send(message *p4.StreamMessageRequest) error {
	return c.stream.Send(message)
}

// Receive waits for the next message on the stream that is not about arbitration.
func (c *Controller) Receive() (*p4.StreamMessageResponse, error) {
	select {
	case message, open := <-c.Messages:
		if !open {
			return nil, errors.New("the stream has ended")
		}
		return message, nil
	case <-time.After(callLimit):
		return nil, errors.New("no message")
	}
}

// SetPipeline sets a program and its P4Info. Both are nil for COMMIT.
func (c *Controller) SetPipeline(
	action p4.SetForwardingPipelineConfigRequest_Action, info *p4config.P4Info, program []byte, cookie uint64,
) error {
	request := &p4.SetForwardingPipelineConfigRequest{DeviceId: c.device, ElectionId: c.election, Action: action}
	if info != nil {
		c.names = names{info}
		request.Config = &p4.ForwardingPipelineConfig{
			P4Info:         info,
			P4DeviceConfig: program,
			Cookie:         &p4.ForwardingPipelineConfig_Cookie{Cookie: cookie},
		}
	}
	context, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	_, err := c.Client.SetForwardingPipelineConfig(context, request)
	return err
}

// Pipeline returns the program that runs, its P4Info and the cookie.
func (c *Controller) Pipeline() (*p4.ForwardingPipelineConfig, error) {
	context, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	request := &p4.GetForwardingPipelineConfigRequest{DeviceId: c.device}
	response, err := c.Client.GetForwardingPipelineConfig(context, request)
	return response.GetConfig(), err
}

// Write sends a batch of updates.
func (c *Controller) Write(atomicity p4.WriteRequest_Atomicity, updates ...*p4.Update) error {
	context, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	request := &p4.WriteRequest{
		DeviceId: c.device, ElectionId: c.election, Updates: updates, Atomicity: atomicity,
	}
	_, err := c.Client.Write(context, request)
	return err
}

// Insert inserts entities in one batch.
func (c *Controller) Insert(entities ...*p4.Entity) error {
	return c.Write(p4.WriteRequest_CONTINUE_ON_ERROR, Updates(p4.Update_INSERT, entities)...)
}

// Modify modifies entities in one batch.
func (c *Controller) Modify(entities ...*p4.Entity) error {
	return c.Write(p4.WriteRequest_CONTINUE_ON_ERROR, Updates(p4.Update_MODIFY, entities)...)
}

// Delete deletes entities in one batch.
func (c *Controller) Delete(entities ...*p4.Entity) error {
	return c.Write(p4.WriteRequest_CONTINUE_ON_ERROR, Updates(p4.Update_DELETE, entities)...)
}

// Updates returns an update of one type for each entity.
func Updates(kind p4.Update_Type, entities []*p4.Entity) []*p4.Update {
	var updates []*p4.Update
	for _, entity := range entities {
		updates = append(updates, &p4.Update{Type: kind, Entity: entity})
	}
	return updates
}

// Read returns the entities that match any of the patterns.
func (c *Controller) Read(patterns ...*p4.Entity) ([]*p4.Entity, error) {
	context, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	stream, err := c.Client.Read(context, &p4.ReadRequest{DeviceId: c.device, Entities: patterns})
	if err != nil {
		return nil, err
	}
	var entities []*p4.Entity
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return entities, nil
		}
		if err != nil {
			return entities, err
		}
		entities = append(entities, response.Entities...)
	}
}

// names finds the IDs of a program's objects.
type names struct{ info *p4config.P4Info }

// ID returns the ID of an object by its name, its last part, or its alias. Panics if the program has none.
func (c *Controller) ID(name string) uint32 {
	for _, preamble := range c.names.preambles() {
		if preamble.Name == name || preamble.Alias == name || strings.HasSuffix(preamble.Name, "."+name) {
			return preamble.Id
		}
	}
	panic(fmt.Sprintf("the program has no %s", name))
}

func (n names) preambles() []*p4config.Preamble {
	var all []*p4config.Preamble
	for _, object := range n.info.GetTables() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetActions() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetActionProfiles() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetCounters() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetDirectCounters() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetMeters() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetDirectMeters() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetRegisters() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetValueSets() {
		all = append(all, object.Preamble)
	}
	for _, object := range n.info.GetDigests() {
		all = append(all, object.Preamble)
	}
	return all
}
