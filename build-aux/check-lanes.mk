# For GNU make: `make check` runs three tests more at a time than there are
# processors, as many tests mostly wait. $(drop_tests) and $(long_...tests)
# begin first, so that none is left alone at the end.
#
# $(drop_tests) drop all of the kernel's caches, so they end before the first of
# $(long_mount_tests) and $(mount_tests), which count what the kernel asks for.
# When nothing else runs any more, $(timed_unit_tests) and $(timed_tests)
# measure time, one by one. Beside the former, which sleep, the
# $(quiet_...tests) follow each other: they need a processor when they ask for
# it, but not for long. The order is no dependency: `make check TESTS=...` runs
# those tests alone.
CHECK_JOBS = $(shell echo $$(($$(nproc 2>/dev/null || echo 1) + 3)))

# Also after `make -j16 check`: it is for all that is built before.
ifneq ($(filter check,$(MAKECMDGOALS)),)
AM_MAKEFLAGS = -j$(CHECK_JOBS)
endif

# system tests none of their programs.
ifeq ($(origin TESTS),command line)
ifeq ($(filter-out $(unit_tests),$(TESTS)),)
check_PROGRAMS := $(TESTS)
else
check_unwanted := $(filter-out $(TESTS),$(unit_tests))
check_PROGRAMS := $(filter-out $(check_unwanted),$(check_PROGRAMS))
endif
endif

check_logs = $(filter $(addsuffix .log,$(1)),$(TEST_LOGS))
check_sleepers := $(call check_logs,$(timed_unit_tests))
check_quiet := $(call check_logs,$(quiet_unit_tests) $(quiet_tests))
check_timed := $(call check_logs,$(timed_tests))
check_mounts := $(call check_logs,$(long_mount_tests) $(mount_tests))
check_drops := $(call check_logs,$(drop_tests))
check_others := $(filter-out $(check_sleepers) $(check_quiet) $(check_timed), \
	$(TEST_LOGS))

# Make begins what it may in this order.
check_long := $(foreach t,$(drop_tests) $(long_tests) $(long_mount_tests), \
	$(filter $(t).log,$(check_others)))
TEST_LOGS := $(check_long) $(filter-out $(check_long),$(check_others)) \
	$(check_sleepers) $(check_quiet) $(check_timed)

# Only for the make that runs the tests, below `make check`.
ifneq ($(filter $(TEST_SUITE_LOG),$(MAKECMDGOALS)),)
# check_follow LIST: each begins when the one before it is through.
check_follow = $(eval check_begun :=) \
	$(foreach t,$(1),$(eval $(t): | $(check_begun)) \
	$(eval check_begun := $(t)))
# check_after LIST,EARLIER: all of the one begin after all of the other.
check_after = $(foreach t,$(1),$(eval $(t): | $(2)))

$(eval $(call check_follow,$(check_sleepers)))
$(eval $(call check_follow,$(check_quiet)))
$(eval $(call check_follow,$(check_timed)))
$(eval $(call check_after,$(check_mounts),$(check_drops)))
$(eval $(call check_after,$(check_sleepers) $(check_quiet),$(check_others)))
$(eval $(call check_after,$(check_timed), \
	$(check_others) $(check_sleepers) $(check_quiet)))
endif
