"""Connects network namespaces by a link that delays each packet.

usage: delay.py MILLISECONDS NAMESPACE...

Namespace i, from 1 on, has the address 10.77.0.i.  The kernel's own delay
(netem) is missing in many kernels, so packets go through this program, over
devices of /dev/net/tun.  It prints "ready", and the number of packets once its
input ends.
"""
import collections
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 0x0001, 0x1000
MTU = 9000


def open_device(number, namespace):
    """A descriptor for the packets of namespace `number`."""
    name = f"tun{os.getpid()}.{number}"
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF,
                struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    within = ["ip", "-n", namespace]
    for command in (["ip", "link", "set", name, "netns", namespace],
                    within + ["link", "set", "lo", "up"],
                    within + ["addr", "add", f"10.77.0.{number}/24", "dev", name],
                    within + ["link", "set", name, "mtu", str(MTU), "up"]):
        subprocess.run(command, check=True)
    return device


def forward(devices, seconds):
    """Forwards until stdin ends; the number of packets."""
    late = collections.deque()  # (time, device, packet), in order
    packets = 0
    while True:
        wait = max(0, late[0][0] - time.monotonic()) if late else None
        ready = select.select([0, *devices], [], [], wait)[0]
        if 0 in ready and not os.read(0, 1):
            return packets
        for device in ready:
            packet = os.read(device, MTU) if device else b""
            to = packet[19] - 1 if len(packet) >= 20 else -1
            if packet[:1] == b"\x45" and 0 <= to < len(devices):
                late.append((time.monotonic() + seconds, devices[to], packet))
                packets += 1
        while late and late[0][0] <= time.monotonic():
            try:
                os.write(late[0][1], late[0][2])
            except OSError:
                pass  # the device is down, or its queue is full
            late.popleft()


def main():
    milliseconds, *namespaces = sys.argv[1:]
    devices = [open_device(i + 1, n) for i, n in enumerate(namespaces)]
    print("ready", flush=True)
    print(forward(devices, float(milliseconds) / 1e3), flush=True)


main()
