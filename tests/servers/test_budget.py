import asyncio

import pytest

from ice_eval.errors import ConfigError
from ice_eval.servers import Budget, Plan, Tokens
from ice_eval.servers.budget import Spending

PRICES = {"price_in": 2.0, "price_out": 10.0}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_requests": -1}, "--max-requests is -1; expected a number that is not negative"),
        ({"max_cost": float("nan"), **PRICES}, "--max-cost is nan"),
        ({"price_in": 1.0}, "only one of --price-in and --price-out"),
        ({"max_cost": 1.0}, "--max-cost needs --price-in and --price-out"),
    ],
)
def test_what_makes_no_budget_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        Budget(**wrong)


def test_prices_are_for_a_million_tokens():
    assert Budget(**PRICES).cost(Tokens(500_000, 100_000)) == pytest.approx(2.0)
    assert Budget().cost(Tokens(1, 1)) is None


def test_a_plan_in_words():
    plan = Plan(n_requests=1200, n_answered=200, tokens=Tokens(50_000, 512_000), cost=5.22, cost_so_far=1.5)
    assert str(plan) == (
        "1,200 requests, 200 of them answered already: 1,000 to ask\n"
        "at most about 50,000 tokens to read and 512,000 to write\n"
        "at most about 5.22, beside 1.50 spent so far"
    )


def test_what_does_not_fit_waits_for_what_is_in_the_air():
    async def scenario():
        most = Tokens(0, 600_000)  # 6 each; two do not fit into 10
        spending = Spending(Budget(max_cost=10.0, **PRICES), n_charged=0, billed=Tokens(0, 0))
        assert await spending.reserve(most) is None
        second = asyncio.create_task(spending.reserve(most))
        await asyncio.sleep(0)
        assert not second.done()
        spending.landed()
        spending.replace(1, most, n_charged=1, billed=Tokens(0, 100_000))  # it was cheaper
        assert await second is None
        spending.landed()
        spending.replace(1, most, n_charged=1, billed=most)
        assert await spending.reserve(most) == "10 (--max-cost)"

    asyncio.run(scenario())


def test_what_was_spent_before_counts():
    async def scenario():
        spending = Spending(Budget(max_requests=3), n_charged=2, billed=Tokens(0, 0))
        assert await spending.reserve(Tokens(1, 1)) is None
        spending.landed()
        assert await spending.reserve(Tokens(1, 1)) == "3 requests (--max-requests)"

    asyncio.run(scenario())
