"""What a device keeps: people's histories, private state, its own ledger, the answers it gave.

One folder, one SQLite file; every change is one transaction. With a key file, values are sealed (what
stays readable without the key: how many people, runs' names, rounds, sizes).

**A repeat is answered with the same bytes.** ``commit`` writes new private state, ledger lines and the
answer together, before the answer is sent. Asked again, the device returns those bytes; where it no longer
has them it refuses. It never computes a second answer to the same question: two would cost twice.

**An older copy put back.** A counter file beside the database grows with every commit, so a database
restored on its own is noticed (``missing``), and the device pauses. A whole folder restored, counter and
all, cannot be noticed from inside: there the server's record of the last answered round helps
(:meth:`DeviceStore.count_as_answered`).
"""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tacit.deploy import tables
from tacit.deploy.about import RunAbout
from tacit.deploy.history import History
from tacit.deploy.limits import Limits, Sent
from tacit.deploy.packing import packed, packed_history, unpacked, unpacked_history
from tacit.deploy.sealing import Sealing, read_key, written_key
from tacit.errors import TacitError
from tacit.types import Array

DATABASE = "device.sqlite"
COUNTER = "answers.count"
LOCK = "taking-part.lock"
KEPT_ANSWERS = 64 << 20  # bytes of answers kept per device for repeats; the newest is always kept
_CHECK = b"tacit device"


class DeviceStore:
    """A device's folder. Safe for several processes; one of them at a time may take part.

    Example:
        >>> import tempfile
        >>> store = DeviceStore.created(Path(tempfile.mkdtemp()) / "mine")
        >>> store.add_history("ann", History.of([("x", 4.0, None), ("y", 5.0, None)]))
        2
        >>> store.people(), store.history("ann").items, store.paused
        (('ann',), ('x', 'y'), '')
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, sealing: Sealing) -> None:
        """Use :meth:`created` or :meth:`opened`."""
        self.folder = folder
        self._connection = connection
        self._sealing = sealing

    # made, opened, closed

    @classmethod
    def created(cls, folder: Path, key_file: Path | None = None) -> "DeviceStore":
        """A new, empty store; an existing one is refused. A key file that is missing is made."""
        file = folder / DATABASE
        if file.exists():
            raise TacitError(
                f"{folder} holds a device already", "open it without --init, or choose another folder"
            )
        if key_file is not None and key_file.resolve().is_relative_to(folder.resolve()):
            raise TacitError(
                f"the key file {key_file} would lie in the folder it protects", "keep it somewhere else"
            )
        sealing = Sealing(None if key_file is None else written_key(key_file))
        draft = folder / f".{DATABASE}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            raise TacitError(f"cannot make {folder} ({error.strerror})", "choose another folder") from error
        connection = tables.connected(draft)
        try:
            tables.create(connection)
            store = cls(folder, connection, sealing)
            with store._transaction():
                store._set_fact("sealed", b"no" if sealing.key is None else b"yes", seal=False)
                store._set_fact("check", _CHECK)
                store._set_fact("secret", secrets.token_bytes(32))
                store._set_fact("limits", json.dumps(Limits().to_json()).encode())
                store._set_fact("commits", b"0", seal=False)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise tables.told(error, folder) from error
        finally:
            connection.close()
        for side in ("-wal", "-shm"):
            draft.with_name(draft.name + side).unlink(missing_ok=True)
        draft.replace(file)
        return cls.opened(folder, key_file)

    @classmethod
    def opened(cls, folder: Path, key_file: Path | None = None) -> "DeviceStore":
        """An existing store; one clear line if it is none, another version's, or sealed with another key."""
        file = folder / DATABASE
        if not file.is_file():
            raise TacitError(f"{folder} holds no device", "make one with: tacit device DIR --init")
        connection = tables.connected(file)
        try:
            tables.refuse_foreign(connection, folder)
            store = cls(folder, connection, Sealing(None))
            sealed = store._fact("sealed", seal=False) == b"yes"
            if sealed and key_file is None:
                raise TacitError(f"{folder} is sealed", "give its key with --key-file")
            if not sealed and key_file is not None:
                raise TacitError(f"{folder} is not sealed", "leave --key-file out")
            store._sealing = Sealing(read_key(key_file) if key_file is not None else None)
            if store._fact("check") != _CHECK:
                raise TacitError(f"{folder} cannot be read", "put a good copy of the folder back")
        except sqlite3.Error as error:
            raise tables.told(error, folder) from error
        except TacitError as error:
            connection.close()
            if error.problem.startswith("a sealed value"):
                raise TacitError(
                    f"{folder} is sealed with another key", "give the key it was made with"
                ) from error
            raise
        store._note_missing()
        return store

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def __enter__(self) -> "DeviceStore":
        """Open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @contextmanager
    def taking_part(self) -> Iterator[None]:
        """Held by the one process that answers for this device; a second is refused."""
        import fcntl

        with (self.folder / LOCK).open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise TacitError(
                    f"another process takes part with {self.folder}", "stop it first: a device answers once"
                ) from error
            yield

    # people and what they did

    def people(self) -> tuple[str, ...]:
        """The raw ids of those hosted here, in the order they came."""
        return tuple(self._ids())

    def person_meant(self, user: str = "") -> str:
        """The one named, or the only one here."""
        people = self.people()
        if not user and len(people) != 1:
            raise TacitError(
                f"{len(people)} people are on this device",
                "say whose with --user ID" if people else "import a history with --import FILE",
            )
        if user:
            self._person(user)
        return user or people[0]

    def history(self, person: str) -> History:
        """What this person did."""
        at = self._person(person)
        (raw,) = self._one("SELECT history FROM people WHERE id = ?", at)
        return unpacked_history(self._sealing.opened(raw, f"history/{at}"))

    def add_history(self, person: str, rows: History) -> int:
        """Merge rows into a person's history (who is new is added); returns how many entries changed."""
        if not person:
            raise TacitError("a person without an id", "give the raw user id")
        with self._transaction():
            if person not in self._ids():
                self._add_person(person)
            merged, changed = self.history(person).merged(rows)
            if changed:
                self._write_history(person, merged)
        return changed

    def remove_entry(self, person: str, item: str) -> bool:
        """Delete one entry of a history, in the file too; whether there was one."""
        with self._transaction():
            before = self.history(person)
            after = before.without(item)
            if len(after) != len(before):
                self._write_history(person, after)
        self._erase()
        return len(after) != len(before)

    def profile(self, person: str) -> dict[str, Any]:
        """What the device knows of its owner by public feature name: a label, a number, or labels."""
        at = self._person(person)
        (raw,) = self._one("SELECT profile FROM people WHERE id = ?", at)
        return json.loads(self._sealing.opened(raw, f"profile/{at}"))

    def set_profile(self, person: str, profile: Mapping[str, Any]) -> None:
        """Replace what the device knows of its owner."""
        with self._transaction():
            at = self._person(person)
            sealed = self._sealing.sealed(json.dumps(dict(profile)).encode(), f"profile/{at}")
            self._connection.execute("UPDATE people SET profile = ? WHERE id = ?", (sealed, at))

    def forget(self, person: str) -> None:
        """Remove a person's history, private state, ledger and answers from the file; a tombstone stays.

        The tombstone (a keyed digest of the id, and when) makes a later import of the same person fail, so
        that nobody's budget starts anew by being forgotten. What was sent cannot be called back.
        """
        with self._transaction():
            at = self._person(person)
            mark = self._tombstone(person)
            # an answer given for several people together holds this person's part too
            self._connection.execute(
                "DELETE FROM answers WHERE id IN (SELECT answer FROM sent WHERE person = ?)", (at,)
            )
            self._connection.execute("DELETE FROM people WHERE id = ?", (at,))
            self._connection.execute("INSERT INTO forgotten VALUES (?, ?)", (mark, int(time.time())))
            if not self._ids():
                self._connection.execute("DELETE FROM notes")
                self._connection.execute("DELETE FROM runs")
        self._erase()

    # runs and models

    def keep_run(self, about: RunAbout) -> None:
        """Keep what the server says of a run; a run never changes its configuration or catalogue."""
        with self._transaction():
            known = self._runs().get(about.run)
            raw = about.encoded()
            if known is None:
                self._connection.execute(
                    "INSERT INTO runs (name, about, seen) VALUES (?, ?, ?)",
                    (about.run, raw, int(time.time())),
                )
                return
            before = self.run(about.run)
            if (before.config, before.items, before.people) != (about.config, about.items, about.people):
                raise TacitError(
                    f"run {about.run!r} has changed its configuration or catalogue since this device joined",
                    "a changed run needs a new name; this device does not follow",
                )
            self._connection.execute("UPDATE runs SET about = ? WHERE id = ?", (raw, known))

    def run(self, run: str) -> RunAbout:
        """What the server said of a run."""
        (raw,) = self._one("SELECT about FROM runs WHERE id = ?", self._run(run))
        return RunAbout.decoded(raw)

    def runs(self) -> tuple[str, ...]:
        """The runs this device knows, newest last."""
        return tuple(self._runs())

    def keep_model(self, run: str, round: int, shared: Mapping[str, Array]) -> None:
        """Keep the shared arrays as they were at a round, for recommending without a network."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO models VALUES (?, ?, ?)", (self._run(run), round, packed(shared))
            )

    def model(self, run: str) -> tuple[int, dict[str, Array]] | None:
        """The newest shared arrays and their round."""
        found = self._connection.execute(
            "SELECT round, arrays FROM models WHERE run = ?", (self._run(run),)
        ).fetchone()
        return None if found is None else (int(found[0]), unpacked(found[1]))

    # taking part

    def private(self, person: str, run: str) -> dict[str, Array]:
        """A person's private state in a run, ``{}`` at first; arrays as a cohort of one holds them."""
        at, where = self._person(person), self._runs().get(run)
        found = self._connection.execute(
            "SELECT arrays FROM private WHERE person = ? AND run = ?", (at, where)
        ).fetchone()
        return {} if found is None else unpacked(self._sealing.opened(found[0], f"private/{at}/{where}"))

    def answered(self, person: str, run: str, round: int, exchange: str) -> bytes | None:
        """The very bytes sent before, ``None`` if this exchange was never answered.

        Raises:
            TacitError: It was answered, and its bytes are no longer here: it is never computed anew.
        """
        where = self._runs().get(run)
        found = self._connection.execute(
            "SELECT s.answer, a.bytes FROM sent s LEFT JOIN answers a ON a.id = s.answer"
            " WHERE s.person = ? AND s.run = ? AND s.round = ? AND s.exchange = ?",
            (self._person(person), where, round, exchange),
        ).fetchone()
        if found is None:
            return None
        if found[1] is None:
            raise TacitError(
                f"round {round} ({exchange}) of run {run!r} was answered before and the answer is not kept",
                "a second answer is never computed; ask about newer rounds",
            )
        return self._sealing.opened(found[1], f"answer/{found[0]}")

    def commit(
        self,
        *,
        run: str,
        private: Mapping[str, Mapping[str, Array]],
        sent: Sequence[Sent],
        answer: bytes,
        notes: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Write new private state, ledger lines and the answer to be sent, in one transaction.

        ``private`` holds, per person, the arrays that changed; the others stay. ``notes`` are as in
        :meth:`keep_note`. Send the answer only after this returns.
        """
        with self._transaction():
            where = self._run(run)
            for person, arrays in private.items():
                at = self._person(person)
                both = packed({**self.private(person, run), **arrays})
                sealed = self._sealing.sealed(both, f"private/{at}/{where}")
                self._connection.execute(
                    "INSERT OR REPLACE INTO private VALUES (?, ?, ?)", (at, where, sealed)
                )
            self._add_sent(sent, self._add_answer(answer))
            for name, value in (notes or {}).items():
                self._write_note(where, name, value)
            self._drop_old_answers()
            commits = int(self._fact("commits", seal=False)) + 1
            self._set_fact("commits", str(commits).encode(), seal=False)
        self._count(commits)

    def count_as_answered(self, lines: Sequence[Sent]) -> int:
        """Take up lines that another party's record proves and this store lost; returns how many were new.

        They count towards every limit, and the exchanges are never answered again.
        """
        with self._transaction():
            before = self._connection.total_changes
            self._add_sent([_unknown(line) for line in lines], None, or_ignore=True)
            return self._connection.total_changes - before

    def sent(self, person: str | None = None, run: str | None = None) -> list[Sent]:
        """The device's own ledger, in the order it was written."""
        names = {at: name for name, at in self._ids().items()}
        runs = {at: name for name, at in self._runs().items()}
        chosen, where = "", []
        if person is not None:
            chosen, where = " WHERE person = ?", [self._person(person)]
        rows = self._connection.execute(
            f"SELECT person, run, round, exchange, line FROM sent{chosen} ORDER BY id", where
        )
        lines = []
        for who, which, round, exchange, raw in rows:
            if run is None or runs[which] == run:
                rest = json.loads(self._sealing.opened(raw, f"sent/{who}/{which}/{round}/{exchange}"))
                lines.append(Sent(names[who], runs[which], round, exchange, **rest))
        return lines

    def keep_note(self, run: str, name: str, value: bytes | None) -> None:
        """Keep a few bytes of a run's business across restarts (a session's state); ``None`` deletes."""
        with self._transaction():
            self._write_note(self._run(run), name, value)

    def note(self, run: str, name: str) -> bytes | None:
        """Bytes kept by :meth:`keep_note`."""
        where = self._runs().get(run)
        found = self._connection.execute(
            "SELECT value FROM notes WHERE run = ? AND name = ?", (where, name)
        ).fetchone()
        return None if found is None else self._sealing.opened(found[0], f"note/{where}/{name}")

    def secret(self) -> bytes:
        """32 bytes that never leave: :class:`tacit.rng.SystemKeys` derives from it what is drawn once."""
        return self._fact("secret")

    def keep(self, name: str, value: bytes) -> None:
        """Keep a value of the device itself (its identity, where its server is)."""
        with self._transaction():
            self._set_fact(f"own/{name}", value)

    def kept(self, name: str) -> bytes | None:
        """A value kept by :meth:`keep`."""
        return self._fact(f"own/{name}", missing=b"") or None

    # what the owner decided

    def limits(self) -> Limits:
        """What the owner allows."""
        return Limits.from_json(json.loads(self._fact("limits")))

    def set_limits(self, limits: Limits) -> None:
        """Replace what the owner allows."""
        with self._transaction():
            self._set_fact("limits", json.dumps(limits.to_json()).encode())

    @property
    def paused(self) -> str:
        """Why the device does not take part now; empty if it does."""
        if self.missing:
            return (
                f"an older copy of this store was put back: {self.missing} answers given since are not in it"
            )
        return self._fact("paused", missing=b"").decode()

    def set_paused(self, why: str) -> None:
        """Pause with a reason; an empty one resumes (and accepts what an older copy is missing)."""
        with self._transaction():
            self._set_fact("paused", why.encode())
            if not why and self.missing:
                self._set_fact("commits", str(self._counted()).encode(), seal=False)
        self._note_missing()

    # inside

    def _transaction(self) -> Any:
        return tables.transaction(self._connection, self.folder)

    def _one(self, query: str, *values: Any) -> Any:
        found = self._connection.execute(query, values).fetchone()
        if found is None:
            raise TacitError(f"the store in {self.folder} lacks a row", "put a good copy of the folder back")
        return found

    def _fact(self, name: str, *, seal: bool = True, missing: bytes | None = None) -> bytes:
        found = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None and missing is not None:
            return missing
        if found is None:
            raise TacitError(f"the store in {self.folder} lacks {name}", "put a good copy of the folder back")
        return self._sealing.opened(found[0], f"fact/{name}") if seal else found[0]

    def _set_fact(self, name: str, value: bytes, *, seal: bool = True) -> None:
        written = self._sealing.sealed(value, f"fact/{name}") if seal else value
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, written))

    def _ids(self) -> dict[str, int]:
        rows = self._connection.execute("SELECT id, name FROM people ORDER BY id")
        return {self._sealing.opened(raw, f"person/{at}").decode(): at for at, raw in rows}

    def _person(self, person: str) -> int:
        at = self._ids().get(person)
        if at is None:
            raise TacitError(f"nobody called {person!r} is on this device", "see: tacit device DIR --status")
        return at

    def _runs(self) -> dict[str, int]:
        return dict(self._connection.execute("SELECT name, id FROM runs ORDER BY id"))

    def _run(self, run: str) -> int:
        at = self._runs().get(run)
        if at is None:
            raise TacitError(f"this device knows no run {run!r}", "see: tacit device DIR --status")
        return at

    def _tombstone(self, person: str) -> bytes:
        return blake2b(person.encode(), key=self.secret(), digest_size=16).digest()

    def _add_person(self, person: str) -> None:
        known = self._connection.execute(
            "SELECT time FROM forgotten WHERE name = ?", (self._tombstone(person),)
        )
        buried = known.fetchone()
        if buried is not None:
            day = time.strftime("%Y-%m-%d", time.gmtime(buried[0]))
            raise TacitError(
                f"{person!r} was forgotten on this device on {day}",
                "make another device folder to begin anew",
            )
        (last,) = self._one("SELECT COALESCE(MAX(id), 0) FROM people")
        high = int(self._fact("people", seal=False, missing=b"0"))
        at = max(last, high) + 1  # never a forgotten person's number again
        self._set_fact("people", str(at).encode(), seal=False)
        name = self._sealing.sealed(person.encode(), f"person/{at}")
        history = self._sealing.sealed(packed_history(History.empty()), f"history/{at}")
        profile = self._sealing.sealed(b"{}", f"profile/{at}")
        self._connection.execute("INSERT INTO people VALUES (?, ?, ?, ?)", (at, name, history, profile))

    def _write_history(self, person: str, history: History) -> None:
        at = self._person(person)
        sealed = self._sealing.sealed(packed_history(history), f"history/{at}")
        self._connection.execute("UPDATE people SET history = ? WHERE id = ?", (sealed, at))

    def _add_answer(self, answer: bytes) -> int:
        (last,) = self._one("SELECT COALESCE(MAX(id), 0) FROM answers")
        sealed = self._sealing.sealed(answer, f"answer/{last + 1}")
        self._connection.execute("INSERT INTO answers VALUES (?, ?, ?)", (last + 1, len(answer), sealed))
        return last + 1

    def _add_sent(self, sent: Sequence[Sent], answer: int | None, *, or_ignore: bool = False) -> None:
        people, runs = self._ids(), self._runs()
        for line in sent:
            who, which = people.get(line.person), runs.get(line.run)
            if who is None or which is None:
                raise TacitError(
                    f"a ledger line about nobody here ({line.person!r}, {line.run!r})", "nothing was kept"
                )
            told = asdict(line)
            for name in ("person", "run", "round", "exchange"):
                del told[name]
            place = f"sent/{who}/{which}/{line.round}/{line.exchange}"
            row = (
                who,
                which,
                line.round,
                line.exchange,
                answer,
                self._sealing.sealed(json.dumps(told).encode(), place),
            )
            verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
            try:
                self._connection.execute(
                    f"{verb} INTO sent (person, run, round, exchange, answer, line)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )
            except sqlite3.IntegrityError as error:
                raise TacitError(
                    f"round {line.round} ({line.exchange}) of run {line.run!r} was answered before",
                    "send the kept answer again; a second one is refused",
                ) from error

    def _write_note(self, run: int, name: str, value: bytes | None) -> None:
        if value is None:
            self._connection.execute("DELETE FROM notes WHERE run = ? AND name = ?", (run, name))
            return
        sealed = self._sealing.sealed(value, f"note/{run}/{name}")
        self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (run, name, sealed))

    def _drop_old_answers(self) -> None:
        """The oldest answers go when together they are too large; their ledger lines stay."""
        kept = 0
        for at, size in self._connection.execute("SELECT id, size FROM answers ORDER BY id DESC").fetchall():
            if kept and kept + size > KEPT_ANSWERS:
                self._connection.execute("DELETE FROM answers WHERE id <= ?", (at,))
                return
            kept += size

    def _erase(self) -> None:
        """Rewrite the file and empty the log beside it, so that deleted bytes are gone from both."""
        try:
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise tables.told(error, self.folder) from error

    # the counter beside the database

    def _counted(self) -> int:
        try:
            return int((self.folder / COUNTER).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def _count(self, commits: int) -> None:
        """After a commit: a crash between the two leaves the counter behind, never ahead."""
        draft = self.folder / f".{COUNTER}.part"
        try:
            draft.write_text(str(commits), encoding="ascii")
            draft.replace(self.folder / COUNTER)
        except OSError as error:
            raise TacitError(
                f"cannot write {self.folder / COUNTER} ({error.strerror})",
                "free some space; the answer is kept",
            ) from error

    def _note_missing(self) -> None:
        self.missing = max(0, self._counted() - int(self._fact("commits", seal=False)))


def _unknown(line: Sent) -> Sent:
    return Sent(**{**asdict(line), "known": False})
