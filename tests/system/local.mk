# System tests: scripts; each exits 77 to skip, with the reason. How the lists
# are run: build-aux/check-lanes.mk.

# All caches of the kernel are dropped.
drop_tests = \
	tests/system/fault-table.sh

# Tests that count what the kernel asks a mount for, so that no cache of the
# kernel may be dropped meanwhile; those that take longest, first.
long_mount_tests = \
	tests/system/cache-epochs.sh \
	tests/system/drop-bits.sh \
	tests/system/fault-origin.sh \
	tests/system/change-live.sh \
	tests/system/cache-damage.sh \
	tests/system/s3-reads.sh \
	tests/system/load-echo-reads.sh \
	tests/system/load-direct.sh \
	tests/system/cache-hits-spread.sh

mount_tests = \
	tests/system/cache-changed.sh \
	tests/system/cache-cleaned.sh \
	tests/system/cache-herd.sh \
	tests/system/cache-killed-filling.sh \
	tests/system/cache-old-tier.sh \
	tests/system/cache-parts.sh \
	tests/system/cache-remount.sh \
	tests/system/load-subset.sh \
	tests/system/load-cache-order.sh \
	tests/system/command-refresh.sh \
	tests/system/command-status.sh \
	tests/system/command-verify.sh \
	tests/system/command-warm.sh \
	tests/system/command-warm-full.sh \
	tests/system/command-warm-interrupted.sh \
	tests/system/feature-switches.sh \
	tests/system/fields-map.sh \
	tests/system/make-objects.sh \
	tests/system/http-listings.sh \
	tests/system/http-odd.sh \
	tests/system/http-odd-endless.sh \
	tests/system/http-odd-refused.sh \
	tests/system/load-dead-mount.sh \
	tests/system/load-direct-damaged.sh \
	tests/system/load-direct-members.sh \
	tests/system/load-direct-told.sh \
	tests/system/load-ranges.sh \
	tests/system/log-hang.sh \
	tests/system/log-tier.sh \
	tests/system/origin-stalled.sh \
	tests/system/origin-stalled-names.sh \
	tests/system/origin-stalled-revalidate.sh \
	tests/system/peers-epochs.sh \
	tests/system/peers-faults.sh \
	tests/system/python-torch.sh \
	tests/system/read-ahead.sh \
	tests/system/read-pages.sh \
	tests/system/read-programs.sh \
	tests/system/read-semantics.sh \
	tests/system/s3-stalled.sh \
	tests/system/status-data.sh \
	tests/system/status-debug.sh \
	tests/system/status-epochs.sh \
	tests/system/status-gdb.sh \
	tests/system/status-latency.sh \
	tests/system/status-probes.sh \
	tests/system/survive-changes.sh \
	tests/system/survive-foreign-ids.sh \
	tests/system/survive-holder.sh \
	tests/system/survive-notified.sh \
	tests/system/survive-pages.sh \
	tests/system/survive-kills.sh \
	tests/system/survive-direct.sh \
	tests/system/survive-plan-command.sh \
	tests/system/survive-plans.sh \
	tests/system/survive-requests.sh \
	tests/system/survive-unserved.sh \
	tests/system/survive-upgrade.sh \
	tests/system/cache-root.sh \
	tests/system/cache-root-limits.sh \
	tests/system/doctor-faults.sh \
	tests/system/trace-reads.sh

# Tests that measure time.
timed_tests = \
	tests/system/load-auto-half.sh \
	tests/system/load-auto-returns.sh \
	tests/system/load-auto-reads.sh \
	tests/system/load-auto-plan.sh \
	tests/system/load-auto-replay.sh \
	tests/system/load-auto-fast.sh \
	tests/system/plan-throttled.sh \
	tests/system/plan-two-epochs.sh \
	tests/system/plan-ranks.sh \
	tests/system/plan-wrong-order.sh

# Tests that need little processor time, but at once.
quiet_tests = \
	tests/system/plan-epochs.sh \
	tests/system/load-advice.sh \
	tests/system/load-interrupted.sh \
	tests/system/origin-far.sh

# All others; those that take longest, first. One that waits most of its time
# follows one that does not.
long_tests = \
	tests/system/mount-hung-ends.sh \
	tests/system/mount-stopped.sh \
	tests/system/analyze-truth-waits.sh \
	tests/system/analyze-refused.sh \
	tests/system/analyze-late-start.sh \
	tests/system/analyze-truth-busy.sh \
	tests/system/analyze-page.sh \
	tests/system/analyze-shards.sh \
	tests/system/analyze-output.sh \
	tests/system/analyze-report.sh \
	tests/system/build-library.sh \
	tests/system/http-odd-bytes.sh \
	tests/system/http-odd-sizes.sh \
	tests/system/s3-answers.sh \
	tests/system/s3-lies.sh \
	tests/system/python-package.sh \
	tests/system/mount-slow-end.sh \
	tests/system/mount-held.sh \
	tests/system/build-cross.sh \
	tests/system/log-store.sh \
	tests/system/log-flood.sh \
	tests/system/mount-kill.sh \
	tests/system/origin-hung-kept.sh \
	tests/system/origin-silent-refresh.sh \
	tests/system/load-progress.sh \
	tests/system/load-memory.sh \
	tests/system/option-ranges.sh \
	tests/system/plan-same-order.sh \
	tests/system/access-secrets.sh \
	tests/system/mount-refused.sh \
	tests/system/s3-creds-service.sh \
	tests/system/s3-creds-refused.sh \
	tests/system/s3-creds-profiles.sh \
	tests/system/change-unmounted.sh

other_tests = \
	tests/system/access-allow-other.sh \
	tests/system/access-cache-dirs.sh \
	tests/system/access-cache-inside.sh \
	tests/system/access-closed.sh \
	tests/system/access-direct.sh \
	tests/system/access-root-mounts.sh \
	tests/system/access-survives.sh \
	tests/system/access-trust.sh \
	tests/system/access-unprivileged.sh \
	tests/system/access-unreadable.sh \
	tests/system/analyze-contents.sh \
	tests/system/analyze-copy-brief.sh \
	tests/system/analyze-copy-part.sh \
	tests/system/analyze-covers.sh \
	tests/system/analyze-interrupted.sh \
	tests/system/analyze-kept.sh \
	tests/system/analyze-killed.sh \
	tests/system/analyze-mask.sh \
	tests/system/analyze-mounts.sh \
	tests/system/analyze-nohup.sh \
	tests/system/analyze-ordinary.sh \
	tests/system/analyze-others.sh \
	tests/system/analyze-parts.sh \
	tests/system/analyze-records.sh \
	tests/system/analyze-refused-options.sh \
	tests/system/analyze-sessions.sh \
	tests/system/analyze-short-epoch.sh \
	tests/system/analyze-stand-ins.sh \
	tests/system/analyze-threads.sh \
	tests/system/analyze-words.sh \
	tests/system/bench-epoch-reader.sh \
	tests/system/build-install.sh \
	tests/system/build-probes.sh \
	tests/system/command-completion.sh \
	tests/system/command-output.sh \
	tests/system/command-verify-bytes.sh \
	tests/system/doc-operations.sh \
	tests/system/example-fluid.sh \
	tests/system/http-elsewhere.sh \
	tests/system/http-suites.sh \
	tests/system/http-tls.sh \
	tests/system/load-auto-killed.sh \
	tests/system/load-auto-short-log.sh \
	tests/system/load-counts.sh \
	tests/system/load-damage.sh \
	tests/system/load-damage-shown.sh \
	tests/system/load-hung-mount.sh \
	tests/system/load-left-out.sh \
	tests/system/load-options.sh \
	tests/system/load-progress-images.sh \
	tests/system/load-mix.sh \
	tests/system/load-ranks.sh \
	tests/system/load-refused.sh \
	tests/system/load-resumed.sh \
	tests/system/load-sources.sh \
	tests/system/load-threads.sh \
	tests/system/load-tight.sh \
	tests/system/load-train.sh \
	tests/system/lock-held-wakes.sh \
	tests/system/log-damage.sh \
	tests/system/log-json.sh \
	tests/system/log-lines.sh \
	tests/system/log-source.sh \
	tests/system/memory-failing.sh \
	tests/system/memory-group.sh \
	tests/system/mount-given.sh \
	tests/system/mount-background.sh \
	tests/system/mount-busy.sh \
	tests/system/mount-dead.sh \
	tests/system/mount-helper.sh \
	tests/system/mount-helper-options.sh \
	tests/system/mount-kill-swept.sh \
	tests/system/mount-notify.sh \
	tests/system/mount-signals.sh \
	tests/system/mount-stop-waiting.sh \
	tests/system/mount-umount.sh \
	tests/system/names-given.sh \
	tests/system/names-index.sh \
	tests/system/origin-hung-below.sh \
	tests/system/origin-hung-mount.sh \
	tests/system/origin-silent-mount.sh \
	tests/system/plan-clients.sh \
	tests/system/plan-lines.sh \
	tests/system/plan-python.sh \
	tests/system/python-install.sh \
	tests/system/read-huge-file.sh \
	tests/system/reader-foreign.sh \
	tests/system/reader-killed.sh \
	tests/system/recode-files.sh \
	tests/system/recode-killed.sh \
	tests/system/recode-shards.sh \
	tests/system/recode-state.sh \
	tests/system/s3-chunks.sh \
	tests/system/s3-counted.sh \
	tests/system/s3-creds-places.sh \
	tests/system/s3-creds-renewed.sh \
	tests/system/s3-deep.sh \
	tests/system/s3-faults.sh \
	tests/system/s3-first-bytes.sh \
	tests/system/s3-gone.sh \
	tests/system/s3-keys.sh \
	tests/system/s3-lists.sh \
	tests/system/s3-memory.sh \
	tests/system/s3-names.sh \
	tests/system/s3-overwritten.sh \
	tests/system/s3-profile-changes.sh \
	tests/system/s3-proxies.sh \
	tests/system/s3-refresh.sh \
	tests/system/s3-region.sh \
	tests/system/s3-refused.sh \
	tests/system/s3-retry-after.sh \
	tests/system/s3-sign.sh \
	tests/system/s3-start-busy.sh \
	tests/system/s3-start-said.sh \
	tests/system/s3-swift.sh \
	tests/system/s3-tls.sh \
	tests/system/share-kills.sh \
	tests/system/share-mount.sh \
	tests/system/share-shown.sh \
	tests/system/share-slow.sh \
	tests/system/share-streams.sh \
	tests/system/share-users.sh \
	tests/system/status-all.sh \
	tests/system/status-exporter.sh \
	tests/system/status-exporter-kept.sh \
	tests/system/status-exporter-share.sh \
	tests/system/status-dashboard.sh \
	tests/system/status-page.sh \
	tests/system/status-limits.sh \
	tests/system/tree-layers.sh \
	tests/system/tree-packages.sh \
	tests/system/tree-alerts.sh \
	tests/system/tree-rooms.sh \
	tests/system/service-faults.sh \
	tests/system/service-load.sh \
	tests/system/work-command.sh

system_tests = $(drop_tests) $(long_tests) $(long_mount_tests) \
	$(mount_tests) $(other_tests) $(timed_tests) $(quiet_tests)
TESTS += $(system_tests)
EXTRA_DIST += $(system_tests) tests/system/tier-1.tar.gz \
	tests/system/lib.sh tests/system/user.sh tests/system/soak.sh \
	tests/system/container-lib.sh tests/system/group-lib.sh \
	tests/system/podman-lib.sh \
	tests/system/survive-pod.sh \
	tests/system/survive-systemd.sh \
	tests/system/analyze_mount.py \
	tests/system/browser.py tests/system/command-lib.sh \
	tests/system/recode-lib.sh \
	tests/system/cache_damage.py tests/system/cache_parts.py \
	tests/system/change_live.py tests/system/given_mount.py \
	tests/system/kubernetes_train.py tests/system/loader.py \
	tests/system/doc-readme.sh tests/system/doc_readme.py \
	tests/system/doc_readme_train.py tests/system/read_semantics.py \
	tests/system/peer_hosts.py tests/system/peer_proxy.py \
	tests/system/peer_scene.py tests/system/peers_epochs.py \
	tests/system/peers_faults.py \
	tests/system/sign_vectors.py tests/system/connect_proxy.py \
	tests/system/odd_keys.py tests/system/odd_server.py \
	tests/system/far-lib.sh tests/system/load-lib.sh \
	tests/system/service-lib.sh \
	tests/system/http-lib.sh tests/system/http-odd-lib.sh \
	tests/system/s3-answers-lib.sh tests/system/s3-safety-lib.sh \
	tests/system/s3-reads-lib.sh tests/system/cache-remount-lib.sh \
	tests/system/access-user-lib.sh tests/system/share_jobs.py \
	tests/system/analyze-lib.sh tests/system/analyze-mount-lib.sh \
	tests/system/analyze-truth-lib.sh tests/system/analyze_run.py \
	tests/system/analyze_trainer.py tests/system/analyze_truth.py \
	tests/system/drop_bits.py \
	tests/system/load-auto-lib.sh tests/system/load-messages-lib.sh \
	tests/system/several-lib.sh \
	tests/system/origin-hung-lib.sh tests/system/share-jobs-lib.sh \
	tests/system/survive-loaders-lib.sh \
	tests/system/status-debug-lib.sh \
	tests/system/log-lib.sh tests/system/log-incidents-lib.sh \
	tests/system/origin-stalled-lib.sh \
	tests/system/load-mount-lib.sh tests/system/mount-kill-lib.sh \
	tests/system/mount-end-lib.sh tests/system/mount-umount-lib.sh \
	tests/system/plan-lib.sh tests/system/s3-creds-lib.sh \
	tests/system/swift_fill.py tests/system/swift_server.py \
	tests/system/torch_example.py tests/system/trainer.py \
	tests/system/foreign_ids.py tests/system/survive.py \
	tests/system/holder.py tests/system/keep_fds.py \
	tests/system/survive_changes.py \
	tests/system/survive_requests.py \
	tests/system/survive-long.sh tests/system/survive_phases.py \
	tests/system/fields_map.py tests/system/objects_truth.py \
	tests/system/survive_states.py \
	tests/system/watch_budgets.py \
	tests/python/conftest.py tests/python/fake_torch.py \
	tests/python/test_arrays.py \
	tests/python/test_echo.py \
	tests/python/test_echo_torch.py \
	tests/python/test_errors.py tests/python/test_examples.py \
	tests/python/test_fields.py \
	tests/python/test_folder.py tests/python/test_gpu.py \
	tests/python/test_epochs.py \
	tests/python/test_parts.py \
	tests/python/test_loader.py tests/python/test_memory.py \
	tests/python/test_plan.py tests/python/test_png.py \
	tests/python/test_share.py tests/python/test_tokens.py \
	tests/python/test_torch.py tests/python/test_values.py

check_PROGRAMS += \
	tests/system/failing_fs tests/system/herd tests/system/hit_times \
	tests/system/map_rows \
	tests/system/read_ways tests/system/refused tests/system/stand_in \
	tests/system/status_field
tests_system_failing_fs_SOURCES = tests/system/failing_fs.c
tests_system_failing_fs_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_system_failing_fs_LDADD = libbase.la $(FUSE3_LIBS)
tests_system_herd_LDADD =
tests_system_hit_times_LDADD = libbase.la
tests_system_map_rows_LDADD = libfields.la libbase.la -lm
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

# What the targets below run. One make builds at a time: two that build the same
# object beside each other take away its files.
system-programs: all
	@$(MAKE) $(AM_MAKEFLAGS) $(filter tests/system/%,$(check_PROGRAMS)) \
		$(filter tests/system/%,$(check_LTLIBRARIES))

# The full versions of tests that `make check` runs in part or in small: all
# faults, and many repetitions. REFRAIN_SEED repeats kills and damages.
check-faults: system-programs
	@$(MAKE) $(AM_MAKEFLAGS) $(filter tests/unit/test_store%,$(unit_tests))
	@set -e; export srcdir='$(srcdir)'; \
	system() { echo "== $$1"; $(SHELL) '$(srcdir)'/tests/system/$$1; }; \
	export REFRAIN_FAULTS="$${REFRAIN_FAULTS:-all}"; \
	export REFRAIN_KILLS="$${REFRAIN_KILLS:-500}"; \
	export DAMAGES="$${DAMAGES:-1000}"; \
	export EPOCH_FILE_BYTES="$${EPOCH_FILE_BYTES:-8388608}"; \
	export NO_MEMORY_STEP="$${NO_MEMORY_STEP:-1}"; \
	for t in fault-table mount-kill survive-kills cache-damage \
		cache-epochs memory-failing; do system $$t.sh; done; \
	export TMPDIR=/tmp REFRAIN_TEST_STEPS=6000; \
	for t in $(filter tests/unit/test_store%,$(unit_tests)); do \
		echo "== $$t"; $$t; \
	done

# Tests of mounts that outlive their daemon, with many names. They take an hour
# with REFRAIN_KILLS=500, REFRAIN_UPGRADES=200, REFRAIN_DAMAGES=1000 and
# MINUTES=10, which are not the default.
check-survive: system-programs
	@set -e; export srcdir='$(srcdir)' MINUTES='$(MINUTES)'; \
	export REFRAIN_NAMES="$${REFRAIN_NAMES:-50000}"; \
	for t in survive-kills survive-requests survive-changes survive-holder \
		survive-notified survive-pages survive-direct \
		survive-plan-command survive-plans survive-foreign-ids \
		survive-unserved survive-upgrade survive-long; do \
		echo "== $$t"; $(SHELL) '$(srcdir)'/tests/system/$$t.sh || \
			test $$? -eq 77; done

# Run everything at once for MINUTES; this also works with a sanitizer.
MINUTES = 3
soak: system-programs
	srcdir='$(srcdir)' $(SHELL) '$(srcdir)/tests/system/soak.sh' $(MINUTES)

# Run the commands of README.md in a new root of Debian.
check-readme: system-programs
	srcdir='$(srcdir)' $(SHELL) '$(srcdir)/tests/system/doc-readme.sh' || \
		test $$? -eq 77

# Mounts that outlive their daemons in containers. REFRAIN_ROOTS, a directory,
# keeps the Debian that they run in.
check-containers: system-programs
	@set -e; export srcdir='$(srcdir)'; \
	for t in survive-systemd survive-pod; do \
		echo "== $$t"; \
		$(SHELL) '$(srcdir)'/tests/system/$$t.sh || test $$? -eq 77; \
	done

# Packages, as their users build and install them.
package_tests = tests/system/package-wheel.sh
package_tests += tests/system/package-dist.sh
package_tests += tests/system/package-debian.sh
package_tests += tests/system/package-release.sh
package_tests += tests/system/package-rpm.sh
package_tests += tests/system/package-site.sh
package_tests += tests/system/package-image.sh
package_tests += tests/system/package-kubernetes.sh
package_tests += tests/system/package-slurm.sh
package_tests += tests/system/package-slurm-unit.sh
EXTRA_DIST += $(package_tests) tests/system/package_files \
	tests/system/package_life.sh tests/system/package_release.py \
	tests/system/package_site.py tests/system/root-lib.sh
check-packages: system-programs
	@export srcdir='$(srcdir)'; for t in $(package_tests); do \
		echo "== $$t"; \
		$(SHELL) '$(srcdir)'/$$t || test $$? -eq 77 || exit 1; \
	done

.PHONY: check-containers check-faults check-packages check-readme \
	check-survive soak system-programs

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
