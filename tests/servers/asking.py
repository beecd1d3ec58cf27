"""Questions to a scripted server, with less patience than anybody should have."""

from ice_eval.servers import Chat, Message, Request, ResponseStore, Server

KEY = "sk-planted-0123456789"


def question(text, **changes):
    return Request(**{"messages": (Message("user", str(text)),), "model": "m", "max_tokens": 20, **changes})


def hasty(server, **changes):
    """The server's address, with less patience than anybody should have."""
    quick = {"first_backoff_s": 0.005, "most_backoff_s": 0.05, "timeout_s": 20.0, "concurrency": 8}
    return Server(base_url=server.url, **{**quick, **changes})


def ask(server, path, requests, *, budget=None, progress=None, **changes):
    with ResponseStore(path) as store:
        return Chat(hasty(server, **changes), store, budget=budget).ask(requests, progress=progress)


def ask_one(server, path, **changes):
    [response] = ask(server, path, [question("2 + 2?")], **changes).values()
    return response
