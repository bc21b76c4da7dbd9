"""The run in question beside twins, baselines and other methods: a table with paired tests."""

from collections.abc import Sequence

from tacit.evaluate.significance import Comparison
from tacit.report.differences import Differences, differences
from tacit.report.markup import Column, table, text
from tacit.report.saved import Subject
from tacit.report.words import chance, measured, sent_text, side, spread_of

NUMBER = {"number": True}
ALONE = (
    "<p>Nothing stands beside this run yet. <code>tacit report RUN --beside</code> trains the same method "
    "with all data in one place and with every person alone, and the usual baselines, on the same split and "
    "seed; <code>tacit report RUN OTHER</code> takes runs that are there already. Then they are lines and "
    "rows here.</p>"
)
TWINS = (
    "<p>Twins are the same method with all data in one place (central) or with every person alone (local): "
    "what federating and protecting costs. Baselines see all data in one place.</p>"
)


def beside_others(told: Sequence[Subject]) -> str:
    """The section; the first subject is the one in question."""
    if len(told) < 2:
        return ALONE
    metrics = list(told[0].metrics())
    if not metrics:
        return TWINS + _prices(told, [])
    tested = differences(told, metrics[0])
    rest = _every_metric(told, metrics) if metrics[1:] else ""
    return TWINS + _prices(told, metrics[:1]) + _tests(told, tested) + rest


def _tests(told: Sequence[Subject], tested: Differences | None) -> str:
    if tested is None:
        alike = len({one.seeds for one in told}) == 1
        why = (
            "they have no metric of people in common" if alike else "their seeds, and so their splits, differ"
        )
        return f"<p>No paired test stands here: {text(why)}.</p>"
    rows = [_test(one, tested.found[one.label]) for one in told[1:]]
    columns = [Column("method"), Column("difference", **NUMBER), Column("95 % interval", **NUMBER)]
    columns += [Column("p, corrected", **NUMBER)]
    caption = f"Difference in {tested.metric} from {tested.reference}"
    return table(caption, columns, rows) + f"<p>{text(tested.told())}</p>"


def _test(one: Subject, found: Comparison) -> tuple[str, ...]:
    return (
        one.label,
        signed(found.difference),
        f"{signed(found.low)} to {signed(found.high)}",
        chance(found.adjusted),
    )


def signed(value: float) -> str:
    """A difference with its sign.

    Example:
        >>> signed(0.0213), signed(-0.5), signed(0.0)
        ('+0.0213', '−0.5000', '0.0000')
    """
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return sign + measured(abs(value))


def _prices(told: Sequence[Subject], metrics: Sequence[str]) -> str:
    """Accuracy, privacy and bytes side by side."""
    rows = []
    for one in told:
        result = one.first.result
        sides = [side(result["privacy"], observer) for observer in ("server", "release")]
        values = [_value(one, name) for name in metrics]
        rows.append((one.label, *values, *sides, sent_text(result), len(one.runs)))
    names = (*metrics, "ε server", "ε release", "sent per round", "seeds")
    columns = [Column("method"), *(Column(name, **NUMBER) for name in names)]
    return table(f"Accuracy, privacy and bytes on the same data and split{_spread(told)}", columns, rows)


def _every_metric(told: Sequence[Subject], metrics: Sequence[str]) -> str:
    rows = [(one.label, *(_value(one, name) for name in metrics)) for one in told]
    columns = [Column("method"), *(Column(name, **NUMBER) for name in metrics)]
    return table(f"Every metric{_spread(told)}", columns, rows)


def _spread(told: Sequence[Subject]) -> str:
    return " (mean ± standard deviation over seeds)" if any(len(one.runs) > 1 for one in told) else ""


def _value(one: Subject, metric: str) -> str:
    values = one.metrics()
    if metric not in values:
        return "–"
    spread = one.spread(metric)
    return measured(values[metric]) + ("" if spread is None else f" ± {spread_of(spread, values[metric])}")
