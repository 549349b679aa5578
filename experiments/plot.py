# SPDX-License-Identifier: MIT
"""Two kinds of plots as SVG, by hand: points in columns, and lines."""

import html
import math

from results import median

WIDTH, HEIGHT = 560, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 34, 52
ASIDE = 150  # for a legend that no line may cross
COLOURS = ('#1b6ca8', '#c2571a', '#2e7d32', '#7b3fa0', '#8a6d00', '#c0267e',
           '#0e8a8a')


class Axis:
    """A value to a place between `low` and `high`."""

    def __init__(self, values, low, high, log=False, zero=False):
        self.log = log
        values = list(values) + ([0] if zero else [])
        a, b = min(values), max(values)
        if log:
            self.a, self.b = math.log(a / 1.15), math.log(b * 1.15)
        else:
            self.a, self.b = a, b + (b - a) * 0.06
        self.low, self.high = low, high

    def __call__(self, v):
        v = math.log(v) if self.log else v
        return self.low + (self.high - self.low) * (v - self.a) / (
            self.b - self.a)

    def ticks(self):
        a, b = (math.exp(self.a), math.exp(self.b)) if self.log else (
            self.a, self.b)
        if self.log:
            found = [m * 10 ** d for d in range(-3, 8) for m in (1, 2, 5)]
        else:
            step = 10 ** math.floor(math.log10((b - a) or 1))
            step = step / 5 if (b - a) / step < 2 else (
                step / 2 if (b - a) / step < 5 else step)
            first = math.ceil(a / step)
            found = [step * i for i in range(first, first + 20)]
        return [v for v in found if a <= v <= b * (1 + 1e-9)]


def number(v):
    if v >= 10000:
        return f'{v / 1000:g}k'
    return f'{v:g}' if v == 0 or v >= 0.01 else f'{v:.3f}'


class Plot:
    def __init__(self, title, x_label, y_label, legends=0):
        self.parts = []
        self.width = WIDTH
        self.top = TOP + 16 * legends
        self.text(WIDTH / 2, 20, title, 'middle', 14)
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label)
        self.parts.append(
            '<text transform="translate(18 '
            f'{(self.top + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
            f'text-anchor="middle">{html.escape(y_label)}</text>')

    def text(self, x, y, what, anchor='middle', size=12, colour='#222'):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'font-size="{size}" fill="{colour}">'
            f'{html.escape(str(what))}</text>')

    def path(self, points, colour, dashed=False):
        d = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ''
        self.parts.append(f'<polyline points="{d}" fill="none" '
                          f'stroke="{colour}" stroke-width="1.6"{dash}/>')

    def dot(self, x, y, colour, radius=3.5):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" '
                          f'r="{radius}" fill="{colour}" '
                          'fill-opacity="0.75"/>')

    def frame(self, y):
        bottom = HEIGHT - BOTTOM
        for v in y.ticks():
            self.parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(v):.1f}" '
                f'y2="{y(v):.1f}" stroke="#ddd"/>')
            self.text(LEFT - 6, y(v) + 4, number(v), 'end', 11)
        self.path([(LEFT, self.top), (LEFT, bottom), (WIDTH - RIGHT, bottom)],
                  '#444')

    def legend(self, rows, aside=False):
        """Between the title and the plot, or beside it."""
        if aside:
            self.width = WIDTH + ASIDE
        for i, (name, colour) in enumerate(rows):
            y = TOP + (14 if aside else 6) + 16 * i
            self.dot(self.width - RIGHT - 8, y - 4, colour)
            self.text(self.width - RIGHT - 18, y, name, 'end', 11)

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                f'height="{HEIGHT}" viewBox="0 0 {self.width} {HEIGHT}" '
                'font-family="sans-serif" font-size="12">\n'
                f'<rect width="{self.width}" height="{HEIGHT}" fill="white"/>\n' +
                '\n'.join(self.parts) + '\n</svg>\n')


def columns(title, x_label, y_label, names, series, log=True, aside=False):
    """series: {name: one list of values a column, or None}; the medians are
    joined. A name that ends in '~' is a line for comparison, dashed. `aside`:
    the legend is beside the plot, not above it."""
    p = Plot(title, x_label, y_label, 0 if aside else len(series))
    y = Axis([v for rows in series.values() for r in rows for v in r or ()],
             HEIGHT - BOTTOM, p.top, log, not log)
    p.frame(y)
    gap = (WIDTH - LEFT - RIGHT) / len(names)
    for i, name in enumerate(names):
        p.text(LEFT + gap * (i + 0.5), HEIGHT - BOTTOM + 18, name)
    rows = []
    for k, (name, values) in enumerate(series.items()):
        plain, dashed = name.removesuffix('~'), name.endswith('~')
        colour = '#666' if dashed else COLOURS[k % len(COLOURS)]
        shift = 0 if dashed else (k - (len(series) - 1) / 2) * 7
        at = [(LEFT + gap * (i + 0.5) + shift, v)
              for i, v in enumerate(values) if v]
        p.path([(x, y(median(v))) for x, v in at], colour, dashed)
        for x, v in at if not dashed else ():
            for value in v:
                p.dot(x, y(value), colour)
        rows.append((plain, colour))
    p.legend(rows, aside)
    return p.svg()


def curves(title, x_label, y_label, series):
    """series: {name: [(x, y), ...]}."""
    p = Plot(title, x_label, y_label)
    x = Axis([a for s in series.values() for a, _ in s], LEFT,
             WIDTH - RIGHT, False, True)
    y = Axis([b for s in series.values() for _, b in s], HEIGHT - BOTTOM,
             p.top)
    p.frame(y)
    for v in x.ticks():
        p.text(x(v), HEIGHT - BOTTOM + 18, number(v), 'middle', 11)
    for k, (name, points) in enumerate(series.items()):
        p.path([(x(a), y(b)) for a, b in points], COLOURS[k])
        p.text(x(points[-1][0]) + 4, y(points[-1][1]) - 6, name, 'middle', 11,
               COLOURS[k])
    return p.svg()
