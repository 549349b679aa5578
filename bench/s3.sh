#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares cold reads of a bucket of the stand-in (tests/system/far) through a
# mount with a bare curl-multi reader (bench/far-bare) of the same server:
#
#   PAIRS=7 FILES=20000 READERS=8 RATE=200000000 bench/s3.sh [ROW ...]
#   QUICK=1 bench/s3.sh      # one pair of a tenth; rows with a bar; a minute
#
#   link     the server sends RATE bytes a second in all: files a second
#   cpu      no limit: processor time a file of the mount, beside that of bare
#            and of a mount of `synthetic:` together
#   seq      one large file: MB/s beside 8 ranges by bare at a time, or a mount
#            of `synthetic:`, whichever is slower
#   tls      what TLS adds to the processor time a file: https beside http, both
#            from the same nginx, whose processors the clients do not share. The
#            tier is tiny: filling a large one takes now more, now less
#   late     the same link and DELAY_MS (20) to the first byte, and a plan:
#            files a second beside bare at its best depth
#   free     as late without a limit: what the processors leave
#   busy     as late, a tenth of all answers 503, beside no such answers: rate,
#            requests, failed reads
#   hedge    without a link's limit or a plan, one GET in a hundred is never
#            answered: the reader's p99 of a file in ms, requests
#   others   rclone mount and s3fs on the link of `link` and of `late`, with
#            OTHERS files, where they are installed; no bar. Signatures are
#            not verified: s3fs makes some that are not canonical
#
# The processor time of a mount is taken when all files are in the tier.
# Pairs alternate; a row is the median of the ratios of PAIRS pairs, of three
# times as many in `tls`. Tiers are in memory (TIERS): ext4 does not reuse the
# inodes of files deleted within five minutes, and searches for others, so that
# a fresh tier where another one was deleted measures that search. Writes
# bench-s3.json.
set -u
name=s3
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
# shellcheck source=bench/far.sh
. "$bench/far.sh"
bare=$PWD/bench/far-bare
[ -x "$bare" ] || bench_skip 'needs bench/far-bare'
slow_root || bench_skip 'needs root, to drop caches'

if [ -n "${QUICK:-}" ]; then
	: "${PAIRS:=1}" "${FILES:=2000}" "${SEQ:=512}" "${DEPTHS:=64}"
	: "${OTHERS:=500}"
fi
files=${FILES:-20000} size=${SIZE:-110000} readers=${READERS:-8}
delay_ms=${DELAY_MS:-20}
pairs=${PAIRS:-7} rate=${RATE:-200000000} seq_mib=${SEQ:-4096}
holds_all=90% depths=${DEPTHS:-32 64 128 256} others=${OTHERS:-2000} rows=
cache=$holds_all
if [ $# -eq 0 ]; then
	set -- link cpu seq tls late busy hedge
	[ -n "${QUICK:-}" ] || set -- "$@" free others
fi

tier=$(mktemp -d "${TIERS:-/dev/shm}/refrain-bench.XXXXXX") || exit 1
s3_cleanup() {
	[ -z "${nginx_pid:-}" ] || kill "$nginx_pid" 2>/dev/null
	other_end
	bench_cleanup
	rm -rf "$tier"
}
trap s3_cleanup EXIT

# -- One run ------------------------------------------------------------------

# order: write the names in the order of the reader to $work/order.
order() {
	seq -f 'f%07.0f.bin' 0 $((files - 1)) >"$work/names"
	mkdir "$work/empty"
	(cd "$work/empty" && xargs touch <"$work/names")
	rm -f "$work/order.long"
	"$reader" "$work/empty" --files-from "$work/names" \
		--order "$work/order.long" --json >"$work/read" 2>&1 ||
		bench_fail "reader: $(cat "$work/read")"
	cut -d ' ' -f 3 "$work/order.long" >"$work/order"
	rm -rf "$work/empty"
}

# per_s S: print files a second.
per_s() {
	awk -v s="$1" -v n="$files" 'BEGIN { printf("%.1f\n", n / s) }'
}

us_a_file() {
	awk -v s="$1" -v n="$files" 'BEGIN { printf("%.1f\n", s * 1e6 / n) }'
}

# bare_once DEPTH [URL [CA]]: run the bare reader; sets $took and $cpu.
bare_once() {
	far_set verify=0
	"$bare" "${2:-$far/many/}" "$1" ${3:+"$3"} <"${names:-$work/names}" \
		>"$work/bare" || bench_fail "bare: $(cat "$work/bare")"
	far_set verify=1
	took=$(number s <"$work/bare")
	cpu=$(number cpu_s <"$work/bare")
}

# cold_mount SOURCE OPTION ...: mount with an empty tier, and wait for the list
# of files.
cold_mount() {
	rm -rf "$tier/t"
	CACHE_DIR=$tier/t CACHE=$cache far_mount "$@"
	far_scan_through
	forget
	curl -sf "$far/-/zero" >/dev/null
}

# read_all [OPTION]: read all files; sets $took, the time from the first open
# on, and $failed to the number of failed reads.
read_all() {
	list=$work/names
	[ "$plan" = plan ] || {
		list=$work/here
		find "$mnt" -type f -printf '%P\n' >"$list"
	}
	"$reader" "$mnt" --files-from "$list" --threads "$readers" \
		--json "$@" >"$work/read" 2>&1
	end=$(now)
	failed=$(grep '^{' "$work/read" | number errors)
	took=$(grep '^{' "$work/read" | number seconds)
}

# Wait until all files are in the tier: the writes are part of the work, even if
# the source is faster than the tier.
settle() {
	tries=600
	until [ "$("$refrain" status "$mnt" --json | number entries)" = \
		"$files" ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || bench_fail 'the tier lacks some files'
		sleep 0.05
	done
}

# plan_begin: start a plan; the mount has its first part on return.
plan_begin() {
	planned=$(now)
	"$refrain" plan "$mnt" <"$work/order" >"$work/planned" 2>&1 &
	plan_pid=$!
	tries=50
	until "$refrain" status "$mnt" --json | grep -q '"plans": *[1-9]' ||
		[ $tries -eq 0 ]; do
		tries=$((tries - 1))
		sleep 0.02
	done
}

# mount_once SOURCE plan|no OPTION ...: measure a mount; sets $took, $cpu,
# $gets, $failed. The time of a planned run begins with the plan. Otherwise the
# kernel's names are dropped first, so that the time includes look-ups.
mount_once() {
	plan=$2 source=$1
	shift 2
	cold_mount "$source" "$@"
	before=$(cpu_s "$daemon")
	if [ "$plan" = plan ]; then
		plan_begin
		read_all
	else
		read_all --drop
	fi
	[ "$failed" -gt 0 ] || [ "$cache" != "$holds_all" ] || settle
	cpu=$(awk -v a="$before" -v b="$(cpu_s "$daemon")" \
		'BEGIN { print b - a }')
	gets=$(far_count gets)
	if [ "$plan" = plan ]; then
		took=$(awk -v a="$planned" -v b="$end" 'BEGIN { print b - a }')
		wait "$plan_pid" 2>/dev/null
	fi
	far_umount
	rm -rf "$tier/t"
	[ "$failed" -eq 0 ] || [ -n "${may_fail:-}" ] ||
		bench_fail "reader: $(cat "$work/read")"
}

# -- Rows ---------------------------------------------------------------------

# pair NAME A B: add a pair to a row.
pair() {
	echo "$2 $3 $(ratio "$3" "$2")" >>"$work/$1.pairs"
}

mid() {
	cut -d ' ' -f "$2" "$work/$1.pairs" | median
}

# row NAME WHAT least|most|none BAR: print the medians of its pairs, and a
# verdict.
row() {
	a=$(mid "$1" 1) b=$(mid "$1" 2) r=$(mid "$1" 3)
	verdict=$(awk -v r="$r" -v bar="$4" -v way="$3" 'BEGIN {
		good = way == "least" ? r >= bar : r <= bar
		print way == "none" ? "-" : good ? "met" : "MISSED" }')
	sign='>='
	[ "$3" != most ] || sign='<='
	[ "$3" != none ] || sign=''
	printf '%-9s %-36s %9s %9s %7s %3s%-5s %s\n' "$1" "$2" "$a" "$b" \
		"$r" "$sign" "$4" "$verdict"
	rows=$rows${rows:+, }$(printf '{"name": "%s", "a": %s, "b": %s, ' \
		"$1" "$a" "$b")
	rows=$rows$(printf '"ratio": %s, "verdict": "%s", "load": %s}' \
		"$r" "$verdict" "$(cut -d ' ' -f 1 /proc/loadavg)")
}

# within NAME WHAT BAR: print a row whose bar is a value of B.
within() {
	row "$1" "$2" none ''
	awk -v b="$(mid "$1" 2)" -v bar="$3" -v name="$1" 'BEGIN {
		print name ": B <= " bar ": " (b <= bar ? "met" : "MISSED") }'
}

# each FUNCTION: call it once for each pair.
each() {
	i=0
	while [ $i -lt "$pairs" ]; do
		i=$((i + 1))
		"$1"
	done
}

link_pair() {
	bare_once "$readers"
	a=$(per_s "$took")
	mount_once s3://many no
	pair link "$a" "$(per_s "$took")"
}

row_link() {
	far_set "rate=$rate" delay_ms=0
	each link_pair
	row link 'files/s: bare, mount' least 0.95
}

cpu_pair() {
	bare_once "$readers"
	a=$cpu
	# Its readers must not read by themselves: an s3 mount answers on
	# another thread, too.
	REFRAIN_DISABLE=at_once
	export REFRAIN_DISABLE
	mount_once "synthetic:files=$files,size=$size" no
	unset REFRAIN_DISABLE
	a=$(us_a_file "$(awk -v a="$a" -v b="$cpu" 'BEGIN { print a + b }')")
	mount_once s3://many no
	pair cpu "$a" "$(us_a_file "$cpu")"
}

row_cpu() {
	far_set rate=0 delay_ms=0
	each cpu_pair
	row cpu 'us a file: bare + synthetic, mount' most 1.10
}

# seq_once SOURCE: set $took to the MB/s of its only file.
seq_once() {
	cold_mount "$1"
	one=$(find "$mnt" -type f)
	begin=$(now)
	dd if="$one" of=/dev/null bs=1M 2>"$work/dd" ||
		bench_fail "dd: $(cat "$work/dd")"
	took=$(mb_per_s "$begin")
	far_umount
	rm -rf "$tier/t"
}

mb_per_s() {
	awk -v a="$1" -v b="$(now)" -v m="$seq_mib" \
		'BEGIN { printf("%.1f\n", m * 1.048576 / (b - a)) }'
}

# Run eight curls, each of which reads an eighth.
seq_bare() {
	part=$((seq_mib * 131072)) pids=
	far_set verify=0
	begin=$(now)
	for k in 0 1 2 3 4 5 6 7; do
		curl -sf -o /dev/null "$far/many/f0000000.bin" \
			-r $((k * part))-$((k * part + part - 1)) 9>&- &
		pids="$pids $!"
	done
	for k in $pids; do
		wait "$k" || bench_fail 'curl failed'
	done
	took=$(mb_per_s "$begin")
	far_set verify=1
}

seq_pair() {
	seq_bare
	a=$took
	seq_once "synthetic:files=1,size=$((seq_mib * 1048576))"
	a=$(printf '%s\n%s\n' "$a" "$took" | sort -n | head -n 1)
	seq_once s3://many
	pair seq "$a" "$took"
}

row_seq() {
	far_set rate=0 delay_ms=0
	far_set files=1 "size=$((seq_mib * 1048576))"
	each seq_pair
	far_set "files=$files" "size=$size"
	row seq 'MB/s: curls or synthetic, mount' least 0.90
}

free_port() {
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# Start a server of http and https in front of the stand-in: one process, which
# forwards both in the same way. $plain and $tls are its URLs.
tls_start() {
	PATH=$PATH:/usr/sbin
	for t in nginx openssl python3; do
		command -v $t >/dev/null || return 1
	done
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -days 2 \
		-out "$work/cert" -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost 2>/dev/null || return 1
	port=$(free_port) plain_port=$(free_port)
	cat >"$work/nginx.conf" <<-END
		daemon off;
		user root;
		error_log $work/nginx.err;
		pid $work/nginx.pid;
		worker_processes 1;
		events { worker_connections 1024; }
		http {
			access_log off;
			keepalive_requests 1000000;
			upstream far {
				server 127.0.0.1:${far##*:};
				keepalive 64;
				keepalive_requests 1000000;
			}
			server {
				listen 127.0.0.1:$port ssl;
				listen 127.0.0.1:$plain_port;
				ssl_certificate $work/cert;
				ssl_certificate_key $work/key;
				location / {
					proxy_pass http://far;
					proxy_http_version 1.1;
					proxy_set_header Connection "";
					proxy_set_header Host \$http_host;
					proxy_max_temp_file_size 0;
				}
			}
		}
	END
	nginx -c "$work/nginx.conf" -e "$work/nginx.err" -p "$work" 9>&- &
	nginx_pid=$!
	tls=https://localhost:$port plain=http://localhost:$plain_port
	tries=50
	until curl -sf -m 5 --cacert "$work/cert" "$tls/-/stats" \
		>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || bench_fail "nginx: $(cat "$work/nginx.err")"
		sleep 0.1
	done
}

# processors: print those that this shell may use, one a line.
processors() {
	awk '$1 == "Cpus_allowed_list:" {
		n = split($2, part, ",")
		for (i = 1; i <= n; i++) {
			two = split(part[i], end, "-")
			for (c = end[1]; c <= end[two]; c++)
				print c
		}
	}' "/proc/$$/status"
}

# apart: give the servers one half of the processors, and all later children of
# this shell the other. A client that shares a processor with a server that
# encrypts takes longer itself. A mount, which has many threads, would share it;
# the bare reader, which has one thread, would not.
apart() {
	command -v taskset >/dev/null || return 1
	all=$(processors | paste -sd ,)
	half=$(($(processors | wc -l) / 2))
	[ $half -gt 0 ] || return 1
	servers=$(processors | tail -n $half | paste -sd ,)
	for p in "$far_pid" "$nginx_pid" $(pgrep -P "$nginx_pid"); do
		taskset -acp "$servers" "$p" || return 1
	done >/dev/null
	clients=$(processors | head -n -$half | paste -sd ,)
	taskset -cp "$clients" $$ >/dev/null
}

together() {
	for p in "$far_pid" $$; do
		taskset -acp "$all" "$p"
	done >/dev/null
	kill "$nginx_pid"
	wait "$nginx_pid"
	nginx_pid=
}

# tls_cpu bare|mount http|https: measure one run; sets $cpu.
tls_cpu() {
	case $1-$2 in
	bare-http) bare_once "$readers" "$plain/many/" ;;
	bare-https) bare_once "$readers" "$tls/many/" "$work/cert" ;;
	mount-http) mount_once s3://many no --endpoint-url "$plain" ;;
	mount-https)
		AWS_CA_BUNDLE=$work/cert
		export AWS_CA_BUNDLE
		mount_once s3://many no --endpoint-url "$tls"
		unset AWS_CA_BUNDLE
		;;
	esac
}

# tls_adds bare|mount: measure what TLS adds; sets $adds. Every second time TLS
# comes first, so that a drift cancels out.
tls_adds() {
	first=http then=https
	[ $((i % 2)) -eq 1 ] || first=https then=http
	tls_cpu "$1" $first
	adds=$cpu
	tls_cpu "$1" $then
	adds=$(awk -v a="$adds" -v b="$cpu" -v first=$first \
		'BEGIN { print first == "http" ? b - a : a - b }')
}

tls_pair() {
	tls_adds bare
	a=$adds
	tls_adds mount
	pair tls "$(us_a_file "$a")" "$(us_a_file "$adds")"
}

# spread NAME: print the range of 95 of 100 medians of as many random pairs.
spread() {
	awk -v name="$1" '
	function middle(n,  i, j, x) {
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (j = i - 1; j > 0 && v[j] > x; j--)
				v[j + 1] = v[j]
			v[j + 1] = x
		}
		i = int((n + 1) / 2)
		return n % 2 ? v[i] : (v[i] + v[i + 1]) / 2
	}
	{ r[NR] = $3 }
	END {
		for (k = 1; k <= 1000; k++) {
			for (i = 1; i <= NR; i++)
				v[i] = r[1 + int(rand() * NR)]
			m[k] = middle(NR)
		}
		for (k = 1; k <= 1000; k++)
			v[k] = m[k]
		middle(1000)
		printf("%s: %d pairs, ratio %.2f to %.2f\n", name, NR, v[25],
			v[975])
	}' "$work/$1.pairs"
}

# The difference of two runs varies more than one run, so there are three times
# as many.
row_tls() {
	far_set rate=0 delay_ms=0
	tls_start || {
		echo 'tls: not measured: needs nginx, openssl, python3'
		return
	}
	apart || {
		echo 'tls: not measured: needs taskset and two processors'
		return
	}
	cache=1M
	for k in 1 2 3; do
		each tls_pair
	done
	together
	cache=$holds_all
	row tls 'us a file that TLS adds: bare, mount' most 1.10
	spread tls
}

# best_depth: set $depth to the best depth of the bare reader.
best_depth() {
	: >"$work/depths"
	for depth in $depths; do
		bare_once "$depth"
		echo "$took $depth" >>"$work/depths"
	done
	depth=$(sort -n "$work/depths" | head -n 1 | cut -d ' ' -f 2)
}

# late_pair NAME: measure a pair with late answers.
late_pair() {
	bare_once "$depth"
	a=$(per_s "$took")
	mount_once s3://many plan
	pair "$1" "$a" "$(per_s "$took")"
}

late_bar_pair() {
	late_pair late
}

row_late() {
	far_set "rate=$rate" "delay_ms=$delay_ms"
	best_depth
	each late_bar_pair
	row late "files/s: bare, $depth at a time, mount" least 0.95
}

free_pair() {
	late_pair free
}

row_free() {
	far_set rate=0 "delay_ms=$delay_ms"
	best_depth
	each free_pair
	row free "files/s: bare, $depth at a time, mount" none ''
}

busy_pair() {
	far_set busy=0
	mount_once s3://many plan
	a=$(per_s "$took")
	far_set busy=0.1
	may_fail=yes
	mount_once s3://many plan
	may_fail=
	far_set busy=0
	pair busy "$a" "$(per_s "$took")"
	pair requests "$files" "$gets"
	pair failed "$files" "$failed"
}

row_busy() {
	far_set "rate=$rate" "delay_ms=$delay_ms"
	each busy_pair
	row busy 'files/s: clean, a tenth 503' least 0.80
	row requests 'GETs: files, a tenth 503' most 1.20
	row failed 'reads: all, failed' most 0
}

hedge_pair() {
	far_set never=0
	mount_once s3://many no
	a=$(number p99_ms <"$work/read")
	far_set never=0.01
	mount_once s3://many no
	far_set never=0
	pair hedge "$a" "$(grep '^{' "$work/read" | number p99_ms)"
	pair asked "$files" "$gets"
}

row_hedge() {
	far_set rate=0 "delay_ms=$delay_ms"
	each hedge_pair
	within hedge 'p99 in ms: clean, 1 % never answered' 1000
	row asked 'GETs: files, 1 % never answered' most 1.03
}

# -- Others -------------------------------------------------------------------

other_begin() {
	mkdir -p "$work/other"
	case $1 in
	rclone)
		env -u AWS_CA_BUNDLE RCLONE_CONFIG=/dev/null rclone mount \
			":s3,provider=Other,env_auth,endpoint='$far':many" \
			"$work/other" --read-only --daemon --dir-cache-time 1h \
			--no-modtime 2>"$work/other.err" 9>&-
		;;
	s3fs)
		echo "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" >"$work/pw"
		chmod 600 "$work/pw"
		s3fs many "$work/other" -o "passwd_file=$work/pw" -o ro \
			-o "url=$far" -o use_path_request_style \
			-o sigv4,listobjectsv2 2>"$work/other.err" 9>&-
		;;
	esac || bench_fail "$1: $(cat "$work/other.err")"
	find "$work/other" -type f | wc -l >"$work/listed"
	[ "$(cat "$work/listed")" -eq "$others" ] ||
		bench_fail "$1 lists $(cat "$work/listed") files"
}

other_end() {
	mountpoint -q "$work/other" 2>/dev/null || return 0
	fusermount3 -u "$work/other" 2>/dev/null || umount -l "$work/other"
}

# other_pair: compare $other with the bare reader.
other_pair() {
	names=$work/some
	bare_once "$other_depth"
	names=
	a=$(awk -v s="$took" -v n="$others" 'BEGIN { printf("%.1f", n / s) }')
	far_set verify=0
	other_begin "$other"
	forget
	"$reader" "$work/other" --files-from "$work/some" --threads \
		"$readers" --json >"$work/read" 2>&1 ||
		bench_fail "$other: $(cat "$work/read")"
	other_end
	far_set verify=1
	pair "$other_row" "$a" "$(number files_per_s <"$work/read")"
}

row_others() {
	head -n "$others" "$work/names" >"$work/some"
	far_set files="$others"
	for other in rclone s3fs; do
		command -v "$other" >/dev/null || {
			echo "$other: not measured: not installed"
			continue
		}
		far_set "rate=$rate" delay_ms=0
		other_row=$other other_depth=$readers
		each other_pair
		row "$other" 'link, files/s: bare, it' none ''
		far_set "delay_ms=$delay_ms"
		other_row=$other-20 other_depth=64
		each other_pair
		row "$other-20" "$delay_ms ms, files/s: bare, it" none ''
	done
	far_set "files=$files"
}

far_start "files=$files" "size=$size" verify=1
echo "s3: $files files of $size bytes, $readers readers, $pairs pairs," \
	"$(machine), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
printf '%-9s %-36s %9s %9s %7s %8s %s\n' row what A B B/A bar verdict
order
for r; do
	"row_$r"
done
far_stop
echo "load now $(cut -d ' ' -f 1-3 /proc/loadavg)"
printf '{"files": %s, "size": %s, "pairs": %s, "rows": [%s]}\n' \
	"$files" "$size" "$pairs" "$rows" >"$json_out"
