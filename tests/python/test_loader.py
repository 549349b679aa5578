# SPDX-License-Identifier: MIT
"""Tests of the stream: its examples, their order, epochs, and saved states."""

import ctypes
import ctypes.util
import json
import os
import re

import numpy as np
import pytest

import refrain
from conftest import CLASSES, IMAGES, TREE, command


class Xxh3:
    """XXH3-64 of the bytes that are added, as `refrain load` computes it."""

    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library('xxhash') or
                               'libxxhash.so.0')
        for name in ('XXH3_createState', 'XXH3_64bits_digest'):
            getattr(self.lib, name).restype = {
                'XXH3_createState': ctypes.c_void_p}.get(
                    name, ctypes.c_uint64)
        self.state = ctypes.c_void_p(self.lib.XXH3_createState())
        self.lib.XXH3_64bits_reset(self.state)

    def add(self, batch):
        """Add the bytes of a batch."""
        self.lib.XXH3_64bits_update(self.state,
                                    ctypes.c_void_p(batch.address),
                                    ctypes.c_size_t(batch.nbytes))

    def value(self):
        """Return the hash in hexadecimal digits."""
        return '%016x' % self.lib.XXH3_64bits_digest(self.state)


@pytest.mark.parametrize('more', [
    {},
    {'echo': 4, 'type': 'f32', 'layout': 'nchw'},
    {'echo': 2.5, 'echo_point': 'after', 'no_flip': True, 'type': 'f16'},
    {'echo': '5/2', 'echo_point': 'batch', 'mean': (0.5, 0.4, 0.3), 'std': 1},
])
def test_stream_and_pixels_are_those_of_the_command(data, options, more):
    options.update(more, epochs=2)
    words = []
    for name, value in options.items():
        name = {'memory_bytes': 'memory'}.get(name, name.replace('_', '-'))
        if isinstance(value, tuple):
            value = ','.join(map(str, value))
        words += ['--' + name] + ([] if value is True else [value])
    want = json.loads(command('load', data, *words, '--json'))
    pixels = Xxh3()
    with refrain.Loader(data, **options) as loader:
        steps = 0
        for _ in range(2):
            for batch in loader:
                pixels.add(batch)
                steps += 1
        stats = loader.stats()
    assert steps == want['steps']
    assert stats['stream_hash'] == want['stream_hash']
    assert pixels.value() == want['pixel_hash']


def test_batch_describes_its_examples(data, options):
    with refrain.Loader(data, **options) as loader:
        assert loader.examples == IMAGES
        assert len(loader.classes) == CLASSES
        batch = next(iter(loader))
        assert len(batch) == batch.count == 16
        assert batch.shape == batch.data.shape == (16, 32, 32, 3)
        assert batch.data.dtype == np.uint8 and batch.labels.dtype == np.int64
        assert batch.indices.dtype == batch.seeds.dtype == np.uint64
        assert batch.echoes.dtype == np.uint32
        assert batch.status.dtype == np.int32 and not batch.status.any()
        assert (batch.step, batch.epoch, batch.fresh) == (0, 0, 16)
        assert batch.ends_epoch is False
        for index, label in zip(batch.indices, batch.labels):
            name = loader.path(index).split('/')[0]
            assert loader.classes[label] == name
        with pytest.raises(IndexError):
            loader.path(IMAGES)
    assert loader.closed


def test_a_sample_is_its_crop_of_the_image(data, options):
    """Each echo has a crop of its own. A sample whose crop has the size of the
    sample is a copy of it."""
    options.update(echo=2, epochs=1, policy='fail')
    seen = {}
    with refrain.Loader(data, **options) as loader:
        for b in loader:
            c = b.crops
            assert (c['image_width'] == 48).all() and (c['flip'] < 2).all()
            assert (c['x'] >= 0).all() and (c['y'] >= 0).all()
            assert (c['x'] + c['width'] <= c['image_width']).all()
            assert (c['y'] + c['height'] <= c['image_height']).all()
            for index, crop in zip(b.indices.tolist(), c.tolist()):
                seen.setdefault(index, []).append(crop)
    assert len(seen) == IMAGES and {len(v) for v in seen.values()} == {2}
    assert sum(a != b for a, b in seen.values()) > IMAGES * 0.9
    with refrain.Loader(data, batch=4, augment='none', width=48, height=36,
                        in_order=True, no_flip=True) as loader:
        whole = next(iter(loader))
        images, labels = whole.data.copy(), whole.labels.copy()
    with refrain.Loader(data, batch=4, augment='train', size='48x36',
                        in_order=True, area_min=1, aspect_min='4/3',
                        aspect_max='4/3', exact=True) as loader:
        b = next(iter(loader))
        assert (b.labels == labels).all()
        for image, crop, sample in zip(images, b.crops, b.data):
            assert crop['width'] == 48 and crop['height'] == 36
            assert (sample == (image[:, ::-1] if crop['flip'] else image)).all()


@pytest.mark.parametrize('echo', [1, 2])
def test_one_iter_is_one_epoch_and_the_next_goes_on(data, options, echo):
    seen = []
    with refrain.Loader(data, echo=echo, epochs=3, **options) as loader:
        total = loader.total_steps
        for epoch in range(3):
            assert loader.epoch == epoch
            length = len(loader)
            steps = [batch.step for batch in loader]
            assert len(steps) == length
            seen += steps
            assert epoch == 2 or loader.epoch == epoch + 1
        assert seen == list(range(total))
        assert loader.stats()['fresh'] == 3 * IMAGES
        assert loader.stats()['served'] == 3 * IMAGES * echo
        with pytest.raises(RuntimeError, match='3 epochs is over'):
            iter(loader)


def test_a_loop_that_was_left_continues_its_epoch(data, options):
    with refrain.Loader(data, **options) as loader:
        length = len(loader)
        for batch in loader:
            if batch.step == 3:
                break
        assert len(loader) == length
        assert [b.step for b in loader] == list(range(4, length))
        assert loader.total_steps is None and loader.epochs is None


def test_epochs_are_required_for_echoes(data, options):
    with pytest.raises(TypeError, match='epochs= is required'):
        refrain.Loader(data, echo='3/2', **options)
    refrain.Loader(data, echo=1.0, **options).close()


def test_echo_auto_needs_no_epochs_and_logs_its_changes(data, options):
    options.update(window=512, reads_ahead=16, echo='auto')
    with refrain.Loader(data, **options) as loader:
        assert sum(b.fresh for b in loader) >= IMAGES
        assert loader.epoch == 1
        assert loader.echo_log() == '' or '/' in loader.echo_log()
        with pytest.raises(ValueError, match='in order'):
            loader.set_epoch(3)


def steps_of(loader):
    """Return the number of steps of each loop over a loader, and its stream."""
    counts, seen = [], []
    for epoch in range(loader.epochs):
        assert loader.epoch == epoch
        length = len(loader)
        stream = [b.seeds.tolist() for b in loader]
        assert len(stream) == length
        counts.append(length)
        seen += stream
    return counts, seen


@pytest.mark.parametrize('epochs, echo', [(3, 4), (4, 2.5), (2, 1)])
def test_even_epochs_have_equal_steps(data, options, epochs, echo):
    keywords = dict(options, epochs=epochs, echo=echo)
    with refrain.Loader(data, **keywords) as loader:
        uneven, stream = steps_of(loader)
    with refrain.Loader(data, even=True, **keywords) as loader:
        even, same = steps_of(loader)
        with pytest.raises(RuntimeError, match='is over'):
            iter(loader)
    assert max(even) - min(even) <= 1 and sum(even) == sum(uneven)
    assert same == stream       # the stream is the same, but cut elsewhere
    if echo > 1:
        assert max(uneven) - min(uneven) > 1


def test_even_epochs_are_resumed_and_sought(data, options):
    keywords = dict(options, epochs=3, echo=4, even=True)
    with refrain.Loader(data, **keywords) as loader:
        length = len(loader)
        for _ in zip(range(length + 2), loader):
            pass
        for _ in zip(range(2), loader):
            pass
        state, step = loader.state_dict(), loader.step
    with refrain.Loader(data, state=state, **keywords) as loader:
        assert (loader.epoch, loader.step) == (1, step)
        assert sum(1 for _ in loader) == 2 * length - step
        loader.set_epoch(1)
        assert loader.step == length
        assert sum(1 for _ in loader) == length


def test_even_epochs_need_an_end_and_a_fixed_echo(data, options):
    with pytest.raises(refrain.ConfigError, match='even needs epochs'):
        refrain.Loader(data, even=True, **options)
    with pytest.raises(refrain.ConfigError, match='even needs a fixed echo'):
        refrain.Loader(data, even=True, epochs=2, echo='auto', **options)


def test_labels_with_gaps_have_no_class_between(data, tmp_path, options):
    images = sorted(data.glob('*/*.jpg'))
    lines = ['%s\t%d\n' % (path.relative_to(data), label)
             for path, label in zip(images, (0, 5, 9))]
    (tmp_path / 'list').write_text(''.join(lines))
    with refrain.Loader(tmp_path / 'list', root=data, **options) as loader:
        assert loader.classes == ['0', None, None, None, None, '5',
                                  None, None, None, '9']
    (tmp_path / 'list').write_text(lines[0].replace('\t0', '\t2147483647'))
    with refrain.Loader(tmp_path / 'list', root=data, **options) as loader:
        with pytest.raises(ValueError, match='2147483647'):
            loader.classes


def test_set_epoch_checks_or_seeks(data, options):
    options.update(echo=2, epochs=3)
    with refrain.Loader(data, **options) as loader:
        whole = [[b.seeds.tolist() for b in loader] for _ in range(3)]
    with refrain.Loader(data, **options) as loader:
        loader.set_epoch(0)
        loader.set_epoch(2)
        assert loader.epoch == 2
        assert [b.seeds.tolist() for b in loader] == whole[2]
        loader.set_epoch(1)
        next(iter(loader))
        # in the middle of the epoch, the loader continues
        loader.set_epoch(1)
        assert [b.seeds.tolist() for b in loader] == whole[1][1:]
        for epoch in (-1, 3, 1 << 70):
            with pytest.raises(ValueError, match='run of 3'):
                loader.set_epoch(epoch)
        loader.set_epoch(np.int64(0))
        assert loader.epoch == 0
        with pytest.raises(TypeError, match='as an integer'):
            loader.set_epoch('1')


def test_a_run_without_an_end_has_a_last_epoch(data, options):
    with refrain.Loader(data, **options) as loader:
        for epoch in (1 << 20, 1 << 70):
            with pytest.raises(ValueError, match='run'):
                loader.set_epoch(epoch)
        loader.set_epoch(1000)
        assert loader.epoch == 1000


STREAM = '''
import pickle, sys, refrain
options = pickle.loads(bytes.fromhex(sys.argv[2]))
loader = refrain.Loader(sys.argv[1], **options)
for epoch in range(loader.epoch, loader.epochs):
    for batch in loader:
        print(batch.step, batch.seeds.tolist(), batch.data.sum())
'''


def test_a_new_process_goes_on_with_the_same_stream(data, options, child):
    pickle = pytest.importorskip('pickle')
    options.update(echo=2, epochs=2)
    want, state = [], None
    with refrain.Loader(data, **options) as loader:
        for _ in range(2):
            for b in loader:
                if state:
                    want.append('%d %s %d' % (b.step, b.seeds.tolist(),
                                              b.data.sum()))
                if b.step == 17:
                    state = loader.state_dict()
                    assert state == b.state_dict()
    assert state['step'] == 18
    again = child(STREAM, data, pickle.dumps(dict(options,
                                                  state=state)).hex())
    out, err, status = again.end()
    assert status == 0, err
    assert out.splitlines() == want


def test_state_of_a_batch_is_the_position_after_it(data, options):
    with refrain.Loader(data, **options) as loader:
        it = iter(loader)
        batches = [next(it) for _ in range(4)]
        state = batches[1].state_dict()
        third = batches[2].seeds.copy()
        del batches
        loader.load_state_dict(state)
        assert loader.step == 2
        batch = next(iter(loader))
        assert (batch.seeds == third).all()
    with pytest.raises(refrain.ClosedError):
        batch.state_dict()


def test_states_that_do_not_fit_are_refused(data, own, options):
    with refrain.Loader(data, **options) as loader:
        state = loader.state_dict()
    with pytest.raises(refrain.StateError, match='dataset'):
        refrain.Loader(own, state=state, **options)
    bad = dict(state, state=state['state'][:-1])
    with pytest.raises(refrain.StateError):
        refrain.Loader(data, state=bad, **options)
    with pytest.raises(TypeError):
        refrain.Loader(data, state={'step': 3}, **options)
    with pytest.raises(ValueError, match='version 2'):
        refrain.Loader(data, state=dict(state, refrain=2), **options)


@pytest.mark.parametrize('world,examples,batch,more', [
    (7, 300, 50, {}),
    (3, 500, 83, {}),
    (3, 500, 83, {'echo': 2, 'window': 512}),
])
def test_ranks_end_every_epoch_at_the_same_step(listed, options, world,
                                                examples, batch, more):
    ends, fresh, seen = [], 0, []
    options.update(more, batch=batch, world=world, pad_ranks=True, epochs=3)
    dataset = listed(examples)
    for rank in range(world):
        with refrain.Loader(dataset, rank=rank, **options) as loader:
            assert loader.examples == examples
            steps = []
            ended = []
            for _ in range(3):
                for b in loader:
                    seen += b.indices[b.echoes == 0].tolist()
                    ended += [b.ended_epoch] if b.ends_epoch else []
                steps.append(b.step)
            ends.append(steps)
            assert ended == [0, 1, 2]
            fresh += loader.stats()['fresh']
    assert ends == [ends[0]] * world
    assert fresh == world * -(-3 * examples // world)
    assert set(seen) == set(range(examples))


def test_targets_are_of_the_examples_that_are_there(own, options):
    path = next(own.glob('*/*.jpg'))
    path.write_bytes(b'no image')
    values = np.arange(60) * 10
    options.update(epochs=1)
    with refrain.Loader(own, targets=values, **options) as loader:
        replaced = 0
        for b in loader:
            assert (b.targets == b.substitutes * 10).all()
            replaced += (b.indices != b.substitutes).sum()
        assert replaced == 1
    with refrain.Loader(own, targets=lambda i: -i.astype('int64'),
                        **options) as loader:
        b = next(iter(loader))
        assert (b.targets == -b.substitutes.astype('int64')).all()
    with refrain.Loader(own, **options) as loader:
        b = next(iter(loader))
        assert (b.targets == b.labels).all()


# -- The configuration --------------------------------------------------------

def header_members(struct='refrain_config'):
    """Return the names of the members of a struct in the header."""
    text = (TREE / 'include/refrain/loader.h').read_text()
    text = re.search(r'struct %s \{(.*?)\n\};' % struct, text, re.S)[1]
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    names = []
    for line in text.split(';'):
        line = ' '.join(line.split())
        called = re.match(r'.*?\(\*(\w+)\)\(', line)
        if called:
            names.append(called[1])
            continue
        names += re.findall(r'(\w+)(?:\[\d+\])?(?:,|$)', line)
    return names


def test_every_member_of_the_configuration_is_a_keyword():
    other = {'size', 'flags', 'decode', 'augment_fn', 'ctx', 'cpus',
             'cpu_count', 'alloc', 'free', 'alloc_ctx', 'state',
             'state_bytes'}
    names = {n for n in header_members() if not n.startswith('reserved')}
    assert len(names) > 45
    assert names - other - set(refrain.members()) == set()
    for name in refrain.members():
        assert name == 'dataset' or '\n    %s: ' % name in \
            refrain.Loader.__doc__


def test_every_member_of_the_configuration_is_an_option():
    renamed = {'memory_bytes': 'memory', 'pad_ranks': 'pad',
               'last': 'drop-last', 'open_timeout_ms': 'timeout'}
    other = {'dataset', 'decoded_max_bytes', 'sample_bytes'}
    options = set(re.findall(r'--([a-z][a-z-]*)', command('load', '--help')))
    names = {renamed.get(n, n).replace('_', '-')
             for n in refrain.members() if n not in other}
    assert len(names) > 40
    assert names - options == set()


def test_every_flag_of_the_configuration_is_a_keyword():
    text = (TREE / 'include/refrain/loader.h').read_text()
    flags = re.findall(r'#define REFRAIN_FLAG_(\w+)', text)
    kinds = {name: row[0] for name, row in refrain.members().items()}
    assert len(flags) > 8
    assert {kinds.get(flag.lower()) for flag in flags} == {'flag'}


def test_every_member_of_a_batch_is_an_attribute():
    other = {'size', 'data_bytes', 'sample_bytes', 'type', 'layout', 'ndim',
             'columns', 'column_count', 'column_bytes', 'crop_bytes',
             'reserved'}    # batch['image']
    names = set(header_members('refrain_batch'))
    assert len(names) > 18
    assert names - other - set(dir(refrain.Batch)) == set()


@pytest.mark.parametrize('name', ['Batch', 'Column', 'View', 'Loader', 'Echo'])
def test_stubs_have_every_public_name(name):
    texts = ''.join((TREE / 'python/refrain' / stub).read_text()
                    for stub in ('_refrain.pyi', '__init__.pyi'))
    declared = set()
    for body in re.findall(r'^class %s\b.*?(?=^\S|\Z)' % name, texts,
                           re.M | re.S):
        declared |= set(re.findall(r'^    def (\w+)', body, re.M))
    kind = getattr(refrain, name)
    public = {n for n in dir(kind) if not n.startswith('_')}
    assert declared and public - declared == set()
    assert declared - set(dir(kind)) - {'__buffer__'} == set()


def test_stub_has_every_keyword():
    stub = (TREE / 'python/refrain/__init__.pyi').read_text()
    init = re.search(r'class Loader.*?def __init__\((.*?)\) -> None', stub,
                     re.S)[1]
    names = set(re.findall(r'^\s+(\w+):', init, re.M)) - {'self'}
    assert names == set(refrain.members()) | {
        'decode', 'augment_fn', 'targets', 'cpus', 'state', 'timeout',
            'even'}


def test_values_may_be_of_python_s_types(data, options):
    cpus = sorted(os.sched_getaffinity(0))[:1]
    options.update(size='40x24', echo=np.float32(1.5), epochs=np.int64(1),
                   jitter=[0.4, 0.3, 0.1], in_order=True, cpus=cpus,
                   area_min=None)
    with refrain.Loader(str(data), **options) as loader:
        batch = next(iter(loader))
        assert batch.shape == (16, 24, 40, 3)
        assert (batch.indices == np.arange(16)).all()


@pytest.mark.parametrize('bad,error,words', [
    ({'batch': 0}, refrain.ConfigError, 'batch is 0'),
    ({'type': 'u16'}, ValueError, 'not one of u8'),
    ({'echo': object()}, TypeError, 'echo must be'),
    ({'bach': 3}, TypeError, 'did you mean batch?'),
    ({'tragets': 3}, TypeError, 'did you mean targets?'),
    ({'dataset': 'x'}, TypeError, 'dataset'),
    ({'rank': 2, 'world': 2}, ValueError, 'below world'),
    ({'mean': (1, 2)}, ValueError, '3 numbers'),
    ({'threads': -1}, ValueError, 'whole number'),
    ({'epochs': 0}, refrain.ConfigError, 'epochs is 0'),
    ({'echo_log': 'a\0b'}, ValueError, 'null byte'),
    ({'decode': b'', 'decoded_max_bytes': 1}, TypeError, 'decode must be'),
    ({'augment_fn': 1}, TypeError, 'augment_fn must be'),
])
def test_values_that_make_no_sense_are_refused(data, options, bad, error,
                                               words):
    with pytest.raises(error, match=words):
        refrain.Loader(data, **{**options, **bad})


def test_a_path_with_a_null_byte_is_refused(data, options):
    with pytest.raises(ValueError, match='null byte'):
        refrain.Loader(str(data) + '\0of another', **options)


def test_batch_is_required(data):
    with pytest.raises(TypeError, match='batch= is required'):
        refrain.Loader(data)
