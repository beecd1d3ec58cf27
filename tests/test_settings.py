"""Settings are declared once: what is derived from them agrees with them."""

import inspect
from collections.abc import Sequence
from dataclasses import fields
from typing import get_args, get_origin

import pytest

import ice_eval
from ice_eval.errors import ConfigError
from ice_eval.models import LoadSettings, Served
from ice_eval.results import RunSettings
from ice_eval.results.records import ChainSettings
from ice_eval.settings import (
    ADDABLE,
    BATCHING,
    CHAIN,
    CHAT,
    CONTEXT,
    EXECUTION,
    LOADING,
    REQUIRED,
    RUN,
    SERVING,
    SETTINGS,
    ChainFields,
    RunConfig,
    chain_fields,
    names_of,
    refuse_others,
    run_config,
)

OF_PYTHON = (*CHAT, *RUN, *CONTEXT, *CHAIN, *LOADING, *BATCHING, *EXECUTION)
PLAIN = {"text": str, "count": int, "number": float, "flag": bool}
RICHER = {"attributions", "device_map", "max_memory", "responses", "temperature"}
"""Arguments that take more in Python than a name or several."""


@pytest.mark.parametrize("function", [ice_eval.evaluate, ice_eval.plan])
@pytest.mark.parametrize("declared", OF_PYTHON, ids=lambda each: each.name)
def test_every_setting_is_an_argument_with_its_default_and_type(function, declared):
    argument = inspect.signature(function).parameters[declared.name]
    assert argument.kind is inspect.Parameter.KEYWORD_ONLY
    is_only = isinstance(declared.default, tuple) and not isinstance(argument.default, tuple)
    assert ((argument.default,) if is_only else argument.default) == declared.default
    if declared.name not in RICHER:
        assert argument.annotation == expected_type(declared)


def expected_type(declared):
    """The type of an argument: a list may be given by its only element, and None where the default depends."""
    types = {each.name: each.type for each in (*fields(RunConfig), *fields(ChainFields))}
    found = types.get(declared.name, PLAIN.get(declared.kind))
    if get_origin(found) is tuple:
        [element, _] = get_args(found)
        found = element | Sequence[element]
    return found | None if declared.default is None else found


@pytest.mark.parametrize("function", [ice_eval.evaluate, ice_eval.plan])
def test_no_argument_is_undeclared(function):
    own = {"model", "task", "data", "out", "default_out", "reporter", "width", "detect", "pilot", "judge", "unknown"}
    assert set(inspect.signature(function).parameters) <= {*names_of(OF_PYTHON), *own}


def test_what_loads_and_what_serves_takes_the_settings_that_are_declared():
    assert {each.name: each.default for each in fields(LoadSettings)} == {each.name: each.default for each in LOADING}
    assert {"timeout_s" if name == "timeout" else name for name in names_of(SERVING)} <= {
        each.name for each in fields(Served)
    }


def test_the_manifest_holds_every_setting_of_a_run():
    assert set(names_of(RUN)) < {each.name for each in fields(RunSettings)}
    assert {each.name for each in fields(ChainFields)} < {each.name for each in fields(ChainSettings)}


def test_chains_have_defaults_of_their_own():
    found = run_config({"seed": 3, "k": [0.5]}, "chain")
    assert (found.unit, found.n, found.m, found.seed, found.k) == ("step", 100, 20, 3, (0.5,))
    assert found.operators == ("delete",) and found.directions == ("sufficiency", "necessity")
    assert "self-report" in found.attributions
    assert run_config({"attributions": ()}, "chain").attributions == ()
    assert chain_fields({}) == {each.name: each.metadata["value"] for each in fields(ChainFields)}
    assert chain_fields({"temperature": "server"})["temperature"] is None
    assert chain_fields({"temperature": None})["temperature"] is None
    refuse_others({"temperature": "0"}, "text", "mine")


@pytest.mark.parametrize("subject", ["text", "chain"])
def test_settings_of_another_subject_are_refused_unless_they_have_their_default(subject):
    refuse_others({name: each.default for name, each in SETTINGS.items()}, subject, "mine")
    for name, each in SETTINGS.items():
        if subject in each.subjects:
            refuse_others({name: object()}, subject, "mine")
        else:
            with pytest.raises(ConfigError, match=f"{each.option} is about .*, and the task 'mine' is about"):
                refuse_others({name: ("other",)}, subject, "mine")


def test_names_and_options_are_unique():
    assert len({each.option for each in SETTINGS.values()}) == len(SETTINGS)
    assert [name for name, each in SETTINGS.items() if each.default is REQUIRED] == ["model"]
    assert ADDABLE == ("attributions", "operators", "directions", "k", "nulls")


def test_without_anything_given_all_is_default():
    assert run_config({}) == run_config(dict.fromkeys(names_of(RUN))) == RunConfig()


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ({"protocol": "released"}, {"scope": "prompt", "fills": "own", "sign": "abs", "m": 50}),
        ({"protocol": "released", "sign": "support"}, {"scope": "prompt", "sign": "support"}),
        ({"adaptive": "examples"}, {"m": 499}),
        ({"adaptive": "dataset"}, {"m": 50}),
        ({"operators": "delete", "k": "dynamic"}, {"operators": ("delete",), "k": ("dynamic",)}),
    ],
)
def test_defaults_depend_on_other_settings(given, resolved):
    found = run_config(given)
    assert {name: getattr(found, name) for name in resolved} == resolved


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 2.5}, "n = 2.5: a whole number is expected"),
        ({"n_fills": 0}, "n_fills = 0: at least 1 is needed"),
        ({"directions": ["both"]}, "direction 'both'. Expected: sufficiency, necessity"),
        ({"label_scoring": "frist"}, "label-scoring 'frist'; did you mean 'first'"),
        ({"protocol": "papr"}, "protocol 'papr'; did you mean 'paper'"),
        ({"k": "much"}, "k = 'much': a share between 0 and 1 or 'dynamic' is expected"),
        ({"adaptive": "examples", "m": 50}, "m = 50: with adaptive 'examples'"),
        ({"protocol": "released", "nulls": "position"}, "draws random sets of its own"),
        ({"nulls": ["size", "size"]}, "nulls names something twice: size, size"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        run_config(given)
