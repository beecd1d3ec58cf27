"""Models behind a server: each request is paid for once, and its answer kept on disk."""

from ice_eval.servers.budget import Budget, Plan
from ice_eval.servers.client import Chat, Progress, Server, plan_requests
from ice_eval.servers.exchange import (
    NO_TOKENS,
    Continuation,
    Logprobs,
    Message,
    Question,
    Reply,
    Request,
    Response,
    Tokens,
)
from ice_eval.servers.store import RESPONSES, ResponseStore, addresses, read_responses

__all__ = [
    "NO_TOKENS",
    "RESPONSES",
    "Budget",
    "Chat",
    "Continuation",
    "Logprobs",
    "Message",
    "Plan",
    "Progress",
    "Question",
    "Reply",
    "Request",
    "Response",
    "ResponseStore",
    "Server",
    "Tokens",
    "addresses",
    "plan_requests",
    "read_responses",
]
