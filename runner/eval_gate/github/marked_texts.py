"""Comments and issues of the gate: recognized by author and marker, with state in their last line."""

from __future__ import annotations

import base64
import json
import re
from typing import Final, TypeVar

from pydantic import BaseModel, Field

from eval_gate.github.client import ApiResponse

_STATE: Final = re.compile(r"<!-- eval-gate:state ([A-Za-z0-9+/=]{1,20000}) -->\s*\Z")

T = TypeVar("T", bound=BaseModel)


class MarkedText(ApiResponse):
    """Comment or issue, of any author."""

    mine: bool = Field(alias="viewerDidAuthor")
    """GitHub says so without a name: a workflow's token may not ask who it is."""
    body: str
    url: str = ""

    def is_ours(self, marker: str) -> bool:
        """Whether we wrote it, for this marker; never what somebody else wrote."""
        return self.mine and self.body.startswith(marker)


def append_state(body: str, state: BaseModel) -> str:
    """Append the state to the text as an invisible comment. No text can end the encoded state early."""
    packed = base64.b64encode(state.model_dump_json(exclude_none=True).encode()).decode()
    return f"{body.rstrip()}\n<!-- eval-gate:state {packed} -->\n"


def parse_state(kind: type[T], body: str) -> T | None:
    """Parse the state of a text, if it is valid; it is only a hint, because other people can edit it."""
    match = _STATE.search(body)
    if match is None:
        return None
    try:
        return kind.model_validate(json.loads(base64.b64decode(match[1], validate=True)))
    except (ValueError, RecursionError):
        return None
