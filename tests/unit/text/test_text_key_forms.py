"""What looks like a key: found by the forms of gitleaks' rules and by entropy, and nothing that agents really said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from eval_gate.text import key_forms
from eval_gate.text.key_forms import HIGH_ENTROPY, find_keys, find_known_forms, mask_keys
from eval_gate.text.mask import MASK
from tests.support.bounds import within_cpu
from tests.support.cut_key_rules import translate_pattern

ROOT = Path(__file__).parents[3]
RULES = json.loads(Path(key_forms.__file__).with_name("key_rules.json").read_text())["rules"]
RANDOM = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6dE9fG2hJ5kL8mN1pQ4rS7tU0vW3x"
HEX = "4f9a8b7c6d5e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192"
KEYS = {
    "github-pat": f"ghp_{RANDOM[:36]}",
    "github-app-token": f"ghs_{RANDOM[:36]}",
    "aws-access-token": "AKIAQ3EGTR5NLMP2XYZA",
    "stripe-access-token": f"sk_live_{RANDOM[:24]}",
    "anthropic-api-key": f"sk-ant-api03-{(RANDOM * 2)[:93]}AA",
    "openai-api-key": f"sk-{RANDOM[:20]}T3BlbkFJ{RANDOM[20:40]}",
    "gcp-api-key": f"AIza{RANDOM[:35]}",
    "slack-bot-token": "xoxb-123456789012-1234567890123-aB3dE6gH9jK2mN5pQ8rS1tU4",
    "gitlab-pat": f"glpat-{RANDOM[:20]}",
    "npm-access-token": f"npm_{RANDOM[:36]}",
    "sendgrid-api-token": f"SG.{RANDOM[:22]}.{RANDOM[:43]}",
    "atlassian-api-token": f"ATATT3{(RANDOM * 3)[:186]}",
    "digitalocean-pat": f"dop_v1_{HEX}",
    "linear-api-key": f"lin_api_{RANDOM[:40]}",
    "jwt": f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{RANDOM[:43]}",
    "private-key": f"-----BEGIN PRIVATE KEY-----\n{RANDOM}\n{RANDOM}\n-----END PRIVATE KEY-----",
    HIGH_ENTROPY: "sk-live-A9b8C7d6E5f4G3h2I1j0K9l8M7n6O5p4",
}
AROUND = ["your key is {}", "use {}.", '{{"key": "{}"}}', "({}), or", "`{}`", "密钥{}。", 'say \\"{}\\"', "a={};b"]


@pytest.mark.parametrize("form", KEYS)
@pytest.mark.parametrize("around", AROUND)
def test_key_forms__key_in_prose_json_or_code__is_masked_whole(form, around) -> None:
    text = around.format(KEYS[form])
    shown = mask_keys(text)
    assert MASK in shown
    assert KEYS[form][-12:] not in shown
    assert form in {found.form for found in find_keys(text)}
    assert bool(list(find_known_forms(text))) is (form != HIGH_ENTROPY)


@pytest.mark.parametrize(
    "text",
    [
        "postgres://app@db-7f3a9c.eu-west-1.rds.amazonaws.com:5432/orders?sslmode=require",
        "Server=tcp:acme.database.windows.net,1433;Initial Catalog=orders;Authentication=Active Directory Default;",
        "mongodb+srv://cluster0.ab1cd.mongodb.net/orders?retryWrites=true&w=majority",
        "AKIAIOSFODNN7EXAMPLE",  # the example of AWS's documentation
        "commit 5a583a68b4f9a8b7c6d5e0f1a2b3c4d5e6f70819, run 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "chatcmpl-9x8y7z, call_1a2b3c4d5e6f, toolu_01A2B3C4D5E6, req_011CQ",
        "https://example.com/docs/How-To-Configure-The-Weather-Agent-In-12-Steps-2026.html",
        "sk-test, ghp_, AKIA and eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 are how keys begin",
        "getUserAccountSubscriptionByCustomerIdentifierAndRegion2(customerId)",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    ],
)
def test_key_forms__what_only_resembles_a_key__stays(text) -> None:
    assert mask_keys(text) == text


def test_key_forms__everything_recorded_of_agents_and_tools__has_no_false_mask() -> None:
    """Results of other tools, traces, provider responses, recorded runs and golden files, and all documentation."""
    suffixes = {".json", ".jsonl", ".xml", ".trx", ".md", ".txt", ".html", ".yaml", ".yml", ".csv", ".eval"}
    folders = [ROOT / name for name in ("tests", "examples", "benchmarks", "docs")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix in suffixes]
    # digests of packages are as random as keys are, and no agent says them
    files = [path for path in files if path.name != "package-lock.json" and "node_modules" not in path.parts]
    assert len(files) > 400
    found = {str(path): list(find_keys(path.read_text("utf-8", "replace"))) for path in files}
    assert {name: keys for name, keys in found.items() if keys} == {}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_key_rules__each__has_a_pattern_of_python_and_words_that_say_when_to_try_it(rule) -> None:
    re.compile(rule["pattern"], re.ASCII)
    assert rule["keywords"]
    assert all(word == word.lower() and len(word) > 1 for word in rule["keywords"])


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY " * 40_000,
        "-----BEGIN PRIVATE KEY-----" * 30_000,
        f"ey{'a' * 17}." * 40_000,
        f"ey{'a/' * 400_000}",
        "xapp-1-" * 120_000,
        "glpat-" + "a-" * 400_000,
        "aA1" * 300_000,
        "airtable pat" * 80_000,
        " ".join(word for rule in RULES for word in rule["keywords"]) * 300,
    ],
    ids=lambda text: text[:24],
)
def test_key_forms__a_megabyte_made_to_be_slow__takes_no_time(text) -> None:
    with within_cpu(4, "looking for keys in a megabyte"):
        mask_keys(text)


def test_translate_pattern__notation_of_go__is_python_s() -> None:
    assert translate_pattern(r"a(b(?i)[[:alnum:]]+)c\z") == r"a(b(?i:[A-Za-z0-9]+))c\Z"
    assert translate_pattern(r"""\b(k_[a-z]{3})(?:[\x60'"\s;]|\\[nr]|$)""") == r"\b(k_[a-z]{3})(?![0-9A-Za-z_])"
