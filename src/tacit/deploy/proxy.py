"""The proxy: takes sealed reports and letters from devices, passes on what hides people, keeps no sender.

A process of its own with its own key and file. It can read nothing: reports are sealed to the server, letters
to their readers. Reports lie under random numbers, apart from the (keyed) marks of who sent; a batch is all
of an exchange's reports in that random order, once at least ``n_min`` people are behind it.
"""

import hashlib
import json
import secrets
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tacit.deploy.folders import appearing, made
from tacit.deploy.wire import (
    MAX_HEAD,
    Frame,
    Kind,
    Place,
    Reason,
    Refused,
    framed,
    heading,
    public_identity,
    unframed,
)
from tacit.errors import TacitError
from tacit.transport.sealed_reports import SEAL_BYTES

LAYOUT = 1
SMALL = (
    1 << 14
)  # bytes of a message of which nothing is known; the server's and a device's frame, without parts
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE exchanges (nonce TEXT PRIMARY KEY, place TEXT NOT NULL, size INTEGER NOT NULL,
                        amount INTEGER NOT NULL, crowd INTEGER NOT NULL, most INTEGER NOT NULL,
                        people TEXT NOT NULL, invited TEXT NOT NULL,
                        closed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE senders (nonce TEXT, mark BLOB, content BLOB, PRIMARY KEY (nonce, mark)) WITHOUT ROWID;
CREATE TABLE reports (at INTEGER PRIMARY KEY, nonce TEXT, mark BLOB, sealed BLOB, UNIQUE (nonce, mark));
CREATE TABLE letters (at INTEGER PRIMARY KEY, nonce TEXT, reader INTEGER, sealed BLOB,
                      fetched INTEGER DEFAULT 0);
CREATE TABLE refusals (reason TEXT PRIMARY KEY, times INTEGER NOT NULL);
"""


class ProxyService:
    """The proxy's state and its answers, frame by frame; no network of its own.

    Formal guarantees:
        The server is handed an exchange's reports in a random order and without senders, or not at all
        while fewer than the exchange's ``n_min`` people sent some. Nobody's second message counts. A proxy
        that works together with the server hides nothing; then only what devices add to reports holds.
    """

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "proxy.sqlite", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            self._db.execute(f"PRAGMA {pragma}")
        self._turn = threading.Lock()
        self._identity = self._fact("identity")
        self._server = self._fact("server")

    @classmethod
    def created(cls, folder: Path, server: bytes) -> "ProxyService":
        """A new proxy that listens to the server with this public key."""
        file = folder / "proxy.sqlite"
        if file.exists():
            raise TacitError(
                f"{folder} holds a proxy already", "start it without --init, or give another folder"
            )
        made(folder)
        with appearing(file) as draft, closing(sqlite3.connect(draft)) as db:
            db.executescript(f"{_TABLES} PRAGMA user_version = {LAYOUT};")
            facts = {"identity": secrets.token_bytes(32), "server": server}
            db.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            db.commit()
        return cls(folder)

    @classmethod
    def opened(cls, folder: Path) -> "ProxyService":
        """A proxy that was stopped or killed."""
        if not (folder / "proxy.sqlite").is_file():
            raise TacitError(f"{folder} holds no proxy", "make one with --init")
        try:
            found = cls(folder)
            (layout,) = found._db.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            raise TacitError(
                f"{folder}/proxy.sqlite cannot be read ({error})", "put a back-up of the folder back"
            ) from error
        if layout != LAYOUT:
            found.close()
            raise TacitError(f"{folder} is of another version of Tacit", "use the version that wrote it")
        return found

    @property
    def public(self) -> bytes:
        """The public half of the proxy's key."""
        return public_identity(self._identity)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def expected(self, start: bytes) -> tuple[int, bool]:
        """How long a message that begins so may be, and whether it names an exchange that is open.

        The name of an open exchange is a secret of those who take part in it.
        """
        with self._turn:
            return self._expected(start)

    def _expected(self, start: bytes) -> tuple[int, bool]:
        try:
            kind, head = heading(start)
        except Refused:
            return SMALL, False
        if kind is Kind.OPEN:
            return SMALL + MAX_HEAD, False
        nonce = str(head.get("nonce"))
        row = self._db.execute("SELECT most FROM exchanges WHERE nonce = ?", (nonce,)).fetchone()
        return (SMALL, False) if row is None or kind is not Kind.POST else (SMALL + row[0], True)

    def received(self, wire: bytes) -> bytes:
        """The answer to a frame; who is refused learns the name of the reason and nothing else."""
        with self._turn:
            try:
                frame = unframed(wire, self._expected(wire)[0])
                with self._whole():
                    answer = self._answer(frame)
                if frame.kind is Kind.FORGET:  # else the log beside the file would still hold it
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return answer
            except Refused as error:
                self._db.execute(
                    "INSERT INTO refusals VALUES (?, 1) ON CONFLICT (reason) DO UPDATE SET times = times + 1",
                    (error.reason.value,),
                )
                return framed(Kind.REFUSAL, {"no": error.reason.value}, [], self._identity)

    def refusals(self) -> dict[str, int]:
        """How often what was refused."""
        return dict(self._db.execute("SELECT reason, times FROM refusals ORDER BY reason"))

    def _answer(self, frame: Frame) -> bytes:
        place = Place.of(frame)
        if frame.kind in {Kind.OPEN, Kind.COLLECT, Kind.FORGET}:
            if not frame.signed_by(self._server):
                raise Refused(Reason.UNSIGNED)
            steps = {Kind.OPEN: self._open, Kind.COLLECT: self._collect, Kind.FORGET: self._forget}
            return steps[frame.kind](frame, place)
        if frame.kind not in {Kind.POST, Kind.FETCH}:
            raise Refused(Reason.MALFORMED, "it is not for a proxy")
        row = self._db.execute(
            "SELECT place, people, invited, closed, crowd, size, amount FROM exchanges WHERE nonce = ?",
            (place.nonce,),
        ).fetchone()
        if row is None or json.loads(row[0]) != place.head():
            raise Refused(Reason.REPLAYED, "no such exchange is open")
        slot, closed = frame.read("slot", int), bool(row[3])
        known = json.loads(row[1]).get(str(slot))
        if known is None:
            raise Refused(Reason.STRANGER)
        if not frame.signed_by(bytes.fromhex(known)):
            raise Refused(Reason.UNSIGNED)
        if frame.kind is Kind.FETCH:
            return self._letters(place, slot, closed=closed)
        if slot not in json.loads(row[2]):
            raise Refused(Reason.UNINVITED)
        _refuse_other_terms(frame, *row[4:])
        return self._post(frame, place, slot, closed=closed)

    def _open(self, frame: Frame, place: Place) -> bytes:
        people = frame.read("people", dict)
        self._db.execute(
            "INSERT INTO exchanges (nonce, place, size, amount, crowd, most, people, invited)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (nonce) DO UPDATE SET people = excluded.people",
            (
                place.nonce,
                json.dumps(place.head()),
                frame.read("size", int),
                frame.read("each", int),
                frame.read("crowd", int),
                frame.read("most", int),
                json.dumps(people),
                json.dumps(frame.read("invited", list)),
            ),
        )
        return self._kept(place)

    def _kept(self, place: Place) -> bytes:
        return framed(Kind.KEPT, place.head(), [], self._identity)

    def _post(self, frame: Frame, place: Place, slot: int, *, closed: bool) -> bytes:
        mark = hashlib.blake2b(f"{place.nonce}/{slot}".encode(), key=self._identity, digest_size=16).digest()
        content = hashlib.blake2b(frame.covered, digest_size=16).digest()
        known = self._db.execute(
            "SELECT content FROM senders WHERE nonce = ? AND mark = ?", (place.nonce, mark)
        ).fetchone()
        if known is not None:
            if bytes(known[0]) == content:
                return self._kept(place)  # the same bytes again, after somebody's restart
            raise Refused(Reason.DUPLICATE)
        if closed:
            raise Refused(Reason.LATE)
        readers = frame.read("readers", list)
        whole = all(type(reader) is int and 0 <= reader < 1 << 32 for reader in readers)
        if not whole or len(frame.parts) != 1 + len(readers):
            raise Refused(Reason.MALFORMED)
        reports, letters = frame.parts[0], frame.parts[1:]
        size = frame.read("size", int)
        self._db.execute("INSERT INTO senders VALUES (?, ?, ?)", (place.nonce, mark, content))
        for at in range(0, len(reports), size or 1):
            self._keep_report(place.nonce, reports[at : at + size])
        for reader, letter in zip(readers, letters, strict=True):
            self._db.execute(
                "INSERT INTO letters (at, nonce, reader, sealed) VALUES (?, ?, ?, ?)",
                (secrets.randbits(62), place.nonce, reader, letter),
            )
        return self._kept(place)

    def _keep_report(self, nonce: str, sealed: bytes) -> None:
        mark = hashlib.blake2b(sealed, digest_size=16).digest()
        before = self._db.total_changes
        self._db.execute(
            "INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?)", (secrets.randbits(62), nonce, mark, sealed)
        )
        if self._db.total_changes == before:
            self._db.execute(
                "INSERT INTO refusals VALUES (?, 1) ON CONFLICT (reason) DO UPDATE SET times = times + 1",
                (Reason.DUPLICATE.value,),
            )

    def _collect(self, frame: Frame, place: Place) -> bytes:
        del frame
        row = self._db.execute("SELECT size, crowd FROM exchanges WHERE nonce = ?", (place.nonce,)).fetchone()
        if row is None:
            raise Refused(Reason.REPLAYED, "no such exchange is open")
        self._db.execute("UPDATE exchanges SET closed = 1 WHERE nonce = ?", (place.nonce,))
        (people,) = self._db.execute(
            "SELECT COUNT(*) FROM senders WHERE nonce = ?", (place.nonce,)
        ).fetchone()
        letters, length, fetched = self._db.execute(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(sealed) - ?), 0),"
            " COALESCE(SUM((LENGTH(sealed) - ?) * fetched), 0) FROM letters WHERE nonce = ?",
            (SEAL_BYTES, SEAL_BYTES, place.nonce),
        ).fetchone()
        reports = b""
        if people >= row[1] and row[0]:
            rows = self._db.execute("SELECT sealed FROM reports WHERE nonce = ? ORDER BY at", (place.nonce,))
            reports = b"".join(bytes(found[0]) for found in rows)
        head = {
            **place.head(),
            "people": people if people >= row[1] else 0,
            "size": row[0],
            "letters": letters,
            "letter_bytes": length,
            "read": fetched,
            "refused": self.refusals(),
        }
        return framed(Kind.BATCH, head, [reports], self._identity)

    def _letters(self, place: Place, slot: int, *, closed: bool) -> bytes:
        if not closed:
            raise Refused(Reason.OUT_OF_TURN, "letters are still being written")
        self._db.execute("UPDATE letters SET fetched = 1 WHERE nonce = ? AND reader = ?", (place.nonce, slot))
        rows = self._db.execute(
            "SELECT sealed FROM letters WHERE nonce = ? AND reader = ? ORDER BY at", (place.nonce, slot)
        )
        return framed(Kind.LETTERS, place.head(), [bytes(row[0]) for row in rows], self._identity)

    def _forget(self, frame: Frame, place: Place) -> bytes:
        del frame
        for table in ("exchanges", "senders", "reports", "letters"):
            self._db.execute(f"DELETE FROM {table} WHERE nonce = ?", (place.nonce,))
        return self._kept(place)

    @contextmanager
    def _whole(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _fact(self, name: str) -> bytes:
        row: Any = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return bytes(row[0])


def _refuse_other_terms(frame: Frame, crowd: int, size: int, each: int) -> None:
    """Hold the server's word about an exchange against what the device signed.

    The server opened it, and must not be believed: it could ask for a crowd of one, or for reports as long as
    all of a person's together, which would then stay together.
    """
    if crowd < frame.read("n_min", int):
        raise Refused(Reason.SMALL_CROWD, "the server wants fewer people behind a batch than the device")
    if (frame.read("size", int), frame.read("each", int)) != (size, each):
        raise Refused(Reason.WRONG_SHAPE, "the server cuts reports otherwise than the device")
    if not frame.parts or len(frame.parts[0]) != size * each:
        raise Refused(Reason.WRONG_SHAPE, "reports of another size or number")
