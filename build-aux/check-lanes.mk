# For GNU make: `make check` runs two tests more at a time than there are
# processors, as many tests mostly wait; tests that disturb each other run one
# after another.
#
# $(mount_tests) drop the kernel's caches and count what comes of it: one lane.
# $(timed_tests) and $(timed_unit_tests) measure time: one by one, when nothing
# else runs any more. All others follow each other in the lanes that are left;
# a lane for each, not one queue, as make would look at the mounts again only
# when the queue is empty. The order is no dependency: `make check TESTS=...`
# runs those tests alone.
CHECK_JOBS = $(shell echo $$(($$(nproc 2>/dev/null || echo 1) + 2)))

ifneq ($(filter check,$(MAKECMDGOALS)),)
AM_MAKEFLAGS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(CHECK_JOBS))
endif

# What runs the tests, below `make check`.
ifneq ($(filter $(TEST_SUITE_LOG),$(MAKECMDGOALS)),)
check_mounts := $(filter $(addsuffix .log,$(mount_tests)),$(TEST_LOGS))
check_timed := $(filter $(addsuffix .log, \
	$(timed_tests) $(timed_unit_tests)),$(TEST_LOGS))
check_others := $(filter-out $(check_mounts) $(check_timed),$(TEST_LOGS))
check_lanes := $(lastword 1 $(shell seq 1 \
	$$(($(CHECK_JOBS) - $(if $(check_mounts),1,0)))))

# check_follow LIST,N: each begins when the one N before it in the list, or in
# what came before, is through.
check_begun =
check_follow = $(foreach t,$(1),$(eval $(t): | $(word $(2),$(check_begun))) \
	$(eval check_begun := $(t) $(check_begun)))
$(eval $(call check_follow,$(check_mounts),1))
check_begun =
$(eval $(call check_follow,$(check_others),$(check_lanes)))
ifneq ($(check_timed),)
$(firstword $(check_timed)): | $(check_mounts) $(check_others)
endif
check_begun =
$(eval $(call check_follow,$(check_timed),1))
endif
