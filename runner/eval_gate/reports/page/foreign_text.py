"""Foreign text on its way into the page: what turns or hides text is made visible, and JSON ends no element."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from eval_gate.text.inert import json_text

_LONE: Final = re.compile("[\ud800-\udfff]")
_LIVE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_LIVE_SIGNS: Final = re.compile("[<>&\u2028\u2029]")


def without_lone(text: str) -> str:
    """The text without halves of characters, which no file can hold."""
    return _LONE.sub("\ufffd", text)


def island(data: Any) -> str:
    """The data as JSON on one line that ends no element, opens none, and is no command of a runner."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _LIVE_SIGNS.sub(lambda match: _LIVE[match[0]], text)
    return json_text(_LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
