"""A server on this machine that answers what it is told, and misbehaves when it is told to."""

import asyncio
import hashlib
import json
import random
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field

FAULTS = ("busy", "broken", "reset", "hang", "malformed", "cut")


@dataclass(frozen=True)
class Say:
    """An answer over HTTP, word by word."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)


def completion(text="four", **changes):
    """A chat completion as servers give it."""
    message = {"role": "assistant", "content": text, **changes.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": changes.pop("finish_reason", "stop")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"choices": [choice], "model": "served", "system_fingerprint": "fp_1", "usage": usage, **changes}


def continuation(top, *, text=None, tokens=None, values=None, **changes):
    """A text completion as servers give it: the likeliest next tokens, and those that were written, or repeated."""
    best = max(top, key=top.get) if top else ""
    tokens, values = ([best], [top.get(best)]) if tokens is None else (tokens, values)
    logprobs = {"tokens": tokens, "token_logprobs": values, "top_logprobs": [None] * (len(tokens) - 1) + [top]}
    choice = {"index": 0, "text": best if text is None else text, "logprobs": logprobs, "finish_reason": "length"}
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    return {"choices": [{**choice, **changes}], "model": "served", "usage": usage}


def question_of(request):
    """What is asked, of either endpoint, so that it can be counted."""
    if "messages" in request:
        return request["messages"][-1]["content"]
    prompt = request["prompt"]
    return prompt if isinstance(prompt, str) else tuple(prompt)


def error(status, message, **fields):
    headers = {"Retry-After": str(fields.pop("retry_after"))} if "retry_after" in fields else {}
    return Say(status, {"error": {"message": message, **fields}}, headers)


def echo(request, number):
    """An answer that depends on nothing but the question."""
    content = question_of(request)
    return completion(hashlib.sha256(content.encode()).hexdigest()[:8])


def stormy(rate, *, seed, then=echo):
    """Faults of all kinds at a combined rate; else what `then` says."""
    rng = random.Random(seed)

    def behave(request, number):
        return rng.choice(FAULTS) if rng.random() < rate else then(request, number)

    return behave


class ChatServer:
    """`behave(request, number)` gives a completion, a `Say` or the name of a fault; the server counts what it sees."""

    def __init__(self, behave=echo, *, pause_s=0.0):
        self.behave = behave
        self.pause_s = pause_s
        self.asked, self.answered, self.faults = Counter(), Counter(), Counter()
        self.requests, self.headers, self.paths = [], [], []
        self.at_once = self.most_at_once = 0

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self):
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader, writer):
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
        request = json.loads(await reader.readexactly(int(headers["content-length"])))
        question = question_of(request)
        self.asked[question] += 1
        self.requests.append(request)
        self.headers.append(headers)
        self.paths.append(head.split()[1])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            said = self.behave(request, len(self.requests))
            await asyncio.sleep(self.pause_s)
            if isinstance(said, str):
                self.faults[said] += 1
                return await self._misbehave(said, writer)
            said = said if isinstance(said, Say) else Say(body=said)
            self.answered[question] += said.status == 200
            return await self._send(writer, said)
        finally:
            self.at_once -= 1

    async def _misbehave(self, fault, writer):
        whole = json.dumps(completion("never to be read")).encode()
        match fault:
            case "busy":
                return await self._send(writer, error(429, "slow down"))
            case "broken":
                return await self._send(writer, error(500, "out of order"))
            case "malformed":
                return await self._send(writer, Say(body='{"choices": [{"mess'))
            case "hang":
                await asyncio.sleep(60)
            case "cut":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(whole) + whole[: len(whole) // 2])
                await writer.drain()
            case "reset":
                linger = struct.pack("ii", 1, 0)  # close with a reset in place of a farewell
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return False

    async def _send(self, writer, said):
        body = said.body if isinstance(said.body, str) else json.dumps(said.body)
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body.encode())), **said.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {said.status} Said\r\n{head}\r\n{body}".encode())
        await writer.drain()
        return True
