"""Models behind a server: each request is paid for once, and its answer is kept on disk."""

from ice_eval.servers.client import Asker, Chat, LimitField, Server, plan_requests
from ice_eval.servers.exchange import (
    NO_REPLY,
    NO_TOKENS,
    Completion,
    Continuation,
    Logprobs,
    Message,
    Question,
    Request,
    Response,
    TokenUsage,
)
from ice_eval.servers.store import RESPONSES, Budget, RequestPlan, ResponseStore, addresses, read_responses

__all__ = [
    "NO_REPLY", "NO_TOKENS", "RESPONSES", "Asker", "Budget", "Chat", "Completion", "Continuation", "LimitField",
    "Logprobs", "Message", "Question", "Request", "RequestPlan", "Response", "ResponseStore", "Server", "TokenUsage",
    "addresses", "plan_requests", "read_responses",
]  # fmt: skip
