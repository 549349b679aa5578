/* SPDX-License-Identifier: MIT */
/*
 * The fixture's tree in a stand-in for a store (tests/system/far), which is a
 * child process. It is started for one row, filled by PUTs, and ended at the
 * end of the test. All of its files have one version.
 */
#ifndef TESTS_ORIGIN_REMOTE_H
#define TESTS_ORIGIN_REMOTE_H

#include "origin_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "origin/object/object.h"
#include "origin/web/http_head.h"

#define FAR_PROGRAM "tests/system/far"
#define FAR_ETAG "one-version"

/* closing the pipe far_life ends the stand-in */
static int far_port, far_life = -1;
static pid_t far_pid;

/* Start the stand-in. Returns its port, or 0. `settings` is an additional word
 * of its command line. */
static inline int far_spawn(const char *settings)
{
	char *argv[] = {(char *)(uintptr_t)FAR_PROGRAM,
		(char *)(uintptr_t) "same=1", (char *)(uintptr_t) "verify=1",
		(char *)(uintptr_t)settings, NULL};
	posix_spawn_file_actions_t files;
	int in[2], out[2];
	char text[16] = "";
	ssize_t n;

	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	ck_assert_int_eq(
		posix_spawn(&far_pid, FAR_PROGRAM, &files, NULL, argv, environ),
		0);
	posix_spawn_file_actions_destroy(&files);
	close(in[0]);
	close(out[1]);
	n = read(out[0], text, sizeof(text) - 1);
	close(out[0]);
	far_life = in[1];
	ck_assert_int_gt(n, 0);
	return atoi(text);
}

static inline void far_ask(const char *head, const void *body, size_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)far_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[64] = "";

	ck_assert_int_eq(
		connect(fd, (const struct sockaddr *)(void *)&to, sizeof(to)),
		0);
	ck_assert_int_gt(send(fd, head, strlen(head), MSG_NOSIGNAL), 0);
	for (size_t at = 0; at < bytes;) {
		ssize_t n = send(
			fd, (const char *)body + at, bytes - at, MSG_NOSIGNAL);

		ck_assert_int_gt(n, 0);
		at += (size_t)n;
	}
	ck_assert_int_gt(read(fd, answer, sizeof(answer) - 1), 0);
	ck_assert_ptr_eq(strstr(answer, "HTTP/1.1 200"), answer);
	close(fd);
}

static inline void far_fill(void)
{
	unsigned char *data = malloc(SIZE_BYTES);
	char head[200];

	for (unsigned i = 0; i < FILES; i++) {
		origin_synthetic_fill(SEED, file_path(i), 0, SIZE_BYTES, data);
		(void)snprintf(head, sizeof(head),
			"PUT /bucket/in/%s HTTP/1.1\r\nHost: x\r\n"
			"Content-Length: %d\r\n\r\n",
			file_path(i), SIZE_BYTES);
		far_ask(head, data, SIZE_BYTES);
	}
	free(data);
}

/* Open an origin of the stand-in's tree; `version` becomes the version of its
 * files. */
static inline int far_open(struct origin **out, bool s3, unsigned depth,
	const char *settings, struct counters *counters, struct error *err)
{
	char url[64], place[100];
	struct object_config config = {.endpoint_url = url,
		.loops = 2,
		.depth = depth,
		.counters = counters};

	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("AWS_ACCESS_KEY_ID", "AKunit", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "Secret/AKunit+key", 1);
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	far_port = far_spawn(settings);
	far_fill();
	if (!s3)
		far_ask("GET /-/set?verify=0&web=1 HTTP/1.1\r\nHost: x\r\n\r\n",
			"", 0);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", far_port);
	if (s3)
		(void)snprintf(place, sizeof(place), "s3://bucket/in");
	else
		(void)snprintf(place, sizeof(place), "%s/bucket/in", url);
	version.tag = etag_tag(FAR_ETAG, strlen(FAR_ETAG));
	return object_new(out, place, &config, err);
}

static inline void far_end(void)
{
	if (far_life < 0)
		return;
	close(far_life);
	far_life = -1;
	(void)waitpid(far_pid, NULL, 0);
}

#endif
