#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real programs on synthetic arguments: the same bits on one thread and on two, finite or with a known reason.

  real_programs.py HLO_RUN DIR [--table=FILE] [NAME...]

DIR contains NAME.hlo. The table has the expected result of each program; names select some of them. Prints a line for
each, with the seconds on one thread and on two; the last line counts; exit code 1 if one fails.
"""
import argparse
import hashlib
import pathlib
import re
import subprocess
import sys
import time


def run(command):
  """Digest of standard output, standard error, exit code, seconds."""
  start = time.monotonic()
  process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
  seconds = time.monotonic() - start
  return hashlib.sha256(process.stdout).hexdigest(), process.stderr.decode(errors="replace"), process.returncode, seconds


def check(hlo_run, path, expected, first):
  """The error, or None; and the seconds."""
  base = [hlo_run, str(path), "--seed=1"]
  digest, errors, code, one = run(base + ["--num-threads=1"])
  if code != 0:
    return f"exit code {code}: {errors.strip()[:300]}", (one, 0)
  again, _, _, two = run(base + ["--num-threads=2"])
  if again != digest:
    return "other values on two threads than on one", (one, two)
  nonfinite = re.search(r"have (\d+) NaN and (\d+) infinite", errors)
  if expected == "finite":
    return (f"{nonfinite.group(1)} NaN and {nonfinite.group(2)} infinite values" if nonfinite else None), (one, two)
  if not nonfinite:
    return "finite, but the table has a reason why it is not", (one, two)
  _, errors, code, _ = run(base + ["--debug-nans", "--no-print-results"])
  found = re.search(r"error: ([^:]+): produces (a NaN|an infinity)", errors)
  if code != 1 or not found or found.group(1) != first:
    return f"the first value that is not finite is made by {found.group(1) if found else 'nothing'}, not {first}", (one, two)
  return None, (one, two)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("hlo_run")
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--table", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".tsv"))
  parser.add_argument("names", nargs="*")
  flags = parser.parse_args()
  rows = [line.split("\t") for line in flags.table.read_text().splitlines() if line and not line.startswith("#")]
  if flags.names:
    rows = [row for row in rows if row[0] in flags.names]
  failed = 0
  for name, expected, *rest in rows:
    problem, (one, two) = check(flags.hlo_run, flags.folder / (name + ".hlo"), expected, rest[0] if rest else "")
    failed += problem is not None
    print(f"{name:60} {one:8.2f} s {two:8.2f} s  {problem or expected}", flush=True)
  print(f"{len(rows) - failed} of {len(rows)} programs as expected")
  return 1 if failed or not rows else 0


if __name__ == "__main__":
  sys.exit(main())
