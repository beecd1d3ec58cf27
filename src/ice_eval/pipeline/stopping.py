"""Sequential tests: which streams of random sets must go on, because some attribution is not decided yet."""

from collections.abc import Iterator, Sequence

from ice_eval.pipeline.rows import ExampleRows, Stream
from ice_eval.records import DIRECTIONS, NOT_SET
from ice_eval.results.comparisons import Reading, ScoredExamples
from ice_eval.results.examples import Examples, InputRow
from ice_eval.results.ledger import Ledger
from ice_eval.results.summary import configurations


def undecided(
    inputs: Sequence[InputRow], wanted: Sequence[ExampleRows], scored: Ledger
) -> list[tuple[ExampleRows, set[Stream]]]:
    """Return the examples that go on, each with the streams that have a further set and are asked for one.

    Every attribution has a stopping time of its own under every operator; the average over operators looks at the sets
    that all of them have scored, so its shortest streams grow.

    Args:
        inputs: The examples of the part.
        wanted: Those whose tests are not all decided.
        scored: All rows of the part that have been scored.
    """
    engine = wanted[0].engine
    config = engine.settings(model=engine.model.name)
    names, examples = scored.names, Examples.of(inputs)
    tests = ScoredExamples(examples, scored, Reading.of(config))
    growing: dict[int, set[Stream]] = {}
    for cell, operators in configurations(config):
        decided = tests.decided(cell, operators)
        sizes = examples.sizes(cell.attribution, cell.k, magnitude=cell.attribution in engine.by_magnitude)
        own, null = names.attributions.index(cell.attribution), names.nulls.index(cell.null)
        direction, codes = DIRECTIONS.index(cell.direction), [names.operators.index(name) for name in operators]
        for rows in wanted:
            size = int(sizes[rows.place])
            if not size or decided[rows.place]:
                continue
            streams = [Stream(size, null, whose, code, direction) for code in codes for whose in (NOT_SET, own)]
            shortest = list(_shortest(rows, streams))
            if not any(rows.at_end(stream) for stream in shortest):
                growing.setdefault(rows.place, set()).update(shortest)
    return [(rows, growing[rows.place]) for rows in wanted if growing.get(rows.place)]


def _shortest(rows: ExampleRows, streams: Sequence[Stream]) -> Iterator[Stream]:
    known = [stream for stream in streams if rows.has(stream)]
    reach = min(map(rows.reach, known), default=0)
    yield from (stream for stream in known if rows.reach(stream) == reach)
