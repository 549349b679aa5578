#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Create the tables and plots of the experiments from their results.

Tables go into a document between lines `<!-- table: NAME -->` and
`<!-- end -->`, plots into a folder next to it. With --check nothing is written;
the exit status says whether everything is up to date.
"""

import argparse
import pathlib
import sys

from plots import PLOTS
from results import Results
from tables import TABLES

TOP = pathlib.Path(__file__).resolve().parent.parent


def fill(text, results):
    """The document with new tables."""
    out, inside = [], False
    for line in text.splitlines():
        if line == '<!-- end -->':
            inside = False
        if not inside:
            out.append(line)
        if line.startswith('<!-- table: '):
            name = line.split()[2]
            out += ['', TABLES[name](results), '']
            inside = True
    return '\n'.join(out) + '\n'


def put(path, text, check):
    """Write the text if it differs. Returns True if it was the same."""
    same = path.exists() and path.read_text() == text
    if not same and not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if not same:
        print(f"{path.name}: {'differs' if check else 'written'}")
    return same


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--check', action='store_true')
    p.add_argument('--document', type=pathlib.Path,
                   default=TOP / 'doc' / 'echoing.md')
    p.add_argument('results', nargs='*', type=pathlib.Path,
                   default=sorted((TOP / 'experiments' / 'results')
                                  .glob('*.jsonl')))
    args = p.parse_args()
    results = Results(args.results)
    doc = args.document
    same = put(doc, fill(doc.read_text(), results), args.check)
    for name, (draw, needed) in PLOTS.items():
        if all(results.of(group) for group in needed):
            same &= put(doc.parent / 'echoing' / f'{name}.svg',
                        draw(results), args.check)
    return 1 if args.check and not same else 0


if __name__ == '__main__':
    sys.exit(main())
