/* SPDX-License-Identifier: MIT */
/* Messages: a header and a struct of fixed size, in the byte order of the
 * machine, because both ends run on the same machine. Messages are parsed once,
 * into checked structs. No state. */
#include "loader/share/share_wire_impl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/send_fds.h"

_Static_assert(sizeof(struct wire_head) == 16, "the head has holes");
_Static_assert(sizeof(struct share_hello) ==
		64 + 4 * SHARE_PRINTS_MAX + SHARE_FULL_NAME_MAX +
			SHARE_LABEL_MAX,
	"holes in a message");
_Static_assert(sizeof(struct share_welcome) == 32, "holes in a message");
_Static_assert(sizeof(struct share_refuse) == 8 + SHARE_TEXT_MAX,
	"holes in a message");
_Static_assert(sizeof(struct share_segment) == 24, "holes in a message");
_Static_assert(sizeof(struct share_batch) == 48, "holes in a message");
_Static_assert(
	sizeof(struct share_job) == 56 + SHARE_LABEL_MAX, "holes in a message");
_Static_assert(sizeof(struct share_view) ==
		56 + SHARE_FULL_NAME_MAX + SHARE_TEXT_MAX +
			SHARE_MEMBERS_MAX * sizeof(struct share_job),
	"holes in a message");

/* -- Checks ---------------------------------------------------------------- */

static bool has_end(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

static bool hello_is_good(const struct share_hello *m)
{
	return m->wish >= SHARE_WISH_NEW && m->wish <= SHARE_WISH_ALONE &&
		m->batch > 0 && m->prints_n <= SHARE_PRINTS_MAX &&
		has_end(m->name, sizeof(m->name)) &&
		has_end(m->label, sizeof(m->label));
}

static bool batch_is_good(const struct share_batch *m)
{
	return m->count > 0 && m->fresh <= m->count && m->ends_epoch <= 1 &&
		m->substituted <= m->count && !m->reserved;
}

static bool view_is_good(const struct share_view *m)
{
	if (m->jobs_n > SHARE_MEMBERS_MAX || m->slots_held > m->slots ||
		!has_end(m->name, sizeof(m->name)) ||
		!has_end(m->text, sizeof(m->text)))
		return false;
	for (uint32_t i = 0; i < m->jobs_n; i++)
		if (m->jobs[i].waiting > 1 || m->jobs[i].solo > 1 ||
			!has_end(m->jobs[i].label, SHARE_LABEL_MAX))
			return false;
	return true;
}

static bool is_good(const struct share_msg *m)
{
	switch (m->type) {
	case SHARE_HELLO:
		return hello_is_good(&m->hello);
	case SHARE_WELCOME:
		return m->welcome.begun <= 1 && !m->welcome.reserved &&
			m->welcome.place < SHARE_MEMBERS_MAX;
	case SHARE_REFUSE:
		return m->refuse.error < 0 && m->refuse.error > -4096 &&
			!m->refuse.reserved &&
			has_end(m->refuse.text, sizeof(m->refuse.text));
	case SHARE_SEGMENT:
		return m->segment.slots > 0 && m->segment.slot_bytes > 0 &&
			!m->segment.reserved &&
			m->segment.bytes / m->segment.slots >=
			m->segment.slot_bytes;
	case SHARE_BATCH:
		return batch_is_good(&m->batch);
	case SHARE_CHANGE:
		return m->change.q > 0 && m->change.p >= m->change.q;
	case SHARE_VIEW:
		return view_is_good(&m->view);
	case SHARE_RELEASE:
	case SHARE_WAIT:
	case SHARE_END:
	case SHARE_ASK:
	case SHARE_ALONE:
	case SHARE_TAKE:
	case SHARE_TYPES:
		break;
	}
	return true;
}

/* -- Sizes ----------------------------------------------------------------- */

static size_t view_bytes(uint32_t jobs)
{
	return offsetof(struct share_view, jobs) +
		jobs * sizeof(struct share_job);
}

/* Returns the size of the struct for this type in bytes. For a view, this is
 * the size with the maximum number of jobs. */
static size_t body_max(unsigned type)
{
	static const size_t bytes[SHARE_TYPES] = {
		[SHARE_HELLO] = sizeof(struct share_hello),
		[SHARE_WELCOME] = sizeof(struct share_welcome),
		[SHARE_REFUSE] = sizeof(struct share_refuse),
		[SHARE_SEGMENT] = sizeof(struct share_segment),
		[SHARE_BATCH] = sizeof(struct share_batch),
		[SHARE_RELEASE] = sizeof(struct share_step),
		[SHARE_WAIT] = sizeof(struct share_step),
		[SHARE_CHANGE] = sizeof(struct share_change),
		[SHARE_END] = sizeof(struct share_step),
		[SHARE_ASK] = sizeof(struct share_step),
		[SHARE_VIEW] = sizeof(struct share_view),
		[SHARE_ALONE] = sizeof(struct share_step),
		[SHARE_TAKE] = sizeof(struct share_step),
	};

	return type < SHARE_TYPES ? bytes[type] : 0;
}

static size_t body_bytes(const struct share_msg *msg)
{
	if (msg->type == SHARE_VIEW)
		return view_bytes(msg->view.jobs_n);
	return body_max(msg->type);
}

/* -- Messages from and to bytes -------------------------------------------- */

size_t share_msg_print(const struct share_msg *msg, void *out, size_t room)
{
	struct wire_head head = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.type = (uint16_t)msg->type,
		.bytes = (uint32_t)(sizeof(head) + body_bytes(msg)),
	};

	if (head.bytes > room)
		return 0;
	memcpy(out, &head, sizeof(head));
	memcpy((char *)out + sizeof(head), &msg->hello,
		head.bytes - sizeof(head));
	return head.bytes;
}

int share_msg_parse(const void *data, size_t bytes, struct share_msg *out)
{
	struct wire_head head;
	size_t body = bytes - sizeof(head), max;

	if (bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	if (head.magic != WIRE_MAGIC)
		return -EBADMSG;
	if (head.version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	max = body_max(head.type);
	if (head.reserved || head.bytes != bytes || !max || body > max)
		return -EBADMSG;
	out->type = (enum share_type)head.type;
	memcpy(&out->hello, (const char *)data + sizeof(head), body);
	if (out->type == SHARE_VIEW && body < view_bytes(0))
		return -EBADMSG;
	if (out->type == SHARE_VIEW && out->view.jobs_n > SHARE_MEMBERS_MAX)
		return -EBADMSG;
	if (body != body_bytes(out) || !is_good(out))
		return -EBADMSG;
	return 0;
}

/* -- Sockets --------------------------------------------------------------- */

int wire_send(int socket_fd, const struct share_msg *msg, int fd)
{
	char bytes[WIRE_BYTES_MAX];
	ssize_t n = fds_send(socket_fd, bytes,
		share_msg_print(msg, bytes, sizeof(bytes)), &fd, fd >= 0,
		MSG_DONTWAIT);

	if (n >= 0)
		return 0;
	return n == -EAGAIN || n == -ENOBUFS ? -EAGAIN : -EPIPE;
}

int wire_recv(int socket_fd, struct share_msg *msg, int *fd)
{
	char bytes[WIRE_BYTES_MAX + 1];
	struct got_fds got;
	ssize_t n;
	int rc;

	*fd = -1;
	/* Read again after ECONNRESET: the kernel reports it once, before the
	 * messages that are still in the queue. */
	do
		n = fds_receive(
			socket_fd, bytes, sizeof(bytes), &got, MSG_DONTWAIT);
	while (n == -ECONNRESET);
	if (n < 0)
		return n == -EAGAIN ? -EAGAIN : -EPIPE;
	fds_close(&got, 1);
	rc = n == 0 ? -EPIPE : got.cut ? -EBADMSG : 0;
	if (rc == 0)
		rc = share_msg_parse(bytes, (size_t)n, msg);
	if (rc < 0) {
		fds_close(&got, 0);
		return rc;
	}
	if (got.n > 0)
		*fd = got.fd[0];
	return 1;
}

void wire_close(int socket_fd)
{
	/* This fails if the other end has closed the connection */
	(void)shutdown(socket_fd, SHUT_RDWR);
	(void)close(socket_fd); /* cannot lose data */
}
