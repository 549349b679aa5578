# SPDX-License-Identifier: MIT
"""What a holder has started."""


def daemons(holder):
    """Its child that serves, or no process: [] or [pid]. The process that
    notifies the kernel is a child, too, and so is each before it has become a
    daemon."""
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
