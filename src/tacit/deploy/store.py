"""What a device keeps: people's histories, private state, its own ledger, the answers it gave.

One folder, one SQLite file; every change is one transaction. With a key file, values are sealed (what
stays readable without the key: how many people, runs' names, rounds, sizes).

**A repeat is answered with the same bytes.** ``commit`` writes new private state, ledger lines and the
answer together, before the answer is sent. Asked again, the device returns those bytes; where it no longer
has them it refuses. It never computes a second answer to the same question: two would cost twice.

**An older copy put back.** A counter file beside the database grows with every commit, so a database
restored on its own is noticed (``missing``), and the device pauses. When its owner resumes, everything up to
the newest round in the counter file counts as answered: what was said is lost, so nothing is said anew, and
the lost answers count against every limit with nothing promised. A whole folder restored, counter and all,
cannot be noticed from inside.
"""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tacit.deploy import given, tables
from tacit.deploy.about import RunAbout
from tacit.deploy.history import History
from tacit.deploy.limits import Limits, Sent
from tacit.deploy.packing import packed, packed_history, unpacked, unpacked_history
from tacit.deploy.sealing import Sealing, read_key, written_key
from tacit.deploy.vault import Vault
from tacit.errors import TacitError
from tacit.types import Array

DATABASE = "device.sqlite"
LOCK = "taking-part.lock"
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
        self._vault = Vault(folder, connection, sealing)
        self._names: tuple[int, dict[str, int]] | None = None

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
            with store._vault.transaction():
                store._vault.set_fact("sealed", b"no" if sealing.key is None else b"yes", seal=False)
                store._vault.set_fact("check", _CHECK)
                store._vault.set_fact("secret", secrets.token_bytes(32))
                store._vault.set_fact("limits", json.dumps(Limits().to_json()).encode())
                store._vault.set_fact("commits", b"0", seal=False)
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
            sealed = store._vault.fact("sealed", seal=False) == b"yes"
            if sealed and key_file is None:
                raise TacitError(f"{folder} is sealed", "give its key with --key-file")
            if not sealed and key_file is not None:
                raise TacitError(f"{folder} is not sealed", "leave --key-file out")
            store._vault.sealing = Sealing(read_key(key_file) if key_file is not None else None)
            if store._vault.fact("check") != _CHECK:
                raise TacitError(f"{folder} cannot be read", "put a good copy of the folder back")
        except sqlite3.Error as error:
            connection.close()
            raise tables.told(error, folder) from error
        except TacitError as error:
            connection.close()
            if error.problem.startswith("a sealed value"):
                raise TacitError(
                    f"{folder} is sealed with another key", "give the key it was made with"
                ) from error
            raise
        return store

    def close(self) -> None:
        """Let the file go."""
        self._vault.close()

    def __enter__(self) -> "DeviceStore":
        """Open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @contextmanager
    def taking_part(self) -> Generator[None]:
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
        (raw,) = self._vault.sure("SELECT history FROM people WHERE id = ?", at)
        return unpacked_history(self._vault.opened(raw, f"history/{at}"))

    def add_history(self, person: str, rows: History) -> int:
        """Merge rows into a person's history (who is new is added); returns how many entries changed."""
        if not person:
            raise TacitError("a person without an id", "give the raw user id")
        with self._changing():
            if person not in self._ids():
                self._add_person(person)
            merged, changed = self.history(person).merged(rows)
            if changed:
                self._write_history(person, merged)
        return changed

    def remove_entry(self, person: str, item: str) -> bool:
        """Delete one entry of a history, in the file too; whether there was one."""
        with self._changing():
            before = self.history(person)
            after = before.without(item)
            if len(after) != len(before):
                self._write_history(person, after)
        self._vault.erase()
        return len(after) != len(before)

    def profile(self, person: str) -> dict[str, Any]:
        """What the device knows of its owner by public feature name: a label, a number, or labels."""
        at = self._person(person)
        (raw,) = self._vault.sure("SELECT profile FROM people WHERE id = ?", at)
        return json.loads(self._vault.opened(raw, f"profile/{at}"))

    def set_profile(self, person: str, profile: Mapping[str, Any]) -> None:
        """Replace what the device knows of its owner."""
        with self._changing():
            at = self._person(person)
            sealed = self._vault.sealed(json.dumps(dict(profile)).encode(), f"profile/{at}")
            self._vault.run("UPDATE people SET profile = ? WHERE id = ?", sealed, at)

    def wish(self, person: str) -> int:
        """The number this person would like to have in a run; -1: any."""
        return int(self._vault.fact(f"wish/{self._person(person)}", missing=b"-1"))

    def set_wish(self, person: str, number: int) -> None:
        """Say which number this person would like."""
        with self._changing():
            self._vault.set_fact(f"wish/{self._person(person)}", str(number).encode())

    def forget(self, person: str) -> None:
        """Remove a person's history, private state, ledger and answers from the file; a tombstone stays.

        The tombstone (a keyed digest of the id, and when) makes a later import of the same person fail, so
        that nobody's budget starts anew by being forgotten. What was sent cannot be called back.
        """
        with self._changing():
            at = self._person(person)
            mark = self._tombstone(person)
            # an answer given for several people together holds this person's part too
            self._vault.run("DELETE FROM answers WHERE id IN (SELECT answer FROM sent WHERE person = ?)", at)
            self._vault.run("DELETE FROM people WHERE id = ?", at)
            self._vault.run("DELETE FROM facts WHERE name = ?", f"wish/{at}")
            self._vault.run("INSERT INTO forgotten VALUES (?, ?)", mark, int(time.time()))
            self._names = None
            if not self._ids():
                self._vault.run("DELETE FROM notes")
                self._vault.run("DELETE FROM runs")
        self._vault.erase()

    # runs and models

    def keep_run(self, about: RunAbout) -> None:
        """Keep what the server says of a run; a run never changes its configuration or catalogue."""
        with self._changing():
            known, raw = self._runs().get(about.run), about.encoded()
            if known is None:
                now = int(time.time())
                self._vault.run("INSERT INTO runs (name, about, seen) VALUES (?, ?, ?)", about.run, raw, now)
                self._count_lost(about.run)
                return
            before = self.run(about.run)
            if (before.config, before.items, before.people) != (about.config, about.items, about.people):
                raise TacitError(
                    f"run {about.run!r} has changed its configuration or catalogue since this device joined",
                    "a changed run needs a new name; this device does not follow",
                )
            self._vault.run("UPDATE runs SET about = ? WHERE id = ?", raw, known)

    def run(self, run: str) -> RunAbout:
        """What the server said of a run."""
        (raw,) = self._vault.sure("SELECT about FROM runs WHERE id = ?", self._run(run))
        return RunAbout.decoded(raw)

    def runs(self) -> tuple[str, ...]:
        """The runs this device knows, newest last."""
        return tuple(self._runs())

    def keep_model(self, run: str, round: int, shared: Mapping[str, Array]) -> None:
        """Keep the shared arrays as they were at a round, for recommending without a network."""
        with self._changing():
            row = (self._run(run), round, packed(shared))
            self._vault.run("INSERT OR REPLACE INTO models VALUES (?, ?, ?)", *row)

    def model(self, run: str) -> tuple[int, dict[str, Array]] | None:
        """The newest shared arrays and their round."""
        found = self._vault.row("SELECT round, arrays FROM models WHERE run = ?", self._run(run))
        return None if found is None else (int(found[0]), unpacked(found[1]))

    # taking part

    def private(self, person: str, run: str) -> dict[str, Array]:
        """A person's private state in a run, ``{}`` at first; arrays as a cohort of one holds them."""
        at, where = self._person(person), self._runs().get(run)
        found = self._vault.row("SELECT arrays FROM private WHERE person = ? AND run = ?", at, where)
        return {} if found is None else unpacked(self._vault.opened(found[0], f"private/{at}/{where}"))

    def answered(self, person: str, run: str, round: int, exchange: str) -> bytes | None:
        """The very bytes sent before, ``None`` if this exchange was never answered.

        Raises:
            TacitError: It was answered, and its bytes are no longer here: it is never computed anew.
        """
        who, which = self._person(person), self._runs().get(run)
        return given.kept_answer(self._vault, who, which, round, exchange)

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
        with self._changing():
            where = self._run(run)
            for person, arrays in private.items():
                at = self._person(person)
                both = packed({**self.private(person, run), **arrays})
                sealed = self._vault.sealed(both, f"private/{at}/{where}")
                self._vault.run("INSERT OR REPLACE INTO private VALUES (?, ?, ?)", at, where, sealed)
            answer_id = given.add_answer(self._vault, answer)
            given.add_lines(self._vault, sent, self._ids(), self._runs(), answer_id)
            for name, value in (notes or {}).items():
                self._write_note(where, name, value)
            commits = self._vault.number("commits") + 1
            self._vault.set_fact("commits", str(commits).encode(), seal=False)
        newest = self._vault.counted()[1]
        for line in sent:
            newest[line.run] = max(line.round, newest.get(line.run, line.round))
        self._vault.count(commits + self._behind, newest)

    def lost_until(self, run: str) -> int:
        """The newest round whose answers this copy of the store may have lost; -2 where none were."""
        return self._lost(run)[0]

    def sent(self, person: str | None = None, run: str | None = None) -> list[Sent]:
        """The device's own ledger, in the order it was written."""
        people = {at: name for name, at in self._ids().items()}
        runs = {at: name for name, at in self._runs().items()}
        if run is not None and run not in runs.values():
            return []
        who = None if person is None else self._person(person)
        which = None if run is None else self._run(run)
        return list(given.lines_of(self._vault, people, runs, who, which))

    def keep_note(self, run: str, name: str, value: bytes | None) -> None:
        """Keep a few bytes of a run's business across restarts (a session's state); ``None`` deletes."""
        with self._changing():
            self._write_note(self._run(run), name, value)

    def note(self, run: str, name: str) -> bytes | None:
        """Bytes kept by :meth:`keep_note`."""
        where = self._runs().get(run)
        found = self._vault.row("SELECT value FROM notes WHERE run = ? AND name = ?", where, name)
        return None if found is None else self._vault.opened(found[0], f"note/{where}/{name}")

    def secret(self) -> bytes:
        """32 bytes that never leave: :class:`tacit.rng.SystemKeys` derives from it what is drawn once."""
        return self._vault.fact("secret")

    def keep(self, name: str, value: bytes) -> None:
        """Keep a value of the device itself (its identity, where its server is)."""
        with self._changing():
            self._vault.set_fact(f"own/{name}", value)

    def kept(self, name: str) -> bytes | None:
        """A value kept by :meth:`keep`."""
        return self._vault.fact(f"own/{name}", missing=b"") or None

    # what the owner decided

    def limits(self) -> Limits:
        """What the owner allows."""
        return Limits.from_json(json.loads(self._vault.fact("limits")))

    def set_limits(self, limits: Limits) -> None:
        """Replace what the owner allows."""
        with self._changing():
            self._vault.set_fact("limits", json.dumps(limits.to_json()).encode())

    @property
    def missing(self) -> int:
        """How many commits the counter beside the database has seen and the database has not."""
        return max(0, self._vault.counted()[0] - self._vault.number("commits") - self._behind)

    @property
    def paused(self) -> str:
        """Why the device does not take part now; empty if it does."""
        if self.missing:
            return (
                f"an older copy of this store was put back: {self.missing} answers given since are not in it"
            )
        return self._vault.fact("paused", missing=b"").decode()

    def set_paused(self, why: str) -> None:
        """Pause with a reason; an empty one resumes (and writes off what an older copy is missing)."""
        with self._changing():
            self._vault.set_fact("paused", why.encode())
            lost = self.missing
            if not why and lost:
                for run, newest in self._vault.counted()[1].items():
                    self._vault.set_fact(f"lost/{run}", json.dumps([newest, lost]).encode())
                    self._count_lost(run)
                self._vault.set_fact("behind", str(self._behind + lost).encode(), seal=False)

    # inside

    @contextmanager
    def _changing(self) -> Generator[None]:
        try:
            with self._vault.transaction():
                yield
        except BaseException:
            self._names = None  # what was added is not there after all
            raise

    def _lost(self, run: str) -> tuple[int, int]:
        """The newest round that may have been answered and lost, and how many answers were."""
        newest, lost = json.loads(self._vault.fact(f"lost/{run}", missing=b"[-2, 0]"))
        return newest, lost

    def _count_lost(self, run: str) -> None:
        """Put the lost answers of a run into everybody's ledger: nobody knows any more whose they were."""
        newest, lost = self._lost(run)
        if not lost or run not in self._runs():
            return
        for person in self.people():
            known = max((line.round for line in self.sent(person, run)), default=-2)
            lines = given.lost_lines(person, run, known, newest, lost, int(time.time()))
            given.add_lines(self._vault, lines, self._ids(), self._runs(), None)

    @property
    def _behind(self) -> int:
        """How many commits are known to be missing and were accepted as lost."""
        return self._vault.number("behind")

    def _ids(self) -> dict[str, int]:
        """Everybody's numbers; read again only when somebody wrote."""
        seen = self._vault.seen
        if self._names is None or self._names[0] != seen:
            rows = self._vault.run("SELECT id, name FROM people ORDER BY id")
            self._names = (seen, {self._vault.opened(raw, f"person/{at}").decode(): at for at, raw in rows})
        return self._names[1]

    def _person(self, person: str) -> int:
        at = self._ids().get(person)
        if at is None:
            raise TacitError(f"nobody called {person!r} is on this device", "see: tacit device DIR --status")
        return at

    def _runs(self) -> dict[str, int]:
        return dict(self._vault.run("SELECT name, id FROM runs ORDER BY id"))

    def _run(self, run: str) -> int:
        at = self._runs().get(run)
        if at is None:
            raise TacitError(f"this device knows no run {run!r}", "see: tacit device DIR --status")
        return at

    def _tombstone(self, person: str) -> bytes:
        return blake2b(person.encode(), key=self.secret(), digest_size=16).digest()

    def _add_person(self, person: str) -> None:
        buried = self._vault.row("SELECT time FROM forgotten WHERE name = ?", self._tombstone(person))
        if buried is not None:
            day = time.strftime("%Y-%m-%d", time.gmtime(buried[0]))
            raise TacitError(
                f"{person!r} was forgotten on this device on {day}",
                "make another device folder to begin anew",
            )
        at = self._vault.number("people") + 1  # never a forgotten person's number again
        self._vault.set_fact("people", str(at).encode(), seal=False)
        name = self._vault.sealed(person.encode(), f"person/{at}")
        history = self._vault.sealed(packed_history(History.empty()), f"history/{at}")
        profile = self._vault.sealed(b"{}", f"profile/{at}")
        self._vault.run("INSERT INTO people VALUES (?, ?, ?, ?)", at, name, history, profile)
        self._names = None

    def _write_history(self, person: str, history: History) -> None:
        at = self._person(person)
        sealed = self._vault.sealed(packed_history(history), f"history/{at}")
        self._vault.run("UPDATE people SET history = ? WHERE id = ?", sealed, at)

    def _write_note(self, run: int, name: str, value: bytes | None) -> None:
        if value is None:
            self._vault.run("DELETE FROM notes WHERE run = ? AND name = ?", run, name)
            return
        sealed = self._vault.sealed(value, f"note/{run}/{name}")
        self._vault.run("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", run, name, sealed)
