"""What every stage promises, as checks that a new stage inherits in one line.

A package that offers a method or a stage of its own can run them on it: each raises ``AssertionError`` with
the broken promise.
"""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from tacit.account.claim import Adjacency, Claim, Observer
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.federation.sampling import Sampling
from tacit.protect.protection import Chain, Protection
from tacit.rng import SeededKeys
from tacit.round import Method
from tacit.runtime.simulate import Execution, World, new_world, one_round, set_up
from tacit.transport.transport import Messages, Transport
from tacit.types import RankOne, RoundFacts, Rows

FACTS = RoundFacts(3, "train", population=40, invited=10, answered=9)


def check_value(stage: Any) -> None:
    """A stage is a frozen value: a dataclass that survives a trip to another process and equals its copy."""
    assert is_dataclass(stage), f"{stage!r} is not a dataclass"
    parameters = type(stage).__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen, f"{stage!r} can be changed after it was made"
    assert pickle.loads(pickle.dumps(stage)) == stage, f"{stage!r} does not survive pickling"
    assert copy.deepcopy(stage) == stage, f"{stage!r} does not equal its copy"


def check_claimed(claim: Claim, told: Claim) -> None:
    """A stage may improve what is said of an observer; it never forgets one or changes the unit.

    Neighbours may become those of replace-one, where a stage hides what a person holds but not whether they
    take part; never the other way round.
    """
    assert isinstance(told, Claim), "event() returns a claim"
    assert told.unit is claim.unit, "the unit stays"
    assert told.adjacency in {claim.adjacency, Adjacency.REPLACE_ONE}, "adjacency stays, or is replace-one"
    assert set(told.events) == set(Observer), "every observer is still spoken of"


def check_protection(stage: Protection, update: Mapping[str, Any], cohort: Any) -> None:
    """Pure, free of grouping, and it says what it is worth; sparse rows it may refuse in one clear line."""
    check_value(stage)
    chain, keys = Chain((stage,)), SeededKeys(5)
    states = chain.init()
    before = pickle.dumps(update)
    check_claimed(Claim.unbounded("raw"), stage.event(Claim.unbounded("raw"), states[0], FACTS))
    try:
        together = chain.on_client(update, states, cohort, keys, "train", 1)
    except TacitError:
        assert any(isinstance(array, Rows) for array in update.values()), f"{stage!r} refuses whole arrays"
        return
    assert pickle.dumps(update) == before, f"{stage!r} changed what it was given"
    for client in range(len(cohort)):
        alone = chain.on_client(_one(update, client), states, _only(cohort, client), keys, "train", 1)
        _assert_same(together, alone, client, stage)


def _one(update: Mapping[str, Any], client: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, array in update.items():
        if isinstance(array, Rows):
            values = array.values
            if isinstance(values, RankOne):
                values = replace(values, factors=values.factors[client : client + 1])
            mine = slice(client, client + 1)
            found[name] = replace(
                array, starts=array.starts[mine], lengths=array.lengths[mine], values=values
            )
        else:
            found[name] = array[client : client + 1]
    return found


def _only(cohort: Any, client: int) -> Any:
    mine = slice(int(cohort.offsets[client]), int(cohort.offsets[client + 1]))
    offsets = cohort.offsets[client : client + 2] - cohort.offsets[client]
    return replace(
        cohort,
        users=cohort.users[client : client + 1],
        offsets=offsets,
        items=cohort.items[mine],
        values=cohort.values[mine],
    )


def _numbers(array: Any, client: int) -> tuple[Any, Any]:
    from tacit import codec

    if not isinstance(array, Rows):
        return None, array[client]
    message = codec.decode(codec.encode({"rows": array}, 0, client))
    rows = message.arrays["rows"]
    assert isinstance(rows, Rows)
    return rows.ids, rows.values


def _assert_same(together: Mapping[str, Any], alone: Mapping[str, Any], client: int, stage: Any) -> None:
    for name, array in together.items():
        (ids, values), (own_ids, own_values) = _numbers(array, client), _numbers(alone[name], 0)
        assert ids is None or np.array_equal(ids, own_ids), f"{stage!r}: ids depend on who else is there"
        close = np.allclose(values, own_values, rtol=1e-5, atol=1e-7)
        assert close, f"{stage!r}: values depend on who else is there"


def check_transport(transport: Transport, messages: Messages) -> None:
    """Everything that is taken in is handed on once or summed, and the claim is told."""
    check_value(transport)
    keys = SeededKeys(1)
    session = transport.server_session(replace(FACTS, invited=len(messages.users)), keys)
    session.carried(messages)
    delivered = [*session.receive(transport.sent(messages, "train", 0, keys)), *session.close()]
    if transport.delivers.value == "reports":
        users = np.concatenate([part.users for part in delivered])
        assert sorted(users.tolist()) == sorted(messages.users.tolist()), "each message is handed on once"
    check_claimed(Claim.unbounded("raw"), transport.event(Claim.unbounded("raw"), FACTS))


def check_sampling(sampling: Sampling) -> None:
    """Draws rise, repeat nobody, come from whom they are given, and depend on seed and round only."""
    check_value(sampling)
    people = np.arange(5, 45, dtype=np.int32)
    for round in range(5):
        drawn = sampling.draw(people, round, SeededKeys(2))
        assert np.all(np.diff(drawn) > 0), "a draw rises and repeats nobody"
        assert np.isin(drawn, people).all(), "a draw asks only whom it may"
        assert np.array_equal(drawn, sampling.draw(people, round, SeededKeys(2))), "a draw can be repeated"


def trained(method: Method, federation: Federation, execution: Execution, rounds: int) -> World:
    """A few rounds, set-up included."""
    world = new_world(method, federation, SeededKeys(4), execution)
    set_up(world)
    for _ in range(rounds):
        one_round(world)
    return world


def check_method(method: Method, federation: Federation, rounds: int = 2) -> None:
    """Runs, names who sees what, counts bytes, and does not depend on grouping or threads."""
    pickle.loads(pickle.dumps(method))
    assert method.paper.title, "a method names its paper"
    assert method.rounds >= 1, "a method has a number of rounds"
    for exchange in (*method.setup, *method.exchanges):
        check_value(exchange.aggregator)
        check_value(exchange.local)
        check_sampling(exchange.sampling)
        for stage in exchange.protections.stages:
            check_value(stage)
    whole = new_world(method, federation, SeededKeys(4), Execution())
    for record in [*set_up(whole), *(record for _ in range(rounds) for record in one_round(whole))]:
        assert set(record.claim.events) == set(Observer), "every observer is spoken of"
        assert record.facts.answered <= record.facts.invited, "nobody answers unasked"
        assert record.traffic.total >= 0, "bytes are counted"
    chunked = trained(method, federation, Execution(threads=2, pairs_per_chunk=17), rounds)
    for name, array in whole.server.shared.items():
        close = np.allclose(array, chunked.server.shared[name], rtol=1e-4, atol=1e-5)
        assert close, f"{method.name}: {name!r} depends on how clients are grouped"
    for name, array in whole.private.items():
        close = np.allclose(array, chunked.private[name], rtol=1e-4, atol=1e-5)
        assert close, f"{method.name}: private {name!r} depends on how clients are grouped"
