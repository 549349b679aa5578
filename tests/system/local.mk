# System tests: scripts; each exits 77 to skip, with the reason.
TESTS += tests/system/check-layers.sh tests/system/epoch-reader.sh
EXTRA_DIST += tests/system/check-layers.sh tests/system/epoch-reader.sh
