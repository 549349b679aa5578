#!/bin/sh
# SPDX-License-Identifier: MIT
# Signatures of 2,000 random keys equal those of botocore.
set -u
name=s3-sign
here=$(dirname "$0")
[ -x tests/system/sign_lines ] || {
	echo 'skipped: built without http and s3'
	exit 77
}
python=
for p in python3 /usr/bin/python3; do
	"$p" -c 'import botocore' 2>/dev/null && { python=$p; break; }
done
[ -n "$python" ] || { echo "skipped: needs botocore"; exit 77; }
"$python" "$here/sign_vectors.py" "${SIGN_KEYS:-2000}" "${SIGN_SEED:-7}" |
	tests/system/sign_lines || {
	echo "FAILED: $name: signatures differ"
	exit 1
}
