/* SPDX-License-Identifier: MIT */
/* Tests of the control socket: its place, who may use it, and how it is found.
 */
#include "common/control/talk.h"
#include "ctl_fixture.h"
#include "suite.h"

/* -- where the socket lies, and who may use it -- */

static mode_t mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

START_TEST(test_ctl_socket_is_the_owners_only)
{
	char parent[64];

	(void)snprintf(parent, sizeof(parent), "%s/refrain", dir);
	ck_assert_int_eq(
		strncmp(ctl_server_path(server), parent, strlen(parent)), 0);
	ck_assert_uint_eq(mode_of(parent), 0700);
	ck_assert_uint_eq(mode_of(ctl_server_path(server)), 0600);
}
END_TEST

/*
 * Connect and ask in a child process of user 65534 with one supplementary
 * group. Returns the result.
 */
static int ask_as_nobody(gid_t gid)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct ctl_client *c = NULL;
		json_t *reply = NULL;
		int rc = 0;

		if (setgroups(1, &gid) < 0 || setgid(65534) < 0 ||
			setuid(65534) < 0)
			_exit(99);
		rc = ctl_connect_path(&c, ctl_server_path(server), &err);
		if (rc == 0)
			rc = ctl_request(c, json_pack("{s:s}", "cmd", "echo"),
				20, NULL, NULL, &reply, &err);
		_exit(-rc);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

START_TEST(test_ctl_keeps_other_users_out_by_mode_and_by_credentials)
{
	char parent[64];

	if (geteuid() != 0)
		return; /* this process cannot become another user */
	ck_assert_int_eq(ask_as_nobody(65534), -EACCES);
	(void)snprintf(parent, sizeof(parent), "%s/refrain", dir);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(chmod(parent, 0755), 0);
	ck_assert_int_eq(ask_as_nobody(65534), -EACCES);
	ck_assert_int_eq(chmod(ctl_server_path(server), 0666), 0);
	ck_assert_int_eq(ask_as_nobody(65534), -EREMOTEIO);
}
END_TEST

START_TEST(test_ctl_lets_members_of_the_group_in_and_no_others)
{
	const struct group *group = getgrgid(1);
	char parent[64];

	if (geteuid() != 0 || !group)
		return; /* this process cannot become another user */
	ctl_server_stop(server);
	ck_assert_int_eq(chmod(dir, 0711), 0);
	ck_assert_msg(ctl_server_start(&server, "/mnt/x", group->gr_name,
			      commands, PATIENCE_MS, &err) == 0,
		"%s", err.msg);
	(void)snprintf(parent, sizeof(parent), "%s/refrain", dir);
	ck_assert_uint_eq(mode_of(parent), 0711);
	ck_assert_uint_eq(mode_of(ctl_server_path(server)), 0660);
	ck_assert_int_eq(ask_as_nobody(1), 0);
	ck_assert_int_eq(ask_as_nobody(65534), -EACCES);
}
END_TEST

START_TEST(test_ctl_refuses_a_group_that_does_not_exist)
{
	struct ctl_server *other = NULL;

	ck_assert_int_eq(ctl_server_start(&other, "/mnt/y", "no-such-group",
				 commands, PATIENCE_MS, &err),
		-EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "no-such-group"));
}
END_TEST

START_TEST(test_ctl_servers_of_one_mountpoint_do_not_share_a_socket)
{
	struct ctl_server *other = NULL;

	ck_assert_int_eq(ctl_server_start(&other, "/mnt/x", NULL, commands,
				 PATIENCE_MS, &err),
		0);
	ck_assert_str_ne(ctl_server_path(other), ctl_server_path(server));
	ctl_server_stop(other);
	expect_echo(raw(), 1);
}
END_TEST

START_TEST(test_ctl_start_removes_the_sockets_of_dead_daemons)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ctl_server *other = NULL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		"%.80s/refrain/dead.sock", dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	(void)close(fd);
	ck_assert_int_eq(ctl_server_start(&other, "/mnt/y", NULL, commands,
				 PATIENCE_MS, &err),
		0);
	ck_assert_int_eq(access(addr.sun_path, F_OK), -1);
	ck_assert_int_eq(access(ctl_server_path(server), F_OK), 0);
	ctl_server_stop(other);
}
END_TEST

START_TEST(test_ctl_passes_by_a_runtime_dir_too_long_for_a_socket)
{
	struct ctl_server *other = NULL;
	char deep[512], *at = deep;

	at += snprintf(deep, sizeof(deep), "%s", dir);
	for (int i = 0; i < 4; i++) {
		at += snprintf(at, 32, "/%030d", i);
		ck_assert_int_eq(mkdir(deep, 0700), 0);
	}
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", deep, 1), 0);
	ck_assert_msg(ctl_server_start(&other, "/mnt/y", NULL, commands,
			      PATIENCE_MS, &err) == 0,
		"%s", err.msg);
	ck_assert_ptr_null(strstr(ctl_server_path(other), dir));
	ctl_server_stop(other);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(rmdir(deep), 0);
		*strrchr(deep, '/') = '\0';
	}
}
END_TEST

START_TEST(test_ctl_follows_no_link_that_somebody_planted_in_tmp)
{
	const uid_t uid = 54321;
	char path[64];
	int rc, status;
	pid_t pid;

	if (geteuid() != 0)
		return; /* this user can always use /run/refrain */
	(void)snprintf(path, sizeof(path), "/tmp/refrain-%u", (unsigned)uid);
	(void)unlink(path);
	ck_assert_int_eq(symlink(dir, path), 0);
	ck_assert_int_eq(chown(dir, uid, (gid_t)-1), 0);
	pid = fork();
	if (pid == 0) {
		struct ctl_server *other = NULL;

		(void)unsetenv("XDG_RUNTIME_DIR");
		if (setuid(uid) < 0)
			_exit(99);
		rc = ctl_server_start(
			&other, "/mnt/y", NULL, commands, PATIENCE_MS, &err);
		_exit(rc < 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	(void)unlink(path);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* -- the client -- */

START_TEST(test_ctl_connect_says_what_is_no_refrain_mount)
{
	struct ctl_client *c = NULL;

	ck_assert_int_eq(ctl_connect(&c, dir, &err), -ENODATA);
	ck_assert_ptr_nonnull(strstr(err.msg, "not the root of a refrain"));
	ck_assert_int_eq(ctl_connect(&c, "/nonexistent", &err), -ENOENT);
}
END_TEST

/* Any user can set the attribute on a directory of his own, and cp -a copies
 * the attribute. */
START_TEST(test_ctl_connect_believes_no_attribute_of_a_plain_directory)
{
	const char *path = ctl_server_path(server);
	struct ctl_client *c = NULL;
	/* a tmpfs may have no attributes, so use the working directory */
	char own[] = "./ctl-test-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(own));
	if (setxattr(own, TALK_XATTR, path, strlen(path), 0) == 0) {
		ck_assert_int_eq(ctl_connect(&c, own, &err), -ENODATA);
		ck_assert_ptr_null(c);
		ck_assert_ptr_nonnull(
			strstr(err.msg, "not the root of a refrain mount"));
	}
	ck_assert_int_eq(rmdir(own), 0);
}
END_TEST

/*
 * This runs without the fixture, because TSan does not let a child start
 * threads if its parent had any.
 */
START_TEST(test_ctl_wait_gone_waits_for_the_process_to_end)
{
	int ready[2], status;
	struct ctl_client *c = NULL;
	char path[128];
	pid_t pid;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct ctl_server *own = NULL;

		if (ctl_server_start(&own, "/mnt/y", NULL, commands,
			    PATIENCE_MS, &err) < 0)
			_exit(1);
		(void)!write(ready[1], ctl_server_path(own), sizeof(path));
		(void)pause();
	}
	ck_assert_int_gt(read(ready[0], path, sizeof(path)), 0);
	ck_assert_int_eq(ctl_connect_path(&c, path, &err), 0);
	ck_assert_int_eq(ctl_client_pid(c), pid);
	ck_assert_int_eq(ctl_wait_gone(c, 10), -ETIMEDOUT);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(ctl_wait_gone(c, 20000), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ctl_disconnect(c);
	ck_assert_int_eq(ctl_connect_path(&c, path, &err), -ECONNREFUSED);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static void add_places(Suite *s)
{
	TCase *tc = case_with(s, "places", setup, teardown);

	tcase_add_test(tc, test_ctl_socket_is_the_owners_only);
	tcase_add_test(
		tc, test_ctl_keeps_other_users_out_by_mode_and_by_credentials);
	tcase_add_test(tc, test_ctl_lets_members_of_the_group_in_and_no_others);
	tcase_add_test(tc, test_ctl_refuses_a_group_that_does_not_exist);
	tcase_add_test(
		tc, test_ctl_servers_of_one_mountpoint_do_not_share_a_socket);
	tcase_add_test(tc, test_ctl_start_removes_the_sockets_of_dead_daemons);
	tcase_add_test(
		tc, test_ctl_passes_by_a_runtime_dir_too_long_for_a_socket);
	tcase_add_test(
		tc, test_ctl_follows_no_link_that_somebody_planted_in_tmp);
	tcase_add_test(tc, test_ctl_connect_says_what_is_no_refrain_mount);
	tcase_add_test(tc,
		test_ctl_connect_believes_no_attribute_of_a_plain_directory);
}

static void add_processes(Suite *s)
{
	TCase *tc = case_of(s, "processes");

	tcase_add_test(tc, test_ctl_wait_gone_waits_for_the_process_to_end);
}

int main(void)
{
	Suite *suite = suite_create("ctl_place");

	add_places(suite);
	add_processes(suite);
	return run_suite(suite);
}
