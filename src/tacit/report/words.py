"""A guarantee in plain words: what it means for a person, for whom, and what it rests on."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

OBSERVERS: Mapping[str, tuple[str, str]] = {
    "server": ("The server", "sees every message that reaches it and writes everything down"),
    "proxy": ("The proxy", "forwards messages between devices and the server"),
    "peer": ("Other people's devices", "may be written to by a device, and remember what they were told"),
    "release": ("Whoever gets the model", "holds every version of the shared model, and nothing else"),
}
LOWER_IS_BETTER = ("rmse", "mae")
HARDLY_A_PROMISE = 8.0
UNBOUNDED = "ε = ∞"


def data_name(data: str) -> str:
    """What data are called, without the folders of whoever ran it.

    Example:
        >>> data_name("some/where/log.csv:scale=1-5"), data_name("run:table.csv"), data_name("demo:users=60")
        ('log.csv:scale=1-5', 'table.csv', 'demo:users=60')
    """
    return data.rpartition("/")[2].removeprefix("run:")


def sized(count: float) -> str:
    """A number of bytes for people.

    Example:
        >>> sized(1234567)
        '1.23 MB'
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    return ""


def measured(value: float) -> str:
    """A metric's value: four decimals, and three digits of what is too small for them.

    Example:
        >>> measured(0.93214), measured(0.0002), measured(0.0)
        ('0.9321', '0.000200', '0.0000')
    """
    return f"{value:.4f}" if value == 0 or not abs(value) < 0.01 else f"{value:#.3g}"


def spread_of(spread: float, value: float) -> str:
    """A standard deviation or error with as many decimals as its value has.

    Example:
        >>> spread_of(0.00612, 0.93214), spread_of(0.00001, 0.9), spread_of(0.0001, 0.0002)
        ('0.0061', '1.0e-05', '0.000100')
    """
    if abs(value) < 0.01 and value:
        return measured(spread)
    return f"{spread:.4f}" if spread == 0 or spread >= 1e-4 else f"{spread:#.2g}"


def chance(p: float | None) -> str:
    """A p-value; nothing where none was computed.

    Example:
        >>> chance(0.0314), chance(3e-9), chance(None)
        ('0.031', '< 0.0001', '')
    """
    if p is None:
        return ""
    return f"{p:.2g}" if p >= 1e-4 else "< 0.0001"


def counted(count: float) -> str:
    """How many, for people.

    Example:
        >>> counted(1440), counted(119_980_000)
        ('1,440', '119.98 M')
    """
    return f"{count:,.0f}" if count < 1e6 else f"{count / 1e6:,.2f} M"


def rounds_text(rounds: int) -> str:
    """How long a run trained.

    Example:
        >>> rounds_text(0), rounds_text(1), rounds_text(60)
        ('fitted at once', '1 round', '60 rounds')
    """
    if not rounds:
        return "fitted at once"
    return "1 round" if rounds == 1 else f"{rounds:,} rounds"


def epsilon_text(line: Mapping[str, Any]) -> str:
    """One guarantee's number.

    Example:
        >>> epsilon_text({"epsilon": None, "delta": 1e-6}), epsilon_text({"epsilon": 3.25, "delta": 1e-6})
        ('ε = ∞', 'ε = 3.25 at δ = 1e-06')
    """
    return UNBOUNDED if line["epsilon"] is None else f"ε = {line['epsilon']:.4g} at δ = {line['delta']:g}"


def for_whole_people(privacy: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Each observer's line about whole people; those about one interaction promise something else."""
    return {line["observer"]: line for line in privacy if line["unit"] == "user"}


def side(privacy: Iterable[Mapping[str, Any]], observer: str) -> str:
    """One observer's epsilon for whole people, as a cell; a dash where the observer sees nothing.

    Example:
        >>> side([{"observer": "server", "unit": "user", "epsilon": None}], "server"), side([], "server")
        ('∞', '–')
    """
    line = for_whole_people(privacy).get(observer)
    if line is None:
        return "–"
    return "∞" if line["epsilon"] is None else f"{line['epsilon']:.3g}"


def pooled(told: Mapping[str, Any]) -> bool:
    """Whether all data lay in one place (a baseline, a central twin), of a result or a comparison's row.

    Example:
        >>> pooled({"twin": "central"}), pooled({"twin": "", "privacy": [], "traffic": {}})
        (True, False)
    """
    if "central" in {told.get("twin"), told.get("settings", {}).get("twin")}:
        return True
    return bool(told["privacy"]) and not told["traffic"].get("up_bytes_per_client_round")


def sent_text(told: Mapping[str, Any]) -> str:
    """What a person sends in a round, of a result or a comparison's row."""
    return "all data" if pooled(told) else sized(told["traffic"].get("up_bytes_per_client_round", 0))


def observer_name(observer: str) -> str:
    """Who looks, as a person would say it.

    Example:
        >>> observer_name("release")
        'Whoever gets the model'
    """
    return OBSERVERS.get(observer, (observer.capitalize(), ""))[0]


def observer_sees(observer: str) -> str:
    """What this observer has in hand."""
    return OBSERVERS.get(observer, ("", "looks on"))[1]


def best_guess(epsilon: float, delta: float) -> float:
    """The largest share of right guesses between two equally likely cases that (epsilon, delta) allows.

    Example:
        >>> best_guess(0.0, 0.0), round(best_guess(math.log(3), 0.0), 3)
        (0.5, 0.75)
    """
    if epsilon > 500:
        return 1.0
    grown = math.exp(epsilon)
    return min(1.0, (grown + delta) / (grown + 1.0))


def of_100(share: float) -> str:
    """A bound on a share, as so many of 100: rounded up, because less was not proved.

    Example:
        >>> of_100(0.75), of_100(0.7512), of_100(0.99331), of_100(0.9999995)
        ('75', '76', '99.34', '> 99.99')
    """
    if share > 0.9999:
        return "> 99.99"
    step = 1 if share < 0.99 else 100
    return f"{math.ceil(100 * step * share - 1e-9) / step:g}"


def protected(unit: str, adjacency: str) -> str:
    """What an attacker tries to tell apart.

    Example:
        >>> protected("user", "add-remove")
        'whether any one person took part at all, with everything they ever did'
    """
    whole = unit == "user"
    if adjacency == "replace-one":
        return (
            "whether a person holds their own history or any other one"
            if whole
            else "whether one particular interaction of a person is this one or another one"
        )
    return (
        "whether any one person took part at all, with everything they ever did"
        if whole
        else "whether any one particular interaction happened at all"
    )


def told_apart(unit: str, adjacency: str) -> tuple[str, str]:
    """The unit and the adjacency, each by its name and in words.

    Example:
        >>> told_apart("user", "add-remove")
        ('user: all of a person', 'add-remove: took part, or did not')
    """
    whole = unit == "user"
    units = "user: all of a person" if whole else "interaction: one rating or click"
    if adjacency == "replace-one":
        return units, f"replace-one: this {'history' if whole else 'one'}, or any other"
    return units, f"add-remove: {'took part, or did not' if whole else 'it happened, or did not'}"


def meaning(line: Mapping[str, Any]) -> str:
    """The sentence next to an epsilon.

    Example:
        >>> line = {
        ...     "observer": "release",
        ...     "epsilon": None,
        ...     "unit": "user",
        ...     "adjacency": "add-remove",
        ...     "delta": 1e-6,
        ... }
        >>> meaning(line)
        'Nothing is proved here: take it that they can learn everything about a person.'
    """
    if line["epsilon"] is None:
        return "Nothing is proved here: take it that they can learn everything about a person."
    epsilon, delta = float(line["epsilon"]), float(line["delta"])
    what = protected(line["unit"], line["adjacency"])
    guess = best_guess(epsilon, delta)
    often = f"at most {of_100(guess)} times in 100" if guess <= 0.9999 else "as good as always"
    text = f"Asked {what}, and whatever else they know, they may guess right {often} (a coin: 50 in 100)."
    if weak(line):
        return text + " So large an ε promises next to nothing in practice."
    return text


def weak(line: Mapping[str, Any]) -> bool:
    """Whether a bound was proved that is too large to promise anything in practice.

    Example:
        >>> weak({"epsilon": 20.0}), weak({"epsilon": 1.0}), weak({"epsilon": None})
        (True, False, False)
    """
    return line["epsilon"] is not None and line["epsilon"] > HARDLY_A_PROMISE


def mode_words(mode: str) -> str:
    """How the number came about.

    Example:
        >>> mode_words("accounted")
        'every exchange of the run composed by an accountant'
    """
    if mode == "as-published":
        return "the method run as its paper prints it; the number is for what was really done"
    return "every exchange of the run composed by an accountant"


def units_text(name: str, value: float) -> str:
    """A number of the paper's own units: parameters, bytes, or latent vectors.

    Example:
        >>> units_text("parameters_per_client", 53824.0), units_text("client_to_server", 2.5)
        ('53,824.0', '2.5 vectors')
        >>> units_text("bytes_up", 400.0)
        '400 B'
    """
    if name.startswith("bytes"):
        return sized(value)
    return f"{value:,.1f}" + ("" if name.startswith("parameters") else " vectors")
