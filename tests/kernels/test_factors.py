"""The client step against its torch twin, and its independence of grouping and threads."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.kernels import reference
from tacit.kernels.factors import Fill, UserStep, client_step
from tacit.kernels.squares import squaring_pays
from tacit.kernels.vectors import padded
from tacit.types import Segment

# Each shape is compiled anew: the rest of the product is left to the long suite.
SHAPES = [(np.float32, dim) for dim in (1, 16, 20, 33, 130)] + [(np.float64, 5), (np.float64, 20)]
LONG = [(np.float32, 5), (np.float32, 128)] + [(np.float64, dim) for dim in (1, 16, 33, 128, 130)]
SHAPES += [pytest.param(*shape, marks=pytest.mark.slow) for shape in LONG]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}
RECIPE = {"rate": 0.3, "reg": 0.05}


def run(cohort, dim, **settings):
    return client_step(
        cohort.offsets, cohort.items, cohort.values, cohort.fillers, cohort.factors, padded(cohort.table),
        dim, **(RECIPE | settings),
    )  # fmt: skip


def twin(cohort, **settings):
    return reference.client_step(
        cohort.offsets, cohort.items, cohort.values, cohort.fillers, cohort.factors, cohort.table,
        **(RECIPE | settings),
    )  # fmt: skip


def assert_close(ours, meant, tolerance):
    assert ours.ids.tolist() == meant.ids.tolist()
    assert ours.lengths.tolist() == meant.lengths.tolist()
    assert ours.starts.tolist() == meant.starts.tolist()
    assert ours.rated_lengths.tolist() == meant.rated_lengths.tolist()
    np.testing.assert_allclose(ours.coef, meant.coef, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ours.factors, meant.factors, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "dim"), SHAPES)
@pytest.mark.parametrize(
    ("fill", "steps", "user_step"),
    [(Fill.AVERAGE, 0, UserStep.RATED), (Fill.AVERAGE, 0, UserStep.ALL), (Fill.PREDICTED, 6, UserStep.ALL)],
)
def test_it_means_what_its_twin_says(tiny, dtype, dim, fill, steps, user_step):
    cohort = tiny(dim=dim, dtype=dtype, seed=dim)
    chosen = {"fill": fill, "local_steps": steps, "user_step": user_step}
    assert_close(run(cohort, dim, **chosen), twin(cohort, **chosen), TOLERANCE[dtype])


@pytest.mark.parametrize(("steps", "squared"), [(0, False), (1, False), (2, False), (6, True), (15, True)])
def test_local_training_is_gradient_descent_on_either_side_of_the_choice(tiny, steps, squared):
    cohort = tiny(dim=20, most=100, clients=20, catalogue=130, seed=3)
    sizes = np.diff(cohort.offsets)
    assert {squaring_pays(20, 8, size, max(0, steps - 1)) for size in sizes if size} == {squared}
    chosen = {"fill": Fill.PREDICTED, "local_steps": steps}
    assert_close(run(cohort, 20, **chosen), twin(cohort, **chosen), 1e-11)


def test_long_histories_cross_the_strips_of_the_kernel(tiny):
    cohort = tiny(dim=5, most=400, clients=6, catalogue=900, seed=4)
    assert max(np.diff(cohort.offsets)) > 256
    chosen = {"fill": Fill.PREDICTED, "local_steps": 3}
    assert_close(run(cohort, 5, **chosen), twin(cohort, **chosen), 1e-11)


def test_one_client_by_hand():
    offsets, items, values = np.array([0, 1]), np.array([1], np.int32), np.array([4], np.float32)
    fillers = Segment(np.array([0]), np.array([1]), np.array([0], np.int32))
    table, factors = np.array([[3], [2]], np.float32), np.array([[1]], np.float32)
    step = client_step(
        offsets, items, values, fillers, factors, table, 1, rate=0.1, reg=0.5, fill=1, user_step=1
    )
    # e = 1*2-4 = -2; filler: 1*3-4 = -1; gradient = ((-2*2 + .5) + (-1*3 + .5)) / 2 = -3
    assert step.coef.tolist() == [-2.0, -1.0]
    assert step.factors[0, 0] == pytest.approx(1.3, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grouping_and_threads_change_no_bit(tiny, dtype):
    cohort = tiny(dim=20, dtype=dtype, clients=24, seed=7, catalogue=200, most=120)
    table = padded(cohort.table)
    chosen = RECIPE | {"fill": Fill.PREDICTED, "local_steps": 4, "user_step": UserStep.ALL}
    whole = client_step(
        cohort.offsets, cohort.items, cohort.values, cohort.fillers, cohort.factors, table, 20, **chosen
    )

    def part(bounds):
        low, high = bounds
        fillers = Segment(
            cohort.fillers.starts[low:high], cohort.fillers.lengths[low:high], cohort.fillers.ids
        )
        offsets = cohort.offsets[low : high + 1]
        return client_step(
            offsets, cohort.items, cohort.values, fillers, cohort.factors[low:high], table, 20, **chosen
        )

    for edges in (range(25), [0, 1, 5, 6, 17, 24]):
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(part, pairwise(edges)))
        assert b"".join(piece.coef.tobytes() for piece in parts) == whole.coef.tobytes()
        assert b"".join(piece.ids.tobytes() for piece in parts) == whole.ids.tobytes()
        assert b"".join(piece.factors.tobytes() for piece in parts) == whole.factors.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fillers_change_no_bit_of_what_rated_items_say(tiny, dtype):
    """FedRec++ is lossless only if fillers, and training for them, leave the rest of the client alone."""
    cohort = tiny(dim=20, dtype=dtype, clients=24, seed=8, catalogue=200, most=120)
    bare = client_step(
        cohort.offsets, cohort.items, cohort.values, None, cohort.factors, padded(cohort.table), 20, **RECIPE
    )
    rated = [bare.coef[at : at + size].tobytes() for at, size in zip(bare.starts, bare.lengths, strict=True)]
    for fill, steps in ((Fill.AVERAGE, 0), (Fill.PREDICTED, 0), (Fill.PREDICTED, 2), (Fill.PREDICTED, 15)):
        filled = run(cohort, 20, fill=fill, local_steps=steps)
        assert filled.factors.tobytes() == bare.factors.tobytes()
        ranges = zip(filled.starts, filled.rated_lengths, strict=True)
        assert [filled.coef[at : at + size].tobytes() for at, size in ranges] == rated


def test_inputs_are_left_alone_and_the_empty_client_stays_put(tiny):
    cohort = tiny(dim=5, clients=3, seed=1)
    offsets = np.concatenate([[0, 0], cohort.offsets[1:]])
    lengths = np.concatenate([[2], cohort.fillers.lengths])
    fillers = Segment(np.concatenate([[0], cohort.fillers.starts]), lengths, cohort.fillers.ids)
    factors = np.concatenate([np.full((1, 5), 0.7), cohort.factors])
    before = factors.copy()
    step = client_step(
        offsets,
        cohort.items,
        cohort.values,
        fillers,
        factors,
        cohort.table,
        5,
        rate=0.3,
        reg=0.1,
        fill=2,
        local_steps=2,
    )
    assert step.lengths[0] == 0
    assert (step.factors[0] == 0.7).all()
    assert np.isfinite(step.factors).all()
    assert (factors == before).all()
    assert (step.factors[1:] != before[1:]).any(axis=1).tolist() == (step.lengths[1:] > 0).tolist()


def test_no_clients_at_all():
    none = client_step(
        np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.float32), None, np.zeros((0, 5)),
        np.zeros((3, 5)), 5, rate=1.0, reg=0.0,
    )  # fmt: skip
    assert len(none.ids) == 0


STRAY = Segment(np.array([0]), np.array([1]), np.array([3], np.int32))
WIDE = {"factors": np.zeros((1, 130)), "table": np.zeros((3, 130)), "dim": 130}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"items": np.array([0, 9], np.int32)}, "outside the table"),
        ({"fillers": STRAY, "fill": Fill.AVERAGE}, "outside the table"),
        ({"fillers": STRAY, "fill": Fill.AVERAGE} | WIDE, "outside the table"),
        ({"items": np.array([0, 9], np.int32)} | WIDE, "outside the table"),
        ({"items": np.array([0, -1], np.int32)}, "outside the table"),
        ({"factors": np.zeros((1, 3), np.float32)}, "table in float64"),
        ({"factors": np.zeros((2, 3))}, "one vector of 3"),
        ({"offsets": np.array([0, 3])}, "do not belong together"),
        ({"fillers": Segment(np.array([0]), np.array([1]), np.array([1], np.int32))}, "fill=0"),
        ({"fillers": Segment(np.array([0]), np.array([2]), np.array([1], np.int32))}, "outside its ids"),
        ({"local_steps": -1}, "local_steps"),
    ],
)
def test_bad_input_never_reaches_the_kernel(change, says):
    given = {
        "offsets": np.array([0, 2]),
        "items": np.array([0, 2], np.int32),
        "values": np.ones(2, np.float32),
        "fillers": None,
        "factors": np.zeros((1, 3)),
        "table": np.zeros((3, 3)),
        "dim": 3,
    }
    with pytest.raises(TacitError, match=says):
        client_step(**(given | RECIPE | change))
