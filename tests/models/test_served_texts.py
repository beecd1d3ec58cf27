"""Given texts behind a server: claims are scored by the server's echo, whatever its tokens are."""

import math
import re

import numpy as np
import pytest
from tests.models.test_served import Cut, quick  # noqa: F401 - a fixture
from tests.servers.chat_server import ChatServer, completion, continuation, error
from tests.small_runs import shown_rows

import ice_eval as ice
from ice_eval.errors import BudgetError, CapabilityError, ConfigError
from ice_eval.models import load_model, load_reader
from ice_eval.models.served import ScoredPrompt
from ice_eval.servers import Logprobs, read_responses
from ice_eval.subjects.context.tasks import PROMPT, CitationTask

READ, UNREAD = math.log(0.8), math.log(0.01)
FACTS = ["Oslo lies in Norway.", "Rome lies in Italy.", "Bonn is on a river.", "Lima is by the sea.", "Kyiv is large."]
QUESTION = "Where do cities lie?"
ANSWER = "Rome lies in Italy [2]. Lima is by the sea [4] and is dry."
SHOWN = ["Rome lies in Italy.", "Rome lies in Italy [2]. Lima is by the sea and is dry."]
"""The answer up to the end of each claim, without the claim's own citations."""
CLAIMS = [(0, 19), (23, 54)]
"""Characters of the claims in it, with the spaces before them."""
ROWS = [{"id": "a", "question": QUESTION, "passages": FACTS, "answer": ANSWER}]
WORDS, PIECES = r" ?\w+|\s|[^\w\s]", r"\s?\w{1,4}|\s|[^\w\s]"


def score(before, token):
    """A server's log-probability of a token: high if it has read the token before."""
    return READ if token.strip() in before else UNREAD


class Reader:
    """A server of a model that copies.

    Args:
        cut: Pattern of its tokens, or what spells token ids.
        echo: `right`, `shifted` by one token, or refused (None).
        by_id: True if it names tokens by id.
        reply: What it says in a chat; a text, or a function of the prompt.
        completions: False if it only chats.
    """

    def __init__(self, cut=WORDS, *, echo="right", by_id=False, reply=ANSWER, completions=True):
        self.cut, self.echo, self.by_id, self.reply, self.completions = cut, echo, by_id, reply, completions

    def __call__(self, request, number):
        if "messages" in request:
            prompt = request["messages"][-1]["content"]
            return completion(self.reply if isinstance(self.reply, str) else self.reply(prompt))
        if not self.completions:
            return error(404, "this model only chats")
        prompt, ids = request["prompt"], None
        if isinstance(prompt, list):
            if isinstance(self.cut, str):
                return error(400, "prompt must be a string")
            prompt, ids = self.cut.spelled(prompt), prompt
        top = {word: score(prompt, word) for word in (" a", " cold", " warm", " film")}
        named = {self.name(token, request): value for token, value in top.items()}
        if not request.get("echo"):
            return continuation(named)
        if self.echo is None:
            return error(400, "no echo")
        tokens = re.findall(self.cut, prompt) if ids is None else [self.cut.spelled([index]) for index in ids]
        values = [score("".join(tokens[:place]), token) for place, token in enumerate(tokens)]
        values = [None, *(values[1:] if self.echo == "right" else values[:-1])]
        names = tokens if not self.names_ids(request) else [f"token_id:{index}" for index in ids]
        best = next(iter(named))
        return continuation({best: named[best]}, tokens=[*names, best], values=[*values, named[best]])

    def names_ids(self, request):
        return self.by_id and bool(request.get("return_tokens_as_token_ids"))

    def name(self, token, request):
        return f"token_id:{self.cut.id_of(token)}" if self.names_ids(request) else token


def served(server, **changes):
    return ice.Served("reader", base_url=server.url, **changes)


def run(model, rows=ROWS, **settings):
    usual = {"attributions": ["cited", "random"], "operators": ["delete"], "m": 4}
    return ice.evaluate(model, CitationTask(data=ice.Records(rows)), **usual | settings)


def texts_of(row):
    """The prompt of a row, with the answer up to the end of the claim, and the claim's characters in it."""
    claim = int(row.key.example_id[-1]) - 1
    passages = "".join(f"[{unit + 1}] {FACTS[unit]}\n\n" for unit in row.kept)
    before = PROMPT.format(passages=passages, question=QUESTION) + "\nAnswer: "
    start, end = CLAIMS[claim]
    return before + SHOWN[claim], [(len(before) + start - (claim == 0), len(before) + end)]


def expected(row, pattern):
    text, spans = texts_of(row)
    found = [
        score(text[: match.start()], match.group())
        for match in re.finditer(pattern, text)
        if any(first < match.end() <= last for first, last in spans)
    ]
    return np.mean(found)


def assert_scores(found, pattern):
    rows = shown_rows(found.folder)
    assert len(rows) > 10
    for row in rows:
        np.testing.assert_allclose(row.scores, [expected(row, pattern)], atol=1e-9)


@pytest.mark.parametrize("pattern", [WORDS, PIECES])
def test_a_claim_has_the_mean_of_the_servers_own_tokens(pattern):
    with ChatServer(Reader(pattern)) as server:
        found = run(served(server))
    assert_scores(found, pattern)
    manifest = found.folder.manifest()
    assert manifest.label_scoring == "given"
    assert (manifest.server.prompts, manifest.server.echo, manifest.server.label_tokens) == ("text", True, ())
    assert manifest.server.rows_without_score == 0
    assert manifest.noise_guard.log_score == 0.0
    assert any("log-probabilities of the claims, from the server's echo" in said for said in manifest.messages)
    kept = list(read_responses(found.path / "responses.jsonl"))
    assert len(kept) == len({each.key for each in kept}) == len(server.requests)


def test_a_score_worked_out_by_hand():
    with ChatServer(Reader()) as server:
        found = run(served(server))
    by_kind = {row.key.kind.label: row for row in shown_rows(found.folder) if row.key.example_id == "a#1"}
    # " Rome" " lies" " in" " Italy" ".": of these, the prompt without passages holds ".", and "lie" but no "lies".
    np.testing.assert_allclose(by_kind["full"].scores, [READ])
    np.testing.assert_allclose(by_kind["empty"].scores, [(3 * UNREAD + 2 * READ) / 5])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tokenizer with a chat template, and configuration of a language model without weights."""
    import transformers
    from tests.small_tokenizers import byte_level

    path = tmp_path_factory.mktemp("gpt2")
    tokenizer = byte_level(chat_template="{% for m in messages %}<end>{{ m.content }}{% endfor %}<end>")
    sizes = {"vocab_size": len(tokenizer), "n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 1024}
    transformers.GPT2Config(architectures=["GPT2LMHeadModel"], **sizes).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def codec(folder):
    return load_reader(folder).codec


@pytest.mark.parametrize("by_id", [True, False])
def test_a_claim_has_the_mean_of_its_ids_where_the_server_takes_them(folder, codec, by_id):
    with ChatServer(Reader(Cut(codec), by_id=by_id)) as server:
        found = run(served(server, tokenizer=folder), chat=False)
    assert found.folder.manifest().server.prompts == "token ids"
    for row in shown_rows(found.folder):
        text, spans = texts_of(row)
        tokens = codec.tokenize(text)
        assert list(row.input_ids) == tokens.ids.tolist()
        places = [
            place
            for place, (start, end) in enumerate(zip(tokens.start, tokens.end, strict=True))
            if any(first <= start and end <= last for first, last in spans)
        ]
        spelled = codec.decode([np.array([index]) for index in tokens.ids])
        values = [score("".join(spelled[:place]), spelled[place]) for place in places]
        np.testing.assert_allclose(row.scores, [np.mean(values)], atol=1e-9)


def test_answers_are_a_turn_of_a_chat_where_ids_and_a_template_allow_it(folder, codec):
    [end] = codec.tokenize("<end>", framed=True).ids.tolist()
    with ChatServer(Reader(Cut(codec))) as server:
        found = run(served(server, tokenizer=folder))
    assert all(row.input_ids.count(end) == 2 for row in shown_rows(found.folder))
    with ChatServer(Reader()) as server:
        found = run(served(server, tokenizer=folder))
        assert not any(end in row.input_ids for row in shown_rows(found.folder))
        assert_scores(found, WORDS)
        for model in (served(server, tokenizer=folder), served(server)):
            with pytest.raises(ConfigError, match="--chat needs a server that takes token ids"):
                run(model, chat=True)


@pytest.mark.parametrize("server", [Reader(echo="shifted"), Reader(echo=None), Reader(completions=False)])
def test_an_echo_that_is_missing_or_off_by_one_is_refused(server):
    with ChatServer(server) as asked:
        with pytest.raises(CapabilityError):
            load_model(served(asked)).text_labels("claim")


def test_what_is_answered_is_not_asked_again(tmp_path):
    with ChatServer(Reader()) as server:
        run(served(server), out=tmp_path / "run")
        n_asked = len(server.requests)
        run(served(server), out=tmp_path / "run")
        assert len(server.requests) == n_asked
        with pytest.raises(ConfigError, match="label tokens"):
            run_shifted(tmp_path / "run")


def run_shifted(path):
    with ChatServer(Reader(echo="shifted")) as server:
        (path / "responses.jsonl").unlink()
        run(served(server), out=path)


def test_a_limit_of_requests_stops_the_run_which_then_goes_on(tmp_path):
    with ChatServer(Reader()) as server:
        with pytest.raises(BudgetError, match=r"limit of 9 requests \(--max-requests\) is reached.*higher limit cont"):
            run(served(server, max_requests=9, concurrency=1), out=tmp_path / "run")
        assert len(server.requests) == 9
        found = run(served(server, max_requests=90), out=tmp_path / "run")
    assert len(server.requests) == len({each.key for each in read_responses(found.path / "responses.jsonl")})


def echo_of(tokens, added=(" x",)):
    return Logprobs((*tokens, *added), tuple(-float(place) for place in range(len(tokens) + len(added))), {})


@pytest.mark.parametrize("added", [(" x",), ()])
@pytest.mark.parametrize(
    ("text", "span", "tokens", "inside"),
    [
        ("I say yes.", (5, 10), ["I", " say", " yes", "."], [2, 3]),
        ("I say yes.", (5, 9), ["I", " say", " yes", "."], [2]),  # the full stop is not scored
        ("I say yes.", (6, 10), ["I", " sa", "y y", "es."], [3]),  # a token that holds other characters is not scored
        ("I say yes.", (4, 6), ["I", " sa", "y y", "es."], []),
        ("I say yes.", (5, 10), ["<s>", "I", "say", "yes", "."], [3, 4]),  # spaces are lost
        ("a — b", (1, 5), ["a", " ", "\ufffd", "\ufffd", " b"], [1, 2, 3, 4]),  # a dash in two parts
        ("a —— b", (1, 4), ["a", " \ufffd", "\ufffd", "\ufffd", "\ufffd b"], [1, 2, 3]),
        ("I say yes.", (5, 10), ["I", " said", " no", "."], []),  # another text
        ("I say yes.", (5, 10), ["."], []),  # an echo that is too short
    ],
)
def test_tokens_are_found_in_the_text_from_its_end(text, span, tokens, inside, added):
    found = ScoredPrompt(text, (span,)).mean(echo_of(tokens, added), str)
    assert found == pytest.approx(-np.mean(inside)) if inside else math.isnan(found)


def test_an_echo_without_a_value_has_no_score():
    whole = ScoredPrompt("I say", ((0, 5),))
    assert math.isnan(whole.mean(Logprobs(("I", " say"), (None, -1.0), {}), str))
    assert math.isnan(whole.mean(Logprobs(("I", " say"), (-1.0,), {}), str))
    assert math.isnan(whole.mean(None, str))
