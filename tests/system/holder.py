# SPDX-License-Identifier: MIT
"""Finds the processes that a holder has started."""


def daemons(holder):
    """Return [pid] of the holder's child that serves, or []. The process that
    notifies the kernel is a child, too, and so is every process before it has
    become a daemon."""
    found = []
    try:
        with open('/proc/%d/task/%d/children' % (holder, holder)) as f:
            for pid in f.read().split():
                with open('/proc/%s/comm' % pid) as comm:
                    if comm.read().strip() not in ('refrain-notify',
                                                   'refrain-hold'):
                        found.append(int(pid))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found[:1]
