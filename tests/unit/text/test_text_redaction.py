"""The redactor: which forms of a secret it knows, and what it leaves alone."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.conversation import Response, ToolCall
from eval_gate.text.mask import MASK
from eval_gate.text.redaction import MIN_LENGTH, Redactor
from tests.support.bounds import within_cpu
from tests.support.canaries import leaks

SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)
ROOT = Path(__file__).parents[3]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


@given(SECRETS, TEXTS, TEXTS)
def test_finding_2__any_secret_in_any_form__leaves_nothing_of_it(secret, before, after) -> None:
    redact = Redactor([secret])
    forms = [secret, json.dumps(secret), json.dumps(json.dumps(secret)), quote(secret, safe=""), quote(secret)]
    forms += ["".join(f"\\u{ord(sign):04x}" for sign in secret), "".join(f"&#{ord(sign)};" for sign in secret)]
    for form in forms:
        shown = redact(f" {form} ")
        assert MASK in shown
        assert leaks(shown, secret) == []
    assert secret not in redact(before + secret + after)
    assert secret.encode() not in redact.mask_bytes((before + secret + after).encode()) or re.fullmatch(
        r"[-+.\deE]+", secret
    )


@given(SECRETS, st.binary(max_size=10), st.binary(max_size=10))
def test_finding_2__secret_within_base64__is_masked_wherever_it_begins(secret, before, after) -> None:
    for encode in (b64encode, urlsafe_b64encode):
        text = encode(before + secret.encode() + after).decode()
        # what is left of the signs at its ends is less than a byte each
        assert leaks(Redactor([secret])(text), secret[1:-1]) == []


def test_finding_2__secrets_within_each_other__longest_and_overlapping__are_masked_whole() -> None:
    assert Redactor(["secret-1", "my-secret-1-long"])("x my-secret-1-long x") == "x *** x"
    assert Redactor(["abcdefgh", "efghijkl"])("-abcdefghijkl-") == "-***-"


@pytest.mark.parametrize("width", [20, 64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", "\\\\r\\\\n", "%0D%0A", "\n    "])
@pytest.mark.parametrize("cut", [False, True])
def test_redact__base64_in_lines__no_part_of_the_secret_is_left(width, end, cut) -> None:
    secret = "sk-QwXaBcDZkEfGhIVjJkLmN99pQrStUvWx0123456789AbCdEfGhIjKlMnO"
    redact = Redactor([secret])
    for before in range(0, 80, 7):
        encoded = b64encode(b"x" * before + secret.encode() + b" and more of it" * 4).decode()
        if cut:
            encoded = encoded[: (before + 50) * 4 // 3]
        text = "it says " + end.join(encoded[at : at + width] for at in range(0, len(encoded), width))
        own = encoded[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]
        for shown in ((redact.mask_bytes(text.encode(), cut_after=cut).decode()), *([] if cut else [redact(text)])):
            left = shown.replace(end, "")
            assert [own[at : at + 8] for at in range(len(own) - 7) if own[at : at + 8] in left] == []
            assert left.startswith("it says ")


@pytest.mark.parametrize("cut", range(1, 20))
def test_finding_2__text_that_was_cut__keeps_no_part_of_a_secret(cut) -> None:
    secret = "abcdefghijklmnopqrst"
    redact = Redactor([secret])
    head = redact.mask_bytes(f"key {secret[:cut]}".encode(), cut_after=True).decode()
    tail = redact.mask_bytes(f"{secret[cut:]} key".encode(), cut_before=True).decode()
    assert head == (f"key {MASK}" if cut >= 4 else f"key {secret[:cut]}")
    assert tail == (f"{MASK} key" if len(secret) - cut >= 4 else f"{secret[cut:]} key")


def test_mask_bytes__cut_where_no_secret_stands__keeps_what_is_behind_a_mask() -> None:
    redact = Redactor(["abcdefghijklmnopqrst"])
    for cut_before, cut_after in ((False, True), (True, False), (True, True)):
        shown = redact.mask_bytes(b"key abcdefghijklmnopqrst is wrong", cut_before=cut_before, cut_after=cut_after)
        assert shown.decode() == f"key {MASK} is wrong"


def test_redact__short_values__are_no_secrets() -> None:
    redact = Redactor(["a" * (MIN_LENGTH - 1), "", "  "])
    assert redact("aaaaa bbb") == "aaaaa bbb"
    assert Redactor([" padded-key\n"])("x padded-key x") == "x *** x"


def test_redact__number__is_no_text_in_json_that_is_yet_to_be_read() -> None:
    redact = Redactor(["123456"])
    assert redact.mask_bytes(b'{"a": 123456}') == b'{"a": 123456}'
    assert redact("id 123456") == "id ***"


def test_redact__private_key__each_line_of_it_is_a_secret() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcwggSjAgEAAo\n-----END KEY-----\n"
    assert "MIIEv" not in Redactor([key])("said: MIIEvQIBADANBgkqhkiG9w0")


def test_redact__record__every_text_of_it_and_nothing_else() -> None:
    call = ToolCall(name="t-secret-1", params={"secret-1": [{"a": "secret-1"}, 1, None]}, id="secret-1")
    found = Redactor(["secret-1"]).mask_struct(Response(text="secret-1", tool_calls=(call,), duration_ms=1.5))
    assert found == Response(
        text=MASK,
        tool_calls=(ToolCall(name=f"t-{MASK}", params={MASK: [{"a": MASK}, 1, None]}, id=MASK),),
        duration_ms=1.5,
    )


def test_redact__learns_later__who_holds_it_masks_as_well() -> None:
    redact = Redactor()
    held = redact.mask_bytes
    redact.add_secrets(["secret-1"])
    assert held(b"secret-1") == b"***"
    assert "secret-1" not in repr(redact)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["%43" * 300_000, "\\" * 900_000, "&#000" * 200_000, "secret-" * 130_000 + "%"])
def test_redact__a_megabyte_made_to_be_slow__takes_no_time(text) -> None:
    redact = Redactor(["secret-1", "\\\\\\\\%%&&", "Ca" * 40])
    with within_cpu(4, "masking a megabyte"):
        redact(text)
        redact.mask_bytes(text.encode(), cut_before=True, cut_after=True)


def test_redact__nothing_secret__leaves_bytes_as_they_are() -> None:
    data = b"\xff any { 123456 } bytes"
    assert Redactor().mask_bytes(data, cut_before=True, cut_after=True) == data
    assert Redactor(["123456"]).mask_bytes(data) == data


@pytest.mark.parametrize(
    "said", ["\\u0073ecret-1", "secret\\u002d1", "secret-\\u0031", "%73ecret-1", "secret-%31", "secret&#45;1"]
)
def test_redact__escaped_in_part__is_masked_to_its_last_sign_and_no_further(said) -> None:
    assert Redactor(["secret-1"])(f"<{said}> ({said})") == f"<{MASK}> ({MASK})"


@pytest.mark.parametrize("kept", [8, 20, 59])
@pytest.mark.parametrize("shape", ["say «{}…» now", "it is {} …", "{}… and {}…", "say {}... now"])
def test_redact__beginning_of_a_secret_before_an_ellipsis__is_masked(kept, shape) -> None:
    secret = "sk-QwXaBcDZkEfGhIVjJkLmN99pQrStUvWx0123456789AbCdEfGhIjKlMnO"
    encoded = b64encode(secret.encode()).decode()
    for form in (secret, encoded):
        shown = Redactor([secret])(shape.format(*[form[:kept]] * 2))
        assert form[:8] not in shown
        assert "…" in shown or "..." in shown


@pytest.mark.parametrize("kept", [8, 20, 59])
def test_redact__end_of_a_secret_behind_an_ellipsis__is_masked(kept) -> None:
    secret = "sk-QwXaBcDZkEfGhIVjJkLmN99pQrStUvWx0123456789AbCdEfGhIjKlMnO"
    assert Redactor([secret])(f"…{secret[-kept:]} no") == "…*** no"


def test_redact__words_at_an_ellipsis__stay() -> None:
    assert Redactor(["password-12345"])("your pass… or password" + "…" * 300) == "your pass… or " + "***" + "…" * 300
    assert Redactor(["sk-abcdefghijk"])("not sk-abcdefg here… nor sk-abcd…") == "not sk-abcdefg here… nor sk-abcd…"


KEY = "sk-Qz7Xk2Lm9PwTb4RvNcY8sJdH3fVxA1"
UUID = "2f8c0b1e-7d53-4a96-b1c4-9e6a5d3f7081"


@pytest.mark.parametrize(
    "sign",
    [
        "[truncated]",
        "&hellip;",
        "\\u2026",
        "\\\\u2026",
        "..",
        "...",
        "(cut, 13 more)",
        "****",
        "\u2022" * 4,
        "XXXXX",
        "&#8230;",
    ],
)
def test_redact__key_that_somebody_else_cut__is_masked_at_both_ends(sign) -> None:
    for text in (f"bad key {KEY[:18]}{sign}", f"bad key {KEY[:11]}{sign}{KEY[-9:]}", f"{sign}{KEY[-12:]} is bad"):
        assert leaks(Redactor([KEY])(text), KEY) == [], text
    assert Redactor([KEY])(f"go on{sign} and on") == f"go on{sign} and on"


def test_redact__key_with_signs_in_its_middle_hidden__shows_neither_end() -> None:
    """As vendors' own errors quote keys."""
    assert Redactor([KEY])("no key sk-Qz7X****VxA1.") == "no key **********."


def test_redact__key_cut_hundreds_of_times__is_masked_each_time() -> None:
    assert "Qz7X" not in Redactor([KEY])(f"retry with key {KEY[:20]}... " * 600)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_redact__percent_encoded_several_times__is_masked_whole(times) -> None:
    secret = said = "wJalrXUtnFEMI/K7MDENG+bPxRfi=\u00e9CY:EXAMPLEKEY"
    for _ in range(times):
        said = quote(said, safe="")
    assert Redactor([secret])(f"?next=%252Fchat%253Fkey%253D{said}&x") == "?next=%252Fchat%253Fkey%253D***&x"


@pytest.mark.parametrize("key", [UUID, UUID.replace("-", ""), "9f3b" * 10, UUID.upper()])
def test_redact__hexadecimal_key_in_other_letters__is_masked(key) -> None:
    redact = Redactor([key])
    for said in (key.lower(), key.upper(), key.replace("-", ""), key.replace("-", "").upper()):
        assert redact(f"no {said}.") == "no ***."
    if len(key.replace("-", "")) == 32:
        assert redact(f"no {UUID} and {UUID.upper()}") == "no *** and ***"


def test_redact__key_in_small_letters__is_masked() -> None:
    assert Redactor([KEY])(f"x-{KEY.lower()}: 1") == "x-***: 1"


# What of a key counts, and what does not

LONG = "sk-live-A9b8C7d6E5f4G3h2I1j0K9l8M7n6O5p4Q3r2S1t0U9v8W7x6Y5z4A3b2C1d"


def _percent_encode(text: str) -> str:
    return "".join(f"%{ord(sign):02X}" for sign in text)


@pytest.mark.parametrize("begin", [0, 5, 27, 50])
@pytest.mark.parametrize("form", [str, _percent_encode, lambda text: text.replace("A", "\\u0041")])
def test_redact__part_of_a_key_in_a_response__is_masked_from_16_random_signs_on(begin, form) -> None:
    redact = Redactor([LONG])
    for length in (40, 24, 16):
        part = LONG[begin : begin + length]
        assert redact(f"it begins {form(part)} I think") == f"it begins {MASK} I think"
        assert redact.mask_bytes(f'{{"r": "it begins {form(part)}"}}'.encode()).decode().count(MASK) == 1


def test_redact__part_of_a_key_in_a_message__is_masked_from_8_random_signs_on() -> None:
    redact = Redactor([LONG])
    assert redact.mask_message("wrong key A9b8C7d6E!") == f"wrong key {MASK}!"
    assert redact("wrong key A9b8C7d6E!") == "wrong key A9b8C7d6E!"
    assert redact.mask_message("sk-live keys are not for tests") == "sk-live keys are not for tests"


@pytest.mark.parametrize(
    "secret",
    [
        "postgres://appuser:hQ9vX2pLrT7m@db-7f3a9c12.eu2-west1.rds.acme.internal:5432/orders2024",
        "Server=tcp:acme42.database.windows.net,1433;Initial Catalog=orders;User ID=app01;Password=hQ9vX2pLrT7m",
        f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lkLmFjbWUudGVzdCJ9.{LONG[8:51]}",
        f"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ{LONG[8:22]}\n-----END",
        b64encode(b'{\n  "type": "service_account",\n  "project_id": "acme-42-prod"\n}').decode(),
        "weather-agent-production-v2",
        "https://hooks.acme.test/services/weather-agent-2026-11-28/notify",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "The database is db-7f3a9c12.eu2-west1.rds.acme.internal, its name orders2024, the role appuser.",
        "postgres://appuser@db-7f3a9c12.eu2-west1.rds.acme.internal:5432/orders2024?sslmode=require",
        "Server=tcp:acme42.database.windows.net,1433;Initial Catalog=orders;User ID=app01;Authentication=Default",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 is the head of most tokens",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lkLmFjbWUudGVzdCJ9.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
        "PKCS 8 begins with MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ in nearly every file",
        b64encode(b'{\n  "type": "service_account",\n  "project_id": "other"\n}').decode(),
        "the weather agent in production is weather-agent-production",
        "see https://hooks.acme.test/services/weather-agent-2026-11-27/notify",
    ],
)
def test_redact__connection_strings_tokens_and_names__share_no_part_with_others(secret, text) -> None:
    redact = Redactor([secret])
    assert redact(text) == text
    assert redact.mask_bytes(json.dumps({"response": text}).encode()).decode() == json.dumps({"response": text})


def test_redact__everything_recorded__is_masked_only_where_a_secret_is() -> None:
    """No verdict may depend on a mask: whatever the secrets are, what agents really said stays."""
    secrets = [LONG, "4f9a8b7c6d5e0f1a2b3c4d5e6f708192", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "weather-agent-prod"]
    secrets += [
        "postgres://app:hQ9vX2pLrT7mKz4w@db.acme.internal:5432/orders",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{LONG[8:51]}",
    ]
    redact = Redactor(secrets)
    folders = [ROOT / name for name in ("tests/unit", "tests/golden", "tests/fuzz/corpus", "examples")]
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".json", ".jsonl", ".md", ".xml", ".html"}
    ]
    texts = [path.read_text("utf-8", "replace") for path in files]
    assert len(texts) > 100
    masked = [str(path) for path, text in zip(files, texts, strict=True) if redact(text) != text]
    masked += [
        str(path) for path, text in zip(files, texts, strict=True) if redact.mask_bytes(text.encode()).decode() != text
    ]
    assert masked == []


@given(SECRETS, st.booleans())
def test_redact__json_that_is_masked__stays_json(secret, slashes) -> None:
    """A backslash that stays before a mask would be an escape that there is not."""
    body = json.dumps({"a": f"\n{secret}\\{secret}", secret: [1.5, True]})
    body = body.replace("/", "\\/") if slashes else body
    assert leaks(json.dumps(json.loads(Redactor([secret]).mask_bytes(body.encode()))), secret) == [] or re.fullmatch(
        r"[-+.\deE]+", secret
    )
