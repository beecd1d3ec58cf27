"""Replicas of a model that are not alike, and a model that can have none."""

from dataclasses import replace

import pytest
from tests.small_runs import Waves, task_of, texts

from ice_eval.attributions import method_of
from ice_eval.errors import ConfigError, ModelError
from ice_eval.executors import executor_named
from ice_eval.models import Served
from ice_eval.pipeline import load_replicas
from ice_eval.pipeline.replica import Order, Replica
from ice_eval.settings import RunConfig


class Plain(Waves):
    """Cannot score the fast way, and says so."""

    def check(self, batch, labels, *, prefix):
        return ["waves: padded."]


@pytest.fixture
def order():
    task = task_of(texts(4))
    return Order(
        config=RunConfig(attributions=("random",), operators=("delete",), n=4),
        task=task,
        examples=task.examples(),
        attributions={"random": method_of("random")},
        budget=100,
        part_size=16,
        lowered={},
        threads=None,
        targets=None,
        weights=Waves().fingerprint,
    )


def test_a_replica_with_other_weights_is_refused(order):
    assert Replica(Waves()).checked(order) == ()
    with pytest.raises(ModelError, match="a worker has other weights of 'waves' than the run; give all"):
        Replica(Waves()).checked(replace(order, weights="others"))


def test_a_replica_that_computes_in_another_way_is_refused(order):
    assert Replica(Plain()).checked(order) == ("waves: padded.",)
    assert Replica(Plain()).checked(replace(order, checked=("waves: padded.",))) == ("waves: padded.",)
    with pytest.raises(ModelError, match="in different ways .one says: waves: padded.; another: nothing.; use"):
        Replica(Plain()).checked(replace(order, checked=()))


def test_a_replica_prepares_an_order_once(order):
    replica = Replica(Waves())
    assert replica.engine(order) is replica.engine(replace(order, checked=()))
    assert replica.engine(order) is not replica.engine(replace(order, key="another"))


def test_a_model_behind_a_server_is_not_spread():
    served = Served("mine", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="'mine' computes behind a server, so there is nothing to spread; use --exec"):
        load_replicas(served, executor_named("ray"))
