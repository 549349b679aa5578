# SPDX-License-Identifier: MIT
"""Two kinds of plots as SVG, by hand: points in columns, and lines. A title is
a sentence that says what the plot shows, both axes have their true scale, y
begins at 0, and each line has its name at its end."""

import html
import math
from statistics import median

WIDTH, HEIGHT = 560, 360
LEFT, TOP, BOTTOM = 58, 64, 52
CHARACTER = 6.2  # approximate width of a character in a label
TITLE = 7.5      # width of a character in the title
LABEL = 14       # height of a label
COLOURS = ('#1b6ca8', '#c2571a', '#2e7d32', '#7b3fa0', '#8a6d00', '#c0267e',
           '#0e8a8a')
DASHED = '#666'


def ticks(top):
    """Round values from 0 to `top`."""
    step = 10 ** math.floor(math.log10(top))
    step = step / 5 if top / step < 2 else (
        step / 2 if top / step < 5 else step)
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


def number(v):
    if v >= 10000:
        return f'{v / 1000:g}k'
    return f'{v:g}' if v == 0 or v >= 0.01 else f'{v:.3f}'


def places(columns, across):
    """Where each column is, between 0 and 1: in even steps, or by its number
    on a `linear` or `log` scale."""
    if across == 'even':
        at = list(range(len(columns)))
    else:
        at = [float(c) for c in columns]
    if across == 'log':
        at = [math.log(v) for v in at]
    return [(v - at[0]) / ((at[-1] - at[0]) or 1) for v in at]


class Plot:
    def __init__(self, title, x_label, y_label, top):
        self.parts = []
        self.most = top * 1.06
        self.ends = []  # ends of the lines: y of the label, name, colour, x, y
        self.right = WIDTH
        self.text(14, 22, title, 'start', 14)
        self.right = max(self.right, len(title) * TITLE)
        self.text(14, TOP - 18, y_label, 'start')
        self.text((LEFT + WIDTH) / 2, HEIGHT - 12, x_label)
        for v in ticks(self.most):
            self.line([(LEFT, self.y(v)), (WIDTH, self.y(v))], '#ddd', 1)
            self.text(LEFT - 6, self.y(v) + 4, number(v), 'end', 11)

    def y(self, v):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * v / self.most

    def text(self, x, y, what, anchor='middle', size=12, colour='#222'):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'font-size="{size}" fill="{colour}">'
            f'{html.escape(str(what))}</text>')

    def line(self, points, colour, width=1.6, dash=''):
        d = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
        dash = dash and f' stroke-dasharray="{dash}"'
        self.parts.append(f'<polyline points="{d}" fill="none" '
                          f'stroke="{colour}" stroke-width="{width}"{dash}/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" '
                          f'fill="{colour}" fill-opacity="0.75"/>')

    def end(self, name, colour, x, y):
        """The end of a line."""
        self.ends.append([y, name, colour, x, y])
        self.right = max(self.right, WIDTH + len(name) * CHARACTER)

    def labels(self):
        """Beside the plot, at the height of the ends, but not on each other;
        a dotted line leads to one that is elsewhere."""
        self.ends.sort()
        for above, here in zip(self.ends, self.ends[1:]):
            here[0] = max(here[0], above[0] + LABEL)
        below = HEIGHT - BOTTOM + LABEL
        for here in reversed(self.ends):
            below = here[0] = min(here[0], below - LABEL)
        for at, name, colour, x, y in self.ends:
            if x < WIDTH - 40 or abs(at - y) > 4:
                self.line([(x + 6, y), (WIDTH + 4, at)], colour, 0.8, '1 3')
            self.text(WIDTH + 8, at + 4, name, 'start', 11, colour)

    def svg(self):
        self.labels()
        width = 16 + math.ceil(self.right)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
                f'height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
                'font-family="sans-serif" font-size="12">\n'
                f'<rect width="{width}" height="{HEIGHT}" fill="white"/>\n' +
                '\n'.join(self.parts) + '\n</svg>\n')


def columns(title, x_label, y_label, names, series, across='even'):
    """series: {name: one list of values a column, or None}; the medians are
    joined. A name that ends in '~' is a line for comparison, dashed. `across`
    says where the columns are, see places()."""
    p = Plot(title, x_label, y_label,
             max(v for rows in series.values() for r in rows for v in r or ()))
    at = [LEFT + 24 + (WIDTH - LEFT - 48) * x for x in places(names, across)]
    for x, name in zip(at, names):
        p.text(x, HEIGHT - BOTTOM + 18, name)
    for k, (name, values) in enumerate(series.items()):
        dashed = name.endswith('~')
        colour = DASHED if dashed else COLOURS[k % len(COLOURS)]
        found = [(x, v) for x, v in zip(at, values) if v]
        middle = [(x, p.y(median(v))) for x, v in found]
        p.line(middle, colour, dash='5 4' if dashed else '')
        for x, v in found if not dashed else ():
            for value in v:
                p.dot(x, p.y(value), colour)
        p.end(name.removesuffix('~'), colour, *middle[-1])
    return p.svg()


def curves(title, x_label, y_label, series, named=-1):
    """series: {name: [(x, y), ...]}. `named` is the point that has the name of
    its line above it."""
    p = Plot(title, x_label, y_label,
             max(b for s in series.values() for _, b in s))
    most = max(a for s in series.values() for a, _ in s) * 1.04

    def x(a):
        return LEFT + (WIDTH - LEFT) * a / most

    for v in ticks(most):
        p.text(x(v), HEIGHT - BOTTOM + 18, number(v), 'middle', 11)
    for k, (name, points) in enumerate(series.items()):
        p.line([(x(a), p.y(b)) for a, b in points], COLOURS[k])
        at = points[named]
        p.text(x(at[0]), p.y(at[1]) - 8, name, 'middle', 11,
               COLOURS[k])
    return p.svg()
