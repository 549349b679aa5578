# Unit tests (Check), system tests (scripts), fuzz targets.
include tests/unit/local.mk
include tests/system/local.mk
include tests/fuzz/local.mk
