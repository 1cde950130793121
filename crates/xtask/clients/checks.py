"""Checks with a line each. Ports of the switch, seen from the other side."""

import contextlib
import os
import select
import socket
import sys
import time
import traceback

passed, failed = [], []


@contextlib.contextmanager
def check(name):
    """One thing that has to work. What goes wrong in it is told, and the next check goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a client raises
        failed.append(name)
        where = traceback.extract_tb(error.__traceback__)[1:2]
        line = f" (line {where[0].lineno})" if where else ""
        message = " ".join(str(error).split())[:600] or "no message"
        print(f"FAILED  {name}{line}: {type(error).__name__}: {message}", flush=True)
    else:
        passed.append(name)
        print(f"ok      {name}", flush=True)


def equal(found, expected):
    """Fails unless both are the same."""
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def refused(code, act):
    """Fails unless `act` is refused with this code in its message."""
    try:
        act()
    except Exception as error:  # noqa: BLE001
        if code not in str(error) and code not in repr(error):
            raise
    else:
        raise AssertionError(f"not refused with {code}")


def finish():
    """Ends the program, with the threads that clients leave behind to wait for their streams."""
    sys.stdout.flush()
    os._exit(1 if failed else 0)


class Ports:
    """The switch's TAP devices: what is sent here arrives there, and the other way round."""

    def __init__(self, names):
        self.sockets = {}
        for number, name in names.items():
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            port.bind((name, 0))
            self.sockets[number] = port

    def send(self, number, frame):
        """Lets a frame arrive at a port of the switch."""
        self.sockets[number].send(frame)

    def received(self, number, frame):
        """Whether this frame leaves at a port of the switch within 60 s. Frames that we sent are looked over."""
        return self.received_at_any([number], frame)

    def received_at_any(self, numbers, frame):
        """Whether this frame leaves at one of these ports of the switch within 60 s."""
        end = time.monotonic() + 60
        open_ports = [self.sockets[number] for number in numbers]
        while (left := end - time.monotonic()) > 0:
            for port in select.select(open_ports, [], [], left)[0]:
                data, address = port.recvfrom(2048)
                if address[2] != socket.PACKET_OUTGOING and data == frame:
                    return True
        return False


def frame(a, b=0, c=0, d=0, e=0):
    """A frame with the header of the program, and something behind it."""
    head = a.to_bytes(2, "big") + b.to_bytes(2, "big") + c.to_bytes(4, "big") + bytes([d, e])
    return head + bytes(range(54))
