"""Templates of messages say what they should, and cost little whatever is written."""

import contextlib
import time
import tracemalloc
from collections.abc import Callable

import pytest

from shoal.runtime.side.process import SideProcesses
from shoal.runtime.side.templates import WORK, TemplateError, Templates, check, render

FACTS = {
    "subject": "daily failed",
    "total": 2,
    "alerts": [
        {"workflow": "daily", "at": "2026-03-02T07:30:00+00:00", "task": None},
        {"workflow": "load", "at": "2026-03-02T07:31:00+00:00", "task": "a"},
    ],
}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ subject | upcase }}", "DAILY FAILED"),
        ("{{ alerts | map: 'workflow' | join: ', ' }}", "daily, load"),
        ("{% for a in alerts %}{{ a.workflow | truncate: 3, '' }};{% endfor %}", "dai;loa;"),
        ("{{ alerts[0].at | date: '%H:%M' }}", "07:30"),
        ("{{ alerts[0].task | default: 'no task' }}", "no task"),
        ("{% if total > 1 %}{{ total | minus: 1 }} more{% endif %}", "1 more"),
        ("{{ '<b>' | escape }}", "&lt;b&gt;"),
    ],
)
def test_what_templates_say(template: str, said: str) -> None:
    assert render(template, FACTS) == said


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{{ subject.__class__ }}", "is undefined"),
        ("{% for", "missing tag name"),
        ("{{ 'x' | nonsense }}", "nonsense"),
        ("{% include 'x' %}", "a template includes no others"),
        ("{% render 'x' %}", "a template includes no others"),
        ("{{ 5 | divided_by: 0 }}", "divide by 0"),
        ("{{ 'x' | sum }}", "InvalidOperation"),
    ],
)
def test_mistakes_are_told(template: str, says: str) -> None:
    with pytest.raises(TemplateError, match=says):
        render(template, FACTS)


TEN = "a" * 10
GREEDY = [
    "{% for i in (1..1000) %}{% for j in (1..1000) %}x{% endfor %}{% endfor %}",
    "{{ 'a'" + f" | replace: 'a', '{TEN}'" * 12 + " }}",
    "{% assign s = '" + TEN + "' %}" + "{% assign s = s | append: s %}" * 40,
    "{% capture s %}aa{% endcapture %}" + "{% capture s %}{{ s }}{{ s }}{% endcapture %}" * 40,
    "{% assign l = 'a,b' | split: ',' %}" + "{% assign l = l | concat: l %}" * 40,
    "{{ '" + "x" * 5000 + "' | split: '' | join: '" + "y" * 5000 + "' }}",
    "{{ '" + "<script" * 2000 + "' | strip_html }}",
    "{{ 'now' | date: '%999999999d' }}{{ nothing }}",
]


@pytest.mark.parametrize("template", GREEDY, ids=range(len(GREEDY)))
def test_no_template_takes_much(template: str) -> None:
    check("what Liquid imports is not the template's")
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            render(template, FACTS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


SOME = "{% assign s = 'x' %}" + "{% assign s = s | append: s %}" * 15  # 32,768 characters


def test_all_filters_of_a_template_share_a_budget() -> None:
    """Each of them is within its own limit."""
    template = SOME + "{{ s" + " | split: '' | sort | join: ''" * 150 + " | size }}"
    usual_s, attack_s = cpu_s(lambda: render(SOME * 20, {})), cpu_s(lambda: render(template, {}))
    assert attack_s < 20 * usual_s + 0.05
    with pytest.raises(TemplateError, match=f"more than {WORK:,} characters together"):
        render(template, {})


def cpu_s(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    with contextlib.suppress(TemplateError):
        work()
    return time.process_time() - began_s


@pytest.mark.parametrize("use", ["join: ''", "size", "reverse", "sort", "sum", "map: 'a'"])
def test_a_range_is_as_long_as_what_is_in_it(use: str) -> None:
    with pytest.raises(TemplateError, match="more than 100,000 characters"):
        render("{{ (1..99999999999999999999) | " + use + " }}", {})


# What holds the interpreter in C code, or takes all memory: only a process can be ended.
LONG = {
    "braces": "{" * 20_000,
    "empty lines": "{% liquid" + "\n" * 19_000 + " %}",
    "loops of nothing": "{% for i in (1..10000) %}"
    + ("{% if " + " or ".join(["false"] * 200) + " %}{% endif %}") * 5
    + "{% endfor %}",
    "assignments": "{% for i in (1..10000) %}" + "{% assign a = i %}" * 1_000 + "{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("template", LONG.values(), ids=LONG)
async def test_a_template_that_takes_long_ends_with_its_process(template: str) -> None:
    async with SideProcesses(1) as processes:
        templates = Templates(processes)
        ours_s = time.process_time()
        with pytest.raises(TemplateError, match="takes too much: it takes more than"):
            await templates.render("default", template, FACTS)
        assert time.process_time() - ours_s < 0.2
        assert await templates.render("default", "{{ subject }}", FACTS) == "daily failed"
        with pytest.raises(TemplateError, match="missing tag name"):
            await templates.check("default", "{% for")
