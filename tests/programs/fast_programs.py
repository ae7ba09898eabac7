#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real programs on the fast engine and on the exact one, and compares them instruction by instruction.

  fast_programs.py HLO_RUN DIR [--program-seconds=X] [--isolate-seconds=X] [--seconds=X] [--max-bytes=N] [NAME...]

DIR contains NAME.hlo; names select some. A program that the exact engine runs within the limits must run on the fast
one, with the same bits on one thread and on two, and no NaN or infinity unless the exact one has some too. Each of its
instructions, run by itself on the values of the exact run as far as the time allows, must be within the bounds of the
fast engine.

Prints a line for each program: seconds on both engines, how many results differ in any bit, and the largest difference
relative to the largest magnitude of its array; and the instruction that differs most. Programs that do not run within
the limits are counted by reason. --seconds ends the test early. Exit code 1 if a program fails.
"""
import argparse
import array
import collections
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

MAX_COMPARED = 1_000_000  # elements of a result; larger ones are sampled


def values_of(path):
  """The values of a .npy file as a list of floats, or None if they are not floats of 16 to 64 bits; and its bytes."""
  data = path.read_bytes()
  version = data[6]
  size, start = (struct.unpack("<H", data[8:10])[0], 10) if version == 1 else (struct.unpack("<I", data[8:12])[0], 12)
  header = data[start:start + size].decode("latin-1")
  body = data[start + size:]
  kind = re.search(r"'descr': '([^']*)'", header)
  kind = kind.group(1) if kind else ""
  if kind in ("<f4", "<f8"):
    numbers = array.array({"<f4": "f", "<f8": "d"}[kind])
    numbers.frombytes(body)
    return numbers, body
  if kind == "<f2":
    return [v[0] for v in struct.iter_unpack("<e", body)], body
  if kind in ("<V2", "|V2", "bfloat16"):
    wide = array.array("f")
    wide.frombytes(b"".join(b"\0\0" + body[i:i + 2] for i in range(0, len(body), 2)))
    return wide, body
  return None, body


def run(hlo_run, path, flags, *more):
  """Seconds, exit code and standard error of a run."""
  start = time.monotonic()
  command = [hlo_run, str(path), "--seed=1", "--no-print-results", f"--max-bytes={flags.max_bytes}",
             f"--max-seconds={flags.program_seconds}", *more]
  process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
  return time.monotonic() - start, process.returncode, process.stderr.decode(errors="replace")


def differences(exact, fast):
  """The number of results that differ, the largest relative difference, and what is wrong, or None."""
  count, worst = 0, 0.0
  names = sorted(p.name for p in exact.iterdir())
  if names != sorted(p.name for p in fast.iterdir()):
    return 0, 0.0, "other results"
  for name in names:
    expected, expected_bytes = values_of(exact / name)
    actual, actual_bytes = values_of(fast / name)
    if expected_bytes == actual_bytes:
      continue
    count += 1
    if expected is None:
      # Integers may follow floats that differ: an index of the largest one, a token.
      continue
    step = 1 + len(expected) // MAX_COMPARED
    expected, actual = expected[::step], actual[::step]
    largest = max((abs(v) for v in expected if math.isfinite(v)), default=0.0)
    for e, a in zip(expected, actual):
      if e == a or (math.isnan(e) and math.isnan(a)):
        continue
      if math.isfinite(e) and not math.isfinite(a):
        return count, math.inf, f"{name} has {a} where the exact engine has {e}"
      if math.isfinite(e) and largest > 0:
        worst = max(worst, abs(e - a) / largest)
  return count, worst, None


def isolate(hlo_run, path, flags, folder, *more):
  """The worst instruction that is listed, or None; how many instructions ran; and what is wrong, or None."""
  listed = folder / "list.json"
  _, code, errors = run(
      hlo_run, path, flags, "--engine=fast", "--isolate", "--isolate-distinct", f"--isolate-json={listed}",
      f"--isolate-max-seconds={flags.isolate_seconds / 2}", *more, "-o", str(folder / "list.txt"))
  if code not in (0, 1) or not listed.exists():
    return None, 0, f"--isolate ends with {code}: {errors.strip()[:200]}"
  result = json.loads(listed.read_text())
  worst = result["differences"][0] if result["differences"] else None
  text = worst and f"{worst['instruction']} ({worst['opcode']}), {worst['ulps']:.4g} ulps, {worst['absolute']:.3g}"
  return text, result["instructions"], None


def check(hlo_run, path, flags, folder):
  """A line of figures; what is wrong, or None; and why the program does not run, or None."""
  exact, one, two = folder / "exact", folder / "one", folder / "two"
  slow, code, errors = run(hlo_run, path, flags, f"--results-npy={exact}")
  if code != 0:
    reason = re.search(r"error: (.*)", errors)
    return "", None, re.sub(r"\d+", "N", reason.group(1))[:70] if reason else f"exit code {code}"
  fast, code, errors = run(hlo_run, path, flags, "--engine=fast", "--num-threads=1", f"--results-npy={one}")
  if code != 0:
    return "", f"fails on the fast engine: {errors.strip()[:200]}", None
  run(hlo_run, path, flags, "--engine=fast", "--num-threads=2", f"--results-npy={two}")
  if any(p.read_bytes() != (two / p.name).read_bytes() for p in one.iterdir()):
    return "", "other bits on two threads than on one", None
  count, worst, problem = differences(exact, one)
  instruction, ran, failed = isolate(hlo_run, path, flags, folder)
  most, _, failed_exactly = isolate(hlo_run, path, flags, folder, "--tolerance=exact")
  problem = problem or failed or failed_exactly
  line = (f"exact {slow:7.2f} s  fast {fast:7.2f} s  {count:4} results differ, by {worst:.2e}; of {ran} instructions alone "
          f"the worst: {most or 'none differs'}")
  if problem is None and instruction:
    problem = f"beyond its bounds: {instruction}"
  return line, problem, None


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("hlo_run")
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--program-seconds", type=float, default=60)
  parser.add_argument("--isolate-seconds", type=float, default=20)
  parser.add_argument("--seconds", type=float, default=math.inf)
  parser.add_argument("--max-bytes", type=int, default=6 << 30)
  parser.add_argument("--minimum", type=int, default=1, help="programs that must run")
  parser.add_argument("names", nargs="*")
  flags = parser.parse_intermixed_args()
  paths = sorted(p for p in flags.folder.glob("*.hlo") if not flags.names or p.stem in flags.names)
  begin = time.monotonic()
  ran = failed = left = 0
  reasons = collections.Counter()
  for path in paths:
    if time.monotonic() - begin > flags.seconds:
      left += 1
      continue
    with tempfile.TemporaryDirectory() as folder:
      line, problem, reason = check(flags.hlo_run, path, flags, pathlib.Path(folder))
    if reason:
      reasons[reason] += 1
      continue
    ran += 1
    failed += problem is not None
    print(f"{path.stem:60} {line}  {problem or ''}", flush=True)
  for reason, count in reasons.most_common():
    print(f"{count} do not run: {reason}")
  if left:
    print(f"{left} are left: no time")
  print(f"{ran - failed} of {ran} programs agree")
  if ran < flags.minimum:
    print(f"fewer than {flags.minimum} programs ran (--minimum)")
  return 1 if failed or ran < flags.minimum else 0


if __name__ == "__main__":
  sys.exit(main())
