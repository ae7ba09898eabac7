# SPDX-License-Identifier: Apache-2.0
"""The scripts in examples/python run on the modules in examples."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ROOT / "examples"


@pytest.mark.parametrize(
    "script, arguments, expected",
    [
        ("largest_buffers.py", [MODULES, 3], "decoder_layer.hlo  scores"),
        ("collectives.py", ["@collective.hlo"], "all-reduce             groups of    2"),
        ("roofline.py", [MODULES / "transformer_block.hlo", 197, 819], "block/mlp"),
        ("bisect_difference.py", [MODULES / "gated_mlp.hlo", "simplify,fuse"], "no pass changes the results"),
        ("sweep_batch.py", [MODULES / "gated_mlp.hlo", 8, "8,16", "v5e"], "    16 "),
        ("custom_rewrite.py", ["@divide.hlo"], "rsqrt(%y)"),
        ("diff_dumps.py", ["@divide.hlo", "@divide.hlo"], ""),
    ],
)
def test_example(script, arguments, expected, tmp_path):
    (tmp_path / "divide.hlo").write_text(
        "HloModule d\nENTRY e { x = f32[4] parameter(0) y = f32[4] parameter(1) s = f32[4] sqrt(y)"
        " ROOT d = f32[4] divide(x, s) }"
    )
    (tmp_path / "collective.hlo").write_text(
        "HloModule c, replica_count=2\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
        "\nENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add }"
    )
    command = [str(tmp_path / a[1:]) if isinstance(a, str) and a.startswith("@") else str(a) for a in arguments]
    run = subprocess.run([sys.executable, ROOT / "examples" / "python" / script, *command], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert expected in run.stdout
    usage = subprocess.run([sys.executable, ROOT / "examples" / "python" / script], capture_output=True, text=True)
    assert usage.returncode == 1 and script in usage.stderr
