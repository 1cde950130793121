"""Makes and judges RoCEv2 frames with scapy.

    frames.py judge          reads frames from standard input, a line of hexadecimal digits each, and prints what scapy
                             finds in each: fields, and whether scapy would send the same bytes
    frames.py make N SEED    prints N frames of scapy's, with their fields
"""

import json
import random
import sys

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

# Bytes of the headers after BTH, by opcode of the reliable connection.
EXTENSION = {0x03: 4, 0x05: 4, 0x06: 16, 0x09: 4, 0x0A: 16, 0x0B: 20, 0x0C: 16, 0x0D: 4, 0x0F: 4, 0x10: 4, 0x11: 4,
             0x12: 12, 0x13: 28, 0x14: 28}


def fields(frame):
    bth = frame[BTH]
    found = {name: getattr(bth, name) for name in ("opcode", "padcount", "pkey", "dqpn", "psn")}
    found.update(solicited=bool(bth.solicited), ackreq=bool(bth.ackreq), icrc=bth.icrc)
    if AETH in frame:
        found.update(syndrome=frame[AETH].syndrome, msn=frame[AETH].msn)
    return found


def judge(line):
    data = bytes.fromhex(line)
    frame = Ether(data)
    if BTH not in frame:
        return {"error": "scapy finds no BTH"}
    found = fields(frame)
    frame[BTH].icrc = None
    found["same"] = bytes(frame) == data
    return found


def make(rng):
    number = rng.getrandbits
    if number(1):
        ip = IP(src="10.%d.0.1" % number(8), dst="10.0.%d.2" % number(8), tos=number(8), ttl=1 + number(7), id=number(16),
                flags=number(1) * 2)
    else:
        ip = IPv6(src="fd00::%x" % number(16), dst="fd01::%x" % number(16), tc=number(8), fl=number(20), hlim=1 + number(7))
    opcode = number(8) % 0x15
    pad = number(2)
    size = 4 * (number(8) % 64) + 4
    payload = rng.randbytes(EXTENSION.get(opcode, 0)) + rng.randbytes(size)
    bth = BTH(opcode=opcode, solicited=number(1), padcount=pad, pkey=number(16), dqpn=number(24), ackreq=number(1),
              psn=number(24), fecn=number(1), becn=number(1))
    # The payload as bytes, also where scapy has a layer for it.
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ip / UDP(sport=49152, dport=4791) / bth
    data = bytes(frame / Raw(payload))
    return {"frame": data.hex(), **fields(Ether(data))}


def main():
    if sys.argv[1] == "judge":
        for line in sys.stdin:
            print(json.dumps(judge(line.strip())))
    else:
        rng = random.Random(int(sys.argv[3]))
        for _ in range(int(sys.argv[2])):
            print(json.dumps(make(rng)))


main()
