# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# A stand-in for a store and mounts of it, for the benchmarks of far origins;
# sourced after lib.sh. Nothing here leaves this machine.
far_program=$PWD/tests/system/far
[ -x "$far_program" ] || bench_skip "make tests/system/far first"
command -v curl >/dev/null || bench_skip 'needs curl'
AWS_EC2_METADATA_DISABLED=true
HOME=$work
AWS_ACCESS_KEY_ID=AKfar
AWS_SECRET_ACCESS_KEY=Secret/AKfar+key
export AWS_EC2_METADATA_DISABLED HOME AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
unset AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_CA_BUNDLE \
	AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN \
	http_proxy https_proxy all_proxy

now() {
	date +%s.%N
}

# cpu_s PID: print the processor time of the process in seconds.
cpu_s() {
	awk -v hz="$(getconf CLK_TCK)" '{
		sub(/.*[)] /, "") # the name may contain spaces
		printf("%.2f\n", ($12 + $13) / hz)
	}' "/proc/$1/stat"
}

rss_bytes() {
	awk '$1 == "VmRSS:" { print $2 * 1024 }' "/proc/$1/status"
}

# far_start SETTING ...: start the stand-in; $far is its URL, $far_pid its
# process.
far_start() {
	rm -f "$work/far.in" "$work/far.out"
	mkfifo "$work/far.in"
	"$far_program" "$@" >"$work/far.out" <"$work/far.in" 9>&- &
	far_pid=$!
	exec 9>"$work/far.in"
	tries=100
	until [ -s "$work/far.out" ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || bench_fail 'the stand-in does not start'
		sleep 0.1
	done
	far=http://127.0.0.1:$(cat "$work/far.out")
}

# End the stand-in. It ends with its input, but a daemon may have inherited
# that.
far_stop() {
	exec 9>&-
	kill "$far_pid" 2>/dev/null
	wait "$far_pid" 2>/dev/null
	:
}

# far_set NAME=VALUE ...: change its settings.
far_set() {
	for s; do
		curl -sf "$far/-/set?$s" >/dev/null || bench_fail "cannot set $s"
	done
}

# far_count NAME: print a counter of the stand-in.
far_count() {
	curl -sf "$far/-/stats" | awk -v n="$1" '$1 == n { print $2 }'
}

# far_mount SOURCE OPTION ...: mount SOURCE; $daemon is the process.
far_mount() {
	far_source=$1
	shift
	mkdir -p "$mnt"
	"$refrain" mount "$far_source" "$mnt" --cache \
		"${CACHE_DIR:-$work/tier}:${CACHE:-4G}" --endpoint-url "$far" \
		--log-file "$work/log" "$@" ||
		bench_fail 'the mount failed'
	daemon=$("$refrain" status "$mnt" --json | number pid)
}

far_umount() {
	"$refrain" umount "$mnt" || bench_fail 'the mount did not go away'
}

far_scan_through() {
	tries=1200
	until "$refrain" status "$mnt" --json | grep -q '"scan": *"complete"'; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || bench_fail 'the scan does not end'
		sleep 0.1
	done
}
