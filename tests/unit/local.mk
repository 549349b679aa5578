# Unit tests: one Check program a part, of the one file of its name; so a new
# one is a line here.
unit_tests = \
	tests/unit/test_abi \
	tests/unit/test_agent \
	tests/unit/test_annotations \
	tests/unit/test_answer \
	tests/unit/test_augment \
	tests/unit/test_auto \
	tests/unit/test_auto_plan \
	tests/unit/test_base \
	tests/unit/test_cache \
	tests/unit/test_cache_requests \
	tests/unit/test_cgroup \
	tests/unit/test_columns \
	tests/unit/test_config \
	tests/unit/test_crop \
	tests/unit/test_crop_boxes \
	tests/unit/test_ctl \
	tests/unit/test_ctl_place \
	tests/unit/test_dataset \
	tests/unit/test_decode \
	tests/unit/test_decode_bad \
	tests/unit/test_decode_memory \
	tests/unit/test_depth \
	tests/unit/test_echo_stage \
	tests/unit/test_echo_stage_auto \
	tests/unit/test_epochs \
	tests/unit/test_escape \
	tests/unit/test_examples \
	tests/unit/test_examples_index \
	tests/unit/test_examples_members \
	tests/unit/test_examples_skipped \
	tests/unit/test_examples_tar \
	tests/unit/test_fields \
	tests/unit/test_follow \
	tests/unit/test_hold \
	tests/unit/test_jpeg_levels \
	tests/unit/test_json \
	tests/unit/test_latency \
	tests/unit/test_read_trace \
	tests/unit/test_kept \
	tests/unit/test_loader \
	tests/unit/test_turn \
	tests/unit/test_batch \
	tests/unit/test_loader_alloc \
	tests/unit/test_loader_damage \
	tests/unit/test_loader_null \
	tests/unit/test_loader_odd \
	tests/unit/test_loader_samples \
	tests/unit/test_loader_echo \
	tests/unit/test_loader_kinds \
	tests/unit/test_loader_lend \
	tests/unit/test_loader_life \
	tests/unit/test_loader_members \
	tests/unit/test_loader_state \
	tests/unit/test_loader_tight \
	tests/unit/test_log \
	tests/unit/test_loop \
	tests/unit/test_manifest \
	tests/unit/test_manifest_saved \
	tests/unit/test_model \
	tests/unit/test_mount_options \
	tests/unit/test_notifier \
	tests/unit/test_option \
	tests/unit/test_order \
	tests/unit/test_origin \
	tests/unit/test_parts \
	tests/unit/test_peer_meta \
	tests/unit/test_peer_owner \
	tests/unit/test_peers \
	tests/unit/test_peers_odd \
	tests/unit/test_permute \
	tests/unit/test_plan \
	tests/unit/test_plan_need \
	tests/unit/test_planned \
	tests/unit/test_plan_again \
	tests/unit/test_plan_model \
	tests/unit/test_png \
	tests/unit/test_poll \
	tests/unit/test_thread_pool \
	tests/unit/test_posix \
	tests/unit/test_posix_direct \
	tests/unit/test_posix_versions \
	tests/unit/test_profile \
	tests/unit/test_resize \
	tests/unit/test_retry \
	tests/unit/test_rows \
	tests/unit/test_buckets \
	tests/unit/test_schedule \
	tests/unit/test_schedule_cases \
	tests/unit/test_schedule_change \
	tests/unit/test_schedule_end \
	tests/unit/test_segment \
	tests/unit/test_trainer \
	tests/unit/test_work \
	tests/unit/test_service \
	tests/unit/test_share \
	tests/unit/test_share_msg \
	tests/unit/test_share_odd \
	tests/unit/test_share_place \
	tests/unit/test_shared \
	tests/unit/test_shared_echo \
	tests/unit/test_shared_hosts \
	tests/unit/test_shared_limits \
	tests/unit/test_shared_solo \
	tests/unit/test_providers \
	tests/unit/test_speed \
	tests/unit/test_stand_in \
	tests/unit/test_store \
	tests/unit/test_store_damage \
	tests/unit/test_store_errors \
	tests/unit/test_store_model \
	tests/unit/test_store_threads \
	tests/unit/test_timer \
	tests/unit/test_trail \
	tests/unit/test_transcode \
	tests/unit/test_tree \
	tests/unit/test_trust \
	tests/unit/test_uring \
	tests/unit/test_verdict
# It sleeps, and looks at when it wakes up.
timed_unit_tests = tests/unit/test_loader_echo
# Little of the machine is enough, but it must be at hand.
quiet_unit_tests = tests/unit/test_plan tests/unit/test_plan_need

if HAVE_REMOTE
unit_tests += tests/unit/test_hedge tests/unit/test_remote \
	tests/unit/test_resolver tests/unit/test_web
endif

# The runner and the fixtures.
unit_sources = tests/unit/suite.c tests/unit/suite.h \
	tests/unit/augment_fixture.h tests/unit/auto_plant.h \
	tests/unit/cache_fixture.h \
	tests/unit/ctl_fixture.h tests/unit/examples_fixture.h \
	tests/unit/jpeg_fixture.h tests/unit/loader_fixture.h \
	tests/unit/loader_lease.h \
	tests/unit/manifest_fixture.h \
	tests/unit/members_fixture.h \
	tests/unit/origin_fixture.h tests/unit/origin_remote.h \
	tests/unit/origin_rows.h tests/unit/peers_fixture.h \
	tests/unit/plan_fixture.h tests/unit/png_fixture.h \
	tests/unit/schedule_fixture.h tests/unit/share_fixture.h \
	tests/unit/shared_fixture.h \
	tests/unit/sign_vectors.h \
	tests/unit/providers_fixture.h \
	tests/unit/store_case.h \
	tests/unit/store_fixture.h

# All programs that say nothing else are linked with all parts.
unit_libs = tests/unit/libsuite.la $(CHECK_LIBS) $(JANSSON_LIBS) $(JPEG_LIBS) \
	-lm
LDADD =

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
check_LTLIBRARIES += tests/unit/libsuite.la
tests_unit_libsuite_la_SOURCES = $(unit_sources)
AM_CPPFLAGS += $(CHECK_CFLAGS) $(JANSSON_CFLAGS) $(JPEG_CFLAGS)
LDADD += libplan.la libcache.la libstore.la libnames.la libschedule.la \
	liblayer.la liblocal.la libfleet.la libdaemon.la libloader.la \
	libmakedataset.la libbase.la $(unit_libs)

# It has the binary interface alone.
tests_unit_test_abi_LDADD = librefrain.la $(unit_libs)

# The files of the FUSE front that do not depend on FUSE.
tests_unit_test_tree_LDADD = libfs.la $(LDADD)

tests_unit_test_poll_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_unit_test_poll_LDADD = libfs.la $(LDADD)

# The command's files, on a daemon of the test's own.
tests_unit_test_mount_options_SOURCES = tests/unit/test_mount_options.c \
	tools/command.c tools/mount.c tools/mount_helper.c tools/peer_options.c
tests_unit_test_mount_options_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_mount_options_LDADD = libpeer.la $(LDADD) $(JANSSON_LIBS)

# The files of refrain-hold that are not its loop.
tests_unit_test_hold_SOURCES = tests/unit/test_hold.c tools/hold_ends.c \
	tools/hold_socket.c tools/hold_wire.c
tests_unit_test_hold_CFLAGS = $(AM_CFLAGS)
tests_unit_test_hold_LDADD = libbase.la $(unit_libs)

tests_unit_test_epochs_LDADD = libdaemon.la libbase.la $(unit_libs)
tests_unit_test_kept_LDADD = libsubject.la libfs.la libnames.la libformat.la \
	libbase.la $(unit_libs)
tests_unit_test_model_LDADD = libstudy.la $(unit_libs)
tests_unit_test_profile_LDADD = libstudy.la libdaemon.la $(unit_libs)
tests_unit_test_stand_in_LDADD = libsubject.la $(unit_libs)
tests_unit_test_segment_LDADD = libstudy.la libdaemon.la $(unit_libs)
tests_unit_test_trainer_LDADD = libstudy.la libdaemon.la $(unit_libs)
tests_unit_test_verdict_LDADD = libstudy.la libdaemon.la $(unit_libs)

tests_unit_test_log_LDADD = libdaemon.la $(LDADD)

tests_unit_test_schedule_SOURCES = tests/unit/test_schedule.c \
	tests/unit/schedule_scene.c tests/unit/schedule_scene.h \
	tests/unit/schedule_cover.c tests/unit/schedule_stream.c

if HAVE_REMOTE
tests_unit_test_origin_LDADD = libobject.la $(LDADD)
endif
tests_unit_test_peer_meta_LDADD = libpeer.la $(LDADD)
tests_unit_test_work_LDADD = libwork.la libloader.la libmakedataset.la \
	libbase.la $(unit_libs)
tests_unit_test_service_LDADD = libservice.la libloader.la libbase.la \
	$(unit_libs)
tests_unit_test_peer_owner_LDADD = libpeer.la $(LDADD)
tests_unit_test_peers_LDADD = libpeer.la $(LDADD)
tests_unit_test_peers_odd_LDADD = libpeer.la $(LDADD)
tests_unit_test_trust_LDADD = libpeer.la $(LDADD)
tests_unit_test_resolver_LDADD = libweb.la $(LDADD)
tests_unit_test_web_LDADD = libweb.la $(LDADD)
tests_unit_test_hedge_LDADD = libobject.la $(LDADD)
tests_unit_test_remote_LDADD = libobject.la $(LDADD)
endif

# For builds of packages: nothing here needs a mount.
check-unit:
	$(MAKE) check TESTS='$(unit_tests)'

.PHONY: check-unit
