/* SPDX-License-Identifier: MIT */
/* Fuzz target: answers of memcached on a connection that waits for one answer
 * of each kind. Each request must be answered, no value may exceed its maximum,
 * and no text may reach outside the received bytes. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "origin/peer/peer_lease_impl.h"
#include "common/memcached/memcached_server.h"
#include "origin/peer/peer_unit_impl.h"
#include "common/memcached/memcached_wire.h"

#define SMALL_BYTES 8u

struct asked {
	struct request q;
	unsigned ends;
	struct server *server;
};

static void asked_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct asked *x = CONTAINER_OF(q, struct asked, q);
	struct unit u = {{1, 2}, 0, SMALL_BYTES, 3};

	FUZZ_MUST(x->ends == 0 && (status < 0) == !a);
	x->ends = !a || a->kind != META_STAT;
	if (!a)
		return;
	if (a->kind == META_STAT)
		server_stat(x->server, a->text, a->text_bytes);
	else if (a->kind == META_VERSION)
		server_version(x->server, a->text, a->text_bytes);
	else if (a->kind == META_VA) {
		FUZZ_MUST(value && a->value_bytes <= UNIT_VALUE_MAX);
		(void)unit_is_right(value, a->value_bytes, 1, &u);
		(void)lease_is_refusal(value, a->value_bytes);
		(void)hash64(value, a->value_bytes, 1);
	}
}

static void fuzz_ask(struct wire *w, struct asked *x, struct server *server,
	const char *line)
{
	*x = (struct asked){.q.answered = asked_answered, .server = server};
	x->q.plain = line[0] == 's' || line[0] == 'v';
	x->q.lines = line[0] == 's';
	if (line[1] == 's') {
		x->q.body = "content";
		x->q.body_bytes = 7;
	}
	request_line(&x->q, "%s", line);
	wire_queue(w, &x->q, 1);
}

/* Open a listening socket, once for all runs. Stores its address in *a. */
static int fuzz_listener(struct sockaddr_un *a, socklen_t *len)
{
	static int fd = -1;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	*len = sizeof(*a);
	if (fd < 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		FUZZ_MUST(fd >= 0);
		/* With a path of length 0, the kernel chooses a name. */
		FUZZ_MUST(bind(fd, (struct sockaddr *)a,
				  sizeof(a->sun_family)) == 0);
		FUZZ_MUST(listen(fd, 4) == 0);
	}
	FUZZ_MUST(getsockname(fd, (struct sockaddr *)a, len) == 0);
	return fd;
}

static void memcached_one(const uint8_t *data, size_t size)
{
	static const char *const lines[] = {"version", "stats settings",
		"mg rf2:1:0 v T604800", "mg rf2:1:lease v N30",
		"ms rf2:1:lease 7 T30", "md rf2:1:lease", "mg rf2:2:0 v"};
	struct asked x[sizeof(lines) / sizeof(lines[0])];
	int fd, rc;
	struct loop loop;
	const struct wire_config config = {.loop = &loop,
		.value_max_bytes = UNIT_VALUE_MAX,
		.answer_ms = 500};
	struct wire *w = wire_new(&config, NULL);
	struct sockaddr_un a;
	struct server server;
	socklen_t len;
	int listener = fuzz_listener(&a, &len);

	rc = loop_init(&loop);
	server_init(&server);
	FUZZ_MUST(rc == 0 && w &&
		wire_open(w, (struct sockaddr *)&a, len, 1) == 0);
	fd = accept(listener, NULL, NULL);
	FUZZ_MUST(fd >= 0);
	for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
		fuzz_ask(w, &x[i], &server, lines[i]);
	FUZZ_MUST(wire_event(w, EPOLLOUT, 1) == 0);
	/* send the answers in two pieces */
	for (size_t i = 0; i < 2 && rc == 0; i++) {
		size_t from = i * (size / 2), to = i ? size : size / 2;

		FUZZ_MUST(send(fd, data + from, to - from, 0) ==
			(ssize_t)(to - from));
		rc = wire_event(w, EPOLLIN, 1);
	}
	(void)close(fd);
	if (rc == 0)
		FUZZ_MUST(wire_event(w, EPOLLIN, 1) < 0);
	(void)server_fault(&server, UNIT_VALUE_MAX);
	wire_shut(w, -1);
	wire_free(w);
	loop_release(&loop);
	for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
		FUZZ_MUST(x[i].ends == 1);
}

static size_t memcached_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"VERSION 1.6.18\r\nSTAT evictions off\r\n"
		"STAT slab_reassign no\r\nSTAT item_size_max 1048576\r\nEND\r\n"
		"VA 32 t-1 O3\r\nRFU2....0123456701234567abcdefgh\r\n"
		"VA 7 O4 Z\r\nrefused\r\nHD O5 \r\nNF O6\r\nEN\r\n",
		"VERSION 1.6.39\r\nEND\r\nVA 8 O3 c77\r\n01234567\r\n"
		"VA 0 W O4\r\n\r\nSERVER_ERROR out of memory storing object\r\n"
		"HD O6\r\nEN O7\r\n",
		"ERROR\r\nSTAT limit_maxbytes 18446744073709551616\r\n"
		"STAT bytes -1\r\nEND\r\nVA 262160 O3\r\n",
		"VERSION 1.6.18\r\nEND\r\nEN O3\r\nEN O4\r\nNS O5\r\nMN\r\n",
		"VERSION 2147484.18446744073709551616.1\r\n", NULL};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_memcached = {
	"memcached", memcached_one, memcached_seed};
