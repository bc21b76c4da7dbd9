"""All the server remembers, in one SQLite file: after a kill at any moment it continues from here.

Each step is one transaction. What a single device sent is never written, but for the masked messages of a
secure sum while the sum runs; those are wiped when it closes.
"""

import json
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.deploy.folders import appearing, made
from tacit.deploy.plain import arrays_to_bytes, bytes_to_arrays, flattened, restored
from tacit.errors import TacitError
from tacit.federation.federation import Casting
from tacit.ledger.record import ExchangeRecord
from tacit.round import ServerState
from tacit.types import Index

LAYOUT = "2"
DATABASE = "server.sqlite"
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE devices (slot INTEGER PRIMARY KEY, identity BLOB NOT NULL, letters BLOB NOT NULL,
                      node TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '',
                      revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE records (number INTEGER PRIMARY KEY AUTOINCREMENT, round INTEGER, line TEXT NOT NULL);
CREATE TABLE refusals (side TEXT, reason TEXT, times INTEGER NOT NULL, PRIMARY KEY (side, reason));
CREATE TABLE opened (step INTEGER PRIMARY KEY, nonce TEXT NOT NULL, invited BLOB NOT NULL,
                     record TEXT, tally BLOB);
CREATE TABLE legs (step INTEGER, leg INTEGER, slot INTEGER, message BLOB NOT NULL,
                   PRIMARY KEY (step, leg, slot));
CREATE TABLE advanced (step INTEGER, leg INTEGER, PRIMARY KEY (step, leg));
CREATE TABLE rounds (round INTEGER PRIMARY KEY, invited INTEGER, answered INTEGER, seconds REAL,
                     framing INTEGER, said TEXT);
CREATE TABLE to_forget (nonce TEXT PRIMARY KEY, round INTEGER NOT NULL, exchange TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Device:
    """One enrolled person: the public halves of two keys, their node, their device's fingerprint."""

    slot: int
    identity: bytes
    letters: bytes
    node: str = ""
    owner: str = ""
    revoked: bool = False


@dataclass(frozen=True)
class Opened:
    """One exchange of the round under way, as far as it got."""

    nonce: str
    invited: Index
    record: ExchangeRecord | None
    tally: bytes | None


class Journal:
    """The server's file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("PRAGMA secure_delete=ON")

    @classmethod
    def created(cls, folder: Path, facts: Mapping[str, bytes]) -> "Journal":
        """A new journal holding the run's charter and the server's secrets."""
        path = folder / DATABASE
        if path.exists():
            raise TacitError(
                f"{folder} holds a server already", "continue it without a method, or give another folder"
            )
        made(folder)
        with appearing(path) as draft, closing(cls(draft)) as journal, journal.whole():
            for table in _TABLES.split(";"):
                if table.strip():
                    journal._db.execute(table)
            for name, value in {**facts, "layout": LAYOUT.encode()}.items():
                journal.keep(name, value)
        return cls(path)

    @classmethod
    def opened(cls, folder: Path) -> "Journal":
        """The journal of a server that was stopped or killed."""
        path = folder / DATABASE
        if not path.is_file():
            raise TacitError(f"{folder} holds no server", "make one: tacit server DIR METHOD --people N")
        journal = cls(path)
        try:
            layout = journal.fact("layout")
        except sqlite3.DatabaseError as error:
            raise TacitError(
                f"{path} cannot be read ({error})", "put a back-up of the folder back"
            ) from error
        if layout != LAYOUT.encode():
            raise TacitError(f"{path} is of another version of Tacit", "use the version that wrote it")
        return journal

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @contextmanager
    def serving(self) -> Generator[None]:
        """Held by the one process that serves this federation; a second is refused."""
        import fcntl

        with self.path.with_name("serving.lock").open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise TacitError(
                    f"another process serves {self.path.parent}", "stop it first, or give another folder"
                ) from error
            yield

    @property
    def seen(self) -> int:
        """A number that changes when another process writes."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def whole(self) -> Generator[None]:
        """One transaction: all of it or nothing."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def keep(self, name: str, value: bytes) -> None:
        """Write one fact."""
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def fact(self, name: str) -> bytes | None:
        """Read one fact."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    # devices

    def enrol(self, device: Device) -> None:
        """Take a person in, or refuse a slot that somebody else has."""
        known = self.devices().get(device.slot)
        if known is not None and (known.identity, known.letters) != (device.identity, device.letters):
            raise TacitError(
                f"slot {device.slot} belongs to another key", "revoke it first, or enrol under a free number"
            )
        self._db.execute(
            "INSERT INTO devices VALUES (?, ?, ?, ?, ?, 0)"
            " ON CONFLICT (slot) DO UPDATE SET node = excluded.node",
            (device.slot, device.identity, device.letters, device.node, device.owner),
        )

    def revoke(self, slot: int) -> None:
        """From now on this key gets nothing in and nothing out."""
        self._db.execute("UPDATE devices SET revoked = 1 WHERE slot = ?", (slot,))

    def devices(self) -> dict[int, Device]:
        """Everybody enrolled, by slot."""
        rows = self._db.execute(
            "SELECT slot, identity, letters, node, owner, revoked FROM devices ORDER BY slot"
        )
        return {
            row[0]: Device(row[0], bytes(row[1]), bytes(row[2]), row[3], row[4], bool(row[5])) for row in rows
        }

    # rounds

    def save_state(self, state: ServerState, records: Sequence[ExchangeRecord]) -> None:
        """A round is over: its records, the new state, and nothing left of the round itself."""
        arrays = {f"shared/{name}": array for name, array in state.shared.items()}
        arrays |= {f"optimiser/{name}": array for name, array in state.optimiser.items()}
        protections = {name: list(states) for name, states in state.protections.items()}
        blob = arrays_to_bytes(arrays, {"round": state.round, "protections": protections})
        with self.whole():
            self.keep("state", blob)
            for record in records:
                line = json.dumps(record.to_json())
                self._db.execute(
                    "INSERT INTO records (round, line) VALUES (?, ?)", (record.facts.round, line)
                )
            for table in ("opened", "legs", "advanced"):
                self._db.execute(f"DELETE FROM {table}")

    def wipe(self) -> None:
        """Take what was deleted out of the log beside the file, too; in the file it is overwritten."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def state(self) -> ServerState | None:
        """The state after the last whole round."""
        blob = self.fact("state")
        if blob is None:
            return None
        arrays, facts = bytes_to_arrays(blob)

        def group(name: str) -> dict[str, Any]:
            return {key.removeprefix(name): arrays[key] for key in sorted(arrays) if key.startswith(name)}

        protections = {name: tuple(states) for name, states in facts["protections"].items()}
        return ServerState(facts["round"], group("shared/"), group("optimiser/"), protections)

    def records(self) -> list[ExchangeRecord]:
        """The ledger."""
        rows = self._db.execute("SELECT line FROM records ORDER BY number")
        return [ExchangeRecord.from_json(json.loads(row[0])) for row in rows]

    def keep_casting(self, casting: Casting) -> None:
        """Who plays which part; chosen once."""
        arrays: dict[str, Any] = {f"part/{name}": people for name, people in casting.parts.items()}
        if casting.peer is not None:
            arrays["peer"] = casting.peer
        self.keep("casting", arrays_to_bytes(arrays, {}))

    def casting(self) -> Casting | None:
        """What :meth:`keep_casting` wrote."""
        blob = self.fact("casting")
        if blob is None:
            return None
        arrays, _ = bytes_to_arrays(blob)
        parts = {name.removeprefix("part/"): people for name, people in arrays.items() if name != "peer"}
        return Casting(parts, arrays.get("peer"))

    def open(self, step: int, nonce: str, invited: Index) -> None:
        """An exchange begins."""
        blob = np.asarray(invited, "<i4").tobytes()
        self._db.execute("INSERT INTO opened (step, nonce, invited) VALUES (?, ?, ?)", (step, nonce, blob))

    def opened_steps(self) -> dict[int, Opened]:
        """The exchanges of the round under way."""
        rows = self._db.execute("SELECT step, nonce, invited, record, tally FROM opened ORDER BY step")
        return {
            step: Opened(
                nonce,
                np.frombuffer(invited, "<i4").astype(np.int32),
                None if record is None else ExchangeRecord.from_json(json.loads(record)),
                None if tally is None else bytes(tally),
            )
            for step, nonce, invited, record, tally in rows
        }

    def close_step(self, step: int, record: ExchangeRecord, tally: Any) -> None:
        """An exchange is over: its record and the sum so far; single messages are wiped."""
        arrays, rest = flattened(tally)
        facts = {
            "rest": rest,
            "received": {name: list(shape) for name, shape in record.facts.received.items()},
        }
        with self.whole():
            self._db.execute(
                "UPDATE opened SET record = ?, tally = ? WHERE step = ?",
                (json.dumps(record.to_json()), arrays_to_bytes(arrays, facts), step),
            )
            self._db.execute("DELETE FROM legs WHERE step = ?", (step,))

    @staticmethod
    def tally(opened: Opened, fresh: Any) -> Any:
        """The sum of an exchange that was closed, in a fresh tally of its aggregation."""
        assert opened.tally is not None
        arrays, facts = bytes_to_arrays(opened.tally)
        return restored(fresh, arrays, facts["rest"])

    @staticmethod
    def received(opened: Opened) -> dict[str, tuple[int, ...]]:
        """The shapes of what had been sent out in an exchange that was closed."""
        assert opened.tally is not None
        _, facts = bytes_to_arrays(opened.tally)
        return {name: tuple(shape) for name, shape in facts["received"].items()}

    # what the proxy has yet to be told

    def keep_to_forget(self, round: int, exchanges: Mapping[str, str]) -> None:
        """These exchanges of a round (nonce by nonce) are over: the proxy is to forget them."""
        rows = [(nonce, round, exchange) for nonce, exchange in exchanges.items()]
        self._db.executemany("INSERT OR REPLACE INTO to_forget VALUES (?, ?, ?)", rows)

    def to_forget(self) -> list[tuple[str, int, str]]:
        """What the proxy has not said yet to have forgotten: nonce, round and exchange."""
        return self._db.execute("SELECT nonce, round, exchange FROM to_forget ORDER BY rowid").fetchall()

    def forgotten(self, nonce: str) -> None:
        """The proxy said so."""
        self._db.execute("DELETE FROM to_forget WHERE nonce = ?", (nonce,))

    # secure sums

    def keep_leg(self, step: int, leg: int, slot: int, message: bytes) -> None:
        """A masked message, before it is taken in."""
        self._db.execute("INSERT OR IGNORE INTO legs VALUES (?, ?, ?, ?)", (step, leg, slot, message))

    def keep_advance(self, step: int, leg: int) -> None:
        """A leg was closed with the messages kept so far."""
        self._db.execute("INSERT OR IGNORE INTO advanced VALUES (?, ?)", (step, leg))

    def legs(self, step: int) -> tuple[dict[int, list[tuple[int, bytes]]], int]:
        """The messages of each leg in the order they came, and how many legs were closed."""
        rows = self._db.execute("SELECT leg, slot, message FROM legs WHERE step = ? ORDER BY rowid", (step,))
        found: dict[int, list[tuple[int, bytes]]] = {}
        for leg, slot, message in rows:
            found.setdefault(leg, []).append((slot, bytes(message)))
        closed = self._db.execute("SELECT COUNT(*) FROM advanced WHERE step = ?", (step,)).fetchone()[0]
        return found, int(closed)

    # what an operator reads

    def count(self, side: str, reason: str, times: int = 1) -> None:
        """One more refusal of this name; ``side`` says who refused."""
        self._db.execute(
            "INSERT INTO refusals VALUES (?, ?, ?)"
            " ON CONFLICT (side, reason) DO UPDATE SET times = times + ?",
            (side, reason, times, times),
        )

    def refusals(self) -> dict[str, dict[str, int]]:
        """Refusals by who refused and by name."""
        found: dict[str, dict[str, int]] = {}
        for side, reason, times in self._db.execute("SELECT * FROM refusals ORDER BY side, reason"):
            found.setdefault(side, {})[reason] = times
        return found

    def keep_round(self, round: int, told: Mapping[str, Any]) -> None:
        """How a round went: counts, seconds, bytes of our framing, a warning if there is one."""
        names = ("invited", "answered", "seconds", "framing", "said")
        values = [told[name] for name in names]
        self._db.execute("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?, ?, ?, ?)", (round, *values))

    def keep_seconds(self, round: int, seconds: float) -> None:
        """How long a round took."""
        self._db.execute("UPDATE rounds SET seconds = ? WHERE round = ?", (seconds, round))

    def rounds(self) -> list[dict[str, Any]]:
        """How the rounds went."""
        names = ("round", "invited", "answered", "seconds", "framing", "said")
        rows = self._db.execute("SELECT * FROM rounds ORDER BY round")
        return [dict(zip(names, row, strict=True)) for row in rows]
