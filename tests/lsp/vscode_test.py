#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds, tests and packages the extension of VS Code: vscode_test.py BIN WORK

In WORK, a copy of editors/vscode with the packages of its lock file: its types, its grammars, its client against the
server of BIN, and hlo.vsix. Exits with 77, and says why, without node and npm or without the packages.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
WANTED = {"extension/package.json", "extension/dist/extension.js", "extension/language-configuration.json",
          "extension/syntaxes/hlo.tmLanguage.json", "extension/syntaxes/tpu-machine.tmLanguage.json",
          "extension/syntaxes/hlo-pipeline.tmLanguage.json"}


def main() -> int:
    bin_folder, work = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    if not shutil.which("npm") or not shutil.which("node"):
        print("skipped: there is no node, or no npm")
        return SKIPPED
    source = TOP / "editors/vscode"
    lock = (source / "package-lock.json").read_text()
    installed = work / "installed"
    work.mkdir(parents=True, exist_ok=True)
    for entry in work.iterdir():
        if entry.name not in ("node_modules", "installed"):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(source, work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    shutil.copy(TOP / "LICENSE", work / "LICENSE")
    if not installed.exists() or installed.read_text() != lock:
        # No package has a script that it needs.
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], cwd=work,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"skipped: the packages cannot be fetched: {done.stderr[-400:]}")
            return SKIPPED
        installed.write_text(lock)
    environment = {**os.environ, "HLO_LSP_SERVER": str(bin_folder / "hlo-lsp-server")}
    for script in ("test", "package"):
        if subprocess.run(["npm", "run", "--silent", script], cwd=work, env=environment, check=False, timeout=600).returncode != 0:
            print(f"npm run {script} failed")
            return 1
    names = set(zipfile.ZipFile(work / "hlo.vsix").namelist())
    left = WANTED - names
    unwanted = [name for name in names if "/node_modules/" in name or "/src/" in name or "/test/" in name]
    if left or unwanted:
        print(f"hlo.vsix lacks {sorted(left)}, and has {unwanted[:5]}")
        return 1
    print(f"hlo.vsix has {len(names)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
