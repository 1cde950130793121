# Reports: in_us enqueued_us out_us waited_us enq_depth deq_depth.
# Without a rate nothing waits.
at 10
send 0 02 00
  out 2 02000000000a0000000a0000000a000000000000

# A packet every 100 microseconds.
rate 1 10000
depth 1 2
send 0 01 00
  out 1 01000000000a0000000a0000000a000000000000
send 0 01 00
send 0 01 00
# Full.
send 0 01 00
# A higher priority overtakes.
at 60
send 0 01 07
at 110
  out 1 01070000003c0000003c0000006e000000320000
at 1000
  out 1 01000000000a0000000a000000d2000000c80001
  out 1 01000000000a0000000a000001360000012c0100
summary
  port  rx packets  rx bytes  tx packets  tx bytes
     0           6        12           0         0
     1           0         0           4        80
     2           0         0           1        20
  1 dropped after ingress: the egress queue is full
