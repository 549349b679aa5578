# SPDX-License-Identifier: MIT
"""Columns of a batch in other forms."""

import operator


def padded(column, rows=None, fill=0):
    """What Column.padded() returns."""
    import numpy as np

    lengths = column.lengths
    if lengths is None:
        raise ValueError('column %r has one row for each example: use its '
                         'values' % column.name)
    most = int(lengths.max(initial=0))
    rows = most if rows is None else operator.index(rows)
    if rows < most:
        raise ValueError('an example has %d rows in column %r: there is no '
                         'room for them in %d' % (most, column.name, rows))
    values = column.values
    out = np.full((len(lengths), rows) + values.shape[1:], fill, values.dtype)
    out[np.arange(rows) < lengths[:, None]] = values
    return out
