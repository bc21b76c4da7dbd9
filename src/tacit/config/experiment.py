"""One experiment, complete: what a run folder's ``config.toml`` holds."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tacit.config import catalogue
from tacit.data.interactions import Dataset
from tacit.errors import TacitError, nearest
from tacit.evaluate.protocol import parse_metric
from tacit.round import Exchange, Method
from tacit.runtime.folder import LAYOUT, own_data, refuse_other_layout
from tacit.runtime.run import Fitting, Plan
from tacit.settings import known_setting
from tacit.transport.transport import Transport
from tacit.types import Delivers


@dataclass(frozen=True)
class Experiment:
    """Everything that can change a number of a run. Unknown keys are errors.

    Example:
        >>> Experiment.from_mapping({"method": "fedrec", "seeds": 3})
        Traceback (most recent call last):
        tacit.errors.TacitError: an experiment has no key 'seeds'; did you mean 'seed'?
    """

    method: str
    data: str = "demo"
    split: str = ""
    seed: int = 1
    rounds: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    protect: tuple[str, ...] = ()
    transport: str = ""
    metrics: tuple[str, ...] = ()
    evaluate_every: int = 0
    delta: float = 1e-6
    device: str = "cpu"

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Experiment":
        """An experiment from a TOML table."""
        known = {entry.name: entry for entry in fields(cls)}
        for key, value in values.items():
            if key not in known:
                raise TacitError(f"an experiment has no key {key!r}", nearest(key, known))
            _refuse_wrong_kind(key, value)
        if "method" not in values:
            raise TacitError("an experiment without a method", 'add a line such as method = "fedrec"')
        lists: dict[str, Any] = {
            key: tuple(value) for key, value in values.items() if isinstance(value, list)
        }
        return cls(**{**values, **lists})

    @classmethod
    def from_file(cls, path: Path) -> "Experiment":
        """An experiment from a TOML file, or from a run's own ``config.toml``."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TacitError(
                f"{path} cannot be read ({error.strerror})", "give an experiment file in TOML"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TacitError(f"{path} is not TOML: {error}", "give an experiment file in TOML") from error
        refuse_other_layout(values.pop("layout", LAYOUT), path)
        return cls.from_mapping(own_data(values, path.parent))

    def to_mapping(self) -> dict[str, Any]:
        """The TOML table; running it again gives the same numbers."""
        values = asdict(self)
        values["settings"] = {key: value for key, value in self.settings.items() if value is not None}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


DEVICES = ("cpu", "cuda")
_KINDS = {
    "seed": int,
    "rounds": int,
    "evaluate_every": int,
    "delta": (int, float),
    "settings": Mapping,
    "protect": (list, tuple),
    "metrics": (list, tuple),
}


def _refuse_wrong_kind(key: str, value: Any) -> None:
    kind = _KINDS.get(key, str)
    within = value if isinstance(value, list | tuple) else ()
    if not isinstance(value, kind) or isinstance(value, bool) or not all(isinstance(v, str) for v in within):
        raise TacitError(f"experiment key {key} = {value!r} is of the wrong kind", "see `tacit run --help`")


def resolved(
    experiment: Experiment, data_dir: Path | None = None, dataset: Dataset | None = None
) -> tuple[Experiment, Plan]:
    """Fill in every default, load and split the data, build the method: nothing is written yet.

    ``dataset`` takes the place of what ``experiment.data`` names, for data that are in memory already.
    """
    from tacit.data import load  # readers load on first use
    from tacit.split import split

    settings = checked_settings(experiment)
    method = _method(experiment, settings)
    dataset = load(experiment.data, data_dir) if dataset is None else dataset
    ratings = dataset.scale is not None and method.predicts_ratings
    if dataset.scale is None:
        _refuse_metrics_of_ratings(experiment, dataset.name, "has no rating scale")
    chosen = experiment.split or ("ratings-5fold:1" if ratings else _usual(dataset))
    parts = split(dataset, chosen, seed=experiment.seed)
    rounds = method.rounds if isinstance(method, Method) and "rounds" in settings else 0
    complete = replace(experiment, settings=settings, split=chosen, rounds=rounds)
    return complete, Plan(
        name=experiment.method,
        method=method,
        dataset=dataset.keeping(
            parts.train
        ),  # nothing held out is reachable from here on, and memory is freed
        split=parts,
        seed=experiment.seed,
        metrics=experiment.metrics,
        evaluate_every=experiment.evaluate_every,
        delta=float(experiment.delta),
    )


def method_of(experiment: Experiment) -> Method | Fitting:
    """The method an experiment names, with its settings, protections and transport; no data are read.

    Example:
        >>> method_of(Experiment("fedrec", rounds=3)).rounds
        3
    """
    return _method(experiment, checked_settings(experiment))


def checked_settings(experiment: Experiment) -> dict[str, Any]:
    """A method's settings, complete; whatever does not exist or fit is one clear line."""
    name = experiment.method
    if name not in catalogue.methods() and name not in catalogue.baselines():
        raise TacitError(
            f"no method is called {name!r}", nearest(name, [*catalogue.methods(), *catalogue.baselines()])
        )
    settings = catalogue.resolved_settings(name, experiment.settings, experiment.data)
    for metric in experiment.metrics:
        parse_metric(metric)
    _refuse_unknown_device(experiment.device)
    if not 0 < experiment.delta < 1:
        raise TacitError(f"delta={experiment.delta:g} is not possible", "give a number above 0 and below 1")
    if experiment.rounds < 0 or experiment.evaluate_every < 0:
        raise TacitError("a negative number of rounds", "give --rounds 1 or more")
    if experiment.rounds and name in catalogue.baselines():
        raise TacitError(f"{name} is fitted at once and has no rounds", "leave --rounds out")
    if experiment.rounds:
        settings["rounds"] = known_setting(catalogue.methods()[name], "rounds", name).checked(
            experiment.rounds
        )
    return settings


def _refuse_unknown_device(device: str) -> None:
    if device not in DEVICES:
        raise TacitError(f"no kind of device is called {device!r}", nearest(device, DEVICES))
    if device == "cuda":
        import torch  # asked only where somebody wants an accelerator

        if not torch.cuda.is_available():
            raise TacitError("no CUDA device is available", "leave --device out to compute on the CPU")


def _refuse_metrics_of_ratings(experiment: Experiment, who: str, lacks: str) -> None:
    asked = [name for name in experiment.metrics if parse_metric(name).of_ratings]
    if asked:
        raise TacitError(f"{who} {lacks}, so there is no {' and '.join(asked)}", "ask for hr@10 or ndcg@10")


def _usual(dataset: Dataset) -> str:
    return "leave-one-out" if dataset.interactions.times is None else "leave-last-out"


def _method(experiment: Experiment, settings: Mapping[str, Any]) -> Method | Fitting:
    method = _fitting(experiment, settings) or _federated(experiment, settings)
    if not method.predicts_ratings:
        _refuse_metrics_of_ratings(experiment, experiment.method, "predicts no ratings")
    return method


def _fitting(experiment: Experiment, settings: Mapping[str, Any]) -> Fitting | None:
    if experiment.method not in catalogue.baselines():
        return None
    if experiment.protect or experiment.transport:
        raise TacitError(
            f"{experiment.method} sees all data in one place", "leave --protect and --transport out"
        )
    return Fitting(catalogue.baselines()[experiment.method], settings)


def _federated(experiment: Experiment, settings: Mapping[str, Any]) -> Method:
    method = catalogue.built(experiment.method, settings)
    for spec in experiment.protect:
        method = with_protection(method, spec)
    if experiment.transport:
        carried = catalogue.transport(experiment.transport)
        method = replace(method, exchanges=tuple(carried_by(carried, e) for e in method.exchanges))
    return method


def carried_by(transport: Transport, exchange: Exchange) -> Exchange:
    """The same exchange over another transport; for sums, numbers with a point are rounded first."""
    chain = exchange.protections
    if transport.delivers is Delivers.SUM and chain.steps() is None:
        chain = replace(chain, stages=(*chain.stages, catalogue.protection("grid:32:1024")))
    return replace(exchange, transport=transport, protections=chain)


def with_protection(method: Method, spec: str) -> Method:
    """The same method with one more protection at the end of every exchange's chain.

    Noise in shares rounds by itself: a grid that is there for the sake of a sum makes room for it.
    """
    from tacit.protect.distributed import NoiseShares  # arithmetic loads on first use
    from tacit.protect.grid import Grid

    stage = catalogue.protection(spec)

    def guarded(exchange: Exchange) -> Exchange:
        stages = exchange.protections.stages
        if isinstance(stage, NoiseShares) and exchange.transport.delivers is Delivers.SUM:
            stages = tuple(one for one in stages if not isinstance(one, Grid))
        return replace(exchange, protections=replace(exchange.protections, stages=(*stages, stage)))

    return replace(method, exchanges=tuple(map(guarded, method.exchanges)))
