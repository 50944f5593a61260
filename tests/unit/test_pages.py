"""Links on the pages lead somewhere, modules they name exist, overviews stay readable."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *DOCS.rglob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "extras").rglob("*.md"),
    ]
)
DESIGN = ["architecture", "dispatch", "worker-processes", "masters", "ownership", "storage"]
DESIGN += ["deployment"]
MOST_WORDS = 120  # of a paragraph
MOST_WORDS_OF_THE_OVERVIEW = 2_500  # ten minutes
# Pages that name modules below the folder of one part.
BELOW = {"storage": "sql", "masters": "master"}
TO_COME = {"alert/", "ui/"}

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MODULE = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`")


def text_of(page: Path) -> str:
    """Return a page without its code and pictures."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return what a link into the page may name, as renderers make it from headings."""
    titles = _HEADING.findall(text_of(page))
    made = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'<a id="([^"]+)">', page.read_text(encoding="utf-8")))


def paragraphs(page: Path) -> list[str]:
    return re.split(r"\n\s*\n|\n(?=(?:[-|]|\d+\.) )", text_of(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(text_of(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("name", DESIGN)
def test_modules_on_a_design_page_exist(name: str) -> None:
    for module in set(_MODULE.findall(text_of(DOCS / f"{name}.md"))) - TO_COME:
        part, _, path = module.partition("/")
        places = [ROOT / module, ROOT / part / "shoal" / part / path]
        if name in BELOW:
            below = BELOW[name]
            places.append(ROOT / below / "shoal" / below / module)
        assert any(place.exists() for place in places), module


def test_present_module_paths_exist() -> None:
    page = text_of(DOCS / "module-paths.md")
    rows = re.findall(r"^\| `([\w.]+)` \| (.+) \|$", page, re.MULTILINE)
    present = {name for _, cell in rows for name in re.findall(r"`([\w.]+)`", cell)}
    assert len(present) > 100

    def exists(name: str) -> bool:
        part, *rest = name.split(".")
        path = (ROOT / part / "shoal" / part).joinpath(*rest)
        return path.with_suffix(".py").is_file() or path.is_dir()

    assert [name for name in present if not exists(name)] == []


@pytest.mark.parametrize("name", DESIGN)
def test_paragraphs_are_short(name: str) -> None:
    long = [one for one in paragraphs(DOCS / f"{name}.md") if len(one.split()) > MOST_WORDS]
    assert long == []


def test_overview_is_read_in_ten_minutes() -> None:
    assert len(text_of(DOCS / "architecture.md").split()) <= MOST_WORDS_OF_THE_OVERVIEW
