#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command where no name server answers; prints its output, and the seconds that it took if they are too many.

  silent_name_server.py SECONDS COMMAND...

In a network of its own whose name server, 127.0.0.1, takes each question and sends nothing. The exit code is that of the
command, 1 if it takes more than SECONDS. Exit code 77, with the reason: such a network cannot be made here.
"""
import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
SET_FLAGS = 0x8914  # of a network interface
UP_AND_RUNNING = 0x41


def outside():
    made = subprocess.run(["unshare", "--map-root-user", "--mount", "--net", "true"], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"skipped: {made.stderr.strip()}")
        return SKIPPED
    return subprocess.run(["unshare", "--map-root-user", "--mount", "--net", sys.executable, __file__, "--inside", *sys.argv[1:]]).returncode


def inside(seconds, command):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        settings.write("nameserver 127.0.0.1\n")
        settings.flush()
        try:
            fcntl.ioctl(server, SET_FLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING) + bytes(14))
            subprocess.run(["mount", "--bind", settings.name, os.path.realpath("/etc/resolv.conf")], check=True)
            server.bind(("127.0.0.1", 53))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: {error}")
            return SKIPPED
        begin = time.monotonic()
        done = subprocess.run(command)
        spent = time.monotonic() - begin
        server.settimeout(0.1)
        server.recv(512)  # it was asked
    if spent > seconds:
        print(f"it took {spent:.1f} s")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(inside(float(sys.argv[2]), sys.argv[3:]) if sys.argv[1] == "--inside" else outside())
