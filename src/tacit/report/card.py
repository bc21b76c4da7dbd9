"""A model card in Hugging Face's layout: everything in it is read from the run's own files."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit import __version__
from tacit.errors import TacitError
from tacit.report.words import data_name, epsilon_text, measured, pooled, rounds_text, sized
from tacit.runtime.checkpoint import written_whole
from tacit.runtime.folder import RunFolder

_OBSERVERS: Mapping[str, str] = {
    "server": "the server that trains it",
    "proxy": "the proxy that passes reports on",
    "peer": "another client",
    "release": "anyone who is given this model",
}
_BASELINE = "a baseline, fitted on everybody's data in one place: nothing about it is private"
_CENTRAL = "a method's central twin, trained on everybody's data in one place: nothing about it is private"
_LOCAL = "of which every device trains its own part from its owner's data alone and sends nothing"


def write_card(run: Path, out: Path | None = None) -> Path:
    """Write the card of a finished run, by default as ``README.md`` in its folder."""
    folder = RunFolder.opened(run)
    config = tomllib.loads((run / "config.toml").read_text("utf-8"))
    target = out or run / "README.md"
    text = card(folder.result(), config, model_bytes(run))
    written_whole(target, lambda draft: draft.write_text(text, encoding="utf-8"))
    return target


def model_bytes(run: Path) -> int:
    """The size of what the server holds; 0 where it keeps no model."""
    return sum(file.stat().st_size for file in (run / "model").glob("*.safetensors"))


def card(result: Mapping[str, Any], config: Mapping[str, Any], size: int = 0) -> str:
    """The card's text.

    Example:
        >>> empty = {"privacy": [], "metrics": {}, "traffic": {}, "seconds": {}, "notes": [], "rounds": 0}
        >>> text = card({"method": "pop", "data": "demo", "split": "all", "seed": 1, **empty}, {})
        >>> text.splitlines()[0], "# pop on demo" in text
        ('---', True)
    """
    if "method" not in result:
        raise TacitError("this result names no method", "give the folder of a finished run")
    sections = [
        ("Intended use", _intended(result)),
        ("How to use it", _loading(result)),
        ("Data", _data(result)),
        ("Training", _training(result, config, size)),
        ("Evaluation", _evaluation(result)),
        ("Privacy", _privacy(result)),
        ("What left the devices", _traffic(result)),
        ("Limits", _limits(result)),
    ]
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections)
    return f"{_front(result)}\n# {_title(result)}\n\n{_lead(result)}\n\n{body}\n"


def _title(result: Mapping[str, Any]) -> str:
    return f"{result['method']} on {data_name(result['data'])}"


def _front(result: Mapping[str, Any]) -> str:
    """The machine's part, in YAML (of which JSON's values are a part)."""
    name = json.dumps(_title(result))
    data = json.dumps(data_name(result["data"]))
    tags = ["recommender-system", *([] if pooled(result) else ["federated-learning"])]
    if any(line["epsilon"] is not None for line in result["privacy"]):
        tags.append("differential-privacy")
    lines = [
        "---",
        "library_name: tacit",
        "tags:",
        *(f"- {tag}" for tag in tags),
        f"- {json.dumps(result['method'])}",
    ]
    if result["metrics"]:
        lines += ["metrics:", *(f"- {json.dumps(metric)}" for metric in result["metrics"])]
        lines += ["model-index:", f"- name: {name}", "  results:", "  - task:", "      type: recommendation"]
        lines += [
            "    dataset:",
            f"      name: {data}",
            f"      type: {data}",
            f"      split: {json.dumps(result['split'])}",
        ]
        lines.append("    metrics:")
        for metric, value in result["metrics"].items():
            lines += [f"    - type: {json.dumps(metric)}", f"      value: {value:.6g}"]
    return "\n".join([*lines, "---", ""])


def _lead(result: Mapping[str, Any]) -> str:
    if _is_baseline(result):
        what = _BASELINE
    elif pooled(result):
        what = _CENTRAL
    elif not result["privacy"]:
        what = _LOCAL
    else:
        what = "trained in a simulated federation: each person's data on a device of its own"
    return f"A recommender, {what}. Written by Tacit {__version__} from the run's ledgers."


def _is_baseline(result: Mapping[str, Any]) -> bool:
    return pooled(result) and result.get("settings", {}).get("twin") != "central"


def _intended(result: Mapping[str, Any]) -> str:
    lines = ["Ranking the items of this catalogue for people whose ratings or clicks are of the data's kind."]
    if not _is_baseline(result):
        lines.append(
            "The part that knows a person (their vector, or what their device adapted) is not in the model: "
            "it is worked out on their own device from their own history."
        )
    lines.append("It is not meant for decisions about people, nor for items outside the catalogue.")
    return "\n".join(f"- {line}" for line in lines)


def _loading(result: Mapping[str, Any]) -> str:
    newcomer = (
        ""
        if _is_baseline(result)
        else "taste.recommend_for({item_id: rating}, k=10)  # somebody who never took part\n"
    )
    return (
        "```python\nfrom tacit import Recommender\n\n"
        'taste = Recommender.load("FOLDER")  # the run folder this card lies in\n'
        f"taste.recommend(user_id, k=10)\n{newcomer}```\n\n"
        "`tacit recommend FOLDER --user ID` does the same; `tacit export FOLDER --onnx FILE` writes a graph."
    )


def _data(result: Mapping[str, Any]) -> str:
    return (
        f"`{data_name(result['data'])}`, split `{result['split']}`, seed {result['seed']}. Their own terms "
        "hold for what is learned from them; Tacit ships no data."
    )


def _training(result: Mapping[str, Any], config: Mapping[str, Any], size: int) -> str:
    settings = config.get("settings", result.get("settings", {}))
    extra = [(name, config[name]) for name in ("protect", "transport") if config.get(name)]
    rows = [
        *((f"`{name}`", f"`{value}`") for name, value in [*settings.items(), *extra] if value is not None)
    ]
    facts = f"{rounds_text(result['rounds'])}, {result['seconds'].get('train', 0):.3g} s of simulation"
    held = f"; the server's model is {sized(size)}" if size else ""
    table = _table(("setting", "value"), rows)
    return f"{facts}{held}. `config.toml` beside this card repeats the run exactly.\n\n{table}"


def _evaluation(result: Mapping[str, Any]) -> str:
    if not result["metrics"]:
        return "Nothing was held out: this run measured no accuracy."
    errors = result.get("errors", {})
    rows = []
    for name, value in result["metrics"].items():
        spread = 1.96 * errors[name] if name in errors else None
        interval = "" if spread is None else f"{measured(value - spread)} to {measured(value + spread)}"
        rows.append((name, measured(value), interval))
    notes = "\n".join(f"- {note}" for note in result["notes"])
    return f"{_table(('metric', 'value', '95 % interval (normal, over users)'), rows)}\n\n{notes}"


def _privacy(result: Mapping[str, Any]) -> str:
    if not result["privacy"]:
        return "Nothing leaves a device, so no observer sees anything."
    rows = []
    for line in result["privacy"]:
        why = "; ".join([*([line["because"]] if line.get("because") else []), *line["assumes"]])
        who = _OBSERVERS.get(line["observer"], str(line["observer"]))
        rows.append((who, f"{line['unit']}, {line['adjacency']}", epsilon_text(line), line["mode"], why))
    head = ("who looks", "unit, adjacency", "over the whole run", "mode", "because, or assuming")
    said = f"\n\nThe paper says: {result['paper_says']}." if result.get("paper_says") else ""
    return (
        f"{_table(head, rows)}{said}\n\n`ε = ∞`: nothing was proved, whatever a paper says. Fitting "
        "again on the same people spends again."
    )


def _traffic(result: Mapping[str, Any]) -> str:
    traffic = result["traffic"]
    kinds = [
        ("sent by a client in a round", "up_bytes_per_client_round"),
        ("of which to other clients", "letter_bytes_per_client_round"),
        ("received by a client in a round", "down_bytes_per_client_round"),
        ("before the first round, per client", "setup_bytes_per_client"),
        ("all clients, whole run", "total_bytes"),
    ]
    rows = [(what, sized(traffic[key])) for what, key in kinds if traffic.get(key)]
    return _table(("what", "encoded length"), rows) if rows else "Nothing."


def _limits(result: Mapping[str, Any]) -> str:
    lines = [
        "A simulation: real devices differ in who answers, and when. The code a device runs is the same."
    ]
    open_to: list[str] = [
        _OBSERVERS.get(line["observer"], str(line["observer"]))
        for line in result["privacy"]
        if line["epsilon"] is None
    ]
    if open_to:
        lines.append(f"No privacy guarantee against {', nor against '.join(open_to)}.")
    if _OBSERVERS["release"] in open_to:
        lines.append("Whoever publishes this model promises nothing to the people it was learned from.")
    lines.append(
        "Accuracy is an average over people; it may be worse for short histories and for rare items."
    )
    lines.append(
        "To publish: this card, `config.toml` and `model/`. `private/`, `table.csv` and "
        "`per_user.safetensors` are people's own, which only a simulation has in one place."
    )
    return "\n".join(f"- {line}" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)])
