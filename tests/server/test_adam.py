"""The server's Adam is torch's; repeated descent is as many single steps."""

import numpy as np
import torch

from tacit.schedule import Decaying
from tacit.server.adam import Adam
from tacit.server.repeated import RepeatedDescent


def test_adam_equals_torchs():
    generator = np.random.default_rng(0)
    table = generator.normal(size=(5, 3))
    other = torch.nn.Parameter(torch.from_numpy(table.copy()))
    optimiser = torch.optim.Adam([other], lr=0.1)
    step, shared = Adam(Decaying(0.1), reg=0.05), {"items": table}
    state = step.init(shared)
    for round in range(7):
        gradient = generator.normal(size=(5, 3)) * 10.0**round
        other.grad = torch.from_numpy(gradient) + 2 * 0.05 * other.detach()
        optimiser.step()
        shared, state = step.step(shared, {"round": {"items": gradient}}, state, round)
        np.testing.assert_allclose(shared["items"], other.detach().numpy(), rtol=1e-9)


def test_repeated_steps_follow_one_gradient():
    generator = np.random.default_rng(1)
    table, gradient = generator.normal(size=(4, 2)), generator.normal(size=(4, 2))
    expected = table.copy()
    for _ in range(20):
        expected = expected - 0.03 * (gradient + 2 * 0.2 * expected)
    found, _ = RepeatedDescent(Decaying(0.03), 0.2, 20).step(
        {"items": table}, {"a": {"items": gradient / 4}, "b": {"items": gradient * 0.75}}, {}, 0
    )
    np.testing.assert_allclose(found["items"], expected)
