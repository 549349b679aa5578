# SPDX-License-Identifier: MIT
"""Tests of the programs in examples/ that are in Python."""

import importlib.util
import subprocess
import sys

import pytest

from conftest import PATIENCE, TREE


@pytest.mark.skipif(importlib.util.find_spec('torch') is None,
                    reason='needs PyTorch')
def test_train_prints_a_row_for_each_way(own):
    out = subprocess.run(
        [sys.executable, TREE / 'examples/train.py', own, own, '--epochs',
         '1', '--echo', '1', '2', '--workers', '0', '--size', '8',
         '--batch', '16'],
        check=True, stdout=subprocess.PIPE, timeout=120 * PATIENCE)
    rows = [line.split() for line in out.stdout.decode().splitlines()]
    names = [' '.join(row[:-5]) for row in rows[1:]]
    assert names[-2:] == ['refrain, e = 1', 'refrain, e = 2']
    assert [int(row[-5]) for row in rows[-2:]] == [4, 8]


def test_search_decodes_once_for_all_jobs_that_share(own):
    out = subprocess.run(
        [sys.executable, TREE / 'examples/search.py', own, own, '--rates',
         '0.1', '1', '--epochs', '1', '--size', '8', '--batch', '16'],
        check=True, stdout=subprocess.PIPE, timeout=120 * PATIENCE)
    rows = [line.split() for line in out.stdout.decode().splitlines()]
    apart, shared = rows[1:4], rows[4:7]
    assert [row[:2] for row in shared] == [
        ['shared', '0.1'], ['shared', '1'], ['shared', 'all']]
    assert [row[2] for row in apart[:2]] == [row[2] for row in shared[:2]]
    assert apart[2][-2] == '120' and shared[2][-2] == '60'
