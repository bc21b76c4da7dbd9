"""The device's own ledger and the answers it gave: one line per person, run, round and exchange."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from tacit.deploy.limits import Sent
from tacit.deploy.vault import Vault
from tacit.errors import TacitError

KEPT_ANSWERS = 64 << 20  # bytes of answers kept per device for repeats; the newest is always kept
_INSERT = "INTO sent (person, run, round, exchange, answer, line) VALUES (?, ?, ?, ?, ?, ?)"


def kept_answer(vault: Vault, who: int, which: int | None, round: int, exchange: str) -> bytes | None:
    """The bytes given before; ``None`` if there never were any, an error if they are gone."""
    found = vault.row(
        "SELECT s.answer, a.bytes FROM sent s LEFT JOIN answers a ON a.id = s.answer"
        " WHERE s.person = ? AND s.run = ? AND s.round = ? AND s.exchange = ?",
        *(who, which, round, exchange),
    )
    if found is None:
        return None
    if found[1] is None:
        raise TacitError(
            f"round {round} ({exchange}) was answered before and the answer is not kept",
            "a second answer is never computed; ask about newer rounds",
        )
    return vault.opened(found[1], f"answer/{found[0]}")


def add_answer(vault: Vault, answer: bytes) -> int:
    """Keep an answer; the oldest go where all together are too large (their lines stay)."""
    at = int(vault.sure("SELECT COALESCE(MAX(id), 0) FROM answers")[0]) + 1
    vault.run("INSERT INTO answers VALUES (?, ?, ?)", at, len(answer), vault.sealed(answer, f"answer/{at}"))
    kept = 0
    for older, size in vault.run("SELECT id, size FROM answers ORDER BY id DESC"):
        if kept and kept + size > KEPT_ANSWERS:
            vault.run("DELETE FROM answers WHERE id <= ?", older)
            break
        kept += size
    return at


def add_lines(
    vault: Vault,
    lines: Sequence[Sent],
    people: Mapping[str, int],
    runs: Mapping[str, int],
    answer: int | None,
) -> int:
    """Write ledger lines; returns how many.

    With an answer every line must be new: a second answer to one question is refused. Without one, lines
    that are there already stay as they are.
    """
    before = vault.changes
    for line in lines:
        who, which = people.get(line.person), runs.get(line.run)
        if who is None or which is None:
            raise TacitError(
                f"a ledger line about nobody here ({line.person!r}, {line.run!r})", "nothing was kept"
            )
        told = asdict(line)
        for name in ("person", "run", "round", "exchange"):
            del told[name]
        sealed = vault.sealed(json.dumps(told).encode(), _place(who, which, line.round, line.exchange))
        row = (who, which, line.round, line.exchange, answer, sealed)
        try:
            vault.run(f"{'INSERT OR IGNORE' if answer is None else 'INSERT'} {_INSERT}", *row)
        except sqlite3.IntegrityError as error:
            raise TacitError(
                f"round {line.round} ({line.exchange}) of run {line.run!r} was answered before",
                "send the kept answer again; a second one is refused",
            ) from error
    return vault.changes - before


def lines_of(
    vault: Vault, people: Mapping[int, str], runs: Mapping[int, str], person: int | None, run: int | None
) -> Iterator[Sent]:
    """The lines of one person, of one run, of all; in the order they were written."""
    rows = vault.run(
        "SELECT person, run, round, exchange, line FROM sent"
        " WHERE (?1 IS NULL OR person = ?1) AND (?2 IS NULL OR run = ?2) ORDER BY id",
        *(person, run),
    )
    for who, which, round, exchange, raw in rows:
        rest = json.loads(vault.opened(raw, _place(who, which, round, exchange)))
        yield Sent(people[who], runs[which], round, exchange, **rest)


def lost_lines(person: str, run: str, known: int, newest: int, lost: int, now: int) -> list[Sent]:
    """What so many lost answers may have been: the newest rounds after the last one known, nothing claimed.

    Example:
        >>> [line.round for line in lost_lines("ann", "r1", known=3, newest=9, lost=2, now=0)]
        [8, 9]
        >>> [line.round for line in lost_lines("ann", "r1", known=9, newest=9, lost=2, now=0)]
        [9]
    """
    first = min(newest, max(known + 1, newest - lost + 1))
    return [
        Sent(person, run, round, "(lost)", "server", 0, 0, None, now, known=False)
        for round in range(first, newest + 1)
    ]


def _place(who: int, which: int, round: int, exchange: str) -> str:
    return f"sent/{who}/{which}/{round}/{exchange}"
