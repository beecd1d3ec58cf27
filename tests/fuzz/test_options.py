"""Every number of an option is taken or refused with one message."""

from dataclasses import fields
from typing import get_type_hints

import pytest
from tests.cli.commands import called
from tests.fuzz.mutations import generator

from ice_eval.attributions import attributions, method_of
from ice_eval.errors import ConfigError
from ice_eval.settings import SETTINGS

COUNTS = ("0", "-1", "1", "7", "2147483648", str(2**63 - 1), str(2**63), str(10**30), "1e3", "nan", "x", "")
NUMBERS = ("0", "-1", "0.3", "nan", "inf", "-inf", "1e308", "1e400", str(10**400), "x", "")
NUMERIC = {each.option: COUNTS if each.kind == "count" else NUMBERS for each in SETTINGS.values() if each.kind in (
    "count", "number", "shares")}  # fmt: skip
OF_METHODS = {
    f"{name}:{field.name}": COUNTS if get_type_hints(method)[field.name] is int else NUMBERS
    for name, method in attributions.items() for field in fields(method)
    if get_type_hints(method)[field.name] in (int, float)
}  # fmt: skip
N_COMMANDS = {"ordinary": 12, "slow": 400}
TASK = ("--data", "d.jsonl", "--prompt", "Review: {text}", "--labels", "negative,positive", "--attributions", "random")
SERVED = {each.option for each in SETTINGS.values() if each.panel == SETTINGS["timeout"].panel}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ("a warm and funny film with a great cast", "the worst mess of a very long year")
    (tmp_path / "d.jsonl").write_text("".join(f'{{"text": "{row}"}}\n' for row in rows))


def fuzz(capsys, *, n_commands, fixed):
    rng, refused = generator(3, fixed=fixed), 0
    for _ in range(n_commands):
        option = sorted(NUMERIC)[rng.integers(len(NUMERIC))]
        value = NUMERIC[option][rng.integers(len(NUMERIC[option]))]
        model = ("openai:x", "--base-url", "http://127.0.0.1:9/v1") if option in SERVED else ("toy",)
        code = called("plan", "--model", *model, *TASK, f"{option}={value}")
        said = capsys.readouterr().err
        assert code in (0, 1, 2) and "Traceback" not in said, (option, value, said)
        assert code == 0 or said.strip(), (option, value)
        refused += code != 0
    return refused


@pytest.mark.parametrize("value", [str(10**30), "0", "-1"])
def test_a_token_budget_of_a_run_is_taken_or_refused(here, tmp_path, capsys, value):
    code = called("run", "--model", "toy", *TASK, "--token-budget", value, "--out", tmp_path / "run")
    assert code == 2 and "token budget = " in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_every_number_of_a_method_is_taken_or_refused(record_property):
    """Refused as long as nothing is scored: beyond these limits, arrays and matrices have no room."""
    tried = 0
    for option, values in OF_METHODS.items():
        for value in values:
            tried += 1
            try:
                method = method_of(f"{option}={value}")
            except ConfigError as exc:
                assert "\n" not in str(exc)
            else:
                field = getattr(method, option.partition(":")[2])
                assert isinstance(field, float) or abs(field) < 2**31, option
    record_property("fuzz_cases", tried)


def test_every_number_is_taken_or_refused(here, capsys, record_property):
    assert fuzz(capsys, n_commands=N_COMMANDS["ordinary"], fixed=True) > 0
    record_property("fuzz_cases", N_COMMANDS["ordinary"])


@pytest.mark.slow
def test_many_other_numbers_are_taken_or_refused(here, capsys, record_property):
    assert fuzz(capsys, n_commands=N_COMMANDS["slow"], fixed=False) > 0
    record_property("fuzz_cases", N_COMMANDS["slow"])
