# Reports: instance_type rid port kept lost length.
group 5 1/10 2/20 2/21
mirror 9 3
mirror 8 3 max 4
mirror-group 7 5

# Unicast.
send 0 00 01 00 aabb
  out 1 00010000000101010005aabb

# Multicast: instance type 5, a report a copy. An unknown group is a drop.
send 0 01 01 05 aabb
  out 1 010105050a0101010005aabb
  out 2 01010505140201010005aabb
  out 2 01010505150201010005aabb
send 0 01 01 06 aabb

# A clone from ingress is the packet as it came, with the kept field only: instance type 1.
send 0 02 01 09 aabb
  out 3 02010901000301000005aabb
  out 1 ff010900000101010005aabb
# Cut by the session; to a group; to a session that is not there.
send 0 02 01 08 aabb
  out 3 02010801
  out 1 ff010800000101010005aabb
send 0 02 01 07 aabb
  out 1 020107010a0101000005aabb
  out 2 02010701140201000005aabb
  out 2 02010701150201000005aabb
  out 1 ff010700000101010005aabb
send 0 02 01 01 aabb
  out 1 ff010100000101010005aabb

# A clone from egress is the packet as it was: instance type 2.
send 0 03 01 09 aabb
  out 1 03010900000101010005aabb
  out 3 0301090200030100000caabb

# Resubmitted twice: the kept field counts, the other starts over.
send 0 04 01 00 aabb
  out 1 04010000000103010005aabb

# Recirculated twice: changes stay, the kept field counts.
send 0 05 01 00 aabb
  out 1 05010200000103010005aabb

# Cut.
send 0 06 01 06 aabbccddeeff
  out 1 060106000001

# A loop ends.
send 0 07 01 00 aabb

summary
  port  rx packets  rx bytes  tx packets  tx bytes
     0          12        64           0         0
     1           0         0          11       126
     2           0         0           4        48
     3           0         0           3        28
  1 dropped after ingress: the multicast group does not exist
  1 dropped as clones: the mirror session does not exist
  1 dropped by the limit on passes and copies of one packet
  clone.egress.packets   1
  clone.ingress.packets  4
  multicast.packets      2
  multicast.replicas     6
  recirculate.packets    2
  resubmit.packets       257

trace 0 02 01 09 aabb
  0.000000s  port 0 received 5 bytes
  parser P
    state start
      extract hdr.ask, 3 bytes at byte 0                                      copies.p4:44:9
        what  2
        port  1
        arg   9
  ingress I
    standard_metadata.egress_spec = 1, was 0                                  copies.p4:53:9
    meta.kept = 1, was 0                                                      copies.p4:54:9
    meta.lost = 1, was 0                                                      copies.p4:55:9
    if hdr.ask.what == 0x1: no                                                copies.p4:56:9
    if hdr.ask.what == 0x2: yes                                               copies.p4:58:16
    request: clone to mirror session 9, keeping field list 1                  copies.p4:59:13
    hdr.ask.what = 255, was 2                                                 copies.p4:61:13
  egress E, port 1
    if (hdr.ask.what == 0x3) & (standard_metadata.instance_type != 0x2): no   copies.p4:73:9
    if (hdr.ask.what == 0x5) & (meta.kept < 0x3): no                          copies.p4:75:16
    if hdr.ask.what == 0x6: no                                                copies.p4:78:16
    if (hdr.ask.what != 0x5) | (0x3 <= meta.kept): yes                        copies.p4:81:9
    hdr.seen set valid                                                        copies.p4:82:13
    hdr.seen.instance_type = 0, as before                                     copies.p4:83:13
    hdr.seen.rid = 0, as before                                               copies.p4:84:13
    hdr.seen.port = 1, was 0                                                  copies.p4:85:13
    hdr.seen.kept = 1, was 0                                                  copies.p4:86:13
    hdr.seen.lost = 1, was 0                                                  copies.p4:87:13
    hdr.seen.length = 5, was 0                                                copies.p4:88:13
  deparser D
    emit hdr.ask, 3 bytes                                                     copies.p4:97:9
    emit hdr.seen, 7 bytes                                                    copies.p4:98:9
  sent on port 1, 12 bytes
    hdr.ask.what  2 -> 255
    hdr.seen      added
  pass 2: clone of pass 1 as received, mirror session 9, 5 bytes
  parser P
    state start
      extract hdr.ask, 3 bytes at byte 0                                      copies.p4:44:9
        what  2
        port  1
        arg   9
  egress E, port 3
    if (hdr.ask.what == 0x3) & (standard_metadata.instance_type != 0x2): no   copies.p4:73:9
    if (hdr.ask.what == 0x5) & (meta.kept < 0x3): no                          copies.p4:75:16
    if hdr.ask.what == 0x6: no                                                copies.p4:78:16
    if (hdr.ask.what != 0x5) | (0x3 <= meta.kept): yes                        copies.p4:81:9
    hdr.seen set valid                                                        copies.p4:82:13
    hdr.seen.instance_type = 1, was 0                                         copies.p4:83:13
    hdr.seen.rid = 0, as before                                               copies.p4:84:13
    hdr.seen.port = 3, was 0                                                  copies.p4:85:13
    hdr.seen.kept = 1, was 0                                                  copies.p4:86:13
    hdr.seen.lost = 0, as before                                              copies.p4:87:13
    hdr.seen.length = 5, was 0                                                copies.p4:88:13
  deparser D
    emit hdr.ask, 3 bytes                                                     copies.p4:97:9
    emit hdr.seen, 7 bytes                                                    copies.p4:98:9
  sent on port 3, 12 bytes
    hdr.seen  added
  out 3 02010901000301000005aabb
  out 1 ff010900000101010005aabb

trace 0 05 01 00 aabb
  0.000000s  port 0 received 5 bytes
  parser P
    state start
      extract hdr.ask, 3 bytes at byte 0                                      copies.p4:44:9
        what  5
        port  1
        arg   0
  ingress I
    standard_metadata.egress_spec = 1, was 0                                  copies.p4:53:9
    meta.kept = 1, was 0                                                      copies.p4:54:9
    meta.lost = 1, was 0                                                      copies.p4:55:9
    if hdr.ask.what == 0x1: no                                                copies.p4:56:9
    if hdr.ask.what == 0x2: no                                                copies.p4:58:16
    if (hdr.ask.what == 0x4) & (meta.kept < 0x3): no                          copies.p4:62:16
    if hdr.ask.what == 0x7: no                                                copies.p4:65:16
  egress E, port 1
    if (hdr.ask.what == 0x3) & (standard_metadata.instance_type != 0x2): no   copies.p4:73:9
    if (hdr.ask.what == 0x5) & (meta.kept < 0x3): yes                         copies.p4:75:16
    request: recirculate, keeping field list 1                                copies.p4:76:13
    hdr.ask.arg = 1, was 0                                                    copies.p4:77:13
    if (hdr.ask.what != 0x5) | (0x3 <= meta.kept): no                         copies.p4:81:9
  deparser D
    emit hdr.ask, 3 bytes                                                     copies.p4:97:9
  recirculated, 5 bytes
  pass 2: pass 1 recirculated, 5 bytes
  parser P
    state start
      extract hdr.ask, 3 bytes at byte 0                                      copies.p4:44:9
        what  5
        port  1
        arg   1
  ingress I
    standard_metadata.egress_spec = 1, was 0                                  copies.p4:53:9
    meta.kept = 2, was 1                                                      copies.p4:54:9
    meta.lost = 1, was 0                                                      copies.p4:55:9
    if hdr.ask.what == 0x1: no                                                copies.p4:56:9
    if hdr.ask.what == 0x2: no                                                copies.p4:58:16
    if (hdr.ask.what == 0x4) & (meta.kept < 0x3): no                          copies.p4:62:16
    if hdr.ask.what == 0x7: no                                                copies.p4:65:16
  egress E, port 1
    if (hdr.ask.what == 0x3) & (standard_metadata.instance_type != 0x2): no   copies.p4:73:9
    if (hdr.ask.what == 0x5) & (meta.kept < 0x3): yes                         copies.p4:75:16
    request: recirculate, keeping field list 1                                copies.p4:76:13
    hdr.ask.arg = 2, was 1                                                    copies.p4:77:13
    if (hdr.ask.what != 0x5) | (0x3 <= meta.kept): no                         copies.p4:81:9
  deparser D
    emit hdr.ask, 3 bytes                                                     copies.p4:97:9
  recirculated, 5 bytes
  pass 3: pass 2 recirculated, 5 bytes
  parser P
    state start
      extract hdr.ask, 3 bytes at byte 0                                      copies.p4:44:9
        what  5
        port  1
        arg   2
  ingress I
    standard_metadata.egress_spec = 1, was 0                                  copies.p4:53:9
    meta.kept = 3, was 2                                                      copies.p4:54:9
    meta.lost = 1, was 0                                                      copies.p4:55:9
    if hdr.ask.what == 0x1: no                                                copies.p4:56:9
    if hdr.ask.what == 0x2: no                                                copies.p4:58:16
    if (hdr.ask.what == 0x4) & (meta.kept < 0x3): no                          copies.p4:62:16
    if hdr.ask.what == 0x7: no                                                copies.p4:65:16
  egress E, port 1
    if (hdr.ask.what == 0x3) & (standard_metadata.instance_type != 0x2): no   copies.p4:73:9
    if (hdr.ask.what == 0x5) & (meta.kept < 0x3): no                          copies.p4:75:16
    if hdr.ask.what == 0x6: no                                                copies.p4:78:16
    if (hdr.ask.what != 0x5) | (0x3 <= meta.kept): yes                        copies.p4:81:9
    hdr.seen set valid                                                        copies.p4:82:13
    hdr.seen.instance_type = 0, as before                                     copies.p4:83:13
    hdr.seen.rid = 0, as before                                               copies.p4:84:13
    hdr.seen.port = 1, was 0                                                  copies.p4:85:13
    hdr.seen.kept = 3, was 0                                                  copies.p4:86:13
    hdr.seen.lost = 1, was 0                                                  copies.p4:87:13
    hdr.seen.length = 5, was 0                                                copies.p4:88:13
  deparser D
    emit hdr.ask, 3 bytes                                                     copies.p4:97:9
    emit hdr.seen, 7 bytes                                                    copies.p4:98:9
  sent on port 1, 12 bytes
    hdr.seen  added
  out 1 05010200000103010005aabb
