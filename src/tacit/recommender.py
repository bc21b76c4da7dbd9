"""The Python surface, in scikit-learn's shape: the same runs as the command line's."""

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.config.experiment import Experiment
    from tacit.config.serving import Served
    from tacit.config.top import Recommended
    from tacit.data.interactions import Dataset
    from tacit.runtime.listener import Listener

Id = int | str
_ASIDE = ("threads", "data_dir")  # they change no number, so no experiment holds them
_OWN = ("split", "rounds", "seed", "protect", "transport", "metrics", "delta", "device", *_ASIDE)


class Recommender:
    """A federated recommender that is fitted, asked, judged, saved and loaded.

    ``fit`` simulates the federation: every person in the data is a device, and only what the method sends
    leaves one. What that was worth is in ``privacy``, what it weighed in ``traffic``. A fitted recommender
    is a run folder, the same as the command line's: ``save`` writes one, ``load`` opens one from either.

    It follows scikit-learn's conventions (``get_params``, ``set_params``, clones, grid searches) without
    needing scikit-learn. A search fits many times, and each fit spends its own privacy budget.

    Stability: public; names stay.

    Args:
        method: A method's or a baseline's name, as ``tacit methods`` lists them.
        split: What to hold out while fitting. By default nothing: judge with ``score`` on data of your own.
            Any split of the command line works too; its numbers are then in ``metrics``.
        rounds: Rounds of training; 0 is the method's own number.
        seed: Equal seeds give equal numbers.
        protect: Protections to add, such as ``("grid:32",)``.
        transport: How messages travel; empty is the method's own way.
        metrics: What to measure on the split's held-out part; empty is what fits the method.
        delta: The delta of every (epsilon, delta) claim.
        device: ``cpu`` or ``cuda``.
        threads: Threads; they change speed only.
        data_dir: Where named data sets lie.
        settings: The method's own settings, such as ``rho=2`` or ``dim=16``.

    Example:
        >>> from tacit import Recommender
        >>> taste = Recommender("fedrec++", rho=2, rounds=5, seed=1)
        >>> taste = taste.fit("demo:users=60,items=50,mean=15")
        >>> len(taste.recommend(7, k=3)), len(taste.recommend_for({3: 5, 8: 1}, k=3))
        (3, 3)
        >>> [(line["observer"], line["epsilon"]) for line in taste.privacy]
        [('server', None), ('peer', None), ('release', None)]
    """

    def __init__(
        self,
        method: str = "fedrec++",
        *,
        split: str = "all",
        rounds: int = 0,
        seed: int = 1,
        protect: Iterable[str] = (),
        transport: str = "",
        metrics: Iterable[str] = (),
        delta: float = 1e-6,
        device: str = "cpu",
        threads: int = 1,
        data_dir: str | Path | None = None,
        **settings: Any,
    ) -> None:
        given = (split, rounds, seed, protect, transport, metrics, delta, device, threads, data_dir)
        own = dict(zip(_OWN, given, strict=True))
        self._parameters: dict[str, Any] = {"method": method, **own, **settings}
        self._run: Path | None = None
        self._served: Served | None = None
        self._result: dict[str, Any] = {}
        self._experiment()

    def __repr__(self) -> str:
        """The arguments that differ from the defaults."""
        method, *rest = [
            repr(value) if name == "method" else f"{name}={value!r}"
            for name, value in self._parameters.items()
            if name not in _OWN or value != _DEFAULTS[name]
        ]
        return f"Recommender({', '.join([method, *rest])})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - scikit-learn's form
        """Every argument as it was given.

        Example:
            >>> Recommender("fedmf", dim=8).get_params()["dim"]
            8
        """
        return dict(self._parameters)

    def set_params(self, **parameters: Any) -> "Recommender":
        """Change arguments; what was fitted is forgotten.

        Example:
            >>> Recommender("fedmf").set_params(dim=8, seed=3)
            Recommender('fedmf', seed=3, dim=8)
        """
        before = self._parameters
        self._parameters = {**before, **parameters}
        try:
            self._experiment()
        except TacitError:
            self._parameters = before
            raise
        self._forget()
        return self

    def fit(
        self,
        data: Any,
        *,
        scale: str = "auto",
        duplicates: str = "refuse",
        listener: "Listener | None" = None,
    ) -> "Recommender":
        """Train a federation of everybody in the data.

        Args:
            data: A data frame (pandas or polars), a mapping of columns, rows of ``(user, item[, rating[,
                timestamp]])``, a NumPy array of such rows, the path of a CSV, Parquet or ``.inter`` file, or
                a data set's name. Without ratings the log is implicit.
            scale: The ratings' range for data in memory, as ``1-5`` or ``0.5-5-0.5``, or ``none`` for counts.
            duplicates: What to do when a pair occurs twice in memory: ``refuse``, ``last`` or ``mean``.
            listener: Hears how far it is.

        Returns:
            Itself.

        Example:
            >>> log = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 9, 8, 9], "rating": [5, 1, 4, 2, 1, 5]}
            >>> [row.item for row in Recommender("fedmf", rounds=3).fit(log).recommend(1)]
            [9]
        """
        from tacit.config.serving import served
        from tacit.config.session import started
        from tacit.runtime.listener import Listener

        began = time.perf_counter()
        self._forget()
        name, table = _named_or_read(data, {"scale": scale, "duplicates": duplicates})
        home = Path(tempfile.mkdtemp(prefix="tacit-"))
        weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        experiment = self._experiment(name)
        session = started(experiment, home / "run", self._data_dir(), self._parameters["threads"], table)
        result = session.trained(listener or Listener(), loaded=time.perf_counter() - began)
        if result is None:
            raise TacitError("fitting was stopped", "fit again")
        self._run, self._result = session.folder.path, result
        self._served = served(session.plan, session.folder)
        return self

    @overload
    def recommend(self, users: Id, k: int = 10) -> "list[Recommended]": ...

    @overload
    def recommend(self, users: Iterable[Id], k: int = 10) -> "dict[Id, list[Recommended]]": ...

    def recommend(self, users: Any, k: int = 10) -> Any:
        """The top ``k`` for somebody in the data, or for each of several people; what they know is left out.

        Example:
            >>> taste = Recommender("pop").fit([("ann", "x"), ("ann", "y"), ("bob", "x")])
            >>> [row.item for row in taste.recommend("bob")], list(taste.recommend(["bob"]))
            (['y'], ['bob'])
        """
        fitted = self._fitted()
        if isinstance(users, str) or not isinstance(users, Iterable):
            return fitted.for_user(str(users), k)
        return {user: fitted.for_user(str(user), k) for user in users}

    def recommend_for(self, history: Any, k: int = 10) -> "list[Recommended]":
        """The top ``k`` for somebody who never took part, worked out from their history alone.

        Args:
            history: A mapping of item to rating, a collection of items (implicit data), or one person's
                history as a data frame or a file.
            k: How many.

        Returns:
            Items with scores, best first, without those in the history.

        Example:
            >>> taste = Recommender("fedmf", rounds=3).fit("demo:users=60,items=50,mean=15")
            >>> 3 in [row.item for row in taste.recommend_for({3: 5, 8: 1}, k=48)]
            False
        """
        if isinstance(history, str | Path):
            return self._fitted().for_history(Path(history), k)
        return self._fitted().for_newcomer(_as_one_person(history), k)

    def score(self, held_out: Any, metric: str = "ndcg@10") -> float:
        """One metric on interactions that were not in the training data, over people who were.

        Ranking is over the whole catalogue without what each person is known to have met. People and items
        that the training data did not hold are left out. For ``rmse`` and ``mae`` smaller is better.

        Example:
            >>> log = [(user, item) for user in range(8) for item in range(user % 3, 9, 2)]
            >>> 0 <= Recommender("itemknn").fit(log[4:]).score(log[:4]) <= 1
            True
        """
        from tacit.data.load import load

        name, table = _named_or_read(held_out, {"scale": "none", "duplicates": "last"})
        found = self._fitted().judged(load(name, self._data_dir()) if table is None else table, [metric])
        return float(found.metrics[metric])

    @property
    def privacy(self) -> list[dict[str, Any]]:
        """What was proved, one line per observer; ``epsilon`` is ``None`` where nothing was."""
        return self._finished()["privacy"]

    @property
    def traffic(self) -> dict[str, Any]:
        """Bytes of the encoded messages, per client and round and in all."""
        return self._finished()["traffic"]

    @property
    def metrics(self) -> dict[str, float]:
        """Numbers on the split's held-out part; empty where nothing was held out."""
        return self._finished()["metrics"]

    @property
    def result(self) -> dict[str, Any]:
        """Everything that ``tacit run --json`` prints."""
        return self._finished()

    def save(self, folder: str | Path) -> Path:
        """Write the run folder, with its report, where it was asked for.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp() + "/mine"
            >>> saved = Recommender("fedmf", rounds=2).fit("demo:users=60,items=50,mean=15").save(folder)
            >>> Recommender.load(saved).result["rounds"]
            2
        """
        from tacit.report.page import write_report
        from tacit.runtime.checkpoint import told
        from tacit.runtime.folder import RunFolder

        target, source = Path(folder), self._run
        result = self._finished()
        if source is None or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
            raise TacitError(f"{target} exists already", "choose another folder")
        try:
            shutil.copytree(source, target, dirs_exist_ok=True)
        except OSError as error:
            raise told(error, target) from error
        RunFolder.opened(target).write_result({**result, "run": str(target)})
        write_report(target)
        return target

    @classmethod
    def load(cls, folder: str | Path, data_dir: str | Path | None = None) -> "Recommender":
        """Open a run folder, whoever made it: ``save``, or ``tacit run --out``."""
        from tacit.config.serving import opened
        from tacit.runtime.folder import RunFolder

        run = RunFolder.opened(Path(folder))
        found = opened(run.path, None if data_dir is None else Path(data_dir))
        given = run.config()
        for name in ("data", "evaluate_every"):
            given.pop(name, None)
        settings = given.pop("settings", {})
        lists: dict[str, Any] = {name: tuple(given[name]) for name in ("protect", "metrics") if name in given}
        loaded = cls(**{**given, **lists, **settings}, data_dir=data_dir)
        loaded._run, loaded._result, loaded._served = run.path, run.result(), found
        return loaded

    def _experiment(self, data: str = "demo") -> "Experiment":
        """The experiment these arguments make, checked; nothing is loaded."""
        from tacit.config.experiment import Experiment, checked_settings

        rest = {name: value for name, value in self._parameters.items() if name not in _ASIDE}
        own = {name: rest.pop(name) for name in ("method", *_OWN) if name in rest}
        for name in ("protect", "metrics"):
            own[name] = [own[name]] if isinstance(own[name], str) else list(own[name])
        experiment = Experiment.from_mapping({**own, "data": data, "settings": rest})
        checked_settings(experiment)
        return experiment

    def _data_dir(self) -> Path | None:
        given = self._parameters["data_dir"]
        return None if given is None else Path(given)

    def _fitted(self) -> "Served":
        if self._served is None:
            raise TacitError("this recommender is not fitted", "call fit(data) first, or Recommender.load")
        return self._served

    def _finished(self) -> dict[str, Any]:
        self._fitted()
        return self._result

    def _forget(self) -> None:
        self._run, self._served, self._result = None, None, {}

    def __getstate__(self) -> dict[str, Any]:
        if self._served is not None:
            raise TacitError(
                "a fitted recommender is not pickled", "use save(folder) and Recommender.load(folder)"
            )
        return dict(self.__dict__)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(string=True, categorical=True),
        )


_DEFAULTS: Mapping[str, Any] = Recommender.__init__.__kwdefaults__ or {}


def _named_or_read(data: Any, options: Mapping[str, str]) -> "tuple[str, Dataset | None]":
    """A data set's name or path; or what is in memory, as a data set."""
    if isinstance(data, str | Path):
        return str(data), None
    from tacit.data.frames import from_memory

    return "table", from_memory(data, options)


def _as_one_person(history: Any) -> "Dataset":
    from tacit.data.frames import from_memory

    options = {"scale": "none", "duplicates": "last", "person": "newcomer"}
    if isinstance(history, Mapping):
        return from_memory({"item": list(history), "rating": list(history.values())}, options)
    if hasattr(history, "columns"):
        return from_memory(history, options)
    if isinstance(history, Iterable) and not isinstance(history, str | bytes):
        return from_memory({"item": list(history)}, options)
    kind = type(history).__name__
    raise TacitError(f"a {kind} is no history", "give a mapping of item to rating, or a list of items")
