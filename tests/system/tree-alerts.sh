#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The alerting rules: promtool accepts them, each has a test that fires and one
# that does not, and names a section of operations.md.
set -eu
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
cd "$top/monitoring"
fail() {
	echo "FAILED: $*"
	exit 1
}
if ! command -v promtool >/dev/null || ! python3 -c 'import yaml' 2>/dev/null
then
	echo 'skipped: needs promtool and python3-yaml'
	exit 77
fi
promtool check rules alerts.yaml || fail 'promtool does not accept the rules'
promtool test rules alerts_test.yaml || fail 'a test of the rules fails'
python3 - <<'END' || fail 'see above'
import re, yaml

rules = [r for g in yaml.safe_load(open('alerts.yaml'))['groups']
         for r in g['rules']]
names = [r['alert'] for r in rules]
assert len(set(names)) == len(names) > 10, names
fires, quiet = set(), set()
for test in yaml.safe_load(open('alerts_test.yaml'))['tests']:
    for t in test['alert_rule_test']:
        (fires if t['exp_alerts'] else quiet).add(t['alertname'])
assert fires == quiet == set(names), (set(names) - fires, set(names) - quiet)
anchors = set()
for line in open('../doc/operations.md'):
    if m := re.fullmatch(r'#+ (.*)\n', line):
        kept = re.sub(r'[^\w\- ]', '', m[1].lower())
        anchors.add(kept.replace(' ', '-'))
for r in rules:
    page, anchor = r['annotations']['runbook_url'].split('#')
    assert page == 'doc/operations.md' and anchor in anchors, (r, anchors)
    assert r['labels']['severity'] in ('critical', 'warning', 'info'), r
    assert r['annotations']['summary'] and r['annotations']['description'], r
END
echo PASS
