# System tests: scripts; each exits 77 to skip, with the reason.
TESTS += tests/system/check-layers.sh tests/system/epoch-reader.sh
EXTRA_DIST += tests/system/check-layers.sh tests/system/epoch-reader.sh

TESTS += tests/system/commands.sh
EXTRA_DIST += tests/system/commands.sh
check_PROGRAMS += tests/system/stand_in
tests_system_stand_in_SOURCES = tests/system/stand_in.c
tests_system_stand_in_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_system_stand_in_LDADD = libctl.la libbase.la $(JANSSON_LIBS)

# What the tests of a mount share.
EXTRA_DIST += tests/system/lib.sh

# The commands.
TESTS += tests/system/completion.sh tests/system/umount.sh
EXTRA_DIST += tests/system/completion.sh tests/system/umount.sh
