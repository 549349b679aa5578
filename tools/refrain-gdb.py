# SPDX-License-Identifier: MIT
"""gdb commands that print what a mount or a loader is doing.

    gdb -p PID -x refrain-gdb.py        a process, or `gdb PROGRAM CORE -x ...`
    (gdb) refrain-fill                  the fills of the mount
    (gdb) refrain-fill EXPRESSION       one: a struct fill, or a pointer to it
    (gdb) refrain-step                  the unfinished steps of the loader
    (gdb) refrain-step EXPRESSION       one: a struct step, or a pointer to it

Without an expression, the mount or the loader is searched for in the frames of
all threads. The program needs its debug information (-g). The commands only
read memory: they call no function of the process, and take none of its locks.
A mount does not answer while gdb has it stopped, so do not let gdb use files
below its mountpoint. gdb attaches only when all threads have stopped. A thread
in a system call that hangs, such as a read of a source or a mount that does not
answer, stops when that call ends; gdb 13 also waits for threads of io_uring
(iou-wrk) in such a call. `refrain status --debug` answers meanwhile.
"""

import time

import gdb
import gdb.types

# A longer list is damaged, or too long to print.
LONGEST = 10000


# -- C ------------------------------------------------------------------------

def member_at(kind, path):
    """Return the offset in bytes of a member, such as `out.link`."""
    at = 0
    for name in path.split('.'):
        at += kind[name].bitpos // 8
        kind = kind[name].type
    return at


def each(head, tag, path):
    """Yield the structs on a list (list.h) whose node is their member `path`."""
    kind = gdb.lookup_type('struct ' + tag)
    link = head['next']
    for _ in range(LONGEST):
        if int(link) == int(head.address):
            return
        at = int(link) - member_at(kind, path)
        yield gdb.Value(at).cast(kind.pointer())
        link = link['next']
    print('  (the list is damaged, or has more than %d members)' % LONGEST)


def word(value):
    """Return the name of an enumerator without its prefix: `staged` for
    FILL_STAGED."""
    return str(value).split('_', 1)[-1].lower()


def text(pointer):
    """Return a path as text; its bytes need not be UTF-8."""
    if int(pointer) == 0:
        return '?'
    return pointer.string('utf-8', 'backslashreplace')


def age(since_ns):
    """Return the time since `since_ns` as text, by the clock of this machine."""
    since_ns = int(since_ns)
    connection = gdb.selected_inferior().connection
    if since_ns == 0:
        return 'never'
    if connection is None or connection.type != 'native':  # a core dump
        return 'since %.3f s of the clock' % (since_ns / 1e9)
    return '%.1f s' % ((time.monotonic_ns() - since_ns) / 1e9)


def magic_is_right(pointer, tag):
    numbers = gdb.types.make_enum_dict(gdb.lookup_type('enum magic_number'))
    found = int(pointer['magic'])
    return found == numbers['MAGIC_' + tag] & 0xffffffff


def in_frame(frame, tags):
    """Return the pairs (name, pointer) of a frame's pointers to these structs."""
    try:
        block = frame.block()
    except RuntimeError:  # the frame has no debug information
        return
    while block:
        for symbol in block:
            if not (symbol.is_argument or symbol.is_variable):
                continue
            kind = gdb.types.get_basic_type(symbol.type)
            if kind.code != gdb.TYPE_CODE_PTR:
                continue
            tag = gdb.types.get_basic_type(kind.target()).tag
            if tag not in tags:
                continue
            try:
                value = symbol.value(frame)
                if magic_is_right(value, tag):
                    yield tag, value
            except (gdb.error, gdb.MemoryError):
                pass  # the variable is optimised out, or not set yet
        block = None if block.function else block.superblock


def find(tags):
    """Return the structs with these names, by address, in the frames of all
    threads."""
    found = {}
    thread = gdb.selected_thread()
    if thread is None:
        raise gdb.GdbError('there is no process: attach to one, or load a core')
    frame = gdb.selected_frame()
    for other in gdb.selected_inferior().threads():
        other.switch()
        f = gdb.newest_frame()
        while f is not None:
            for tag, value in in_frame(f, tags):
                found[int(value)] = (tag, value)
            f = f.older()
    thread.switch()
    frame.select()
    return list(found.values())


def evaluate(expression, tag):
    """Return a pointer to a struct of this name."""
    value = gdb.parse_and_eval(expression)
    kind = gdb.types.get_basic_type(value.type)
    if kind.code != gdb.TYPE_CODE_PTR and value.address is not None:
        value = value.address
        kind = gdb.types.get_basic_type(value.type)
    if (kind.code != gdb.TYPE_CODE_PTR or
            gdb.types.get_basic_type(kind.target()).tag != tag):
        raise gdb.GdbError('%s is not a struct %s' % (expression, tag))
    return value


# -- A mount ------------------------------------------------------------------

def page_runs(f):
    """Return the states of a fill's pages: `0-11 present, 12-48 inflight`."""
    states = gdb.lookup_type('enum page_state')
    mask = gdb.types.make_enum_dict(states)['PAGE_STATE_MASK']
    runs = []
    for i in range(int(f['npages'])):
        state = word(gdb.Value(int(f['page'][i]) & mask).cast(states))
        if runs and runs[-1][2] == state:
            runs[-1][1] = i
        else:
            runs.append([i, i, state])
    return ', '.join('%d-%d %s' % tuple(run) for run in runs)


def requests(cache):
    """Return the requests in flight: to the origin, then to other providers."""
    flight = cache['requests']['flight']
    for name in 'inflight', 'slow':
        for x in each(flight[name], 'fetch', 'out.link'):
            yield x, 'the origin'
    for i in range(int(cache['config']['nproviders'])):
        provider = cache['asked']['provider'][i]
        for name in 'inflight', 'late':
            for x in each(provider[name], 'fetch', 'out.link'):
                yield x, 'provider %d' % i


def requests_of(f):
    for x, to in requests(f['move']['cache']):
        for i in range(int(x['nspans'])):
            span = x['span'][i]
            if int(span['f']) == int(f):
                yield x, to, span


def fill_line(f):
    item = f['item']
    return 'FILL %#x: %s, %s: %d bytes at %d of %s' % (
        int(f), word(f['phase']), word(f['prio']), int(item['size']),
        int(item['base']), text(f['path']))


def print_fill(f):
    print(fill_line(f))
    print('  %d references, made %s; claim %s, offer %s, tally %s; %s' % (
        int(f['refs']), age(f['made_ns']), word(f['claim']), word(f['offer']),
        word(f['tally']),
        'a tier has room for it' if int(f['res']['charged_bytes']) > 0
        else 'no room in a tier is reserved for it'))
    print('  %d pages: %d present, %d wanted, %d served, %d in a part' % (
        int(f['npages']), int(f['present']), int(f['wanted']),
        int(f['served']), int(f['in_part'])))
    print('  pages %s' % page_runs(f))
    reads = list(each(f['waiters'], 'cache_read', 'link'))
    print('  %d reads parked' % len(reads))
    for r in reads:
        print('    %d bytes at %d, for %s%s' % (
            int(r['len']), int(r['off']), age(r['parked_ns']),
            ', planned' if r['planned'] else ''))
    print('  %d warmings, %d plans' % (
        len(list(each(f['warms'], 'cache_warm', 'link'))),
        len(list(each(f['plans'], 'cache_plan', 'link')))))
    asked = list(requests_of(f))
    print('  %d requests' % len(asked))
    for x, to, span in asked:
        first = int(span['first'])
        print('    FETCH %#x to %s: pages %d-%d, %d of %d bytes came, for %s'
              % (int(x), to, first, first + int(span['n']) - 1, int(x['got']),
                 int(x['r']['len']), age(x['out']['started_ns'])))


def fills(cache):
    buckets = cache['table']['bucket']
    first, last = buckets.type.range()
    for i in range(first, last + 1):
        yield from each(buckets[i], 'fill', 'bucket')


class Fill(gdb.Command):
    """Print a fill of a mount: its phase, item, parked reads, pages, requests.

Usage: refrain-fill [EXPRESSION]
EXPRESSION is a struct fill, or a pointer to one. Without it, all fills of
the mount that have not ended are printed."""

    def __init__(self):
        super().__init__('refrain-fill', gdb.COMMAND_DATA,
                         gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        self.dont_repeat()
        if argument:
            print_fill(evaluate(argument, 'fill'))
            return
        mounts = [m for tag, m in find(('mount',))]
        if not mounts:
            raise gdb.GdbError('no frame of this process has a struct mount: '
                               'it is no mount, or has no debug information')
        for m in mounts:
            self.print_mount(m)

    def print_mount(self, m):
        if int(m['cache']) == 0:
            print('MOUNT %s: it has no cache yet' % text(m['mountpoint']))
            return
        all_fills = list(fills(m['cache']))
        print('MOUNT %s: %d fills, %d reads parked, %d requests' % (
            text(m['mountpoint']), len(all_fills),
            int(m['cache']['readers']['parked']),
            len(list(requests(m['cache'])))))
        for f in sorted(all_fills, key=lambda f: int(f['made_ns'])):
            print_fill(f)


# -- A loader -----------------------------------------------------------------

def print_serving(i, serving):
    o = serving['original']
    print('    place %d %s: example %d, original %s since %s, %d tries' % (
        i, word(serving['state']), int(o['index']), word(o['state']),
        age(o['since_ns']), int(o['tries'])))


def print_step(st):
    count = int(st['count'])
    left = [(i, st['servings'][i]) for i in range(count)
            if word(st['servings'][i]['state']) != 'done']
    states = [word(serving['state']) for _, serving in left]
    print('STEP %d at %#x, of epoch %d: %d servings, %d fresh, %d left'
          ' (%d wait, %d queued, %d worked on)' % (
              int(st['number']), int(st), int(st['epoch']), count,
              int(st['fresh']), int(st['left']), states.count('waits'),
              states.count('queued'), states.count('works')))
    if int(st['error']) != 0:
        print('    failed with %d at place %d: %s' % (
            int(st['error']), int(st['error_place']), text(st['why'])))
    for i, serving in left:
        print_serving(i, serving)


def print_engine(parts):
    steps = parts['steps'].dereference()
    lender = parts['lender'].dereference()
    first, end = int(steps['first']), int(steps['end'])
    print('LOADER: %d steps from %d on, of at most %d; %d of %d batches are '
          'lent' % (end - first, first, int(steps['room']),
                    int(lender['lent']), int(lender['n'])))
    for number in range(first, end):
        print_step(steps['ring'][number % int(steps['room'])].address)


class Step(gdb.Command):
    """Print a step of a loader: which servings of its batch are not done, and why.

Usage: refrain-step [EXPRESSION]
EXPRESSION is a struct step, or a pointer to one. Without it, all steps of
the loader that refrain_next() has not returned are printed. A member of a
share has no steps: the host of the share makes its batches."""

    def __init__(self):
        super().__init__('refrain-step', gdb.COMMAND_DATA,
                         gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        self.dont_repeat()
        if argument:
            print_step(evaluate(argument, 'step'))
            return
        engines = {}
        for tag, value in find(('engine', 'worker')):
            parts = (value['parts'].dereference() if tag == 'worker'
                     else value['parts'])
            engines[int(parts['steps'])] = parts
        if not engines:
            raise gdb.GdbError('no frame of this process has a struct engine: '
                               'it makes no batches, or has no debug '
                               'information')
        for parts in engines.values():
            print_engine(parts)


Fill()
Step()
