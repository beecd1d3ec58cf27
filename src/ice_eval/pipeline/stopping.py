"""Sequential tests: which streams of random sets must go on, because some attribution is not decided yet."""

from collections.abc import Iterator, Sequence

from ice_eval.pipeline.rows import ExampleRows, Stream
from ice_eval.results import LedgerRow
from ice_eval.results.comparisons import ExampleLedger
from ice_eval.results.schema import InputRow, null_kind
from ice_eval.results.summary import configurations


def undecided(example: InputRow, rows: ExampleRows, scored: Sequence[LedgerRow]) -> set[Stream]:
    """The streams of one example that have a further set and are asked for one.

    Every attribution has a stopping time of its own under every operator; the average over operators looks at the sets
    that all of them have scored, so its shortest streams grow.
    """
    config = rows.engine.config
    plain = {**vars(config), **rows.engine.reading}
    ledger = ExampleLedger.of(example, scored, plain)
    found = set[Stream]()
    for cell, operators in configurations(plain):
        kind = null_kind(cell.attribution, cell.null, config.choices)
        size = ledger.size(cell.attribution, cell.k)
        if isinstance(size, str):
            continue
        streams = [Stream(size, kind, operator, cell.direction) for operator in operators]
        shortest = list(_shortest(rows, streams))
        ended = any(rows.at_end(stream) for stream in shortest)
        if not ended and not ledger.decided(cell, operators, config.m):
            found |= set(shortest)
    return found


def _shortest(rows: ExampleRows, streams: Sequence[Stream]) -> Iterator[Stream]:
    known = [stream for stream in streams if rows.has(stream)]
    reach = min(map(rows.reach, known), default=0)
    yield from (stream for stream in known if rows.reach(stream) == reach)
