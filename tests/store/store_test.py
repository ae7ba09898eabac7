#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Remote stores as the tools use them, against servers on the loopback interface.

  store_test.py BIN [--servers=FOLDER] [--full]

BIN has the tools. --servers is the folder of a node_modules with s3rver and azurite, which --full installs there from
package-lock.json. Tests whose server is missing are skipped with a line that says so.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys

from object_store_suite import ObjectStoreSuite
from redis_suite import RedisSuite
from store_tools import MODEL, Tools
from suite import Suite

HERE = os.path.dirname(os.path.abspath(__file__))


class AddressSuite(Suite):
    """Addresses that name no store, and stores without credentials."""

    def tests(self):
        return [self.usage, self.malformed_addresses]

    def malformed_addresses(self):
        for address in ("s3://KEY:very-secret@team/x.hlo", "s3://KEY:very-secret", "az://KEY:very/very-secret@c/x.hlo",
                        "redis://:pass-word", "redis://me:pass-word/0", "file://me:pass-word@host/x.hlo"):
            rejected = self.tools.run("hlo-opt", address, code=None)
            assert rejected.code != 0 and "://..." in rejected.err, rejected.err
            # run() looks for the secrets.
            self.tools.run("ir-dump", *MODEL, f"--cache={address}", "--emit=values", code=None)

    def usage(self):
        unknown = self.tools.run("ir-dump", *MODEL, "--cache=s4://team/x", code=2)
        assert "unknown scheme `s4`; did you mean `s3`?" in unknown.err
        variable = self.tools.run("ir-dump", *MODEL, env={"XLA_PERSISTENT_CACHE_PATH": "redsi://:very-secret@h"}, code=2)
        assert "XLA_PERSISTENT_CACHE_PATH" in variable.err and "did you mean `redis`?" in variable.err
        for address, hint in (("s3://b/x", "AWS_ACCESS_KEY_ID"), ("gs://b/x", "GS_ACCESS_KEY_ID"),
                              ("az://b/x", "AZURE_STORAGE_CONNECTION_STRING")):
            none = self.tools.run("hlo-opt", address, code=2)
            assert f"{address}: no credentials" in none.err and hint in none.err, none.err
            assert self.tools.run("hlo-opt", self.tools.module, "-o", address, code=1).out == ""
        assert not [name for name in os.listdir(".") if name.endswith(":")]


def servers_folder(arguments):
    """Returns the node_modules with the servers, or None with a line that says why."""
    modules = os.path.join(arguments.servers, "node_modules") if arguments.servers else None
    if modules and arguments.full and shutil.which("npm"):
        os.makedirs(arguments.servers, exist_ok=True)
        with open(os.path.join(HERE, "package-lock.json"), "rb") as file:
            wanted = file.read()
        marker = os.path.join(arguments.servers, "installed")
        if not os.path.exists(marker) or open(marker, "rb").read() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(os.path.join(HERE, name), arguments.servers)
            done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"],
                                  cwd=arguments.servers, capture_output=True, text=True)
            if done.returncode == 0:
                with open(marker, "wb") as file:
                    file.write(wanted)
            else:
                print(f"npm ci failed: {done.stderr[-500:]}")
    if modules and os.path.isdir(os.path.join(modules, "azurite")) and shutil.which("node"):
        return modules
    if arguments.full:
        print("skipped: s3rver and azurite are not installed (npm, with access to its registry)")
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--servers")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", help="run the test of this name")
    arguments = parser.parse_args()
    arguments.bin = os.path.abspath(arguments.bin)
    arguments.servers = arguments.servers and os.path.abspath(arguments.servers)
    tools = Tools(arguments.bin)
    os.chdir(tools.scratch)
    suites = [AddressSuite(tools, arguments.full), ObjectStoreSuite(tools, arguments.full, servers_folder(arguments)),
              RedisSuite(tools, arguments.full)]
    tests = [(suite, test) for suite in suites for test in suite.tests() if arguments.only in (None, test.__name__)]
    try:
        if tools.run("hlo-opt", "s3://b/x", code=None).err.find("this build has no") >= 0:
            print("skipped: this build has no remote stores")
            return 77
        # Most of the time they wait.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            passed = list(pool.map(lambda one: one[0].test(one[1]), tests))
    finally:
        shutil.rmtree(tools.scratch, ignore_errors=True)
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
