#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hlo-lsp-server with Neovim's own client: neovim_test.py BIN

Runs neovim_test.lua in a headless Neovim with the configuration of docs/editors.md. Exits with 77, and says so, if
there is no Neovim.
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
    neovim = shutil.which("nvim")
    if neovim is None:
        print("skipped: there is no nvim (Debian's package neovim has it)")
        return 77
    configuration = re.search(r"```lua\n(.*?)```", (TOP / "docs/editors.md").read_text(), re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "init.lua").write_text(configuration)
        environment = {**os.environ, "PATH": f"{pathlib.Path(sys.argv[1]).resolve()}:{os.environ['PATH']}", "HOME": folder,
                       "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder, "XDG_STATE_HOME": folder}
        run = subprocess.run([neovim, "--headless", "-u", work / "init.lua", "-S", pathlib.Path(__file__).with_suffix(".lua")],
                             cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
                             stdin=subprocess.DEVNULL)
    print(run.stdout + run.stderr)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
