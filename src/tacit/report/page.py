"""One self-contained HTML page about a run, with other runs beside it: no script, nothing fetched.

It reads run folders and nothing else: what it says is what was measured when the run was made.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.report import figures
from tacit.report.attacks import attack_results
from tacit.report.markup import Column, Section, document, table, text
from tacit.report.saved import Saved, Subject, subjects
from tacit.report.sent import sent_by_devices
from tacit.report.words import (
    epsilon_text,
    meaning,
    mode_words,
    observer_name,
    observer_sees,
    sized,
)
from tacit.runtime.checkpoint import written_whole

PANELS = 4
BESIDE = 5
NUMBER = {"number": True}
ALONE = (
    "<p>Nothing stands beside this run yet. <code>tacit report RUN --beside</code> trains the same method "
    "with all data in one place and with every person alone, and the usual baselines, on the same split and "
    "seed; <code>tacit report RUN OTHER</code> takes runs that are there already. Then they are lines and "
    "rows here.</p>"
)


def write_report(folder: Path) -> Path:
    """Write ``report.html`` into a finished run's folder."""
    target = folder / "report.html"
    write_page([folder], target)
    return target


def write_page(folders: Sequence[Path], target: Path) -> Path:
    """Write one page about runs; the first is the one told about, the others are drawn beside it."""
    whole = page(subjects(folders))
    target.parent.mkdir(parents=True, exist_ok=True)
    written_whole(target, lambda draft: draft.write_text(whole, encoding="utf-8"))
    return target


def page(told: Sequence[Subject]) -> str:
    """The page's HTML; the first subject is the one in question.

    Example:
        >>> empty = {"privacy": [], "metrics": {}, "traffic": {"total_bytes": 0}, "seconds": {}, "notes": []}
        >>> run = Saved({"method": "pop", "data": "demo", "split": "x", "seed": 1, "rounds": 0, **empty})
        >>> "Nothing leaves a device" in page([Subject("pop", (run,))])
        True
    """
    main, beside = told[0], told[1:]
    run = main.first
    sections = [
        Section("accuracy", "Accuracy", _accuracy(main, beside)),
        Section("curve", "Learning curve", _curve(main, beside)) if run.curve else None,
        Section("privacy", "Privacy over the whole run", _privacy(run.result)),
        Section("attacks", "Attacks, beside the claims", attack_results(run)),
        Section("traffic", "What left the devices", sent_by_devices(run)),
        Section("groups", "For whom it works", _groups(run.result)) if run.result.get("groups") else None,
        Section("beside", "Beside other methods", _beside(told) if beside else ALONE),
        Section("configuration", "Configuration and versions", _configuration(run)),
    ]
    title = f"{main.label} on {run.result['data']}"
    return document(
        f"{title} · Tacit", _head(title, main), [part for part in sections if part], _foot(run.result)
    )


def _head(title: str, main: Subject) -> str:
    result = main.first.result
    seeds = f"{len(main.runs)} seeds" if len(main.runs) > 1 else f"seed {result['seed']}"
    line = f"Split {result['split']}, {seeds}, {result['rounds']} rounds."
    return f'<h1>{text(title)}</h1><p class="muted">{text(line)}</p>{_summary(main)}'


def _summary(main: Subject) -> str:
    """The few numbers a reader looks for first."""
    result = main.first.result
    boxes = []
    for name, value in list(main.metrics().items())[:1]:
        boxes.append((name.upper(), f"{value:.4f}", _within(main, name)))
    for line in result["privacy"]:
        if line["observer"] in {"server", "release"}:
            epsilon = "∞" if line["epsilon"] is None else f"{line['epsilon']:.3g}"
            at = (
                "nothing proved"
                if line["epsilon"] is None
                else f"at δ = {line['delta']:g}, per {line['unit']}"
            )
            boxes.append((f"ε, {observer_name(line['observer']).lower()}", epsilon, at))
    sent = result["traffic"].get("up_bytes_per_client_round")
    if sent:
        boxes.append(
            ("sent per person and round", sized(sent), f"{sized(result['traffic']['total_bytes'])} in all")
        )
    cells = (
        f'<li><span class="name">{text(name)}</span><span class="big">{text(big)}</span>'
        f'<span class="small">{text(small)}</span></li>'
        for name, big, small in boxes
    )
    return f'<ul class="figures">{"".join(cells)}</ul>' if boxes else ""


def _within(subject: Subject, metric: str) -> str:
    found = subject.interval(metric)
    return "" if found is None else f"95 %: {found.low:.4f} to {found.high:.4f}"


def _accuracy(main: Subject, beside: Sequence[Subject]) -> str:
    metrics = main.metrics()
    if not metrics:
        return "<p>Nothing was measured.</p>"
    shown = [main, *beside[:BESIDE]]
    panels = {
        name: [
            figures.Mark(one.label, one.metrics()[name], one.interval(name), one is main)
            for one in shown
            if name in one.metrics()
        ]
        for name in list(metrics)[:PANELS]
    }
    first = next(iter(metrics))
    among = f" beside {len(shown) - 1} other method(s)" if beside else ""
    told = (
        f"{main.label}{among}: {first} is {metrics[first]:.4f}. Dots are values on the held-out part, lines "
        "their 95 % bootstrap intervals with people as the independent draws (2,000 resamples)."
    )
    rows = []
    for name, value in metrics.items():
        found = main.interval(name)
        ends = "" if found is None else f"{found.low:.4f} to {found.high:.4f}"
        rows.append((name, f"{value:.4f}", ends))
    columns = [Column("metric"), Column("value", **NUMBER), Column("95 % interval", **NUMBER)]
    caption = "Each metric over everybody evaluated, with its interval where it is a mean over people"
    notes = "".join(f"<li>{text(note)}</li>" for note in main.first.result["notes"])
    how = f"<h3>How it was measured</h3><ul>{notes}</ul>" if notes else ""
    return figures.forest(panels, told) + table(caption, columns, rows) + how


def _curve(main: Subject, beside: Sequence[Subject]) -> str:
    lines = main.first.curve
    names = list(lines[0]["metrics"])
    rounds = [line["round"] for line in lines]
    found = [
        figures.Curve(
            name,
            rounds,
            [line["metrics"][name] for line in lines],
            {one.label: one.metrics()[name] for one in beside[:BESIDE] if name in one.metrics()},
        )
        for name in names
    ]
    ends = ", ".join(f"{name} {lines[-1]['metrics'][name]:.4f}" for name in names)
    users = lines[-1].get("users")
    of = f", over {users} of the people held out" if users else ""
    lower = f" Lines across: where {', '.join(one.label for one in beside[:BESIDE])} ended." if beside else ""
    told = (
        f"From round {rounds[0]} to round {rounds[-1]}{of}; at the end {ends}. "
        f"Shown, never selected on.{lower}"
    )
    rows = [(line["round"], *(f"{line['metrics'][name]:.4f}" for name in names)) for line in lines]
    columns = [Column("round"), *(Column(name, **NUMBER) for name in names)]
    numbers = table("The curve in numbers", columns, rows)
    return (
        figures.curves(found, main.label, told)
        + f"<details><summary>The curve in numbers</summary>{numbers}</details>"
    )


def _privacy(result: Mapping[str, Any]) -> str:
    lines = result["privacy"]
    if not lines:
        return "<p>Nothing leaves a device: no observer sees anything.</p>"
    cards = "".join(_card(line) for line in lines)
    said = ""
    if result.get("paper_says"):
        said = (
            f"<h3>What the paper claims, beside what is true here</h3><p>The paper says: "
            f"“{text(result['paper_says'])}”.</p>"
        )
        rows = [(observer_name(line["observer"]), epsilon_text(line), _because(line)) for line in lines]
        columns = [Column("who looks"), Column("what was proved"), Column("because")]
        said += table("What was proved for this run", columns, rows)
    return f'<div class="cards">{cards}</div>{said}'


def _because(line: Mapping[str, Any]) -> str:
    return line.get("because") or mode_words(line.get("mode", "accounted"))


def _card(line: Mapping[str, Any]) -> str:
    unbounded = line["epsilon"] is None
    kind = "open" if unbounded else "bound"
    number = "ε = ∞" if unbounded else f"ε = {line['epsilon']:.4g}"
    why = f"<p>Why: {text(line['because'])}.</p>" if unbounded and line.get("because") else ""
    rests = "".join(f"<li>{text(assumed)}</li>" for assumed in line["assumes"])
    rests = f"<p>It rests on:</p><ul>{rests}</ul>" if rests and not unbounded else ""
    facts = {"unit": line["unit"], "adjacency": line["adjacency"], "mode": line.get("mode", "accounted")}
    if not unbounded:
        facts = {"δ": f"{line['delta']:g}", **facts}
    listed = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items())
    return (
        f'<div class="card {kind}"><h3>{text(observer_name(line["observer"]))}</h3>'
        f'<p class="muted">{text(observer_sees(line["observer"]))}</p><p class="epsilon">{number}</p>'
        f"<p>{text(meaning(line))}</p>{why}{rests}<dl>{listed}</dl></div>"
    )


def _groups(result: Mapping[str, Any]) -> str:
    from tacit.evaluate.intervals import Interval

    panels: dict[str, list[figures.Mark]] = {}
    for line in result["groups"]:
        error = line["error"]
        around = (
            None if error is None else Interval(line["value"], line["value"] - error, line["value"] + error)
        )
        panels.setdefault(line["metric"], []).append(figures.Mark(line["group"], line["value"], around))
    told = (
        "People in three groups of equal size by how much they did in training, items by how popular they "
        "are (the fifth of the catalogue with the most interactions, and the rest). Lines: a standard error."
    )
    lines = result["groups"]
    rows = [(one["group"], one["metric"], _give_or_take(one), f"{one['users']:,}") for one in lines]
    columns = [Column("group"), Column("metric"), Column("value", **NUMBER), Column("people", **NUMBER)]
    who = {line["group"]: line["meaning"] for line in lines}
    listed = "".join(f"<li>{text(group)}: {text(meant)}</li>" for group, meant in who.items())
    return figures.groups(panels, told) + table("Accuracy by group", columns, rows) + f"<ul>{listed}</ul>"


def _give_or_take(line: Mapping[str, Any]) -> str:
    return f"{line['value']:.4f}" + ("" if line["error"] is None else f" ± {line['error']:.4f}")


def _beside(told: Sequence[Subject]) -> str:
    names = list(told[0].metrics())[:PANELS]
    rows = []
    for one in told:
        found = one.metrics()
        guarantees = {
            line["observer"]: line for line in one.first.result["privacy"] if line["unit"] == "user"
        }
        sides = [_short(guarantees.get(observer)) for observer in ("server", "release")]
        sent = one.first.result["traffic"].get("up_bytes_per_client_round", 0)
        values = [f"{found[name]:.4f}" if name in found else "" for name in names]
        rows.append((one.label, *values, *sides, sized(sent), len(one.runs)))
    columns = [Column("method"), *(Column(name, **NUMBER) for name in names)]
    columns += [Column(name, **NUMBER) for name in ("ε server", "ε release", "sent per round", "seeds")]
    words = (
        "<p>Twins are the same method with all data in one place (central) or with every person alone "
        "(local): what federating and protecting costs. Baselines see all data in one place.</p>"
    )
    return words + table("The same data, split and metrics", columns, rows)


def _short(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "–"
    return "∞" if line["epsilon"] is None else f"{line['epsilon']:.3g}"


def _configuration(run: Saved) -> str:
    seconds = [(name.replace("_", " "), f"{value:.3g}") for name, value in run.result["seconds"].items()]
    versions = run.result.get("versions", {})
    parts = []
    if run.config:
        parts.append(
            "<p>Everything resolved; running it again gives the same numbers.</p>"
            f'<pre tabindex="0" role="region" aria-label="config.toml"><code>{text(run.config)}</code></pre>'
        )
    if seconds:
        parts.append(table("Seconds by stage", [Column("stage"), Column("seconds", **NUMBER)], seconds))
    if versions:
        parts.append(table("Computed with", [Column("what"), Column("version")], list(versions.items())))
    return "".join(parts)


def _foot(result: Mapping[str, Any]) -> str:
    version = result.get("versions", {}).get("tacit", "")
    return (
        f"<p>Made by Tacit {text(version)} from the run’s own files. Bytes are the lengths of encoded "
        "messages; an observer for whom nothing was proved has ε = ∞.</p>"
    )
