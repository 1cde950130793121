# Reports: instance_type rid port.
group 5 1/10 2/20

# A copy for each bit, in the order of the ports, with replica id 0.
send 0 01 0e aa
  out 1 010e050001aa
  out 2 010e050002aa
  out 3 010e050003aa
# One port is a copy, too.
send 0 01 04 aa
  out 2 0104050002aa
# No port is a drop at the call.
send 0 01 00 aa
# A port that is not there, and one that is down.
send 0 01 41 aa
  out 0 0141050000aa
down 1
send 0 01 06 aa
  out 2 0106050002aa
up 1

# A later drop wins over the bitmap, and the bitmap over an earlier drop.
send 0 02 06 aa
send 0 03 06 aa
  out 1 0306050001aa
  out 2 0306050002aa
# A group that is set later replaces the bitmap; a port that is set later does not.
send 0 04 08 aa
  out 1 0408050a01aa
  out 2 0408051402aa
send 0 05 02 aa
  out 1 0502050001aa
# The last bitmap counts.
send 0 06 0c aa
  out 1 060c050001aa
# Bit 511 is port 511, which no switch has.
send 0 07 02 aa
  out 1 0702050001aa
summary
  port  rx packets  rx bytes  tx packets  tx bytes
     0          11        33           1         6
     1           0         0           6        36
     2           0         0           5        30
     3           0         0           1         6
  1 dropped in ingress by the program at replicas.p4:47:13 (I)
  1 dropped in ingress by the program at replicas.p4:49:42 (I)
  2 dropped on sending: the switch has no such port
  1 dropped on sending: the port is down
  multicast.packets   9
  multicast.replicas  16
trace 0 01 06 aa
  0.000000s  port 0 received 3 bytes
  parser P
    state start
      extract hdr.ask, 2 bytes at byte 0                                      replicas.p4:34:9
        what   1
        ports  6
  ingress I
    if hdr.ask.what == 0x3: no                                                replicas.p4:43:9
    if hdr.ask.what == 0x7: no                                                replicas.p4:44:9
    standard_metadata.egress_spec = 0, as before                              replicas.p4:47:13
    standard_metadata.mcast_grp = 0, as before                                replicas.p4:47:13
    if hdr.ask.what == 0x2: no                                                replicas.p4:49:9
    if hdr.ask.what == 0x4: no                                                replicas.p4:50:9
    if hdr.ask.what == 0x5: no                                                replicas.p4:51:9
    if hdr.ask.what == 0x6: no                                                replicas.p4:52:9
  replicated to ports 1, 2
  pass 2: copy of pass 1, replica 0, 3 bytes
  egress E, port 1
    hdr.seen.instance_type = 5, was 0                                         replicas.p4:58:9
    hdr.seen.rid = 0, as before                                               replicas.p4:58:9
    hdr.seen.port = 1, was 0                                                  replicas.p4:58:9
    hdr.seen set valid                                                        replicas.p4:58:9
  deparser D
    emit hdr.ask, 2 bytes                                                     replicas.p4:66:9
    emit hdr.seen, 3 bytes                                                    replicas.p4:67:9
  sent on port 1, 6 bytes
    hdr.seen  added
  pass 3: copy of pass 1, replica 0, 3 bytes
  egress E, port 2
    hdr.seen.instance_type = 5, was 0                                         replicas.p4:58:9
    hdr.seen.rid = 0, as before                                               replicas.p4:58:9
    hdr.seen.port = 2, was 0                                                  replicas.p4:58:9
    hdr.seen set valid                                                        replicas.p4:58:9
  deparser D
    emit hdr.ask, 2 bytes                                                     replicas.p4:66:9
    emit hdr.seen, 3 bytes                                                    replicas.p4:67:9
  sent on port 2, 6 bytes
    hdr.seen  added
  out 1 0106050001aa
  out 2 0106050002aa
