#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends a signal to a command that has computed for a while, however busy the machine is.

  signal_when_busy.py SIGNAL SECONDS COMMAND...    SIGNAL: INT, SEGV, …

Waits until the command has used SECONDS of processor time; returns its exit code, 128 + N for signal N.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    name, seconds, *command = sys.argv[1:]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    # A process that has ended has its entry until it is waited for.
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if processor_seconds(process.pid) >= float(seconds):
            process.send_signal(getattr(signal, "SIG" + name))
            break
        time.sleep(0.02)
    code = process.wait()
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
