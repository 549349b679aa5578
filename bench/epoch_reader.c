/* SPDX-License-Identifier: MIT */
/* epoch-reader: reads every file below a directory as a whole, in a new order
 * each epoch, as the loader of a training does, and prints how fast that was.
 * It is an ordinary program without knowledge of refrain: it reads a mount or a
 * plain directory. The threads of an epoch draw files from a common counter. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/option.h"
#include "file_list.h"
#include "read_file.h"

#define THREADS_MAX 512
/* maximum number of failed files that an epoch prints on stderr */
#define COMPLAINTS_MAX 5

struct settings {
	unsigned threads, epochs, first_epoch, seed;
	enum read_way way;
	const char *names, *sums, *make_sums, *order;
	bool drop, forget, json;
};

static int parse_way(void *out, const char *value, struct error *err)
{
	struct settings *s = out;

	return read_way_parse(value, &s->way) < 0
		? error_set(err, -EINVAL,
			  "'%s' is not a way to read; use read, mmap, direct "
			  "or pread4k",
			  value)
		: 0;
}

#define FIELD(f) offsetof(struct settings, f)

static const struct option_def options[] = {
	{"threads", 't', "T",
		"Number of files to read at the same time "
		"(default: 1).",
		OPTION_NUMBER, FIELD(threads), NULL, false},
	{"epochs", 'e', "N",
		"Number of epochs, each of which reads every file "
		"once (default: 1).",
		OPTION_NUMBER, FIELD(epochs), NULL, false},
	{"first-epoch", 0, "N", "Number of the first epoch (default: 1).",
		OPTION_NUMBER, FIELD(first_epoch), NULL, false},
	{"seed", 's', "S", "Seed of the orders (default: 0).", OPTION_NUMBER,
		FIELD(seed), NULL, false},
	{"io", 'i', "WAY", "Way to read: read, mmap, direct or pread4k.",
		OPTION_CALL, 0, parse_way, false},
	{"files-from", 'f', "FILE",
		"Read the files listed in FILE, one relative path per line.",
		OPTION_TEXT, FIELD(names), NULL, false},
	{"make-sums", 0, "FILE", "Write the checksum of every file to FILE.",
		OPTION_TEXT, FIELD(make_sums), NULL, false},
	{"sums", 0, "FILE", "Compare the files with the checksums in FILE.",
		OPTION_TEXT, FIELD(sums), NULL, false},
	{"order", 0, "FILE",
		"Append a line \"epoch size path\" to FILE for "
		"each file read.",
		OPTION_TEXT, FIELD(order), NULL, false},
	{"drop", 0, NULL,
		"Drop the kernel's caches before each epoch; needs root.",
		OPTION_FLAG, FIELD(drop), NULL, false},
	{"forget", 0, NULL,
		"Drop the kernel's pages of each file once it has been read.",
		OPTION_FLAG, FIELD(forget), NULL, false},
	{"json", 'j', NULL, "Print one JSON object per epoch.", OPTION_FLAG,
		FIELD(json), NULL, false},
	{.name = NULL},
};

static const struct option_usage usage = {
	.name = "epoch-reader",
	.operands = "DIR",
	.summary = "Read every file in a fresh order each epoch.",
	.options = options,
	.min_operands = 1,
	.max_operands = 1,
	.alone = true,
};

struct epoch {
	/* The settings and the list. Set before the threads start. */
	const struct settings *settings;
	struct file_list *list;
	int dir_fd;
	unsigned number;
	size_t *order;
	/* reading time of each file; the thread that reads a file sets its
	 * element */
	uint64_t *ns;

	_Atomic size_t next; /* next index into `order`; relaxed */
	/* relaxed; read after the threads were joined */
	_Atomic unsigned errors;
	/* relaxed; read after the threads were joined */
	_Atomic uint64_t bytes;
	/* number of threads that had memory; relaxed, read after they were
	 * joined */
	_Atomic unsigned readers;
};

static void complain(struct epoch *e, const char *path, int rc)
{
	if (atomic_fetch_add(&e->errors, 1) < COMPLAINTS_MAX)
		fprintf(stderr, "epoch-reader: '%s': %s\n", path,
			rc == -EBADMSG ? "contents differ from the checksum"
				       : strerror(-rc));
}

static void read_one(struct epoch *e, struct reader *r, size_t place)
{
	struct file_item *item = &e->list->items[e->order[place]];
	uint64_t start_ns = clock_now_ns(), sum = 0;
	int rc = read_file(r, e->dir_fd, item->path, item->size_bytes, &sum);

	e->ns[place] = clock_now_ns() - start_ns;
	if (rc == 0 && e->settings->sums && sum != item->sum)
		rc = -EBADMSG;
	if (rc < 0) {
		complain(e, item->path, rc);
		return;
	}
	if (e->settings->make_sums)
		/* no other thread has this item in this epoch */
		item->sum = sum;
	(void)atomic_fetch_add_explicit(
		&e->bytes, item->size_bytes, memory_order_relaxed);
}

static void *read_thread(void *arg)
{
	struct epoch *e = arg;
	struct reader r;
	size_t place;

	if (reader_init(&r, e->settings->way,
		    e->settings->sums || e->settings->make_sums) < 0)
		return NULL;
	r.forget = e->settings->forget;
	(void)atomic_fetch_add(&e->readers, 1);
	while ((place = atomic_fetch_add_explicit(
			&e->next, 1, memory_order_relaxed)) < e->list->n)
		read_one(e, &r, place);
	reader_release(&r);
	return NULL;
}

static int run_threads(struct epoch *e, struct error *err)
{
	pthread_t threads[THREADS_MAX];
	unsigned n = 0;
	int rc = 0;

	while (n < e->settings->threads && rc == 0) {
		rc = -pthread_create(&threads[n], NULL, read_thread, e);
		n += rc == 0;
	}
	for (unsigned i = 0; i < n; i++)
		/* cannot fail: the thread is joinable */
		(void)pthread_join(threads[i], NULL);
	if (rc < 0)
		return error_set(err, rc, "cannot start threads: %m");
	if (atomic_load(&e->readers) < n)
		return error_set(err, -ENOMEM, "%m");
	return 0;
}

/* -- Report -- */

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double quantile_ms(const struct epoch *e, unsigned percent)
{
	size_t n = e->list->n;

	return n ? (double)e->ns[(n - 1) * percent / 100] / 1e6 : 0;
}

static void report(struct epoch *e, double seconds)
{
	uint64_t bytes = atomic_load(&e->bytes);
	unsigned errors = atomic_load(&e->errors);
	double files_s = (double)e->list->n / seconds;
	double mb_s = (double)bytes / 1e6 / seconds;

	qsort(e->ns, e->list->n, sizeof(*e->ns), by_value);
	if (e->settings->json)
		printf("{\"epoch\": %u, \"files\": %zu, \"bytes\": %" PRIu64
		       ", \"seconds\": %.6f, \"files_per_s\": %.1f, "
		       "\"mb_per_s\": %.2f, \"p50_ms\": %.4f, \"p99_ms\": %.4f,"
		       " \"max_ms\": %.4f, \"errors\": %u}\n",
			e->number, e->list->n, bytes, seconds, files_s, mb_s,
			quantile_ms(e, 50), quantile_ms(e, 99),
			quantile_ms(e, 100), errors);
	else
		printf("epoch %3u: %8.1f files/s %8.2f MB/s   a file: p50 %.3f "
		       "ms, p99 %.3f ms, max %.3f ms%s\n",
			e->number, files_s, mb_s, quantile_ms(e, 50),
			quantile_ms(e, 99), quantile_ms(e, 100),
			errors ? "   ERRORS" : "");
	/* flush, because a program may wait for this line */
	(void)fflush(stdout);
}

static int save_order(const struct epoch *e, struct error *err)
{
	const char *to = e->settings->order;
	FILE *out = fopen(to, "ae");

	if (!out)
		return error_set(err, -errno, "cannot write '%s': %m", to);
	for (size_t i = 0; i < e->list->n; i++) {
		const struct file_item *item = &e->list->items[e->order[i]];

		fprintf(out, "%u %" PRIu64 " %s\n", e->number, item->size_bytes,
			item->path);
	}
	return fclose(out) == 0
		? 0
		: error_set(err, -errno, "cannot write '%s': %m", to);
}

static int drop_caches(struct error *err)
{
	static const char path[] = "/proc/sys/vm/drop_caches";
	CLEANUP_FD int fd = -1;

	sync(); /* the kernel cannot drop dirty pages */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "3", 1) != 1)
		return error_set(err, -errno,
			"cannot write '%s': %m; --drop needs root", path);
	return 0;
}

/* Run one epoch. Returns the number of errors, or -errno. */
static int run_epoch(struct epoch *e, struct error *err)
{
	uint64_t start_ns;
	int rc = 0;

	file_list_shuffle(e->order, e->list->n, e->settings->seed, e->number);
	atomic_store(&e->next, 0);
	atomic_store(&e->bytes, 0);
	atomic_store(&e->errors, 0);
	atomic_store(&e->readers, 0);
	if (e->settings->drop)
		rc = drop_caches(err);
	if (rc < 0)
		return rc;
	start_ns = clock_now_ns();
	rc = run_threads(e, err);
	if (rc < 0)
		return rc;
	report(e, (double)(clock_now_ns() - start_ns) / (double)NS_PER_S);
	if (e->settings->order)
		rc = save_order(e, err);
	return rc < 0 ? rc : (int)atomic_load(&e->errors);
}

static int run_epochs(const struct settings *s, struct file_list *list,
	int dir_fd, struct error *err)
{
	CLEANUP_FREE size_t *order = calloc(list->n + 1, sizeof(*order));
	CLEANUP_FREE uint64_t *ns = calloc(list->n + 1, sizeof(*ns));
	struct epoch e = {
		.settings = s,
		.list = list,
		.dir_fd = dir_fd,
		.order = order,
		.ns = ns,
	};
	int rc = 0, errors = 0;

	if (!order || !ns)
		return error_set(err, -ENOMEM, "%m");
	for (unsigned i = 0; i < s->epochs && rc >= 0; i++) {
		e.number = s->first_epoch + i;
		rc = run_epoch(&e, err);
		errors += rc > 0 ? rc : 0;
	}
	if (rc >= 0 && s->make_sums)
		rc = file_list_save_sums(list, s->make_sums, err);
	if (rc < 0)
		return rc;
	return errors ? error_set(err, -EIO, "%d reads failed", errors) : 0;
}

static int run(const struct settings *s, const char *dir, struct error *err)
{
	CLEANUP_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct file_list list = {.items = NULL};
	int rc;

	if (fd < 0)
		return error_set(err, -errno, "cannot open '%s': %m", dir);
	rc = s->names ? file_list_load(&list, fd, s->names, err)
		      : file_list_walk(&list, fd, err);
	if (rc == 0 && s->sums)
		rc = file_list_load_sums(&list, s->sums, err);
	if (rc == 0)
		rc = run_epochs(s, &list, fd, err);
	file_list_release(&list);
	return rc;
}

int main(int argc, char **argv)
{
	struct settings s = {.threads = 1, .epochs = 1, .first_epoch = 1};
	struct error err = {""};
	int rc = option_parse(&usage, argc, argv, &s, &err);

	if (rc == -ECANCELED) {
		option_print_help(&usage, stdout);
		return 0;
	}
	if (rc >= 0 && (!s.threads || s.threads > THREADS_MAX))
		rc = error_set(&err, -EINVAL,
			"epoch-reader: --threads must be 1 to %d", THREADS_MAX);
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 2;
	}
	rc = run(&s, argv[1], &err);
	if (rc < 0)
		fprintf(stderr, "epoch-reader: %s\n", err.msg);
	return rc < 0 ? 1 : 0;
}
