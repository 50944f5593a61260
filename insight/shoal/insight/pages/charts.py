"""Drawings: columns by day, sparklines, bars, heat maps, steps. Numbers in, SVG out.

Widths are in units of the drawing; it fills what room there is. Every mark has its words as
``<title>``, which browsers show and read out, and tables beside them have all of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from shoal.insight.pages.document import Markup

_WIDTH, _HEIGHT = 960, 200
_LEFT, _TOP, _BOTTOM = 56, 14, 26
_MOST_TICKS = 8
_SPARK_WIDTH, _SPARK_HEIGHT = 120, 28
_CELL_WIDTH, _CELL_HEIGHT = 36, 26


@dataclass(frozen=True)
class ChartColumn:
    """A column: its name, what it tells, and its parts from below, each of a class and a size."""

    name: str
    told: str
    parts: Sequence[tuple[str, float]]

    @property
    def total(self) -> float:
        """How high it is."""
        return sum(size for _, size in self.parts)


@dataclass(frozen=True)
class HeatCell:
    """A cell of a heat map; ``value`` decides its colour."""

    row: int
    column: int
    value: float
    told: str


def columns(key: str, title: str, told: str, some: Sequence[ChartColumn], unit: str = "") -> str:
    """Return columns side by side. ``key``: of the drawing, for its words."""
    top = max((one.total for one in some), default=0.0) or 1.0
    step = (_WIDTH - _LEFT) / max(1, len(some))
    low = _TOP + _HEIGHT
    drawn = [_opened(key, title, told, _WIDTH, low + _BOTTOM), *_grid(top, unit)]
    for index, one in enumerate(some):
        x, y = _LEFT + index * step + step * 0.1, float(low)
        drawn.append(f"<g><title>{escape(one.told)}</title>")
        drawn.append(_rect("hit", x, _TOP, step * 0.8, _HEIGHT))
        for kind, size in one.parts:
            height = size / top * _HEIGHT
            y -= height
            if height:
                drawn.append(_rect(kind, x, y, step * 0.8, height))
        drawn.append("</g>")
    drawn += _names([one.name for one in some], step, low + 18)
    return "".join([*drawn, "</svg>"])


def sparkline(values: Sequence[float | None], told: str, kind: str = "spark") -> Markup:
    """Return a line of values in their order; None is a gap."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup("")
    low, high = min(known), max(known)
    room = (high - low) or 1.0
    step = (_SPARK_WIDTH - 6) / max(1, len(values) - 1)

    def place(index: int, value: float) -> tuple[float, float]:
        y = _SPARK_HEIGHT - 4 - (value - low) / room * (_SPARK_HEIGHT - 8)
        return 3 + index * step, _SPARK_HEIGHT / 2 if high == low else y

    pieces: list[list[str]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            x, y = place(index, value)
            pieces[-1].append(f"{x:.1f},{y:.1f}")
    last = max(index for index, value in enumerate(values) if value is not None)
    x, y = place(last, values[last] or 0.0)
    drawn = "".join(
        f'<polyline class="{kind}" points="{" ".join(piece)}"/>' for piece in pieces if piece
    )
    return Markup(
        f'<svg class="sparkline" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}" role="img">'
        f"<title>{escape(told)}</title>{drawn}"
        f'<circle class="{kind}-end" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>'
    )


def bar(parts: Sequence[tuple[str, float]], whole: float, told: str) -> Markup:
    """Return a bar whose parts lie side by side: (class, size), of ``whole``."""
    x, drawn = 0.0, []
    for kind, size in parts:
        width = max(0.0, min(100.0 - x, size / whole * 100 if whole else 0.0))
        if width:
            drawn.append(_rect(kind, x, 0, width, 10))
        x += width
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img">'
        f"<title>{escape(told)}</title>{_rect('track', 0, 0, 100, 10)}{''.join(drawn)}</svg>"
    )


def heat_map(
    key: str,
    title: str,
    told: str,
    rows: Sequence[str],
    columns_: Sequence[str],
    cells: Sequence[HeatCell],
) -> str:
    """Return a heat map: the deeper the colour, the higher the value."""
    top = max((cell.value for cell in cells), default=0.0)
    width = _LEFT + len(columns_) * _CELL_WIDTH
    drawn = [_opened(key, title, told, width, 22 + len(rows) * _CELL_HEIGHT)]
    for index, name in enumerate(columns_):
        x = _LEFT + index * _CELL_WIDTH + _CELL_WIDTH / 2
        drawn.append(f'<text x="{x}" y="14" text-anchor="middle">{escape(name)}</text>')
    for index, name in enumerate(rows):
        y = 22 + index * _CELL_HEIGHT + _CELL_HEIGHT * 0.65
        drawn.append(f'<text x="{_LEFT - 8}" y="{y:.0f}" text-anchor="end">{escape(name)}</text>')
    for cell in cells:
        x, y = _LEFT + cell.column * _CELL_WIDTH, 22 + cell.row * _CELL_HEIGHT
        place = f'x="{x + 1}" y="{y + 1}" width="{_CELL_WIDTH - 2}" height="{_CELL_HEIGHT - 2}"'
        inner = f'<rect class="track" {place} rx="3"/>'
        if share := cell.value / top if top else 0.0:
            depth = 0.08 + 0.92 * share
            inner += f'<rect class="busy" {place} rx="3" fill-opacity="{depth:.2f}"/>'
        drawn.append(f"<g><title>{escape(cell.told)}</title>{inner}</g>")
    return "".join([*drawn, "</svg>"])


def steps(
    key: str,
    title: str,
    told: str,
    names: Sequence[str],
    lines: Mapping[str, Sequence[float]],
    unit: str = "",
) -> str:
    """Return lines that go in steps, by their classes: one value for each of ``names``."""
    top = max((value for line in lines.values() for value in line), default=0.0) or 1.0
    step = (_WIDTH - _LEFT) / max(1, len(names))
    low = _TOP + _HEIGHT
    drawn = [_opened(key, title, told, _WIDTH, low + _BOTTOM), *_grid(top, unit)]
    for kind, line in lines.items():
        points = []
        for index, value in enumerate(line):
            y = low - value / top * _HEIGHT
            x = _LEFT + index * step
            points += [f"{x:.1f},{y:.1f}", f"{x + step:.1f},{y:.1f}"]
        drawn.append(f'<polyline class="{kind}" points="{" ".join(points)}"/>')
    drawn += _names(names, step, low + 18)
    return "".join([*drawn, "</svg>"])


def _opened(key: str, title: str, told: str, width: float, height: float) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-labelledby="{key}-title {key}-told"><title id="{key}-title">{escape(title)}</title>'
        f'<desc id="{key}-told">{escape(told)}</desc>'
    )


def _grid(top: float, unit: str) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _HEIGHT * (1 - share)
        yield f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.0f}" y2="{y:.0f}"/>'
        text = f"{_short(top * share)}{unit}"
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{escape(text)}</text>'


def _names(names: Sequence[str], step: float, y: float) -> Iterator[str]:
    """Name some of the places, so that the names have room."""
    shown = [index for index, name in enumerate(names) if name]
    for index in shown[:: max(1, -(-len(shown) // _MOST_TICKS))]:
        x = _LEFT + index * step
        yield f'<text x="{x:.1f}" y="{y:.0f}">{escape(names[index])}</text>'


def _short(value: float) -> str:
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )
