"""Matrix factorisation of what a person's own model leaves over: ``rating(u, i) = mask_u(i) + p_u . q_i``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.models.matrix_factorisation import MatrixFactorisation
from tacit.models.model import Model, Scorer
from tacit.models.private import Fitting, Form, Lookup, fitted, predicted
from tacit.models.side_information import BLANK, ItemTable
from tacit.rng import Keys, SeededKeys
from tacit.types import Array, Cohort, Floats, Index, Long

_PREFIX = "mask."


@dataclass(frozen=True)
class Mask:
    """What each device takes off its ratings before training, and adds to every prediction.

    ``form`` is the private model (``None``: there is none), fitted as ``fitting`` says on the public
    ``table`` of item features. With ``common`` one public number is taken off instead: everybody's mean.

    Example:
        >>> from tacit.models.private import OwnMean
        >>> mask = Mask(OwnMean(), Fitting(0.0))
        >>> one = Cohort(
        ...     np.zeros(1, "i4"), np.array([0, 2]), np.array([0, 1], "i4"), np.array([3, 5], "f4"), 2
        ... )
        >>> mask.values({}, mask.fitted(one, SeededKeys(1)), one.offsets, one.items).tolist()
        [4.0, 4.0]
    """

    form: Form | None
    fitting: Fitting
    table: ItemTable = BLANK
    common: bool = False

    def fitted(self, cohort: Cohort, keys: Keys) -> dict[str, Array]:
        """The private models of some devices: each from its own ratings alone."""
        if self.form is None:
            return {}
        own = keys.users(cohort.users, "mask")
        found = fitted(
            self.form, self.fitting, cohort.offsets, Lookup(self.table, cohort.items), cohort.values, own
        )
        return {f"{_PREFIX}{name}": array for name, array in found.items()}

    def started(self, users: Index) -> dict[str, Array]:
        """Room for the private models, before they are fitted."""
        if self.form is None:
            return {}
        nobody = np.zeros(len(users), dtype=np.uint64)
        mean = np.zeros(len(users), dtype=np.float32)
        found = self.form.started(self.table.width, mean, nobody)
        return {f"{_PREFIX}{name}": np.zeros_like(array) for name, array in found.items()}

    def values(
        self, shared: Mapping[str, Array], private: Mapping[str, Array], offsets: Long, items: Index
    ) -> Floats:
        """The mask at some items of each client, client after client."""
        if self.common:
            return np.full(len(items), np.float32(shared["mean"][0]), dtype=np.float32)
        if self.form is None:
            return np.zeros(len(items), dtype=np.float32)
        return predicted(self.form, self.parameters(private), offsets, Lookup(self.table, items))

    def parameters(self, private: Mapping[str, Array]) -> dict[str, Array]:
        """The private models among a device's arrays."""
        return {
            name.removeprefix(_PREFIX): array for name, array in private.items() if name.startswith(_PREFIX)
        }


@dataclass(frozen=True)
class MaskedScorer:
    """Adds each person's mask to what the factors say; no factors, where a device is alone."""

    mask: Mask
    inner: Scorer | None
    shared: Mapping[str, Array]
    private: Mapping[str, Array]
    catalogue: int

    def scores(self, users: Index) -> Floats:
        """One row over the catalogue per user."""
        offsets = np.arange(len(users) + 1, dtype=np.int64) * self.catalogue
        items = np.tile(np.arange(self.catalogue, dtype=np.int32), len(users))
        masks = self._masks(users, offsets, items).reshape(len(users), self.catalogue)
        return masks if self.inner is None else masks + self.inner.scores(users)

    def predict(self, users: Index, items: Index) -> Floats:
        """One rating per pair."""
        order = np.argsort(users, kind="stable")
        people, counts = np.unique(users, return_counts=True)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        found = np.zeros(len(users), dtype=np.float32)
        found[order] = self._masks(people, offsets, items[order])
        return found if self.inner is None else found + self.inner.predict(users, items)

    def _masks(self, users: Index, offsets: Long, items: Index) -> Floats:
        private = {name: array[users] for name, array in self.private.items()}
        return self.mask.values(self.shared, private, offsets, items)


@dataclass(frozen=True)
class MaskedFactorisation(Model):
    """``factors`` of the residuals of ``mask``; without factors a device is alone with its own model."""

    mask: Mask
    factors: MatrixFactorisation | None

    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """The item table, and room for the common mean where there is one."""
        if self.factors is None:
            return {"catalogue": np.array([catalogue], dtype=np.int64)}
        common = {"mean": np.zeros(1, dtype=np.float32)} if self.mask.common else {}
        return {**self.factors.shared(catalogue, keys), **common}

    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Each person's vector, and room for the own model."""
        own = {} if self.factors is None else self.factors.private(users, keys)
        return {**own, **self.mask.started(users)}

    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """A newcomer's own model, then their vector by ridge regression on what it leaves over."""
        own = self.mask.fitted(cohort, SeededKeys(0))
        if self.factors is None:
            return own
        over = cohort.values - self.mask.values(shared, own, cohort.offsets, cohort.items)
        return {**own, **self.factors.folded_in(shared, replace(cohort, values=over))}

    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """Masks plus dot products."""
        if self.factors is None:
            return MaskedScorer(self.mask, None, shared, private, int(shared["catalogue"][0]))
        inner = self.factors.scorer(shared, private)
        return MaskedScorer(self.mask, inner, shared, private, len(shared["items"]))
