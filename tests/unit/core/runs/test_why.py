"""What the layers say, in examples."""

from shoal.core.runs.why import findings as why
from shoal.core.runs.why.findings import Layer


def _texts(findings: object) -> list[tuple[Layer, bool, str]]:
    assert hasattr(findings, "__iter__")
    return [(f.layer, f.waits, f.text) for f in findings]


def test_dependencies_name_what_was_found_and_what_is_missing() -> None:
    def interval(start: str, verdict: str, *runs: tuple[int, str]) -> dict[str, object]:
        found = [{"instance": i, "state": s} for i, s in runs]
        return {"from": start, "until": "", "verdict": verdict, "runs": found}

    detail = {
        "items": [
            {
                "project": "etl",
                "workflow": "orders",
                "task": "load",
                "date": "last2Days",
                "exists": True,
                "intervals": [
                    interval("2026-01-01", "SUCCESS", (7, "SUCCEEDED")),
                    interval("2026-01-02", "WAIT", (9, "RUNNING"), (8, "FAILED")),
                    interval("2026-01-03", "WAIT"),
                ],
            },
            {"project": "etl", "workflow": "gone", "task": None, "exists": False},
        ]
    }
    found = list(why.of_dependencies(detail))
    assert _texts(found) == [
        (
            Layer.DEPENDENCY,
            waits,
            f"task load of etl/orders from 2026-01-0{day} (last2Days): {best}",
        )
        for day, waits, best in [
            (1, False, "instance 7 is SUCCEEDED"),
            (2, True, "instance 9 is RUNNING"),
            (3, True, "no run yet"),
        ]
    ] + [(Layer.DEPENDENCY, True, "there is no workflow etl/gone")]
    assert [f.instance_id for f in found] == [7, 9, None, None]


def test_children_that_work_are_named_and_the_others_counted() -> None:
    children = {str(i): {"state": "SUCCEEDED", "instance": i} for i in range(3)}
    children |= {"3": {"state": "RUNNING", "instance": 30}, "4": {"state": "STARTING"}}
    found = list(why.of_children({"items": list("abcdefg"), "children": children}))
    assert [f.text for f in found] == [
        "3 of 7 items have succeeded, 5 were started",
        "instance 30 is RUNNING",
        "an instance is being started",
    ]
    many = {str(i): {"state": "RUNNING", "instance": i} for i in range(9)}
    assert list(why.of_children({"items": [1] * 9, "children": many}))[-1].text == (
        "… and 4 more instances"
    )


def test_quarantined_children_are_named_first() -> None:
    children: dict[str, dict[str, object]] = {
        str(i): {"state": "RUNNING", "instance": i} for i in range(9)
    }
    children["8"]["quarantined"] = True
    children["7"] = {"state": "STARTING", "quarantined": True}
    found = {
        one.instance_id: one
        for one in [*why.of_children({"items": [1] * 9, "children": children})][1:3]
    }
    assert found[8].text == (
        "instance 8 is quarantined and holds no place; `shoal why 8` shows the reason"
    )
    assert found[None].text == (
        "the start of an instance is quarantined and holds no place; `shoal status` shows the "
        "reason"
    )
    assert {one.code for one in found.values()} == {"child.quarantined"}


def test_workers_that_take_nothing_say_why() -> None:
    slots = [("w1", 4, 4, None), ("w2", 4, 1, "disk full")]
    found = list(why.of_workers("etl", slots))
    assert _texts(found) == [
        (Layer.WORKERS, True, "worker w2 takes nothing: disk full"),
        (Layer.WORKERS, True, "2 workers in group 'etl' have 0 free slots"),
    ]
    assert [f.waits for f in why.of_workers("etl", [("w1", 4, 1, None)])] == [False]
