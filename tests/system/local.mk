# System tests: scripts; each exits 77 to skip, with the reason. How the lists
# are run: build-aux/check-lanes.mk.

# All caches of the kernel are dropped.
drop_tests = \
	tests/system/faults.sh

# Tests that mount: requests to the origin, file system semantics, and
# survival of faults.
mount_tests = \
	tests/system/epochs.sh \
	tests/system/changes.sh \
	tests/system/damage.sh \
	tests/system/direct.sh \
	tests/system/faulty-origin.sh \
	tests/system/herd.sh \
	tests/system/incidents.sh \
	tests/system/http.sh \
	tests/system/http-odd.sh \
	tests/system/hits-spread.sh \
	tests/system/old-tier.sh \
	tests/system/pages.sh \
	tests/system/parts.sh \
	tests/system/peers.sh \
	tests/system/peers-faults.sh \
	tests/system/programs.sh \
	tests/system/read-ahead.sh \
	tests/system/remount.sh \
	tests/system/s3.sh \
	tests/system/s3-stalled.sh \
	tests/system/semantics.sh \
	tests/system/stalled-origin.sh \
	tests/system/status-epochs.sh \
	tests/system/survive.sh \
	tests/system/switches.sh \
	tests/system/torch.sh \
	tests/system/warm.sh

# Where time is what is looked at.
timed_tests = \
	tests/system/load-auto.sh \
	tests/system/plan.sh

# Where little of the machine is enough, but must be at hand.
quiet_tests = \
	tests/system/plan-epochs.sh \
	tests/system/load-speaks.sh \
	tests/system/far-origin.sh

# Those that take longest, of whichever list: they begin first. One that waits
# most of its time follows one that does not.
long_tests = \
	tests/system/faults.sh \
	tests/system/ending.sh \
	tests/system/analyze-odd.sh \
	tests/system/analyze-truth.sh \
	tests/system/analyze.sh \
	tests/system/library.sh \
	tests/system/s3-safety.sh \
	tests/system/python.sh \
	tests/system/umount.sh \
	tests/system/cross.sh \
	tests/system/log.sh \
	tests/system/kill.sh \
	tests/system/hung-source.sh \
	tests/system/load.sh \
	tests/system/ranges.sh \
	tests/system/epochs.sh \
	tests/system/faulty-origin.sh \
	tests/system/changes.sh \
	tests/system/same-order.sh \
	tests/system/secrets.sh \
	tests/system/damage.sh \
	tests/system/s3.sh \
	tests/system/errors.sh \
	tests/system/direct.sh \
	tests/system/s3-creds.sh \
	tests/system/hits-spread.sh \
	tests/system/changed.sh

# Access and refusals; the life of a mount, however it ends; the commands and
# their documents; the loader.
other_tests = \
	tests/system/analysis.sh \
	tests/system/analyze-mounts.sh \
	tests/system/analyze-odd.sh \
	tests/system/analyze-truth.sh \
	tests/system/analyze.sh \
	tests/system/check-layers.sh \
	tests/system/check-rooms.sh \
	tests/system/closed.sh \
	tests/system/commands.sh \
	tests/system/completion.sh \
	tests/system/cross.sh \
	tests/system/ending.sh \
	tests/system/epoch-reader.sh \
	tests/system/errors.sh \
	tests/system/foreign-reader.sh \
	tests/system/given-names.sh \
	tests/system/huge-file.sh \
	tests/system/hung-source.sh \
	tests/system/index.sh \
	tests/system/kill.sh \
	tests/system/changed.sh \
	tests/system/killed-reader.sh \
	tests/system/install.sh \
	tests/system/library.sh \
	tests/system/limits.sh \
	tests/system/log.sh \
	tests/system/load.sh \
	tests/system/memory-limit.sh \
	tests/system/no-memory.sh \
	tests/system/held-wakes.sh \
	tests/system/operations.sh \
	tests/system/python.sh \
	tests/system/python-install.sh \
	tests/system/ranges.sh \
	tests/system/s3-answers.sh \
	tests/system/s3-chunks.sh \
	tests/system/s3-creds.sh \
	tests/system/s3-deep.sh \
	tests/system/s3-keys.sh \
	tests/system/s3-memory.sh \
	tests/system/s3-refused.sh \
	tests/system/s3-safety.sh \
	tests/system/s3-tls.sh \
	tests/system/s3-sign.sh \
	tests/system/s3-swift.sh \
	tests/system/same-order.sh \
	tests/system/secrets.sh \
	tests/system/share.sh \
	tests/system/share-mount.sh \
	tests/system/share-users.sh \
	tests/system/stop-waiting.sh \
	tests/system/train.sh \
	tests/system/trust.sh \
	tests/system/umount.sh \
	tests/system/unprivileged.sh

system_tests = $(drop_tests) $(mount_tests) $(other_tests) $(timed_tests) \
	$(quiet_tests)
TESTS += $(system_tests)
EXTRA_DIST += $(system_tests) tests/system/tier-1.tar.gz \
	tests/system/lib.sh tests/system/user.sh tests/system/soak.sh \
	tests/system/changes.py tests/system/damage.py tests/system/parts.py \
	tests/system/loader.py tests/system/readme.py \
	tests/system/readme.sh tests/system/readme_train.py \
	tests/system/semantics.py \
	tests/system/peer_hosts.py tests/system/peer_proxy.py \
	tests/system/peer_scene.py tests/system/peers.py \
	tests/system/peers_faults.py \
	tests/system/sign_vectors.py tests/system/connect_proxy.py \
	tests/system/odd_keys.py tests/system/odd_server.py \
	tests/system/far-lib.sh \
	tests/system/swift_fill.py tests/system/swift_server.py \
	tests/system/torch_example.py tests/system/trainer.py \
	tests/system/survive.py tests/system/watch_budgets.py \
	tests/python/conftest.py tests/python/fake_torch.py \
	tests/python/test_errors.py tests/python/test_examples.py \
	tests/python/test_folder.py tests/python/test_gpu.py \
	tests/python/test_loader.py tests/python/test_memory.py \
	tests/python/test_plan.py tests/python/test_share.py \
	tests/python/test_torch.py tests/python/test_values.py

check_PROGRAMS += \
	tests/system/failing_fs tests/system/herd tests/system/hit_times \
	tests/system/read_ways tests/system/refused tests/system/stand_in \
	tests/system/status_field
tests_system_failing_fs_SOURCES = tests/system/failing_fs.c
tests_system_failing_fs_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_system_failing_fs_LDADD = libbase.la $(FUSE3_LIBS)
tests_system_herd_LDADD =
tests_system_hit_times_LDADD = libbase.la
tests_system_read_ways_SOURCES = tests/system/read_ways.c \
	tests/system/ring_read.c tests/system/ring_read.h
tests_system_read_ways_LDADD =
tests_system_refused_LDADD =
tests_system_status_field_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_system_status_field_LDADD = libfleet.la libdaemon.la libbase.la \
	$(JANSSON_LIBS)
tests_system_stand_in_SOURCES = tests/system/stand_in.c
tests_system_stand_in_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS) $(JANSSON_CFLAGS)
tests_system_stand_in_LDADD = libfleet.la libdaemon.la libbase.la \
	$(FUSE3_LIBS) $(JANSSON_LIBS)

# Allocations that fail while a mount starts. The library is preloaded, so it
# is built without sanitizers.
check_LTLIBRARIES += tests/system/no_memory.la
tests_system_no_memory_la_SOURCES = tests/system/no_memory.c
tests_system_no_memory_la_CFLAGS = -std=c11 -pthread $(WARN_CFLAGS)
tests_system_no_memory_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere
# Wake-ups that are written with a lock held; likewise.
check_LTLIBRARIES += tests/system/held_wakes.la
tests_system_held_wakes_la_SOURCES = tests/system/held_wakes.c
tests_system_held_wakes_la_CFLAGS = -std=c11 -pthread $(WARN_CFLAGS)
tests_system_held_wakes_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere

# The full versions of tests that `make check` runs in part or in small: all
# faults, and many repetitions. REFRAIN_SEED repeats kills and damages.
check-faults: all $(check_PROGRAMS) $(check_LTLIBRARIES)
	@set -e; export srcdir='$(srcdir)'; \
	system() { echo "== $$1"; $(SHELL) '$(srcdir)'/tests/system/$$1; }; \
	export REFRAIN_FAULTS="$${REFRAIN_FAULTS:-all}"; \
	export REFRAIN_KILLS="$${REFRAIN_KILLS:-500}"; \
	export DAMAGES="$${DAMAGES:-1000}"; \
	export EPOCH_FILE_BYTES="$${EPOCH_FILE_BYTES:-8388608}"; \
	export NO_MEMORY_STEP="$${NO_MEMORY_STEP:-1}"; \
	for t in faults kill survive damage epochs no-memory; do \
		system $$t.sh; done; \
	export TMPDIR=/tmp REFRAIN_TEST_STEPS=6000; \
	for t in $(unit_tests); do \
		case $$t in *_store*) echo "== $$t"; $$t;; esac; \
	done

# Everything at once for MINUTES; in a build with a sanitizer, too.
MINUTES = 3
soak: all $(check_PROGRAMS)
	srcdir='$(srcdir)' $(SHELL) '$(srcdir)/tests/system/soak.sh' $(MINUTES)

# What README.md tells a newcomer to type, in a new root of Debian.
check-readme: all
	srcdir='$(srcdir)' $(SHELL) '$(srcdir)/tests/system/readme.sh' || \
		test $$? -eq 77

.PHONY: check-faults check-readme soak

# Remote origins: a stand-in for a store, and signatures to compare.
if HAVE_REMOTE
check_PROGRAMS += tests/system/far tests/system/sign_lines
tests_system_far_SOURCES = tests/system/far.c tests/system/far.h \
	tests/system/far_answer.c tests/system/far_keys.c \
	tests/system/far_sign.c
tests_system_far_CFLAGS = $(AM_CFLAGS) $(REMOTE_CFLAGS)
tests_system_far_LDADD = $(REMOTE_LIBS)
tests_system_sign_lines_LDADD = libweb.la libbase.la
endif
