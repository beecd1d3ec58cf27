import pytest
from tests.live.serving import gguf, python_of_llama, serving


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    command = [python_of_llama(), "-m", "llama_cpp.server", "--model", gguf(), "--logits_all", "true", "--port", "PORT"]
    with serving([*command, "--n_threads", "1"], tmp_path_factory.mktemp("llama") / "log") as url:
        yield url
