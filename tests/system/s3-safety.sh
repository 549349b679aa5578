#!/bin/sh
# SPDX-License-Identifier: MIT
# Stores that lie, move, go away, or want more than a signature: right bytes or
# a clear error, and nothing secret to anybody else. GONE_S: how long a store
# that went away stays away.
set -u
name=s3-safety
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'

# second_far: another stand-in, elsewhere; $second is its URL.
second_far() {
	tests/system/far files=64 size=100000 >"$work/far2.out" </dev/null &
	second_pid=$!
	ends_with_test $second_pid
	wait_for 10 test -s "$work/far2.out" || fail 'no second stand-in'
	second=http://127.0.0.1:$(cat "$work/far2.out")
}

second_count() {
	curl -sf --noproxy '*' "$second/-/stats" |
		awk -v n="$1" '$1 == n { print $2 }'
}

s3_mount() {
	what=$1
	shift
	start_mount "s3://$what" "$work/mnt" --cache "$work/tier:200M" \
		--endpoint-url "$far" "$@"
}

end_mount() {
	stop_mount
	rm -rf "$work/tier"
}

far_start --port "$(free_port)" files=64 size=100000
second_far

# -- Answers that lie: an error, no bytes, and the next file is right
s3_mount many --timeout 1 --limit 64K --chunk 64K
scan_through
n=0
for lie in bad_range no_range error_doc bad_etag loop \
	away="${second##*:}"; do
	n=$((n + 1))
	f=$(printf '%s/f%07d.bin' "$mnt" $n)
	far_set "${lie%%=*}=$(case $lie in *=*) echo "${lie#*=}" ;; *)
		echo 1 ;; esac)"
	if cat "$f" >"$work/one" 2>/dev/null; then fail "$lie: no error"; fi
	[ ! -s "$work/one" ] || fail "$lie: bytes were served"
	far_set "${lie%%=*}=0" verify=0
	curl -sf "$far/many/${f##*/}" -o "$work/want"
	far_set verify=1
	readable() {
		cmp -s "$work/want" "$f"
	}
	wait_for 10 readable || fail "$lie: not right afterwards"
done
expect 'requests of S3 that followed a redirect' "$(second_count gets)" 0
far_set cut=0.5
cat "$mnt"/f000003?.bin >"$work/one" || fail 'cut: EIO'
expect 'bytes of cut answers' "$(wc -c <"$work/one")" 1000000
far_set cut=0

# -- Listings that lie: what is known stays
for lie in endless truncate_xml error_doc; do
	far_set $lie=1
	"$refrain" refresh "$mnt" >/dev/null 2>&1
	far_set $lie=0
	expect "$lie: names" "$(find "$mnt" -type f | wc -l)" 64
done

# Answers without an end are given up, with their connections. A 404
# that is not of S3 deletes nothing.
none_goes_on() {
	[ "$(far_count going)" = 0 ]
}
for status in 200 404 500; do
	far_set flood=$status
	"$refrain" refresh "$mnt" >/dev/null 2>&1
	cat "$mnt/f0000051.bin" >"$work/one" 2>/dev/null &&
		fail "$status without an end was read"
	ls "$mnt/none" >/dev/null 2>&1 && fail "$status: a name from nowhere"
	wait_for 20 none_goes_on || fail "$status without an end goes on"
	far_set flood=0
	expect "$status: names" "$(find "$mnt" -type f | wc -l)" 64
done

# -- The store goes away: hits go on, others fail in time, and all comes back
port=${far##*:}
kill "$far_pid"
wait "$far_pid" 2>/dev/null
gone_end=$(($(date +%s) + ${GONE_S:-1}))
while :; do
	cat "$mnt/f0000031.bin" >/dev/null || fail 'a hit fails without a store'
	timeout 30 cat "$mnt/f0000050.bin" >"$work/one" 2>"$work/said" &&
		fail 'bytes of a store that is not there'
	grep -q 'Input/output error' "$work/said" ||
		fail "without a store: $(cat "$work/said")"
	[ "$(date +%s)" -ge "$gone_end" ] && break
done
rm -f "$work/far.out"
tests/system/far --port "$port" files=64 size=100000 verify=1 >"$work/far.out" \
	</dev/null &
far_pid=$!
ends_with_test $far_pid
wait_for 10 test -s "$work/far.out" || fail 'the store does not come back'
back() {
	[ "$(head -c 100000 "$mnt/f0000050.bin" 2>/dev/null | wc -c)" = 100000 ]
}
wait_for 20 back || fail 'no recovery'
end_mount

# -- 1,000 overwrites under readers
far_put over/file a
s3_mount over --revalidate 1 --timeout 5
scan_through
python3 - "$far/over/file" "$work/puts" "${OVERWRITES:-1000}" <<'END'
import sys
url, to, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
for c in "abcdefghijklmnopqrstuvwxyz":
    with open(f"{to}.{c}", "w") as f:
        f.write(c * 100000)
with open(to, "w") as f:
    for i in range(n):
        last = i == n - 1
        c = "z" if last else chr(ord("a") + i % 25)
        f.write(f'url={url}\nrequest=PUT\ndata-binary="@{to}.{c}"\n')
        if not last:
            f.write("next\n")
END
python3 - "$mnt/file" "$work/written" <<'END' &
import os, sys
reads = right = 0
while not os.path.exists(sys.argv[2]):
    try:
        with open(sys.argv[1], "rb", buffering=0) as f:
            got = b""
            while piece := f.read(65536):
                got += piece
    except OSError:
        continue
    reads += 1
    if len(set(got)) > 1:
        sys.exit("a mixture")
    right += len(got) in (1, 100000)
sys.exit(0 if reads == right else f"{right} of {reads} whole")
END
reading=$!
curl -sf -K "$work/puts" || fail 'cannot overwrite'
expect overwrites "$(far_count puts)" "$((${OVERWRITES:-1000} + 1))"
fresh() {
	[ "$(head -c 1 "$mnt/file" 2>/dev/null)" = z ]
}
wait_for 20 fresh || fail 'stale beyond the bound'
: >"$work/written"
wait $reading || fail 'a reader saw what never was'
end_mount

# -- What some stores want, and what profiles may do meanwhile
far_set payer=1
s3_mount many --requester-pays
scan_through
expect 'requester pays' "$(head -c 9 "$mnt/f0000000.bin" | wc -c)" 9
end_mount
far_set payer=0
id=$AWS_ACCESS_KEY_ID secret=$AWS_SECRET_ACCESS_KEY
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
mkdir -p "$work/.aws"
profile() {
	printf '[default]\naws_access_key_id = AK%s\n' "$1" >"$work/.aws/new"
	printf 'aws_secret_access_key = Secret/AK%s+key\n' "$1" \
		>>"$work/.aws/new"
	mv "$work/.aws/new" "$work/.aws/credentials"
}
profile 1
s3_mount many
scan_through
far_set only=2
profile 2
expect 'with a profile that changed' \
	"$(head -c 100000 "$mnt/f0000007.bin" | wc -c)" 100000
end_mount
far_set only=0
rm -r "$work/.aws"

# -- A web server: WebDAV, and a redirect to another host
export AWS_ACCESS_KEY_ID="$id" AWS_SECRET_ACCESS_KEY="$secret"
far_put 'dav/d/a%20b' one
far_put dav/two two2
curl -sf -X PUT --data-binary one "$second/dav/d/a%20b"
far_set verify=0
far_zero
start_mount "$far/dav" "$work/mnt" --cache "$work/tier:20M"
scan_through
far_set away="${second##*:}"
expect 'a file elsewhere' "$(cat "$mnt/d/a b")" one
far_set away=0
expect 'a file here' "$(cat "$mnt/two")" two2
# One more than there are: the start looks whether there is any.
expect 'directories listed' "$(far_count lists)" 3
expect 'requests there with a secret' "$(second_count authorized)" 0
[ "$(second_count gets)" -ge 1 ] || fail 'nothing was asked there'
end_mount
far_set verify=1

# -- Proxies: followed, but not where no_proxy says so, nor by metadata
AWS_EC2_METADATA_DISABLED=false
AWS_EC2_METADATA_SERVICE_ENDPOINT=$far
http_proxy=$second
export AWS_EC2_METADATA_SERVICE_ENDPOINT http_proxy
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
for no_proxy in '' 127.0.0.1; do
	export no_proxy
	before=$(second_count lists)
	s3_mount many
	scan_through
	end_mount
	expect "lists by the proxy, no_proxy '$no_proxy'" \
		"$(($(second_count lists) - before > 0))" \
		"$([ "$no_proxy" ] && echo 0 || echo 1)"
done
expect 'metadata by a proxy' "$(second_count services)" 0
unset http_proxy no_proxy
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err "$work/said" ||
	fail 'a secret is in the log'
