"""The audit's chain finds every change; floods are counted."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shoal.core.access.audit.chain import GENESIS, PRUNED, ChainHead, Verifier, link_hash
from shoal.core.access.audit.entries import AuditEntry, NewEntry, Outcome
from shoal.core.access.audit.throttle import MOST_KINDS, PERIOD_S, Throttle

AT = datetime(2026, 3, 1, 6, 30, tzinfo=UTC)
Chain = list[dict[str, Any]]


def entry(number: int, **changes: Any) -> AuditEntry:
    known: dict[str, Any] = {"action": "secret.set", "principal": "ada", "project": "p"}
    return AuditEntry(at=AT + timedelta(seconds=number), id=number, **{**known, **changes})


def chained(entries: list[AuditEntry]) -> Chain:
    previous, found = GENESIS, []
    for position, one in enumerate(entries, 1):
        link = {"position": position, "previous": previous, "entry": one.document()}
        previous = link_hash(previous, one.document())
        found.append({**link, "hash": previous})
    return found


def findings(chain: Chain, *known: ChainHead) -> list[str]:
    verifier = Verifier(known)
    for link in chain:
        verifier.read(link)
    return verifier.end()


def head(chain: Chain, position: int = -1) -> ChainHead:
    link = chain[position]
    return ChainHead(link["position"], link["hash"])


def whole() -> Chain:
    return chained([entry(number) for number in range(1, 8)])


def test_untouched_chain_has_no_findings() -> None:
    assert findings(whole()) == []
    assert findings(whole(), head(whole()), head(whole(), 2)) == []
    assert findings([]) == []


def _set(field: str, value: Any) -> Callable[[Chain], None]:
    return lambda chain: chain[3]["entry"].__setitem__(field, value)


def _missing(chain: Chain) -> None:
    chain[3]["entry"] = None


def _deleted(chain: Chain) -> None:
    del chain[3]


def _deleted_and_renumbered(chain: Chain) -> None:
    del chain[3]
    for position, link in enumerate(chain, 1):
        link["position"] = position


def _moved_away(chain: Chain) -> None:
    for link in chain[3:]:
        link["position"] += 10


def _inserted(chain: Chain) -> None:
    chain.insert(3, {**chain[3], "entry": entry(99).document()})
    for position, link in enumerate(chain, 1):
        link["position"] = position


def _swapped(chain: Chain) -> None:
    chain[3]["entry"], chain[4]["entry"] = chain[4]["entry"], chain[3]["entry"]


def _hash_changed(chain: Chain) -> None:
    chain[3]["hash"] = "f" * 64


def _begins_later(chain: Chain) -> None:
    del chain[:3]


@pytest.mark.parametrize(
    "change",
    [
        *(
            pytest.param(_set(name, value), id=name)
            for name, value in {
                "id": 77,
                "at": "2026-03-01T06:30:09.000000+00:00",
                "action": "secret.delete",
                "outcome": "refused",
                "principal_id": 4,
                "principal": "bob",
                "address": "10.9.9.9",
                "request_id": "r",
                "project": "q",
                "object": "other",
                "detail": {"count": 1},
            }.items()
        ),
        _missing,
        _deleted,
        _deleted_and_renumbered,
        _moved_away,
        _inserted,
        _swapped,
        _hash_changed,
        _begins_later,
    ],
)
def test_every_change_is_found(change: Callable[[Chain], None]) -> None:
    chain = whole()
    change(chain)
    assert findings(chain)


def test_every_field_of_an_entry_is_hashed() -> None:
    assert set(entry(1).document()) == set(AuditEntry.__dataclass_fields__)


def test_truncated_end_and_rewritten_tail_are_found_with_a_head_that_was_noted() -> None:
    noted = head(whole())
    assert findings(whole()[:-1], noted)
    rewritten = chained([entry(number, principal="eve") for number in range(1, 8)])
    assert findings(rewritten) == []
    assert findings(rewritten, noted)


def test_time_is_hashed_in_utc_whatever_zone_it_came_in() -> None:
    moved = entry(1).at.astimezone(timezone(timedelta(hours=3)))
    assert (
        AuditEntry(at=moved, action="a.b", id=1).document()
        == AuditEntry(at=entry(1).at, action="a.b", id=1).document()
    )


def test_pruned_beginning_is_vouched_for_by_an_entry_behind_it() -> None:
    entries = [entry(number) for number in range(1, 6)]
    third = head(chained(entries), 2)
    says = {"position": third.position, "hash": third.hash}
    chain = chained([*entries, entry(6, action=PRUNED, detail=says)])
    assert findings(chain[3:]) == []
    assert findings(chain[2:]), "more is there than was said"
    assert findings(chain[4:]), "less is there than was said"
    lie = chained([*entries, entry(6, action=PRUNED, detail={**says, "hash": "f" * 64})])
    assert findings(lie[3:])
    assert findings(chain[3:], third) == []
    assert findings(chain[3:], ChainHead(2, "e" * 64)), "noted, gone, and nobody knows"


def test_head_is_read_as_it_is_printed() -> None:
    noted = head(whole())
    assert ChainHead.parse(str(noted)) == noted
    for bad in ("", "12", "x:" + "0" * 64, "12:abc"):
        with pytest.raises(ValueError, match="not a head"):
            ChainHead.parse(bad)


# -- floods -----------------------------------------------------------------------------------


def refusal(**changes: Any) -> NewEntry:
    known: dict[str, Any] = {"action": "secret.set", "principal": "eve", "project": "p"}
    return NewEntry(at=AT, outcome=Outcome.REFUSED, **{**known, **changes})


def test_first_refusal_is_due_at_once_and_the_others_are_counted() -> None:
    throttle = Throttle()
    for second in range(10):
        throttle.add(refusal(object=str(second)), second)
    [first] = throttle.take(10)
    assert (first.object, first.detail) == ("0", {})
    assert throttle.take(PERIOD_S - 1) == []
    [others] = throttle.take(PERIOD_S)
    assert (others.object, others.detail) == ("9", {"count": 9})
    throttle.add(refusal(), 2 * PERIOD_S)
    assert len(throttle.take(2 * PERIOD_S)) == 1


def test_kinds_are_kept_apart_and_bounded() -> None:
    throttle = Throttle()
    for number in range(MOST_KINDS + 50):
        throttle.add(refusal(principal=f"eve-{number}"), 0)
    assert len(throttle.take(0)) == MOST_KINDS + 1
    [others] = throttle.take(0, everything=True)
    assert others.detail == {"count": 49}
    assert others.principal == ""


def test_what_is_counted_is_not_lost_at_the_end() -> None:
    throttle = Throttle()
    for _ in range(3):
        throttle.add(refusal(), 0)
    due = throttle.take(0, everything=True)
    assert [one.detail for one in due] == [{}, {"count": 2}]
    assert throttle.take(0, everything=True) == []
