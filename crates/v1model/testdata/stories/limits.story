# A parser that turns in circles is stopped.
send 0 01 00

# Three items fit, four do not.
send 0 02 00 02 04 07 ff
  out 1 0200020407ff
send 0 02 00 02 04 06 08 01

# A variable header of three bytes, and one for which the packet is too short: that one leaves by port 3.
send 0 03 03 aabbcc dd
  out 1 0303aabbccdd
send 0 03 ff aabbcc dd
  out 3 03ffaabbccdd

# The assertion holds, and fails.
send 0 04 02
  out 1 0402
send 0 04 03

# Ports that are there, that are not, that drop.
send 0 05 02
  out 2 0502
send 0 05 09
send 9 05 02

summary
  port  rx packets  rx bytes  tx packets  tx bytes
     0           9        35           0         0
     1           0         0           3        14
     2           0         0           1         2
     3           0         0           1         6
  1 dropped on receipt: the switch has no such port
  1 dropped in ingress by the program at limits.p4:69:13 (I)
  1 dropped in ingress: an assertion of the program failed at limits.p4:64:13 (I)
  1 dropped on sending: the switch has no such port
  1 dropped for running too long at limits.p4:43:20 (P)
  parser.errors  2
trace 0 01 00
  0.000000s  port 0 received 2 bytes
  parser P
    state start
      extract hdr.ask, 2 bytes at byte 0                                      limits.p4:32:9
        what  1
        arg   0
      select hdr.ask.what = 1 -> turn                                         limits.p4:33:20
    state turn
      meta.turns = 1, was 0                                                   limits.p4:42:9
    state turn
      meta.turns = 2, was 1                                                   limits.p4:42:9
    state turn
      meta.turns = 3, was 2                                                   limits.p4:42:9
    state turn
      meta.turns = 4, was 3                                                   limits.p4:42:9
    state turn
      meta.turns = 5, was 4                                                   limits.p4:42:9
    state turn
      meta.turns = 6, was 5                                                   limits.p4:42:9
    state turn
      meta.turns = 7, was 6                                                   limits.p4:42:9
    state turn
      meta.turns = 8, was 7                                                   limits.p4:42:9
    state turn
      meta.turns = 9, was 8                                                   limits.p4:42:9
    state turn
      meta.turns = 10, was 9                                                  limits.p4:42:9
    state turn
      meta.turns = 11, was 10                                                 limits.p4:42:9
    state turn
      meta.turns = 12, was 11                                                 limits.p4:42:9
    state turn
      meta.turns = 13, was 12                                                 limits.p4:42:9
    state turn
    ... 9960 more steps ...
      meta.turns = 130, was 129                                               limits.p4:42:9
    state turn
      meta.turns = 131, was 130                                               limits.p4:42:9
    state turn
      meta.turns = 132, was 131                                               limits.p4:42:9
    state turn
      meta.turns = 133, was 132                                               limits.p4:42:9
    state turn
      meta.turns = 134, was 133                                               limits.p4:42:9
    state turn
  dropped for running too long at limits.p4:43:20 (P)
  ... trace truncated
