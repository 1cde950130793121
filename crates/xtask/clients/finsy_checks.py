"""finsy drives a switch: finsy_checks.py ADDRESS P4INFO PROGRAM PORT=DEVICE..."""

import asyncio
import sys
import time
from pathlib import Path

import finsy as fy
from finsy.p4entity import P4ValueSetMember

from checks import Ports, check, equal, finish, frame

address, p4info, program, *devices = sys.argv[1:]
ports = Ports({int(number): name for number, name in (device.split("=") for device in devices)})


async def all_of(switch, entity):
    return [found async for found in switch.read(entity)]


async def becomes(switch, entity, value, expected):
    """Fails unless the values of the found entities are these within 60 s."""
    end = time.monotonic() + 60
    while True:
        values = [value(found) for found in await all_of(switch, entity)]
        if values == expected or time.monotonic() > end:
            return equal(values, expected)
        await asyncio.sleep(0.1)


async def refused(code, act):
    """Fails unless `act` is refused with this code."""
    try:
        await act
    except fy.P4ClientError as error:
        codes = [detail.canonical_code.name for detail in error.details.values()] or [error.code.name]
        equal(codes, [code])
    else:
        raise AssertionError(f"not refused with {code}")


def soon(number, expected):
    """Whether a frame leaves, without holding the client up."""
    return asyncio.to_thread(ports.received, number, expected)


def row(table, value, action):
    return fy.P4TableEntry(table, match=fy.Match(a=value), action=action)


async def run(switch):
    with check("this client is the primary, of a switch of version 1.5"):
        equal(switch.is_primary, True)
        equal(str(switch.p4runtime_version), "1.5.0")

    # delete_all() would ask for constant entries of other tables, too, which no server may delete.
    with check("a switch is emptied, but for constant entries"):
        entries = await all_of(switch, fy.P4TableEntry())
        await switch.delete([entry for entry in entries if not entry.is_const])
        equal([entry.is_const for entry in await all_of(switch, fy.P4TableEntry())].count(False), 0)

    with check("exact: insert, read back, packet, modify, delete"):
        entry = row("exact_t", 1, fy.Action("forward", port=2))
        await switch.insert([entry])
        equal(await all_of(switch, fy.P4TableEntry("exact_t")), [entry])
        ports.send(1, frame(1))
        equal(await soon(2, frame(1)), True)
        await switch.modify([row("exact_t", 1, fy.Action("forward", port=3))])
        ports.send(1, frame(1))
        equal(await soon(3, frame(1)), True)
        await switch.delete([entry])
        equal(await all_of(switch, fy.P4TableEntry("exact_t")), [])

    with check("refusals have a code"):
        entry = row("exact_t", 1, fy.Action("forward", port=2))
        await refused("NOT_FOUND", switch.delete([entry]))
        await switch.insert([entry])
        await refused("ALREADY_EXISTS", switch.insert([entry]))
        await switch.delete([entry])

    for table, key, sent in (
        ("lpm_t", {"c": "10.0.0.0/8"}, frame(0, c=0x0A010203)),
        ("ternary_t", {"b": "0x1200/&0xff00"}, frame(0, b=0x1234)),
        ("range_t", {"b": "3...9"}, frame(0, b=5)),
        ("optional_t", {"d": 7}, frame(0, d=7)),
    ):
        with check(f"{table}: insert, read back, packet, delete"):
            priority = 0 if table == "lpm_t" else 5
            entry = fy.P4TableEntry(table, match=fy.Match(**key), action=fy.Action("forward", port=2), priority=priority)
            await switch.insert([entry])
            equal(len(await all_of(switch, fy.P4TableEntry(table))), 1)
            ports.send(1, sent)
            equal(await soon(2, sent), True)
            await switch.delete([entry])

    with check("the default action: change, packet, reset"):
        default = fy.P4TableEntry("exact_t", is_default_action=True, action=fy.Action("forward", port=2))
        await switch.modify([default])
        ports.send(1, frame(77))
        equal(await soon(2, frame(77)), True)
        await switch.modify([fy.P4TableEntry("exact_t", is_default_action=True)])

    with check("constant entries are read, and known as such"):
        found = await all_of(switch, fy.P4TableEntry("const_t"))
        equal([entry.is_const for entry in found], [True] * 3)

    with check("counters: write, read one and all"):
        entry = fy.P4CounterEntry("counted", index=2, data=fy.P4CounterData(packet_count=3, byte_count=4))
        await switch.modify([entry])
        equal(await all_of(switch, fy.P4CounterEntry("counted", index=2)), [entry])
        equal(len(await all_of(switch, fy.P4CounterEntry("counted"))), 4)

    with check("direct counters"):
        entry = row("counted_t", 1, fy.Action("count_hit"))
        await switch.insert([entry])
        ports.send(1, frame(1))
        counters = fy.P4DirectCounterEntry("direct_counted")
        await becomes(switch, counters, lambda counter: counter.packet_count, [1])
        await switch.delete([entry])

    with check("meters"):
        config = fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
        entry = fy.P4MeterEntry("metered", index=1, config=config)
        await switch.modify([entry])
        equal(await all_of(switch, fy.P4MeterEntry("metered", index=1)), [entry])

    with check("direct meters"):
        entry = row("metered_t", 1, fy.Action("meter_hit"))
        await switch.insert([entry])
        config = fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
        await switch.modify([fy.P4DirectMeterEntry(table_entry=row("metered_t", 1, None), config=config)])
        found = await all_of(switch, fy.P4DirectMeterEntry(table_entry=row("metered_t", 1, None)))
        equal([meter.config for meter in found], [config])
        await switch.delete([entry])

    with check("registers: write one and all, read one and all, what packets write"):
        await switch.modify([fy.P4RegisterEntry("remembered", data=7)])
        await switch.modify([fy.P4RegisterEntry("remembered", index=1, data=0x1234)])
        found = await all_of(switch, fy.P4RegisterEntry("remembered"))
        equal([entry.data for entry in found], [7, 0x1234, 7, 7])
        ports.send(1, frame(2, b=0xBEEF))
        await becomes(switch, fy.P4RegisterEntry("remembered", index=2), lambda entry: entry.data, [0xBEEF])

    with check("members and groups"):
        members = [
            fy.P4ActionProfileMember("selector", member_id=number, action=fy.Action("forward", port=port))
            for number, port in ((1, 2), (2, 3))
        ]
        group = fy.P4ActionProfileGroup(
            "selector", group_id=9, members=[fy.P4Member(1, weight=1), fy.P4Member(2, weight=1)]
        )
        entry = row("group_t", 1, fy.P4IndirectAction(group_id=9))
        for entity in (*members, group, entry):
            await switch.insert([entity])
        equal(await all_of(switch, fy.P4ActionProfileMember("selector")), members)
        equal(await all_of(switch, fy.P4ActionProfileGroup("selector")), [group])
        equal(await all_of(switch, fy.P4TableEntry("group_t")), [entry])
        await refused("FAILED_PRECONDITION", switch.delete([group]))
        for entity in (entry, group, *members):
            await switch.delete([entity])

    with check("one-shot sets, with watch ports"):
        one_shot = fy.P4IndirectAction([(1, fy.Action("forward", port=2)), ((2, 3), fy.Action("forward", port=3))])
        entry = row("group_t", 1, one_shot)
        await switch.insert([entry])
        equal(await all_of(switch, fy.P4TableEntry("group_t")), [entry])
        await switch.delete([entry])

    with check("multicast groups"):
        group = fy.P4MulticastGroupEntry(7, replicas=((2, 1), (3, 1)))
        entry = row("exact_t", 1, fy.Action("replicate", group=7))
        await switch.insert([group, entry])
        equal(len(await all_of(switch, fy.P4MulticastGroupEntry())), 1)
        ports.send(1, frame(1))
        equal((await soon(2, frame(1)), await soon(3, frame(1))), (True, True))
        await switch.delete([entry, group])

    with check("clone sessions"):
        session = fy.P4CloneSessionEntry(5, replicas=((4, 1),), packet_length_bytes=32)
        entry = row("exact_t", 1, fy.Action("mirror"))
        await switch.insert([session, entry])
        ports.send(1, frame(1))
        equal(await soon(4, frame(1)[:32]), True)
        await switch.delete([entry, session])

    with check("value sets"):
        members = [P4ValueSetMember(0x77)]
        await switch.modify([fy.P4ValueSetEntry("specials", members=members)])
        ports.send(1, frame(0x77))
        equal(await soon(3, frame(0x77)), True)
        await switch.modify([fy.P4ValueSetEntry("specials", members=[])])

    with check("digests, with acknowledgements"):
        digest = fy.P4DigestEntry("learned_t", max_list_size=1, ack_timeout_ns=10**12)
        entry = row("exact_t", 1, fy.Action("learn"))
        await switch.insert([digest, entry])
        lists = switch.read_digests("learned_t")
        waiting = asyncio.create_task(anext(lists))
        await asyncio.sleep(0)
        ports.send(2, frame(1))
        found = await asyncio.wait_for(waiting, 60)
        equal(found.data, [{"a": 1, "port": 2}])
        await switch.write([found.ack()])
        await switch.delete([digest, entry])

    with check("packets from the switch"):
        entry = row("exact_t", 1, fy.Action("to_cpu", reason=5))
        await switch.insert([entry])
        packets = switch.read_packets()
        waiting = asyncio.create_task(anext(packets))
        await asyncio.sleep(0)
        ports.send(3, frame(1))
        packet = await asyncio.wait_for(waiting, 60)
        equal((packet.payload, packet["ingress_port"], packet["reason"]), (frame(1), 3, 5))
        await switch.delete([entry])

    with check("packets to the switch"):
        await switch.write([fy.P4PacketOut(frame(9), egress_port=4, unused=0)])
        equal(await soon(4, frame(9)), True)

    with check("idle entries are told"):
        entry = fy.P4TableEntry(
            "idle_t",
            match=fy.Match(a=1),
            action=fy.Action("NoAction"),
            idle_timeout_ns=200_000_000,
        )
        idle = switch.read_idle_timeouts()
        waiting = asyncio.create_task(anext(idle))
        await asyncio.sleep(0)
        await switch.insert([entry])
        told = await asyncio.wait_for(waiting, 60)
        equal([found.table_id for found in told.table_entry], ["idle_t"])
        await switch.delete([entry])


async def main():
    options = fy.SwitchOptions(p4info=Path(p4info), p4blob=Path(program), device_id=1)
    with check("a pipeline is set"):
        switch = fy.Switch("sw", address, options)
        async with asyncio.timeout(600), switch:
            await run(switch)
    finish()


asyncio.run(main())
