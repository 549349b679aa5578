/* SPDX-License-Identifier: MIT */
/*
 * The archive of refrain doctor: a tar file (ustar) of texts from which secrets
 * have been removed. It is written to a new file with mode 0600.
 */
#include "analysis/fleet/doctor_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"

#define TAR_BLOCK 512u

struct tar {
	const struct doctor *d;
	FILE *to, *list;
};

struct ustar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type, link[100], magic[6], version[2], user[32], group[32];
	char major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct ustar_header) == TAR_BLOCK, "a block");

static void tar_add(struct tar *t, const char *name, const char *text)
{
	CLEANUP_FREE char *clean = doctor_redact(t->d, text);
	static const char zeros[TAR_BLOCK];
	struct ustar_header h = {.type = '0'};
	const unsigned char *bytes = (const void *)&h;
	size_t len = clean ? strlen(clean) : 0; /* at most some MiB */
	unsigned sum = 0;

	(void)snprintf(h.name, sizeof(h.name), "refrain-doctor/%s", name);
	memcpy(h.mode, "0000644", 8);
	memcpy(h.uid, "0000000", 8);
	memcpy(h.gid, "0000000", 8);
	(void)snprintf(h.size, sizeof(h.size), "%011o", (unsigned)len);
	(void)snprintf(h.mtime, sizeof(h.mtime), "%011jo",
		(uintmax_t)time(NULL) & 077777777777);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	(void)snprintf(h.sum, sizeof(h.sum), "%06o", sum & 0777777);
	(void)fwrite(&h, sizeof(h), 1, t->to);
	(void)fwrite(clean ? clean : "", 1, len, t->to);
	if (len % TAR_BLOCK)
		(void)fwrite(zeros, 1, TAR_BLOCK - len % TAR_BLOCK, t->to);
	(void)fprintf(t->list, "  %s, %zu bytes\n", name, len);
}

static void tar_end(struct tar *t)
{
	static const char zeros[2 * TAR_BLOCK];

	(void)fwrite(zeros, 1, sizeof(zeros), t->to);
}

/* Add a file with the text that a function prints. */
static void tar_print(struct tar *t, const char *name,
	void (*print)(const struct doctor *d, size_t i, FILE *to), size_t i)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return;
	print(t->d, i, to);
	if (fclose(to) == 0)
		tar_add(t, name, text);
	free(text);
}

static void print_findings(const struct doctor *d, size_t i, FILE *to)
{
	(void)i;
	(void)doctor_print(d, to);
}

static void print_host(const struct doctor *d, size_t i, FILE *to)
{
	struct mountinfo info;
	struct mountinfo_entry e;
	struct utsname u;

	(void)i;
	(void)d;
	(void)fprintf(to, "refrain %s\n", PACKAGE_VERSION);
	if (uname(&u) == 0)
		(void)fprintf(to, "%s %s %s\nuser %u\n", u.sysname, u.release,
			u.machine, (unsigned)geteuid());
	if (mountinfo_open(&info, 0) < 0)
		return;
	while (mountinfo_next(&info, &e))
		if (strncmp(e.type, "fuse", 4) == 0)
			(void)fprintf(to, "%u:%u %s %s %s %s\n", e.major,
				e.minor, e.path, e.type, e.source, e.options);
	mountinfo_close(&info);
}

static void print_status(const struct doctor *d, size_t i, FILE *to)
{
	struct fleet_mount m = fleet_get(d->fleet, i);

	if (m.status)
		(void)json_dumpf(m.status, to, JSON_INDENT(2));
	else
		(void)fprintf(to, "%s: %s\n", fleet_state_name(m.state), m.why);
}

static void print_options(const struct doctor *d, size_t i, FILE *to)
{
	const struct doctor_words *w = &d->words[i];

	for (size_t at = 0; at < w->bytes; at += strlen(w->words + at) + 1)
		(void)fprintf(to, "%s\n", w->words + at);
}

static void print_log(const struct doctor *d, size_t i, FILE *to)
{
	if (d->words[i].log)
		(void)fputs(d->words[i].log, to);
}

static void add_mounts(struct tar *t)
{
	char name[64];

	for (size_t i = 0; i < fleet_count(t->d->fleet); i++) {
		if (!t->d->chosen[i])
			continue;
		(void)snprintf(name, sizeof(name), "mount-%zu/status", i);
		tar_print(t, name, print_status, i);
		if (!t->d->words[i].words)
			continue;
		(void)snprintf(name, sizeof(name), "mount-%zu/options", i);
		tar_print(t, name, print_options, i);
		(void)snprintf(name, sizeof(name), "mount-%zu/log", i);
		tar_print(t, name, print_log, i);
	}
}

int doctor_archive(
	struct doctor *d, const char *file, FILE *to, struct error *err)
{
	struct tar t = {.d = d, .list = to};
	int fd = open(file,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return error_set(err, -errno,
			"cannot create '%s': %m; name a file that does not "
			"exist",
			file);
	t.to = fdopen(fd, "w");
	if (!t.to) {
		(void)close(fd);
		return error_set(err, -ENOMEM, "cannot write '%s': %m", file);
	}
	(void)fprintf(to, "%s contains, without secrets:\n", file);
	tar_print(&t, "findings", print_findings, 0);
	tar_print(&t, "host", print_host, 0);
	add_mounts(&t);
	tar_end(&t);
	if (fflush(t.to) != 0 || ferror(t.to) || fclose(t.to) != 0)
		return error_set(err, -EIO, "cannot write '%s': %m", file);
	return 0;
}
