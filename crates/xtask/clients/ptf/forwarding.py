"""ptf runs packets through a switch, whose entries are written with the `p4runtime` package.

Started by `ptf --test-dir`, with `--test-params` `address`, `p4info` and `program`.
"""

import queue
import threading

import grpc
import ptf
import ptf.testutils as testutils
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from ptf.base_tests import BaseTest


class SwitchTest(BaseTest):
    """A switch with the program, and this client as its primary."""

    election = 100

    def setUp(self):
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        params = testutils.test_params_get()
        with open(params["p4info"]) as file:
            self.p4info = text_format.Parse(file.read(), p4info_pb2.P4Info())
        self.channel = grpc.insecure_channel(params["address"])
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests = queue.Queue()
        self.answers = queue.Queue()
        stream = self.stub.StreamChannel(iter(self.requests.get, None))
        threading.Thread(target=self.listen, args=(stream,), daemon=True).start()
        SwitchTest.election += 1
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.low = SwitchTest.election
        self.requests.put(request)
        assert self.answers.get(timeout=60).arbitration.status.code == 0
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1)
        request.election_id.low = SwitchTest.election
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.p4info)
        with open(params["program"], "rb") as file:
            request.config.p4_device_config = file.read()
        self.stub.SetForwardingPipelineConfig(request)
        self.dataplane.flush()

    def listen(self, stream):
        try:
            for answer in stream:
                self.answers.put(answer)
        except grpc.RpcError:
            pass

    def tearDown(self):
        self.requests.put(None)
        self.channel.close()
        super().tearDown()

    def id(self, name=None):
        # unittest asks a test for its id, too.
        if name is None:
            return super().id()
        for things in (self.p4info.tables, self.p4info.actions):
            for thing in things:
                if name in (thing.preamble.name, thing.preamble.alias):
                    return thing.preamble.id
        raise KeyError(name)

    def insert(self, table, value, action, *arguments):
        request = p4runtime_pb2.WriteRequest(device_id=1)
        request.election_id.low = SwitchTest.election
        update = request.updates.add(type=p4runtime_pb2.Update.INSERT)
        entry = update.entity.table_entry
        entry.table_id = self.id(table)
        entry.match.add(field_id=1).exact.value = value
        entry.action.action.action_id = self.id(action)
        for number, argument in enumerate(arguments, 1):
            entry.action.action.params.add(param_id=number, value=argument)
        self.stub.Write(request)

    def group(self, number, ports):
        request = p4runtime_pb2.WriteRequest(device_id=1)
        request.election_id.low = SwitchTest.election
        update = request.updates.add(type=p4runtime_pb2.Update.INSERT)
        group = update.entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = number
        for instance, port in enumerate(ports):
            group.replicas.add(port=bytes([port]), instance=instance)
        self.stub.Write(request)


# The program's header is the first twelve bytes, which are the addresses of an Ethernet frame.
PACKET = testutils.simple_udp_packet(eth_dst="00:01:00:00:0a:00", eth_src="00:01:00:00:00:00")


class Forwards(SwitchTest):
    """A packet leaves where its entry says, and nowhere else."""

    def runTest(self):
        self.insert("exact_t", b"\x01", "forward", b"\x02")
        testutils.send_packet(self, 1, PACKET)
        testutils.verify_packets(self, PACKET, ports=[2])


class Drops(SwitchTest):
    """Without an entry nothing leaves."""

    def runTest(self):
        testutils.send_packet(self, 1, PACKET)
        testutils.verify_no_other_packets(self)


class Rewrites(SwitchTest):
    """An action changes fields."""

    def runTest(self):
        self.insert("exact_t", b"\x01", "pair", b"\xbe\xef", b"\x07")
        expected = bytearray(bytes(PACKET))
        expected[2:4], expected[9] = b"\xbe\xef", 7
        request = p4runtime_pb2.WriteRequest(device_id=1)
        request.election_id.low = SwitchTest.election
        update = request.updates.add(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.table_entry
        entry.table_id = self.id("keyless_t")
        entry.is_default_action = True
        entry.action.action.action_id = self.id("forward")
        entry.action.action.params.add(param_id=1, value=b"\x03")
        self.stub.Write(request)
        testutils.send_packet(self, 1, PACKET)
        testutils.verify_packets(self, bytes(expected), ports=[3])


class Replicates(SwitchTest):
    """A packet of a multicast group leaves at each of its ports."""

    def runTest(self):
        self.group(7, [2, 3, 4])
        self.insert("exact_t", b"\x01", "replicate", b"\x07")
        testutils.send_packet(self, 1, PACKET)
        testutils.verify_packets(self, PACKET, ports=[2, 3, 4])


class PacketIn(SwitchTest):
    """A packet to the controller arrives with its metadata."""

    def runTest(self):
        self.insert("exact_t", b"\x01", "to_cpu", b"\x05")
        testutils.send_packet(self, 3, PACKET)
        answer = self.answers.get(timeout=60)
        assert answer.packet.payload == bytes(PACKET)
        assert [field.value for field in answer.packet.metadata] == [b"\x03", b"\x05"]


class PacketOut(SwitchTest):
    """A packet from the controller leaves."""

    def runTest(self):
        request = p4runtime_pb2.StreamMessageRequest()
        request.packet.payload = bytes(PACKET)
        request.packet.metadata.add(metadata_id=1, value=b"\x04")
        request.packet.metadata.add(metadata_id=2, value=b"\x00")
        self.requests.put(request)
        testutils.verify_packets(self, PACKET, ports=[4])
