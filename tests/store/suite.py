# SPDX-License-Identifier: Apache-2.0
"""Tests that start servers of their own, which end with the test."""
import threading
import time
import traceback


class Suite:
    def __init__(self, tools, full):
        self.tools, self.full = tools, full
        self.own = threading.local()  # servers of the test that this thread runs

    def test(self, body):
        """Returns whether the test passes."""
        begin = time.monotonic()
        self.own.servers = []
        try:
            body()
            if self.full:
                print(f"ok {body.__name__} {time.monotonic() - begin:.1f} s", flush=True)
            return True
        except Exception:
            print(f"FAILED {body.__name__}\n{traceback.format_exc()}", flush=True)
            return False
        finally:
            for server in self.own.servers:
                server.stop()

    def quickly(self, call, seconds):
        """The result of a call that ends within the seconds, which one of several does also where other processes run."""
        for _ in range(5):
            begin = time.monotonic()
            result = call()
            spent = time.monotonic() - begin
            if spent < seconds:
                return result
        raise AssertionError(f"takes {spent:.1f} s, not less than {seconds} s")

    def use(self, server):
        self.own.servers.append(server)
        return server
