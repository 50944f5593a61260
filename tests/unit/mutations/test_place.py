"""A mutation finds its place by syntax, changes that place alone, and says what it lacks.

Without these tests a mutation could change another place than it names, or move the lines that a
traceback names.
"""

from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutations.place import DoesNotApply, Edit, Place

PURSE = Place("shoal.purse")

PROGRAM = '''\
import math

LIMIT = 10 * 100  # cents


class Purse:
    """Some money."""

    @property
    def is_full(self) -> bool:
        return self.cents >= LIMIT

    async def pay(self, price: int, *, tip: int = 0) -> None:
        # Not more than there is.
        if (
            price + tip > self.cents
            and not self.credit
        ):
            raise ValueError(
                f"costs {price + tip}, there is {self.cents}"
            )
        elif price == 0:
            return
        else:
            await self.log("pay", price, tip=tip)
        self.cents -= price
        await self.log(
            "paid",
            price,
            tip=tip,
        )

    def log(self, *what: object, tip: int) -> None:
        print({"what": what, "tip": tip}, "SELECT a FROM b")
'''


def changed(edit: Edit, program: str = PROGRAM) -> dict[int, str]:
    """Return the lines that differ, by number. There are as many of them as before."""
    before, after = program.split("\n"), edit.changed(program, "purse.py").split("\n")
    lines = enumerate(zip(before, after, strict=True), start=1)
    return {number: new.strip() for number, (old, new) in lines if old != new}


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (PURSE["pay"].drop("self.cents -= ..."), {26: ""}),
        (PURSE["pay"].drop("return"), {23: "pass"}),
        (PURSE["Purse.pay"].never("price + tip > self.cents"), {16: "(False)"}),
        (PURSE["pay"].drop("not self.credit"), {16: "(price + tip > self.cents", 17: ")"}),
        (PURSE["pay"].drop("await self.log('paid', ...)"), dict.fromkeys(range(27, 32), "")),
        (
            PURSE["pay"].replace("self.log('pay', ..., tip=tip)", "self.log(...)"),
            {25: "await (self.log(price))"},
        ),
        (PURSE.replace("LIMIT = 10 * ...", "LIMIT = 9 * ..."), {3: "LIMIT = (9) * 100  # cents"}),
        (
            PURSE["log"].drop("'tip': ..."),
            {34: "print(({'what': what}), \"SELECT a FROM b\")"},
        ),
        (
            PURSE["log"].replace_text("a FROM", "c FROM"),
            {34: 'print({"what": what, "tip": tip}, (\'SELECT c FROM b\'))'},
        ),
    ],
    ids=lambda value: f"{value.code} → {value.new}" if isinstance(value, Edit) else "",
)
def test_only_the_named_place_changes(edit: Edit, lines: dict[int, str]) -> None:
    assert changed(edit) == lines


def test_layout_comments_and_quotes_make_no_difference() -> None:
    one = "def f(a):\n    return g('x', [a, (1)]) and h(a)\n"
    other = dedent(
        """\
        def f(a):
            return (
                g(
                    "x",  # the name
                    [a, 1],
                )
                and (h(a))
            )
        """
    )
    edit = Place("m")["f"].drop("g('x', [a, 1])")
    assert [*changed(edit, one).values()] == ["return (h(a))"]
    assert "(h(a)" in changed(edit, other)[3]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (PURSE["pays"].drop("return"), "no function or class 'pays'; did you mean Purse.pay?"),
        (PURSE["paid"].drop("self.cents -= ..."), "stands in Purse.pay, line 26"),
        (PURSE["pay"].drop("self.cents -= tip"), "did you mean line 26: `self.cents -= price`"),
        (PURSE["pay"].drop("await self.log(...)"), "2 times, in lines 25, 27"),
        (
            PURSE["pay"].replace("price == 0", "return"),
            "the code is an expression, and so must be its replacement",
        ),
        (PURSE["pay"].replace("price == 0", "..."), "it has 1 `...`, and the code has 0"),
        (PURSE.replace_text("c FROM", ""), "no `c FROM`; did you mean line 34: `'SELECT a FROM b"),
    ],
    ids=lambda value: value.code if isinstance(value, Edit) else "",
)
def test_place_that_is_not_found_is_explained(edit: Edit, said: str) -> None:
    with pytest.raises(DoesNotApply) as error:
        edit.changed(PROGRAM, "purse.py")
    assert said in str(error.value)


def test_module_that_has_moved_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.hatch.build]\ndev-mode-dirs = ["code"]\n', encoding="utf-8"
    )
    (tmp_path / "code/shoal/wallets").mkdir(parents=True)
    (tmp_path / "code/shoal/wallets/purse.py").write_text(PROGRAM)
    assert Place("shoal.wallets.purse").drop("LIMIT").file(tmp_path).name == "purse.py"
    with pytest.raises(DoesNotApply, match=r"did you mean shoal\.wallets\.purse"):
        PURSE.drop("LIMIT").file(tmp_path)
