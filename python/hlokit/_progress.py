# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: a line on a terminal, an output that is updated in a notebook, nothing elsewhere."""

import html
import sys
import time
from typing import Any, Callable, Optional

# Nothing is shown of work that takes less.
_DELAY_SECONDS = 1.0
_INTERVAL_SECONDS = 0.1
_WIDTH = 30

_mode: Any = None


def progress(mode: Any = None) -> None:
    """Sets who sees the progress of long work: passes, runs, simulations, sweeps.

    None, as in the beginning: terminals and notebooks, of work of more than a second. False: nobody. True: standard
    error, whatever it is. A function: it is called as f(what, done, total, text), total being None where it is unknown.
    """
    global _mode
    if not (mode is None or isinstance(mode, bool) or callable(mode)):
        raise TypeError(f"progress: None, a bool or a function, not {type(mode).__name__}")
    _mode = mode


def _notebook_display() -> Any:
    """IPython's display function in the kernel of a notebook, or None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import HTML, display  # type: ignore[import]

    return lambda text, handle: handle.update(HTML(text)) if handle else display(HTML(text), display_id=True)


class _Terminal:
    """A line that is written over."""

    def __init__(self) -> None:
        self.length = 0

    def show(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self.length))
        sys.stderr.flush()
        self.length = len(line)

    def close(self) -> None:
        if self.length:
            sys.stderr.write("\r" + " " * self.length + "\r")
            sys.stderr.flush()


class _Notebook:
    """An output of the cell."""

    def __init__(self, display: Callable[[str, Any], Any]) -> None:
        self.display = display
        self.handle: Any = None

    def show(self, line: str) -> None:
        self.handle = self.display(f"<pre>{html.escape(line)}</pre>", self.handle) or self.handle

    def close(self) -> None:
        if self.handle:
            self.display("", self.handle)


class bar:
    """The progress of one piece of work, as a context manager: `update` says how far it is."""

    def __init__(self, what: str):
        self.what = what
        self.output: Any = None
        self.function: Optional[Callable[..., Any]] = None
        if callable(_mode):
            self.function = _mode
        elif _mode is None:
            display = _notebook_display()
            if display is not None:
                self.output = _Notebook(display)
            elif sys.stderr is not None and sys.stderr.isatty():
                self.output = _Terminal()
        elif _mode:
            self.output = _Terminal()
        self.enabled = self.output is not None or self.function is not None
        self.start = time.monotonic()
        self.next = self.start + (_DELAY_SECONDS if _mode is None else 0)

    def update(self, done: float, total: Optional[float] = None, text: str = "") -> None:
        """Shows that `done` of `total` is done; `text` says what comes."""
        if self.function is not None:
            self.function(self.what, done, total, text)
        if self.output is None or time.monotonic() < self.next:
            return
        seconds = time.monotonic() - self.start
        self.next = time.monotonic() + _INTERVAL_SECONDS
        if total:
            filled = int(_WIDTH * min(done / total, 1))
            shown = f"{self.what} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done:,.0f} of {total:,.0f} {text}"
        else:
            shown = f"{self.what}: {done:,.0f} {text}"
        self.output.show(f"{shown.rstrip()[:90]}, {seconds:.1f} s")

    def __enter__(self) -> "bar":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.output is not None:
            self.output.close()
