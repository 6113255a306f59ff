"""What changed where nothing failed, on a pull request on GitHub."""

from __future__ import annotations

from tests.support.agents import Exchange, agent


def calling(tool: str):
    """An agent that calls this tool for one case, and answers every case as is expected."""

    async def handler(exchange: Exchange) -> None:
        name = tool if exchange.json["message"].endswith("1") else "get_weather"
        exchange.answer({"response": "ok", "toolCalls": [{"name": name, "params": {}, "success": True}]})

    return handler


def test_pull_request__case_passes_and_calls_another_tool__is_in_a_fold_of_the_green_comment(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent(calling("get_weather")) as main, agent(calling("search_web")) as change:
        job.push(main.url)
        ended = job.pull_request(pull, change.url)
    assert ended.code == 0, ended.log
    (comment,) = github.state.comments.values()
    fold = comment.body.partition("<details><summary>1 case passes and behaves differently</summary>")[2]
    assert "| another tool | `get_weather` | `search_web` |" in fold.partition("</details>")[0]
    assert "behaves differently" in ended.summary
    with agent(calling("get_weather")) as main:
        job.pull_request(pull, main.url)
    (comment,) = github.state.comments.values()
    assert "behaves differently" not in comment.body
