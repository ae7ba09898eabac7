# SPDX-License-Identifier: Apache-2.0
"""Results that are JSON objects with tables."""

import html
from typing import Any, Dict, Iterable, List

_SHOWN_ROWS = 20


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return html.escape(text if len(text) <= 80 else text[:77] + "...")


def html_table(rows: List[Dict[str, Any]], limit: int = _SHOWN_ROWS) -> str:
    """An HTML table of the first rows; values that are tables themselves are left out."""
    columns: Dict[str, None] = {}
    for row in rows[:limit]:
        columns.update((key, None) for key, value in row.items() if not isinstance(value, (dict, list)))
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(row.get(c, ''))}</td>" for c in columns) + "</tr>" for row in rows[:limit])
    more = f"<p>{len(rows) - limit} more rows</p>" if len(rows) > limit else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


class Tables:
    """A JSON object: members by name, and those that are tables as lists of dicts or as pandas.DataFrame."""

    def __init__(self, contents: Dict[str, Any]):
        self.contents = contents

    def __getitem__(self, key: str) -> Any:
        """The member of this name. Raises KeyError, which names those that exist."""
        if key not in self.contents:
            raise KeyError(f"{key!r} is none of {', '.join(self.contents)}")
        return self.contents[key]

    def __contains__(self, key: object) -> bool:
        return key in self.contents

    def keys(self) -> Iterable[str]:
        """The names of the members."""
        return self.contents.keys()

    @property
    def tables(self) -> Dict[str, List[Dict[str, Any]]]:
        """The members that are tables, by name: each row is a dict."""
        return {
            name: value
            for name, value in self.contents.items()
            if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
        }

    def frame(self, table: str) -> Any:
        """A table as a pandas.DataFrame. Raises KeyError, and ImportError where pandas is not installed."""
        rows = self[table]
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise KeyError(f"{table!r} is no table; {', '.join(self.tables)} are")
        import pandas  # type: ignore[import]

        return pandas.DataFrame(rows)

    def _numbers(self) -> List[Dict[str, Any]]:
        """The members that are no tables, a row for each."""
        return [{"": k, "value": v} for k, v in self.contents.items() if isinstance(v, (int, float, str, bool))]

    def _repr_html_(self) -> str:
        """A notebook's view: numbers, then each table, folded, with its first rows."""
        parts = [html_table(self._numbers(), limit=100)]
        for name, rows in self.tables.items():
            parts.append(f"<details><summary>{html.escape(name)}: {len(rows)} rows</summary>{html_table(rows)}</details>")
        return "".join(parts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.contents)}>"


class Profile(Tables):
    """Times of an Executable's last run, as hlo-run --profile-json has them.

    profile["opcodes"] and profile["instructions"] are tables, longest first: runs, and time_us in microseconds.
    """
