"""One self-contained HTML page about a run, with other runs beside it: no script, nothing fetched.

It reads run folders and nothing else: what it says is what was measured when the run was made.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.evaluate.intervals import Interval
from tacit.report import figures
from tacit.report.attacks import attack_results
from tacit.report.beside import beside_others
from tacit.report.markup import Column, Section, document, table, text
from tacit.report.promises import promised
from tacit.report.saved import Saved, Subject, subjects
from tacit.report.sent import sent_by_devices
from tacit.report.words import (
    data_name,
    for_whole_people,
    measured,
    observer_name,
    rounds_text,
    sized,
    spread_of,
)
from tacit.runtime.checkpoint import written_whole

PANELS = 4
LINES = 8  # reference lines that a picture of curves can hold
NUMBER = {"number": True}


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
        Section("curve", "Learning curve", _curve(main, beside)) if len(run.curve) > 1 else None,
        Section("privacy", "Privacy over the whole run", promised(run.result)),
        Section("attacks", "Attacks, beside the claims", attack_results(main)),
        Section("traffic", "What left the devices", sent_by_devices(run)),
        Section("groups", "For whom it works", _groups(run.result)) if run.result.get("groups") else None,
        Section("beside", "Beside other methods", beside_others(told)),
        Section("configuration", "Configuration and versions", _configuration(run)),
    ]
    title = f"{main.label} on {data_name(run.result['data'])}"
    return document(
        f"{title} · Tacit", _head(title, main), [part for part in sections if part], _foot(run.result)
    )


def _head(title: str, main: Subject) -> str:
    result = main.first.result
    line = f"Split {result['split']}, {_seeds(main)}, {rounds_text(result['rounds'])}."
    if len(main.runs) > 1:
        line += (
            f" Accuracy and learning curve are means over the seeds; everything else is of seed "
            f"{result['seed']}."
        )
    whole = text(title).replace(",", ",<wbr>")
    return f'<h1>{whole}</h1><p class="muted">{text(line)}</p>{_summary(main)}'


def _seeds(subject: Subject) -> str:
    listed = ", ".join(map(str, subject.seeds))
    return f"{len(subject.runs)} seeds ({listed})" if len(subject.runs) > 1 else f"seed {listed}"


def _summary(main: Subject) -> str:
    """The few numbers a reader looks for first."""
    result = main.first.result
    boxes = []
    for name, value in list(main.metrics().items())[:1]:
        boxes.append((name.upper(), measured(value), _within(main, name)))
    for line in for_whole_people(result["privacy"]).values():
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
        total = f"whole run, all people, both ways: {sized(result['traffic']['total_bytes'])}"
        boxes.append(("sent per person and round", sized(sent), total))
    cells = (
        f'<li><span class="name">{text(name)}</span><span class="big">{text(big)}</span>'
        f'<span class="small">{text(small)}</span></li>'
        for name, big, small in boxes
    )
    return f'<ul class="figures">{"".join(cells)}</ul>' if boxes else ""


def _within(subject: Subject, metric: str) -> str:
    found = subject.interval(metric)
    return "" if found is None else f"95 %: {_ends(found)}"


def _ends(found: Interval | None) -> str:
    return "" if found is None else f"{measured(found.low)} to {measured(found.high)}"


def _accuracy(main: Subject, beside: Sequence[Subject]) -> str:
    metrics = main.metrics()
    if not metrics:
        return "<p>Nothing was measured.</p>"
    shown = [main, *beside]
    panels = {
        name: [_mark(one, name, main=one is main) for one in shown if name in one.metrics()]
        for name in list(metrics)[:PANELS]
    }
    return figures.forest(panels, _accuracy_told(main, beside)) + _accuracy_table(main) + _how(main.first)


def _mark(one: Subject, metric: str, *, main: bool) -> figures.Mark:
    each = one.each(metric) if len(one.runs) > 1 else []
    return figures.Mark(one.label, one.metrics()[metric], one.interval(metric), main, each)


def _accuracy_told(main: Subject, beside: Sequence[Subject]) -> str:
    metrics = main.metrics()
    first = next(iter(metrics))
    among = f" beside {len(beside)} other {'method' if len(beside) == 1 else 'methods'}" if beside else ""
    told = f"{main.label}{among}: {first} is {measured(metrics[first])}. "
    lines = "95 % bootstrap intervals with people as the independent draws (2,000 resamples)"
    if len(main.runs) > 1:
        return told + (
            f"Dots are means on the held-out parts of {len(main.runs)} seeds, small strokes single seeds, "
            f"lines {lines} over each person’s mean: how far other people might differ. How far other seeds "
            "do, the strokes show."
        )
    return told + f"Dots are values on the held-out part, lines their {lines}."


def _accuracy_table(main: Subject) -> str:
    several = len(main.runs) > 1
    rows = []
    for name, value in main.metrics().items():
        spread = (spread_of(main.spread(name) or 0.0, value),) if several else ()
        rows.append((name, measured(value), _ends(main.interval(name)), *spread))
    columns = [Column("metric"), Column("value", **NUMBER), Column("95 % interval", **NUMBER)]
    columns += [Column("sd over seeds", **NUMBER)] if several else []
    caption = "Each metric over everybody evaluated, with its interval where it is a mean over people"
    return table(caption, columns, rows)


def _how(run: Saved) -> str:
    notes = "".join(f"<li>{text(note)}</li>" for note in run.result["notes"])
    return f"<h3>How it was measured</h3><ul>{notes}</ul>" if notes else ""


def _curve(main: Subject, beside: Sequence[Subject]) -> str:
    lines = main.first.curve
    names, rounds = list(lines[0]["metrics"]), [line["round"] for line in lines]
    alike = [run.curve for run in main.runs if [line["round"] for line in run.curve] == rounds]
    each = {name: [[line["metrics"][name] for line in curve] for curve in alike] for name in names}
    means = {name: [sum(at) / len(at) for at in zip(*each[name], strict=True)] for name in names}
    crossing = beside[:LINES]
    found = [
        figures.Curve(
            name,
            rounds,
            means[name],
            {one.label: one.metrics()[name] for one in crossing if name in one.metrics()},
            each[name] if len(alike) > 1 else (),
        )
        for name in names
    ]
    label = f"{main.label}, mean of {len(alike)} seeds" if len(alike) > 1 else main.label
    rows = [(at, *(measured(means[name][place]) for name in names)) for place, at in enumerate(rounds)]
    columns = [Column("round"), *(Column(name, **NUMBER) for name in names)]
    numbers = table("The curve in numbers", columns, rows)
    told = _curve_told(main, means, beside, len(alike))
    return (
        figures.curves(found, label, told)
        + f"<details><summary>The curve in numbers</summary>{numbers}</details>"
    )


def _around(main: Subject, metric: str) -> str:
    found = main.interval(metric)
    return "" if found is None else f" (95 %: {_ends(found)})"


def _curve_told(
    main: Subject, means: Mapping[str, Sequence[float]], beside: Sequence[Subject], many: int
) -> str:
    lines = main.first.curve
    ends = ", ".join(f"{name} {measured(values[-1])}{_around(main, name)}" for name, values in means.items())
    users = lines[-1].get("users")
    of = f", over {users:,} people held out" if users and many == 1 else ""
    told = f"From round {lines[0]['round']} to round {lines[-1]['round']}{of}; at the end {ends}. "
    told += f"Thin lines are the {many} seeds. " if many > 1 else ""
    told += "Shown, never selected on."
    if beside:
        told += f" Lines across: where {'; '.join(one.label for one in beside[:LINES])} ended."
    if len(beside) > LINES:
        told += f" {len(beside) - LINES} more stand in the table further down."
    return told


def _groups(result: Mapping[str, Any]) -> str:
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
    columns = [
        Column("group"),
        Column("metric"),
        Column("value", **NUMBER),
        Column("people", **NUMBER),
    ]
    who = {line["group"]: line["meaning"] for line in lines}
    listed = "".join(f"<li>{text(group)}: {text(meant)}</li>" for group, meant in who.items())
    return (
        figures.groups(panels, told)
        + table("Accuracy by group, ± a standard error", columns, rows)
        + f"<ul>{listed}</ul>"
    )


def _give_or_take(line: Mapping[str, Any]) -> str:
    value, error = line["value"], line["error"]
    return measured(value) + ("" if error is None else f" ± {spread_of(error, value)}")


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
