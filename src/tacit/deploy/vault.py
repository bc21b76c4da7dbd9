"""The database of a device with its sealing: transactions, facts by name, bytes that are really erased."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from tacit.deploy import tables
from tacit.deploy.sealing import Sealing
from tacit.errors import TacitError

COUNTER = "answers.count"


class Vault:
    """An open database. Values go in and come out sealed for their place; changes are all or nothing."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, sealing: Sealing) -> None:
        """An open connection and the sealing of its values."""
        self.folder = folder
        self.sealing = sealing
        self._connection = connection
        self._turn = threading.RLock()

    def close(self) -> None:
        """Let the file go."""
        with self._turn:
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Generator[None]:
        """All or nothing, one thread at a time."""
        with self._turn, tables.transaction(self._connection, self.folder):
            yield

    def run(self, statement: str, *values: Any) -> list[Any]:
        """One statement and all its rows; an error of the database is one clear line."""
        with self._turn:  # a connection serves one thread at a time
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    raise
                raise tables.told(error, self.folder) from error

    def row(self, query: str, *values: Any) -> Any:
        """The first row, or ``None``."""
        return next(iter(self.run(query, *values)), None)

    def sure(self, query: str, *values: Any) -> Any:
        """The first row of a query that has one."""
        found = self.row(query, *values)
        if found is None:
            raise TacitError(f"the store in {self.folder} lacks a row", "put a good copy of the folder back")
        return found

    @property
    def changes(self) -> int:
        """How many rows this connection has changed."""
        return self._connection.total_changes

    @property
    def seen(self) -> int:
        """A number that changes when another process writes."""
        return int(self.sure("PRAGMA data_version")[0])

    def sealed(self, value: bytes, place: str) -> bytes:
        """A value as it is written."""
        return self.sealing.sealed(value, place)

    def opened(self, written: bytes, place: str) -> bytes:
        """A value as it was."""
        return self.sealing.opened(written, place)

    def fact(self, name: str, *, seal: bool = True, missing: bytes | None = None) -> bytes:
        """A value by name."""
        found = self.row("SELECT value FROM facts WHERE name = ?", name)
        if found is None and missing is not None:
            return missing
        if found is None:
            raise TacitError(f"the store in {self.folder} lacks {name}", "put a good copy of the folder back")
        return self.opened(found[0], f"fact/{name}") if seal else found[0]

    def set_fact(self, name: str, value: bytes, *, seal: bool = True) -> None:
        """Write a value by name, inside a transaction."""
        written = self.sealed(value, f"fact/{name}") if seal else value
        self.run("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, written)

    def number(self, name: str) -> int:
        """A whole number by name, 0 at first; numbers lie in the clear."""
        return int(self.fact(name, seal=False, missing=b"0"))

    def erase(self) -> None:
        """Rewrite the file and empty the log beside it, so that deleted bytes are gone from both."""
        with self._turn:
            self.run("VACUUM")
            self.run("PRAGMA wal_checkpoint(TRUNCATE)")

    # the counter beside the database

    def counted(self) -> tuple[int, dict[str, int]]:
        """How many commits the counter file has seen, and each run's newest round; nothing without one."""
        try:
            commits, newest = json.loads((self.folder / COUNTER).read_text(encoding="utf-8"))
            return int(commits), {run: int(round) for run, round in newest.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return 0, {}

    def count(self, commits: int, newest: Mapping[str, int]) -> None:
        """After a commit: a crash between the two leaves the counter behind, never ahead."""
        draft = self.folder / f".{COUNTER}.part"
        try:
            draft.write_text(json.dumps([commits, dict(newest)]), encoding="utf-8")
            draft.replace(self.folder / COUNTER)
        except OSError as error:
            raise TacitError(
                f"no space left to write {self.folder / COUNTER} ({error.strerror})",
                "free some space; the answer is kept",
            ) from error
