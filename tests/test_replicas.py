"""Replicas of a model that are not alike, and a model that can have none."""

from dataclasses import replace

import pytest
from tests.small_runs import Waves, task_of, texts

from ice_eval.attributions import method_of
from ice_eval.errors import ConfigError, ModelError
from ice_eval.executors import executor_named
from ice_eval.models import Served
from ice_eval.pipeline import TextSubject, load_replicas
from ice_eval.pipeline.replicas import Replica, RunSpec
from ice_eval.settings import RunConfig


class Plain(Waves):
    """Cannot score the fast way, and says so."""

    def check(self, batch, labels, *, prefix):
        return ["waves: padded."]


@pytest.fixture
def spec():
    task = task_of(texts(4))
    return RunSpec(
        config=RunConfig(attributions=("random",), operators=("delete",), n=4),
        subject=TextSubject(task),
        examples=task.examples(),
        attributions={"random": method_of("random")},
        budget=100,
        part_size=16,
        lowered={},
        threads=None,
        targets=None,
        weights=Waves().fingerprint,
    )


def test_a_replica_with_other_weights_is_refused(spec):
    assert Replica(Waves()).checked(spec) == ()
    with pytest.raises(ModelError, match="a worker has other weights of 'waves' than the run; give all"):
        Replica(Waves()).checked(replace(spec, weights="others"))


def test_a_replica_that_computes_in_another_way_is_refused(spec):
    assert Replica(Plain()).checked(spec) == ("waves: padded.",)
    assert Replica(Plain()).checked(replace(spec, checked=("waves: padded.",))) == ("waves: padded.",)
    with pytest.raises(ModelError, match="in different ways .one says: waves: padded.; another: nothing.; use"):
        Replica(Plain()).checked(replace(spec, checked=()))


def test_a_replica_prepares_an_order_once(spec):
    replica = Replica(Waves())
    assert replica.engine(spec) is replica.engine(replace(spec, checked=()))
    assert replica.engine(spec) is not replica.engine(replace(spec, key="another"))


def test_a_model_behind_a_server_is_not_spread():
    served = Served("mine", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="'mine' is served, so there is nothing to distribute; use --exec"):
        load_replicas(served, executor_named("ray"))
