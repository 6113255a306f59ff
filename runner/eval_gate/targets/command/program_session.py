"""Session of a conversation with a program: which messages it does not know yet, and the id that it reports."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.conversation import Response
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.command.program_events import build_usage
from eval_gate.targets.command.programs import ProgramName
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.text.turns import flatten_messages
from eval_gate.text.untrusted.excerpt import format_excerpt

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
"""An id that is one word of a command in every shell, and no option."""


def format_new_messages(request: Request, *, is_remembered: bool) -> str:
    """Format what a program does not know yet as one text: the new message if it remembers the others, else all."""
    is_later = is_remembered and request.turn > 1
    return flatten_messages(request.messages[-1:] if is_later else request.messages)


def require_session_id(session: ConversationSession | None) -> str:
    """Return the id that the program reported in an earlier turn. Raises TargetError if it reported none."""
    if session is None or session.own_id is None:
        what = "the program reported no session id, so it cannot go on with the conversation"
        raise TargetError(what, fault=TargetFault.MALFORMED)
    return session.id


def adopt_session(session: ConversationSession | None, response: Response, program: ProgramName) -> Response:
    """Go on in the session that the response reports, and return the response with the tokens of its own turn.

    Raises TargetError for an id that cannot be part of a command: it comes from the program, and a shell reads it.
    """
    session_id = response.session_id
    if session is None or session_id is None:
        return response
    if _SESSION_ID.fullmatch(session_id) is None:
        what = f"the session id {format_excerpt(session_id.encode('utf-8', 'replace'))} cannot be part of a command"
        hint = "an id has at most 200 letters, digits and . _ : - and begins with a letter or digit"
        raise TargetError(what, fault=TargetFault.MALFORMED, hint=hint)
    is_same = session.id == session_id
    session.own_id = session_id
    return _subtract_earlier_tokens(session, response, is_same=is_same) if program is ProgramName.CODEX else response


def _subtract_earlier_tokens(session: ConversationSession, response: Response, *, is_same: bool) -> Response:
    """Subtract the tokens of earlier turns: Codex reports those of the whole thread when it goes on with one."""
    usage, earlier = response.usage or Usage(), session.totals if is_same else {}
    totals = {"input": usage.input_tokens, "output": usage.output_tokens}
    # a total that is less than the one before says nothing about this turn
    counts = [
        None if total is None or total < earlier.get(name, 0) else total - earlier.get(name, 0)
        for name, total in totals.items()
    ]
    session.totals |= {name: total for name, total in totals.items() if total is not None}
    return replace(response, usage=build_usage(*counts))
