"""What of an output file and of a log counts as outputs, and what is refused with its line."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.definition.fields import PARAMETER_PATTERN
from shoal.core.definition.parameters import RESERVED_PATTERN, reserved_parameter
from shoal.worker.supervisor.shim import outputs
from shoal.worker.supervisor.shim.outputs import (
    LONGEST_VALUE,
    MOST,
    MOST_BYTES,
    NAME,
    BadOutput,
    collect,
)

NAMES = st.from_regex(PARAMETER_PATTERN, fullmatch=True).filter(lambda n: not reserved_parameter(n))
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


def found(
    folder: Path,
    file: str | bytes | None = None,
    log: str | bytes = "",
    masks: tuple[str, ...] = (),
) -> dict[str, str]:
    """The outputs of an attempt with this file and this log."""
    output_path, log_path = folder / "output", folder / "x.log"
    output_path.unlink(missing_ok=True)
    if file is not None:
        output_path.write_bytes(file if isinstance(file, bytes) else file.encode())
    log_path.write_bytes(log if isinstance(log, bytes) else log.encode())
    return collect(str(output_path), str(log_path), RESERVED_PATTERN, masks)


def refusal(folder: Path, file: str | bytes | None = None, log: str | bytes = "") -> str:
    with pytest.raises(BadOutput) as caught:
        found(folder, file, log)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (None, {}),
        ("", {}),
        ("\n \n\t\n", {}),
        ("a=1", {"a": "1"}),
        ("a=1\nb=\n", {"a": "1", "b": ""}),
        ("a=x=y='\"`$(z) \\n ${q}  ", {"a": "x=y='\"`$(z) \\n ${q}  "}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
        ("a=1\na=2", {"a": "2"}),
        ("\ufeffa=ü\n", {"a": "ü"}),
        ("a= 1 2\x0b3\x85\u2028", {"a": " 1 2\x0b3\x85\u2028"}),
        ('{"a": "x\\ny", "b": 3, "c": 1.5, "d": true, "e": false, "f": null}', None),
        ('  {"a": 1}  \nb=2\n{"a": 3}', {"a": "3", "b": "2"}),
        (
            '{\n  "a": [1, {"x": "é"}],\n  "b": {}\n}\nc=1',
            {"a": '[1,{"x":"é"}]', "b": "{}", "c": "1"},
        ),
        ('{"a": "\\ud83d\\udc1f"}', {"a": "🐟"}),
        ("{}", {}),
        ('{"a": 12345678901234567890}', {"a": "12345678901234567890"}),
    ],
)
def test_file_is_read_line_by_line(
    folder: Path, file: str | None, expected: dict[str, str] | None
) -> None:
    if expected is None:
        expected = {"a": "x\ny", "b": "3", "c": "1.5", "d": "true", "e": "false", "f": ""}
    assert found(folder, file) == expected


@given(outputs=st.dictionaries(NAMES, VALUES, max_size=5))
def test_json_carries_every_text(folder: Path, outputs: dict[str, str]) -> None:
    for as_ascii in (True, False):
        assert found(folder, json.dumps(outputs, ensure_ascii=as_ascii)) == outputs


@given(name=NAMES, value=VALUES.filter(lambda text: "\n" not in text and not text.endswith("\r")))
def test_line_carries_every_text_of_one_line(folder: Path, name: str, value: str) -> None:
    assert found(folder, f"{name}={value}\n") == {name: value}
    assert found(folder, log=f"before\n${{setValue({name}={value})}} after\n") == {name: value}


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("a=1\nnonsense", "line 2: expected name=value"),
        ("a=1\n\n=x", "line 3: expected name=value"),
        ("a b=x", "line 1: expected"),
        ("a-b=x", "line 1: expected"),
        (" a=x", "line 1: expected"),
        ("x" * 101 + "=1", "line 1: expected"),
        ("# comment", "line 1: expected"),
        ("a=1\nb=\xff".encode("latin-1"), "line 2: it is not UTF-8"),
        ("a=1\nb=x\0y", "line 2: the value of b holds a NUL"),
        ("PATH=/evil", "line 1: 'PATH' is reserved"),
        ("ok=1\nshoal_x=1", "line 2: 'shoal_x' is reserved"),
        ("ld_preload=1", "line 1: 'ld_preload' is reserved"),
        ('a=1\n{"a": 1} x', "line 2: text behind"),
        ('a=1\n{"a": 1}{"b": 2}', "line 2: text behind"),
        ('a=1\n{\n"b": 1,\n}', "line 4: no JSON"),
        ('{"a": 1', "line 1: no JSON"),
        ('{"a b": 1}', "line 1: 'a b' is not a name"),
        ('{"a": NaN}', "line 1: no JSON: NaN"),
        ('{"a": 1e999}', "line 1: a number is too large"),
        ('{"a": "\\ud800"}', "line 1: the value of a holds half of a character"),
        ('\n{"a": "\\u0000"}', "line 2: the value of a holds a NUL"),
        ('{"a": ' + "[" * 100_000 + "}", "line 1: no JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "line 1: no JSON"),
        ("\n" + "a=" + "x" * (LONGEST_VALUE + 1), "line 2: the value of a has 1,048,577 bytes"),
    ],
)
def test_bad_file_is_refused_with_the_line(folder: Path, file: str | bytes, words: str) -> None:
    assert words in refusal(folder, file)


def test_file_that_is_none_is_refused(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadOutput, match="not a regular file"):
        collect(str(tmp_path / "fifo"), "/nowhere", "")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(OSError):
        collect(str(tmp_path / "link"), "/nowhere", "")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(outputs.LONGEST_FILE + 1)
    with pytest.raises(BadOutput, match="longer than 33,554,432 bytes"):
        collect(str(tmp_path / "huge"), "/nowhere", "")


def test_limits_are_those_of_what_is_left_in_the_end(folder: Path) -> None:
    value = "x" * LONGEST_VALUE
    fitting = LONGEST_VALUE - 4 * len("a")
    four = "".join(f"{name}={value[:fitting]}\n" for name in "abcd")
    assert found(folder, four + four).keys() == set("abcd")
    assert f"at most {MOST_BYTES:,}" in refusal(
        folder, f"a={value}\nb={value}\nc={value}\nd={value}"
    )
    many = "".join(f"n{n}=\n" for n in range(MOST))
    assert len(found(folder, many + many)) == MOST
    assert "more than 1,000" in refusal(folder, many + "one_more=")


# -- log -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("${setValue(a=1)}", {"a": "1"}),
        ("${setValue(a=1)} y\n${setValue(b=2)}\n", {"a": "1", "b": "2"}),
        ("comment: ${setValue(a=1)}\n ${setValue(b=1)}\r${setValue(c=1)}\n", {}),
        ("${setValue(a=1)}\n${setValue(a=2)}\n", {"a": "2"}),
        ("${setValue(a=f(x)=\"y'}))} )} z\n", {"a": "f(x)=\"y'}))} "}),
        ("${setValue(a=)}", {"a": ""}),
        ("${setValue(a=1)\n)}", {}),
        ("${setValue(a b=1)} ${setValue(=1)} ${setValue(a)}\n", {}),
        ("#{setValue(a=1)}\n", {}),
        ("no newline at all", {}),
    ],
)
def test_lines_of_the_log_set_values(folder: Path, log: str, expected: dict[str, str]) -> None:
    assert found(folder, log=log) == expected


def test_file_counts_before_the_log(folder: Path) -> None:
    assert found(folder, "a=file", "${setValue(a=log)}\n${setValue(b=log)}") == {
        "a": "file",
        "b": "log",
    }


@pytest.mark.parametrize(
    "line",
    [
        b"${setValue(PATH=x)}",
        b"${setValue(a=\xff)}",
        b"${setValue(a=\0)}",
        b"${setValue(a=" + b"x" * (LONGEST_VALUE + 1) + b")}",
        b"${setValue(a=" + b"x" * (2 * LONGEST_VALUE + (1 << 20)),
        b"${setValue(a=" + b"${setValue(a=1)}" * (4 * LONGEST_VALUE // 16) + b")}",
    ],
    ids=["reserved", "not UTF-8", "NUL", "long", "endless", "endless with marks"],
)
def test_line_of_the_log_that_cannot_be_used_is_none(folder: Path, line: bytes) -> None:
    """It may be what a stranger has written: it must not fail the attempt that shows it."""
    around = b"${setValue(a=before)}\n" + line + b"\n${setValue(b=after)}"
    assert found(folder, log=around) == {"a": "before", "b": "after"}


def test_log_sets_no_more_than_there_is_room_for(folder: Path) -> None:
    names = [f"v{n}" for n in range(MOST + 5)]
    log = "".join(f"${{setValue({name}=1)}}\n" for name in names)
    assert found(folder, "mine=1", log) == {"mine": "1"} | dict.fromkeys(names[: MOST - 1], "1")
    large = "".join(f"${{setValue({name}={'x' * LONGEST_VALUE})}}\n" for name in names[:6])
    assert found(folder, "mine=1", large).keys() == {"mine", "v0", "v1", "v2"}
    again = large + f"${{setValue(v0=x)}}\n${{setValue(v5={'y' * 99})}}\n"
    given = found(folder, "mine=1", again)
    assert (given["v0"], given["v5"]) == ("x", "y" * 99)


def test_log_counts_only_where_the_task_asks_for_it(folder: Path) -> None:
    (folder / "output").write_text("a=1")
    assert collect(str(folder / "output"), None, "") == {"a": "1"}


@pytest.mark.parametrize("size", range(1, 40))
def test_mark_is_found_wherever_the_log_is_cut_into_pieces(
    folder: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(outputs, "_CHUNK", size)
    log = "x${ ${set\n${setValue(a=1)} \n\n${setValue(b=${setValue(c=2)})}\ny ${setValue(e=1)}\n"
    log += "${setValue(d=é)}"
    assert found(folder, log=log) == {"a": "1", "b": "${setValue(c=2)}", "d": "é"}


def test_long_log_of_one_line_takes_no_memory(folder: Path) -> None:
    assert found(folder, log=b"x" * (64 << 20) + b"${setValue(a=1)}") == {}


def test_removed_log_has_no_values(folder: Path, tmp_path: Path) -> None:
    assert collect(str(tmp_path / "none"), str(tmp_path / "none.log"), "") == {}


def test_secrets_are_not_given_on(folder: Path) -> None:
    given_on = found(folder, "a=x hush y\nb=${setValue(", "${setValue(c=hush)}", ("hush",))
    assert given_on == {"a": "x *** y", "b": "${setValue(", "c": "***"}


def test_names_are_those_of_parameters() -> None:
    assert f"^{NAME}$" == PARAMETER_PATTERN
    for name in ("PATH", "path", "SHOAL_X", "ld_x", "BASH_FUNC_x", "BASH_ENV", "x", "PATHS"):
        refused = re.fullmatch(RESERVED_PATTERN, name, re.IGNORECASE) is not None
        assert refused == reserved_parameter(name), name
