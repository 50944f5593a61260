"""``make help`` lists every target."""

import re
from pathlib import Path

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
INTERNAL = {".PHONY", ".venv/bootstrap"}


def test_every_target_has_a_line_of_help() -> None:
    targets = dict(re.findall(r"^([\w./-]+):(?!=)(.*)$", MAKEFILE, re.MULTILINE))
    assert {name for name, rest in targets.items() if "  ## " not in rest} == INTERNAL


def test_every_target_without_a_file_is_phony() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE))
    [phony] = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.split()) == targets
