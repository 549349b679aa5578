/* SPDX-License-Identifier: MIT */
/*
 * Tests of tools/mount.c and tools/mount_helper.c: the options that a command
 * line or a line of fstab passes to the daemon, which is a stand-in here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/command.h"
#include "../../tools/exporter_options.h"
#include "../../tools/holder.h"
#include "../../tools/upgrade.h"
#include "analysis/subject/subject.h"
#include "mount/daemon/daemon.h"
#include "suite.h"

static struct mount_options asked;
/* Copies of the caller's strings, which the caller frees. */
static char sizes[STORE_TIERS_MAX][16], fault[64];
static char first_dir[256], source[256], mountpoint[256], group[256];
static char context[64];
static int calls, answer;
static char peers[4][64], peer_self[64], peer_secret[64], peer_dataset[64];

int daemon_run(const struct mount_options *options, struct error *err)
{
	calls++;
	asked = *options;
	for (size_t i = 0; i < options->ntiers; i++)
		asked.tiers[i].size = strncpy(
			sizes[i], options->tiers[i].size, sizeof(sizes[i]) - 1);
	(void)snprintf(fault, sizeof(fault), "%s",
		options->source.fault ? options->source.fault : "");
	(void)snprintf(
		first_dir, sizeof(first_dir), "%s", options->tiers[0].dir);
	(void)snprintf(source, sizeof(source), "%s", options->source.name);
	(void)snprintf(
		mountpoint, sizeof(mountpoint), "%s", options->mountpoint);
	for (size_t i = 0; i < options->peers.nhosts && i < 4; i++)
		(void)snprintf(peers[i], sizeof(peers[i]), "%s",
			options->peers.host[i]);
	(void)snprintf(peer_self, sizeof(peer_self), "%s",
		options->peers.name ? options->peers.name : "");
	(void)snprintf(peer_secret, sizeof(peer_secret), "%.*s",
		(int)options->peers.secret_bytes,
		options->peers.secret ? (const char *)options->peers.secret
				      : "");
	(void)snprintf(peer_dataset, sizeof(peer_dataset), "%s",
		options->peers.dataset ? options->peers.dataset : "");
	(void)snprintf(group, sizeof(group), "%s",
		options->group ? options->group : "");
	(void)snprintf(context, sizeof(context), "%s",
		options->contexts.context ? options->contexts.context : "");
	return answer < 0 ? error_set(err, answer, "no: %m") : 0;
}

static bool analysed;

int subject_run(const struct mount_options *options, struct error *err)
{
	analysed = true;
	return daemon_run(options, err);
}

static char changed[256]; /* options that a remount has changed */

int upgrade_run(const char *at, const char *program, json_t *options)
{
	char *text = json_dumps(options, JSON_COMPACT);

	ck_assert_ptr_null(program);
	(void)snprintf(changed, sizeof(changed), "%s %s", at, text);
	free(text);
	return EXIT_OK;
}

static int holders; /* number of holders that were requested */
static char held_words[1024];
static unsigned recover;

int holder_start(char **words, int n, unsigned recover_s, struct error *err)
{
	size_t at = 0;

	holders++;
	recover = recover_s;
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(held_words + at, sizeof(held_words) - at,
			"%s ", words[i]);
	/* The test acts as if refrain-hold is missing, so the daemon starts
	 * alone. */
	return error_set(err, -ENOENT, "none here");
}

int exporter_start(const char *where, const char *at, struct error *err)
{
	(void)at;
	return error_set(err, -ENOENT, "no exporter for '%s'", where);
}

/* Run a command. Its words stay valid until the next call. */
static int run(command_fn *command, const char *const *words)
{
	static char copies[64][256];
	char *argv[64];
	int argc = 0;

	calls = holders = 0;
	analysed = false;
	memset(&asked, 0, sizeof(asked));
	for (; words[argc]; argc++) {
		(void)snprintf(
			copies[argc], sizeof(copies[0]), "%s", words[argc]);
		argv[argc] = copies[argc];
	}
	argv[argc] = NULL;
	return command(argc, argv);
}

#define RUN(command, ...) run(command, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(test_mount_asks_for_the_documented_defaults)
{
	ck_assert_int_eq(
		RUN(cmd_mount, "mount", "src", "mnt", "--cache", "/c:1G"), 0);
	ck_assert_int_eq(calls, 1);
	ck_assert_str_eq(source, "src");
	ck_assert_str_eq(mountpoint, "mnt");
	ck_assert_uint_eq(asked.ntiers, 1);
	ck_assert_str_eq(first_dir, "/c");
	/* 0 stands for the sizes that memory allows and the origin chooses */
	ck_assert_uint_eq(asked.limit_bytes, 0);
	ck_assert_uint_eq(asked.chunk_bytes, 0);
	ck_assert_uint_eq(asked.staging_bytes, 0);
	ck_assert_uint_eq(asked.revalidate_s, 0);
	ck_assert_uint_eq(asked.source.timeout_s, 120);
	ck_assert(asked.verify && !asked.foreground && !asked.allow_other);
	ck_assert(!analysed);
	ck_assert_ptr_null(asked.group);
	ck_assert_ptr_null(asked.source.fault);
}
END_TEST

START_TEST(test_a_mount_in_the_background_has_a_holder)
{
	RUN(cmd_mount, "mount", "src", "mnt", "--cache", "/c:1G");
	ck_assert_int_eq(holders, 1);
	ck_assert_uint_eq(recover, 30);
	/* The words are in the order in which they were given. */
	ck_assert_str_eq(held_words, "mount src mnt --cache /c:1G ");
	RUN(cmd_mount, "mount", "src", "mnt", "--cache", "/c:1G",
		"--recover-timeout", "7");
	ck_assert_uint_eq(recover, 7);
	RUN(cmd_mount, "mount", "src", "mnt", "--cache", "/c:1G", "--no-hold");
	ck_assert_int_eq(holders, 0);
	RUN(cmd_mount, "mount", "src", "mnt", "--cache", "/c:1G", "-f");
	ck_assert_int_eq(holders, 0);
	(void)setenv("REFRAIN_HELD", "first", 1);
	RUN(cmd_mount, "mount", "src", "mnt", "--cache", "/c:1G");
	ck_assert_int_eq(holders, 0);
	ck_assert(asked.held);
	(void)unsetenv("REFRAIN_HELD");
}
END_TEST

START_TEST(test_mount_passes_every_option_on)
{
	ck_assert_int_eq(
		RUN(cmd_mount, "mount", "--cache=/a:1G", "--cache=/b:50%",
			"--foreground", "--limit=32M", "--chunk", "2M",
			"--staging", "1G", "--revalidate", "60", "--verify",
			"never", "--allow-other", "--group", "g", "--timeout",
			"7", "--fault", "delay=5ms", "--analysis", "src",
			"mnt"),
		0);
	ck_assert_uint_eq(asked.ntiers, 2);
	ck_assert_str_eq(asked.tiers[0].size, "1G");
	ck_assert_str_eq(asked.tiers[1].size, "50%");
	ck_assert(asked.foreground && asked.allow_other && !asked.verify);
	ck_assert(analysed);
	ck_assert_uint_eq(asked.limit_bytes, 32 << 20);
	ck_assert_uint_eq(asked.chunk_bytes, 2 << 20);
	ck_assert_uint_eq(asked.staging_bytes, 1 << 30);
	ck_assert_uint_eq(asked.revalidate_s, 60);
	ck_assert_uint_eq(asked.source.timeout_s, 7);
	ck_assert_str_eq(group, "g");
	ck_assert_str_eq(fault, "delay=5ms");
}
END_TEST

START_TEST(test_mount_splits_a_cache_at_its_last_colon)
{
	ck_assert_int_eq(
		RUN(cmd_mount, "mount", "s", "m", "--cache", "/a:b:c:10%"), 0);
	ck_assert_str_eq(first_dir, "/a:b:c");
	ck_assert_str_eq(asked.tiers[0].size, "10%");
}
END_TEST

/* Write a file with this text. Returns its name. */
static const char *peer_file(const char *name, const char *text, mode_t mode)
{
	static char path[256];
	const char *dir = getenv("TMPDIR");
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/refrain-%s-%d",
		dir ? dir : "/tmp", name, (int)getpid());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fchmod(fileno(f), mode), 0);
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

START_TEST(test_mount_takes_peers_from_a_list_and_from_a_file)
{
	char at[300];

	ck_assert_int_eq(RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1",
				 "--peers=n1,n2:7,[fd00::1]:9",
				 "--peer-name=n2:7", "--peer-dataset=d"),
		0);
	ck_assert_uint_eq(asked.peers.nhosts, 3);
	ck_assert_str_eq(peers[0], "n1");
	ck_assert_str_eq(peers[2], "[fd00::1]:9");
	ck_assert_str_eq(peer_self, "n2:7");
	ck_assert_str_eq(peer_dataset, "d");
	(void)snprintf(at, sizeof(at), "--peers=@%s",
		peer_file(
			"peers", "# our hosts\nn1 # first\n\n  n2:7\n", 0644));
	ck_assert_int_eq(
		RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1", at), 0);
	ck_assert_int_eq(unlink(at + strlen("--peers=@")), 0);
	ck_assert_uint_eq(asked.peers.nhosts, 2);
	ck_assert_str_eq(peers[0], "n1");
	ck_assert_str_eq(peers[1], "n2:7");
	ck_assert_str_eq(peer_self, "");
}
END_TEST

START_TEST(test_mount_knows_which_peer_is_this_machine)
{
	ck_assert_int_eq(RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1",
				 "--peers=n1.invalid,127.0.0.1:7"),
		0);
	ck_assert_str_eq(peer_self, "127.0.0.1:7");
}
END_TEST

START_TEST(test_mount_reads_a_secret_that_only_its_owner_can_read)
{
	const char *path = peer_file("secret", "0123456789abcdef\n", 0600);
	char option[300];

	(void)snprintf(option, sizeof(option), "--peer-secret=%s", path);
	ck_assert_int_eq(RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1",
				 "--peers=n1", option),
		0);
	ck_assert_str_eq(peer_secret, "0123456789abcdef");
	ck_assert_int_eq(chmod(path, 0640), 0);
	ck_assert_int_eq(RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1",
				 "--peers=n1", option),
		2);
	ck_assert_str_eq(peer_file("secret", "short\n", 0600), path);
	ck_assert_int_eq(RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1",
				 "--peers=n1", option),
		2);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static const char *const bad_lines[][8] = {
	{"mount", "s", "m"},
	{"mount", "s", "--cache=/c:1"},
	{"mount", "s", "m", "--cache=/c"},
	{"mount", "s", "m", "--cache=/c:"},
	{"mount", "s", "m", "--cache=:1G"},
	{"mount", "s", "m", "--cache=/c:1", "--verify=perhaps"},
	{"mount", "s", "m", "--cache=/c:1", "--timeout=0"},
	{"mount", "s", "m", "--cache=/c:1", "--revalidate=0"},
	{"mount", "s", "m", "--cache=/c:1", "--limit=many"},
	{"mount", "s", "m", "--cache=/c:1", "--peers="},
	{"mount", "s", "m", "--cache=/c:1", "--peers=a,,b"},
	{"mount", "s", "m", "--cache=/c:1", "--peers=a,b,a"},
	{"mount", "s", "m", "--cache=/c:1", "--peers=a,b", "--peer-name=c"},
	{"mount", "s", "m", "--cache=/c:1", "--peer-name=a"},
	{"mount", "s", "m", "--cache=/c:1", "--peer-dataset=a"},
	{"mount", "s", "m", "--cache=/c:1", "--peers=@/nowhere/list"},
};

START_TEST(test_mount_calls_wrong_usage_2_and_starts_nothing)
{
	ck_assert_int_eq(run(cmd_mount, bad_lines[_i]), 2);
	ck_assert_int_eq(calls, 0);
}
END_TEST

START_TEST(test_mount_refuses_more_tiers_than_there_can_be)
{
	const char *words[STORE_TIERS_MAX + 5] = {"mount", "s", "m"};

	for (int i = 0; i < STORE_TIERS_MAX; i++)
		words[3 + i] = "--cache=/c:1";
	ck_assert_int_eq(run(cmd_mount, words), 0);
	ck_assert_uint_eq(asked.ntiers, STORE_TIERS_MAX);
	words[3 + STORE_TIERS_MAX] = "--cache=/c:1";
	ck_assert_int_eq(run(cmd_mount, words), 2);
}
END_TEST

START_TEST(test_mount_that_fails_exits_1)
{
	answer = -ENOENT;
	ck_assert_int_eq(RUN(cmd_mount, "mount", "s", "m", "--cache=/c:1"), 1);
	answer = 0;
}
END_TEST

START_TEST(test_helper_takes_a_line_of_fstab)
{
	ck_assert_int_eq(
		RUN(mount_helper, "mount.refrain", "/src", "/mnt", "-n", "-o",
			"rw,noauto,_netdev,nofail,user,group,x-systemd.idle=5,"
			"cache=/a:1G,cache=/b:2G,allow_other,group=g,"
			"revalidate=5,timeout=9",
			"-v", "-o", "limit=32M"),
		0);
	ck_assert_str_eq(source, "/src");
	ck_assert_str_eq(mountpoint, "/mnt");
	ck_assert_uint_eq(asked.ntiers, 2);
	ck_assert_str_eq(first_dir, "/a");
	ck_assert(asked.allow_other && !asked.foreground);
	ck_assert_str_eq(group, "g");
	ck_assert_uint_eq(asked.revalidate_s, 5);
	ck_assert_uint_eq(asked.source.timeout_s, 9);
	ck_assert_uint_eq(asked.limit_bytes, 32 << 20);
}
END_TEST

START_TEST(test_helper_takes_commas_in_quotes)
{
	ck_assert_int_eq(
		RUN(mount_helper, "mount.refrain", "s", "m", "-o",
			"cache=/c:1,,context=\"u:r:t:s0:c1,c2\",timeout=9,"
			"rootcontext=u:r:t:s0"),
		0);
	ck_assert_str_eq(context, "u:r:t:s0:c1,c2");
	ck_assert_uint_eq(asked.source.timeout_s, 9);
	ck_assert_int_eq(RUN(mount_helper, "mount.refrain", "s", "m", "-o",
				 "cache=/c:1,context=\"u:r:t:s0:c1,c2"),
		2);
}
END_TEST

START_TEST(test_helper_refuses_unknown_options_unless_sloppy)
{
	ck_assert_int_eq(RUN(mount_helper, "mount.refrain", "s", "m", "-o",
				 "cache=/c:1,cash=/d:1"),
		2);
	ck_assert_int_eq(calls, 0);
	ck_assert_int_eq(RUN(mount_helper, "mount.refrain", "s", "m", "-so",
				 "cache=/c:1,cash=/d:1"),
		0);
	ck_assert_int_eq(calls, 1);
}
END_TEST

START_TEST(test_helper_changes_options_of_a_mount_that_is_there)
{
	ck_assert_int_eq(RUN(mount_helper, "mount.refrain", "s", "m", "-so",
				 "rw,remount,cache=/c:1,what=2,allow-other"),
		0);
	ck_assert_int_eq(calls, 0);
	ck_assert_str_eq(
		changed, "m [[\"cache\",\"/c:1\"],[\"allow-other\",\"\"]]");
}
END_TEST

START_TEST(test_helper_mounts_nothing_when_it_is_only_to_pretend)
{
	ck_assert_int_eq(RUN(mount_helper, "mount.refrain", "s", "m", "-f",
				 "-o", "cache=/c:1"),
		0);
	ck_assert_int_eq(calls, 0);
}
END_TEST

START_TEST(test_helper_keeps_a_source_that_begins_with_a_dash)
{
	ck_assert_int_eq(RUN(mount_helper, "mount.refrain", "-o", "cache=/c:1",
				 "--", "-s", "m"),
		0);
	ck_assert_str_eq(source, "-s");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mount_options");
	TCase *tc = case_of(suite, "mount_options");

	tcase_add_test(tc, test_mount_asks_for_the_documented_defaults);
	tcase_add_test(tc, test_a_mount_in_the_background_has_a_holder);
	tcase_add_test(tc, test_mount_passes_every_option_on);
	tcase_add_test(tc, test_mount_splits_a_cache_at_its_last_colon);
	tcase_add_test(tc, test_mount_takes_peers_from_a_list_and_from_a_file);
	tcase_add_test(tc, test_mount_knows_which_peer_is_this_machine);
	tcase_add_test(
		tc, test_mount_reads_a_secret_that_only_its_owner_can_read);
	tcase_add_loop_test(tc,
		test_mount_calls_wrong_usage_2_and_starts_nothing, 0,
		(int)(sizeof(bad_lines) / sizeof(bad_lines[0])));
	tcase_add_test(tc, test_mount_refuses_more_tiers_than_there_can_be);
	tcase_add_test(tc, test_mount_that_fails_exits_1);
	tcase_add_test(tc, test_helper_takes_a_line_of_fstab);
	tcase_add_test(tc, test_helper_takes_commas_in_quotes);
	tcase_add_test(tc, test_helper_refuses_unknown_options_unless_sloppy);
	tcase_add_test(
		tc, test_helper_changes_options_of_a_mount_that_is_there);
	tcase_add_test(
		tc, test_helper_mounts_nothing_when_it_is_only_to_pretend);
	tcase_add_test(tc, test_helper_keeps_a_source_that_begins_with_a_dash);
	return run_suite(suite);
}
