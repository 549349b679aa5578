# System tests: scripts; each exits 77 to skip, with the reason.
TESTS += tests/system/check-layers.sh tests/system/epoch-reader.sh
EXTRA_DIST += tests/system/check-layers.sh tests/system/epoch-reader.sh

# Who may, and what is said to who may not.
user_tests = \
	tests/system/closed.sh \
	tests/system/errors.sh \
	tests/system/unprivileged.sh
TESTS += $(user_tests)
EXTRA_DIST += $(user_tests) tests/system/user.sh

# Origins that hang or fail, and kernels that lack something.
origin_tests = \
	tests/system/far-origin.sh \
	tests/system/faulty-origin.sh \
	tests/system/stalled-origin.sh \
	tests/system/switches.sh
TESTS += $(origin_tests)
EXTRA_DIST += $(origin_tests)
check_PROGRAMS += tests/system/hit_times
tests_system_hit_times_SOURCES = tests/system/hit_times.c
tests_system_hit_times_LDADD = libbase.la

# A mount from its beginning to its end, and what it tells.
life_tests = \
	tests/system/ending.sh \
	tests/system/warm.sh
TESTS += $(life_tests)
EXTRA_DIST += $(life_tests)

TESTS += tests/system/commands.sh
EXTRA_DIST += tests/system/commands.sh
check_PROGRAMS += tests/system/stand_in
tests_system_stand_in_SOURCES = tests/system/stand_in.c
tests_system_stand_in_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_system_stand_in_LDADD = libctl.la libbase.la $(JANSSON_LIBS)

# What the tests of a mount share.
EXTRA_DIST += tests/system/lib.sh

# The commands.
TESTS += tests/system/completion.sh tests/system/index.sh tests/system/umount.sh
EXTRA_DIST += tests/system/completion.sh tests/system/index.sh \
	tests/system/umount.sh

# What is written about them.
TESTS += tests/system/operations.sh
EXTRA_DIST += tests/system/operations.sh

# The mount: what it costs the origin, what it shows, what it survives.
mount_tests = \
	tests/system/changes.sh \
	tests/system/damage.sh \
	tests/system/direct.sh \
	tests/system/epochs.sh \
	tests/system/herd.sh \
	tests/system/plan.sh \
	tests/system/hits-spread.sh \
	tests/system/programs.sh \
	tests/system/read-ahead.sh \
	tests/system/torch.sh \
	tests/system/remount.sh \
	tests/system/semantics.sh
TESTS += $(mount_tests)
EXTRA_DIST += $(mount_tests) \
	tests/system/changes.py tests/system/damage.py \
	tests/system/loader.py tests/system/semantics.py \
	tests/system/torch_example.py tests/system/trainer.py \
	tests/system/watch_budgets.py
check_PROGRAMS += \
	tests/system/herd tests/system/read_ways tests/system/refused
tests_system_herd_SOURCES = tests/system/herd.c
tests_system_herd_LDADD =
tests_system_read_ways_SOURCES = tests/system/read_ways.c \
	tests/system/ring_read.c tests/system/ring_read.h
tests_system_read_ways_LDADD =
tests_system_refused_SOURCES = tests/system/refused.c
tests_system_refused_LDADD =

# What it survives: faults below it; being killed at any moment. All faults
# and many more kills by `make check-faults`; REFRAIN_SEED repeats the latter.
TESTS += tests/system/faults.sh tests/system/kill.sh
EXTRA_DIST += tests/system/faults.sh tests/system/kill.sh
check_PROGRAMS += tests/system/failing_fs
tests_system_failing_fs_SOURCES = tests/system/failing_fs.c
tests_system_failing_fs_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_system_failing_fs_LDADD = libbase.la $(FUSE3_LIBS)

check-faults: all $(check_PROGRAMS)
	REFRAIN_FAULTS=$${REFRAIN_FAULTS:-all} srcdir='$(srcdir)' \
		$(SHELL) '$(srcdir)/tests/system/faults.sh'
	REFRAIN_KILLS=$${REFRAIN_KILLS:-500} srcdir='$(srcdir)' \
		$(SHELL) '$(srcdir)/tests/system/kill.sh'

# Everything at once for MINUTES; in a build with a sanitizer, too.
EXTRA_DIST += tests/system/soak.sh
MINUTES = 3
soak: all $(check_PROGRAMS)
	srcdir='$(srcdir)' $(SHELL) '$(srcdir)/tests/system/soak.sh' $(MINUTES)

.PHONY: check-faults soak

# Allocations that fail while a mount starts. The library is preloaded, so it
# is built without sanitizers.
TESTS += tests/system/no-memory.sh
EXTRA_DIST += tests/system/no-memory.sh
check_LTLIBRARIES += tests/system/no_memory.la
tests_system_no_memory_la_SOURCES = tests/system/no_memory.c
tests_system_no_memory_la_CFLAGS = -std=c11 -pthread $(WARN_CFLAGS)
tests_system_no_memory_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere

# How it stops while others wait.
TESTS += tests/system/stop-waiting.sh
EXTRA_DIST += tests/system/stop-waiting.sh

# Who is killed while an origin hangs.
TESTS += tests/system/killed-reader.sh tests/system/pages.sh
EXTRA_DIST += tests/system/killed-reader.sh tests/system/pages.sh

# The loader: its command, and the library as it is installed.
TESTS += tests/system/library.sh tests/system/load.sh \
	tests/system/load-auto.sh \
	tests/system/train.sh tests/system/experiments.sh
EXTRA_DIST += tests/system/library.sh tests/system/load.sh \
	tests/system/load-auto.sh \
	tests/system/train.sh tests/system/experiments.sh
