# SPDX-License-Identifier: MIT
"""The plan helper, in the package and as one file."""

import subprocess
import sys

import refrain
from conftest import TREE


def test_off_a_mount_a_sampler_is_handed_through(tmp_path):
    sampler = refrain.PlannedSampler([2, 0, 1], ['a', 'b', 'c'],
                                     root=tmp_path)
    assert not sampler.plan.active and len(sampler) == 3
    assert list(sampler) == [2, 0, 1]
    with refrain.Plan(tmp_path) as plan:
        plan.epoch(0, ['a'])
        assert plan.flush() is False and plan.error is None


def test_the_file_stands_alone(tmp_path):
    text = (TREE / 'tools/refrain_plan.py').read_text()
    (tmp_path / 'refrain_plan.py').write_text(text)
    subprocess.run([sys.executable, '-I', '-c', 'import sys; '
                    'sys.path.insert(0, sys.argv[1]); '
                    'import refrain_plan; '
                    'assert refrain_plan.Plan("/").active is False',
                    tmp_path], check=True)
