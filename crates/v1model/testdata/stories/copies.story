# Reports: instance_type rid port kept lost length.
group 5 1/10 2/20 2/21
mirror 9 3
mirror 8 3 max 4
mirror-group 7 5

# Unicast.
send 0 00 01 00 aabb

# Multicast: instance type 5, a report a copy. An unknown group is a drop.
send 0 01 01 05 aabb
send 0 01 01 06 aabb

# A clone from ingress is the packet as it came, with the kept field only: instance type 1.
send 0 02 01 09 aabb
# Cut by the session; to a group; to a session that is not there.
send 0 02 01 08 aabb
send 0 02 01 07 aabb
send 0 02 01 01 aabb

# A clone from egress is the packet as it was: instance type 2.
send 0 03 01 09 aabb

# Resubmitted twice: the kept field counts, the other starts over.
send 0 04 01 00 aabb

# Recirculated twice: changes stay, the kept field counts.
send 0 05 01 00 aabb

# Cut.
send 0 06 01 06 aabbccddeeff

# A loop ends.
send 0 07 01 00 aabb

summary
trace 0 02 01 09 aabb
trace 0 05 01 00 aabb
