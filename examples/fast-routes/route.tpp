# Adds a route to the first two switches on the way of the packet: 10.0.0.2/32, by the port that the packet leaves by.
# Port 0 comes first and the new port last, so no packet meets half of a route.
.mode hop
.hops 2
.memory 0x0a000002, 0xffffffff    # prefix, mask; then the port, and 0
STORE [Register:RouteIngress.ports[0]], [Packet:hop[3]]
STORE [Register:RouteIngress.prefixes[0]], [Packet:hop[0]]
STORE [Register:RouteIngress.masks[0]], [Packet:hop[1]]
LOAD [PacketMetadata:OutputPort], [Packet:hop[2]]
STORE [Register:RouteIngress.ports[0]], [Packet:hop[2]]
