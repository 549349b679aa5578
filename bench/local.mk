# Measuring: programs and scripts that are never installed.
noinst_PROGRAMS += bench/epoch-reader
bench_epoch_reader_SOURCES = \
	bench/epoch_reader.c \
	bench/file_list.c bench/file_list.h \
	bench/read_file.c bench/read_file.h
bench_epoch_reader_LDADD = libbase.la

BENCHES = bench/hot.sh bench/cold.sh bench/latency.sh bench/ranges.sh \
	bench/scale.sh bench/tier.sh bench/direct.sh bench/loader.sh \
	bench/epoch.sh bench/speeds.sh bench/plan-bars.sh bench/python.sh \
	bench/python-echo.sh
EXTRA_DIST += $(BENCHES) bench/lib.sh \
	bench/plot bench/draw.py bench/lru-model bench/slow-disk.sh \
	bench/epoch.py bench/epoch_shapes.py bench/speeds.py \
	bench/plan_bars.py \
	bench/streams.sh bench/peer_ffcv.py bench/peer_python.py \
	bench/python_bars.py bench/python_echo.py \
	bench/python_share.py bench/python_steps.py \
	bench/python_two.py \
	bench/peer_torchvision.py bench/peer_usage.py
CLEANFILES += bench-hot.json bench-cold.json bench-latency.json \
	bench-ranges.json bench-scale.json bench-tier.json bench-direct.json \
	bench-loader.json bench-epoch.json bench-speeds.json bench-python.json \
	bench-python-echo.json

BENCHES += bench/plan-auto.sh bench/share.sh
EXTRA_DIST += bench/plan-auto.sh bench/plan_auto.py \
	bench/share.sh bench/share.py
CLEANFILES += bench-plan-auto.json bench-share.json

# Run by hand: it takes ten minutes and a quiet machine.
EXTRA_DIST += bench/peers.sh bench/peers.py bench/peers-sim
CLEANFILES += bench-peers.json

# Run by hand: it wants another build.
EXTRA_DIST += bench/builds.sh
CLEANFILES += bench-builds.json

# Run by hand: it takes half an hour, of which few others may have a share.
EXTRA_DIST += bench/analyze.sh bench/analyze.py bench/analyze_loader.py \
	bench/analyze_r1.py bench/analyze_script.py \
	bench/analyze_setups.py
CLEANFILES += bench-analyze.json bench-analyze.json.*

# 77 means that it cannot be measured here, which is not a failure.
bench: all
	@for b in $(BENCHES); do \
		'$(srcdir)'/$$b || test $$? -eq 77 || exit 1; \
	done

.PHONY: bench

noinst_PROGRAMS += bench/bench-store
bench_bench_store_SOURCES = bench/bench-store.c
bench_bench_store_LDADD = libstore.la

noinst_PROGRAMS += bench/service-pulls
bench_service_pulls_SOURCES = bench/service_pulls.c
bench_service_pulls_LDADD = libimage.la libmemcached.la libbase.la

EXTRA_DIST += bench/service-pulls.sh

noinst_PROGRAMS += bench/peer-gets
bench_peer_gets_SOURCES = bench/peer_gets.c
bench_peer_gets_LDADD = libpeer.la

noinst_PROGRAMS += bench/range-reader
bench_range_reader_SOURCES = bench/range_reader.c
bench_range_reader_LDADD = libbase.la

noinst_PROGRAMS += bench/lock-use
bench_lock_use_SOURCES = bench/lock_use.c bench/lock_meter.c bench/lock_meter.h
bench_lock_use_LDADD = libplan.la libcache.la libstore.la libschedule.la \
	liblayer.la liblocal.la libbase.la -lm

noinst_PROGRAMS += bench/journal-ns
bench_journal_ns_SOURCES = bench/journal_ns.c
bench_journal_ns_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
bench_journal_ns_LDADD = libfs.la libnames.la libformat.la libbase.la \
	$(FUSE3_LIBS)

noinst_PROGRAMS += bench/slow-fs
bench_slow_fs_SOURCES = bench/slow_fs.c
bench_slow_fs_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
bench_slow_fs_LDADD = libbase.la $(FUSE3_LIBS)

# What a cold file costs, beside the least that it can.
BENCHES += bench/passthrough.sh
CLEANFILES += bench-passthrough.json
EXTRA_DIST += bench/passthrough.sh
noinst_PROGRAMS += bench/passthrough
bench_passthrough_SOURCES = bench/passthrough.c
bench_passthrough_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
bench_passthrough_LDADD = libbase.la $(FUSE3_LIBS)

noinst_PROGRAMS += bench/loader-run
bench_loader_run_SOURCES = bench/loader_run.c \
	bench/loader_options.c bench/loader_options.h \
	tools/config_options.c tools/config_options.h
bench_loader_run_LDADD = libloader.la

noinst_PROGRAMS += bench/loader-locks
bench_loader_locks_SOURCES = bench/loader_locks.c \
	bench/loader_options.c bench/loader_options.h \
	bench/lock_meter.c bench/lock_meter.h \
	tools/config_options.c tools/config_options.h
bench_loader_locks_LDADD = libloader.la

noinst_PROGRAMS += bench/loader-bare
bench_loader_bare_SOURCES = bench/loader_bare.c \
	bench/bare_fields.c bench/bare_fields.h \
	bench/loader_options.c bench/loader_options.h \
	tools/config_options.c tools/config_options.h
bench_loader_bare_LDADD = libloader.la

# Far away: by a stand-in that `make check` builds.
if HAVE_REMOTE
BENCHES += bench/s3-list.sh bench/s3.sh
CLEANFILES += bench-s3-list.json bench-s3.json
noinst_PROGRAMS += bench/far-bare
bench_far_bare_SOURCES = bench/far_bare.c
bench_far_bare_CFLAGS = $(AM_CFLAGS) $(REMOTE_CFLAGS)
bench_far_bare_LDADD = $(REMOTE_LIBS)
endif
EXTRA_DIST += bench/s3-list.sh bench/s3.sh bench/far.sh
