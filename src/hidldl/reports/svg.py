"""Small charts as SVG text: plotly would add 4.5 MB to every page and draw nothing in print without its script.

Horizontal positions are percentages and vertical ones pixels, so that a chart is as wide as its box while its text
keeps its size. Colours are CSS classes, which the page defines for light, dark and print.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

import numpy as np

from hidldl.arrays import FloatArray, IntArray

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom."""
Spot: TypeAlias = tuple[int, int, str]
"""Where a name is beside its dot: how far across and down, and which end of it is there."""
HEIGHT = 190
"""Height of the plotting area in pixels; the axis below it takes AXIS more."""
AXIS = 40
NARROW, WIDE = 320, 540
"""Widths in pixels of the map on a telephone and on a desk. Names that are apart at a width are so at larger ones."""
ASPECT = 0.8


@dataclass(frozen=True)
class Scale:
    """From values to fractions of an axis."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, values: FloatArray, *, log: bool = False, margin: float = 0.06) -> "Scale":
        """A scale that holds the values with a margin around them."""
        low, high = float(np.min(values)), float(np.max(values))
        if log:
            low, high = np.log10(low), np.log10(high)
        space = margin * (high - low) or 0.5 * max(abs(high), 1e-3)
        low, high = low - space, high + space
        return cls(10**low, 10**high, log) if log else cls(low, high)

    def at(self, value: float) -> float:
        """The fraction of the axis at which the value lies."""
        low, high, value = np.log10([self.low, self.high, value]) if self.log else (self.low, self.high, value)
        return float((value - low) / (high - low))

    def ticks(self, most: int = 5) -> list[float]:
        """Round values on the axis."""
        if self.log:
            first, last = int(np.ceil(np.log10(self.low))), int(np.floor(np.log10(self.high)))
            if last - first >= 1:
                return [10.0**power for power in range(first, last + 1, max(1, -(-(last - first) // most)))]
        raw = (self.high - self.low) / most
        power = 10 ** np.floor(np.log10(raw))
        step = next(float(step) for step in power * np.array([1, 2, 2.5, 5, 10]) if step >= raw * 0.999)
        return [
            float(tick) for tick in np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step + 0.0
        ]


def histogram(counts: IntArray, mean: float, summary: str) -> str:
    """Counts over equal bins of [0, 1], with a line at the mean."""
    scale = Scale(0, float(counts.max()) * 1.08 or 1.0)
    width = 100 / len(counts)
    bars = "".join(
        f'<rect class="bar" x="{width * (i + 0.06):.2f}%" y="{_y(scale, count):.1f}" width="{width * 0.88:.2f}%" '
        f'height="{HEIGHT - _y(scale, count):.1f}"><title>{_bin(i, len(counts))}: {_rows(count)}</title></rect>'
        for i, count in enumerate(counts)
        if count
    )
    anchor = "end" if mean > 0.6 else "start"
    line = (
        f'<line class="halo" x1="{100 * mean:.2f}%" x2="{100 * mean:.2f}%" y1="-4" y2="{HEIGHT}"/>'
        f'<line class="mark" x1="{100 * mean:.2f}%" x2="{100 * mean:.2f}%" y1="-4" y2="{HEIGHT}"/>'
        f'<text class="note" x="{100 * mean:.2f}%" dx="{-5 if mean > 0.6 else 5}" y="6" '
        f'text-anchor="{anchor}">mean {100 * mean:.0f} %</text>'
    )
    across = [(value, f"{100 * value:.0f} %") for value in (0, 0.25, 0.5, 0.75, 1)]
    up = [(_y(scale, tick), f"{tick:,.0f}") for tick in scale.ticks(4) if tick == int(tick)]
    return _frame(bars + line, across, up, summary, "hidden mass of a row", "rows")


def curve(
    positions: Sequence[float], values: FloatArray, errors: FloatArray, ticks: Sequence[str], chosen: int, summary: str
) -> str:
    """Values with their standard errors, joined by a line; the chosen one is a filled diamond."""
    reach = np.where(np.isfinite(errors), errors, 0)
    scale = Scale.over(np.concatenate([values - reach, values + reach, [0]]))
    y = [_y(scale, value) for value in values]
    parts = [f'<line class="zero" x1="0" x2="100%" y1="{_y(scale, 0):.1f}" y2="{_y(scale, 0):.1f}"/>']
    parts.append(_path(positions, y, "line-0"))
    for i, (x, value, error) in enumerate(zip(positions, values, reach, strict=True)):
        ends = (_y(scale, value - error), _y(scale, value + error))
        parts.append(_line((x, ends[0]), (x, ends[1]), "whisker"))
        title = f"<title>{escape(ticks[i])}: {value:+.4g} ± {error:.2g}</title>"
        if i == chosen:
            parts.append(
                f'<svg x="{100 * x:.2f}%" y="{y[i]:.1f}" overflow="visible">'
                f'<path class="chosen" d="M0-8 8 0 0 8-8 0Z">{title}</path></svg>'
            )
        else:
            parts.append(f'<circle class="dot" cx="{100 * x:.2f}%" cy="{y[i]:.1f}" r="4.5">{title}</circle>')
    across = _apart(list(zip(positions, ticks, strict=True)), chosen)
    return _frame("".join(parts), across, _number_ticks(scale), summary, "", "excess loss")


def lines(series: Mapping[str, FloatArray], summary: str, *, log: bool) -> str:
    """Series over iterations; they differ in colour and in dashes."""
    scale = Scale.over(np.concatenate(list(series.values())), log=log)
    longest = max(len(values) for values in series.values())
    over = Scale(1, max(longest, 2))
    parts = []
    for i, values in enumerate(series.values()):
        steps = _thinned(len(values))
        x, y = [over.at(k + 1) for k in steps], [_y(scale, values[k]) for k in steps]
        parts.append(_path(x, y, f"line-{i % 4}"))
        parts.append(f'<circle class="dot" cx="{100 * x[-1]:.2f}%" cy="{y[-1]:.1f}" r="3.5"/>')
    ticks = [tick for tick in over.ticks(5) if tick == int(tick) and tick >= 1]
    across = [(over.at(tick), f"{tick:,.0f}") for tick in ticks]
    return _frame("".join(parts), across, _number_ticks(scale), summary, "iteration", "log scale" if log else "")


def label_scatter(positions: FloatArray, names: Sequence[str], summary: str) -> str:
    """The map of the labels, both axes on one scale; names that would cover others are left to the dot's title."""
    reach = 1.2 * float(np.max(np.abs(positions) / [1, ASPECT]))
    x, y = 0.5 + positions[:, 0] / (2 * reach), 0.5 - positions[:, 1] / (2 * reach * ASPECT)
    order = [int(j) for j in np.argsort(-np.hypot(*positions.T), kind="stable")]
    short = [name if len(name) <= 18 else name[:17] + "…" for name in names]
    on_any = _place_names(x, y, short, order, {}, NARROW)
    spots = _place_names(x, y, short, order, on_any, WIDE)
    parts = [
        '<line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/><line class="zero" x1="0" x2="100%" y1="50%" y2="50%"/>'
    ]
    for j in order:
        title = f"<title>{escape(names[j])}</title>"
        parts.append(f'<circle class="dot" cx="{100 * x[j]:.2f}%" cy="{100 * y[j]:.2f}%" r="4">{title}</circle>')
    for j, (dx, dy, anchor) in spots.items():
        css = "name" if j in on_any else "name wide-only"
        parts.append(
            f'<text class="{css}" x="{100 * x[j]:.2f}%" y="{100 * y[j]:.2f}%" dx="{dx}" dy="{dy}" '
            f'text-anchor="{anchor}">{escape(short[j])}<title>{escape(names[j])}</title></text>'
        )
    style = f"min-width: {NARROW}px; aspect-ratio: {1 / ASPECT}"
    return f'<svg class="map" role="img" aria-label="{escape(summary)}" style="{style}">{"".join(parts)}</svg>'


def _place_names(
    x: FloatArray, y: FloatArray, names: Sequence[str], order: Sequence[int], earlier: Mapping[int, Spot], width: float
) -> dict[int, Spot]:
    """Spots for names on a map of that width: those with a spot keep it, others join where there is room."""
    height = ASPECT * width
    dots = [(a * width, b * height) for a, b in zip(x, y, strict=True)]
    boxes: list[Box] = [(a - 4, b - 4, a + 4, b + 4) for a, b in dots]
    boxes += [_box(dots[j], 7.2 * len(names[j]), spot) for j, spot in earlier.items()]
    spots = dict(earlier)
    for j in order:
        spot = None if j in earlier else _free_spot(dots[j], 7.2 * len(names[j]), (width, height), boxes)
        if spot is not None:
            spots[j] = spot
    return spots


def _box(dot: tuple[float, float], width: float, spot: Spot) -> Box:
    """The box of a name of that width at a spot beside its dot."""
    dx, dy, anchor = spot
    left, y = dot[0] + dx - width * {"start": 0, "middle": 0.5, "end": 1}[anchor], dot[1] + dy
    return (left, y - 11, left + width, y + 3)


def _free_spot(dot: tuple[float, float], width: float, within: tuple[float, float], boxes: list[Box]) -> Spot | None:
    """Where a name of that width fits beside its dot, right, left, above or below; its box joins the others."""
    spots: tuple[Spot, ...] = ((8, 4, "start"), (-8, 4, "end"), (0, -9, "middle"), (0, 18, "middle"))
    for spot in spots:
        box = _box(dot, width, spot)
        inside = box[0] >= 0 and box[2] <= within[0] and box[1] >= 0 and box[3] <= within[1]
        if inside and not any(_overlap(box, other) for other in boxes):
            boxes.append(box)
            return spot
    return None


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _frame(
    body: str,
    across: Sequence[tuple[float, str]],
    up: Sequence[tuple[float, str]],
    summary: str,
    x_label: str,
    y_label: str,
) -> str:
    grid = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="0" dx="-7" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
        for y, text in up
    )
    axis = f'<line class="axis" x1="0" x2="100%" y1="{HEIGHT}" y2="{HEIGHT}"/>' + "".join(
        f'<text class="tick" x="{100 * x:.2f}%" y="{HEIGHT + 16}" text-anchor="middle">{escape(text)}</text>'
        for x, text in across
    )
    labels = f'<text class="tick" x="50%" y="{HEIGHT + 34}" text-anchor="middle">{escape(x_label)}</text>' * bool(
        x_label
    )
    labels += f'<text class="tick" x="0" dx="-36" y="-12">{escape(y_label)}</text>' * bool(y_label)
    height = HEIGHT + (AXIS if x_label else AXIS - 18)
    return (
        f'<div class="plot"><svg role="img" aria-label="{escape(summary)}" width="100%" height="{height}">'
        f"{grid}{body}{axis}{labels}</svg></div>"
    )


def _y(scale: Scale, value: float) -> float:
    return HEIGHT * (1 - scale.at(value))


def _line(a: tuple[float, float], b: tuple[float, float], css: str) -> str:
    return f'<line class="{css}" x1="{100 * a[0]:.2f}%" y1="{a[1]:.1f}" x2="{100 * b[0]:.2f}%" y2="{b[1]:.1f}"/>'


def _path(x: Sequence[float], y: Sequence[float], css: str) -> str:
    """A line through the points; it is stretched to the chart's width, and its stroke is not."""
    points = " ".join(f"{1000 * a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        f'<svg width="100%" height="{HEIGHT}" viewBox="0 0 1000 {HEIGHT}" '
        'preserveAspectRatio="none" overflow="visible">'
        f'<polyline class="{css}" vector-effect="non-scaling-stroke" points="{points}"/></svg>'
    )


def _number_ticks(scale: Scale) -> list[tuple[float, str]]:
    return [(_y(scale, tick), f"{tick:.3g}".replace("-", "−").replace("e−0", "e−")) for tick in scale.ticks(4)]


def _apart(ticks: list[tuple[float, str]], chosen: int) -> list[tuple[float, str]]:
    """The ticks whose texts do not touch in a box as narrow as a phone; the chosen one always."""
    result: list[tuple[float, str]] = []
    for tick in (ticks[chosen], *ticks):
        if all(abs(tick[0] - other[0]) > 0.016 * (len(tick[1]) + len(other[1])) for other in result):
            result.append(tick)
    return result


def _thinned(n: int, most: int = 200) -> list[int]:
    """Indices of at most that many iterations, the first and the last among them."""
    return sorted({int(k) for k in np.linspace(0, n - 1, min(n, most)).round()})


def _bin(i: int, n: int) -> str:
    return f"{100 * i / n:.0f} to {100 * (i + 1) / n:.0f} %"


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
