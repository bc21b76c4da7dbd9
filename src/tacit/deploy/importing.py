"""Histories into a device: from the person's own table, or one person's part of a known data set."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tacit.data import Dataset, load
from tacit.data.sources.tables import SUFFIXES
from tacit.deploy.cohort import Owner, profile_of
from tacit.deploy.history import History
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError

_NOBODY = "whoever-owns-this-device"


def imported(spec: str, data_dir: Path | None = None, *, owner: str = "me") -> Mapping[str, Owner]:
    r"""Everybody in a table (CSV, TSV, Parquet, ``.inter``) or a named data set, by raw user id.

    A table without a column of users is the ``owner``'s. Of repeated entries the last one counts.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.csv"
        >>> _ = path.write_text("item,rating\nx,4\ny,5\n")
        >>> imported(str(path), owner="ann")["ann"].history.items
        ('x', 'y')
    """
    is_table = spec.lower().endswith(SUFFIXES)
    found = owners_of(load(f"{spec}:duplicates=last,person={_NOBODY}" if is_table else spec, data_dir))
    return {owner if raw == _NOBODY else raw: theirs for raw, theirs in found.items()}


def owners_of(data: Dataset) -> Mapping[str, Owner]:
    """Everybody in a data set, with what it says of them."""
    log = data.interactions
    raw_items = [str(raw) for raw in data.item_ids.values.tolist()]
    starts = np.searchsorted(log.users, np.arange(data.users + 1))
    found: dict[str, Owner] = {}
    for user, raw in enumerate(data.user_ids.values.tolist()):
        mine = slice(int(starts[user]), int(starts[user + 1]))
        items = tuple(raw_items[item] for item in log.items[mine].tolist())
        times = None if log.times is None else log.times[mine].copy()
        history = History(items, log.values[mine].copy(), times)
        found[str(raw)] = Owner(history, profile_of(data.user_features, user))
    return found


def taken_in(
    store: DeviceStore, spec: str, user: str, *, everyone: bool, data_dir: Path | None
) -> dict[str, int]:
    """Import into a store; returns how many entries changed, per person.

    A folder is one person's unless ``everyone`` says that it is a gateway for several.
    """
    here = store.people()
    found = imported(spec, data_dir, owner=user or (here[0] if len(here) == 1 else "me"))
    if user and user not in found:
        raise TacitError(f"{spec} holds nothing of user {user!r}", "see its user column")
    wanted = {user: found[user]} if user else dict(found)
    if not everyone and len(wanted) > 1:
        raise TacitError(
            f"{spec} holds {len(wanted)} people's histories",
            "say whose with --user ID, or make this device a gateway for all with --everyone",
        )
    strangers = [raw for raw in wanted if raw not in here]
    if here and strangers and not everyone:
        raise TacitError(
            f"this folder is {here[0]!r}'s, and {strangers[0]!r} is somebody else",
            "use another folder, or make this one a gateway with --everyone",
        )
    changed = {}
    for raw, owner in wanted.items():
        if len(owner.history):
            changed[raw] = store.add_history(raw, owner.history)
            if owner.profile:
                store.set_profile(raw, {**store.profile(raw), **owner.profile})
    return changed
