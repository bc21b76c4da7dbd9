"""Directions that stand out of noise are found with the strength they have; pure noise gives none."""

import numpy as np
import pytest

from tacit.server.estimates import spikes


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_has_no_directions(seed):
    sample = np.random.default_rng(seed).normal(size=(2000, 200)) * 3.0
    found = spikes(np.cov(sample, rowvar=False), np.full(200, 9.0), 2000, 10)
    assert len(found.strengths) == 0


def test_a_planted_direction_is_found_and_shrunk_to_what_it_explains():
    """The sample eigenvalue overstates; what is kept is the variance along the direction that was found."""
    generator = np.random.default_rng(0)
    direction = generator.normal(size=150)
    direction /= np.linalg.norm(direction)
    strength, scale = 2.0, np.linspace(0.5, 2, 150)
    sample = (
        generator.normal(size=(600, 150)) + np.sqrt(strength) * generator.normal(size=(600, 1)) * direction
    )
    found = spikes(np.cov(sample * scale, rowvar=False), scale**2, 600, 5)
    assert found.vectors.shape == (150, 1)
    unscaled = found.vectors[:, 0] / scale
    ratio = 150 / 600
    cosine = (1 - ratio / strength**2) / (1 + ratio / strength)
    assert (unscaled @ direction) ** 2 == pytest.approx(cosine, abs=0.06)
    assert found.strengths[0] == pytest.approx(strength * cosine, rel=0.15)
