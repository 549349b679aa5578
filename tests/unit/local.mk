# Unit tests: one Check program a part.
if HAVE_CHECK
check_PROGRAMS += tests/unit/test_retry
TESTS += tests/unit/test_retry
tests_unit_test_retry_SOURCES = tests/unit/test_retry.c \
	tests/unit/origin_fixture.h
tests_unit_test_retry_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_retry_LDADD = liborigin.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_origin
TESTS += tests/unit/test_origin
tests_unit_test_origin_SOURCES = tests/unit/test_origin.c \
	tests/unit/origin_rows.h tests/unit/origin_fixture.h
tests_unit_test_origin_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_origin_LDADD = liborigin.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_posix
TESTS += tests/unit/test_posix
tests_unit_test_posix_SOURCES = tests/unit/test_posix.c \
	tests/unit/origin_rows.h tests/unit/origin_fixture.h
tests_unit_test_posix_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_posix_LDADD = liborigin.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_posix_versions
TESTS += tests/unit/test_posix_versions
tests_unit_test_posix_versions_SOURCES = tests/unit/test_posix_versions.c \
	tests/unit/origin_rows.h tests/unit/origin_fixture.h
tests_unit_test_posix_versions_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_posix_versions_LDADD = liborigin.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_posix_direct
TESTS += tests/unit/test_posix_direct
tests_unit_test_posix_direct_SOURCES = tests/unit/test_posix_direct.c \
	tests/unit/origin_rows.h tests/unit/origin_fixture.h
tests_unit_test_posix_direct_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_posix_direct_LDADD = liborigin.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_pool
TESTS += tests/unit/test_pool
tests_unit_test_pool_SOURCES = tests/unit/test_pool.c
tests_unit_test_pool_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_pool_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_uring
TESTS += tests/unit/test_uring
tests_unit_test_uring_SOURCES = tests/unit/test_uring.c
tests_unit_test_uring_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_uring_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_timer
TESTS += tests/unit/test_timer
tests_unit_test_timer_SOURCES = tests/unit/test_timer.c
tests_unit_test_timer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_timer_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_permute
TESTS += tests/unit/test_permute
tests_unit_test_permute_SOURCES = tests/unit/test_permute.c \
	tests/unit/expect.h
tests_unit_test_permute_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_permute_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_base
TESTS += tests/unit/test_base

tests_unit_test_base_SOURCES = tests/unit/test_base.c
tests_unit_test_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_base_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_option
TESTS += tests/unit/test_option
tests_unit_test_option_SOURCES = tests/unit/test_option.c
tests_unit_test_option_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_option_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_mount_options
TESTS += tests/unit/test_mount_options
tests_unit_test_mount_options_SOURCES = tests/unit/test_mount_options.c \
	tools/command.c tools/mount.c tools/mount_helper.c
tests_unit_test_mount_options_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_mount_options_LDADD = libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_ctl
TESTS += tests/unit/test_ctl
tests_unit_test_ctl_SOURCES = tests/unit/test_ctl.c tests/unit/ctl_fixture.h
tests_unit_test_ctl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_ctl_LDADD = libctl.la libbase.la $(CHECK_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test_ctl_place
TESTS += tests/unit/test_ctl_place
tests_unit_test_ctl_place_SOURCES = tests/unit/test_ctl_place.c \
	tests/unit/ctl_fixture.h
tests_unit_test_ctl_place_CFLAGS = $(tests_unit_test_ctl_CFLAGS)
tests_unit_test_ctl_place_LDADD = $(tests_unit_test_ctl_LDADD)

check_PROGRAMS += tests/unit/test_store
TESTS += tests/unit/test_store
tests_unit_test_store_SOURCES = tests/unit/test_store.c \
	tests/unit/store_fixture.h
tests_unit_test_store_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_store_LDADD = libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_dataset
TESTS += tests/unit/test_dataset

tests_unit_test_dataset_SOURCES = tests/unit/test_dataset.c
tests_unit_test_dataset_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JPEG_CFLAGS)
tests_unit_test_dataset_LDADD = libdataset.la libbase.la $(JPEG_LIBS) \
	$(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/test_examples
TESTS += tests/unit/test_examples
tests_unit_test_examples_SOURCES = tests/unit/test_examples.c \
	tests/unit/examples_fixture.h
tests_unit_test_examples_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_examples_LDADD = libloader.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_examples_tar
TESTS += tests/unit/test_examples_tar
tests_unit_test_examples_tar_SOURCES = tests/unit/test_examples_tar.c \
	tests/unit/examples_fixture.h
tests_unit_test_examples_tar_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_examples_tar_LDADD = libloader.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_examples_index
TESTS += tests/unit/test_examples_index
tests_unit_test_examples_index_SOURCES = tests/unit/test_examples_index.c \
	tests/unit/examples_fixture.h
tests_unit_test_examples_index_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_examples_index_LDADD = libloader.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_store_errors
TESTS += tests/unit/test_store_errors
tests_unit_test_store_errors_SOURCES = tests/unit/test_store_errors.c \
	tests/unit/store_fixture.h
tests_unit_test_store_errors_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_store_errors_LDADD = libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_store_model
TESTS += tests/unit/test_store_model
tests_unit_test_store_model_SOURCES = tests/unit/test_store_model.c \
	tests/unit/store_fixture.h
tests_unit_test_store_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_store_model_LDADD = libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_cache
TESTS += tests/unit/test_cache
tests_unit_test_cache_SOURCES = tests/unit/test_cache.c \
	tests/unit/cache_fixture.h tests/unit/store_fixture.h
tests_unit_test_cache_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_cache_LDADD = libcache.la libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_planned
TESTS += tests/unit/test_planned
tests_unit_test_planned_SOURCES = tests/unit/test_planned.c \
	tests/unit/cache_fixture.h tests/unit/store_fixture.h
tests_unit_test_planned_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_planned_LDADD = libcache.la libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_plan
TESTS += tests/unit/test_plan
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c \
	tests/unit/cache_fixture.h tests/unit/store_fixture.h
tests_unit_test_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_plan_LDADD = libprefetch.la libcache.la libplan.la \
	libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_manifest
TESTS += tests/unit/test_manifest
tests_unit_test_manifest_SOURCES = tests/unit/test_manifest.c
tests_unit_test_manifest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_manifest_LDADD = libplan.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_schedule
TESTS += tests/unit/test_schedule
tests_unit_test_schedule_SOURCES = tests/unit/test_schedule.c \
	tests/unit/expect.h tests/unit/schedule_fixture.h
tests_unit_test_schedule_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_schedule_LDADD = libplan.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_schedule_cases
TESTS += tests/unit/test_schedule_cases
tests_unit_test_schedule_cases_SOURCES = tests/unit/test_schedule_cases.c \
	tests/unit/expect.h tests/unit/schedule_fixture.h
tests_unit_test_schedule_cases_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_schedule_cases_LDADD = libplan.la libbase.la $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/test_store_threads
TESTS += tests/unit/test_store_threads
tests_unit_test_store_threads_SOURCES = tests/unit/test_store_threads.c \
	tests/unit/store_fixture.h
tests_unit_test_store_threads_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_store_threads_LDADD = libstore.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_depth
TESTS += tests/unit/test_depth
tests_unit_test_depth_SOURCES = tests/unit/test_depth.c
tests_unit_test_depth_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_depth_LDADD = libcache.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_abi
TESTS += tests/unit/test_abi
tests_unit_test_abi_SOURCES = tests/unit/test_abi.c
tests_unit_test_abi_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_abi_LDADD = librefrain.la $(CHECK_LIBS)

if HAVE_BLAS
check_PROGRAMS += tests/unit/test_nn
TESTS += tests/unit/test_nn
tests_unit_test_nn_SOURCES = tests/unit/test_nn.c $(nn_sources)
tests_unit_test_nn_CPPFLAGS = $(AM_CPPFLAGS) -DNN_DOUBLE
tests_unit_test_nn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(BLAS_CFLAGS)
tests_unit_test_nn_LDADD = $(CHECK_LIBS) $(BLAS_LIBS) -lm
endif

check_PROGRAMS += tests/unit/test_decode
TESTS += tests/unit/test_decode
tests_unit_test_decode_SOURCES = tests/unit/test_decode.c \
	tests/unit/jpeg_fixture.h
tests_unit_test_decode_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JPEG_CFLAGS)
tests_unit_test_decode_LDADD = libloader.la libbase.la $(JPEG_LIBS) \
	$(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_decode_bad
TESTS += tests/unit/test_decode_bad
tests_unit_test_decode_bad_SOURCES = tests/unit/test_decode_bad.c \
	tests/unit/jpeg_fixture.h
tests_unit_test_decode_bad_CFLAGS = $(tests_unit_test_decode_CFLAGS)
tests_unit_test_decode_bad_LDADD = $(tests_unit_test_decode_LDADD)

check_PROGRAMS += tests/unit/test_decode_memory
TESTS += tests/unit/test_decode_memory
tests_unit_test_decode_memory_SOURCES = tests/unit/test_decode_memory.c \
	tests/unit/jpeg_fixture.h
tests_unit_test_decode_memory_CFLAGS = $(tests_unit_test_decode_CFLAGS)
tests_unit_test_decode_memory_LDADD = $(tests_unit_test_decode_LDADD)

check_PROGRAMS += tests/unit/test_resize
TESTS += tests/unit/test_resize
tests_unit_test_resize_SOURCES = tests/unit/test_resize.c \
	tests/unit/augment_fixture.h
tests_unit_test_resize_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_resize_LDADD = libloader.la $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/test_augment
TESTS += tests/unit/test_augment
tests_unit_test_augment_SOURCES = tests/unit/test_augment.c \
	tests/unit/augment_fixture.h
tests_unit_test_augment_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_augment_LDADD = libloader.la $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/test_loader
TESTS += tests/unit/test_loader
tests_unit_test_loader_SOURCES = tests/unit/test_loader.c \
	tests/unit/loader_fixture.h
tests_unit_test_loader_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JPEG_CFLAGS)
tests_unit_test_loader_LDADD = libloader.la libdataset.la $(JPEG_LIBS) \
	$(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_loader_alloc
TESTS += tests/unit/test_loader_alloc
tests_unit_test_loader_alloc_SOURCES = tests/unit/test_loader_alloc.c \
	tests/unit/loader_fixture.h
tests_unit_test_loader_alloc_CFLAGS = $(tests_unit_test_loader_CFLAGS)
tests_unit_test_loader_alloc_LDADD = $(tests_unit_test_loader_LDADD)

check_PROGRAMS += tests/unit/test_loader_damage
TESTS += tests/unit/test_loader_damage
tests_unit_test_loader_damage_SOURCES = tests/unit/test_loader_damage.c \
	tests/unit/loader_fixture.h
tests_unit_test_loader_damage_CFLAGS = $(tests_unit_test_loader_CFLAGS)
tests_unit_test_loader_damage_LDADD = $(tests_unit_test_loader_LDADD)

check_PROGRAMS += tests/unit/test_loader_kinds
TESTS += tests/unit/test_loader_kinds
tests_unit_test_loader_kinds_SOURCES = tests/unit/test_loader_kinds.c \
	tests/unit/loader_fixture.h tests/unit/jpeg_fixture.h
tests_unit_test_loader_kinds_CFLAGS = $(tests_unit_test_loader_CFLAGS)
tests_unit_test_loader_kinds_LDADD = $(tests_unit_test_loader_LDADD)

check_PROGRAMS += tests/unit/test_loader_life
TESTS += tests/unit/test_loader_life
tests_unit_test_loader_life_SOURCES = tests/unit/test_loader_life.c \
	tests/unit/loader_fixture.h
tests_unit_test_loader_life_CFLAGS = $(tests_unit_test_loader_CFLAGS)
tests_unit_test_loader_life_LDADD = $(tests_unit_test_loader_LDADD)

check_PROGRAMS += tests/unit/test_loader_state
TESTS += tests/unit/test_loader_state
tests_unit_test_loader_state_SOURCES = tests/unit/test_loader_state.c \
	tests/unit/loader_fixture.h
tests_unit_test_loader_state_CFLAGS = $(tests_unit_test_loader_CFLAGS)
tests_unit_test_loader_state_LDADD = $(tests_unit_test_loader_LDADD)
endif

check_PROGRAMS += tests/unit/test_answer
TESTS += tests/unit/test_answer
tests_unit_test_answer_SOURCES = tests/unit/test_answer.c
tests_unit_test_answer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_answer_LDADD = libloader.la libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_auto
TESTS += tests/unit/test_auto
tests_unit_test_auto_SOURCES = tests/unit/test_auto.c \
	tests/unit/expect.h tests/unit/schedule_fixture.h
tests_unit_test_auto_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_auto_LDADD = libloader.la libdataset.la libbase.la \
	$(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/test_loader_echo
TESTS += tests/unit/test_loader_echo
tests_unit_test_loader_echo_SOURCES = tests/unit/test_loader_echo.c
tests_unit_test_loader_echo_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_loader_echo_LDADD = libloader.la libdataset.la libbase.la \
	$(JPEG_LIBS) $(CHECK_LIBS) -lm
