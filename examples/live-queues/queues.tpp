# Each switch adds its number, the output port, the packets that waited in the queue when this one came, and the
# utilization of the link in 1/10,000.
.hops 5
PUSH [Switch:ID]
PUSH [PacketMetadata:OutputPort]
PUSH [PacketMetadata:EnqueueDepth]
PUSH [Link:TX-Utilization]
