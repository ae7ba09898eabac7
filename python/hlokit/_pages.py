# SPDX-License-Identifier: Apache-2.0
"""The pages of the viewer and of reports, and files that are written whole. Works without the extension module."""

import functools
import os
import pathlib
import tempfile
from typing import Optional


@functools.lru_cache(maxsize=None)
def page(name: str) -> Optional[str]:
    """The page `view` or `report` with @DATA@ where its data goes; None in builds without it."""
    path = pathlib.Path(__file__).with_name(f"{name}.html")
    try:
        return path.read_text(encoding="utf-8") or None
    except OSError:
        return None


def report_page(document: str) -> str:
    """The page of a report with its data, which is JSON. Raises RuntimeError in builds without the page."""
    text = page("report")
    if text is None:
        raise RuntimeError("hlokit was built without its pages, which need node and npm")
    # Nothing in the data may end the element it stands in.
    return text.replace("@DATA@", document.replace("<", "\\u003c"))


def write_whole(path: pathlib.Path, text: str) -> None:
    """Writes a file, whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
