#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the packages and tests them as their users would.

  packages.py [--keep=DIR]

Builds with tools/package; runs lintian; looks for the modules in their packages; installs the packages into a root with
only their declared dependencies, runs the tools there, removes the packages and looks for left-over files; runs the
static tools in an empty root; builds the page of --report from the source archive without node and npm; and repeats all
of it, with programs that use the library, in a clean Debian 12. Needs root, or user namespaces. Prints a line per trial and
`N passed, N failed`. Exit code 77, with the reason as the last line: the packaging tools are not installed, or all passed
except that no mirror is reached.
"""
import argparse
import contextlib
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIRROR = "http://deb.debian.org/debian"
SKIPPED = 77  # exit code of tests that cannot run on this machine
# What apt prints when it gets no answer.
UNREACHED = re.compile(r"Temporary failure resolving|Could not resolve|Could not connect|Connection (failed|refused|timed out)|"
                       r"Unable to connect|Network is unreachable|No route to host")
PACKAGES = ("hlokit", "hlokit-modules", "libhlokit-dev", "hlokit-doc")
# Libraries that the tools, frameworks and the Python package load, by package.
MODULES = {"hlokit": ("messages", "pjrt"), "hlokit-modules": ("onednn", "llvm", "mpi")}
# A user's first commands, in the top directory of the root.
COMMANDS = [
    "hlo-opt --passes=dce,cse example.hlo",
    "hlo-inspect hash example.hlo",
    "hlo-diff example.hlo example.hlo",
    "hlo-view example.hlo --format=dot",
    "hlo-reduce example.hlo --test='grep -q ENTRY {}' -o small.hlo",
    "hlo-run example.hlo --seed=1",
    "hlo-run example.hlo --device=v5e --timing-only --report=report",
    "ir-dump --model=mlp --emit=lazy",
    "ir-dump --model=mlp --steps=2 --profile=log --emit=hash",
    "hlo-profile --version",
    "hlo-profile monitor --address=localhost:1",
]
FAILING = COMMANDS[-1:]  # nothing serves that port


class Failed(Exception):
    pass


def run(*command, check=True, **flags):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", **flags)
    if check and result.returncode != 0:
        raise Failed(f"{' '.join(command)[:200]}: exit code {result.returncode}\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
    return result


def expect(condition, message):
    if not condition:
        raise Failed(message)


class Trials:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = []

    def skip(self, name, why):
        self.skipped.append(f"{name}: {why}")
        print(f"{name:<24} skipped: {why}", flush=True)

    def end(self):
        """Prints the last lines; returns the exit code."""
        print(f"{self.passed} passed, {self.failed} failed")
        if self.failed:
            return 1
        if self.skipped:
            print(f"skipped: {'; '.join(self.skipped)}")
        return SKIPPED if self.skipped else 0

    @contextlib.contextmanager
    def trial(self, name):
        try:
            yield
            self.passed += 1
            print(f"{name:<24} ok", flush=True)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            self.failed += 1
            text = "\n  | ".join(str(error).splitlines())
            print(f"{name:<24} FAILED\n  | {text}", flush=True)


def make_debian(trials, name, root, *flags):
    """Makes a root with the minimal base of Debian 12; returns whether there is one. Only where it cannot be had is it skipped."""
    if shutil.which("mmdebstrap") is None:
        trials.skip(name, "mmdebstrap is not installed: tools/install-deps package")
        return False
    made = run("mmdebstrap", "--variant=minbase", *flags, "bookworm", root, MIRROR, check=False)
    if made.returncode != 0 and UNREACHED.search(made.stderr):
        trials.skip(name, f"{MIRROR} is not reached")
        return False
    with trials.trial(name):
        expect(made.returncode == 0, f"mmdebstrap: exit code {made.returncode}\n{made.stderr[-3000:]}")
    return made.returncode == 0


def installed_packages():
    """Maps the names of installed packages, and of those they provide, to their stanzas."""
    packages, provided = {}, {}
    for stanza in run("dpkg-query", "-s", *run("dpkg-query", "-W", "-f", "${Package}\n").stdout.split(), check=False).stdout.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][A-Za-z-]*): (.*)$", stanza, re.M))
        if "install ok installed" not in fields.get("Status", ""):
            continue
        packages[fields["Package"]] = (fields, stanza)
        for name in re.split(r",\s*", fields.get("Provides", "")):
            provided.setdefault(name.split(" ")[0], fields["Package"])
    return packages, provided


def closure(depends):
    """Stanzas of all packages that a Depends field requires, by name."""
    packages, provided = installed_packages()
    wanted, found = [depends], {}
    while wanted:
        for group in re.split(r",\s*", wanted.pop()):
            names = [re.sub(r"[ :(\[].*", "", choice.strip()) for choice in group.split("|")]
            names = [provided.get(name, name) if name not in packages else name for name in names]
            name = next((name for name in names if name in packages), None)
            if not group.strip() or name in found:
                continue
            if name is None:
                raise Failed(f"{group} is not installed here")
            fields, stanza = packages[name]
            found[name] = stanza
            wanted += [fields.get("Pre-Depends", ""), fields.get("Depends", "")]
    return found


def make_root(root, stanzas):
    """A root with the files of packages, and dpkg's database of them."""
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "tmp", "dev", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
        os.makedirs(os.path.join(root, folder))
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", os.path.join(root, name))
    with open(os.path.join(root, "var/lib/dpkg/status"), "w", encoding="utf-8") as status:
        status.write("\n\n".join(stanzas.values()) + "\n\n")
    paths = set()
    for path in run("dpkg", "-L", *stanzas).stdout.splitlines():
        # Its real location, after the links of a merged /usr.
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if os.path.islink(path) or os.path.isfile(path):
            paths.add(path.lstrip("/"))
    paths -= {"bin", "sbin", "lib", "lib64"}
    paths = {path for path in paths if not path.startswith("usr/share/doc/")}
    run("sh", "-c", f"tar -C / -c --files-from=- | tar -C {shlex.quote(root)} -x", input="\n".join(sorted(paths)))


def contents(root):
    """Every path of a root except those that programs write for themselves."""
    paths = set()
    for folder, folders, files in os.walk(root):
        inside = os.path.relpath(folder, root)
        if inside.split("/")[0] in ("tmp", "proc", "dev", "sys") or inside.startswith(("var/lib/dpkg", "var/log", "var/cache", "var/lib/apt")):
            folders.clear()
            continue
        paths |= {os.path.join(inside, name) for name in folders + files}
    return paths


def outputs(folder, tools, prefix=()):
    """The output of the commands, and the page that one of them writes; the directory is unchanged afterwards."""
    written = [os.path.join(folder, name) for name in ("example.hlo", "report", "log")]
    shutil.copy(os.path.join(TOP, "examples/transformer_block.hlo"), written[0])
    results = []
    for command in COMMANDS:
        words = command.split()
        result = run(*prefix, tools + words[0], *words[1:], check=False, cwd=folder)
        expect(result.returncode == (1 if command in FAILING else 0), f"{command}: exit code {result.returncode}: {result.stderr}")
        results.append((command, result.returncode, result.stdout))
    with open(os.path.join(folder, "report/index.html"), encoding="utf-8") as page:
        results.append(("the page of --report", 0, page.read()))
    for path in written:
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return results


def compare_outputs(root, expected, tools):
    for (command, code, text), (_, expected_code, expected_text) in zip(outputs(root, tools, ("chroot", root)), expected):
        expect(code == expected_code, f"{command}: exit code {code}, not {expected_code}")
        expect(text == expected_text, f"{command}: not what the build itself prints")


def try_lintian(trials, debs):
    with trials.trial("lintian"):
        result = run("lintian", "--fail-on", "error", *debs, check=False)
        for line in result.stdout.splitlines():
            print(f"  {line}")
        expect(result.returncode == 0, "there are errors")


def try_modules(trials, debs):
    with trials.trial("modules"):
        for deb, package in zip(debs, PACKAGES):
            found = set(re.findall(r" \./usr/lib/hlokit/(.*\.so)$", run("dpkg-deb", "-c", deb).stdout, re.M))
            wanted = {f"libhlokit_{name}.so" for name in MODULES.get(package, ())}
            expect(found == wanted, f"{package} has the modules {sorted(found)}, not {sorted(wanted)}")
        depends = run("dpkg-deb", "-f", debs[0], "Depends").stdout
        expect(not re.search("dnnl|llvm|mpi", depends), f"hlokit needs libraries of its modules: {depends}")
        recommends = run("dpkg-deb", "-f", debs[0], "Recommends").stdout
        expect("hlokit-modules" in recommends, f"hlokit does not recommend its modules: {recommends}")


def try_manual_pages(trials):
    """lintian checks them with groff; mandoc is stricter."""
    with trials.trial("manual pages"):
        pages = sorted(glob.glob(f"{TOP}/build/package/man/*.1.gz"))
        names = {os.path.basename(page).removesuffix(".1.gz") for page in pages}
        expect({"hlo-opt", "hlo-inspect", "hlo-inspect-hash", "hlo-run", "ir-dump", "hlo-profile-capture"} <= names,
               f"there are pages only for {sorted(names)}")
        for page in pages:
            result = run("mandoc", "-T", "lint", "-W", "warning", page, check=False)
            expect(result.stdout + result.stderr == "", result.stdout + result.stderr)
            text = run("mandoc", "-T", "ascii", page).stdout
            text = re.sub(".\x08", "", text)  # bold type
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO"):
                expect(re.search(f"^{section}$", text, re.M), f"{page} has no {section}")


def try_own_root(trials, debs, expected, scratch):
    root = os.path.join(scratch, "root")
    with trials.trial("declared dependencies"):
        depends = run("dpkg-deb", "-f", debs[0], "Depends").stdout.strip()
        stanzas = closure(depends)
        make_root(root, stanzas)
        before = contents(root)
        run("dpkg", f"--root={root}", "--install", debs[0])
        compare_outputs(root, expected, "/usr/bin/")
        for name in ("hlo-opt.1.gz", "hlo-inspect-hash.1.gz"):
            expect(os.path.exists(f"{root}/usr/share/man/man1/{name}"), f"there is no manual page {name}")
    with trials.trial("removal"):
        run("dpkg", f"--root={root}", "--purge", "hlokit")
        left = contents(root) - before
        expect(not left, f"left: {sorted(left)[:20]}")


def try_static(trials, archive, expected, scratch):
    with trials.trial("static tools"):
        run("tar", "-xf", archive, "-C", scratch)
        folder = archive.split("/")[-1].removesuffix(".tar.xz")
        root = os.path.join(scratch, "empty")
        shutil.copytree(os.path.join(scratch, folder), root)
        for tool in os.listdir(f"{root}/bin"):
            expect("statically linked" in run("ldd", f"{root}/bin/{tool}").stdout, f"{tool} needs libraries")
        compare_outputs(root, expected, "/bin/")
        expect(os.listdir(f"{root}/licenses"), "there are no licenses of what is linked in")


def try_source(trials, archive, scratch):
    """The archive configures and has its page and its commit, without node, npm and git."""
    with trials.trial("source archive"):
        run("tar", "-xf", archive, "-C", scratch)
        top = os.path.join(scratch, archive.split("/")[-1].removesuffix(".tar.xz"))
        build = os.path.join(scratch, "source-build")
        run("cmake", "-S", top, "-B", build, "-G", "Ninja", "-DHLOKIT_TESTS=OFF", "-DHLOKIT_BENCH=OFF",
            "-DHLOKIT_NODE=HLOKIT_NODE-NOTFOUND", "-DHLOKIT_NPM=HLOKIT_NPM-NOTFOUND",
            "-DCMAKE_PROGRAM_PATH=", "-DCMAKE_DISABLE_FIND_PACKAGE_Git=ON")
        run("ninja", "-C", build, "generated/report_page_text.cc", "generated/view_page_text.cc",
            "generated/layout_worker_text.cc", "generated/version.cc")
        for page in ("report_page", "view_page", "layout_worker"):
            with open(f"{build}/generated/{page}_text.cc", encoding="utf-8") as made, \
                 open(f"{top}/tools/web/bundle/{page}_text.cc", encoding="utf-8") as bundled:
                expect(made.read() == bundled.read(), f"{page} is not the bundled one")
        commit = run("git", "-C", TOP, "rev-parse", "HEAD").stdout.strip()
        with open(f"{build}/generated/version.cc", encoding="utf-8") as file:
            found = re.search(r'kCommit = "([0-9a-f]+)"', file.read())
        expect(found and commit.startswith(found[1]), "the archive does not know its commit")


def try_clean_debian(trials, debs, expected, scratch):
    name = "clean Debian 12"
    root = os.path.join(scratch, "debian")
    if not make_debian(trials, name, root):
        return
    shutil.copy("/etc/resolv.conf", f"{root}/etc/resolv.conf")
    apt = ("chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-qq", "--no-install-recommends")
    run(*apt, "update")
    os.makedirs(f"{root}/tmp/debs")
    for deb in debs:
        shutil.copy(deb, f"{root}/tmp/debs")
    paths = [f"/tmp/debs/{os.path.basename(deb)}" for deb in debs]
    with trials.trial(name + ", tools"):
        run(*apt, "install", paths[0])
        compare_outputs(root, expected, "/usr/bin/")
    with trials.trial(name + ", library"):
        run(*apt, "install", "cmake", "g++", "make", "pkg-config", *paths)
        shutil.copytree(os.path.join(TOP, "tests/consumer"), f"{root}/tmp/consumer")
        shell = lambda script: run("chroot", root, "sh", "-ec", script)
        shell("cd /tmp/consumer && cmake -S . -B build >/dev/null && cmake --build build && build/consumer")
        shell("cd /tmp/consumer && g++ -std=c++20 main.cc -o by-pkg-config $(pkg-config --cflags --libs hlokit) && ./by-pkg-config")
    with trials.trial(name + ", removal"):
        installed = {line for package in PACKAGES
                     for line in run("chroot", root, "dpkg", "-L", package).stdout.splitlines()
                     if os.path.isfile(root + line) or "hlokit" in line}
        expect(installed, "nothing was installed")
        run(*apt, "purge", *PACKAGES)
        left = sorted(path for path in installed if os.path.lexists(root + path))
        expect(not left, f"left: {left[:20]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="leave the packages in this folder")
    flags = parser.parse_args()
    missing = [program for program in ("help2man", "lintian", "mandoc", "dpkg-shlibdeps") if shutil.which(program) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed (tools/install-deps package)")
        return SKIPPED
    if os.geteuid() != 0:
        os.execvp("unshare", ["unshare", "--map-auto", "--map-root-user", "--mount", sys.executable, *sys.argv])
    trials = Trials()
    with tempfile.TemporaryDirectory(prefix="hlokit-packages-") as scratch:
        os.chmod(scratch, 0o755)
        dist = os.path.abspath(flags.keep) if flags.keep else os.path.join(scratch, "dist")
        with trials.trial("tools/package"):
            print(run(f"{TOP}/tools/package", f"--output={dist}", "deb", "source", "static").stdout, end="")
        if trials.failed == 0:
            debs = [glob.glob(f"{dist}/{name}_*.deb")[0] for name in PACKAGES]
            # Each root must print the same as the build itself.
            with trials.trial("commands of the build"):
                expected = outputs(scratch, os.path.join(TOP, "build/package/bin/"))
        if trials.failed == 0:
            try_lintian(trials, debs)
            try_modules(trials, debs)
            try_manual_pages(trials)
            try_own_root(trials, debs, expected, scratch)
            try_static(trials, glob.glob(f"{dist}/hlokit-*-tools.tar.xz")[0], expected, scratch)
            try_source(trials, [path for path in glob.glob(f"{dist}/hlokit-*.tar.xz") if "linux" not in path][0], scratch)
            try_clean_debian(trials, debs, expected, scratch)
    return trials.end()


if __name__ == "__main__":
    sys.exit(main())
