"""Large requests take turns, and what a body may hold is bounded before it becomes a model."""

import asyncio
import json
import time
from typing import Any

import pytest

from shoal.api.web.body import INLINE_BYTES, MOST_MEMBERS, MOST_VALUES
from shoal.api.web.turns import MOST_WAITING
from tests.integration.api.conftest import PREFIX, Api, definition, problem_of

WORKFLOW = f"{PREFIX}/projects/p/workflows/daily"


async def test_many_exports_of_a_caller_are_refused_and_other_requests_go_on(api: Api) -> None:
    await api.run()
    exports = [api.client.get(f"{PREFIX}/projects/p/export") for _ in range(4 * MOST_WAITING)]
    others = [api.client.get(f"{PREFIX}/workflows") for _ in range(3)]
    answers = await asyncio.gather(*exports, *others)
    found = [one.status_code for one in answers]
    assert found[len(exports) :] == [200] * 3
    assert set(found) == {200, 429}
    assert found.count(200) >= MOST_WAITING + 1 + 3
    refused = next(one for one in answers if one.status_code == 429)
    assert refused.headers["Retry-After"] == "2"
    assert "one after the other" in problem_of(refused, 429, "too-many-requests")["detail"]


@pytest.mark.parametrize("size", [INLINE_BYTES, 10])
async def test_a_large_body_takes_a_turn_and_a_small_one_none(api: Api, size: int) -> None:
    await api.run()
    body = definition(
        description="x" * 10,
    ) | {"parameters": {"text": "x" * size}}
    taken: list[object] = []
    large = api.services.large_requests
    turn = large.turn

    def noted(caller: object) -> Any:
        taken.append(caller)
        return turn(caller)

    object.__setattr__(api.services.large_requests, "turn", noted)
    answer = await api.client.put(f"{WORKFLOW}?dry_run=true", json=body)
    assert answer.status_code == 200, answer.text
    assert len(taken) == (size == INLINE_BYTES)


BODIES = {
    "unknown fields": (definition(**{f"u{n}": 1 for n in range(300_000)}), "300,001 members"),
    "parameters": (
        definition(parameters={f"u{n}": "1" for n in range(MOST_MEMBERS + 1)}),
        f"{MOST_MEMBERS + 1:,} members",
    ),
    "items": (definition(labels=[[1] * 1_000] * 1_001), f"more than {MOST_VALUES:,} values"),
}


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_of_too_many_values_is_refused(api: Api, body: str) -> None:
    content, says = BODIES[body]
    text = json.dumps(content)
    header = {"Content-Type": "application/json"}
    loop_s = time.thread_time()
    answer = await api.client.put(WORKFLOW, content=text, headers=header)
    assert time.thread_time() - loop_s < 0.3
    problem = problem_of(answer, 422, "invalid-request")
    assert says in problem["errors"][0]["message"]
