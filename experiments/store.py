# SPDX-License-Identifier: MIT
"""A dataset on a refrain mount with an artificially slow origin.

The cache, and the pages that the kernel may keep, are far smaller than the
dataset, so later epochs are as slow as the first.
"""

import contextlib
import os
import subprocess
import tempfile
import time

MOUNT_SECONDS = 30


def wait_for_mount(daemon, path):
    """Wait until it is mounted; fail if its daemon ends."""
    end = time.monotonic() + MOUNT_SECONDS
    while not os.path.ismount(path):
        if daemon.poll() is not None or time.monotonic() > end:
            raise OSError(f"no mount at '{path}'")
        time.sleep(0.05)


@contextlib.contextmanager
def mount(refrain, source, delay_ms):
    """A mount whose origin delays each request by delay_ms; yields its path."""
    with tempfile.TemporaryDirectory(prefix='refrain-echo.') as work:
        path = os.path.join(work, 'mnt')
        os.mkdir(path)
        daemon = subprocess.Popen(
            [refrain, 'mount', '--foreground', source, path,
             '--cache', f'{work}/cache:64K', '--pages', '1M',
             '--fault', f'delay={delay_ms}ms'])
        try:
            wait_for_mount(daemon, path)
            yield path
        finally:
            subprocess.run([refrain, 'umount', path], check=False)
            try:
                daemon.wait(MOUNT_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
