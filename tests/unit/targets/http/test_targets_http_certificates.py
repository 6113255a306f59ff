"""Certificates are read once a process, whoever connects."""

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from eval_gate.files.certificates import load_ssl_context
from eval_gate.model.conversation import Message
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import unused_port


async def refused(url: str) -> None:
    settings = HttpSettings.model_validate({"name": "agent", "url": url})
    target = HttpTarget(settings, redact=Redactor(), concurrency=1, max_retries=0)
    try:
        with pytest.raises(TargetError, match="refused"):
            await target.respond(Request("case", (Message(role="user", content="hello"),)))
    finally:
        await target.aclose()


@pytest.mark.slow
def test_certificates__many_connections_with_tls__are_read_once_and_for_others_never(monkeypatch) -> None:
    load_ssl_context.cache_clear()
    read, create = [], httpx.create_ssl_context

    def counted(verify=True, **others) -> ssl.SSLContext:
        if verify is True:
            read.append(verify)
        return create(verify, **others)

    monkeypatch.setattr("httpx.create_ssl_context", counted)
    asyncio.run(refused(f"http://127.0.0.1:{unused_port()}/chat"))
    assert read == []
    for _ in range(2):
        asyncio.run(refused(f"https://127.0.0.1:{unused_port()}/chat"))
    assert read == [True]
    assert load_ssl_context().verify_mode is ssl.CERT_REQUIRED


PROCESS = """
import asyncio, ssl, sys
from eval_gate.process.orphans import mark_own_process
from tests.unit.targets.http.test_targets_http_certificates import refused
if sys.argv[1] == "own":
    mark_own_process()
asyncio.run(refused("http://127.0.0.1:9/chat"))
import aiohttp.connector
known = len(ssl.create_default_context().get_ca_certs())
print(len(aiohttp.connector._SSL_CONTEXT_VERIFIED.get_ca_certs()) == known, known > 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_certificates__of_the_system__are_read_for_plain_http_only_where_others_need_them(own) -> None:
    """In somebody's process aiohttp may be theirs too: there it knows what it would know without us."""
    words = [sys.executable, "-c", PROCESS, "own" if own else "theirs"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[4])
    same, known = done.stdout.split()
    assert same == str(not own or known == "False")
