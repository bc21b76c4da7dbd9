"""From the docstrings of the code to what the site's generator reads: ``Example:``, roles, simple tables."""

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_BORDER = re.compile(r"^ *=+( +=+)+ *$")


def _cells(line: str, starts: list[int]) -> list[str]:
    return [line[a:b].strip().replace("|", "\\|") for a, b in zip(starts, [*starts[1:], None], strict=True)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _as_markdown(table: list[str]) -> list[str]:
    """A simple table (borders of ``=``, one row per line) with pipes."""
    starts = [found.start() for found in re.finditer(r"=+", table[0])]
    indent = table[0][: starts[0]]
    rows = [_cells(line, starts) for line in table[1:-1] if not _BORDER.match(line)]
    lines = [_row(rows[0]), _row(["---"] * len(starts)), *map(_row, rows[1:])]
    return ["", *(indent + line for line in lines), ""]


def rendered(text: str) -> str:
    """A docstring in Markdown.

    Example:
        ``rendered("Example:")`` is ``"Examples:"``, a section whose lines after ``>>>`` are shown as code.
    """
    lines: list[str] = []
    table: list[str] = []
    for line in text.splitlines():
        border = _BORDER.match(line) is not None
        if not (table or border):
            lines.append(line)
            continue
        table.append(line)
        if sum(_BORDER.match(row) is not None for row in table) == 3:
            lines += _as_markdown(table)
            table = []
    joined = "\n".join([*lines, *table])
    joined = re.sub(r"^Example:$", "Examples:", joined, flags=re.M)
    joined = re.sub(r"::$", ":", joined, flags=re.M)
    return _ROLE.sub(r"``\1``", joined)


class Docstrings(Extension):
    """Every docstring as Markdown, before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """One object of the code."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = rendered(obj.docstring.value)
