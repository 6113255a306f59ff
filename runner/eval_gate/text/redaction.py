"""Redaction: mask known secrets in everything that is shown or stored.

A server or program may send a secret as it is or as its tools write it: escaped in JSON, percent-encoded, in base64,
broken into lines or not. Each of these forms is masked, and so is a part of a key that is long and random enough to
stand in a text for no other reason. Text is masked before it is cut, quoted or decorated: afterwards a secret may have
no form that is found. Text that came cut is masked with what may be the beginning or the end of a secret at the cut.
"""

from __future__ import annotations

import html
import json
import re
import sys
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final, TypeVar
from urllib.parse import quote, quote_plus

from msgspec import Struct, structs
from pydantic import JsonValue

from eval_gate.text.json_values import map_leaves
from eval_gate.text.quoting import is_mixed, looks_like_key
from eval_gate.text.safe_output import INVISIBLE
from eval_gate.text.secret import mask_ranges
from eval_gate.text.split_secrets import NO_SIGN, BareSecret, build_bare_secrets, iter_secret_pieces

MIN_LENGTH: Final = 6
"""Shorter values are words that occur everywhere: masking them would garble messages and change verdicts."""
_MIN_LINE: Final = 16
"""A line of a secret of several lines, such as a private key, is a secret of its own from this length on."""
_MAX_SEARCHED: Final = 20_000
"""Characters of a secret that are looked through for keys."""
_WORD: Final = re.compile(r"[^\s\"'`,;=:?&@/{}()<>|\[\]]{12,}")
"""What may be a key within a secret."""
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_UUID_DIGITS: Final = 32
_CUT: Final = re.compile(
    r"…|\.{2,}|&hellip;|&\#(?:8230|x2026);|\\u2026|(?P<hidden>\*{3,}|•{3,}|x{4,}|\\u2022)"
    r"|[\[(<]\s?(?:truncated|cut|omitted|snip|redacted|hidden|masked)[^\])>\n]{0,40}[\])>]",
    re.IGNORECASE,
)
"""Marks of a text that another program truncated, or in which a part is `hidden`."""
_MAX_CUTS: Final = 500
"""Places where a text was cut that are looked at, from its beginning and from its end."""
_MIN_AT_CUT: Final = 8
"""Characters of a secret at an ellipsis from which it is masked: fewer are a word."""
_MIN_PART: Final = 4
"""Characters of a secret at a cut from which it is masked."""
_ESCAPED: Final = re.compile(
    r"\\{1,8}(?:u(?P<unit>[0-9a-f]{4}))?|(?P<bytes>(?:%(?:25){0,4}[0-9a-f]{2})+)"
    r"|&(?:\#0*(?P<code>[0-9]{1,7})|\#x0*(?P<hex>[0-9a-f]{1,6})|(?P<name>amp|lt|gt|quot|apos));",
    re.IGNORECASE,
)
"""One sign in another notation, percent-encoded even twice (`%252F`); a backslash before any other counts as none."""
_ENCODED: Final = re.compile(r"\\u00[2-7][0-9a-f]|%[0-9a-f]{2}|&(?:\#|amp|lt|gt|quot|apos)", re.IGNORECASE)
"""What a printable ASCII character may be escaped as, but for a backslash before it."""
_BYTE: Final = re.compile(r"%(?:25){0,4}([0-9a-f]{2})", re.IGNORECASE)
_HEX: Final = re.compile(r"[0-9A-Fa-f]{16,}")
_BREAK: Final = re.compile(
    rf"(?:\x1b\[[0-9;]{{0,20}}[A-Za-z]|[\s⏎\x00-\x1f\xad{INVISIBLE}]"
    r"|\\{1,8}(?:[nrt0]|u00[01][0-9a-fA-F])|%(?:0[09ADad]|20))+"
)
"""What a secret may be broken by: ends of lines (`base64` prints 76 characters a line), blanks, and unseen signs."""
_MIN_BROKEN: Final = 12
"""A secret so long does not stand in a text by chance where its blanks are left out."""
_KEY: Final = re.compile(r"[^\s:@;,{}]{16,1000}")
"""A key whose parts are masked, too: one word, and no address or connection string with names of hosts and people."""
_DOCUMENTS: Final = ("eyJ", "ewo", "MII", "LS0t")
"""What JSON, DER (the encoding of private keys) and PEM begin with in base64: many documents begin with the same."""
_RESPONSE_PART: Final = 16
"""Characters of a part of a key in a response: without a leak, no mask may change a verdict."""
_MESSAGE_PART: Final = 8
"""Characters of a part of a key in a message, which is not scored."""
_ENTITIES: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_NUMBER: Final = re.compile(r"[-+.\deE]+")
_Model = TypeVar("_Model", bound=Struct)


class Redactor:
    """Masks known secrets in texts; more secrets can be added while it is in use."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._forms: tuple[str, ...] = ()
        self._raw: tuple[str, ...] = ()
        self._broken: tuple[str, ...] = ()
        self._bare: tuple[BareSecret, ...] = ()
        self._meant: tuple[str, ...] = ()
        self._keys: tuple[str, ...] = ()
        self.add_secrets(secrets)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Mask these as well from now on."""
        new = {part for secret in secrets for part in _iter_parts(secret)} - self._secrets
        if not new:
            return
        self._secrets |= new
        # the longest first, so that a text that holds none is done soonest; which one is found first changes nothing
        self._forms = tuple(sorted({form for one in self._secrets for form in _iter_forms(one)}, key=len, reverse=True))
        self._raw = tuple(form for form in self._forms if not _NUMBER.fullmatch(form))
        self._broken = tuple(sorted({form for one in self._secrets for form in _iter_broken_forms(one)}))
        self._bare = build_bare_secrets(self._secrets)
        meant = {form for one in self._secrets for form in (one.replace("\\", ""), _UnescapedText(one).meant)}
        self._meant = tuple(sorted(form for form in meant if len(form) >= _MIN_PART))
        self._keys = tuple(sorted({key for one in self._secrets for key in _iter_keys(one)}))

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything to be masked."""
        return bool(self._secrets)

    def include(self, other: Redactor) -> None:
        """Mask what another one masks as well."""
        self.add_secrets(other._secrets)

    def __call__(self, text: str) -> str:
        """Replace every secret in the text with `***`."""
        return mask_ranges(text, self._find_in_text(text, _RESPONSE_PART))

    def mask_message(self, text: str) -> str:
        """Mask the secrets in a message, also small parts, and those in pieces that together are a whole secret."""
        pieces = iter_secret_pieces(text, self._bare, in_message=True)
        return mask_ranges(text, [*self._find_in_text(text, _MESSAGE_PART), *pieces])

    def mask_bytes(self, data: bytes, *, cut_before: bool = False, cut_after: bool = False) -> bytes:
        """Mask the secrets in bytes that are yet to be parsed, or to be quoted in a message.

        JSON stays JSON: a secret that is a number is not masked, because a number in JSON is not text. `cut_before`
        and `cut_after`: bytes are missing there.
        """
        if not self._raw:
            return data
        text = data.decode("utf-8", "surrogateescape")
        ranges = list(self._find_encoded(text, self._raw, _RESPONSE_PART))
        # a backslash that stays would escape the mask
        ranges = [(_skip_backslashes(text, begin), end) for begin, end in ranges]
        ranges += _iter_cut_forms(text, self._raw, cut_before=cut_before, cut_after=cut_after)
        masked = mask_ranges(text, [*ranges, *self._find_broken(text, cut_before=cut_before, cut_after=cut_after)])
        return data if masked is text else masked.encode("utf-8", "surrogateescape")

    def _find_in_text(self, text: str, part: int) -> Iterator[tuple[int, int]]:
        """Find secrets in a text, and parts of keys from `part` characters on."""
        if not self._forms:
            return
        yield from self._find_encoded(text, self._forms, part)
        yield from iter_secret_pieces(text, self._bare, in_message=False)
        yield from self._find_broken(text)
        yield from self._find_at_cuts(text)

    def _find_encoded(self, text: str, forms: tuple[str, ...], part: int) -> Iterator[tuple[int, int]]:
        """Find forms of secrets and parts of keys, also where some or all of their characters are escaped."""
        yield from _iter_occurrences(text, forms)
        yield from _iter_key_parts(text, self._keys, part)
        is_encoded = any(sign in text for sign in "\\%&") and _ENCODED.search(text) is not None
        plain = text if is_encoded or "\\" not in text else text.replace("\\", "")
        if is_encoded or (plain is not text and any(form in plain for form in self._meant)):
            unescaped = _UnescapedText(text)
            meant = self._meant if forms is self._forms else [one for one in self._meant if not _NUMBER.fullmatch(one)]
            yield from unescaped.map_ranges(_iter_occurrences(unescaped.meant, meant))
            yield from unescaped.map_ranges(_iter_key_parts(unescaped.meant, self._keys, part))

    def _find_at_cuts(self, text: str) -> Iterator[tuple[int, int]]:
        """Find the beginning of a secret before an ellipsis, or the end of one after it: it was cut there."""
        places = list(_CUT.finditer(text))
        if not places:
            return
        forms = [form for form in self._forms if form[:_MIN_PART] in text or form[-_MIN_PART:] in text]
        for match in (*places[:_MAX_CUTS], *places[_MAX_CUTS:][-_MAX_CUTS:]):
            at, behind = match.span()
            least = _MIN_PART if match["hidden"] else _MIN_AT_CUT
            for form in forms:
                begin = text.rfind(form[:least], max(at - len(form), 0), at)
                if begin >= 0 and form.startswith(text[begin:at].rstrip().rstrip("\\")):
                    yield begin, at
                end = text.find(form[-least:], behind, behind + len(form))
                if end >= 0 and form.endswith(text[behind : end + least].lstrip()):
                    yield behind, end + least

    def _find_broken(
        self, text: str, *, cut_before: bool = False, cut_after: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Find secrets that line ends, blanks or invisible characters break."""
        if not self._broken or not _BREAK.search(text):
            return
        whole = _BREAK.sub("", text)
        if not (cut_before or cut_after or any(form in whole for form in self._broken)):
            return
        joined = _UnescapedText(text, _BREAK, lambda match: [("", match.start())])
        yield from joined.map_ranges(_iter_occurrences(joined.meant, self._broken))
        at_cut = _iter_cut_forms(joined.meant, self._broken, cut_before=cut_before, cut_after=cut_after)
        yield from joined.map_ranges(at_cut)

    def mask_json(self, value: JsonValue) -> JsonValue:
        """Mask the secrets in every text of a JSON value, including keys."""
        return map_leaves(value, lambda leaf: self(leaf) if isinstance(leaf, str) else leaf, self)

    def mask_struct(self, model: _Model) -> _Model:
        """Mask the secrets in every text of a struct."""
        if not self._forms:
            return model
        members = {name: self._mask_member(getattr(model, name)) for name in model.__struct_fields__}
        return structs.replace(model, **members)

    def _mask_member(self, value: object) -> object:
        match value:
            case str() if type(value) is str:
                return self(value)
            case Struct():
                return self.mask_struct(value)
            case tuple():
                return tuple(self._mask_member(member) for member in value)
            case list():
                return [self._mask_member(member) for member in value]
            case dict():
                return {self._mask_member(key): self._mask_member(member) for key, member in value.items()}
            case _:
                return value

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"


EMPTY_REDACTOR: Final = Redactor()


def _iter_parts(secret: str) -> Iterator[str]:
    """Yield the parts of a secret to mask: without the blanks around it, its lines, and its keys."""
    plain = secret.strip()
    if len(plain) >= MIN_LENGTH:
        yield plain
    yield from (line.strip() for line in plain.splitlines()[:1_000] if _MIN_LINE <= len(line.strip()) < len(plain))
    # after `Bearer`, in an address, JSON or a connection string: the receiver repeats the key alone
    yield from (word for word in _WORD.findall(plain[:_MAX_SEARCHED]) if looks_like_key(word) or _UUID.fullmatch(word))


def _iter_forms(secret: str) -> Iterator[str]:
    yield secret
    digits = secret.replace("-", "")
    hexadecimal = _HEX.fullmatch(digits) is not None
    for one in {secret, digits} if hexadecimal else {secret} if looks_like_key(secret) else ():
        yield from (one.lower(), one.upper())
    if hexadecimal and len(digits) == _UUID_DIGITS:
        ends = (0, 8, 12, 16, 20, _UUID_DIGITS)
        dashed = "-".join(digits[begin:end] for begin, end in pairwise(ends))
        yield from (dashed.lower(), dashed.upper())
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        for escaped in (once, once.replace("/", "\\/")):
            yield escaped
            yield json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]  # JSON as a text within JSON
    yield repr(secret)[1:-1]  # as Python's own error messages show it
    plain = secret.encode("utf-8", "replace")
    yield from (quote(plain, safe=""), quote(plain), quote_plus(plain))
    yield html.escape(secret, quote=False)
    yield html.escape(secret)
    yield from _iter_base64(plain)


def _iter_base64(secret: bytes) -> Iterator[str]:
    """Yield the secret's base64 forms at each offset in a longer text: the characters that depend on it alone."""
    for offset in range(3):
        text = b64encode(b"\0" * offset + secret).decode()
        own = text[-(-offset * 8 // 6) : (offset + len(secret)) * 8 // 6]
        if len(own) >= MIN_LENGTH:
            yield own
            yield own.replace("+", "-").replace("/", "_")


def _iter_broken_forms(secret: str) -> Iterator[str]:
    """Yield the forms of a secret without blanks, for a text that breaks it into lines or groups of letters."""
    yield from _iter_base64(secret.encode("utf-8", "replace"))
    plain = _BREAK.sub("", secret)
    if len(plain) >= _MIN_BROKEN:
        yield plain


class _UnescapedText:
    """Text with escapes resolved, mapped to the original; backslashes go, as their intended number is unknown."""

    def __init__(
        self,
        text: str,
        escaped: re.Pattern[str] = _ESCAPED,
        signs: Callable[[re.Match[str]], list[tuple[str, int]]] | None = None,
    ) -> None:
        """Resolve each match of `escaped` to the `signs` that it stands for, each with its position."""
        signs = signs or _decode_escape
        self._meant: list[int] = []
        """Where stretches begin in `meant`, in order."""
        self._places: list[int] = []
        """Places in the text at which the same stretches begin."""
        parts: list[str] = []
        end = length = 0
        for match in escaped.finditer(text):
            for sign, begin in ((text[end : match.start()], end), *signs(match)):
                self._meant.append(length)
                self._places.append(begin)
                if sign != "\\":
                    parts.append(sign)
                    length += len(sign)
            end = match.end()
        self._meant.append(length)
        self._places.append(end)
        parts.append(text[end:])
        self.meant = "".join(parts)

    def map_ranges(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        return ((self._map_index(begin), self._map_index(end - 1, is_end=True)) for begin, end in ranges)

    def _map_index(self, at: int, *, is_end: bool = False) -> int:
        """Find where a sign of the unescaped text begins in the text, or where it ends."""
        index = bisect_right(self._meant, at) - 1
        where = self._places[index] + at - self._meant[index]
        if not is_end:
            return where
        last = index + 1 < len(self._meant) and self._meant[index + 1] == at + 1
        return self._places[index + 1] if last else where + 1


def _decode_escape(match: re.Match[str]) -> list[tuple[str, int]]:
    """Decode an escape to its characters, each with the position where it begins."""
    if match["unit"]:
        return [(chr(int(match["unit"], 16)), match.start())]
    if match["name"]:
        return [(_ENTITIES[match["name"].lower()], match.start())]
    if match["code"] or match["hex"]:
        code = int(match["code"]) if match["code"] else int(match["hex"], 16)
        return [(chr(code) if code <= sys.maxunicode else "", match.start())]
    encoded = match["bytes"] or ""
    once = len(encoded) == 3 * encoded.count("%")
    begins = range(0, len(encoded), 3) if once else [one.start() for one in _BYTE.finditer(encoded)]
    data = bytes.fromhex(encoded.replace("%", "") if once else _BYTE.sub(r"\1", encoded))
    signs, at = [], 0
    for sign in data.decode("utf-8", "surrogateescape"):
        signs.append((sign, match.start() + begins[at]))
        at += 1 if sign < "\x80" else len(sign.encode("utf-8", "surrogateescape"))
    return signs


def _skip_backslashes(text: str, at: int) -> int:
    while at and text[at - 1] == "\\":
        at -= 1
    return at


def _iter_keys(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that are so random that a text holds a piece of one for no other reason."""
    if _KEY.fullmatch(secret):
        yield from (one for one in secret.split(".") if not one.startswith(_DOCUMENTS) and _is_random(one, 16))


def _is_random(text: str, least: int) -> bool:
    """Whether a part of a key has at least this many characters, and is neither words nor a number."""
    signs = NO_SIGN.sub("", text)
    return len(text) >= least and not signs.isdigit() and is_mixed(signs)


def _iter_key_parts(text: str, keys: Iterable[str], least: int) -> Iterator[tuple[int, int]]:
    """Find parts of these keys: each has one of the blocks into which its key is divided, at half of its length."""
    size = least // 2
    long_words = "\n".join(word for word in text.split() if len(word) >= least)
    for key in keys:
        for at in range(0, len(key) - size + 1, size):
            if key[at : at + size] not in long_words:
                continue
            begin = text.find(key[at : at + size])
            while begin >= 0:
                end, first, last = begin + size, at, at + size
                while last < len(key) and text[end : end + 1] == key[last]:
                    end, last = end + 1, last + 1
                while first and begin and text[begin - 1] == key[first - 1]:
                    begin, first = begin - 1, first - 1
                if _is_random(text[begin:end], least):
                    yield begin, end
                begin = text.find(key[at : at + size], end)


def _iter_occurrences(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int]]:
    for form in forms:
        at = text.find(form)
        while at >= 0:
            yield at, at + len(form)
            at = text.find(form, at + 1)


def _iter_cut_forms(text: str, forms: Iterable[str], *, cut_before: bool, cut_after: bool) -> Iterator[tuple[int, int]]:
    """Find the ends of forms at the beginning of a text that was cut before it, and their beginnings at its end."""
    for form in forms if cut_before or cut_after else ():
        for length in range(_MIN_PART, min(len(form), len(text) + 1)):
            if cut_before and text.startswith(form[-length:]):
                yield 0, length
            if cut_after and text.endswith(form[:length]):
                yield len(text) - length, len(text)
