# SPDX-License-Identifier: Apache-2.0
"""The tools as tests of stores run them: without the credentials of the caller, and with no secret in their output."""
import os
import random
import subprocess
import tempfile
import threading
import time

from servers import peak_mib

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


def kill_while_in_use(tools, server, cache, env=None):
    """Kills the server at a random point of two runs: their values stay right, and they end soon."""
    running = [tools.start("ir-dump", *MODEL, f"--cache={cache}", "--emit=values", env=env) for _ in range(2)]
    time.sleep(random.uniform(0, 0.2))
    server.kill()
    for process in running:
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0 and out == tools.expected and len(err.splitlines()) <= 1, err


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
