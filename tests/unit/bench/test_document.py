"""How results come into the documentation."""

from pathlib import Path

from bench.document import PAGES, fill
from bench.support.machine import RESULTS

TEXT = "a\n<!-- results of x -->\nold\n<!-- end of x -->\nb\n"


def test_results_replace_those_before(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("new\n")
    filled = fill(TEXT, tmp_path)
    assert filled == "a\n<!-- results of x -->\n\nnew\n\n<!-- end of x -->\nb\n"
    assert fill(filled, tmp_path) == filled


def test_what_was_not_measured_stays(tmp_path: Path) -> None:
    assert fill(TEXT, tmp_path) == TEXT


def test_every_place_in_the_pages_has_its_end() -> None:
    places = []
    for page in (one.read_text(encoding="utf-8") for one in PAGES):
        places.append(starts := page.count("<!-- results of "))
        assert starts == page.count("<!-- end of ")
        assert fill(page, RESULTS).count("<!-- results of ") == starts
    assert places[0] >= 4
    assert places[1] == 1
