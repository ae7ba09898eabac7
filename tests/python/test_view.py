# SPDX-License-Identifier: Apache-2.0
"""Notebooks: pictures, tables."""

import html
import os
import re

import pytest

import hlokit
from hlokit import _view


@pytest.fixture
def no_page(monkeypatch):
    monkeypatch.setattr(_view, "page", lambda name: None)


@pytest.fixture
def no_graphviz(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


def has_graphviz():
    return any(os.access(os.path.join(d, "dot"), os.X_OK) for d in os.environ["PATH"].split(os.pathsep))


def test_page(module):
    if _view.page("view") is None:
        pytest.skip("built without the page")
    shown = module._repr_html_()
    (frame,) = re.findall("<iframe srcdoc='([^']*)'", shown)
    page = html.unescape(frame)
    assert page == hlokit.graph(module).html and "@DATA@" not in page and page.startswith("<!doctype html>")


@pytest.mark.skipif(not has_graphviz(), reason="no Graphviz")
def test_pictures(module, no_page, tmp_path):
    for part in (module, module.entry, hlokit.graph(module["d"], hops=1)):
        shown = part._repr_html_()
        assert "<svg" in shown and "</svg>" in shown
    hlokit.graph(module).save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert "digraph" in hlokit.graph(module["add"]).dot


def test_nothing_to_draw_with(module, no_page, no_graphviz):
    for part in (module, module.entry):
        shown = part._repr_html_()
        assert "no picture: Graphviz" in shown and "<pre>" in shown
    with pytest.raises(RuntimeError):
        hlokit.graph(module).svg
    with pytest.raises(RuntimeError):
        hlokit.graph(module).html


def test_views_never_fail(no_page):
    empty = hlokit.module("empty")
    assert "no picture" in empty._repr_html_() and "%main {  // has no root yet" in empty._repr_html_()
    assert "0 instructions" in empty.entry._repr_html_()


def test_graphs_of_parts(module, tmp_path):
    with pytest.raises(ValueError, match="calls"):
        hlokit.graph(module["x"]).dot
    with pytest.raises(ValueError):
        hlokit.graph(module, max_instructions=2).dot
    for part in (module, module["d"]):
        with pytest.raises(ValueError, match="hops of at least 0"):
            hlokit.graph(part, hops=-1)
        with pytest.raises(ValueError, match="max_instructions of at least 1"):
            hlokit.graph(part, max_instructions=0)
    with pytest.raises(TypeError):
        hlokit.graph("d")
    with pytest.raises(ValueError, match=".svg"):
        hlokit.graph(module).save(tmp_path / "a.png")
    erased = module["z"]
    erased.replace_all_uses_with(module["x"])
    erased.erase()
    with pytest.raises(hlokit.DeadHandleError):
        hlokit.graph(erased)


def test_reports(module, tmp_path):
    report = hlokit.simulate(module, "v5e")
    shown = report._repr_html_()
    assert "step_time_us" in shown and "<details><summary>" in shown and "<table>" in shown
    if _view.page("report") is None:
        with pytest.raises(RuntimeError):
            report.report(tmp_path)
    else:
        page = report.report(tmp_path / "out")
        assert page.read_text().startswith("<!doctype html>") and "@DATA@" not in page.read_text()
    assert next(tmp_path.rglob("report.json")).stat().st_size > 1000
    with pytest.raises(ValueError, match="host"):
        report.report(tmp_path, host="nonsense")
