# An unknown address is learned, a known one is not.
send 0 000000000002 000000000077 0800 aa
  out 1 0000000000020000000000770800aa
  digest learn_t srcAddr=77 port=0
send 0 000000000002 000000000001 0800 aa
  out 1 0000000000020000000000010800aa

# The third packet of a port goes to the control plane, with a header in front.
send 0 000000000002 000000000001 0800 aa
  packet-in 00000000000000020000000000010800aa

# The control plane sends a packet out.
send 510 0002 000000000002 000000000001 0800 bb
  out 2 0000000000020000000000010800bb

summary
  port  rx packets  rx bytes  tx packets  tx bytes
     0           3        45           0         0
     1           0         0           2        30
     2           0         0           1        15
   510           1        17           1        17
  notification.digests     1
  notification.packets-in  1
trace 1 000000000002 000000000077 0800 aa
  0.000000s  port 1 received 15 bytes
  parser P
    state start
      select standard_metadata.ingress_port = 1 -> parse_ethernet             learn.p4:41:20
    state parse_ethernet
      extract hdr.ethernet, 14 bytes at byte 0                                learn.p4:51:9
        dstAddr    00:00:00:00:00:02
        srcAddr    00:00:00:00:00:77
        etherType  0x0800
  ingress I
    count I.received[1]                                                       learn.p4:74:9
    if valid(hdr.packet_out): no                                              learn.p4:75:9
    table I.known                                                             learn.p4:80:9
      key     hdr.ethernet.srcAddr = 00:00:00:00:00:77
      miss
      default I.learn()
        request: digest learn_t(srcAddr=00:00:00:00:00:77, port=1)            learn.p4:63:9
    read I.seen[1]: 0                                                         learn.p4:82:13
    meta.count = 0, as before                                                 learn.p4:82:13
    meta.count = 1, was 0                                                     learn.p4:83:13
    write I.seen[1]: 1                                                        learn.p4:84:13
    if meta.count == 0x3: no                                                  learn.p4:86:9
    standard_metadata.egress_spec = 0, as before                              learn.p4:93:13
    note: 1 packets from port 1                                               learn.p4:95:9
  egress E, port 0
    (no steps)
  deparser D
    emit hdr.ethernet, 14 bytes                                               learn.p4:106:9
  sent on port 0, 15 bytes
    unchanged
  out 0 0000000000020000000000770800aa
  digest learn_t srcAddr=77 port=1
