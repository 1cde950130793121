"""A network of Mininet whose switches are started as the P4 tutorials start BMv2: h1 - s1 - s2 - h2.

The link between the switches is slow (Mininet's TCLink, htb). Both switches run examples/ecn/ecn.p4, which marks packets
that wait in a long queue. s1 starts with its program, s2 with --no-p4. Prints one line per check, then totals.

Usage: network.py DIRECTORY ECN.p4
"""

import os
import socket
import sys
import time

import grpc
from google.protobuf import text_format
from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Switch
from p4.config.v1 import p4info_pb2
from p4.tmp import p4config_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from scapy.all import ICMP, rdpcap

WORK, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
PCAPS, LOGS = os.path.join(WORK, "pcaps"), os.path.join(WORK, "logs")
# Bandwidth of the slow link, in Mbit/s.
SLOW = 1
START_TIMEOUT = 60

failed = 0
passed = 0


def check(what, holds, details=""):
    global failed, passed
    passed, failed = passed + bool(holds), failed + (not holds)
    print("%s %s%s" % ("ok    " if holds else "FAILED", what, "" if holds else ": %s" % details), flush=True)


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class BehavioralSwitch(Switch):
    """A switch with the command line of the tutorials' P4RuntimeSwitch."""

    def __init__(self, name, device_id, program=None, **options):
        Switch.__init__(self, name, **options)
        self.device_id, self.program = device_id, program
        self.grpc_port, self.thrift_port = 50051 + device_id, 9090 + device_id
        self.log = os.path.join(LOGS, name + ".log")

    def start(self, controllers):
        words = ["simple_switch_grpc"]
        for port, interface in self.intfs.items():
            if not interface.IP():
                words += ["-i", "%d@%s" % (port, interface.name)]
        words += ["--pcap %s" % PCAPS, "--nanolog", "ipc:///tmp/bm-%d-log.ipc" % self.device_id]
        words += ["--device-id", str(self.device_id), self.program or "--no-p4", "--log-console"]
        words += ["--thrift-port %d" % self.thrift_port, "-- --grpc-server-addr 0.0.0.0:%d" % self.grpc_port]
        words += ["--cpu-port 255", "--priority-queues 2"]
        self.cmd(" ".join(words) + " >" + self.log + " 2>&1 &")
        deadline = time.time() + START_TIMEOUT
        while not is_listening(self.grpc_port) and time.time() < deadline:
            time.sleep(0.1)

    def end(self):
        """Ends the switch as the tutorials do, and returns its exit code and its log."""
        self.cmd("kill %simple_switch_grpc")
        code = self.cmd("wait %simple_switch_grpc; echo code $?").split()[-1]
        with open(self.log) as log:
            return code, log.read()


class Controller:
    """A primary of one switch."""

    def __init__(self, switch, p4info):
        self.device_id, self.p4info = switch.device_id, p4info
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(grpc.insecure_channel("127.0.0.1:%d" % switch.grpc_port))
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.low = 1
        self.stream = self.stub.StreamChannel(self.requests(request))
        self.primary = next(self.stream).arbitration.status.code == 0

    @staticmethod
    def requests(first):
        yield first
        # The stream stays open: whoever closes it is the primary no longer.
        while True:
            time.sleep(3600)

    def set_pipeline(self, device_config):
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.election_id.low = 1
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.p4info)
        request.config.p4_device_config = device_config
        self.stub.SetForwardingPipelineConfig(request)

    def insert(self, table, match, action, params):
        """Inserts an entry. An exact value is bytes, a prefix is (bytes, length)."""
        table = next(it for it in self.p4info.tables if it.preamble.name == table)
        action = next(it for it in self.p4info.actions if it.preamble.name == action)
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id)
        request.election_id.low = 1
        update = request.updates.add(type=p4runtime_pb2.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id = table.preamble.id
        field = entry.match.add(field_id=table.match_fields[0].id)
        if isinstance(match, tuple):
            field.lpm.value, field.lpm.prefix_len = match
        else:
            field.exact.value = match
        entry.action.action.action_id = action.preamble.id
        for param, value in zip(action.params, params):
            entry.action.action.params.add(param_id=param.id, value=value)
        self.stub.Write(request)


def number(value):
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def compile_program(host):
    """Compiles with both compilers, and returns the program and its P4Info."""
    host.cmd("mkdir -p %s/build %s %s" % (WORK, PCAPS, LOGS))
    info = os.path.join(WORK, "build", "ecn.p4.p4info.txtpb")
    program = os.path.join(WORK, "build", "ecn.json")
    output = host.cmd("p4c-bm2-ss --p4v 16 --p4runtime-files %s -o %s %s; echo code $?" % (info, program, PROGRAM))
    check("p4c-bm2-ss compiles the program", output.split()[-1:] == ["0"], output)
    output = host.cmd("p4c --target bmv2 --arch v1model --std p4-16 -o %s/p4c %s; echo code $?" % (WORK, PROGRAM))
    check("p4c compiles the program into a directory", os.path.isfile("%s/p4c/ecn.json" % WORK), output)
    with open(info) as text:
        return program, text_format.Parse(text.read(), p4info_pb2.P4Info(), allow_unknown_field=True)


def program_switches(net, program, p4info):
    with open(program) as text:
        json_text = text.read().encode()
    wrapped = p4config_pb2.P4DeviceConfig(reassign=True, device_data=json_text).SerializeToString()
    hosts = {"h1": ("10.0.1.1", "02:00:00:00:01:01"), "h2": ("10.0.2.2", "02:00:00:00:02:02")}
    controllers = []
    # s1 gets the message in which the tutorials' library wraps the JSON, s2 the JSON as it is.
    for name, config, ports in [("s1", wrapped, {"h1": 1, "h2": 2}), ("s2", json_text, {"h1": 2, "h2": 1})]:
        controller = Controller(net.get(name), p4info)
        check("%s has a primary" % name, controller.primary)
        controller.set_pipeline(config)
        for host, port in ports.items():
            address, next_hop = hosts[host]
            controller.insert("EcnIngress.routes", (socket.inet_aton(address), 32), "EcnIngress.forward",
                              [number(port), mac("02:00:00:00:00:fe"), mac(next_hop)])
        controllers.append(controller)
    controllers[0].insert("EcnEgress.marking", number(2), "EcnEgress.mark_from", [number(8)])
    return controllers


def marked(net):
    """Sends ECN-capable datagrams faster than the slow link, and returns the code points that h2 sees."""
    receive = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 4321)); "
               "s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1); s.settimeout(4); seen = set()\n"
               "try:\n  while True: seen.add(s.recvmsg(2000, 64)[1][0][2][0] & 3)\n"
               "except TimeoutError: print('seen', sorted(seen))\n")
    send = ("import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            "s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 1)\n"
            "for i in range(600): s.sendto(bytes(1000), ('10.0.2.2', 4321)); time.sleep(0.002)\n")
    for name, script in [("receive.py", receive), ("send.py", send)]:
        with open(os.path.join(WORK, name), "w") as file:
            file.write(script)
    h1, h2 = net.get("h1"), net.get("h2")
    h2.sendCmd("python3 %s/receive.py" % WORK)
    time.sleep(1)
    h1.cmd("python3 %s/send.py" % WORK)
    return h2.waitOutput()


def main():
    setLogLevel("warning")
    net = Mininet(topo=None, link=TCLink, controller=None)
    h1 = net.addHost("h1", ip="10.0.1.1/24", mac="02:00:00:00:01:01")
    h2 = net.addHost("h2", ip="10.0.2.2/24", mac="02:00:00:00:02:02")
    program, p4info = compile_program(h1)
    s1 = net.addSwitch("s1", cls=BehavioralSwitch, device_id=0, program=program)
    s2 = net.addSwitch("s2", cls=BehavioralSwitch, device_id=1)
    net.addLink(h1, s1, port2=1)
    net.addLink(h2, s2, port2=1)
    net.addLink(s1, s2, port1=2, port2=2, bw=SLOW)
    net.start()
    try:
        for host, gateway in [(h1, "10.0.1.254"), (h2, "10.0.2.254")]:
            interface = host.defaultIntf().name
            host.cmd("ip route add default via %s dev %s" % (gateway, interface))
            host.cmd("ip neigh replace %s lladdr 02:00:00:00:00:fe dev %s nud permanent" % (gateway, interface))
        for switch in [s1, s2]:
            check("%s serves P4Runtime on the port that it is told" % switch, is_listening(switch.grpc_port))
        controllers = program_switches(net, program, p4info)
        pings = h1.cmd("ping -c 5 -i 0.3 10.0.2.2")
        check("h1 reaches h2", "5 received" in pings, pings)
        seen = marked(net)
        check("the queue at the slow link marks packets", "seen [1, 3]" in seen, seen)
        for switch, interface in [(s1, "s1-eth1_in"), (s1, "s1-eth2_out"), (s2, "s2-eth2_in"), (s2, "s2-eth1_out")]:
            path = os.path.join(PCAPS, interface + ".pcap")
            frames = rdpcap(path) if os.path.isfile(path) else []
            check("%s.pcap has the pings" % interface, sum(ICMP in it for it in frames) >= 5, len(frames))
        for switch in [s1, s2]:
            code, log = switch.end()
            check("%s ends when it is told" % switch, code == "0", code)
            lines = ["Adding interface %s-eth1 as port 1" % switch, "Server listening on 0.0.0.0:%d" % switch.grpc_port]
            check("its log has the lines for which scripts wait", all(line in log for line in lines), log)
            check("its log names ignored options once", log.count("--thrift-port") == 1, log)
    finally:
        net.stop()
    print("%d passed, %d failed" % (passed, failed), flush=True)
    # Threads of open streams would keep the process.
    os._exit(1 if failed or not passed else 0)


main()
