"""Changes of JSON values, bytes and tables, as a careless hand or an attacker would make them."""

import copy
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ODD = [
    0, -1, 3, 2**31, 2**63, 10**12, 10**30, 1.5, -0.1, 1e308, float("nan"), float("inf"), "", "x", "/etc/passwd",
    "\x1b[2J", None, True, [], {}, [1], ["a", "b"], {"a": 1}, [[]] * 3,
]  # fmt: skip
CONTENTS = [b"", b"[]", b"null", b"3", b'"x"', b"{}", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\0" * 100]


def changed_json(raw, rng):
    """Change, remove or add one value anywhere in a JSON file."""
    content = json.loads(raw)
    holder, key = _place(content, rng)
    kind = rng.integers(10)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder["unheard-of"] = _odd(rng)
    else:
        holder[key] = _odd(rng)
    return json.dumps(content).encode()


def _odd(rng):
    return copy.deepcopy(ODD[rng.integers(len(ODD))])


def _place(content, rng):
    holder, key = content, None
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[rng.integers(min(len(keys), 40))]
        if not isinstance(holder[key], dict | list) or not holder[key] or rng.random() < 0.3:
            return holder, key
        holder = holder[key]


def changed_bytes(raw, rng, *, head=4000):
    """Cut a file, replace it, or flip some of its first bytes."""
    kind = rng.integers(4)
    if kind == 0:
        return raw[: rng.integers(len(raw))]
    if kind == 1:
        return CONTENTS[rng.integers(len(CONTENTS))]
    content = bytearray(raw)
    for place in rng.integers(min(len(raw), head), size=rng.choice([1, 3, 20])):
        content[place] = rng.integers(256)
    return bytes(content)


def changed_table(raw, rng):
    """Drop, rename, repeat or replace a column of a parquet file, or move its rows."""
    table = pq.read_table(pa.BufferReader(raw))
    name, rows = table.column_names[rng.integers(table.num_columns)], len(table)
    place = table.column_names.index(name)
    columns = [
        pa.nulls(rows), pa.nulls(rows, pa.string()),
        *(pa.array([each] * rows) for each in (7, -5, 2**62, 0.5, "q", True)),
        pa.array([float("nan")] * rows), pa.array([b"\xff"] * rows), pa.array([{"a": 1}] * rows),
        *(pa.array([each] * rows) for each in ([1, 2], [10**6], [-3], ["a"], [None, 1])),
        pa.array([[]] * rows, pa.list_(pa.int64())), pa.array([[0.1] * (1 + row % 2) for row in range(rows)]),
    ]  # fmt: skip
    tables = [
        lambda: table.drop_columns([name]),
        lambda: table.rename_columns(["other" if each == name else each for each in table.column_names]),
        lambda: table.append_column(name, table.column(name)),
        lambda: table.slice(0, rng.integers(rows)),
        lambda: table.take(rng.permutation(rows)),
        lambda: pa.concat_tables([table, table]),
        lambda: table.replace_schema_metadata({b"ice_cost": CONTENTS[rng.integers(len(CONTENTS))]}),
    ]
    new = columns[rng.integers(len(columns))]
    chosen = tables[rng.integers(len(tables))]() if rng.random() < 0.3 else table.set_column(place, name, new)
    sink = io.BytesIO()
    pq.write_table(chosen, sink)
    return sink.getvalue()


def generator(seed, *, fixed):
    """Return a generator: always the same one, or another one every time."""
    return np.random.default_rng(seed if fixed else None)
