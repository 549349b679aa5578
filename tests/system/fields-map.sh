#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Boxes, points and masks are mapped by crops as NumPy computes it, over 10,000
# views.
set -eu
name=fields-map
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

python=$(sed -n 's/^PYTHON = //p' Makefile)
: "${python:=python3}"
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no NumPy"
"$python" "$(dirname "$0")/fields_map.py" tests/system/map_rows ||
	fail 'maps differ from those of NumPy'
note 'every row of 10,000 views is that of NumPy'
