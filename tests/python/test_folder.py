# SPDX-License-Identifier: MIT
"""Tests of the classes of a folder, compared with torchvision, and of files
that are left out."""

import errno
import shutil

import pytest

import refrain

ONE = {'batch': 4, 'size': 8, 'in_order': True, 'epochs': 1, 'threads': 1}


def build(root, image, names):
    """Create files below a root: copies of the image, or a text if the name
    ends in .txt. A name that ends with a slash is a directory."""
    for name in names:
        path = root / name
        if name.endswith('/'):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith('.txt'):
            path.write_text('no image')
        else:
            shutil.copy(image, path)


@pytest.fixture
def image(data):
    return sorted(data.glob('*/*.jpg'))[0]


FOLDERS = [
    ['a/1.png', 'b/x.jpg', 'c/x.jpg'],
    ['b/x.jpg', 'empty/', '.hidden/y.txt', 'lost+found/', 'c/d/e/x.jpg'],
    ['10/x.jpg', '9/x.jpg', 'B/x.jpg', 'a-/x.jpg', 'a/x.jpg', 'a b/x.txt',
     '\u00e9/x.jpg', '\u20ac/x.jpg', '\U0001f600/x.jpg', 'root.jpg'],
]


@pytest.mark.parametrize('names', FOLDERS)
def test_labels_are_those_of_image_folder(tmp_path, image, names):
    datasets = pytest.importorskip('torchvision.datasets')
    build(tmp_path / 'd', image, names)
    build(tmp_path, image, ['far/x.jpg'])
    (tmp_path / 'd' / 'link').symlink_to('../far')
    (tmp_path / 'd' / 'none').symlink_to('../nowhere')
    theirs = datasets.ImageFolder.find_classes(None, tmp_path / 'd')[1]
    with refrain.Loader(tmp_path / 'd', **ONE) as loader:
        assert loader.classes == sorted(theirs, key=theirs.get)
        for batch in loader:
            for index, label in zip(batch.indices, batch.labels):
                top, _, rest = loader.path(index).partition('/')
                assert label == (theirs[top] if rest else -1)


def test_what_is_left_out_is_counted(tmp_path, image):
    build(tmp_path, image, ['a"b/1.gif', 'a"b/2.gif', 'b/x.jpg', 'c/x.png'])
    with refrain.Loader(tmp_path, **ONE) as loader:
        stats = loader.stats()
    assert stats['skipped_files'] == 2
    assert stats['skipped_first'] == 'a"b/1.gif'
    assert (stats['empty_classes'], stats['empty_first']) == (1, 'a"b')


def test_nothing_is_left_out(tmp_path, image):
    build(tmp_path, image, ['b/x.jpg', 'c/x.jpg'])
    with refrain.Loader(tmp_path, **ONE) as loader:
        stats = loader.stats()
    assert (stats['skipped_files'], stats['empty_classes']) == (0, 0)
    assert stats['skipped_first'] is None and stats['empty_first'] is None


def test_pngs_are_examples_as_jpegs_are(tmp_path, image):
    build(tmp_path, image, ['a/1.png', 'a/2.PNG', 'b/x.jpg'])
    with refrain.Loader(tmp_path, **ONE) as loader:
        stats = loader.stats()
        paths = [loader.path(i) for i in range(3)]
    assert paths == ['a/1.png', 'a/2.PNG', 'b/x.jpg']
    assert (stats['skipped_files'], stats['empty_classes']) == (0, 0)


def test_a_folder_without_an_image_is_refused_with_the_reason(tmp_path, image):
    build(tmp_path, image, ['a/1.gif', 'a/2.gif'])
    with pytest.raises(refrain.Error, match="2 files skipped, the first is "
                                            "'a/1.gif'") as e:
        refrain.Loader(tmp_path, **ONE)
    assert e.value.errno == errno.ENODATA
