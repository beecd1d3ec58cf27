import asyncio
import random
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ice_eval.errors import ConfigError
from ice_eval.servers import Budget, RequestPlan, TokenUsage
from ice_eval.servers.store import Limiter, Spending, backoff_s, retry_after_s

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
    assert Budget(**PRICES).cost(TokenUsage(500_000, 100_000)) == pytest.approx(2.0)
    assert Budget().cost(TokenUsage(1, 1)) is None


def test_a_plan_in_words():
    plan = RequestPlan(n_requests=1200, n_answered=200, tokens=TokenUsage(50_000, 512_000), cost=5.22, cost_so_far=1.5)
    assert str(plan) == (
        "1,200 requests, 200 of them answered already: 1,000 to ask\n"
        "at most about 50,000 tokens to read and 512,000 to write\n"
        "at most about 5.22, beside 1.50 spent so far"
    )


def test_what_does_not_fit_waits_for_what_is_in_the_air():
    async def scenario():
        most = TokenUsage(0, 600_000)  # 6 each; two do not fit into 10
        spending = Spending(Budget(max_cost=10.0, **PRICES), n_charged=0, billed=TokenUsage(0, 0))
        assert await spending.reserve(most) is None
        second = asyncio.create_task(spending.reserve(most))
        await asyncio.sleep(0)
        assert not second.done()
        spending.landed()
        spending.replace(1, most, n_charged=1, billed=TokenUsage(0, 100_000))  # it was cheaper
        assert await second is None
        spending.landed()
        spending.replace(1, most, n_charged=1, billed=most)
        assert await spending.reserve(most) == "10 (--max-cost)"

    asyncio.run(scenario())


def test_what_was_spent_before_counts():
    async def scenario():
        spending = Spending(Budget(max_requests=3), n_charged=2, billed=TokenUsage(0, 0))
        assert await spending.reserve(TokenUsage(1, 1)) is None
        spending.landed()
        assert await spending.reserve(TokenUsage(1, 1)) == "3 requests (--max-requests)"

    asyncio.run(scenario())


def test_refusals_of_one_round_halve_once():
    async def scenario():
        limiter = Limiter(16)
        async with limiter.slot() as first, limiter.slot() as second:
            limiter.slow_down(first)
            limiter.slow_down(second)
        assert limiter.limit == 8
        async with limiter.slot() as third:
            limiter.slow_down(third)
        assert limiter.limit == 4

    asyncio.run(scenario())


def test_it_never_stops_altogether_and_never_exceeds_its_bound():
    async def scenario():
        limiter = Limiter(3)
        for _ in range(5):
            async with limiter.slot() as turn:
                limiter.slow_down(turn)
        assert limiter.limit == 1
        for _ in range(20):
            limiter.speed_up()
        assert limiter.limit == 3

    asyncio.run(scenario())


def test_it_grows_by_one_per_round_of_answers():
    limiter = Limiter(100)
    limiter.slow_down(0)
    limits = []
    for _ in range(106):  # two rounds: about 50 answers, then about 51
        limiter.speed_up()
        limits.append(limiter.limit)
    assert limits[40] == 50
    assert limits[-1] == 52


def test_no_more_are_under_way_than_allowed():
    async def scenario():
        limiter, under_way, most = Limiter(3), 0, 0

        async def work():
            nonlocal under_way, most
            async with limiter.slot():
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0.001)
                under_way -= 1

        await asyncio.gather(*(work() for _ in range(12)))
        assert most == 3

    asyncio.run(scenario())


def test_a_pause_holds_for_everybody():
    async def scenario():
        limiter = Limiter(4)
        limiter.slow_down(0, pause_s=0.1)
        began = time.monotonic()

        async def work():
            async with limiter.slot():
                return time.monotonic() - began

        assert min(await asyncio.gather(*(work() for _ in range(4)))) >= 0.1

    asyncio.run(scenario())


def test_nobody_waits_when_nothing_more_is_asked():
    async def scenario():
        limiter = Limiter(1)

        async def work():
            async with limiter.slot():
                pass

        async with limiter.slot() as turn:
            full = asyncio.create_task(work())
            await asyncio.sleep(0)
            limiter.slow_down(turn, pause_s=100)
            paused = asyncio.create_task(work())
            await asyncio.sleep(0)
            assert not full.done() and not paused.done()
            limiter.stop()
            await asyncio.wait_for(asyncio.gather(full, paused), 10)

    asyncio.run(scenario())


def test_pauses_double_up_to_a_bound_with_chance_in_the_latter_half():
    rng = random.Random(0)
    for attempt, whole in ((1, 1.0), (2, 2.0), (5, 16.0), (9, 60.0), (2000, 60.0)):
        pauses = [backoff_s(attempt, first_s=1.0, most_s=60.0, rng=rng) for _ in range(50)]
        assert whole / 2 <= min(pauses) < 0.6 * whole
        assert 0.9 * whole < max(pauses) <= whole


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
    ],
)
def test_what_a_server_asks_to_wait(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_a_date_to_wait_for():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 97 < retry_after_s({"retry-after": date}) <= 100
