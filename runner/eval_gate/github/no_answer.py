"""Why no answer came, as far as the client's exception tells: a certificate, a proxy, or nothing that is known."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from typing import Final

from eval_gate.files.certificates import CERTIFICATES_HINT, named_certificates
from eval_gate.github.failure import FailureKind, GitHubError, refused_by_proxy

_ANSWER_OF_PROXY: Final = re.compile(r"(?:Tunnel connection failed: )?([45]\d\d\b.{0,100})", re.DOTALL)
"""The words of `http.client` and of httpx for a proxy that does not connect."""


def unanswered(error: Exception, doing: str, detail: str) -> GitHubError:
    """The error for a request without an answer; `detail` is said where nothing is known of why."""
    causes = list(_causes_of(error))
    untrusted = next((one for one in causes if isinstance(one, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        what = f"the server's certificate is not trusted here ({untrusted.verify_message or untrusted.reason})"
        return GitHubError(FailureKind.UNTRUSTED, doing, what, remedy=CERTIFICATES_HINT)
    unread = next((one for one in causes if isinstance(one, ssl.SSLError) and one.library == "X509"), None)
    if unread is not None:
        return no_certificates(unread)
    if any(type(one).__name__ == "ProxyError" for one in causes):  # of requests, urllib3, httpx
        answers = (_ANSWER_OF_PROXY.match(str(one)) for one in causes)
        return refused_by_proxy(doing, next((found[1] for found in answers if found), "no connection"))
    return GitHubError(FailureKind.UNREACHABLE, doing, f"{detail} ({type(error).__name__})")


def no_certificates(error: OSError) -> GitHubError:
    """The error for a file or folder of certificates that is not there or holds none."""
    doing = f"reading the certificates that {named_certificates()} names"
    return GitHubError(FailureKind.REFUSED, doing, error.strerror or type(error).__name__)


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """The exception and all that it was made of: clients keep some as causes, some as arguments."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        below = (one.__cause__, one.__context__, getattr(one, "reason", None), *one.args)
        waiting += [each for each in below if isinstance(each, BaseException)]
