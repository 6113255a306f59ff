"""Errors of test runners: whether a test said no or was ended by an exception, and whose fault that is."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.execution import ErrorKind

_EXCEPTION: Final = re.compile(r"(?!\S*Assert)[\w.]*(Error|Exception|Timeout|Refused)\b")
"""How a message begins where the test did not say no: it was ended by an exception."""
_UNREACHABLE: Final = re.compile(
    r"""ECONNREFUSED | \bENOTFOUND\b | EAI_AGAIN | EHOSTUNREACH | connection\ refused | could\ not\ resolve
      | actively\ refused | name\ or\ service\ not\ known | \bAPIConnectionError\b | ConnectionRefusedError
      | RateLimit(?:ed|Error|Exceeded) | AuthenticationError | PermissionDeniedError
      | insufficient_quota | rate_limit_error | RESOURCE_EXHAUSTED
      | \b(?:HTTP(?:/[\d.]+)?|status(?:[ _]?code)?|error\ code)[\s:=]{1,3}(?:401|402|403|407|429|529)\b
      | \b401\ Unauthorized | \b402\ Payment | \b403\ Forbidden | \b407\ Proxy | \b429\ Too\ Many
      | \b(?:401|402|403|407|429|529)\ Client\ Error
      | (?:^|:\s)(?:401|402|403|407|429|529)\s?(?:$|[{-])
      | (?:^|:\s)unauthori[sz]ed\.?$
      | \brate.?limit(?:s|ed)?(?:\ was|\ has\ been)?\ (?:exceeded|reached|hit) | \bexceeded\ .{0,20}\bquota\b
      | \bquota\ (?:was\ |is\ |has\ been\ )?exceeded\b
      | \b(?:invalid|incorrect)\b.{0,20}\bapi.?key | \bno\ api\ key
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""What clients say of no connection, credentials and limits. A number or a word alone may be what the test is about."""
_MAX_SEARCHED: Final = 2_000


def is_exception(message: str) -> bool:
    """Whether a message begins with the name of an exception that no assertion throws."""
    return _EXCEPTION.match(message) is not None


def classify_thrown_error(message: str) -> ErrorKind:
    """Whose fault it is by what was thrown: nobody was reached, or the agent crashed."""
    return ErrorKind.AGENT_UNREACHABLE if _UNREACHABLE.search(message[:_MAX_SEARCHED]) else ErrorKind.AGENT_ERROR
