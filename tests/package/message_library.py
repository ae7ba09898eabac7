#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modules that one process may load share the descriptions of protobuf messages.

  message_library.py FILE... [--linked=FILE...]

protobuf ends a process in which two objects register the same .proto file. The files are modules of a build: none may
define messages. Those after --linked use messages, so they must also need libhlokit_messages.so. The last line is
`N passed, N failed`.
"""
import argparse
import pathlib
import re
import subprocess
import sys

MESSAGES = "libhlokit_messages.so"
PROTOS = ("parser/proto/xla_data.proto", "parser/proto/hlo.proto", "parser/proto/xla.proto")


def readelf(flag, path):
    done = subprocess.run(["readelf", "--wide", flag, path], capture_output=True, text=True, check=True)
    return done.stdout


def needed(path):
    """Names of the libraries that the dynamic section names."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path))


def registered(path):
    """The .proto files whose serialized descriptors are in the file, which a stripped one has too."""
    data = pathlib.Path(path).read_bytes()
    # Field 1 of a FileDescriptorProto, the name, is its first.
    return [name for name in PROTOS if b"\n" + bytes([len(name)]) + name.encode() in data]


def defined(path):
    """Symbols of descriptors that the file defines, local ones included."""
    table = readelf("--symbols", path)
    return sorted(set(re.findall(r"^.* (?!UND)\S+ (descriptor_table_\S+proto)$", table, re.M)))


def faults(path, linked):
    if linked and MESSAGES not in needed(path):
        yield f"its dynamic section does not name {MESSAGES}"
    if protos := registered(path):
        yield f"it has the messages of {', '.join(protos)}"
    if symbols := defined(path):
        yield f"it defines {', '.join(symbols)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=[])
    parser.add_argument("--linked", nargs="*", default=[])
    parser.add_argument("--messages", required=True, help=f"{MESSAGES}, which must have all of them")
    flags = parser.parse_args()
    passed = failed = 0
    missing = set(PROTOS) - set(registered(flags.messages))
    results = [(flags.messages, [f"it lacks the messages of {', '.join(sorted(missing))}"] if missing else [])]
    results += [(path, list(faults(path, linked=False))) for path in flags.files]
    results += [(path, list(faults(path, linked=True))) for path in flags.linked]
    for path, found in results:
        passed, failed = passed + (not found), failed + bool(found)
        for fault in found:
            print(f"{path}: {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
