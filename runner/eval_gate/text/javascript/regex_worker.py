"""Worker process that matches ECMAScript patterns, so that a runaway pattern can be killed.

Reads one request per frame from standard input and writes one reply per frame to standard output. A frame is four
bytes of length, big-endian, and as many bytes of JSON. Ends when standard input does.
"""

from __future__ import annotations

import json
import struct
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from regress import Regex, RegressError

MAX_CACHED = 512
MAX_MEMORY = 1 << 30
"""Bytes of address space beyond which the worker dies instead of the machine."""


def read_frame(stream: BinaryIO) -> bytes | None:
    """Read the bytes of the next frame; return None at the end."""
    head = stream.read(4)
    return stream.read(struct.unpack(">I", head)[0]) if len(head) == 4 else None


def handle_request(request: dict[str, Any], cache: dict[tuple[str, str], Regex]) -> dict[str, object]:
    """Reply with `{"found": bool}`, `{"texts": list}` or `{"error": text}`; without a text, compile the pattern."""
    if "texts" in request:
        return replace_matches(request)
    key = request["pattern"], request["flags"]
    try:
        regex = cache.get(key)
        if regex is None:
            if len(cache) >= MAX_CACHED:
                cache.clear()
            regex = cache[key] = Regex(to_well_formed(request["pattern"]), request["flags"].replace("y", ""))
    except RegressError as error:
        return {"error": str(error)}
    if "text" not in request:
        return {"found": False}
    match = regex.find(to_well_formed(request["text"]))
    # the engine ignores `y` (sticky), which means a match at the very beginning
    return {"found": match is not None and ("y" not in request["flags"] or match.range().start == 0)}


def replace_matches(request: dict[str, Any]) -> dict[str, object]:
    """Replace each match of `patterns` in every text of `texts` with `by`. The patterns apply one after the other."""
    try:
        regexes = [Regex(to_well_formed(pattern)) for pattern in request["patterns"]]
    except RegressError as error:
        return {"error": str(error)}
    by = request["by"].encode()
    return {"texts": [_replace_in_text(to_well_formed(text), regexes, by) for text in request["texts"]]}


def _replace_in_text(text: str, regexes: list[Regex], by: bytes) -> str:
    for regex in regexes:
        places = [match.range() for match in regex.find_iter(text) or ()]
        if places:
            data, parts, end = text.encode(), list[bytes](), 0  # the engine counts bytes of UTF-8
            for place in places:
                if place.stop > place.start:
                    parts += [data[end : place.start], by]
                    end = place.stop
            text = b"".join((*parts, data[end:])).decode()
    return text


def to_well_formed(text: str) -> str:
    """Replace each lone surrogate, which JSON may hold, with U+FFFD, so that the engine takes the text."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Reply to requests until they end."""
    cache: dict[tuple[str, str], Regex] = {}
    while (frame := read_frame(requests)) is not None:
        reply = json.dumps(handle_request(json.loads(frame), cache)).encode()
        replies.write(struct.pack(">I", len(reply)) + reply)
        replies.flush()


def limit_memory() -> None:
    """Bound what a hostile pattern can take, where the system can."""
    if sys.platform != "win32":
        import resource

        with suppress(ValueError):  # macOS takes no such limit
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


if __name__ == "__main__":
    limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
