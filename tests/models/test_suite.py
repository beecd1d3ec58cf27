import pytest

from ice_eval.errors import ConfigError
from ice_eval.models import SUITE, load_model, models, pretrained, suite_model


@pytest.fixture
def asked(monkeypatch):
    """What the hub was asked for; it has nothing."""
    seen = []

    def from_hub(ref, **options):
        seen.append(ref)
        raise pretrained.NotOnHubError("no network")

    monkeypatch.setattr(pretrained, "from_hub", from_hub)
    return seen


@pytest.mark.parametrize(
    ("given", "hub_id"),
    [
        ("qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen/qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("gpt2-xl@0123abc", "openai-community/gpt2-xl@0123abc"),
        ("org/gpt2-xl", "org/gpt2-xl"),
        ("gpt2", "gpt2"),
    ],
)
def test_a_short_name_is_asked_for_by_its_hub_id(asked, given, hub_id):
    with pytest.raises(ConfigError):
        load_model(given)
    assert asked == [hub_id]


def test_a_gated_model_that_the_hub_does_not_give_says_what_to_do(asked):
    message = r"the model 'meta-llama/Llama-3.1-8B' \(no network\)\. It is gated: accept its terms there and log in"
    with pytest.raises(ConfigError, match=message):
        load_model("llama-3.1-8b")
    with pytest.raises(ConfigError, match=r"'openai-community/gpt2-xl' \(no network\)\. A folder of it works as well"):
        load_model("gpt2-xl")


def test_a_name_that_is_nearly_one_gets_a_suggestion(asked):
    with pytest.raises(ConfigError, match=r"no model 'qwen2\.5-7b-instuct'; did you mean 'qwen2\.5-7b-instruct'\?"):
        load_model("qwen2.5-7b-instuct")


def test_a_folder_goes_before_a_short_name(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2-xl").mkdir()
    with pytest.raises(ConfigError, match="holds no config.json"):
        load_model("gpt2-xl")
    assert asked == []


def test_short_names_are_distinct_and_hide_no_other_model():
    names = [model.name for model in SUITE]
    assert len({*names, *models.names()}) == len(names) + len(models.names())
    assert all(suite_model(model.name) is suite_model(model.hub_id) is model for model in SUITE)
    assert suite_model("toy") is None
