"""The blob host: artifacts by address alone, as Azure keeps them. A token is no help here, it is refused."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from tests.support.github.faults import Fault
from tests.support.github.loopback import Answer, Request
from tests.support.github.records import Artifact

if TYPE_CHECKING:
    from tests.support.github.server import FakeGitHub

FIXED = {"x-ms-version": "2024-11-04", "x-ms-request-id": "00000000-0000-0000-0000-000000000001"}
LARGEST_BLOCK = 4000 * 1024 * 1024


@dataclass
class Blob:
    """An upload: its blocks, and its bytes once they were put together."""

    blocks: dict[str, bytes] = field(default_factory=dict)
    data: bytes | None = None
    content_type: str = "application/octet-stream"


@dataclass
class Ticket:
    """What an address with this `sig` allows, until when, and how often."""

    path: str
    permission: str  # r: read, cw: create and write
    deadline: float
    uses: float
    name: str = ""
    blob: Blob = field(default_factory=Blob)
    inline: bool = False


class Storage:
    """Signed addresses and what is behind them."""

    host = "blob"

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github
        self.base = ""  # known once the port is
        self.lifetime = 60.0  # of a download's address, in seconds
        self.tickets: dict[str, Ticket] = {}

    def offer(self, artifact: Artifact, *, inline: bool = False) -> str:
        """An address for one download of an artifact; `inline` is for a browser that shows what is no archive."""
        blob = Blob(data=artifact.zip_bytes, content_type=artifact.content_type)
        name = artifact.name if artifact.content_type != "application/zip" else f"{artifact.name}.zip"
        shown = inline and artifact.content_type != "application/zip"
        return self.sign(f"/artifacts/{artifact.id}", blob, "r", uses=1, name=name, inline=shown)

    def sign(
        self,
        path: str,
        blob: Blob,
        permission: str,
        *,
        uses: float = float("inf"),
        name: str = "",
        inline: bool = False,
    ) -> str:
        sig = secrets.token_urlsafe(24)
        lifetime = self.lifetime if permission == "r" else 3600.0
        self.tickets[sig] = Ticket(path, permission, time.monotonic() + lifetime, uses, name, blob, inline)
        until = time.strftime("%Y-%m-%dT%H%%3A%M%%3A%SZ", time.gmtime(time.time() + lifetime))
        return f"{self.base}{quote(path)}?sv=2024-11-04&se={until}&sr=b&sp={permission}&sig={sig}"

    def judge(self, request: Request) -> list[str]:
        return ["a token was sent to the blob host"] if request.headers.get("Authorization") else []

    def judge_answer(self, request: Request, answer: Answer) -> list[str]:
        return []

    def failure(self, fault: Fault, request: Request) -> Answer:
        answer = _error(fault.code or 500, "ServerBusy", fault.message)
        answer.headers |= fault.headers
        return answer

    def answer(self, request: Request) -> Answer:
        if request.headers.get("Authorization"):
            return _error(
                400, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format."
            )
        ticket = self.tickets.get(request.query.get("sig", ""))
        writes = request.method == "PUT"
        if (
            ticket is None
            or ticket.path != unquote(request.path)
            or time.monotonic() > ticket.deadline
            or ticket.uses < 1
            or ticket.permission != ("cw" if writes else "r")
        ):
            request.violations += [] if ticket else ["an address that was never given out"]
            return _error(403, "AuthenticationFailed", "Server failed to authenticate the request.")
        if writes:
            return self._put(request, ticket.blob)
        ticket.uses -= 1
        if ticket.blob.data is None:
            return _error(404, "BlobNotFound", "The specified blob does not exist.")
        how = "inline" if ticket.inline else "attachment"
        headers = FIXED | {"Content-Disposition": f"{how}; filename*=UTF-8''{quote(ticket.name)}"}
        return Answer(200, headers=headers, raw=ticket.blob.data, content_type=ticket.blob.content_type)

    def _put(self, request: Request, blob: Blob) -> Answer:
        match request.query.get("comp"):
            case "block":
                return self._block(request, blob)
            case "blocklist":
                ids = [each.text or "" for each in ET.fromstring(request.raw)]
                if missing := [each for each in ids if each not in blob.blocks]:
                    return _error(400, "InvalidBlockList", f"{missing}")
                blob.data = b"".join(blob.blocks[each] for each in ids)
            case None if request.headers.get("x-ms-blob-type") == "BlockBlob":
                blob.data = request.raw
            case _:
                request.violations.append("a blob is put by blocks and a list of them, or whole with x-ms-blob-type")
                return _error(400, "MissingRequiredHeader", "x-ms-blob-type")
        blob.content_type = request.headers.get("x-ms-blob-content-type") or blob.content_type
        etag = hashlib.sha256(blob.data).hexdigest()[:16]
        return Answer(201, headers=FIXED | {"ETag": f'"0x{etag.upper()}"'})

    def _block(self, request: Request, blob: Blob) -> Answer:
        name = request.query.get("blockid", "")
        try:
            fits = 1 <= len(base64.b64decode(name, validate=True)) <= 64
        except ValueError:
            fits = False
        if not fits or any(len(other) != len(name) for other in blob.blocks):
            request.violations.append("blockid must be base64 of at most 64 bytes, and all of a blob of equal length")
            return _error(400, "InvalidQueryParameterValue", "blockid")
        if len(request.raw) > LARGEST_BLOCK:
            return _error(413, "RequestBodyTooLarge", "The request body is too large.")
        blob.blocks[name] = request.raw
        return Answer(201, headers=FIXED | {"x-ms-request-server-encrypted": "true"})


def _error(status: int, code: str, message: str) -> Answer:
    text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    headers = FIXED | {"x-ms-error-code": code}
    return Answer(status, headers=headers, raw=text.encode(), content_type="application/xml")
