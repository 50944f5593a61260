"""Templates of messages say what they should, and cost little whatever is written."""

import tracemalloc

import pytest

from shoal.runtime.templates import TEMPLATES, TemplateError

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
    assert TEMPLATES.render(template, FACTS) == said


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
        TEMPLATES.render(template, FACTS)


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
    TEMPLATES.check("what Liquid imports is not the template's")
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            TEMPLATES.render(template, FACTS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
