"""Every stage and method that can be named keeps the promises of its kind."""

import inspect

import numpy as np
import pytest

import tacit.protect
import tacit.transport
from tacit import codec
from tacit.config import catalogue
from tacit.errors import TacitError
from tacit.federation.sampling import Everyone, FixedSize
from tacit.protect.protection import Chain
from tacit.settings import settings_of
from tacit.testing.contracts import check_method, check_protection, check_sampling, check_transport
from tacit.testing.tiny import tiny_federation
from tacit.transport.transport import Messages
from tacit.types import RankOne, Rows


def named(room, table):
    found = {}
    for module in catalogue._modules(room):
        found.update(getattr(module, table, {}))
    return found


SMALL = {"clients": 5, "n_min": 2}  # for fourteen people

PROTECTIONS, TRANSPORTS = named(tacit.protect, "PROTECTIONS"), named(tacit.transport, "TRANSPORTS")


def able_to_stand_alone(name):
    """A stage with its defaults; none where it refuses to work without another (noise without a bound)."""
    try:
        stage = PROTECTIONS[name]()
        Chain((stage,))
    except TacitError:
        return None
    return stage


def cohort_and_update(kind):
    federation = tiny_federation(6, 9, seed=3)
    cohort = federation.cohort(federation.people)
    generator = np.random.default_rng(0)
    lengths = np.diff(cohort.offsets)
    coef = generator.standard_normal(len(cohort.items)).astype("f4")
    factors = generator.standard_normal((len(cohort), 4)).astype("f4")
    table = generator.standard_normal((9, 4)).astype("f4")
    known = RankOne(coef, factors, table, 0.1)
    rows = Rows(cohort.offsets[:-1], lengths, cohort.items, known)
    if kind == "dense":
        return cohort, {"weights": generator.standard_normal((len(cohort), 5)).astype("f4")}
    if kind == "rows":
        values = generator.standard_normal((len(cohort.items), 4)).astype("f4")
        return cohort, {"items": Rows(cohort.offsets[:-1], lengths, cohort.items, values)}
    return cohort, {"items": rows}


@pytest.mark.parametrize("kind", ["dense", "rows", "rank-one"])
@pytest.mark.parametrize("name", sorted(PROTECTIONS))
def test_protections(name, kind):
    cohort, update = cohort_and_update(kind)
    stage = able_to_stand_alone(name)
    if stage is not None:
        check_protection(stage, update, cohort)


@pytest.mark.parametrize("name", sorted(name for name in TRANSPORTS if name in {"direct"}))
def test_transports(name):
    cohort, update = cohort_and_update("rows")
    check_transport(TRANSPORTS[name](), Messages(cohort.users, update, codec.nbytes(update, len(cohort))))


@pytest.mark.parametrize("sampling", [Everyone(), FixedSize(7), FixedSize(0.3)])
def test_samplings(sampling):
    check_sampling(sampling)


@pytest.mark.parametrize("name", sorted(catalogue.methods()))
def test_methods(name):
    maker = catalogue.methods()[name]
    small = {setting: value for setting, value in SMALL.items() if setting in settings_of(maker)}
    check_method(maker(**small), tiny_federation(14, 20, seed=1))


@pytest.mark.parametrize("name", sorted(catalogue.methods()))
def test_methods_are_documented(name):
    maker = catalogue.methods()[name]
    text = inspect.getdoc(maker) or ""
    assert ">>>" in text, f"{name} has no example"
    assert text.splitlines()[0].endswith("."), f"{name} has no summary line"
    module = inspect.getmodule(inspect.unwrap(maker)).__doc__ or ""
    assert "eviation" in module or "differ" in module, f"{name}: its file does not say how it deviates"
    assert "leaves" in module, f"{name}: its file does not say what leaves the device"


@pytest.mark.parametrize("name", sorted({**PROTECTIONS, **TRANSPORTS}))
def test_stages_are_documented(name):
    maker = {**PROTECTIONS, **TRANSPORTS}[name]
    assert ">>>" in (inspect.getdoc(maker) or ""), f"{name} has no example"
    assert settings_of(maker) is not None
