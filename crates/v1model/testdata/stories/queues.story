# Reports: in_us enqueued_us out_us waited_us enq_depth deq_depth.
# Without a rate nothing waits.
at 10
send 0 02 00

# A packet every 100 microseconds.
rate 1 10000
depth 1 2
send 0 01 00
send 0 01 00
send 0 01 00
# Full.
send 0 01 00
# A higher priority overtakes.
at 60
send 0 01 07
at 110
at 1000
summary
