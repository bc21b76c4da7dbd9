"""What a client of a federated context model computes: the gradient of its squared errors."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.local.work import Broadcast, Inbox, LocalWork, Work
from tacit.models.context import Context
from tacit.models.private import side_by_side
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats


@dataclass(frozen=True)
class ContextGradient(LocalWork):
    """Sends ``sum over own ratings of (prediction - rating) * slope`` for every parameter."""

    context: Context

    @property
    def dense(self) -> bool:
        """All parameters, whatever was rated."""
        return True

    def run(
        self,
        received: Broadcast,
        private: Mapping[str, Array],
        cohort: Cohort,
        inbox: Inbox | None,
        keys: Keys,
    ) -> Work:
        """One full gradient per client."""
        del private, inbox, keys
        theta: Floats = received.arrays["theta"]
        parameters, profiles = self.context.parameters(theta), self.context.profiles(cohort)
        found = np.zeros((len(cohort), theta.size), dtype=np.float32)
        for group in side_by_side(cohort.offsets, self.context.width):
            shape = (*group.at.shape, profiles.shape[1])
            about = np.broadcast_to(profiles[group.clients, np.newaxis], shape)
            inputs = self.context.inputs(about, cohort.items[group.at])
            told = self.context.form.values(parameters, inputs)
            errors = (told - cohort.values[group.at]) * group.there
            slopes = self.context.form.gradient(parameters, inputs, errors)
            rows = [slopes[name].reshape(len(group.clients), -1) for name in sorted(slopes)]
            found[group.clients] = np.concatenate(rows, axis=1)
        return Work({"theta": found}, {})
