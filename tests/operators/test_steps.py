import numpy as np
import pytest

from ice_eval.operators import operators
from ice_eval.records import Encoded, Span

STEPS = np.array([10, 11, 12, 13])
FILLS = np.array([20, 21, 22, 23])
CHAIN = Encoded(
    "p", np.array([1, *STEPS]), np.zeros(5, dtype=int), np.arange(-1, 4), (Span("chain", 0, 1),) * 4, ("a.",) * 4
)


@pytest.mark.parametrize(("name", "shown"), [("delete", [1, 11, 13]), ("replace", [1, 20, 11, 22, 13])])
def test_kept_steps_stay_in_their_order_and_the_others_go_or_are_replaced(name, shown):
    keep = np.array([[False, True, False, True], [True] * 4])
    inputs = operators.get(name)().build(CHAIN, keep, fills=FILLS)
    assert inputs.row(0).tolist() == shown
    assert inputs.row(1).tolist() == [1, *STEPS]


def test_shuffles_are_all_other_orders_each_once():
    shuffle = operators.get("shuffle")()
    orders = shuffle.orders(3, 100, np.random.default_rng(0))
    assert len(set(orders)) == len(orders) == 5 and (0, 1, 2) not in orders
    assert len(set(shuffle.orders(12, 7, np.random.default_rng(0)))) == 7


def test_a_chain_is_cut_after_every_step_but_the_last():
    assert operators.get("truncate")().orders(4, 1, np.random.default_rng(0)) == [(0,), (0, 1), (0, 1, 2)]
