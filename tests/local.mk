# Unit tests (Check) and system tests (scripts).
include tests/unit/local.mk
include tests/system/local.mk
