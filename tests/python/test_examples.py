# SPDX-License-Identifier: Apache-2.0
"""The scripts in examples/python run on the modules in examples."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ROOT / "examples"


@pytest.mark.parametrize(
    "script, arguments, expected",
    [
        ("largest_buffers.py", [MODULES, 3], "decoder_layer.hlo  scores"),
        ("collectives.py", ["@collective.hlo"], "all-reduce             groups of    2"),
        ("roofline.py", [MODULES / "transformer_block.hlo", "v5e"], "block/attention/softmax"),
        ("bisect_difference.py", [MODULES / "gated_mlp.hlo", "simplify,fuse"], "no pass changes the results"),
        ("sweep_batch.py", [MODULES / "gated_mlp.hlo", 8, "8,16", "v5e"], "    16 "),
        ("custom_rewrite.py", ["@divide.hlo"], "rsqrt(%y)"),
        ("diff_dumps.py", ["@divide.hlo", "@divide.hlo"], ""),
        ("nan_search.py", [MODULES / "gated_mlp.hlo"], "all values are finite"),
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


def test_nan_search_names_the_instruction(tmp_path):
    (tmp_path / "a.hlo").write_text(
        "HloModule a\nENTRY e { x = f32[2] parameter(0) n = f32[2] negate(x) l = f32[2] log(n) ROOT r = f32[2] add(l, x) }"
    )
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    command = [sys.executable, ROOT / "examples" / "python" / "nan_search.py", tmp_path / "a.hlo", tmp_path / "x.npy"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and "l: produces a NaN" in run.stdout and "log(%n)" in run.stdout, run.stderr


PYPLOT = """
import pathlib
def savefig(path, **options): pathlib.Path(path).write_text("plot")
def __getattr__(name): return lambda *a, **k: None
"""


@pytest.mark.parametrize(
    "script, arguments",
    [
        ("roofline.py", [MODULES / "transformer_block.hlo", "v5e"]),
        ("sweep_batch.py", [MODULES / "gated_mlp.hlo", 8, "8,16", "v5e"]),
    ],
)
def test_plots(script, arguments, tmp_path):
    """The scripts plot with matplotlib, of which this is what they call."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("")
    (tmp_path / "matplotlib" / "pyplot.py").write_text(PYPLOT)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, ROOT / "examples" / "python" / script, *map(str, arguments), str(tmp_path / "plot.png")]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0 and (tmp_path / "plot.png").exists(), run.stderr
