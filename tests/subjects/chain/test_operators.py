import numpy as np
import pytest

from ice_eval.subjects.chain import step_operators

STEPS = ["a.", "b.", "c.", "d."]
FILLS = ["w.", "x.", "y.", "z."]


@pytest.mark.parametrize(("name", "shown"), [("delete", ["b.", "d."]), ("replace", ["w.", "b.", "y.", "d."])])
def test_kept_steps_stay_in_their_order_and_the_others_go_or_are_replaced(name, shown):
    assert step_operators.get(name)().show(STEPS, (1, 3), FILLS) == shown
    assert step_operators.get(name)().show(STEPS, (0, 1, 2, 3), FILLS) == STEPS


def test_shuffles_are_all_other_orders_each_once():
    shuffle = step_operators.get("shuffle")()
    orders = shuffle.orders(3, 100, np.random.default_rng(0))
    assert len(set(orders)) == len(orders) == 5 and (0, 1, 2) not in orders
    assert len(set(shuffle.orders(12, 7, np.random.default_rng(0)))) == 7


def test_a_chain_is_cut_after_every_step_but_the_last():
    assert step_operators.get("truncate")().orders(4, 1, np.random.default_rng(0)) == [(0,), (0, 1), (0, 1, 2)]
