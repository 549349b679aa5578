# SPDX-License-Identifier: MIT
"""Builds the extension against the installed library, which pkg-config finds,
or, with REFRAIN_ARCHIVE, around that librefrain.a, see `make wheel`."""

import glob
import os
import subprocess
import sys

from setuptools import Extension, setup

try:
    from wheel.bdist_wheel import bdist_wheel
except ImportError:
    bdist_wheel = None


def pkg_config(what):
    """The words that pkg-config prints for refrain."""
    try:
        return subprocess.run(['pkg-config', what, 'refrain'], check=True,
                              stdout=subprocess.PIPE).stdout.decode().split()
    except (OSError, subprocess.CalledProcessError):
        sys.exit('refrain: pkg-config does not find the library: install it '
                 'first (README.md), or set PKG_CONFIG_PATH to the directory '
                 'of refrain.pc')


archive = os.environ.get('REFRAIN_ARCHIVE')


def library():
    """The words for the compiler, and for the linker. The archives that a
    wheel has inside must not offer their names to other modules."""
    if archive:
        return [], [archive, '-l:libturbojpeg.a', '-l:libjpeg.a',
                    '-l:liburing.a', '-l:libxxhash.a', '-pthread', '-lm',
                    '-Wl,--exclude-libs,ALL', '-Wl,--wrap=stderr']
    libs = pkg_config('--libs')
    return pkg_config('--cflags'), libs + [
        '-Wl,-rpath,' + word[2:] for word in libs if word.startswith('-L')]


# The buffer protocol is in the stable ABI from 3.11 on.
stable = sys.version_info >= (3, 11)
cflags, libs = library()
extension = Extension(
    'refrain._refrain',
    sources=sorted(glob.glob('ext/*.c')) + ['archive.c'] * bool(archive),
    depends=['ext/ext_impl.h'],
    define_macros=[('_GNU_SOURCE', None)] +
    ([('REFRAIN_LIMITED_API', None)] if stable else []),
    extra_compile_args=['-std=c11', '-fvisibility=hidden'] + cflags,
    extra_link_args=libs,
    py_limited_api=stable)

commands = {}
if bdist_wheel and stable:
    class StableWheel(bdist_wheel):
        """One wheel for this version of Python and all later ones."""

        def finalize_options(self):
            self.py_limited_api = 'cp311'
            super().finalize_options()

    commands['bdist_wheel'] = StableWheel

setup(ext_modules=[extension], cmdclass=commands)
