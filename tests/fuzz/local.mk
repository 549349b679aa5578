# Fuzzing of every format that is read back: always the same mutations in
# `make check`, libFuzzer in `make fuzz`, for FUZZ_SECONDS a target.
fuzz_sources = tests/fuzz/fuzz.c tests/fuzz/fuzz.h tests/fuzz/ctl.c \
	tests/fuzz/peer.h tests/fuzz/plan.c \
	tests/fuzz/dataset.c tests/fuzz/decode.c tests/unit/jpeg_fixture.h \
	tests/unit/png_fixture.h \
	tests/fuzz/manifest.c tests/fuzz/memcached.c \
	tests/fuzz/npy.c tests/fuzz/rows.c tests/fuzz/service.c \
	tests/fuzz/share.c tests/fuzz/store.c tests/fuzz/text.c \
	tests/fuzz/transcode.c
fuzz_libs = libdaemon.la libfs.la libplan.la libcache.la libstore.la \
	libnames.la libschedule.la liblayer.la liblocal.la libfleet.la \
	libservice.la libloader.la libpeer.la libbase.la \
	$(JANSSON_LIBS) $(JPEG_LIBS)

if HAVE_REMOTE
fuzz_sources += tests/fuzz/answer.c
fuzz_libs += libobject.la libweb.la
FUZZ_REMOTE = answer
endif

check_PROGRAMS += tests/fuzz/mutate
TESTS += tests/fuzz/mutate
tests_fuzz_mutate_SOURCES = tests/fuzz/mutate.c $(fuzz_sources)
tests_fuzz_mutate_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(JPEG_CFLAGS)
tests_fuzz_mutate_LDADD = $(fuzz_libs)

# Needs clang: built by `make fuzz` alone.
EXTRA_PROGRAMS = tests/fuzz/fuzz
tests_fuzz_fuzz_SOURCES = tests/fuzz/libfuzzer.c $(fuzz_sources)
tests_fuzz_fuzz_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(JPEG_CFLAGS)
tests_fuzz_fuzz_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_LDADD = $(fuzz_libs)

FUZZ_SECONDS = 60
FUZZ_TARGETS = tar list index manifest identity entry name ctl plan fault \
	synthetic size json option \
	decode levels transcode png npy yolo rows coco fields share memcached \
	service $(FUZZ_REMOTE)
FUZZ_CC = clang

fuzz:
	@echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
		$(FUZZ_CC) -fsanitize=fuzzer,address -x c - -o /dev/null || \
		{ echo 'fuzz: needs clang with libFuzzer'; exit 1; }
	$(SUB_ENTER) $(SUB_CONFIGURE) CC='$(FUZZ_CC)' \
		--enable-sanitizer=address \
		CFLAGS='-O1 -g -fsanitize=fuzzer-no-link'; }
	cd $@ && $(MAKE) tests/fuzz/fuzz tests/fuzz/mutate && \
	for t in $(FUZZ_TARGETS); do \
		$(MKDIR_P) corpus/$$t && tests/fuzz/mutate $$t corpus/$$t && \
		REFRAIN_FUZZ=$$t tests/fuzz/fuzz -max_len=4096 \
			-max_total_time=$(FUZZ_SECONDS) -timeout=20 \
			-print_final_stats=1 -artifact_prefix=$$t- \
			corpus/$$t >$$t.log 2>&1 || \
			{ tail -n 40 $$t.log; exit 1; }; \
		sed -n "s/^stat::number_of_executed_units: */$$t: /p" \
			$$t.log; \
	done

.PHONY: fuzz
