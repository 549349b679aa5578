/* SPDX-License-Identifier: MIT */
/* Fuzz target: input of the control socket. Each line must get one answer,
 * which is JSON with "ok". */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mount/daemon/control_conn_impl.h"
#include "peer.h"

#define LINES_MAX 64

static void command_path(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	char *path = NULL;

	(void)arg;
	if (ctl_path_get(json_object_get(request, "path"), &path) < 0) {
		(void)ctl_fail(conn, "no path");
		return;
	}
	FUZZ_MUST(path[0] != '\0');
	(void)ctl_send(conn,
		json_pack("{s:b, s:o}", "ok", 1, "path", ctl_path_new(path)));
	free(path);
}

static void command_text(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	const char *text = json_string_value(json_object_get(request, "text"));

	(void)arg;
	(void)ctl_fail(conn, "%s", text ? text : "none");
}

static const struct ctl_command own_commands[] = {{"path", command_path, NULL},
	{"text", command_text, NULL}, {NULL, NULL, NULL}};

static unsigned count_lines(const uint8_t *data, size_t size)
{
	unsigned n = 0;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static void check_answer(const char *line, size_t len)
{
	json_t *answer = json_loadb(line, len, 0, NULL);

	FUZZ_MUST(json_is_boolean(json_object_get(answer, "ok")));
	json_decref(answer);
}

/* Check that there are `want` lines, and that each line is an answer. */
static void check_answers(int fd, unsigned want)
{
	struct lines lines = {.max_bytes = (size_t)1 << 20};
	char *line;
	size_t len;

	while (lines_fill(&lines, fd) > 0)
		while (lines_next(&lines, &line, &len)) {
			check_answer(line, len);
			FUZZ_MUST(want-- > 0);
		}
	FUZZ_MUST(want == 0);
	lines_release(&lines);
}

void fuzz_peer(
	const struct ctl_command *commands, const uint8_t *data, size_t size)
{
	unsigned lines = count_lines(data, size);
	struct ctl_conn *conn;
	int fds[2], room = 4 << 20;

	/* Limit the lines, because all answers must fit into the socket: no
	 * thread reads them until all are made. */
	if (lines > LINES_MAX)
		return;
	FUZZ_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	(void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	FUZZ_MUST(send(fds[0], data, size, 0) == (ssize_t)size);
	FUZZ_MUST(shutdown(fds[0], SHUT_WR) == 0);
	conn = conn_new(fds[1], -1, 1000, commands);
	FUZZ_MUST(conn);
	conn_serve(conn);
	conn_free(conn);
	check_answers(fds[0], lines);
	(void)close(fds[0]);
}

static void one(const uint8_t *data, size_t size)
{
	fuzz_peer(own_commands, data, size);
}

static size_t seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"{\"cmd\":\"path\",\"path\":\"a/b\"}\n",
		"{\"cmd\":\"path\",\"path\":{\"hex\":\"ff2f41\"}}\n",
		"{\"cmd\":\"text\",\"text\":\"caf\\u00e9 \\ud834\\udd1e\"}\n"
		"[1,-2.5e10,true,null,\"x\"]\n{\"cmd\":7}\n\n",
		"{\"cmd\":\"nothing\"}\n{\"cmd\":\"path\"}\n{",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_ctl = {"ctl", one, seed};
