# Style gates, and the test-suite under other builds.
TESTS += build-aux/check-layers build-aux/check-locks build-aux/check-rooms
EXTRA_DIST += \
	build-aux/check-lanes.mk build-aux/check-layers build-aux/check-locks \
	build-aux/check-rooms \
	build-aux/check-totals build-aux/hooks/pre-commit build-aux/lint \
	build-aux/cppcheck.supp build-aux/tsan.supp build-aux/codespell.words

# A clean tree in another folder is the same tree: make distcheck builds so.
AM_DISTCHECK_CONFIGURE_FLAGS = --enable-werror

lint:
	@srcdir='$(srcdir)' $(SHELL) '$(srcdir)/build-aux/lint'

# Format the tree as lint's clang-format (version 14) requires.
format:
	cd '$(srcdir)' && find src tools bench tests examples experiments \
		-name '*.[ch]' -exec clang-format -i {} +

# Each of these configures and builds in a folder of its own below the build
# folder, so that they never disturb each other; the second time is quick. No
# --enable-werror: with other optimisation gcc warns of other things.
SUB_CONFIGURE = '$(abs_srcdir)/configure' --quiet CC='$(CC)'
SUB_SLOW = CPPFLAGS='-DTIME_LIMIT_FACTOR=10 $(CPPFLAGS)'
SUB_ENTER = $(MKDIR_P) $@ && cd $@ && { test -f config.status ||

check-asan:
	$(SUB_ENTER) $(SUB_CONFIGURE) --enable-sanitizer=address \
		$(SUB_SLOW) CFLAGS='-O1 -g'; }
	cd $@ && CK_TIMEOUT_MULTIPLIER=10 $(MAKE) check

# ThreadSanitizer wants the old address layout where the kernel has a new one.
check-tsan:
	$(SUB_ENTER) $(SUB_CONFIGURE) --enable-sanitizer=thread \
		$(SUB_SLOW) CFLAGS='-O1 -g'; }
	cd $@ && wrap='setarch -R'; $$wrap true 2>/dev/null || wrap=; \
	CK_TIMEOUT_MULTIPLIER=20 \
	TSAN_OPTIONS="second_deadlock_stack=1 \
		suppressions=$(abs_srcdir)/build-aux/tsan.supp \
		$$TSAN_OPTIONS" \
		$$wrap $(MAKE) check

# Every probed feature is taken for absent (src/common/base/feature.h).
check-disabled:
	REFRAIN_DISABLE=all $(MAKE) check

# Unit tests only; valgrind knows little of io_uring, so that is off, and takes
# what libjpeg's SIMD code reads beyond a row for a part of what it writes.
VALGRIND = valgrind --quiet --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite
check-valgrind:
	$(SUB_ENTER) $(SUB_CONFIGURE) $(SUB_SLOW) CFLAGS='-O1 -g'; }
	cd $@ && units=; \
	for t in $(TESTS); do \
		case $$t in tests/unit/*) units="$$units $$t";; esac; \
	done; \
	REFRAIN_DISABLE=io_uring CK_TIMEOUT_MULTIPLIER=50 JSIMD_FORCENONE=1 \
		$(MAKE) check TESTS="$$units" LOG_COMPILER='$(VALGRIND)'

distclean-local:
	rm -rf check-asan check-tsan check-valgrind fuzz

.PHONY: lint format check-asan check-disabled check-tsan check-valgrind
