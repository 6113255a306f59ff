"""The certificates that connections of this process trust, read once."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def certificates() -> ssl.SSLContext:
    """Those of the environment, else of certifi. To read them takes 20 to 40 ms, which each client would spend anew."""
    import httpx

    return httpx.create_ssl_context()
