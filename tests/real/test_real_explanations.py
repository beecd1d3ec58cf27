"""Tokens of a real WordPiece model are found in real texts of many languages, unknown tokens included."""

import numpy as np
import pytest
import transformers

from ice_eval.encoding import encode
from ice_eval.interop import Explanation, TextPart, align
from ice_eval.models import load_model
from ice_eval.records import Example
from ice_eval.tasks import FileData, Task

FILES = ["sst2", "imdb", "ag_news", "arabic_astd", "chinese_chnsenticorp", "french_allocine", "hindi_movies",
         "turkish_movies"]  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", FILES)
def test_tokens_of_wordpiece_are_found_in_real_texts(shared_data, name):
    folder = shared_data.parent / "models" / "minilm-sentiment"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    codec = load_model(str(folder), device="cpu").codec
    task = Task(data=FileData(shared_data / f"{name}.jsonl"), prompt="{text}", label_words={"a": " a", "b": " b"})
    lines = [{"text": row["text"]} for row in task.data.rows()][:60]
    for place, fields in enumerate(lines):
        item = encode(codec, task, Example(str(place), fields))
        tokens = tokenizer.convert_ids_to_tokens(
            tokenizer(fields["text"], truncation=True, max_length=512)["input_ids"]
        )
        found = align(Explanation(np.ones(len(tokens)), tuple(map(TextPart, tokens))), item, fields)
        assert found.covered.mean() > 0.95, (name, place)
