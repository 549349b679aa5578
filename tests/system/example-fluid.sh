#!/bin/sh
# SPDX-License-Identifier: MIT
#
# examples/kubernetes/fluid/refrain-fluid turns what Fluid writes for a FUSE
# container into our command line, and the command line is accepted.
set -eu
name=example-fluid
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires jq
fluid=$(cd "${srcdir:-.}/examples/kubernetes/fluid" && pwd)/refrain-fluid

# In the place of refrain: shows its words, one a line, and AWS_... of its
# environment.
mkdir "$work/bin" "$work/secrets" "$work/secrets/keys"
cat >"$work/bin/refrain" <<'EOF'
#!/bin/sh
printf '%s\n' "$@"
env | grep '^AWS_' | sort
EOF
chmod +x "$work/bin/refrain"
printf 'AKID' >"$work/secrets/keys/id"
# shellcheck disable=SC2016 # is to stay as it is
printf '/se "cr" et$(x)\n' >"$work/secrets/keys/key"
# shellcheck disable=SC2046 # a list of words
unset $(env | sed -n 's/^\(AWS_[A-Z_]*\)=.*/\1/p')

# fluid CONFIG: $work/out has what refrain gets.
fluid() {
	printf '%s\n' "$1" >"$work/config.json"
	FLUID_SECRETS=$work/secrets PATH=$work/bin:$PATH "$fluid" \
		"$work/config.json" >"$work/out" 2>"$work/err"
}

# gives WHAT CONFIG: the words on standard input, after those of each mount.
gives() {
	{
		printf '%s\n' hold -- refrain mount --foreground --allow-other
		cat
	} >"$work/want"
	fluid "$2" || fail "$1: $(cat "$work/err")"
	cmp -s "$work/want" "$work/out" ||
		fail "$1: $(diff "$work/want" "$work/out")"
	[ -d "$mnt" ] || fail "$1: no mountpoint"
}

refuses() {
	! fluid "$2" || fail "$1: accepted"
	grep -qF -- "$1" "$work/err" || fail "$1: $(cat "$work/err")"
	[ ! -s "$work/out" ] || fail "$1: refrain was started"
}

rmdir "$mnt"
gives 'a bucket, with secrets in files' '{"mounts": [{"mountPoint":
	"s3://datasets/imagenet", "name": "imagenet", "options": {
	"AWS_ACCESS_KEY_ID": "'"$work"'/secrets/keys/id",
	"AWS_SECRET_ACCESS_KEY": "'"$work"'/secrets/keys/key",
	"region": "eu-central-1"}}],
	"targetPath": "'"$mnt"'", "runtimeOptions": {"cache": "/c/i:80%"},
	"accessModes": ["ReadOnlyMany"]}' <<EOF
--cache
/c/i:80%
--region
eu-central-1
--
s3://datasets/imagenet
$mnt
AWS_ACCESS_KEY_ID=AKID
AWS_SECRET_ACCESS_KEY=/se "cr" et\$(x)
EOF

# THIN_FUSE_CONFIG_STORAGE=secret: all of it is a secret.
gives 'secrets in the configuration itself' '{"mounts": [{"mountPoint":
	"s3://b", "options": {"AWS_ACCESS_KEY_ID": "ID",
	"AWS_SECRET_ACCESS_KEY": "/a'"'"'b c", "cache": "/c:1G"}}],
	"targetPath": "'"$mnt"'"}' <<EOF
--cache
/c:1G
--
s3://b
$mnt
AWS_ACCESS_KEY_ID=ID
AWS_SECRET_ACCESS_KEY=/a'b c
EOF

gives 'a directory, two caches, options without values' '{"mounts": [{
	"mountPoint": "local:///mnt/my data", "readOnly": true, "options": {
	"cache": "/dev/shm/c:4G  /nvme/c:1T", "log-json": "true",
	"verify": "never", "no-sign-request": "false"}}],
	"targetPath": "'"$mnt"'", "persistentVolumeAttrs": {}}' <<EOF
--cache
/dev/shm/c:4G
--cache
/nvme/c:1T
--log-json
--verify
never
--
/mnt/my data
$mnt
EOF

# shellcheck disable=SC2016 # is to stay as it is
gives 'options of the Dataset win; numbers; nothing is executed' '{"mounts": [{
	"mountPoint": "https://h/x/$(touch '"$work"'/ran)/", "options": {
	"timeout": "30", "region": "`touch '"$work"'/ran`"}}],
	"targetPath": "'"$mnt"'", "runtimeOptions": {"cache": "/c:1G",
	"timeout": 60}}' <<EOF
--cache
/c:1G
--timeout
30
--region
\`touch $work/ran\`
--
https://h/x/\$(touch $work/ran)/
$mnt
EOF
[ ! -e "$work/ran" ] || fail 'a value was executed'

m='{"mountPoint": "s3://b"}'
refuses 'the Dataset has 2 mounts' '{"mounts": ['"$m,$m"'], "targetPath": "/t"}'
refuses 'the Dataset has 0 mounts' '{"mounts": [], "targetPath": "/t"}'
refuses 'a mount is read-only' '{"mounts": ['"$m"'], "targetPath": "/t",
	"accessModes": ["ReadOnlyMany", "ReadWriteMany"]}'
refuses 'mount the claim of' '{"mounts": [{"mountPoint": "pvc://x"}],
	"targetPath": "/t"}'
refuses 'there is no targetPath' '{"mounts": ['"$m"']}'
refuses 'cannot read' '{"mounts": ['
refuses 'is empty' ''

# A source that the real one has: it mounts.
requires fuse
make_tree "$src" 4 20 100000
cat >"$work/config.json" <<EOF
{"mounts": [{"mountPoint": "local://$src", "name": "d"}],
"runtimeOptions": {"cache": "$work/cache:16M"}, "targetPath": "$mnt"}
EOF
rm "$work/bin/refrain"
ln -s "$refrain" "$work/bin/refrain"
if ! grep -q '^user_allow_other' /etc/fuse.conf 2>/dev/null; then
	requires root
fi
PATH=$work/bin:$PATH "$fluid" "$work/config.json" 2>"$work/daemon.1.err" &
daemon=$!
wait_for 20 mount_answers || fail 'no mount'
sums_right "$src.sums" "$mnt"
expect held "$(status_field held)" yes
kill -TERM "$daemon"
daemon_ended
! mounts_below "$work" | grep -q /mnt || fail 'the mount is left'
