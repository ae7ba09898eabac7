#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes each message of a suite of XLA's messages: bytes and text each give both back byte for byte, JSON the
bytes; modules that are read keep everything of their file.

  proto_suite.py HLO-TRANSLATE DIR

DIR has modules/ with index.tsv, whose first columns are name and message, and fields/ with files named after their
message. Ends with `N passed, N failed`.
"""
import pathlib
import subprocess
import sys
import tempfile


def main():
    translate, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rows = [line.split("\t")[:2] for line in (folder / "index.tsv").read_text().splitlines()[1:]]
    messages = [(folder / "modules" / name, message) for name, message in rows]
    messages += [(path.with_suffix(""), path.name.split(".")[0]) for path in sorted((folder / "fields").glob("*.pb"))]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out"

        def run(*arguments, target=out):
            done = subprocess.run([translate, *map(str, arguments), "-o", str(target)], capture_output=True, check=False)
            return target.read_bytes() if done.returncode == 0 else done.stderr

        def expect(what, found, wanted):
            nonlocal passed, failed
            if found == wanted:
                passed += 1
            else:
                failed += 1
                print(f"FAILED: {what}: {found[:200]!r}")

        for path, message in messages:
            binary, text = pathlib.Path(f"{path}.pb"), pathlib.Path(f"{path}.pbtxt")
            forms = {"proto": binary, "textproto": text}
            for source in forms.values():
                for to, wanted in forms.items():
                    found = run(f"--message={message}", f"--to={to}", source)
                    expect(f"{source.name} to {to}", found, wanted.read_bytes())
            as_json = pathlib.Path(scratch) / "message.json"
            run(f"--message={message}", "--to=proto-json", binary, target=as_json)
            expect(f"{binary.name} through JSON", run(f"--message={message}", "--to=proto", as_json), binary.read_bytes())
            with_arguments = pathlib.Path(f"{path}.hlo_unoptimized_snapshot.pb")
            if with_arguments.exists():
                expect(with_arguments.name, run(f"--message={message}", "--to=proto", with_arguments), binary.read_bytes())
                target = pathlib.Path(scratch) / "out.hlo_unoptimized_snapshot.pb"
                expect(f"{binary.name} with arguments after it", run(f"--message={message}", binary, target=target),
                       with_arguments.read_bytes())
            # Those with a module that can be read: through the module.
            if subprocess.run([translate, "--no-verify", "--to=hlo", str(binary), "-o", "/dev/null"], capture_output=True,
                              check=False).returncode == 0:
                for to, wanted in forms.items():
                    found = run("--no-verify", f"--to={to}", binary)
                    expect(f"{binary.name} through the module to {to}", found, wanted.read_bytes())
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
