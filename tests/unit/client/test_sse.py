"""Server-sent events as the standard says."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.client.errors import ApiProblem
from shoal.client.libraries import httpx
from shoal.client.rest.operations.exchange import ApiAddress, ApiExchange
from shoal.client.rest.sse import Reconnecting, ServerEvent, parse, split_lines

STREAM = (
    ": a comment\n\n"
    "id: 1\nevent: log\ndata: one\ndata: two\n\n"
    "data:no space\n\n"
    "event: nothing\n\n"
    "id: 2\r\nevent: x\r\ndata: ü\u2028y\r\n\r\n"
    "unknown: field\rdata\r\r"
    "data: cut off\n"
)
EVENTS = [
    ServerEvent("log", "one\ntwo", "1"),
    ServerEvent("message", "no space", "1"),
    ServerEvent("x", "ü\u2028y", "2"),
    ServerEvent("message", "", "2"),
]


def test_events_are_read_as_the_standard_says() -> None:
    assert list(parse(split_lines([STREAM + "\n"[:0]]))) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_it_does_not_matter_how_the_stream_is_cut_into_pieces(cuts: list[int]) -> None:
    def pieces() -> Iterator[str]:
        start = 0
        for cut in sorted(cuts):
            yield STREAM[start:cut]
            start = cut
        yield STREAM[start:]

    assert list(parse(split_lines(pieces()))) == EVENTS


def test_an_event_before_the_first_id_has_the_one_we_came_with() -> None:
    assert [event.id for event in parse(["data: x", ""], "41")] == ["41"]


class Api:
    """Refuses with each of ``refusals``, then sends an event."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *refusals: httpx.Response) -> None:
        self.now_s = 1000.0
        self.refusals = list(refusals)
        monkeypatch.setattr("time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("time.sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    @contextmanager
    def connect(self, _last_id: str | None) -> Iterator[httpx.Response]:
        if self.refusals:
            refusal = self.refusals.pop(0)
            refusal.request = httpx.Request("GET", "http://x/events")
            raise ApiExchange(ApiAddress("http://x", "")).problem(refusal)
        yield httpx.Response(200, text="id: 1\ndata: x\n\n")


def test_stream_that_is_refused_for_now_is_opened_after_the_time_that_the_api_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = [httpx.Response(429, headers={"Retry-After": "5"}) for _ in range(2)]
    api = Api(monkeypatch, *refused)
    assert next(iter(Reconnecting(api.connect, 60.0))).data == "x"
    assert api.now_s == 1010.0


@pytest.mark.parametrize(("status", "after"), [(429, "61"), (403, "1")])
def test_stream_that_is_refused_for_good_or_for_longer_than_the_patience_ends(
    monkeypatch: pytest.MonkeyPatch, status: int, after: str
) -> None:
    api = Api(monkeypatch, httpx.Response(status, headers={"Retry-After": after}))
    with pytest.raises(ApiProblem):
        next(iter(Reconnecting(api.connect, 60.0)))
    assert api.now_s == 1000.0
