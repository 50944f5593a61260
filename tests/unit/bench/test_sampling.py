"""Reading what py-spy has written."""

from bench.profile.sampling import read

LINES = [
    'process 7:"python x";thread (7);main (a.py:3);work (b.py:10) 3',
    "thread (7);main (a.py:4);work (b.py:12) 1",
    "thread (7);main (a.py:5) 2",
]


def test_samples_are_counted_by_function_whatever_the_line() -> None:
    found = read(LINES)
    assert found.total == 6
    assert found.own == {"work (b.py)": 4, "main (a.py)": 2}
    assert found.inclusive == {"work (b.py)": 4, "main (a.py)": 6}
