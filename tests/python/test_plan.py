# SPDX-License-Identifier: MIT
"""Tests of the plan helper, in the package and as a single file."""

import subprocess
import sys
import time
import warnings

import pytest

import refrain
from conftest import PATIENCE, TREE


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


def planned(top, names, **settings):
    """Return the plan of a sampler over these names, once the mount has them,
    and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        sampler = refrain.PlannedSampler(range(len(names)), names, **settings)
        assert list(sampler) == list(range(len(names)))
        assert sampler.plan.active and sampler.plan.flush(60 * PATIENCE)
        sampler.plan.close()
    return sampler.plan, [str(w.message) for w in said]


@pytest.mark.parametrize('root', [None, 'mnt', 'mnt/class_0001'])
def test_relative_paths_are_those_that_the_trainer_opens(
        mount, monkeypatch, root):
    monkeypatch.chdir(mount.top.parent)
    names = [str(path.relative_to(mount.top.parent))
             for path in sorted(mount.top.glob('*/*.jpg'))]
    assert len(names) == 60 and names[0].startswith('mnt/')
    plan, said = planned(mount.top, names, root=root)
    assert (plan.left_out, plan.error, said) == (0, None, [])


def test_relative_paths_may_be_below_the_root(mount):
    names = [path.relative_to(mount.top)
             for path in sorted(mount.top.glob('*/*.jpg'))]
    plan, said = planned(mount.top, names, root=mount.top)
    assert (plan.left_out, plan.error, said) == (0, None, [])


def test_a_first_file_that_is_not_there_changes_no_other(mount, monkeypatch):
    monkeypatch.chdir(mount.top.parent)
    names = ['mnt/class_0000/none'] + sorted(
        str(path.relative_to(mount.top.parent))
        for path in mount.top.glob('*/*.jpg'))
    plan, said = planned(mount.top, names)
    assert plan.left_out == 1 and len(said) == 1
    assert 'class_0000/none' in plan.error


@pytest.mark.parametrize('wrong', ['/etc/passwd', 'nowhere/x.jpg', '.'])
def test_names_that_are_left_out_are_said_once(mount, wrong):
    names = sorted(map(str, mount.top.glob('*/*.jpg')))
    plan, said = planned(mount.top, names[:9] + [wrong] + names[9:] + [wrong],
                         root=mount.top)
    assert plan.left_out == 2
    assert said == ['refrain: ' + plan.error]
    assert wrong in plan.error.split(':')[0] and str(mount.top) in plan.error


def test_names_that_come_twice_are_not_said(mount):
    names = sorted(map(str, mount.top.glob('*/*.jpg')))
    plan, said = planned(mount.top, names + names[:20])
    assert (plan.left_out, plan.error, said) == (20, None, [])


def test_a_plan_that_fails_says_so(mount):
    with pytest.warns(RuntimeWarning, match='has ended: .*window'):
        plan = refrain.Plan(mount.top, batch=9, window=1, echo=4)
        plan.flush(60 * PATIENCE)
    assert 'window' in plan.error and not plan.active


def wait_for(condition):
    until = time.monotonic() + 60 * PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_next_daemon_gets_the_plan_from_where_the_reader_is(held):
    names = sorted(map(str, held.top.glob('*/*.jpg')))
    with warnings.catch_warnings(), \
            refrain.Plan(held.top, admit_planned=True) as plan:
        warnings.simplefilter('error')
        plan.epoch(0, names)
        plan.epoch(1, [held.top / 'none'] + names[::-1])
        plan.progress(70)
        assert plan.flush(60 * PATIENCE) and plan.left_out == 1
        for times in 1, 2:
            held.kill()
            wait_for(lambda: plan.returns == times)
            status = held.status()
            assert status['plans_again'] == status['plans'] == 1
            # Of 61 names in epoch 1, 10 were read. The tier has one file.
            assert status['planned_positions'] in (50, 51)
            assert status['plans_admitting'] == 1
        plan.epoch(2, names)
        plan.progress(100)
        assert plan.flush(60 * PATIENCE)
        assert held.status()['planned_positions'] in (20 + 60, 21 + 60)
        assert plan.active and plan.left_out == 1
        assert plan.error.startswith('none: ')


def test_without_progress_the_mount_knows_where_the_reader_is(held):
    names = sorted(held.top.glob('*/*.jpg'))
    with refrain.Plan(held.top, slack=4) as plan:
        plan.epoch(0, names)
        assert plan.flush(60 * PATIENCE)
        for name in names[:30]:
            name.read_bytes()
        wait_for(lambda: plan._used == 30)
        held.kill()
        wait_for(lambda: plan.returns == 1)
        assert held.status()['planned_positions'] in (29, 30)


def test_a_plan_ends_with_its_mount(mount):
    with pytest.warns(RuntimeWarning, match='has ended'):
        plan = refrain.Plan(mount.top)
        assert plan.flush(60 * PATIENCE)
        mount.daemon.kill()
        wait_for(lambda: not plan.active)
    assert plan.error and plan.returns == 0
