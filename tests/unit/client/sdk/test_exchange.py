"""What a connection to an API is made with."""

import ssl

import httpx
import pytest

from shoal.client.errors import ApiProblem, ApiUnreachable
from shoal.client.rest.operations.call import part
from shoal.client.rest.operations.exchange import ApiAddress, ApiExchange


def verify(url: str) -> ssl.SSLContext | bool:
    found: ssl.SSLContext | bool = ApiExchange(ApiAddress(url, "")).options({})["verify"]
    return found


def test_our_own_machine_is_asked_without_authorities_and_nobody_is_trusted() -> None:
    trusted = verify("http://127.0.0.1:8765")
    assert isinstance(trusted, ssl.SSLContext)
    assert trusted.verify_mode == ssl.CERT_REQUIRED
    assert trusted.check_hostname
    assert trusted.get_ca_certs() == []


@pytest.mark.parametrize("url", ["https://127.0.0.1:8765", "http://shoal.example", "https://x"])
def test_all_others_have_to_prove_who_they_are_to_a_public_authority(url: str) -> None:
    assert verify(url) is True


def test_a_name_is_one_part_of_a_path() -> None:
    names = {"a b": "a%20b", "../x": "..%2Fx", "..": "%2E%2E", "a/b?c#d": "a%2Fb%3Fc%23d"}
    assert {name: part(name) for name in names} == names


def starting(pauses_s: tuple[float, ...]) -> ApiExchange:
    return ApiExchange(ApiAddress("http://127.0.0.1:1", "look", start_pauses_s=pauses_s))


def test_api_that_is_starting_is_waited_for_whatever_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = starting((0.1, 0.2)).steps("/commands", may_repeat=False)
    assert next(steps) is None
    for pause_s in (0.1, 0.2):
        waited_s = steps.throw(httpx.ConnectError("refused"))
        assert waited_s == pytest.approx(pause_s, rel=0.21)
        assert next(steps) is None
    with pytest.raises(StopIteration) as answered:
        steps.send(httpx.Response(200))
    assert answered.value.value.status_code == 200
    assert [record.getMessage() for record in caplog.records] == [
        "the API at http://127.0.0.1:1 is starting; waiting for up to 0 s"
    ]


def test_api_that_does_not_start_in_time_is_unreachable() -> None:
    steps = starting((0.1,)).steps("/health", may_repeat=False)
    next(steps)
    steps.throw(httpx.ConnectError("refused"))
    next(steps)
    with pytest.raises(ApiUnreachable, match="look"):
        steps.throw(httpx.ConnectError("refused"))


def test_api_that_was_there_is_not_taken_for_one_that_is_starting() -> None:
    exchange = starting((9.0, 9.0))
    steps = exchange.steps("/health", may_repeat=True)
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(httpx.Response(200))
    steps = exchange.steps("/health", may_repeat=True)
    next(steps)
    waited_s = steps.throw(httpx.ConnectError("refused"))
    assert waited_s == pytest.approx(0.1, rel=0.21)


@pytest.mark.parametrize("may_repeat", [False, True])
def test_what_is_refused_for_now_is_sent_again_after_the_time_that_the_api_names(
    may_repeat: bool,
) -> None:
    steps = ApiExchange(ApiAddress("http://x", "")).steps("/export", may_repeat=may_repeat)
    assert next(steps) is None
    pause_s = steps.send(httpx.Response(429, headers={"Retry-After": "2"}))
    assert pause_s is not None
    assert 2.0 <= pause_s <= 3.0
    assert steps.send(httpx.Response(200)) is None
    with pytest.raises(StopIteration) as ended:
        steps.send(httpx.Response(200))
    assert ended.value.value.status_code == 200


@pytest.mark.parametrize("after", ["3600", "", "soon"])
def test_a_refusal_that_names_no_time_or_a_long_one_is_an_error(after: str) -> None:
    steps = ApiExchange(ApiAddress("http://x", "")).steps("/export", may_repeat=False)
    next(steps)
    request = httpx.Request("GET", "http://x/export")
    with pytest.raises(ApiProblem) as error:
        steps.send(httpx.Response(429, headers={"Retry-After": after}, request=request))
    assert error.value.status == 429


def test_refusals_for_now_come_to_an_end() -> None:
    steps = ApiExchange(ApiAddress("http://x", "", retry_pauses_s=(0.1,))).steps(
        "/export", may_repeat=False
    )
    refused = httpx.Response(
        429, headers={"Retry-After": "1"}, request=httpx.Request("GET", "http://x/export")
    )
    next(steps)
    steps.send(refused)
    next(steps)
    with pytest.raises(ApiProblem):
        steps.send(refused)
