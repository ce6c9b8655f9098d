"""Strangers at the port of rank 0.

usage: rendezvous.py PORT WORD

free: print a free port.  listen: hold the port until stdin ends.  Others
connect: bytes sends random ones, slow one byte of a hello each second, silent
nothing, many nothing on twelve connections, version the head of another
version's hello, stale that of an earlier run's; then they print what comes back
until rank 0 closes the connection.
"""
import random
import socket
import struct
import sys
import time

MAGIC = b"sinter\n\0"


def connect(port):
    until = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("localhost", port))
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def send(to, word):
    if word == "bytes":
        to.sendall(random.Random(1).randbytes(5000))
    if word == "version":
        to.sendall(MAGIC + struct.pack("=ii", 999, 64) + bytes(600))
    if word == "stale":
        to.sendall(MAGIC + struct.pack("=iiQ", 999, 64, 12345))
    for byte in MAGIC[:4] if word == "slow" else b"":
        to.sendall(bytes([byte]))
        time.sleep(1)


def main():
    port, word = int(sys.argv[1]), sys.argv[2]
    if word == "free":
        with socket.socket() as s:
            s.bind(("localhost", 0))
            print(s.getsockname()[1])
        return
    if word == "listen":
        with socket.create_server(("localhost", port)):
            print("ready", flush=True)
            sys.stdin.read()
        return
    with connect(port) as to:
        more = []
        try:
            while word == "many" and len(more) < 11:
                more += [socket.create_connection(("localhost", port))]
            send(to, word)
            while to.recv(4096):
                pass
        except OSError:
            pass
        for other in more:
            other.close()
    print("closed", flush=True)


main()
