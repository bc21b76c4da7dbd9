"""A guarantee in plain words: what it means for a person, for whom, and what it rests on."""

import math
from collections.abc import Mapping
from typing import Any

OBSERVERS: Mapping[str, tuple[str, str]] = {
    "server": ("The server", "sees every message that reaches it and writes everything down"),
    "proxy": ("The proxy", "forwards messages between devices and the server"),
    "peer": ("Other people's devices", "may be written to by a device, and remember what they were told"),
    "release": ("Whoever gets the model", "holds every version of the shared model, and nothing else"),
}
HARDLY_A_PROMISE = 8.0
UNBOUNDED = "ε = ∞"


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


def epsilon_text(line: Mapping[str, Any]) -> str:
    """One guarantee's number.

    Example:
        >>> epsilon_text({"epsilon": None, "delta": 1e-6}), epsilon_text({"epsilon": 3.25, "delta": 1e-6})
        ('ε = ∞', 'ε = 3.25 at δ = 1e-06')
    """
    return UNBOUNDED if line["epsilon"] is None else f"ε = {line['epsilon']:.4g} at δ = {line['delta']:g}"


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
    shown = f"{100 * guess:.0f}" if guess < 0.995 else f"{min(99.99, 100 * guess):.2f}"
    text = (
        f"Asked {what}, and whatever else they know, they guess right at most {shown} times in 100 "
        "(a coin: 50)."
    )
    if epsilon > HARDLY_A_PROMISE:
        return text + " So large an ε promises next to nothing in practice."
    return text


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
    """A number of the paper's own units: parameters, or latent vectors.

    Example:
        >>> units_text("parameters_per_client", 53824.0), units_text("client_to_server", 2.5)
        ('53,824.0', '2.5 vectors')
    """
    return f"{value:,.1f}" + ("" if name.startswith("parameters") else " vectors")
