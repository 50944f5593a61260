"""Server-sent events as the standard says."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from shoal.client.rest.sse import ServerEvent, parse, split_lines

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
