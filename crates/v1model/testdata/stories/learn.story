# An unknown address is learned, a known one is not.
send 0 000000000002 000000000077 0800 aa
send 0 000000000002 000000000001 0800 aa

# The third packet of a port goes to the control plane, with a header in front.
send 0 000000000002 000000000001 0800 aa

# The control plane sends a packet out.
send 510 0002 000000000002 000000000001 0800 bb

summary
trace 1 000000000002 000000000077 0800 aa
