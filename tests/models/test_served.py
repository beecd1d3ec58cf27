"""Models behind a server: the toy, asked over HTTP, gives the toy's numbers."""

import json
from collections import Counter

import numpy as np
import pytest
from tests.results.test_schemas import assert_conforms
from tests.servers.bag_server import Bag, log_odds
from tests.servers.chat_server import ChatServer, continuation, error, stormy
from tests.small_runs import shown_rows

import ice_eval as ice
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import load_model, load_reader
from ice_eval.models.function import TextCodec
from ice_eval.report.provenance import command
from ice_eval.results.records import NoiseGuard, ServerInfo, ServerNames
from ice_eval.servers import Server, read_responses
from ice_eval.tasks import adhoc_task

TEXTS = [
    "a good but slow film , really",
    "an excellent , delightful and best cast",
    "the worst awful but great beautiful mess",
]
RECORDS = [{"text": text, "label": index % 2} for index, text in enumerate(TEXTS)]
PROMPT = "Review: {text}\nSentiment:"
ASKING = ["occlusion", "lime:n_samples=20", "kernel-shap:n_samples=20", "random", "first-k"]
LONG = {"bad": " very bad", "good": " very good"}


@pytest.fixture(autouse=True, scope="module")
def quick():
    """No key, and less patience than anybody should have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        for name, value in {"first_backoff_s": 0.005, "most_backoff_s": 0.02}.items():
            patch.setitem(Server.__init__.__kwdefaults__, name, value)
        yield


def task(**changes):
    words = {"negative": " negative", "positive": " positive"}
    return ice.Task(**{"data": ice.Records(RECORDS), "prompt": PROMPT, "label_words": words} | changes)


def run(model, task=None, **settings):
    """A small run by words."""
    usual = {"attributions": ["random"], "operators": ["delete"], "m": 6, "unit": "word"}
    return ice.evaluate(model, task or globals()["task"](), **usual | settings)


def served(server, **changes):
    return ice.Served("bag", base_url=server.url, **changes)


def rows_of(found):
    return {row.key: row for row in shown_rows(found.folder)}


def prompt_of(row):
    return PROMPT.format(text=row.text)


def assert_same(found, expected, *, but="nothing", atol=1e-9):
    """The rows that were asked for, with the scores of another run that has them too."""
    ours, theirs = (
        {key: row for key, row in rows_of(run).items() if key.attribution != but} for run in (found, expected)
    )
    assert ours.keys() <= theirs.keys()
    for key, row in ours.items():
        assert row.kept == theirs[key].kept
        np.testing.assert_allclose(row.scores, theirs[key].scores, atol=atol)


@pytest.fixture(scope="module")
def local():
    """The toy itself."""
    return run("toy", attributions=ASKING, operators=["delete", "infill"])


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A server that is generous, and a run of all that can be asked of it."""
    file = tmp_path_factory.mktemp("data") / "reviews.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    reviews = adhoc_task(ice.FileData(file), prompt=PROMPT, labels=["negative", "positive"], name="reviews")
    with ChatServer(Bag()) as server:
        methods = [*ASKING, "self-explanation"]
        found = run(served(server), reviews, attributions=methods, operators=["delete", "infill"])
    return server, found


class Cut:
    """What a tokenizer's ids spell, as a server with the same tokenizer knows."""

    def __init__(self, codec):
        self._codec = codec

    def spelled(self, ids):
        return self._codec.decode([np.array(ids)])[0]

    def id_of(self, token):
        ids = self._codec.tokenize(token).ids.tolist()
        return ids[0] if len(ids) == 1 else 10_000 + int("".join(filter(str.isdigit, token)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tokenizer and configuration of a language model, and no weights."""
    import transformers
    from tests.small_tokenizers import byte_level

    path, tokenizer = tmp_path_factory.mktemp("gpt2"), byte_level()
    sizes = {"vocab_size": len(tokenizer), "n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 256}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    transformers.GPT2Config(architectures=["GPT2LMHeadModel"], **sizes, **ends).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def cut(folder):
    return Cut(load_reader(folder).codec)


def test_the_toy_behind_a_server_is_the_toy(local, asked):
    _, found = asked
    assert_same(found, local, but="self-explanation")
    for row in rows_of(found).values():
        np.testing.assert_allclose(row.scores[1] - row.scores[0], log_odds(prompt_of(row)), atol=1e-9)
    columns, names = ["win_rate", "p_value", "effect_size", "nsr", "accuracy"], ["attribution", "operator"]
    summaries = [each.summary().set_index(names)[columns].astype(float) for each in (found, local)]
    np.testing.assert_allclose(summaries[0].loc[summaries[1].index], summaries[1], atol=1e-6)


def test_what_is_kept_of_how_the_server_was_asked(asked):
    server, found = asked
    manifest = found.folder.manifest()
    assert manifest.server == ServerInfo(
        base_url=server.url,
        base_urls=(server.url,),
        tokenizer=None,
        prompts="text",
        top_logprobs=20,
        echo=True,
        label_tokens=((" negative",), (" positive",)),
        said=ServerNames(model="served", fingerprint=None),
        rows_without_score=0,
    )
    assert_conforms(found.path)
    named = manifest.config.model, manifest.label_scoring, manifest.device
    assert named == ("openai:bag", "first", "server")
    assert manifest.noise_guard == NoiseGuard(rows=8, log_score=0.0, probability=0.0)
    assert any("prompts go to" in message and "as text" in message for message in manifest.messages)
    kept = list(read_responses(found.path / "responses.jsonl"))
    assert len(kept) == len({each.key for each in kept}) == len(server.requests)


def test_only_servers_that_answered_are_named(tmp_path):
    with ChatServer(Bag()) as first, ChatServer(Bag()) as second:
        run(served(first), out=tmp_path / "run")
        found = run(served(second), out=tmp_path / "run")  # everything is there, and nobody is asked
        assert not second.requests
        assert found.folder.manifest().server.base_urls == (first.url,)
        found = run(served(second), operators=["delete", "infill"], out=tmp_path / "run")
        assert second.requests
        kept = found.folder.manifest().server
        assert (kept.base_urls, kept.base_url) == ((first.url, second.url), second.url)


def test_the_report_says_how_the_server_was_asked_and_how_to_run_it_again(asked):
    server, found = asked
    page = found.report().read_text(encoding="utf-8")
    assert f"{server.url}, prompts as text, 20 log-probabilities per row" in page
    said = command(found.folder.manifest())
    assert f"--base-url {server.url}" in said
    assert "--model openai:bag" in said
    assert "--dtype" not in said


def test_explanations_in_words_come_from_the_chat_endpoint(asked):
    server, found = asked
    chats = [request for request, path in zip(server.requests, server.paths, strict=True) if "/chat/" in path]
    assert len(chats) == 3
    assert [message["role"] for message in chats[0]["messages"]] == ["user", "assistant", "user"]
    assert chats[0]["temperature"] == 0.0
    [first, *_] = found.folder.inputs(0)
    assert first.answers["self-explanation"].text == "good, slow"
    assert first.attributions["self-explanation"] == (0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0)


def test_a_server_that_names_few_tokens_is_asked_for_each_label(local):
    with ChatServer(Bag(most=5)) as server:
        found = run(served(server))
    assert_same(found, local)
    assert found.folder.manifest().server.top_logprobs == 5
    assert sum(bool(request.get("echo")) for request in server.requests) > 2


def test_a_label_that_is_not_named_at_first_is_looked_for_in_a_longer_list(local):
    with ChatServer(Bag(echo=None)) as server:
        found = run(served(server))
    assert_same(found, local)
    longer = {request["prompt"] for request in server.requests if request["logprobs"] == 1000}
    assert 0 < len(longer) < len({request["prompt"] for request in server.requests})


def test_a_label_that_is_not_in_a_longer_list_is_looked_for_in_the_longest(local):
    with ChatServer(Bag(echo=None, most=20_000, fillers=1500)) as server:
        found = run(served(server))
    assert_same(found, local)
    lengths = Counter(request["logprobs"] for request in server.requests)
    assert lengths[20] > lengths[10_000] > 1  # one to find out whether it may be asked


@pytest.mark.parametrize("echo", [None, "shifted"])
def test_a_label_that_no_way_finds_is_unknown_and_counted(echo):
    with ChatServer(Bag(most=50, echo=echo)) as server:
        found = run(served(server))
    rows = rows_of(found).values()
    unknown = [row for row in rows if np.isnan(row.scores).any()]
    assert 0 < len(unknown) < len(rows)
    assert all(np.isnan(row.scores).all() for row in unknown)
    for row in rows:
        # P(label) = 0.6 σ(±odds) is less than that of 60 other tokens together with the share of 0.4.
        odds = log_odds(prompt_of(row))
        assert np.isnan(row.scores).any() == (0.6 / (1 + np.exp(abs(odds))) < 0.4 / 60)
    manifest = found.folder.manifest()
    assert manifest.server.rows_without_score == len(unknown)
    assert not manifest.server.echo
    assert "labels_not_listed" in manifest.flags
    assert "too few tokens to find a label" in found.report().read_text(encoding="utf-8")
    errors = [line.error for line in found.folder.examples()]
    assert any(error is not None and "not finite" in error for error in errors)


def test_labels_that_begin_alike_are_scored_by_all_their_tokens():
    with ChatServer(Bag()) as server:
        found = run(served(server), task(label_words=LONG))
    manifest = found.folder.manifest()
    assert manifest.label_scoring == "full"
    assert manifest.server.label_tokens == ((" very", " bad"), (" very", " good"))
    for row in rows_of(found).values():
        np.testing.assert_allclose(row.scores[1] - row.scores[0], log_odds(prompt_of(row)), atol=1e-9)


def test_labels_that_begin_alike_are_refused_where_their_echo_contradicts_the_server():
    with ChatServer(Bag(echo="shifted")) as server:
        with pytest.raises(ConfigError, match="contradict those of the next token.*Choose words that differ in their"):
            run(served(server), task(label_words=LONG))
        with pytest.raises(ConfigError, match="do not differ in their first token; use --label-scoring full"):
            run(served(server), task(label_words=LONG), label_scoring="first")


def test_labels_of_which_the_server_does_not_show_the_tokens_are_refused():
    with ChatServer(Bag(echo=None)) as server:
        with pytest.raises(
            ConfigError, match="does not show how its tokenizer cuts the label ' very bad'.*--tokenizer"
        ):
            run(served(server), task(label_words=LONG))


@pytest.mark.parametrize("by_id", [True, False])
def test_prompts_are_token_ids_where_both_sides_know_them(local, folder, cut, by_id):
    with ChatServer(Bag(codec=cut, by_id=by_id)) as server:
        found = run(served(server, tokenizer=folder))
    assert found.folder.manifest().server.prompts == "token ids"
    assert all(isinstance(request["prompt"], list) for request in server.requests)
    assert_same(found, local)
    asked = [request["prompt"] for request in server.requests]
    assert all(list(row.input_ids) in asked for row in rows_of(found).values())


def test_ids_spell_labels_and_masks_where_the_server_repeats_nothing(folder, cut):
    with ChatServer(Bag(codec=cut, echo=None)) as server:
        found = run(served(server, tokenizer=folder), operators=["mask-pad"])
    manifest = found.folder.manifest()
    assert manifest.server.label_tokens == ((" negative",), (" positive",))
    assert manifest.flags == ("mask-pad_writes_end_of_text",)


@pytest.mark.parametrize("status", [400, 500])
def test_a_server_that_takes_no_ids_gets_text(local, folder, status):
    with ChatServer(Bag(ids_status=status)) as server:
        found = run(served(server, tokenizer=folder))
    assert found.folder.manifest().server.prompts == "text"
    assert_same(found, local)


@pytest.mark.parametrize("tokenizer", [False, True])
def test_operators_that_write_special_tokens_are_refused_where_prompts_are_text(folder, tokenizer):
    with ChatServer(Bag()) as server:
        model = served(server, tokenizer=folder if tokenizer else None)
        for name in ("mask", "mask-pad"):
            with pytest.raises(CapabilityError, match=f"the operator '{name}'.*delete(,| or) infill"):
                run(model, operators=[name])


def test_a_server_that_ignores_the_wish_for_log_probabilities_is_noticed(tmp_path):
    with ChatServer(Bag(silent=True)) as server:
        with pytest.raises(ConfigError) as caught:
            run(served(server), out=tmp_path / "run")
    said = str(caught.value)
    assert f"{server.url} gives no log-probabilities" in said
    assert "POST /completions with max_tokens=1 and logprobs=20" in said
    assert "the text ' positive' and no logprobs" in said
    assert "vLLM, SGLang, llama.cpp" in said
    assert not (tmp_path / "run").exists()


def test_a_server_that_breaks_when_it_is_asked_for_log_probabilities_is_refused_with_its_words(tmp_path):
    with ChatServer(lambda request, number: error(500, "needs logits_all=True")) as server:
        with pytest.raises(ConfigError, match="status 500: needs logits_all=True Log-probabilities.*--logits_all true"):
            run(served(server), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_where_the_text_would_end_the_server_is_asked_not_to_end_it(local):
    """Some servers name no token where the likeliest one ends the text."""
    bag = Bag()

    def ends(request, number):
        if "gr" in request["prompt"] and not request.get("min_tokens") and not request.get("echo"):
            return continuation({}, text="", finish_reason="stop")
        return bag(request, number)

    with ChatServer(ends) as server:
        found = run(served(server))
    assert_same(found, local)


def test_bad_weather_changes_no_number(local):
    bag = Bag()
    storm = stormy(0.3, seed=3, then=bag)

    def weather(request, number):
        """Fair until the server is known."""
        return storm(request, number) if number > 5 and request["logprobs"] == 20 else bag(request, number)

    with ChatServer(weather) as server:
        found = run(served(server, timeout_s=0.4))
    assert len(server.faults) > 3
    assert_same(found, local)


def test_a_damaged_line_of_kept_answers_is_named_where_it_stands(tmp_path):
    kept = tmp_path / "run" / "responses.jsonl"
    with ChatServer(Bag()) as server:
        run(served(server), out=tmp_path / "run")
        first, second, *others = kept.read_bytes().splitlines(keepends=True)
        kept.write_bytes(first + second[:20] + b"\n" + b"".join(others))
        with pytest.raises(ConfigError) as told:
            run(served(server), out=tmp_path / "run")
        assert str(told.value).startswith(f"line 2 of {kept} is damaged; remove that line")
        kept.write_bytes(first + b"".join(others))
        before = len(server.requests)
        run(served(server), out=tmp_path / "run")
    assert len(server.requests) <= before + 1


def test_attributions_that_look_inside_are_refused_before_anybody_is_asked():
    with ChatServer(Bag()) as server:
        for name in ("attention", "gradient", "integrated-gradients"):
            with pytest.raises(CapabilityError, match=f"'{name}' needs .* 'openai:bag' does not offer.*occlusion"):
                run(served(server), attributions=[name])
        with pytest.raises(CapabilityError, match="can be explained by word only.*use --unit word"):
            run(served(server), unit="token")
    assert server.requests == []


def test_a_chat_template_needs_token_ids(folder):
    with ChatServer(Bag()) as server:
        with pytest.raises(ConfigError, match="known from its tokenizer; give --tokenizer"):
            run(served(server), chat=True)


def test_a_prompt_of_nothing_but_the_text_is_refused(tmp_path):
    with ChatServer(Bag()) as server:
        with pytest.raises(ConfigError, match="the prompt is empty.*put words around"):
            run(served(server), task(prompt="{text}"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_behind_a_server_needs_an_address_and_a_name():
    with pytest.raises(ConfigError, match="add --base-url URL to .* other commands need a model"):
        load_model("openai:bag")
    with pytest.raises(ConfigError, match="names no model"):
        ice.Served("", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="is no address"):
        ice.Served("bag", base_url="somewhere")
    with pytest.raises(ConfigError, match="--max-cost needs --price-in"):
        ice.Served("bag", base_url="http://127.0.0.1:1/v1", max_cost=1.0)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Review: a  fine film\nSentiment:", ["Review", ":", " a", " ", " fine", " film", "\n", "Sentiment", ":"]),
        (" don't stop, now! ", [" don't", " stop", ",", " now", "!", " "]),
        ("好电影", ["好", "电", "影"]),
        ("", []),
    ],
)
def test_pieces_spell_the_text_to_the_letter(text, pieces):
    codec = TextCodec()
    tokens = codec.tokenize(text)
    assert codec.decode([np.array([i]) for i in tokens.ids]) == pieces
    assert codec.decode([tokens.ids]) == [text]
    assert [text[a:b] for a, b in zip(tokens.start, tokens.end, strict=True)] == pieces
    assert TextCodec().tokenize(text).ids.tolist() == tokens.ids.tolist()
