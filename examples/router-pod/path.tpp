# The path of a packet: each switch adds its number, and the ports by which the packet came and went.
.word 16
.hops 5
PUSH [Switch:ID]
PUSH [PacketMetadata:InputPort]
PUSH [PacketMetadata:OutputPort]
