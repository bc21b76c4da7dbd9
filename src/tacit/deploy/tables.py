"""The device's database: its tables, how it is opened, how a full disk is told."""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

from tacit.errors import TacitError

VERSION = 1
MARK = 0x7AC17DE5  # SQLite's application id: says that a file is a device's store

SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE people (
  id INTEGER PRIMARY KEY, name BLOB NOT NULL, history BLOB NOT NULL, profile BLOB NOT NULL);
CREATE TABLE forgotten (name BLOB PRIMARY KEY, time INTEGER NOT NULL);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about BLOB NOT NULL, seen INTEGER NOT NULL);
CREATE TABLE models (
  run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE, round INTEGER NOT NULL, arrays BLOB NOT NULL);
CREATE TABLE private (
  person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
  run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  arrays BLOB NOT NULL, PRIMARY KEY (person, run));
CREATE TABLE answers (id INTEGER PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE sent (
  id INTEGER PRIMARY KEY,
  person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
  run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  round INTEGER NOT NULL, exchange TEXT NOT NULL,
  answer INTEGER REFERENCES answers ON DELETE SET NULL,
  line BLOB NOT NULL, UNIQUE (person, run, round, exchange));
CREATE INDEX sent_answer ON sent (answer);
CREATE TABLE notes (
  run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL,
  value BLOB NOT NULL, PRIMARY KEY (run, name));
"""


def connected(file: Path) -> sqlite3.Connection:
    """A connection with every promise switched on: durable commits, erased deletions, no temporary files."""
    connection = sqlite3.connect(file, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        for promise in (
            "temp_store = MEMORY",
            "secure_delete = ON",
            "foreign_keys = ON",
            "synchronous = FULL",
        ):
            connection.execute(f"PRAGMA {promise}")
    except sqlite3.Error as error:
        connection.close()
        raise told(error, file.parent) from error
    return connection


def create(connection: sqlite3.Connection) -> None:
    """The tables of a new store, in one transaction."""
    connection.execute("PRAGMA journal_mode = WAL")
    marks = f"PRAGMA application_id = {MARK}; PRAGMA user_version = {VERSION};"
    connection.executescript(f"BEGIN; {SCHEMA} {marks} COMMIT;")


def refuse_foreign(connection: sqlite3.Connection, folder: Path) -> None:
    """One clear line for a file that is no store, or another version's."""
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise _no_store(folder) from error
    if mark != MARK:
        raise _no_store(folder)
    if version != VERSION:
        raise TacitError(
            f"{folder} was written by another version of Tacit (store {version}, here {VERSION})",
            "use the version that wrote it",
        )


def _no_store(folder: Path) -> TacitError:
    return TacitError(
        f"{folder} holds no readable device store", "give a folder made by: tacit device DIR --init"
    )


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, folder: Path) -> Generator[sqlite3.Connection]:
    """All or nothing; a full disk or a locked file is one clear line and leaves what was there."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise told(error, folder) from error
        raise


def told(error: sqlite3.Error, folder: Path) -> TacitError:
    """A database error as one line that says what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return _no_store(folder)
    if code == sqlite3.SQLITE_FULL:
        return TacitError(
            f"no space left to write {folder}",
            "free some space; nothing was half-written, and the device can go on",
        )
    if code == sqlite3.SQLITE_BUSY:
        return TacitError(f"{folder} is in use by another process", "wait for it, or stop it")
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return TacitError(f"{folder} cannot be written ({error})", "check its permissions")
    if code == sqlite3.SQLITE_IOERR:
        return TacitError(
            f"the disk failed under {folder} ({error})", "check the disk; nothing was half-written"
        )
    return TacitError(f"the store in {folder} cannot be used ({error})", "put a good copy of the folder back")
