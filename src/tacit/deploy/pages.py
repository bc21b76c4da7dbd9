"""What each page says: built from the device's store alone."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote

from tacit.deploy.limits import Limits
from tacit.deploy.local_view import Influence, LocalView
from tacit.deploy.page_parts import Row, card, form, further_links, page, table, when
from tacit.deploy.page_sent import lines_card, run_card
from tacit.deploy.store import DeviceStore
from tacit.errors import TacitError

SHOWN = 100  # entries or ledger lines per page
AT_ONCE = 2.0  # seconds of work that a page may cost without being asked for


@dataclass
class Pages:
    """One person's pages; what was worked out is kept until the model or the history changes."""

    store: DeviceStore
    person: str
    token: str
    _view: tuple[object, LocalView | TacitError] | None = field(default=None)
    _influences: tuple[object, list[Influence]] | None = field(default=None)

    @property
    def who(self) -> str:
        """The line under the name."""
        paused = self.store.paused
        return f"Person {self.person} · {'paused' if paused else 'takes part when asked'}"

    def _page(self, title: str, here: str, body: str, said: str = "") -> str:
        return page(title, here, self.who, body, said)

    def _known(self) -> object:
        history = self.store.history(self.person)
        runs = [(run, model and model[0]) for run in self.store.runs() for model in [self.store.model(run)]]
        return (tuple(history.rows()), tuple(runs), tuple(self.store.profile(self.person)))

    def view(self) -> LocalView | TacitError:
        """The person's view of the newest run, or why there is none."""
        known = self._known()
        if self._view is None or self._view[0] != known:
            try:
                found: LocalView | TacitError = LocalView.of(self.store, self.person)
            except TacitError as error:
                found = error
            self._view = (known, found)
        return self._view[1]

    def titles(self) -> Mapping[str, str]:
        """Titles by raw item id, from the runs this device knows."""
        found: dict[str, str] = {}
        for run in self.store.runs():
            about = self.store.run(run)
            found |= {raw: title for raw, title in zip(about.items, about.titles(), strict=True) if title}
        return found

    # the pages

    def top(self, said: str = "") -> str:
        """My list."""
        view = self.view()
        if isinstance(view, TacitError):
            return self._page("My list", "/", _no_list(view), said)
        rows = "".join(
            f'<li><span class="title">{_named(str(line.item), line.title)}</span>'
            f'<span class="score">{line.score:.2f}</span></li>'
            for line in view.top(10)
        )
        how = (
            "with what this device learned while taking part"
            if view.trained
            else "with a taste worked out here from your entries alone"
        )
        body = (
            f'<p class="lead">Worked out on this device, with no network: the model of round {view.round} of '
            f"{escape(view.about.method_name)}, {how}. What you have met is left out.</p>"
            f'<section class="card"><ol class="top">{rows}</ol></section>'
        )
        return self._page("My list", "/", body, said)

    def have(self, query: str, start: int, said: str = "") -> str:
        """What I have: searchable, every entry deletable."""
        titles, wanted = self.titles(), query.strip().lower()
        rows = [
            row
            for row in sorted(self.store.history(self.person).rows(), key=lambda row: -(row[2] or 0))
            if wanted in row[0].lower() or wanted in titles.get(row[0], "").lower()
        ]
        shown = rows[start : start + SHOWN]
        listed = [
            Row(
                (
                    _named(item, titles.get(item, "")),
                    f"{value:g}",
                    when(at),
                    f'<a href="/have/delete?item={quote(item, safe="")}" '
                    f'aria-label="Delete {escape(titles.get(item, item), quote=True)}">Delete</a>',
                )
            )
            for item, value, at in shown
        ]
        search = (
            '<form class="line" method="get" action="/have" role="search"><div><label for="q">'
            "Search by title or id</label>"
            f'<input id="q" type="search" name="q" value="{escape(query, quote=True)}"></div>'
            "<button>Search</button></form>"
        )
        caption = f"{len(rows)} entries" + (f" matching “{query}”" if query else "")
        body = (
            '<p class="lead">Your history lies on this device. No entry of it is ever sent as it is; what '
            'messages may tell of it is under <a href="/sent">What left</a>.</p>'
            f'<section class="card">{search}'
            + (
                table(caption, ("Item", "Value", "When (UTC)", ""), listed, numbers=(1,))
                if listed
                else f"<p>{escape(caption)}.</p>"
            )
            + further_links("/have", query, start, len(rows), SHOWN)
            + "</section>"
        )
        return self._page("What I have", "/have", body, said)

    def deletion(self, item: str) -> str:
        """Are you sure."""
        found = [row for row in self.store.history(self.person).rows() if row[0] == item]
        if not found:
            raise TacitError(f"no entry about {item!r}", "it may be deleted already")
        inside = (
            f'<input type="hidden" name="item" value="{escape(item, quote=True)}">'
            '<button class="danger">Delete it</button> <a class="button quiet" href="/have">Keep it</a>'
        )
        body = card(
            "Delete this entry?",
            f"<p>{_named(item, self.titles().get(item, ''))}: {found[0][1]:g}</p>"
            "<p>It is erased from this device's file. What earlier answers told of it cannot "
            "be called back; later ones will not contain it.</p>" + form("/have/delete", self.token, inside),
            "warn",
        )
        return self._page("What I have", "/have", body)

    def learned(self, *, asked: bool) -> str:
        """What was learned from it."""
        view = self.view()
        if isinstance(view, TacitError):
            return self._page("What was learned", "/learned", _no_list(view))
        kept = [
            Row((escape(line.name), " × ".join(map(str, line.shape)) or "1", f"{line.norm:.4g}"))
            for line in view.learned()
        ]
        origin = (
            "It was trained here while taking part, and it has never left this device."
            if view.trained
            else "It was worked out here from your entries alone; nothing was sent for it."
        )
        body = (
            '<p class="lead">A taste is a list of numbers. One by one they mean nothing; '
            "what they do is below.</p>"
            + card(
                "What is kept about your taste",
                f"<p>{origin}</p>" + table("Private numbers", ("Name", "Size", "Length"), kept, (2,)),
            )
            + self._nearest(view)
            + self._strongest(view, asked=asked)
        )
        return self._page("What was learned", "/learned", body)

    def _nearest(self, view: LocalView) -> str:
        near = view.nearest(8)
        if not near:
            return card(
                "Nearest to your taste", "<p>This kind of model keeps no vector to compare items with.</p>"
            )
        rows = [Row((_named(str(line.item), line.title), f"{line.score:.3f}")) for line in near]
        note = "Items whose numbers point where yours do, met or not (1 is the same direction)."
        return card("Nearest to your taste", table(note, ("Item", "Cosine"), rows, (1,)))

    def _strongest(self, view: LocalView, *, asked: bool) -> str:
        title = "What shapes your list most"
        cost = self._cost(view)
        if cost > AT_ONCE and not asked:
            return card(
                title,
                f"<p>Leaving out each of your {len(view.cohort.items)} entries in turn takes about "
                f"{cost:.0f} seconds here.</p>"
                '<p><a class="button" href="/learned?all=yes">Work it out</a></p>',
            )
        found = self._found(view)
        if not found:
            return card(title, "<p>At least two entries are needed to leave one out.</p>")
        rows = [
            Row((_named(line.item, line.title), f"{line.value:g}", str(line.changed), f"{line.lift:+.3f}"))
            for line in found[:12]
        ]
        most = " The 12 strongest." if len(found) > 12 else ""
        note = (
            f"Each of your {len(found)} entries left out in turn, on this device: how many of your "
            f"first ten would be others, and what the entry adds to their mean score.{most}"
        )
        return card(title, table(note, ("Entry", "Value", "Others in top ten", "Adds"), rows, (1, 2, 3)))

    def _cost(self, view: LocalView) -> float:
        if self._influences is not None and self._influences[0] is view:
            return 0.0
        began = time.perf_counter()
        view.refolded()
        return (time.perf_counter() - began) * len(view.cohort.items)

    def _found(self, view: LocalView) -> list[Influence]:
        if self._influences is None or self._influences[0] is not view:
            self._influences = (view, view.influences(10))
        return self._influences[1]

    def sent(self, start: int) -> str:
        """What left this device."""
        lines = self.store.sent(self.person)
        if not lines:
            body = card("Nothing has left this device", "<p>It has not taken part in any round yet.</p>")
            return self._page("What left this device", "/sent", body)
        abouts = {run: self.store.run(run) for run in self.store.runs()}
        runs = "".join(
            run_card(abouts[run], [line for line in lines if line.run == run])
            for run in reversed(list(abouts))
            if any(line.run == run for line in lines)
        )
        lead = (
            '<p class="lead">This device’s own record, written before each message was sent. '
            "Nobody else can change it.</p>"
        )
        further = further_links("/sent", "", start, len(lines), SHOWN)
        body = lead + runs + lines_card(lines, abouts, start, SHOWN, further)
        return self._page("What left this device", "/sent", body)

    def settings(self, said: str = "") -> str:
        """Pause, limits, forget."""
        paused = self.store.paused
        if paused:
            state = f"<p>This device takes no part: {escape(paused)}.</p>"
            button = '<button name="do" value="resume">Take part again</button>'
        else:
            state = "<p>When a server this device joined asks, it answers within the limits below.</p>"
            button = '<button class="quiet" name="do" value="pause">Pause</button>'
        body = (
            card("Taking part", state + form("/pause", self.token, button))
            + card("Limits", self._limit_form())
            + card(
                "Forget me",
                "<p>Erases your history, your taste, your record and the kept answers from this device’s "
                "file. What was sent cannot be called back.</p>"
                '<p><a class="button quiet" href="/forget">Forget me …</a></p>',
                "warn",
            )
        )
        return self._page("Limits, pause, forget", "/settings", body, said)

    def _limit_form(self) -> str:
        inputs = "".join(
            f'<div><label for="{name}">{label}</label><input id="{name}" name="{name}" type="text" '
            f'inputmode="decimal" value="{value}" placeholder="no limit"></div>'
            for name, label, value in _limit_fields(self.store.limits())
        )
        note = (
            "<p>Checked on this device against its own record before anything is worked out; a server "
            "that asks for more is refused. With a limit on ε, whatever promises the server "
            "nothing is refused too. Limits count per run, so how many runs this device joins is one "
            "of them.</p>"
        )
        return note + form(
            "/limits", self.token, f'<div class="fields">{inputs}</div><button>Save limits</button>'
        )

    def forgetting(self, said: str = "") -> str:
        """Are you sure, with your name."""
        lines = len(self.store.sent(self.person))
        inside = (
            '<p><label class="check"><input type="checkbox" name="sure" value="yes" required> '
            "Erase everything about me on this device</label></p>"
            f'<p><label for="name">Type <b>{escape(self.person)}</b> to confirm</label>'
            '<input id="name" name="name" type="text" autocomplete="off" required></p>'
            '<button class="danger">Forget me</button> <a class="button quiet" href="/settings">Go back</a>'
        )
        body = card(
            "What is erased, and what is not",
            f"<p>Erased from this device’s file: {len(self.store.history(self.person))} entries, your taste, "
            f"{lines} lines of the record and the answers kept for repeats. What stays is a mark that "
            "somebody was forgotten here, so that the same history cannot be brought back and "
            "spend your budget twice.</p>"
            "<p>Not erased: what was sent before is part of the shared model, and copies of this folder made "
            "earlier are copies. Deleting those is up to whoever made them.</p>"
            + form("/forget", self.token, inside),
            "warn",
        )
        return self._page("Forget me", "/settings", body, said)


def forgotten() -> str:
    """The last page."""
    body = card(
        "You are forgotten on this device",
        "<p>Nothing of you is left in its file. You can close this page.</p>",
    )
    return page("Goodbye", "", "", body)


def refused(title: str, why: str) -> str:
    """A page for what cannot be done."""
    return page(title, "", "", card(title, f'<p>{escape(why)}</p><p><a href="/">Back</a></p>', "warn"))


def _no_list(error: TacitError) -> str:
    return card(
        "There is nothing to show yet",
        f"<p>{escape(error.problem.capitalize())}.</p><p>{escape(error.remedy)}</p>",
    )


def _named(item: str, title: str) -> str:
    return f"{escape(title)} <span class=id>{escape(item)}</span>" if title else escape(item)


def _limit_fields(limits: Limits) -> list[tuple[str, str, str]]:
    """Each limit's name, what it means, and what is set."""
    server = limits.epsilon.get("server")
    fields = [
        ("per_run", "Rounds per run, at most", limits.per_run),
        ("runs", "Runs to take part in, at most", limits.runs),
        ("per_day", "Rounds per day, at most", limits.per_day),
        ("separation", "Rounds between two, at least", limits.separation or None),
        ("bytes_per_day", "Bytes per day, questions and answers, at most", limits.bytes_per_day),
        (
            "epsilon:server",
            "ε towards the server per run, at most",
            None if server is None else f"{server:g}",
        ),
    ]
    return [(name, label, "" if value is None else str(value)) for name, label, value in fields]
