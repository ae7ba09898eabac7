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
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from servers import (HOST, AnsweringServer, Azurite, CuttingProxy, FailingServer, Redis, S3rver, SendingServer,
                     SilentServer, peak_mib)

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = """HloModule doubled, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %s = f32[4]{0} add(%p, %p)
}
"""
MODEL = ["--model=mlp", "--image=4", "--hidden=8", "--batch=2"]
SECRETS = ["very-secret", "session-secret", "pass-word", "sig%3Dsecret", "sig=secret", "sig%253Dsecret"]


class Tools:
    def __init__(self, bin_folder):
        self.bin = bin_folder
        self.scratch = tempfile.mkdtemp(prefix="hlokit-store-")
        self.clean = {name: value for name, value in os.environ.items()
                      if not name.startswith(("AWS_", "AZURE_", "GS_", "XLA_", "STORAGE_", "BOTO", "REDIS", "HLOKIT_"))}
        self.clean["HOME"] = self.scratch
        self.clean["no_proxy"] = "*"
        self.module = self.file("module.hlo", MODULE)
        self.printed = self.run("hlo-opt", self.module).out
        self.expected = self.run("ir-dump", *MODEL, "--emit=values").out

    def file(self, name, text):
        path = os.path.join(self.scratch, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def start(self, tool, *arguments, env=None):
        return subprocess.Popen([os.path.join(self.bin, tool), *arguments], env={**self.clean, **(env or {})}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, tool, *arguments, env=None, code=0):
        process = self.start(tool, *arguments, env=env)
        peaks, done = [0], threading.Event()

        def watch():
            while not done.wait(0.02):
                peaks.append(peak_mib(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, err = process.communicate(timeout=120)
        done.set()
        watcher.join()
        for secret in SECRETS:
            assert secret not in out and secret not in err, f"a secret in the output: {err}"
        assert code is None or process.returncode == code, f"exit code {process.returncode}, not {code}: {err}"
        return Result(out, err, process.returncode, max(peaks))

    def cached(self, cache, env=None, emit="values,metrics", explain=False, **more):
        flags = ["--explain-recompiles"] if explain else []
        result = self.run("ir-dump", *MODEL, f"--cache={cache}", f"--emit={emit}", *flags, env=env, **more)
        expected = self.run("ir-dump", *MODEL, f"--emit={emit}", *flags).values() if explain else self.expected
        assert result.values() == expected, "other values than without a cache"
        return result


class Result:
    def __init__(self, out, err, code, peak):
        self.out, self.err, self.code, self.peak_mib = out, err, code, peak

    def values(self):
        lines = self.out.splitlines(keepends=True)
        return "".join(lines[:next((i for i, line in enumerate(lines) if line.startswith(("Metric:", "Counter:"))), None)])

    def count(self, counter):
        lines = self.out.splitlines()
        name = f"Counter: {counter}"
        return int(lines[lines.index(name) + 1].split(":")[1]) if name in lines else 0

    def warnings(self):
        return [line for line in self.err.splitlines() if line.startswith("hlokit: warning: program cache: ")]


def round_trip(tools, cache, counter, env=None):
    cold = tools.cached(cache, env)
    assert cold.count("PersistentCacheMiss") == 1 == cold.count(f"PersistentCache{counter}Miss"), cold.out
    warm = tools.cached(cache, env)
    assert warm.count("PersistentCacheHit") == 1 == warm.count(f"PersistentCache{counter}Hit"), warm.out
    assert not warm.count("PersistentCacheMiss") and not cold.warnings() + warm.warnings()
    # Lists entries and reads their first bytes.
    other = tools.run("ir-dump", *MODEL, f"--cache={cache}", "--pipeline=cse", "--explain-recompiles", env=env)
    assert "pipeline is `cse`, it was `default`" in other.out + other.err, other.out + other.err
    read_only = tools.cached(cache + "x", {**(env or {}), "XLA_PERSISTENT_CACHE_READ_ONLY": "1"})
    assert read_only.count("PersistentCacheMiss") == 1
    again = tools.cached(cache + "x", {**(env or {}), "XLA_PERSISTENT_CACHE_READ_ONLY": "1"})
    assert again.count("PersistentCacheMiss") == 1


def race(tools, cache, env=None, processes=4):
    running = [tools.start("ir-dump", *MODEL, f"--cache={cache}", "--emit=values", env=env) for _ in range(processes)]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and out == tools.expected and not err, err


def files(tools, address, env):
    """Modules, arrays, reports and profiles written to and read from a cloud."""
    odd = f"{address}/dumps/step 1+ü#?&=%41.hlo"
    tools.run("hlo-opt", tools.module, "-o", odd, env=env)
    read = tools.run("hlo-opt", odd, env=env)
    assert read.out == tools.printed, read.out
    missing = tools.run("hlo-opt", f"{address}/dumps/step 1+ü#?&=A.hlo", env=env, code=2)
    assert "not found" in missing.err, missing.err
    large = tools.run("hlo-opt", odd, "--max-input-bytes=10", env=env, code=1)
    assert "more than 10 bytes (--max-input-bytes)" in large.err, large.err
    tools.run("hlo-run", odd, "--seed=3", "-o", f"{address}/results.npz", env=env)
    compared = tools.run("hlo-run", odd, "--seed=3", f"--expect={address}/results.npz", env=env)
    assert not compared.err, compared.err
    tools.run("hlo-run", odd, "--seed=3", f"--results-npy={address}/out", "--no-print-results", env=env)
    tools.run("hlo-run", tools.module, f"--args={address}/out/result0.npy", env=env)
    tools.run("hlo-run", odd, "--device=v5e", "--timing-only", "--report-output=/dev/null", f"--report={address}/report",
              f"--xplane={address}/profile", env=env)
    report = tools.run("hlo-opt", f"{address}/report/report.json", env=env, code=None)
    assert "not found" not in report.err, report.err
    tools.run("hlo-opt", odd, "--passes=simplify", f"--dump-to={address}/passes", "-o", "/dev/null", env=env)
    before = tools.run("hlo-opt", f"{address}/passes/module_0000.doubled.before_optimizations.txt", env=env)
    assert before.out == tools.printed, before.out
    tools.run("ir-dump", *MODEL, "--steps=2", f"--report={address}/traced", f"--profile={address}/traced", env=env)
    assert "step" in tools.run("hlo-profile", "compare", f"{address}/report/report.json", f"{address}/traced/report.json",
                               env=env, code=None).out
    assert "add" in tools.run("hlo-inspect", "grep", "add", odd, env=env).out
    tools.run("hlo-view", odd, "-o", f"{address}/view.html", env=env)
    appended = tools.run("ir-dump", *MODEL, "--emit=values", f"--save-graphs={address}/graphs", env=env, code=None)
    assert appended.code != 0 and "s3://" in appended.err.replace("gs://", "s3://").replace("az://", "s3://"), appended.err
    assert not os.path.exists(address.split("/")[0]), "a local folder with the name of a scheme"


class Suite:
    def __init__(self, tools, modules, full):
        self.tools, self.modules, self.full = tools, modules, full
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

    # Redis

    def redis_round_trip(self):
        redis = self.use(Redis())
        round_trip(self.tools, f"redis://{HOST}:{redis.port}/2?prefix=team", "Redis")
        assert redis.command("DBSIZE") == b":0\r\n"  # all is in database 2
        by_environment = self.tools.run("ir-dump", *MODEL, "--emit=metrics",
                                        env={"XLA_PERSISTENT_CACHE_PATH": f"redis://{HOST}:{redis.port}/2?team"})
        assert by_environment.count("PersistentCacheRedisHit") == 1

    def redis_race(self):
        redis = self.use(Redis())
        race(self.tools, f"redis://{HOST}:{redis.port}")
        assert len(redis.keys()) == 1

    def redis_login(self):
        redis = self.use(Redis(password="pass-word"))
        address = f"{HOST}:{redis.port}"
        round_trip(self.tools, f"redis://:pass-word@{address}/0?prefix=a", "Redis")
        round_trip(self.tools, f"redis://{address}/0?prefix=b", "Redis", {"REDISCLI_AUTH": "pass-word"})
        for cache in (f"redis://:very-secret@{address}", f"redis://me:very-secret@{address}", f"redis://{address}"):
            wrong = self.tools.cached(cache)
            assert len(wrong.warnings()) == 1 and wrong.count("PersistentCacheRedisError") == 1, wrong.err
            assert wrong.count("PersistentCacheRedisSkipped") == 1  # the entry is not written either

    def malformed_addresses(self):
        for address in ("s3://KEY:very-secret@team/x.hlo", "s3://KEY:very-secret", "az://KEY:very/very-secret@c/x.hlo",
                        "redis://:pass-word", "redis://me:pass-word/0", "file://me:pass-word@host/x.hlo"):
            rejected = self.tools.run("hlo-opt", address, code=None)
            assert rejected.code != 0 and "://..." in rejected.err, rejected.err
            # run() looks for the secrets.
            self.tools.run("ir-dump", *MODEL, f"--cache={address}", "--emit=values", code=None)

    def redis_odd_answers(self):
        # SCAN finds a key that does not have the prefix.
        scan = b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n"
        server = self.use(AnsweringServer({b"GETRANGE": b"$0\r\n\r\n", b"EXISTS": b":0\r\n", b"SET": b"+OK\r\n",
                                           b"SCAN": scan}))
        self.tools.cached(f"redis://{HOST}:{server.port}", explain=True)
        assert b"SCAN" in server.commands and b"GET" not in server.commands, server.commands
        server.answers[b"SCAN"] = b"*2\r\n$1\r\n7\r\n*0\r\n"  # a scan without an end
        self.tools.cached(f"redis://{HOST}:{server.port}", explain=True)
        assert server.commands.count(b"SCAN") <= 4, server.commands

    def redis_damaged(self):
        redis = self.use(Redis())
        cache = f"redis://{HOST}:{redis.port}"
        self.tools.cached(cache)
        key, = redis.keys()
        for damage in (("SETRANGE", key, 300, "damage"), ("SET", key, ""), ("SET", key, "short")):
            redis.command(*damage)
            damaged = self.tools.cached(cache)
            assert damaged.count("PersistentCacheDeserializeFailure") == 1 and len(damaged.warnings()) == 1
            assert self.tools.cached(cache).count("PersistentCacheRedisHit") == 1  # written again
        redis.command("DEL", key)
        redis.command("LPUSH", key, "a list")
        assert len(self.tools.cached(cache).warnings()) == 1

    def redis_down(self):
        redis = self.use(Redis())
        cache = f"redis://{HOST}:{redis.port}"
        self.tools.cached(cache)
        redis.kill()
        down = self.quickly(lambda: self.tools.cached(cache), 3)  # the deadline is 5 s
        assert len(down.warnings()) == 1 and "Connection refused" in down.err, down.err
        self.use(Redis(port=redis.port))
        assert self.tools.cached(cache).count("PersistentCacheRedisMiss") == 1

    def redis_stalls(self):
        for greeting in (b"", b"$1000000\r\nabc"):
            silent = self.use(SilentServer(greeting))
            address, env = f"redis://{HOST}:{silent.port}", {"HLOKIT_STORE_TIMEOUT": "0.5"}
            stalled = self.quickly(lambda: self.tools.cached(address, env), 2.5)  # without the variable 3 s at least
            assert len(stalled.warnings()) == 1 and "timeout" in stalled.err, stalled.err
        other = self.use(SilentServer(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        assert len(self.tools.cached(f"redis://{HOST}:{other.port}").warnings()) == 1

    def redis_hostile(self):
        """Servers that send something for ever end with the deadline, and what they send takes little memory."""
        env = {"HLOKIT_STORE_TIMEOUT": "1"}
        for begin, more, pause in ((b"", b"x", 0.1), (b"$100\r\n", b"x", 0.1), (b"+", b"x" * 65536, 0),
                                   (b"$3000000000\r\n", b"x" * 1048576, 0), (b"*2147483647\r\n", b"$1\r\nx\r\n", 0),
                                   (b"*1\r\n" * 7, b"*1\r\n", 0), (b":", b"1" * 65536, 0)):
            server = self.use(SendingServer(begin, more, pause))
            address = f"redis://{HOST}:{server.port}"
            hostile = self.quickly(lambda: self.tools.cached(address, env), 3)
            assert len(hostile.warnings()) == 1 and hostile.count("PersistentCacheRedisError") == 1, (begin, hostile.err)
            assert hostile.peak_mib < 900, f"{hostile.peak_mib} MiB for {begin}"
            server.stop()

    def redis_cut(self):
        redis = self.use(Redis())
        self.tools.cached(f"redis://{HOST}:{redis.port}")
        for limit in (0, 3, 500):
            proxy = self.use(CuttingProxy(redis.port, limit))
            cut = self.tools.cached(f"redis://{HOST}:{proxy.port}")
            assert len(cut.warnings()) == 1 and cut.count("PersistentCacheRedisError") == 1, cut.err

    # A server that fails

    def transient_failures(self):
        server = self.use(FailingServer())
        address, failures = "s3://team/module.hlo", []

        def fail(handler, method):
            if not failures:
                return False
            kind = failures.pop()
            if kind == "cut":
                body, headers = server.objects["/team/module.hlo"]
                handler.answer(200, body[:50], headers, length=len(body))
                handler.close_connection = True
            elif kind == "closed":
                handler.close_connection = True
            else:
                if method == "PUT":
                    handler.rfile.read(int(handler.headers["Content-Length"]))
                handler.answer(kind, b"<Error><Code>SlowDown</Code></Error>")
            return True

        server.fail = fail
        failures[:] = [503, 500, "closed"]
        self.tools.run("hlo-opt", self.tools.module, "-o", address, env=server.environment())
        assert not failures and len(server.requests) == 4, server.requests
        failures[:] = [429, "cut", "closed"]
        assert self.tools.run("hlo-opt", address, env=server.environment()).out == self.tools.printed
        assert not failures
        failures[:] = [503] * 100
        failed = self.tools.run("hlo-opt", address, env=server.environment(), code=2)
        assert "HTTP status 503, SlowDown" in failed.err and len(failures) == 96, failed.err
        failures[:] = ["cut"] * 100
        assert "hlo-opt: error: s3://team/module.hlo: " in self.tools.run("hlo-opt", address, env=server.environment(),
                                                                          code=2).err

    def busy_server(self):
        """A server that asks to be left alone for long is, and the message says what it asks."""
        server = self.use(FailingServer())
        env, seconds = server.environment(), ["99999999"]
        server.fail = lambda handler, method: handler.answer(503, b"", {"Retry-After": seconds[0]}) or True
        failed = self.quickly(lambda: self.tools.run("hlo-opt", "s3://team/x.hlo", env=env, code=2), 5)
        assert "asks to be tried again after 99999999 s, which is not waited for" in failed.err, failed.err
        before = len(server.requests)
        cached = self.quickly(lambda: self.tools.cached("s3://team/cache", env), 5)
        assert len(cached.warnings()) == 1 and "asks to be tried again" in cached.err, cached.err
        assert len(server.requests) - before <= 5, server.requests
        seconds[0] = "9" * 40
        assert "not waited for" in self.tools.run("hlo-opt", "s3://team/x.hlo", env=env, code=2).err
        seconds[0] = "1"
        said = self.tools.run("hlo-opt", "s3://team/x.hlo", env=env, code=2)
        assert said.err.count("waits 1 s, as the server asks") == 3, said.err

    def endless_answers(self):
        """An object and a list of keys without an end."""
        server = self.use(FailingServer())
        env = {**server.environment(), "HLOKIT_STORE_TIMEOUT": "1"}

        def trickle(handler, method):
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            try:
                while True:
                    handler.wfile.write(b"x")
                    time.sleep(0.1)
            except OSError:
                handler.close_connection = True
            return True

        server.fail = trickle
        slow = self.quickly(lambda: self.tools.cached("s3://team/cache", env), 4)
        assert len(slow.warnings()) == 1, slow.err
        pages = []

        def list_keys(handler, method):
            if "list-type=2" not in handler.path:
                return False
            pages.append(handler.path)
            handler.answer(200, f"<R><NextContinuationToken>t{len(pages)}</NextContinuationToken></R>".encode())
            return True

        server.fail = list_keys
        self.quickly(lambda: self.tools.cached("s3://team/other", env, explain=True), 6)
        assert pages

    def lasting_failures(self):
        server = self.use(FailingServer())
        address, env = "s3://team/module.hlo", server.environment()
        self.tools.run("hlo-opt", self.tools.module, "-o", address, env=env)
        body, headers = server.objects["/team/module.hlo"]
        server.objects["/team/module.hlo"] = (body.replace(b"add", b"mul"), headers)
        damaged = self.tools.run("hlo-opt", address, env=env, code=2)
        assert "damaged" in damaged.err, damaged.err
        server.objects["/team/module.hlo"] = (body, {})  # of another program
        assert self.tools.run("hlo-opt", address, env=env).out == self.tools.printed
        echo = b"<Error><Code>AccessDenied</Code><Message>very-secret session-secret\nsecond line</Message></Error>"
        server.fail = lambda handler, method: handler.answer(403, echo) or True
        before = len(server.requests)
        denied = self.tools.run("hlo-opt", address, env=env, code=2)
        assert "access denied: HTTP status 403, AccessDenied: ... ..." in denied.err, denied.err
        assert len(server.requests) == before + 1  # not tried again
        assert len(self.tools.cached("s3://team/cache", env).warnings()) == 1
        server.fail = lambda handler, method: handler.answer(301, b"", {"x-amz-bucket-region": "eu-north-1"}) or True
        assert "set AWS_REGION" in self.tools.run("hlo-opt", address, env=env, code=2).err
        azure = {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig%3Dsecret",
                 "AZURE_STORAGE_SERVICE_ENDPOINT": f"http://{HOST}:{server.port}"}
        server.fail = lambda handler, method: handler.answer(
            400, f"<Error><Code>Bad</Code><Message>{handler.path.replace('&', '&amp;')}</Message></Error>".encode()) or True
        echoed = self.tools.run("hlo-opt", "az://team/x", env=azure, code=2)
        assert "HTTP status 400, Bad: /team/x?..." in echoed.err, echoed.err

    def signatures(self):
        server = self.use(FailingServer())
        env = server.environment()
        odd = "s3://team/a/step 1+ü#?&=%41~*'.hlo"
        self.tools.run("hlo-opt", self.tools.module, "-o", odd, env=env)
        assert self.tools.run("hlo-opt", odd, env=env).out == self.tools.printed
        wrong = self.tools.run("hlo-opt", odd, env={**env, "AWS_SECRET_ACCESS_KEY": "other"}, code=2)
        assert "SignatureDoesNotMatch" in wrong.err, wrong.err
        # Entries of the same graph under several settings, listed page by page.
        for pipeline in ("cse", "dce", "cse,dce", "dce,cse", "simplify"):
            self.tools.run("ir-dump", *MODEL, "--cache=s3://team/c", f"--pipeline={pipeline}", "--emit=values", env=env)
        explained = self.tools.run("ir-dump", *MODEL, "--cache=s3://team/c", "--explain-recompiles", "--emit=values", env=env)
        assert "pipeline is `default`" in explained.out + explained.err
        assert sum("list-type=2" in path for _, path in server.requests) >= 3

    def redirections(self):
        server, other = self.use(FailingServer()), self.use(FailingServer())
        address, env = "s3://team/module.hlo", server.environment()
        self.tools.run("hlo-opt", self.tools.module, "-o", address, env=env)
        other.objects.update(server.objects)
        for status in (301, 302, 303, 307, 308):
            server.fail = lambda handler, method: handler.answer(
                status, b"", {"Location": f"http://{HOST}:{other.port}{handler.path}"}) or True
            assert str(status) in self.tools.run("hlo-opt", address, env=env, code=2).err
        assert not other.requests, other.requests

    def certificates(self):
        if not shutil.which("openssl"):
            return
        key, certificate = (os.path.join(self.tools.scratch, name) for name in ("key.pem", "certificate.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "2", "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{HOST}", "-keyout", key, "-out",
                        certificate], check=True, capture_output=True)
        server = self.use(FailingServer((certificate, key)))
        env = server.environment()
        rejected = self.tools.run("hlo-opt", self.tools.module, "-o", "s3://team/x.hlo", env=env, code=1)
        assert "certificate" in rejected.err and not server.requests, rejected.err
        env["AWS_CA_BUNDLE"] = certificate
        self.tools.run("hlo-opt", self.tools.module, "-o", "s3://team/x.hlo", env=env)
        assert self.tools.run("hlo-opt", "s3://team/x.hlo", env=env).out == self.tools.printed

    def broken_uploads(self):
        server = self.use(FailingServer())
        address, env = "s3://team/module.hlo", server.environment()
        server.objects["/team/module.hlo"] = (b"old", {})

        def fail(handler, method):
            handler.rfile.read(10)
            handler.close_connection = True
            return True

        server.fail = fail
        failed = self.tools.run("hlo-opt", self.tools.module, "-o", address, env=env, code=1)
        assert "s3://team/module.hlo" in failed.err and server.objects["/team/module.hlo"][0] == b"old"
        # A module that is rejected is not uploaded.
        server.fail = lambda handler, method: False
        before = len(server.requests)
        self.tools.run("hlo-opt", self.tools.file("bad.hlo", "HloModule"), "-o", address, env=env, code=1)
        assert len(server.requests) == before

    def stalls(self):
        silent = self.use(SilentServer())
        env = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "very-secret", "HLOKIT_STORE_TIMEOUT": "0.6",
               "AWS_ENDPOINT_URL": f"http://{HOST}:{silent.port}"}
        stalled = self.quickly(lambda: self.tools.cached("s3://team/cache", env), 2.5)  # without the variable 3 s at least
        assert len(stalled.warnings()) == 1

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

    # Real servers of the clouds' interfaces

    def s3_round_trip(self):
        server = self.use(S3rver(self.modules))
        for scheme, counter in (("s3", "S3"), ("gs", "Gcs")):
            round_trip(self.tools, f"{scheme}://team/{scheme}cache", counter, server.environment())
            files(self.tools, f"{scheme}://team/{scheme}", server.environment())
        race(self.tools, "s3://team/race", server.environment())
        wrong = {**server.environment(), "AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "very-secret"}
        denied = self.tools.run("hlo-opt", "s3://team/s3/results.npz", env=wrong, code=2)
        assert "access denied: HTTP status 403, InvalidAccessKeyId" in denied.err, denied.err
        assert len(self.tools.cached("s3://team/s3cache", wrong).warnings()) == 1
        # Credentials of a profile.
        os.makedirs(os.path.join(self.tools.scratch, ".aws"), exist_ok=True)
        self.tools.file(".aws/credentials", "[ci]\naws_access_key_id=S3RVER\naws_secret_access_key=S3RVER\n")
        self.tools.file(".aws/config", f"[profile ci]\nendpoint_url = http://{HOST}:{server.port}\n")
        assert self.tools.cached("s3://team/s3cache", {"AWS_PROFILE": "ci"}).count("PersistentCacheS3Hit") == 1
        no_bucket = self.tools.run("hlo-opt", self.tools.module, "-o", "s3://nobody/x.hlo", env=server.environment(), code=1)
        assert "NoSuchBucket" in no_bucket.err, no_bucket.err

    def azure_round_trip(self):
        server = self.use(Azurite(self.modules))
        round_trip(self.tools, "az://team/cache", "Azure", server.environment())
        files(self.tools, "az://team/key", server.environment())
        token = {"AZURE_STORAGE_SAS_TOKEN": server.sas_token(), "AZURE_STORAGE_SERVICE_ENDPOINT": server.endpoint()}
        files(self.tools, "az://team/sas", token)
        race(self.tools, "az://team/race", token)
        wrong = server.environment("very+secret/very+secret/aa==")
        denied = self.tools.run("hlo-opt", "az://team/key/results.npz", env=wrong, code=2)
        assert "access denied: HTTP status 403" in denied.err and "very+secret" not in denied.err, denied.err
        assert len(self.tools.cached("az://team/cache", wrong).warnings()) == 1
        expired = {**token, "AZURE_STORAGE_SAS_TOKEN": token["AZURE_STORAGE_SAS_TOKEN"].replace("2099", "2021")}
        assert "HTTP status 403" in self.tools.run("hlo-opt", "az://team/key/results.npz", env=expired, code=2).err

    def killed_servers(self):
        """A server killed at random points: the values stay right, and the program ends soon."""
        for k in range(20):
            redis = self.use(Redis())
            runs = [self.tools.start("ir-dump", *MODEL, f"--cache=redis://{HOST}:{redis.port}", "--emit=values")
                    for _ in range(2)]
            time.sleep(random.uniform(0, 0.15))
            redis.kill()
            for run in runs:
                out, err = run.communicate(timeout=20)
                assert run.returncode == 0 and out == self.tools.expected and len(err.splitlines()) <= 1, err
        for k in range(3):
            server = self.use(S3rver(self.modules))
            runs = [self.tools.start("ir-dump", *MODEL, "--cache=s3://team/cache", "--emit=values",
                                     env=server.environment()) for _ in range(2)]
            time.sleep(random.uniform(0, 0.2))
            server.kill()
            for run in runs:
                out, err = run.communicate(timeout=30)
                assert run.returncode == 0 and out == self.tools.expected and len(err.splitlines()) <= 1, err

    def killed_writers(self):
        """Writers killed at random points leave whole entries or none."""
        redis = self.use(Redis())
        cache = f"redis://{HOST}:{redis.port}"
        for k in range(30):
            redis.command("FLUSHALL")
            run = self.tools.start("ir-dump", *MODEL, f"--cache={cache}", "--emit=values")
            time.sleep(random.uniform(0, 0.1))
            run.send_signal(signal.SIGKILL)
            run.communicate()
            assert not self.tools.cached(cache).warnings()


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
    suite = Suite(tools, servers_folder(arguments), arguments.full)
    tests = [suite.usage, suite.malformed_addresses, suite.transient_failures, suite.lasting_failures, suite.busy_server, suite.endless_answers, suite.signatures, suite.redirections, suite.certificates, suite.broken_uploads, suite.stalls]
    if shutil.which("redis-server"):
        tests += [suite.redis_round_trip, suite.redis_race, suite.redis_login, suite.redis_odd_answers, suite.redis_damaged, suite.redis_down,
                  suite.redis_stalls, suite.redis_hostile, suite.redis_cut]
    else:
        print("skipped: redis-server is not installed (tools/install-deps test)")
    if arguments.full and suite.modules:
        tests += [suite.s3_round_trip, suite.azure_round_trip, suite.killed_servers, suite.killed_writers]
    try:
        if tools.run("hlo-opt", "s3://b/x", code=None).err.find("this build has no") >= 0:
            print("skipped: this build has no remote stores")
            return 77
        # Most of the time they wait.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            passed = list(pool.map(suite.test, [test for test in tests if arguments.only in (None, test.__name__)]))
    finally:
        shutil.rmtree(tools.scratch, ignore_errors=True)
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
