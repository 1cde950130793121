"""p4runtime-shell drives a switch: shell.py ADDRESS P4INFO PROGRAM PORT=DEVICE..."""

import sys
import time

import grpc
import p4runtime_sh.shell as sh
from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2
from p4runtime_sh.global_options import Options, global_options

from checks import Ports, check, equal, finish, frame, refused

address, p4info, program, *devices = sys.argv[1:]
ports = Ports({int(number): name for number, name in (device.split("=") for device in devices)})

# Every value that is set would be printed.
global_options.set_option(Options.verbose, False)
sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, program))


def read(entity):
    return list(entity.read())


def row(table, value, action="I.forward", **arguments):
    entry = sh.TableEntry(table)(action=action)
    entry.match["hdr.data.a"] = str(value)
    for name, argument in arguments.items():
        entry.action[name] = argument
    return entry


with check("the version of the API"):
    sh.APIVersion()

with check("exact: insert, read, packet, modify, delete"):
    entry = row("I.exact_t", 1, port="2")
    entry.insert()
    equal(len(read(sh.TableEntry("I.exact_t"))), 1)
    ports.send(1, frame(1))
    equal(ports.received(2, frame(1)), True)
    row("I.exact_t", 1, port="3").modify()
    ports.send(1, frame(1))
    equal(ports.received(3, frame(1)), True)
    entry.delete()
    equal(read(sh.TableEntry("I.exact_t")), [])

with check("refusals have a code and say why"):
    entry = row("I.exact_t", 1, port="2")
    refused("NOT_FOUND", entry.delete)
    entry.insert()
    refused("ALREADY_EXISTS", entry.insert)
    entry.delete()

with check("lpm"):
    entry = sh.TableEntry("I.lpm_t")(action="I.forward")
    entry.match["hdr.data.c"] = "10.0.0.0/8"
    entry.action["port"] = "2"
    entry.insert()
    ports.send(1, frame(0, c=0x0A010203))
    equal(ports.received(2, frame(0, c=0x0A010203)), True)
    entry.delete()

with check("ternary, with priorities"):
    for priority, mask, port in ((5, "0x1200&&&0xff00", "2"), (6, "0x1000&&&0xf000", "3")):
        entry = sh.TableEntry("I.ternary_t")(action="I.forward", priority=priority)
        entry.match["hdr.data.b"] = mask
        entry.action["port"] = port
        entry.insert()
    ports.send(1, frame(0, b=0x1234))
    equal(ports.received(3, frame(0, b=0x1234)), True)
    for found in read(sh.TableEntry("I.ternary_t")):
        found.delete()

with check("range and optional"):
    entry = sh.TableEntry("I.range_t")(action="I.forward", priority=1)
    entry.match["hdr.data.b"] = "3..9"
    entry.action["port"] = "2"
    entry.insert()
    ports.send(1, frame(0, b=5))
    equal(ports.received(2, frame(0, b=5)), True)
    entry.delete()
    entry = sh.TableEntry("I.optional_t")(action="I.forward", priority=1)
    entry.match["hdr.data.d"] = "7"
    entry.action["port"] = "3"
    entry.insert()
    equal(len(read(sh.TableEntry("I.optional_t"))), 1)
    entry.delete()

with check("the default action: change, read, reset"):
    entry = sh.TableEntry("I.exact_t")(action="I.forward", is_default=True)
    entry.action["port"] = "2"
    entry.modify()
    ports.send(1, frame(77))
    equal(ports.received(2, frame(77)), True)
    entry = sh.TableEntry("I.exact_t")(is_default=True)
    entry.modify()
    equal(len(read(entry)), 1)

with check("constant entries are read and not changed"):
    found = read(sh.TableEntry("I.const_t"))
    equal(len(found), 3)
    refused("PERMISSION_DENIED", found[0].delete)

with check("metadata"):
    entry = row("I.exact_t", 1, port="2")
    entry.metadata = b"cookie"
    entry.insert()
    equal(read(sh.TableEntry("I.exact_t"))[0].metadata, b"cookie")
    entry.delete()

with check("counters: write, read, count"):
    entry = sh.CounterEntry("I.counted")
    entry.index = 1
    entry.packet_count = 10
    entry.byte_count = 100
    entry.modify()
    ports.send(1, frame(1))
    found = read(sh.CounterEntry("I.counted"))
    equal(len(found), 4)

with check("direct counters"):
    entry = row("I.counted_t", 1, action="I.count_hit")
    entry.counter_data.packet_count = 5
    entry.insert()
    direct = sh.DirectCounterEntry("I.direct_counted")
    direct.table_entry.match["hdr.data.a"] = "1"
    equal(read(direct)[0].packet_count, 5)
    direct.packet_count = 7
    direct.modify()
    entry.counter_data
    equal(read(entry)[0].counter_data.packet_count, 7)
    entry.delete()

with check("meters"):
    entry = sh.MeterEntry("I.metered")
    entry.index = 2
    entry.cir, entry.cburst, entry.pir, entry.pburst = 1, 2, 3, 4
    entry.modify()
    equal(read(entry)[0].pir, 3)

with check("direct meters"):
    entry = row("I.metered_t", 1, action="I.meter_hit")
    entry.insert()
    direct = sh.DirectMeterEntry("I.direct_metered")
    direct.table_entry.match["hdr.data.a"] = "1"
    direct.cir, direct.cburst, direct.pir, direct.pburst = 1, 2, 3, 4
    direct.modify()
    equal(read(direct)[0].pburst, 4)
    entry.delete()

with check("members and groups"):
    for number, port in ((1, "2"), (2, "3")):
        member = sh.ActionProfileMember("I.selector")(member_id=number, action="I.forward")
        member.action["port"] = port
        member.insert()
    group = sh.ActionProfileGroup("I.selector")(group_id=9)
    group.add(1, 1).add(2, 1)
    group.insert()
    entry = sh.TableEntry("I.group_t")(group_id=9)
    entry.match["hdr.data.a"] = "1"
    entry.insert()
    ports.send(1, frame(1, c=5))
    equal(ports.received_at_any([2, 3], frame(1, c=5)), True)
    refused("FAILED_PRECONDITION", group.delete)
    entry.delete()
    group.delete()
    for found in read(sh.ActionProfileMember("I.selector")):
        found.delete()
    equal(read(sh.ActionProfileMember("I.selector")), [])

with check("one-shot sets"):
    oneshot = sh.Oneshot("I.group_t")
    for port in ("2", "3"):
        action = sh.Action("I.forward")
        action["port"] = port
        oneshot.add(action, 1)
    entry = sh.TableEntry("I.group_t")
    entry.match["hdr.data.a"] = "1"
    entry.oneshot = oneshot
    entry.insert()
    equal(str(read(sh.TableEntry("I.group_t"))[0].oneshot), str(oneshot))
    entry.delete()

with check("multicast groups"):
    group = sh.MulticastGroupEntry(7)
    group.add(2, 1).add(3, 1)
    group.insert()
    entry = row("I.exact_t", 1, action="I.replicate", group="7")
    entry.insert()
    ports.send(1, frame(1))
    equal((ports.received(2, frame(1)), ports.received(3, frame(1))), (True, True))
    equal(len(read(sh.MulticastGroupEntry())), 1)
    entry.delete()
    group.delete()

with check("clone sessions"):
    session = sh.CloneSessionEntry(5)
    session.add(4, 1)
    session.packet_length_bytes = 32
    session.insert()
    equal(read(sh.CloneSessionEntry(5))[0].packet_length_bytes, 32)
    entry = row("I.exact_t", 1, action="I.mirror")
    entry.insert()
    ports.send(1, frame(1))
    equal(ports.received(4, frame(1)[:32]), True)
    entry.delete()
    session.delete()

with check("idle timeouts are set and read"):
    entry = row("I.idle_t", 1, action="NoAction")
    entry.idle_timeout_ns = 10**12
    entry.insert()
    found = read(sh.TableEntry("I.idle_t"))[0]
    equal(found.idle_timeout_ns, 10**12)
    entry.delete()

with check("digests"):
    digest = sh.DigestEntry("learned_t")
    digest.max_list_size = 1
    digest.insert()
    entry = row("I.exact_t", 1, action="I.learn")
    entry.insert()
    ports.send(2, frame(1))
    message = sh.client.get_stream_packet("digest", timeout=60)
    equal(message is not None and len(message.digest.data), 1)
    entry.delete()
    digest.delete()

packets = sh.PacketIn()

with check("packets from the switch"):
    entry = row("I.exact_t", 1, action="I.to_cpu", reason="5")
    entry.insert()
    ports.send(3, frame(1))
    found = []
    end = time.monotonic() + 60
    while not found and time.monotonic() < end:
        found += packets.sniff(timeout=2)
    equal(len(found), 1)
    equal(found[0].packet.payload, frame(1))
    equal([field.value for field in found[0].packet.metadata], [b"\x03", b"\x05"])
    entry.delete()

with check("packets to the switch"):
    packet = sh.PacketOut(frame(9), egress_port="4")
    packet.send()
    equal(ports.received(4, frame(9)), True)



def failure(call):
    """The error of a call: its code, its message, and the errors in its details."""
    try:
        call()
    except grpc.RpcError as error:
        status = status_pb2.Status()
        for name, value in error.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                status.ParseFromString(value)
        errors = []
        for detail in status.details:
            one = p4runtime_pb2.Error()
            detail.Unpack(one)
            errors.append(one)
        return error.code(), error.details(), errors
    raise AssertionError("the call is not refused")


def write_request(atomicity, updates):
    """A write of the primary: a request to fill with these types and entities."""
    request = p4runtime_pb2.WriteRequest(device_id=1, atomicity=atomicity)
    request.election_id.low = 1
    for kind, entity in updates:
        update = request.updates.add(type=kind)
        update.entity.CopyFrom(entity)
    return request


def verify_request(text):
    """A request to verify a program."""
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
        device_id=1, action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY
    )
    request.election_id.low = 1
    request.config.p4info.SetInParent()
    request.config.p4_device_config = text.encode()
    return request


stub = sh.client.stub

with check("default settings of grpcio show the errors of a program, however many there are"):
    with open(program, encoding="utf-8") as source:
        text = source.read()
    mistakes = "\n".join(f"meta.wrong_{number} = {number};" for number in range(40))
    wrong = text.replace("meta.special = 1;", mistakes)
    code, message, errors = failure(lambda: stub.SetForwardingPipelineConfig(verify_request(wrong)))
    equal((code, "wrong_0" in message, len(errors)), (grpc.StatusCode.INVALID_ARGUMENT, True, 1))
    code, message, _ = failure(lambda: stub.SetForwardingPipelineConfig(verify_request("#if 1\n" * 100_000)))
    equal((code, "has no `#endif`" in message), (grpc.StatusCode.INVALID_ARGUMENT, True))

with check("the cause of a failed batch arrives, wherever it is in the batch"):
    bad = p4runtime_pb2.Entity()
    bad.table_entry.table_id = 1
    good = p4runtime_pb2.Entity()
    good.counter_entry.counter_id = next(it.preamble.id for it in sh.context.p4info.counters)
    for atomicity in p4runtime_pb2.WriteRequest.Atomicity.values():
        for at in (0, 90, 91, 299):
            updates = [(p4runtime_pb2.Update.MODIFY, bad if number == at else good) for number in range(300)]
            request = write_request(atomicity, updates)
            code, message, errors = failure(lambda: stub.Write(request))
            equal((code, len(errors)), (grpc.StatusCode.UNKNOWN, 1))
            equal((errors[0].canonical_code, errors[0].message.startswith(f"[{at}]: ")), (5, True))

with check("everything that is read can be written back in one batch of each atomicity"):
    row("I.exact_t", 1, port="2").insert()
    request = p4runtime_pb2.ReadRequest(device_id=1)
    for kind in ("meter_entry", "counter_entry", "register_entry", "value_set_entry", "digest_entry"):
        getattr(request.entities.add(), kind).SetInParent()
    for kind in ("direct_meter_entry", "direct_counter_entry"):
        getattr(request.entities.add(), kind).table_entry.SetInParent()
    request.entities.add().table_entry.SetInParent()
    found = [entity for response in stub.Read(request) for entity in response.entities]
    # The specification forbids writes of constant entries (9.1.4).
    updates = [(p4runtime_pb2.Update.MODIFY, entity) for entity in found if not entity.table_entry.is_const]
    equal(len(updates) > 15, True)
    for atomicity in p4runtime_pb2.WriteRequest.Atomicity.values():
        stub.Write(write_request(atomicity, updates))
    row("I.exact_t", 1, port="2").delete()

finish()
