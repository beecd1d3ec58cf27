"""Models behind a server: each request paid for once and kept on disk, whatever happens on the way."""

from ice_eval.servers.budget import Budget, Plan
from ice_eval.servers.chat import Chat, Progress
from ice_eval.servers.exchange import Message, Request, Response, Tokens
from ice_eval.servers.server import Server
from ice_eval.servers.store import ResponseStore, read_responses

__all__ = [
    "Budget",
    "Chat",
    "Message",
    "Plan",
    "Progress",
    "Request",
    "Response",
    "ResponseStore",
    "Server",
    "Tokens",
    "read_responses",
]
