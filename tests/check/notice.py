#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares NOTICE with what the binaries of a build contain.

  notice.py SOURCE BUILD [--ninja=PROGRAM] [--pages=FILE]

Contained are: the headers that their sources include, by the dependencies that the compiler wrote (code of templates and
inline functions is in the binaries); the shared libraries that they need, and those that they load by name; the static
libraries that the static tools are linked with; the npm packages of the pages, one a line of FILE. Each must be of a row
of LIBRARIES, and NOTICE must have an entry `* NAME, LICENSE` for it, with the text of a license that asks for that. Exits
with 1, and says what is missing, otherwise.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Name in NOTICE; headers below /usr/include or the like; names of libraries, without lib and .so or .a.
LIBRARIES = (
    ("Abseil", r"absl/", r"absl_.*"),
    ("CLI11", r"CLI/", None),
    ("GCC", r"(x86_64-linux-gnu/|aarch64-linux-gnu/)?c\+\+/|lib/gcc/|.*/lib/gcc/", r"stdc\+\+|gcc_s|gcc|gomp|atomic|quadmath"),
    ("LLVM", r"llvm(-c)?-\d+/|llvm(-c)?/", r"LLVM.*|LLVM-\d+"),
    ("Open MPI", r".*openmpi/", r"mpi|mpi_cxx|open-rte|open-pal"),
    ("OpenSSL", r"(\w+-linux-gnu/)?openssl/", r"ssl|crypto"),
    ("Python", r"(\w+-linux-gnu/)?python3[.\d]*/|.*/include/python3[.\d]*/", r"python3.*"),
    ("RE2", r"re2/", r"re2"),
    ("c-ares", r"ares.*\.h", r"cares"),
    ("curl", r"(\w+-linux-gnu/)?curl/", r"curl(-gnutls)?"),
    ("gRPC", r"grpc(pp)?/|grpc\+\+/", r"grpc.*|gpr|upb|address_sorting"),
    ("hiredis", r"hiredis/", r"hiredis"),
    ("nlohmann-json", r"nlohmann/", None),
    ("oneDNN", r"oneapi/|dnnl.*\.h", r"dnnl"),
    ("protobuf", r"google/protobuf/", r"protobuf(-lite)?"),
    ("pugixml", r"pugi(xml|config)\.hpp", r"pugixml"),
    ("pybind11", r".*pybind11/", None),
    ("xxHash", r"xxh.*\.h", r"xxhash"),
    ("zlib", r"zlib\.h|zconf\.h", r"z"),
    # All else of the system: the C library, and the interface of the kernel.
    ("glibc", r"(\w+-linux-gnu/)?(asm|bits|gnu|sys)/|(arpa|net|netinet|linux|asm-generic|rpc)/|[a-z0-9_-]+\.h",
     r"c|m|dl|pthread|rt|resolv|util|mvec|anl|ld-linux-.*"),
)
# Licenses whose text has to go with binaries, by a phrase of it.
TEXTS = {"MIT License": "Permission is hereby granted", "BSD 2-Clause License": "Redistributions in binary form",
         "BSD 3-Clause License": "Redistributions in binary form"}
# Only used as shared libraries, or in modules that are, and so with their own texts where they are distributed.
SHARED = {"c-ares", "Open MPI", "RE2"}


def name_of(text, column):
    for row in LIBRARIES:
        if row[column] and re.match(f"(?:{row[column]})", text) and (column == 1 or re.fullmatch(row[column], text)):
            return row[0]
    return None


def headers(ninja, build):
    """Included files outside of the sources and the build, by one object that includes them."""
    listing = subprocess.run([ninja, "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found, target = {}, ""
    for line in listing.splitlines():
        if line and line[0] != " ":
            target = line.split(": #deps")[0]
        elif line.strip() and not target.startswith(("tests/", "bench/")):
            found.setdefault(line.strip(), target)
    return found


def header_name(path):
    """The path as it is included."""
    for root in ("/usr/local/include/", "/usr/include/", "/usr/"):
        if path.startswith(root):
            return path[len(root):]
    return path


def needed(build):
    binaries = [*build.glob("bin/*"), *build.glob("lib/hlokit/*.so"), *build.glob("python/hlokit/_hlokit*.so")]
    for binary in binaries:
        dynamic = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
        for soname in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            yield soname, binary.name


def loaded(build):
    """Libraries that are loaded by name: the build has their sonames as macros."""
    commands = build / "compile_commands.json"
    if commands.exists():
        for soname in re.findall(r'-DHLOKIT_LIB\w+=\\*"?\\*"?(lib[\w.+-]+)', commands.read_text()):
            yield soname, "dlopen"


def static_libraries(build):
    package = build / "hlokit.pc"
    requires = re.search(r"^Requires: (.*)", package.read_text(), re.M) if package.exists() else None
    if not requires:
        return
    modules = [*re.findall(r"[A-Za-z][\w+-]*", requires[1]), "re2"]
    done = subprocess.run(["pkg-config", "--static", "--libs-only-l", *modules], capture_output=True, text=True)
    for name in re.findall(r"-l(\S+)", done.stdout):
        yield f"lib{name}.a", "static tools"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ninja", default="ninja")
    parser.add_argument("--pages", type=pathlib.Path)
    arguments = parser.parse_args()
    source, build = arguments.source.resolve(), arguments.build.resolve()
    notice = (source / "NOTICE").read_text()
    errors, wanted = [], {}
    if (build / ".ninja_deps").exists():
        for path, target in headers(arguments.ninja, build).items():
            if not path.startswith("/"):
                continue  # of the build
            if path.startswith((f"{source}/", f"{build}/")):
                continue
            name = name_of(header_name(path), 1)
            if name is None:
                errors.append(f"{path}, which {target} includes, is of no known library")
            wanted.setdefault(name, path)
    else:
        print("skipped: headers, of which only ninja knows the users")
    count_headers = len(wanted)
    for soname, user in [*needed(build), *loaded(build), *static_libraries(build)]:
        base = re.sub(r"\.(so|a)(\..*)?$", "", soname)
        base = base.removeprefix("lib")
        base = re.sub(r"-[\d.]+$", "", base) if base.startswith("LLVM") else base
        if base.startswith("hlokit"):
            continue
        name = name_of(base, 2)
        if name is None:
            errors.append(f"{soname}, which {user} needs, is of no known library")
        wanted.setdefault(name, soname)
    wanted.pop(None, None)
    for page in arguments.pages.read_text().split() if arguments.pages and arguments.pages.exists() else ():
        wanted[page] = "the pages"
    for name, why in sorted(wanted.items()):
        entry = re.search(rf"^\* {re.escape(name)}, ([^\n]*(?:\n(?!\* |\n\n\S).*)*)", notice, re.M)
        if entry is None:
            errors.append(f"NOTICE does not name {name} ({why})")
            continue
        phrase = next((phrase for license, phrase in TEXTS.items() if entry[1].startswith(license)), None)
        if phrase and name not in SHARED and phrase not in entry[1]:
            errors.append(f"NOTICE does not have the text of the license of {name}")
    # The fields of messages and structs follow those of other projects.
    for name in ("XLA", "StableHLO", "PyTorch"):
        if not re.search(rf"^\* {name} ", notice, re.M):
            errors.append(f"NOTICE does not name {name}, whose interfaces are declared")
    print("\n".join(errors) if errors else f"{len(wanted)} libraries, {count_headers} of them by headers, are in NOTICE")
    return 1 if errors or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
