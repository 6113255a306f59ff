"""What the source of a FastAPI route says about its requests and responses, and what it does not."""

from __future__ import annotations

import warnings

import pytest

from eval_gate.cli.starter.route_contract import RouteContract, read_route_contract
from tests.support.bounds import within_cpu

ASK = "class Ask(BaseModel):\n    question: str\n"


def read(text: str, parameters: str = "body: Ask", returns: str = "", decorator: str = "") -> RouteContract:
    route = f'@app.post("/ask"{decorator})\nasync def ask({parameters}){returns}: ...\n'
    found = read_route_contract(f"{text}\n{route}", "/ask")
    assert found is not None
    return found


def fields(*lines: str) -> str:
    return "class Ask(BaseModel):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "prompt", "others"),
    [
        (["question: str"], "question", ()),
        (["message: str"], "message", ()),
        (["utterance: str", "top_k: int = 3"], "utterance", ()),
        (["query: str", "session_id: str"], "query", ("session_id",)),
        (["tenant: str", "prompt: str | None = None"], "prompt", ("tenant",)),
        (["text: Optional[str] = None"], "text", ()),
        (["message: str", "prompt: str = 'You are a desk.'"], "message", ()),
        (["q: str = Field(..., alias='question')"], "question", ()),
        (["q: str = Field(validation_alias='query', max_length=9)"], "query", ()),
        (["q: Annotated[str, Field(alias='query')]"], "query", ()),
        (["message: str", "steps: list[int] = Field(default_factory=list)"], "message", ()),
        (["model_config: ConfigDict = {}", "_hidden: str", "question: str"], "question", ()),
        (["first: str", "second: str"], None, ()),
        (["query: str", "input: str"], None, ()),
        (["messages: list[str]"], None, ()),
        (["frage_ä: str"], None, ()),
        (["q: str = Field(alias='a: b\\n- c')"], None, ()),
        (["q: str = Field(alias=NAME)"], None, ()),
        (["model_config = ConfigDict(alias_generator=to_camel)", "user_question: str"], None, ()),
    ],
)
def test_prompt_field__of_a_request_model__is_its_only_required_text_or_has_a_usual_name(lines, prompt, others) -> None:
    found = read(fields(*lines))
    assert (found.prompt_field, found.other_fields) == (prompt, others)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (ASK, "request: Request, body: Ask"),
        (ASK, "body: Annotated[Ask, Body()]"),
        (ASK.replace("BaseModel", "pydantic.BaseModel"), "body: Ask"),
        ("class Base(BaseModel):\n    trace: int = 0\nclass Ask(Base):\n    question: str\n", "body: Ask"),
        ("class Base(BaseModel):\n    question: str\nclass Ask(Base):\n    trace: int = 0\n", "*, body: Ask"),
    ],
)
def test_prompt_field__model_in_another_form__is_found(text, parameters) -> None:
    assert read(text, parameters).prompt_field == "question"


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (ASK.replace("(BaseModel)", ""), "body: Ask"),
        ("from models import Ask\n", "body: Ask"),
        (ASK, "body: dict"),
        (ASK, "body: Ask, more: Ask"),
        (ASK, "body: Ask = Body(embed=True)"),
        (ASK, "body: Ask, tone: str = Body()"),
        (ASK, "body: Ask = Depends()"),
        (ASK, "body: Annotated[Ask, Query()]"),
    ],
)
def test_prompt_field__body_that_is_not_one_model_of_the_file__is_unknown(text, parameters) -> None:
    assert read(text, parameters).prompt_field is None


@pytest.mark.parametrize(
    ("text", "parameters", "header"),
    [
        ("", "key: str = Header(alias='X-Desk-Key')", "X-Desk-Key"),
        ("", "key: Annotated[str, Header(alias='X-Desk-Key')]", "X-Desk-Key"),
        ("", "x_api_key: str = Header(...)", "X-Api-Key"),
        ("", "x_api_key: str | None = Header(default=None)", "X-Api-Key"),
        ("", "x_api_key: str = Header(convert_underscores=False)", "x_api_key"),
        ("", "x_tenant: str = fastapi.Header()", "X-Tenant"),
        ("", "key: str = Depends(APIKeyHeader(name='X-Desk-Key'))", "X-Desk-Key"),
        ("", "key: str = Security(APIKeyHeader(name='X-Desk-Key', auto_error=False))", "X-Desk-Key"),
        ("scheme = APIKeyHeader(name='X-Desk-Key')", "key: str = Security(scheme)", "X-Desk-Key"),
        ("scheme: APIKeyHeader = APIKeyHeader(name='X-Desk-Key')", "key: str = Security(scheme)", "X-Desk-Key"),
        ("", "login: X = Depends(HTTPBearer())", "Authorization"),
        ("bearer = HTTPBearer()", "login: Annotated[X, Depends(bearer)]", "Authorization"),
        ("bearer = HTTPBearer()\nLogin = Annotated[X, Depends(bearer)]", "login: Login", "Authorization"),
        ("def check(x_api_key: str = Header()): ...", "_: None = Depends(check)", "X-Api-Key"),
        ("key = APIKeyHeader(name='X-K')\nasync def check(v=Security(key)): ...", "_=Depends(check)", "X-K"),
    ],
)
def test_headers__key_in_each_form__are_found(text, parameters, header) -> None:
    assert read(text, parameters).headers == (header,)


def test_headers__dependencies_of_decorator_and_app__are_found_once_each() -> None:
    text = "key = APIKeyHeader(name='X-K')\napp = FastAPI(dependencies=[Depends(key)])\n"
    decorator = ", dependencies=[Security(HTTPBearer()), Depends(APIKeyHeader(name='x-k'))]"
    assert [name.lower() for name in read(text, "", decorator=decorator).headers] == ["authorization", "x-k"]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("", "user_agent: str | None = Header(default=None)"),
        ("", "x_count: int = Header()"),
        ("", "key: str = Header(alias='X-Key: 1\\nHost')"),
        ("", "key: str = Header(alias=NAME)"),
        ("", "key: str = Security(APIKeyHeader(name='a b'))"),
        ("", "key: str = Security(APIKeyQuery(name='key'))"),
        ("def one(x_api_key=Header()): ...\ndef two(a=Depends(one)): ...", "_=Depends(two)"),
        ("def one(a=Depends(one)): ...", "_=Depends(one)"),
        ("", "_=Depends(elsewhere)"),
    ],
)
def test_headers__nothing_certain__are_unknown(text, parameters) -> None:
    assert read(text, parameters).headers == ()


REPLY = "class Data(BaseModel):\n    answer: str\nclass Reply(BaseModel):\n    data: Data\n    ms: int\n"


@pytest.mark.parametrize(
    ("text", "returns", "decorator", "path"),
    [
        ("class Reply(BaseModel):\n    reply: str\n    ms: int\n", " -> Reply", "", "reply"),
        ("class Reply(BaseModel):\n    id: str\n    answer: str\n", " -> Reply", "", "answer"),
        ("class Reply(BaseModel):\n    text: str\n    response: str\n", " -> Reply", "", "response"),
        ("class Reply(BaseModel):\n    out: str = Field(serialization_alias='o')\n", " -> Reply", "", "o"),
        (REPLY, " -> Reply", "", "data.answer"),
        (REPLY, "", ", response_model=Reply", "data.answer"),
        (REPLY, " -> dict", ", response_model=Reply", "data.answer"),
        (REPLY + "    more: Data\n", " -> Reply", "", None),
        ("class Reply(BaseModel):\n    text: str\n    answer: str\n", " -> Reply", "", None),
        ("class Reply(BaseModel):\n    reply: Reply\n", " -> Reply", "", None),
        ("", " -> dict", "", None),
    ],
)
def test_response_path__of_a_response_model__leads_to_its_text(text, returns, decorator, path) -> None:
    assert read(text, "", returns, decorator).response_path == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def broken(:\n",
        "\0",
        '@app.get("/ask")\ndef ask(): ...\n',
        '@app.post("/other")\ndef ask(): ...\n',
        "x = " + "-" * 100_000 + "1",
        "x = " + "(" * 10_000,
        "x = a" + ".b" * 60_000,
    ],
    ids=["empty", "broken", "null", "get", "other", "signs", "brackets", "members"],
)
def test_contract__no_source_with_this_route__is_none(text) -> None:
    with within_cpu(5, "reading"):
        assert read_route_contract(text, "/ask") is None


def test_contract__source_that_is_written_to_be_slow__is_read_all_the_same() -> None:
    chain = "class A0(BaseModel):\n    x: str\n" + "".join(f"class A{n}(A{n - 1}): ...\n" for n in range(1, 4000))
    inner = "class In(BaseModel):\n" + "".join(f"    f{n}: str\n" for n in range(4000))
    outer = "class Out(BaseModel):\n" + "".join(f"    g{n}: In\n" for n in range(4000))
    with within_cpu(5, "reading"):
        found = read(chain + inner + outer, ", ".join(f"p{n}: A3999" for n in range(4000)), " -> Out")
    assert found == RouteContract()


def test_contract__source_that_would_do_something__is_not_executed(tmp_path) -> None:
    mark = tmp_path / "executed"
    text = f"open({str(mark)!r}, 'w')\nraise SystemExit\n{ASK}"
    assert read(text).prompt_field == "question"
    assert not mark.exists()


def test_contract__source_with_an_invalid_escape__warns_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read('x = "\\d"\n' + ASK).prompt_field == "question"


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (RouteContract(), True),
        (RouteContract("message", response_path="response"), True),
        (RouteContract("question"), False),
        (RouteContract("message", ("session",)), False),
        (RouteContract(headers=("X-Api-Key",)), False),
        (RouteContract(response_path="answer"), False),
    ],
)
def test_contract__compared_with_our_own_protocol__differs_in_anything_known(contract, expected) -> None:
    assert contract.is_own_protocol is expected
