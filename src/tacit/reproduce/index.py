"""All tables in one go, each kept as it is done, and the index that is written from what was kept."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tacit import __version__
from tacit.errors import TacitError
from tacit.reproduce.table import Options, Reproduction, tables
from tacit.runtime.checkpoint import told, written_whole

Maker = Callable[[Options], Reproduction]
PAPERS: Mapping[str, str] = {
    "privrec": "PrivRec and DP-PrivRec (Wang et al., 2021)",
    "fedrec": "FedRec++ (Liang, Pan, Ming, AAAI 2021)",
    "dp-sub": "DP-SUB: private sub-models (federated MF and NCF)",
    "fmf-ldp": "FMF-LDP (shuffled one-bit reports)",
    "fedmmf": "FedMMF (personalised masks)",
}


def kept_file(out: Path, name: str, *, quick: bool) -> Path:
    """Where a table's result is kept.

    Example:
        >>> kept_file(Path("out"), "fedrec/table2", quick=True).name
        'fedrec-table2.quick.json'
    """
    return out / f"{name.replace('/', '-')}.{'quick' if quick else 'full'}.json"


def every_table(
    options: Options, out: Path, names: Sequence[str] = (), makers: Mapping[str, Maker] | None = None
) -> Iterator[dict[str, Any]]:
    """Regenerate every table; what is in ``out`` already is not done again.

    Yields:
        Each table's JSON with its form, its seconds, and those its process computed; one that cannot be
        made here says why under ``skipped`` and is tried again next time. Stops after the table at hand if
        the listener asks to.
    """
    known = tables() if makers is None else makers
    for name in names or sorted(known):
        file = kept_file(out, name, quick=options.quick)
        kept = _read(file)
        if kept is not None:
            yield kept
            continue
        began, computed = time.perf_counter(), time.process_time()
        try:
            made = known[name](options)
        except TacitError as error:
            yield {"table": name, "title": name, "cells": [], "notes": [], "skipped": str(error)}
            continue
        spent = {
            "seconds": round(time.perf_counter() - began, 1),
            "cpu_seconds": round(time.process_time() - computed, 1),
        }
        line = {**made.to_json(), "quick": options.quick, **spent, "tacit": __version__}
        _write(file, json.dumps(line, indent=1))
        _draw(made, file.with_suffix(".svg"), options)
        yield line
        if options.listener.stopping():
            return


def _draw(made: Reproduction, file: Path, options: Options) -> None:
    """A table's picture, kept beside its numbers; numbers are not lost because a picture cannot be drawn."""
    if made.picture is None:
        return
    try:
        made.picture(file)
    except TacitError as error:
        options.listener.warn(f"{made.table} without its picture: {error.problem}")


def _read(file: Path) -> dict[str, Any] | None:
    """A kept table, if it is whole and of this version."""
    if not file.is_file():
        return None
    try:
        kept = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return kept if kept.get("tacit") == __version__ else None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        written_whole(file, lambda draft: draft.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise told(error, file) from error


def kept_tables(out: Path) -> list[dict[str, Any]]:
    """What is kept in a folder: of every table the full form, or the quick one where there is no other."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(out.glob("*.json")):
        line = _read(file)
        if line is None or "table" not in line:
            continue
        if line["table"] not in found or not line["quick"]:
            found[line["table"]] = line
    return [found[name] for name in sorted(found)]


def kept_pictures(lines: Sequence[Mapping[str, Any]], out: Path) -> dict[str, Path]:
    """The pictures that lie beside kept tables, by table."""
    files = {
        line["table"]: kept_file(out, line["table"], quick=line["quick"]).with_suffix(".svg")
        for line in lines
    }
    return {table: file for table, file in files.items() if file.is_file()}


def summary(line: Mapping[str, Any]) -> dict[str, Any]:
    """A table in one line: how many cells have a printed number, and how far ours are from it.

    Example:
        >>> cells = [{"paper": 2.0, "ours": 1.0}, {"paper": 1.0, "ours": 1.0}, {"paper": None, "ours": 3.0}]
        >>> found = summary({"table": "a/b", "title": "t", "cells": cells, "seconds": 1.0, "quick": True})
        >>> found["compared"], found["median"], found["largest"]
        (2, 0.25, 0.5)
    """
    pairs = [
        (cell["paper"], cell["ours"])
        for cell in line["cells"]
        if cell["paper"] is not None and cell["ours"] is not None
    ]
    apart = sorted(abs(ours - paper) / abs(paper) if paper else abs(ours) for paper, ours in pairs)
    middle = len(apart) // 2
    median = None
    if apart:
        median = apart[middle] if len(apart) % 2 else (apart[middle - 1] + apart[middle]) / 2
    return {
        "table": line["table"],
        "title": line["title"],
        "form": "skipped" if "skipped" in line else "quick" if line.get("quick") else "full",
        "cells": len(line["cells"]),
        "compared": len(pairs),
        "median": median,
        "largest": apart[-1] if apart else None,
        "seconds": line.get("seconds"),
        "cpu_seconds": line.get("cpu_seconds"),
        "skipped": line.get("skipped", ""),
    }


def index_page(lines: Sequence[Mapping[str, Any]], pictures: Mapping[str, str] = MappingProxyType({})) -> str:
    """The index as Markdown: every table, the paper's number beside ours, the difference and its reason.

    Args:
        lines: Kept tables.
        pictures: Where the page finds a table's picture, for those that have one.
    """
    parts = [
        "# Reproduction\n",
        "Written by `tacit reproduce --all --index docs/reproduction.md` from kept results; never by hand. "
        "*Quick* forms run smaller settings (fewer seeds, folds or data sets) and say so in their notes; a "
        "full form replaces them as soon as it was run: `tacit reproduce --all --out reproduction` goes on "
        "where it stopped.\n",
        "The difference is ours minus the paper's. An empty cell under *paper* means that the paper prints "
        "no number there.\n",
        _overview([summary(line) for line in lines]),
    ]
    for line in lines:
        parts.append(_table(line, pictures.get(line["table"])))
    return "\n".join(parts) + "\n"


def _overview(found: Sequence[Mapping[str, Any]]) -> str:
    rows = ["| table | what | form | cells | compared | median difference | largest | seconds | computing |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    for line in found:
        anchor = line["table"].replace("/", "").lower()
        cells = (
            f"[{line['table']}](#{anchor})",
            line["title"],
            line["form"],
            line["cells"],
            line["compared"],
            percent(line["median"]),
            percent(line["largest"]),
            "" if line["seconds"] is None else f"{line['seconds']:.0f}",
            "" if line["cpu_seconds"] is None else f"{line['cpu_seconds']:.0f}",
        )
        rows.append("| " + " | ".join(_plain(cell) for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def percent(value: float | None) -> str:
    """A relative difference for people.

    Example:
        >>> percent(0.0123), percent(None)
        ('1.2 %', '')
    """
    return "" if value is None else f"{100 * value:.1f} %"


def _table(line: Mapping[str, Any], picture: str | None) -> str:
    form = "quick form" if line.get("quick") else "full form"
    paper = PAPERS.get(line["table"].split("/")[0], "")
    parts = [f"## {line['table']}\n", f"{line['title']}. {paper}. {form}, {line.get('seconds', 0):.0f} s.\n"]
    parts += [f"* {_plain(note)}" for note in line["notes"]]
    if picture is not None:
        parts.append(f"\n![{_plain(line['title'])}]({picture})")
    parts.append("\n| row | column | paper | ours | difference | reason or note |")
    parts.append("|---|---|---|---|---|---|")
    for cell in line["cells"]:
        cells = (
            cell["row"],
            cell["column"],
            number(cell["paper"]),
            number(cell["ours"]),
            difference(cell["paper"], cell["ours"]),
            cell["note"],
        )
        parts.append("| " + " | ".join(_plain(value) for value in cells) + " |")
    return "\n".join(parts) + "\n"


def _plain(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def number(value: float | None) -> str:
    """A cell's number.

    Example:
        >>> number(16.6081), number(None)
        ('16.6081', '')
    """
    return "" if value is None else f"{value:.7g}"


def difference(paper: float | None, ours: float | None) -> str:
    """Ours minus the paper's.

    Example:
        >>> difference(1.0, 1.5), difference(None, 1.0)
        ('+0.5', '')
    """
    return "" if paper is None or ours is None else f"{ours - paper:+.4g}"
