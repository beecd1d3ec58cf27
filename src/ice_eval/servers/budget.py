"""What a run may cost, what it will cost at most, and what it has cost."""

import asyncio
from dataclasses import dataclass

from ice_eval.errors import ConfigError
from ice_eval.servers.exchange import NO_TOKENS, Tokens

_MILLION = 1e6


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits that hold for everything in a `responses.jsonl`, also over several runs.

    Raises:
        ConfigError: A limit or price is negative, or a price is missing.
    """

    max_requests: int | None = None
    """Requests that are charged, answered or lost on the way."""
    max_cost: float | None = None
    """In the currency of the prices."""
    price_in: float | None = None
    """For a million tokens of prompt."""
    price_out: float | None = None
    """For a million tokens of answer."""

    def __post_init__(self) -> None:
        for name in ("max_requests", "max_cost", "price_in", "price_out"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ConfigError(f"{_flag(name)} is {value}; expected a number that is not negative.")
        if (self.price_in is None) != (self.price_out is None):
            raise ConfigError("only one of --price-in and --price-out is given; give both, in the same currency.")
        if self.max_cost is not None and self.price_in is None:
            raise ConfigError("--max-cost needs --price-in and --price-out, the prices of a million tokens.")

    def cost(self, tokens: Tokens) -> float | None:
        """What the tokens cost; None without prices."""
        if self.price_in is None or self.price_out is None:
            return None
        return (tokens.prompt * self.price_in + tokens.completion * self.price_out) / _MILLION

    def exceeded(self, n_requests: int, tokens: Tokens) -> str | None:
        """The limit that so many requests and tokens would break, in words; None if they break none."""
        if self.max_requests is not None and n_requests > self.max_requests:
            return f"{self.max_requests} requests (--max-requests)"
        cost = self.cost(tokens)
        if cost is not None and self.max_cost is not None and cost > self.max_cost:
            return f"{self.max_cost:g} (--max-cost)"
        return None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What would be asked, and what it would cost at most."""

    n_requests: int
    """Different requests."""
    n_answered: int
    """Those that are answered already and cost nothing."""
    tokens: Tokens
    """At most, of those that are still to be asked."""
    cost: float | None
    """Of these tokens; None without prices."""
    cost_so_far: float | None

    @property
    def n_to_ask(self) -> int:
        return self.n_requests - self.n_answered

    def __str__(self) -> str:
        prompt, completion = self.tokens
        lines = [
            f"{self.n_requests:,} requests, {self.n_answered:,} of them answered already: {self.n_to_ask:,} to ask",
            f"at most about {prompt:,} tokens to read and {completion:,} to write",
        ]
        if self.cost is not None and self.cost_so_far is not None:
            lines.append(f"at most about {self.cost:.2f}, beside {self.cost_so_far:.2f} spent so far")
        return "\n".join(lines)


class Spending:
    """Keeps a run within its budget while requests are under way whose price is not known yet.

    A request reserves the most that it may cost. Where that does not fit, it waits for what is in the air, which mostly
    turns out cheaper; only when nothing is in the air any more is the limit reached.
    """

    def __init__(self, budget: Budget, *, n_charged: int, billed: Tokens) -> None:
        self._budget = budget
        self._n, self._tokens = n_charged, billed  # charged and reserved together
        self._in_the_air = 0
        self._changed = asyncio.Event()

    async def reserve(self, most: Tokens) -> str | None:
        """Set aside what one attempt may cost; the limit in words, and nothing set aside, where it is reached."""
        while limit := self._budget.exceeded(self._n + 1, self._tokens.plus(most)):
            if not self._in_the_air:
                return limit
            self._changed.clear()
            await self._changed.wait()
        self._n += 1
        self._tokens = self._tokens.plus(most)
        self._in_the_air += 1
        return None

    def landed(self) -> None:
        """An attempt has ended, one way or another."""
        self._in_the_air -= 1
        self._changed.set()

    def replace(self, n_reserved: int, most: Tokens, *, n_charged: int = 0, billed: Tokens = NO_TOKENS) -> None:
        """Put what was charged in the place of what was reserved."""
        self._n += n_charged - n_reserved
        self._tokens = self._tokens.plus(most.times(-n_reserved)).plus(billed)
        self._changed.set()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
