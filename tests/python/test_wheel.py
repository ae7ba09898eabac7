# SPDX-License-Identifier: Apache-2.0
"""The files of a wheel."""

import importlib.util
import pathlib

_BACKEND = pathlib.Path(__file__).resolve().parents[2] / "python" / "build_wheel.py"


def test_a_wheel_has_empty_files_but_neither_empty_pages_nor_dangling_links(tmp_path):
    spec = importlib.util.spec_from_file_location("build_wheel", _BACKEND)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    package = tmp_path / "hlokit"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__pycache__" / "a.pyc").write_bytes(b"x")
    (package / "torch").mkdir()
    (package / "torch" / "__init__.py").write_text("")
    (package / "py.typed").write_text("")
    (package / "report.html").write_text("")
    (package / "view.html").write_text("<html>")
    (package / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "source.py").write_text("a = 1\n")
    (package / "linked.py").symlink_to(tmp_path / "source.py")
    assert backend._package_files(tmp_path) == {
        "hlokit/linked.py": b"a = 1\n",
        "hlokit/py.typed": b"",
        "hlokit/torch/__init__.py": b"",
        "hlokit/view.html": b"<html>",
    }
