"""What would go stale in the documents: settings, choices, what was promised, what crossed the wires.

    python docs/generate_methods.py             write the blocks anew from code and measured.json
    python docs/generate_methods.py --measure   run every method on the made-up data first (minutes)
    python docs/generate_methods.py --measure fcf mf-np     only these

A page of ``docs``, or the README, asks for a block by a pair of comments, ``<!-- settings: fcf -->`` and
``<!-- end -->``; what stands between them is replaced. ``tests/docs`` fails where a page differs from what
this writes.
"""

import importlib
import inspect
import json
import pkgutil
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

import tacit.protect
import tacit.transport
from tacit.cli.main import app
from tacit.config import catalogue
from tacit.config.experiment import Experiment
from tacit.config.session import started
from tacit.data.source import sources
from tacit.report.words import observer_name
from tacit.runtime.listener import Listener
from tacit.settings import Setting, settings_of

DOCS = Path(__file__).parent
MEASURED = DOCS / "methods" / "measured.json"
DATA = "demo"
FEWER = {"fedncf": 40, "dp-fedncf": 40, "dp-fedncf-dgc": 10, "priv-fedncf-sub-compress": 40}
"""Rounds of methods whose own number takes too long here; their blocks say so."""
ROOMS = {"protections": (tacit.protect, "PROTECTIONS"), "transports": (tacit.transport, "TRANSPORTS")}
BLOCK = re.compile(
    r"<!-- (settings|measured|table|stages|sources|options): (\S+) -->\n.*?<!-- end -->", re.DOTALL
)
KEPT = (
    "up_bytes_per_client_round",
    "down_bytes_per_client_round",
    "letter_bytes_per_client_round",
    "setup_bytes_per_client",
    "total_bytes",
    "model_bytes",
)
TWIN = "The same model on pooled data (`central`), or every device alone (`local`)."
MEANINGS: Mapping[str, str] = {
    "about": "Which facts about people the model sees: all that the data have, or none.",
    "about_items": "Item features by name: `all` that are published, `none`, or names joined by `+`.",
    "about_people": "Facts about people by name: `all`, `none`, or names joined by `+`.",
    "adam": "Adam's running means: moved when a row is touched, or in every step.",
    "adapt": "What a device fine-tunes for its owner: the owner's own part, everything, or nothing.",
    "alpha": "How much more sure a met item is than an unmet one: confidence `1 + alpha` against one.",
    "averaged": "An item's change is divided by the clients who sent it (FedSubAvg), or by all.",
    "batch": "Samples in one step on a device.",
    "bins": "Numbers about items also enter as a category of so many quantiles; 0: not.",
    "bit_epsilon": "Local privacy of one randomised bit about one item.",
    "bit_noise": "Deviation of the noise on the sum of clipping bits; by default what the split asks for.",
    "bits": "What is reported about items: randomised answers, or true ones (an ablation, not private).",
    "clients": "How many are asked in a round: a count, or a share with a point.",
    "clip": "The greatest length of what a device sends; the noise is measured in it.",
    "clip_rate": "How fast the clip norm follows the quantile; 0 keeps it where it starts.",
    "decay": "What the step size is multiplied by after each round.",
    "denoisers": "How many people denoise: a count, or a share with a point.",
    "dim": "Numbers per person and per item.",
    "draws": "Unmet items are drawn afresh in each round, or all weighed as the draw would on average.",
    "embedding": "Numbers per feature value; 0 joins embedding and first layer into one row per value.",
    "epochs": "Passes over a device's own data in a round.",
    "epsilon": "The scale of the noise is set for this number; see above for what it promises.",
    "estimate": "How often items are met: the likeliest frequency behind the answers, or the raw share.",
    "factors": "Numbers per person and item in the product part.",
    "feedback": "Ratings, or which items were met.",
    "fillers": "Drawn anew in each round (as published), or once and kept.",
    "filling": "A filler's rating: the person's mean, or from round `t_predict` on a prediction.",
    "h": "`as-published` alone: the share of the budget that Algorithm 2 gives the clipping bit.",
    "head": "Scores for ranking (`sigmoid`), or predicted ratings (`linear`).",
    "hidden": "Widths of the hidden layers.",
    "id_rate": "How far item numbers move, as a multiple of the summed loss's gradient.",
    "ids": "Numbers per item beside the network; 0: items are known by their features alone.",
    "init": "The shape of the random start.",
    "liked": "Interactions rated above this count as met.",
    "local_clip": "The length a network's change is clipped to before it joins what a device remembers.",
    "low": "Interactions rated lower are left out, or taken for unmet ones.",
    "meta_rate": "How far the server moves along the mean change.",
    "mode": "Corrected, or the paper to the letter.",
    "momentum": "How much of the last step is kept.",
    "negatives": "Unmet items drawn for each met one.",
    "noise": "How uploads are protected: normal noise on all of it, as the paper prints it, or not at all.",
    "outer": "The server's step: part of the way along the mean change, or Adam's.",
    "outer_decay": "What Adam's step is multiplied by after each round.",
    "own_reg": "Ridge of the owner's vector, in samples.",
    "periods": "Into how many release periods years are cut.",
    "pool": "Where unmet items are drawn from: the catalogue, or the rows received.",
    "precision": "Of the model's numbers.",
    "quantile": "The share of people whose change should be within the clip norm.",
    "rate": "The step size.",
    "redraw": "Randomised answers are drawn once and kept, or anew in each round (as published).",
    "reg": "The weight of the squared norms.",
    "rho": "Fillers per rated item.",
    "rounds": "Rounds of training.",
    "sampler": "Everybody takes part with equal probability, or a cohort has a fixed size.",
    "sends": "Rows that changed, or a row for every row received.",
    "share": "The share of entries that travels; 1: all.",
    "sigma": "Deviation of the normal noise on an upload, in clip norms.",
    "spread": "The half-width or standard deviation of the random start.",
    "steps": "Steps on a device.",
    "sums": "Floats, or whole numbers on a grid of 2^-32 (exact, in any order).",
    "t_local": "Private steps before a prediction fills.",
    "t_predict": "The last round with mean filling.",
    "threshold": "Keep items whose frequency is above this; by default above the mean.",
    "tower": "Twice the length of the network's vectors, then its layers' widths.",
    "tune_rate": "The step size of a device's fine-tuning.",
    "tune_steps": "Steps of a device's fine-tuning for its owner.",
    "twin": TWIN,
    "units": "The hidden layers' units.",
    "unselected": "Where items outside the sub-model rank: last, by estimated frequency, or by their start.",
    "warm_up": "Rounds in which the share falls to its value.",
    "words": "So many of the commonest words of titles also enter; 0: none.",
    "z": "`as-published` alone: Algorithm 2's noise, in replace-one sensitivities.",
}
ARGUMENTS: Mapping[str, str] = {
    "METHOD": "A method's name (`tacit methods`); `tacit run` also takes an experiment file.",
    "METHODS": "Names of methods, each maybe with settings: `fedrec:rho=3`.",
    "RUN": "A run's folder.",
    "RUNS": "Folders of runs.",
    "TABLE": "Such as `fedrec/table3`; without it the tables are listed.",
    "NAME": "A name; without one they are listed where the command can.",
    "DATA": "A data set by name, or a path.",
    "FOLDER": "Where the device, the server or the proxy keeps what is its own.",
}
UNITS = {"user": "a person", "interaction": "one item"}
LEAVES: Mapping[str, str] = {
    "dp-fedmf": "a noisy row for every item",
    "dp-fedncf": "noisy changes of every item row and of the network",
    "dp-fedncf-dgc": "noisy changes of every item row, and a share of the network's",
    "dp-privrec": "the clipped change of a small network; the server adds the noise",
    "dplcf": "one randomised bit per item, once",
    "fcf": "the gradient of the item table",
    "fed-fm": "the gradient of a small model on features",
    "fed-lr": "the gradient of a small model on features",
    "fed-nn": "the gradient of a small model on features",
    "fedmf": "a gradient row per rated item",
    "fedmmf": "a masked share of a secure sum of gradients",
    "fedncf": "changes of the touched item rows and of the network",
    "fedrec": "a gradient row per rated item and per filler",
    "fedrec++": "the same, and the filler rows to another device, whose ε is ∞ too",
    "fmf-ldp": "100 randomised bits, sealed and shuffled by a proxy",
    "fofl-self": "the change of all item vectors",
    "ldp-popularity": "100 randomised bits, sealed and shuffled by a proxy, once",
    "ldp-spectral": "a randomised vector, twice in all",
    "local-fm": "nothing",
    "local-lr": "nothing",
    "local-nn": "nothing",
    "mf-np": "the gradient of the item table",
    "nn-self": "a gradient of a network on features",
    "priv-fedmf-sub": "one randomised bit per item, once; noisy rows of the chosen items",
    "priv-fedncf-sub-compress": "the same, and noisy changes of a part of the network",
    "privrec": "the change of a network on features",
}
OWN_MEANINGS: Mapping[tuple[str, str], str] = {
    ("dp-privrec", "noise"): "Deviation of the noise on the sum, in clip norms; else found from `epsilon`.",
    ("dp-privrec", "epsilon"): "The run's epsilon for whoever gets the model; 4 if `noise` is not given.",
    ("dp-privrec", "clip"): "Where the clip norm starts.",
    ("dp-fedmf", "epsilon"): "The run's epsilon for whoever gets the model, in place of `sigma`; of the "
    "published noise, what its scale is divided by (2 if not given).",
    ("dp-fedmf", "sigma"): "Of normal noise alone: its deviation in clip norms; 1 if not given.",
    ("dp-fedncf", "epsilon"): "The run's epsilon for whoever gets the model, in place of `sigma`.",
    ("dp-fedncf-dgc", "epsilon"): "The run's epsilon for whoever gets the model, in place of `sigma`.",
    ("priv-fedmf-sub", "epsilon"): "Of the published noise alone: it divides its scale; 2 if not given.",
    ("priv-fedmf-sub", "sigma"): "Of normal noise alone: its deviation in clip norms; 1 if not given.",
    ("local-fm", "dim"): "Numbers per feature in the factorisation machine.",
    ("fed-fm", "dim"): "Numbers per feature in the factorisation machine.",
    ("fed-nn", "hidden"): "Units of the hidden layer.",
    ("local-nn", "hidden"): "Units of the hidden layer.",
    ("fedncf", "rate"): "Adam's step size on a device.",
}  # fmt: skip


def meaning(name: str, setting: str) -> str:
    """What a setting does: from the method's own docstring, else from the words that methods share."""
    if (name, setting) in OWN_MEANINGS:
        return OWN_MEANINGS[name, setting]
    own_words = inspect.getdoc(catalogue.methods()[name]) or ""
    told = re.search(rf"^    {setting}: (.*(?:\n {{8,}}.*)*)", own_words, re.M)
    found = " ".join(told.group(1).split()) if told else MEANINGS[setting]
    return _in_markdown(found)


def settings_block(name: str, measured: Mapping[str, Any]) -> str:
    """The table of a method's settings."""
    del measured
    lines = ["| setting | default | may be | what it does |", "|---|---|---|---|"]
    for setting in settings_of(catalogue.methods()[name]).values():
        cells = f"`{setting.name}`", _default(setting), _expected(setting), meaning(name, setting.name)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _default(setting: Setting) -> str:
    if setting.default is None:
        return "as needed"
    return f"`{str(setting.default).lower() if isinstance(setting.default, bool) else setting.default}`"


def _expected(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    return setting.expected().replace(" or none", "").replace("none or ", "")


def measured_block(name: str, measured: Mapping[str, Any]) -> str:
    """What one run promised, and what crossed."""
    found = measured[name]
    size = f"{found['people']:,} people, {found['items']:,} items, {_rounds(found['rounds'])}"
    lines = [f"From `{_command(name, found)}`: {size}."]
    if found["rounds"] < found["own_rounds"]:
        lines.append(
            f"The method's own number is {found['own_rounds']} rounds; fewer were run here to save time. "
            "Bytes per round stay about the same; every finite ε grows with the rounds."
        )
    lines.append("")
    if found["privacy"]:
        lines += ["| who looks | unit | whole run | because, or assuming |", "|---|---|---|---|"]
        lines += [_promise(line) for line in found["privacy"]]
    else:
        lines.append("Nothing is sent, so no observer sees anything.")
    if found["paper_says"]:
        lines += ["", f"The paper says: {found['paper_says']}."]
    lines += ["", "| bytes, as encoded | |", "|---|---|"]
    lines += [f"| {label} | {_bytes(value)} |" for label, value in _crossed(found["traffic"])]
    return "\n".join(lines)


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _command(name: str, found: Mapping[str, Any]) -> str:
    fewer = f" --rounds {found['rounds']}" if found["rounds"] < found["own_rounds"] else ""
    return f"tacit run {name} --data {DATA}{fewer}"


def _promise(line: Mapping[str, Any]) -> str:
    epsilon = "ε = ∞" if line["epsilon"] is None else f"ε = {line['epsilon']:.4g}, δ = {line['delta']:g}"
    why = "; ".join([line["because"], *line["assumes"]] if line["because"] else line["assumes"])
    who, unit = observer_name(line["observer"]).lower(), f"{line['unit']}, {line['adjacency']}"
    return f"| {who} | {unit} | {epsilon} | {why} |"


def _crossed(traffic: Mapping[str, float]) -> list[tuple[str, float]]:
    model = traffic["total_bytes"] and traffic["model_bytes"]
    both = [
        ("sent by a device, per round it is asked in", traffic["up_bytes_per_client_round"]),
        ("of letters to other devices", traffic["letter_bytes_per_client_round"]),
        ("received by it", traffic["down_bytes_per_client_round"]),
        ("set-up, once per device", traffic["setup_bytes_per_client"]),
        ("everybody, whole run, both ways", traffic["total_bytes"]),
        ("the finished model, for a device that fetches it", model),
    ]
    return [pair for place, pair in enumerate(both) if pair[1] or place in {0, 2}]


def _bytes(count: float) -> str:
    if count < 10_000:
        return f"{count:,.0f} B"
    return f"{count / 1000:,.0f} kB" if count < 1e7 else f"{count / 1e6:,.0f} MB"


def table_block(name: str, measured: Mapping[str, Any]) -> str:
    """One line per method: what is sent, promises and bytes. The name is where the methods' pages are."""
    folder, pages = name.replace("here", ""), page_of()
    lines = [
        "| method | what leaves a device | ε is for | server | model | sent | received | rounds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method, found in sorted(measured.items()):
        units = dict.fromkeys(
            (line["unit"], line["adjacency"]) for line in reversed(found["privacy"]) if _shown(line)
        )
        told = {(line["unit"], line["observer"]): line for line in found["privacy"] if _shown(line)}
        cells = [f"[`{method}`]({folder}{pages[method]})", LEAVES[method]]
        about = (_unbroken(f"{UNITS[unit]}, {adjacency}") for unit, adjacency in reversed(units))
        cells.append("<br>".join(about) or "–")
        for observer in ("server", "release"):
            numbers = [_short(told.get((unit, observer))) for unit, _ in reversed(units)]
            cells.append("<br>".join(numbers) or "sees nothing")
        sizes = (_bytes(found["traffic"][f"{way}_bytes_per_client_round"]) for way in ("up", "down"))
        fewer = "" if found["rounds"] == found["own_rounds"] else f" of {found['own_rounds']}"
        cells += [_unbroken(cell) for cell in (*sizes, f"{found['rounds']}{fewer}")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _unbroken(text: str) -> str:
    """On one line, so that what belongs together stands side by side."""
    return text.replace(" ", "&nbsp;").replace("-", "&#8209;")


def _shown(line: Mapping[str, Any]) -> bool:
    """One line per unit: an interaction's second adjacency is on the method's page."""
    return line["unit"] == "user" or line["adjacency"] == "add-remove"


def _short(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "–"
    if line["epsilon"] is None:
        return "∞"
    return f"{line['epsilon']:,.0f}" if line["epsilon"] >= 1000 else f"{line['epsilon']:.3g}"


def stages_block(kind: str, measured: Mapping[str, Any]) -> str:
    """Protections or transports that a command line can name, with their parts in order."""
    del measured
    room, table = ROOMS[kind]
    lines = ["| written | what it does |", "|---|---|"]
    for module in sorted(pkgutil.iter_modules(room.__path__), key=lambda module: module.name):
        makers = getattr(importlib.import_module(f"{room.__name__}.{module.name}"), table, {})
        for name, maker in makers.items():
            parts = [name, *(_part(setting) for setting in settings_of(maker).values())]
            lines.append(f"| `{':'.join(parts)}` | {_in_markdown(catalogue.summary(maker))} |")
    return "\n".join(lines)


def _part(setting: Setting) -> str:
    return setting.name.upper() if setting.default is None else f"{setting.name.upper()}={setting.default}"


def _in_markdown(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def sources_block(name: str, measured: Mapping[str, Any]) -> str:
    """Data sets by name, and what may follow the colon."""
    del name, measured
    lines = ["| name | what it is | options |", "|---|---|---|"]
    for source in sorted(sources().values(), key=lambda source: (source.name != "demo", source.name)):
        told = [f"`{option.name}`: {_in_markdown(option.meaning)}" for option in source.options]
        lines.append(f"| `{source.name}` | {source.line} | {'<br>'.join(told)} |")
    return "\n".join(lines)


def options_block(words: str, measured: Mapping[str, Any]) -> str:
    """The arguments and options of a command; of ``data get`` as ``data-get``."""
    del measured
    command: Any = typer.main.get_command(app)
    for word in words.split("-"):
        command = command.commands[word]
    lines = ["| | what it is | default |", "|---|---|---|"]
    for part in command.params:
        if part.param_type_name == "argument":
            lines.append(f"| `{part.human_readable_name}` | {ARGUMENTS[part.human_readable_name]} |  |")
        elif part.name != "help":
            default = f"`{part.default}`" if part.default not in {None, "", False, ()} else ""
            lines.append(f"| `{' '.join(part.opts)}` | {_in_markdown(part.help or '')} | {default} |")
    return "\n".join(lines)


def page_of() -> dict[str, str]:
    """On which page each method is: where its settings are asked for.

    Example:
        ``page_of()["fedrec++"]`` is ``"fedrec-plus-plus.md"``.
    """
    found: dict[str, str] = {}
    for page in sorted((DOCS / "methods").glob("*.md")):
        for kind, name in re.findall(r"<!-- (settings): (\S+) -->", page.read_text("utf-8")):
            found[name] = page.name
            del kind
    return found


BLOCKS: Mapping[str, Callable[[str, Mapping[str, Any]], str]] = {
    "settings": settings_block,
    "measured": measured_block,
    "table": table_block,
    "stages": stages_block,
    "sources": sources_block,
    "options": options_block,
}


def rendered(text: str, measured: Mapping[str, Any]) -> str:
    """A page with every block as it should be."""

    def block(match: re.Match[str]) -> str:
        kind, name = match.groups()
        return f"<!-- {kind}: {name} -->\n\n{BLOCKS[kind](name, measured)}\n\n<!-- end -->"

    return BLOCK.sub(block, text)


def measure(name: str) -> dict[str, Any]:
    """Run a method on the made-up data and keep what its page tells."""
    with tempfile.TemporaryDirectory() as home:
        given = {"method": name, "data": DATA, "metrics": ["hr@10"], "rounds": FEWER.get(name, 0)}
        experiment = Experiment.from_mapping(given)
        session = started(experiment, Path(home) / "run", None, 1)
        result: Any = session.trained(Listener(), 0.0)
        people, items = session.plan.dataset.users, session.plan.dataset.items
    return {
        "people": people,
        "items": items,
        "rounds": result["rounds"],
        "own_rounds": _own_rounds(name, result["rounds"]),
        "paper_says": result.get("paper_says", ""),
        "privacy": [{**line, "epsilon": _rounded(line["epsilon"])} for line in result["privacy"]],
        "traffic": {key: round(result["traffic"][key], 2) for key in KEPT},
    }


def _own_rounds(name: str, run: int) -> int:
    setting = settings_of(catalogue.methods()[name]).get("rounds") if name in FEWER else None
    return run if setting is None else int(setting.default)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def documents() -> list[Path]:
    """Every page that may hold a block."""
    return [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]


def _measured() -> dict[str, Any]:
    return json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}


def main(arguments: Sequence[str]) -> int:
    """Write every block anew."""
    if "--measure" in arguments:
        for name in [word for word in arguments if word != "--measure"] or catalogue.methods():
            found = measure(name)
            kept = json.dumps({**_measured(), name: found}, indent=1, sort_keys=True)  # as it is by now
            MEASURED.write_text(kept + "\n", "utf-8")
            sys.stdout.write(f"measured {name}\n")
    measured = _measured()
    for page in documents():
        before = page.read_text("utf-8")
        after = rendered(before, measured)
        if after != before:
            page.write_text(after, "utf-8")
            sys.stdout.write(f"wrote {page.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
