#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command where the system gives no threads, or little memory: it must end with an exit code of its own.

  few_resources.py threads CODE COMMAND...      no further thread can be started: the stack that each asks for is too large
  few_resources.py memory FROM TO COMMAND...    with each limit on addresses from FROM to TO MiB, in 24 steps

Output of `threads` is that of the command, and the exit code is 0 if the command's is CODE. With `memory` no run may end by
a signal, an uncaught exception or the time limit, and the last must succeed.
"""
import resource
import subprocess
import sys

SECONDS = 60
MIB = 1 << 20


def limited(command, stack, addresses, **options):
    def limit():
        if stack:
            resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(command, stdin=subprocess.DEVNULL, preexec_fn=limit, timeout=SECONDS, text=True, **options)


def main():
    kind, *arguments = sys.argv[1:]
    if kind == "threads":
        code, *command = arguments
        done = limited(command, 16 << 30, 8 << 30)
        if done.returncode != int(code):
            sys.exit(f"exit code {done.returncode}, not {code}")
        return
    first, last, *command = arguments
    for step in range(25):
        mib = int(first) + (int(last) - int(first)) * step // 24
        done = limited(command, 0, mib * MIB, capture_output=True)
        loads = "error while loading shared libraries" in done.stderr or "cannot allocate memory" in done.stderr.lower()
        if done.returncode not in (0, 1, 3) and not (done.returncode == 127 and loads):
            sys.exit(f"exit code {done.returncode} with {mib} MiB: {done.stderr[-400:]}")
        if "terminate called" in done.stderr:
            sys.exit(f"an exception with {mib} MiB: {done.stderr[-400:]}")
        if done.returncode == 3 and ": " not in done.stderr:
            sys.exit(f"no message with {mib} MiB")
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} with {last} MiB: {done.stderr[-400:]}")


if __name__ == "__main__":
    main()
