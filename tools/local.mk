# The command, one subcommand a file, and the newcomer's scripts.
EXTRA_DIST += tools/packages tools/run-tests
