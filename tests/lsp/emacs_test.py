#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hlo-lsp-server with Emacs's client, eglot: emacs_test.py BIN

Runs emacs_test.el in a batch Emacs after the configuration of docs/editors.md. Exits with 77, and says so, if there is
no Emacs, or no eglot.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    emacs = shutil.which("emacs")
    has_eglot = ["--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]
    if emacs is None or subprocess.run([emacs, *has_eglot], capture_output=True, check=False).returncode != 0:
        print("skipped: there is no emacs with eglot (Debian's packages emacs-nox and elpa-eglot have them)")
        return 77
    configuration = re.search(r"```elisp\n(.*?)```", (TOP / "docs/editors.md").read_text(), re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "init.el").write_text(configuration)
        environment = {**os.environ, "PATH": f"{pathlib.Path(sys.argv[1]).resolve()}:{os.environ['PATH']}", "HOME": folder}
        run = subprocess.run([emacs, "--batch", "-l", work / "init.el", "-l", pathlib.Path(__file__).with_suffix(".el")],
                             cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
                             stdin=subprocess.DEVNULL)
    print(run.stdout + run.stderr)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
