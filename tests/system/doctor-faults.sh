#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain doctor` names each fault that is planted here, of the host and of
# mounts that are up, hung, stalled or dead; ends within 10 s whatever hangs;
# and writes an archive without the secrets that are planted.
set -eu
name='doctor-faults'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/several-lib.sh
. "$(dirname "$0")/several-lib.sh"
requires root fuse python3
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
mkdir -p "$work/m" "$work/bin"
head -c 100000 /dev/urandom >"$src/a"
head -c 100000 /dev/urandom >"$src/b"
planted=0

# examine MOUNTPOINT ...: $work/out is what the doctor says, $got its status.
examine() {
	begun=$(date +%s)
	got=0
	timeout -s KILL $((60 * patience)) "$refrain" doctor "$@" \
		>"$work/out" 2>"$work/err" || got=$?
	took=$(($(date +%s) - begun))
	[ $took -le $((10 * patience)) ] || fail "it took $took s"
	[ $got -le 1 ] || fail "it ended with $got: $(cat "$work/err")"
}

# names LEVEL PATTERN: a fault is named, and what to do.
names() {
	grep -A 1 "^$1 *.*$2" "$work/out" >"$work/found" ||
		fail "'$2' is not named: $(cat "$work/out")"
	planted=$((planted + 1))
	[ "$1" != bad ] || expect "the status for '$2'" $got 1
}

advises() {
	grep -q "^      -> .*$1" "$work/found" ||
		fail "no advice '$1': $(cat "$work/found")"
}

# says_not PATTERN
says_not() {
	! grep -q "$1" "$work/out" || fail "'$1': $(cat "$work/out")"
}

# Whatever this host has must not be found as planted.
: >"$work/kmsg"
mount --bind "$work/kmsg" /dev/kmsg
cat >"$work/bin/systemctl" <<'END'
#!/bin/sh
echo 'refrain@data.service loaded active running refrain'
END
chmod +x "$work/bin/systemctl"
PATH=$work/bin:$PATH

note 'a healthy mount'
mount_at one "$src" --cache "$work/cache.one:20M"
examine "$work/m/one"
expect 'its status' $got 0
grep -q "^ok *$work/m/one: its daemon answers" "$work/out" ||
	fail "said: $(cat "$work/out")"
grep -q "^ok .*one byte of the source '$src'" "$work/out" ||
	fail "said: $(cat "$work/out")"
says_not '^bad'

note 'faults of the host'
: >"$work/null"
mount --bind /dev/null /dev/fuse
examine
names bad 'device: /dev/fuse is not the device of FUSE'
advises mknod
umount /dev/fuse
mkdir "$work/none"
real_path=$PATH
for p in cat grep; do
	ln -s "$(command -v $p)" "$work/none/$p"
done
PATH=$work/none
got=0
"$refrain" doctor >"$work/out" || got=$?
PATH=$real_path
names warn 'fusermount3: it is not in PATH'
advises fuse3
printf '#!/bin/sh\n' >"$work/bin/fusermount3"
chmod +x "$work/bin/fusermount3"
examine
names warn 'fusermount3: .* is not setuid root'
rm "$work/bin/fusermount3"
REFRAIN_DISABLE=io_uring examine
names warn 'io_uring: REFRAIN_DISABLE turns it off'
(
	ulimit -n 200
	"$refrain" doctor >"$work/out"
) || :
names warn 'limits: a process may open only 200 files'
cp /etc/resolv.conf "$work/resolv.conf" 2>/dev/null || :
: >"$work/resolv.empty"
if mount --bind "$work/resolv.empty" /etc/resolv.conf; then
	examine
	names warn 'name server: /etc/resolv.conf names none'
	umount /etc/resolv.conf
fi
cat >"$work/bin/systemctl" <<'END'
#!/bin/sh
echo 'refrain@data.service loaded failed failed refrain'
END
examine
names bad 'unit: refrain@data.service has failed'
advises journalctl
cat >"$work/bin/systemctl" <<'END'
#!/bin/sh
exec sleep 1000
END
examine
names warn 'unit: systemctl did not answer'
rm "$work/bin/systemctl"
for line in \
	'3,1,2,-;Out of memory: Killed process 77 (refrain) total-vm:1kB' \
	'3,1,3,-;blk_update_request: I/O error, dev sdq, sector 1' \
	'3,1,4,-;EXT4-fs error (device sdq1): bad block' \
	'4,1,5,-;nfs: server box not responding, still trying'; do
	echo "$line" >"$work/kmsg"
	examine
	case $line in
	*Killed*) names warn 'kernel log: the kernel has killed a refrain' ;;
	*dev*sdq,*) names warn 'kernel log: a disk had an I/O error: .*sdq' ;;
	*EXT4*) names warn 'kernel log: a file system is damaged' ;;
	*nfs*) names warn 'kernel log: an NFS server did not respond' ;;
	esac
done
: >"$work/kmsg"

note 'faults of caches'
mkdir "$work/full" "$work/few" "$work/ro"
mount -t tmpfs -o size=4M none "$work/full"
mount -t tmpfs -o size=40M,nr_inodes=400 none "$work/few"
mount -t tmpfs -o size=40M none "$work/ro"
mount_at full "$src" --cache "$work/full/c:50%"
head -c 4000000 /dev/zero >"$work/full/filler" || :
head -c 300000 /dev/zero >>"$work/full/filler2" 2>/dev/null || :
mount_at few "$src" --cache "$work/few/c:50%"
i=0
while true >"$work/few/f$i"; do
	i=$((i + 1))
done 2>/dev/null
mount_at ro "$src" --cache "$work/ro/c:50%"
mount --bind "$work/ro" "$work/ro"
mount -o remount,ro,bind "$work/ro"
mount_at gone "$src" --cache "$work/cache.gone:20M"
mv "$work/cache.gone" "$work/cache.elsewhere"
mount_at future "$src" --cache "$work/cache.future:20M"
touch -d '+1 day' "$work/cache.future/refrain-lock"
examine "$work/m/full" "$work/m/few" "$work/m/ro" \
	"$work/m/gone" "$work/m/future"
names warn "the disk of cache '$work/full/c' is full"
names warn "the disk of cache '$work/few/c' has no more inodes"
names bad "the file system of cache '$work/ro/c' is read-only"
names bad "cache '$work/cache.gone' is gone"
names bad 'the clock is wrong: .*cache.future'
says_not "$work/m/one:"
damage() {
	e=$(find "$work/cache.one" -path '*/[0-9a-f][0-9a-f]/*' -type f |
		head -n 1)
	[ -n "$e" ] || return 1
	printf X | dd of="$e" conv=notrunc bs=1 seek=100 2>/dev/null
}
cat "$work/m/one/a" "$work/m/one/b" >/dev/null
wait_for 20 damage || fail 'nothing is cached'
mount -i -o remount,ro "$work/m/one"
cat "$work/m/one/a" "$work/m/one/b" >/dev/null
examine "$work/m/one"
names bad "$work/m/one: .* cached blocks were damaged"
advises 'refrain verify'

note 'faults of sources'
mkdir "$work/src2"
cp "$src/a" "$work/src2/a"
mount_at lost "$work/src2" --cache "$work/cache.lost:20M"
mv "$work/src2" "$work/src3"
examine "$work/m/lost"
names bad "the source '$work/src2' is gone"
mv "$work/src3" "$work/src2"
mount_at stalled "$src" --cache "$work/cache.stalled:20M" --fault stall=1
cat "$work/m/stalled/a" >/dev/null 2>&1 &
ends_with_test $!
waits_long() {
	[ "$(status_field parked_longest_ms "$work/m/stalled")" -gt 5500 ]
}
wait_for 20 waits_long || fail 'no reader waits'
examine "$work/m/stalled"
names bad "$work/m/stalled: a reader has waited for"

note 'daemons that hang, and dead ones'
mount_at still "$src" --cache "$work/cache.still:20M"
stop_process "$(pid_of still)"
examine "$work/m/still"
names bad "$work/m/still: hung"
# Its options are known.
grep -q "^ok .*cache '$work/cache.still' can be reached" "$work/out" ||
	fail "no options: $(cat "$work/out")"
mount_at dead "$src" --cache "$work/cache.dead:20M"
kill -9 "$(pid_of dead)"
wait_for 20 has_ended "$(pid_of dead)" || fail 'the daemon does not die'
examine "$work/m/dead"
names bad "$work/m/dead: dead"
advises 'refrain umount'
note 'relative words of a daemon that does not answer'
mkdir "$work/m/relative"
(
	cd "$work"
	"$refrain" mount --no-hold --insecure-tls src2 "$work/m/relative" \
		--cache cache.relative:20M --log-file relative.log
) || fail 'no mount of a relative source'
pid=$(status_field pid "$work/m/relative")
ends_with_test "$pid"
stop_process "$pid"
examine -o "$work/relative.tar" "$work/m/relative"
says_not 'is gone'
names warn "$work/m/relative: the source 'src2' cannot be checked"
advises 'absolute path'
names warn "$work/m/relative: cache 'cache.relative' cannot be checked"
grep -aq "'relative.log' is a relative path" "$work/relative.tar" ||
	fail 'nothing about the log'

note 'a home directory that hangs'
HOME=$work/m/still examine
HOME=$work/m/still examine -o "$work/hung.tar"
expect 'its status' $got 1
grep -q 'no archive is written' "$work/err" || fail "said: $(cat "$work/err")"
[ ! -e "$work/hung.tar" ] || fail 'an archive with secrets'
grep -q "$work/m/still: hung" "$work/out" || fail 'no findings'

note 'a process of another user that pretends to be the daemon'
echo root-alone-may-read >"$work/root-only"
chmod 600 "$work/root-only"
setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '
exec -a refrain python3 -c "import time
print(1, flush=True)
time.sleep(600)" \
	mount "--log-file=$1" s "$2"' - "$work/root-only" "$work/m/dead" \
	>"$work/pretends" &
ends_with_test $!
pretends() {
	[ -s "$work/pretends" ]
}
wait_for 20 pretends || fail 'it does not start'
examine -o "$work/pretended.tar" "$work/m/dead"
! grep -aq root-alone "$work/pretended.tar" || fail 'a file of root'

examine "$work"
names bad "$work: it is not a refrain mount"
[ $planted -ge 20 ] || fail "only $planted faults were planted"
note "$planted faults were named"

note 'an archive of all, without secrets'
port=$(free_port)
mkdir "$work/home" "$work/home/.aws" "$work/www"
echo content >"$work/www/a"
cat >"$work/server.py" <<'END'
import http.server, os, sys
os.chdir(sys.argv[2])


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(
    ("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 "$work/server.py" "$port" "$work/www" &
server=$!
ends_with_test $server
serves() {
	python3 -c 'import socket, sys
socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)' "$port" \
		2>/dev/null
}
wait_for 20 serves || fail 'no server'
cat >"$work/home/.aws/credentials" <<'END'
[default]
aws_access_key_id = AKIAPLANTED0SECRET01
aws_secret_access_key = planted-secret-02/abc+def
[other]
aws_secret_access_key = /lanted/sicret-13/abc+def
credential_process = /usr/bin/not-a-secret
END
echo 'planted-secret-03-of-peers' >"$work/secret"
chmod 600 "$work/secret"
export AWS_SESSION_TOKEN=planted-secret-04
export HTTP_API_KEY=planted-secret-05
export https_proxy=http://user:planted-secret-06@127.0.0.1:1
HOME=$work/home mount_at web \
	"http://127.0.0.1:$port/" \
	--cache "$work/cache.web:20M" --log-file "$work/log" \
	--peer-secret "$work/secret" --peers 127.0.0.1:1 \
	--peer-name 127.0.0.1:1 2>/dev/null || fail 'no mount of the web'
cat >>"$work/log" <<'END'
GET http://host/x?X-Amz-Signature=planted-secret-07&a=b failed
Authorization: Bearer planted-secret-08
x-amz-security-token: planted-secret-09
{"password": "planted-secret-10", "kept": "this stays"}
key AKIAPLANTED0SECRET11, planted-secret-03-of-peers, planted-secret-02/abc+def
https://me:planted-secret-12@host/ and planted-secret-04
proxy planted-secret-06, planted-secret-05
keys /lanted/sicret-13/abc+def but not /usr/bin/not-a-secret
http://me:pass@sicret-14@host/x
END
stop_process "$(pid_of web)"
examine -o "$work/all.tar"
kill -CONT "$(pid_of web)"
unset AWS_SESSION_TOKEN HTTP_API_KEY https_proxy
grep -q 'findings, [0-9]* bytes' "$work/out" || fail "no list of files"
expect 'the mode' "$(stat -c %a "$work/all.tar")" 600
mkdir "$work/untar"
tar -xf "$work/all.tar" -C "$work/untar" || fail 'not a tar file'
if grep -aiE 'planted.?0?secret|planted-|sicret' "$work/all.tar" "$work/out" \
	>"$work/leaks"; then
	fail "secrets: $(cat "$work/leaks")"
fi
grep -rq '/usr/bin/not-a-secret' "$work/untar" || fail 'a path is removed'
grep -rq 'this stays' "$work/untar" || fail 'no log in the archive'
grep -rq '^bad .*still: hung' "$work/untar/refrain-doctor/findings" ||
	fail 'no findings in the archive'
grep -rq -- '--cache' "$work/untar" || fail 'no options in the archive'
grep -rq '"origin_reads"' "$work/untar" || fail 'no status in the archive'
got=0
"$refrain" doctor -o "$work/all.tar" >/dev/null 2>"$work/err" || got=$?
expect 'an archive that exists' $got 1
grep -q "cannot create '$work/all.tar'" "$work/err" || fail 'no reason'

note 'hosts that do not answer, and hosts without a server'
kill -STOP $server
examine "$work/m/web"
names bad "the source's host 127.0.0.1 accepts connections, but does not"
kill -CONT $server
kill $server
wait $server 2>/dev/null || :
examine "$work/m/web"
names bad "cannot connect to the source's host 127.0.0.1, port $port"
echo PASS
