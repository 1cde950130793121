# A packet is routed: addresses, TTL and checksum change.
send 3 000000000101 000000000202 0800 450000180001000040115dc4 0a090807 0a000101 01020304
  out 1 080000000100000000000101080045000018000100003f115ec40a0908070a00010101020304

# Dropped by the table's default, by an entry, for its TTL, for its checksum; the summary tells them apart.
send 3 000000000101 000000000202 0800 4500001800010000401157b7 0a090807 0a070707 01020304
send 3 000000000101 000000000202 0800 4500001800010000401157b6 0a090807 0a070708 01020304
send 3 000000000101 000000000202 0800 450000180001000040115cc3 0a090807 0a000202 01020304
send 3 000000000101 000000000202 0800 450000180001000001119cc4 0a090807 0a000101 01020304
send 3 000000000101 000000000202 0800 450000180001000040115dc5 0a090807 0a000101 01020304

# Egress sends nothing back where it came from.
send 1 000000000101 000000000202 0800 450000180001000040115dc4 0a090807 0a000101 01020304

# What is not IPv4 leaves by port 3; what ends within the IPv4 header is dropped.
send 0 000000000101 000000000202 86dd 6000
  out 3 00000000010100000000020286dd6000
send 0 000000000101 000000000202 0800 4500

# Without its network, a port is not a way out.
down 1
send 3 000000000101 000000000202 0800 450000180001000040115dbc 0a090807 0a000109 01020304
up 1

summary
  port  rx packets  rx bytes  tx packets  tx bytes
     0           2        32           0         0
     1           1        38           1        38
     3           7       266           1        16
  3 dropped in ingress by the program at router.p4:61:9 (MyIngress.drop)
  2 dropped in ingress by the program at router.p4:81:13 (MyIngress)
  1 dropped in ingress by the program at router.p4:84:17 (MyIngress)
  1 dropped in egress by the program at router.p4:98:13 (MyEgress)
  1 dropped on sending: the port is down
  parser.errors  1

trace 3 000000000101 000000000202 0800 450000180001000040115cc4 0a090807 0a000201 01020304
  0.000000s  port 3 received 38 bytes
  parser MyParser
    state start
      extract hdr.ethernet, 14 bytes at byte 0                                router.p4:37:9
        dstAddr    00:00:00:00:01:01
        srcAddr    00:00:00:00:02:02
        etherType  0x0800
      select hdr.ethernet.etherType = 0x0800 -> parse_ipv4                    router.p4:38:20
    state parse_ipv4
      extract hdr.ipv4, 20 bytes at byte 14                                   router.p4:44:9
        version         4
        ihl             5
        diffserv        0
        totalLen        24
        identification  1
        flags           0
        fragOffset      0
        ttl             64
        protocol        17
        hdrChecksum     0x5cc4
        srcAddr         10.9.8.7
        dstAddr         10.0.2.1
  verify_checksum MyVerifyChecksum
    if valid(hdr.ipv4): yes                                                   router.p4:51:9
    csum16 of 18 bytes: 0x5cc4                                                router.p4:51:9
    if 0x5cc4 != hdr.ipv4.hdrChecksum: no                                     router.p4:51:9
  ingress MyIngress
    if (standard_metadata.parser_error != 0x0) | standard_metadata.checksum_error: no  router.p4:80:9
    if valid(hdr.ipv4): yes                                                   router.p4:82:16
    if hdr.ipv4.ttl <= 0x1: no                                                router.p4:83:13
    table MyIngress.ipv4_lpm                                                  router.p4:86:17
      key     hdr.ipv4.dstAddr = 10.0.2.1
      hit     hdr.ipv4.dstAddr = 10.0.2.0/24
      action  MyIngress.forward(dstAddr = 08:00:00:00:02:00, port = 2)
        standard_metadata.egress_spec = 2, was 0                              router.p4:64:9
        hdr.ethernet.srcAddr = 00:00:00:00:01:01, was 00:00:00:00:02:02       router.p4:65:9
        hdr.ethernet.dstAddr = 08:00:00:00:02:00, was 00:00:00:00:01:01       router.p4:66:9
        hdr.ipv4.ttl = 63, was 64                                             router.p4:67:9
  egress MyEgress, port 2
    if standard_metadata.egress_port == standard_metadata.ingress_port: no    router.p4:97:9
  compute_checksum MyComputeChecksum
    if valid(hdr.ipv4): yes                                                   router.p4:105:9
    csum16 of 18 bytes: 0x5dc4                                                router.p4:105:9
    hdr.ipv4.hdrChecksum = 0x5dc4, was 0x5cc4                                 router.p4:105:9
  deparser MyDeparser
    emit hdr.ethernet, 14 bytes                                               router.p4:115:9
    emit hdr.ipv4, 20 bytes                                                   router.p4:116:9
  sent on port 2, 38 bytes
    hdr.ethernet.dstAddr  00:00:00:00:01:01 -> 08:00:00:00:02:00
    hdr.ethernet.srcAddr  00:00:00:00:02:02 -> 00:00:00:00:01:01
    hdr.ipv4.ttl          64 -> 63
    hdr.ipv4.hdrChecksum  0x5cc4 -> 0x5dc4
  out 2 080000000200000000000101080045000018000100003f115dc40a0908070a00020101020304
trace 3 000000000101 000000000202 0800 450000180001000040115cc3 0a090807 0a000202 01020304
  0.000000s  port 3 received 38 bytes
  parser MyParser
    state start
      extract hdr.ethernet, 14 bytes at byte 0                                router.p4:37:9
        dstAddr    00:00:00:00:01:01
        srcAddr    00:00:00:00:02:02
        etherType  0x0800
      select hdr.ethernet.etherType = 0x0800 -> parse_ipv4                    router.p4:38:20
    state parse_ipv4
      extract hdr.ipv4, 20 bytes at byte 14                                   router.p4:44:9
        version         4
        ihl             5
        diffserv        0
        totalLen        24
        identification  1
        flags           0
        fragOffset      0
        ttl             64
        protocol        17
        hdrChecksum     0x5cc3
        srcAddr         10.9.8.7
        dstAddr         10.0.2.2
  verify_checksum MyVerifyChecksum
    if valid(hdr.ipv4): yes                                                   router.p4:51:9
    csum16 of 18 bytes: 0x5cc3                                                router.p4:51:9
    if 0x5cc3 != hdr.ipv4.hdrChecksum: no                                     router.p4:51:9
  ingress MyIngress
    if (standard_metadata.parser_error != 0x0) | standard_metadata.checksum_error: no  router.p4:80:9
    if valid(hdr.ipv4): yes                                                   router.p4:82:16
    if hdr.ipv4.ttl <= 0x1: no                                                router.p4:83:13
    table MyIngress.ipv4_lpm                                                  router.p4:86:17
      key     hdr.ipv4.dstAddr = 10.0.2.2
      hit     hdr.ipv4.dstAddr = 10.0.2.2/32
      action  MyIngress.drop()
        standard_metadata.egress_spec = 511, was 0                            router.p4:61:9
        standard_metadata.mcast_grp = 0, as before                            router.p4:61:9
  dropped in ingress by the program at router.p4:61:9 (MyIngress.drop)
