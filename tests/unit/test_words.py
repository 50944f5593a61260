"""Words of ours that the field has other words for are refused: docs/glossary.md has both."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.parts import PARTS, ROOT

FOLDERS = [*sorted(PARTS), "conf", "docs", "examples", "extras", "bench", "tests"]
KINDS = {".py", ".md", ".toml", ".proto", ".sh", ".yaml", ".yml"}

# Parts of identifiers count as words, so look_soon and on_hand_on are found.
RETIRED = {
    "notification": r"bells?|rings?|ringing|rang|rung",
    "notify, poll soon": r"look[_ ]soon",
    "eager dispatch, transfer": r"(?:hand|hands|handed|handing)[_ ]on",
    "requeue": r"(?:give|gives|given|gave|giving|put|puts|putting)[_ ]back",
    "prefetch": r"start[_ -]lines?|claim(?:s|ed|ing)?[_ ]ahead",
    "watchdog": r"sentinels?|guardians?",
    "progress page": r"slates?",
    "worker thread": r"couriers?",
    "action queue": r"outbox",
    "termination": r"doom(?:s|ed)?|must_die",
    "desired assignment": r"wish(?:es|ed)?",
    "evict": r"mistrust(?:s|ed)?",
    "quarantined": r"(?:set|sets|setting)[_ ]aside",
    "the noun": r"whoever|whom(?:ever)?",
}
_RETIRED = {
    word: re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])", re.IGNORECASE)
    for word, pattern in RETIRED.items()
}

_ANY = re.compile("|".join(pattern.pattern for pattern in _RETIRED.values()), re.IGNORECASE)

# Names that formats keep: a znode, a column, and a field of the REST API.
ALLOWED_TEXT = re.compile(r"/bell\b|\brow\.doomed\b|\"doomed\"")
REST_FIELD = re.compile(r"(?<![a-z_])set_aside(?![a-z_])")
OF_REST = {"api", "client", "tests/integration/api", "tests/integration/client", "docs"}
ALLOWED_FILES = {"tests/unit/test_words.py"}
ALLOWED_FOLDERS = ("sql/shoal/sql/migrations/", "bench/results/")
FORMER_NAMES = "## Former names"  # from there to the end of the glossary


def files() -> Iterator[Path]:
    for folder in [*(ROOT / name for name in FOLDERS)]:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if (
                path.suffix in KINDS
                and "_pb2" not in path.name
                and name not in ALLOWED_FILES
                and not name.startswith(ALLOWED_FOLDERS)
            ):
                yield path
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
    yield ROOT / "Makefile"


def lines_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.name == "glossary.md":
        text = text.split(FORMER_NAMES)[0]
    return text.splitlines()


def folder_of(path: Path) -> str:
    """Return what a limit is about: a part, or a folder of the tests of a part."""
    parts = path.relative_to(ROOT).parts
    if parts[:2] in {("tests", "unit"), ("tests", "integration")} and len(parts) > 3:
        return "/".join(parts[:3])
    if parts[0] == "tests" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def found_in(path: Path) -> Iterator[str]:
    """Yield each line with a retired word, and what to say instead."""
    of_rest = folder_of(path) in OF_REST
    for number, line in enumerate(lines_of(path), 1):
        if not _ANY.search(line):
            continue
        text = ALLOWED_TEXT.sub("", line)
        text = REST_FIELD.sub("", text) if of_rest else text
        for instead, pattern in _RETIRED.items():
            if match := pattern.search(text):
                place = f"{path.relative_to(ROOT).as_posix()}:{number}"
                yield f"{place}: {match.group()!r}: say {instead}: {line.strip()}"


def test_retired_words_are_gone() -> None:
    assert [line for path in files() for line in found_in(path)] == []


def test_glossary_names_every_retired_word() -> None:
    former = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split(FORMER_NAMES)[1]
    for word, pattern in _RETIRED.items():
        if word != "evict":
            assert pattern.search(former), word


# "'x' is no date" is not English: a message says "'x' is not a date", or "invalid date 'x'".
IS_NO = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are) no (?!longer|such|more|other|need|room|reason)[A-Za-z]+"
)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_messages_say_is_not_a(part: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value.strip()[:80]}"
        for path in sorted((ROOT / part / "shoal").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if IS_NO.search(node.value)
    ]
    assert not found, "write 'is not a', or 'invalid':\n" + "\n".join(found)


# A sentence names the user, caller or process, in docstrings and comments too.
NO_ONE = re.compile(r"(?<!--)\b(?:no|some|every)body\b|\bany more\b", re.IGNORECASE)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_sentences_name_who_acts(part: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in sorted((ROOT / part / "shoal").rglob("*.py"))
        if not {"generated", "migrations"} & set(path.parts) and "_pb2" not in path.name
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if NO_ONE.search(line) and "--nobody" not in line and ", nobody)" not in line
    ]
    assert not found, "name the user, caller or process, or write 'no longer':\n" + "\n".join(found)


# Texts of the web UI name the thing: user, run, file, instead of a pronoun.
PRONOUNS = re.compile(
    r"\b(?:no|some|every)body\b|\bany more\b|\b(?:that|those) of\b|\bwho(?:m|so)?ever\b"
    r"|\bwhatever\b|\bfore?told\b|\b(?:is|are|was|were) told\b|\btells? of\b",
    re.IGNORECASE,
)
TEXT = re.compile(r"'([\w.-]+)': '((?:[^'\\]|\\.)*)'")


def test_texts_of_the_web_ui_name_things() -> None:
    folder = ROOT / "ui" / "src" / "shared" / "i18n"
    texts = [
        (path.relative_to(folder), *match)
        for path in sorted(folder.rglob("*.ts"))
        if not path.name.endswith(("zh.ts", ".test.ts"))
        for match in TEXT.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(texts) > 1000
    found = [x for x in texts if PRONOUNS.search(x[2]) or IS_NO.search(x[2])]
    assert not found, "\n".join(f"{path}: {key}: {text}" for path, key, text in found)
