# Each switch adds its number, the output port, and the number of packets that were in the queue when this one came.
.word 16
.hops 5
PUSH [Switch:ID]
PUSH [PacketMetadata:OutputPort]
PUSH [PacketMetadata:EnqueueDepth]
