"""Models behind a server: each request paid for once and kept on disk, whatever happens on the way."""

from ice_eval.servers.budget import Budget, Plan
from ice_eval.servers.chat import Chat, Progress, plan_requests
from ice_eval.servers.exchange import Continuation, Logprobs, Message, Question, Request, Response, Tokens
from ice_eval.servers.server import Server
from ice_eval.servers.store import ResponseStore, read_responses

__all__ = [
    "Budget",
    "Chat",
    "Continuation",
    "Logprobs",
    "Message",
    "Plan",
    "Progress",
    "Question",
    "Request",
    "Response",
    "ResponseStore",
    "Server",
    "Tokens",
    "plan_requests",
    "read_responses",
]
