# Each switch adds its number and the port by which the packet leaves.
.word 16
.hops 5
PUSH [Switch:ID]
PUSH [PacketMetadata:OutputPort]
