#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An upgrade that is refused late changes nothing: a tier that got a smaller
# size gets its old size again if another tier was filled meanwhile. A program
# that never says whether it can take over is given up. A second upgrade at the
# same time is refused.
set -eu
name=survive-upgrade
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

i=0
while [ $i -lt 40 ]; do
	head -c 500000 /dev/urandom >"$src/f$i"
	i=$((i + 1))
done
start_mount "$src" "$mnt" --cache "$work/first:8M" --cache "$work/second:100M"
scan_through

# tier NUMBER FIELD
tier() {
	"$refrain" status --json "$mnt" | python3 -c "import json, sys
print(json.load(sys.stdin)['tiers'][$1]['$2'])"
}

# A program that can take over, and says so when it is told to.
cat >"$work/later" <<END
#!/bin/sh
touch "$work/checks"
until [ -e "$work/go" ]; do sleep 0.05; done
exec "$refrain" "\$@"
END
# A program that hangs, and leaves a child that has the socket of its messages,
# too.
cat >"$work/never" <<END
#!/bin/sh
sleep 600 &
exec sleep 600
END
chmod +x "$work/later" "$work/never"

# used_is BYTES: do both tiers use at least BYTES?
used_is() {
	[ $(($(tier 0 used_bytes) + $(tier 1 used_bytes))) -ge "$1" ]
}

cat "$mnt"/f1? "$mnt"/f2? >"$work/out"
wait_for 20 used_is 10000000 || fail 'half of the files are not cached'
# The sizes are a little less than 8 MiB, and half of what the second tier will
# have to hold.
small=$(($(tier 0 used_bytes) + 50000))
[ $small -lt "$(tier 0 capacity_bytes)" ] || fail 'the first tier is too full'
"$refrain" upgrade "$mnt" "$work/later" --cache "$work/first:$small" \
	--cache "$work/second:5M" 2>"$work/upgrade.err" &
upgrade=$!
wait_for 20 test -e "$work/checks" || fail 'the program is not started'
! "$refrain" upgrade "$mnt" 2>"$work/second.err" || fail 'two upgrades at once'
expect 'the second one is refused, in lines' "$(wc -l <"$work/second.err")" 1
grep -q 'another upgrade of this mount has begun' "$work/second.err" ||
	fail "refused for: $(cat "$work/second.err")"
cat "$mnt"/f? "$mnt"/f3? >"$work/out"
wait_for 20 used_is 20000000 || fail 'not all files are cached'
touch "$work/go"
status=0
wait $upgrade || status=$?
expect 'the end of the upgrade' $status 1
grep -q "second' holds .* bytes" "$work/upgrade.err" ||
	fail "refused for: $(cat "$work/upgrade.err")"
expect 'the size of the first' "$(tier 0 capacity_bytes)" 8388608
expect 'the size of the second' "$(tier 1 capacity_bytes)" 104857600
expect 'recoveries' "$(status_field recoveries)" 0

# A larger size is passed to the new program, and so is one that is still large
# enough.
"$refrain" upgrade "$mnt" --cache "$work/first:$small" \
	--cache "$work/second:200M" || fail 'cannot change both'
expect 'the size of the first' "$(tier 0 capacity_bytes)" $small
expect 'the size of the second' "$(tier 1 capacity_bytes)" 209715200
expect 'recoveries' "$(status_field recoveries)" 1

status=0
timeout $((120 * patience)) "$refrain" upgrade "$mnt" "$work/never" \
	2>"$work/upgrade.err" || status=$?
expect 'the end of the upgrade' $status 1
grep -q 'did not say within .* s whether it can go on' "$work/upgrade.err" ||
	fail "refused for: $(cat "$work/upgrade.err")"
expect 'recoveries' "$(status_field recoveries)" 1
cmp "$src/f1" "$mnt/f1" || fail 'it does not serve'
stop_mount

# A program that knows only the first version of the record of requests says
# that it can take over, but is refused if that record is needed.
cat >"$work/older" <<END
#!/bin/sh
for word; do
	case \$word in
	--check-requests)
		echo "refrain: mount: unrecognized option '\$word'" >&2
		exit 2
		;;
	esac
done
exec "$refrain" "\$@"
END
chmod +x "$work/older"
export REFRAIN_DISABLE=resend
start_mount "$src" "$mnt" --cache "$work/third:100M"
exec 9<"$mnt/f1"
! "$refrain" upgrade "$mnt" "$work/older" 2>"$work/upgrade.err" ||
	fail 'a program that cannot read the record is not refused'
expect 'the reason, in lines' "$(wc -l <"$work/upgrade.err")" 1
grep -q 'too old to read the record of requests' "$work/upgrade.err" ||
	fail "refused for: $(cat "$work/upgrade.err")"
expect 'recoveries' "$(status_field recoveries)" 0
cmp - "$src/f1" <&9 || fail 'an open file'
"$refrain" upgrade "$mnt" || fail 'it cannot be upgraded any more'
expect 'recoveries' "$(status_field recoveries)" 1
exec 9<&-
stop_mount
REFRAIN_DISABLE=
start_mount "$src" "$mnt" --cache "$work/fourth:100M"
"$refrain" upgrade "$mnt" "$work/older" || fail 'refused without a record'
expect 'recoveries' "$(status_field recoveries)" 1
stop_mount
