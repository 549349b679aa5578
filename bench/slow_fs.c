/* SPDX-License-Identifier: MIT */
/*
 * slow-fs: shows a directory below another name, slowly: every open, read and
 * directory listing is answered a fixed number of milliseconds after it came.
 * This is how an origin across a network appears to its reader, with any number
 * of requests at a time. Read-only; only for measurements.
 *
 *   slow-fs [-a] [-s SLOTS] DIR MOUNTPOINT MS
 *
 *   -a  names and attributes take as long, and are requested again each time
 *   -s  this many requests are served at a time; the others wait
 *
 * Stays in the foreground until unmounted. MOUNTPOINT/.requests, which is not
 * listed, has the numbers of requests since it was last read, and the most at a
 * time.
 *
 * Each request sleeps on a thread of libfuse, so there are as many threads as
 * requests.
 */
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* Maximum number of requests that sleep; also the kernel's limit. */
#define THREADS 256

/* The kinds of requests that are counted. */
enum kind { NAME, LIST, OPEN, READ, RELEASE, KINDS };

static const char *const kind_names[KINDS] = {
	"names", "lists", "opens", "reads", "releases"};

#define COUNTS_PATH "/.requests"
#define COUNTS_BYTES 512

struct slow_fs {
	/* the directory that is shown; set before the threads start */
	int top_fd;
	long delay_ns; /* set once */
	bool all;      /* names are slow, too; set before the threads start */
	/* maximum number of requests that are served at a time; 0: no maximum;
	 * set before the threads start */
	unsigned slots;
	sem_t free; /* its value is the number of free slots */
	/* number of requests; relaxed, like the next two members */
	_Atomic unsigned long count[KINDS];
	/* number of requests in progress, and the highest such number */
	_Atomic unsigned long now[KINDS], most[KINDS];
};

static struct slow_fs *the_fs(void)
{
	return fuse_get_context()->private_data;
}

static const char *relative(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static void count_begin(struct slow_fs *fs, enum kind kind)
{
	unsigned long now = atomic_fetch_add(&fs->now[kind], 1) + 1;
	unsigned long most = atomic_load(&fs->most[kind]);

	(void)atomic_fetch_add(&fs->count[kind], 1);
	while (now > most &&
		!atomic_compare_exchange_weak(&fs->most[kind], &most, now))
		;
}

static void sleep_a_while(struct slow_fs *fs)
{
	struct timespec left = {
		.tv_sec = fs->delay_ns / NS_PER_S,
		.tv_nsec = fs->delay_ns % NS_PER_S,
	};

	while (fs->slots && sem_wait(&fs->free) < 0 && errno == EINTR)
		;
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	if (fs->slots)
		/* cannot overflow: there are only `slots` slots */
		(void)sem_post(&fs->free);
}

static void take_time(enum kind kind)
{
	struct slow_fs *fs = the_fs();

	count_begin(fs, kind);
	if (fs->all || (kind != NAME && kind != RELEASE))
		sleep_a_while(fs);
	(void)atomic_fetch_sub(&fs->now[kind], 1);
}

static void *slow_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	conn->max_background = THREADS;
	conn->congestion_threshold = THREADS;
	/* Without -a, names need not be slow, so the kernel requests them only
	 * once. */
	if (!the_fs()->all)
		config->entry_timeout = config->attr_timeout = 3600;
	return the_fs();
}

static bool is_counts(const char *path)
{
	return strcmp(path, COUNTS_PATH) == 0;
}

static int read_counts(char *buf, size_t size, off_t off)
{
	struct slow_fs *fs = the_fs();
	char text[COUNTS_BYTES] = "";
	size_t len = 0;

	if (off > 0)
		return 0;
	for (int i = 0; i < KINDS; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"\"%s\": %lu, \"%s_at_once\": %lu%s", kind_names[i],
			atomic_exchange(&fs->count[i], 0), kind_names[i],
			atomic_exchange(&fs->most[i], 0),
			i + 1 < KINDS ? ", " : "\n");
	if (len > size)
		len = size;
	memcpy(buf, text, len);
	return (int)len;
}

static int slow_getattr(
	const char *path, struct stat *st, struct fuse_file_info *fi)
{
	int rc;

	if (is_counts(path)) {
		*st = (struct stat){.st_mode = S_IFREG | 0444, .st_nlink = 1};
		return 0;
	}
	rc = fi ? fstat((int)fi->fh, st)
		: fstatat(the_fs()->top_fd, relative(path), st,
			  AT_SYMLINK_NOFOLLOW);
	if (rc < 0)
		return -errno;
	take_time(NAME);
	return 0;
}

static int slow_readdir(const char *path, void *buf, fuse_fill_dir_t fill,
	off_t off, struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(the_fs()->top_fd, relative(path),
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	(void)off;
	(void)fi;
	(void)flags;
	if (!dir)
		return -errno;
	take_time(LIST);
	while ((e = readdir(dir)))
		if (fill(buf, e->d_name, NULL, 0, 0))
			break;
	return 0;
}

static int slow_open(const char *path, struct fuse_file_info *fi)
{
	int fd;

	if (is_counts(path)) {
		fi->direct_io = 1;
		return 0;
	}
	fd = openat(the_fs()->top_fd, relative(path), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	take_time(OPEN);
	fi->fh = (uint64_t)fd;
	return 0;
}

static int slow_read(const char *path, char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	ssize_t n;

	if (is_counts(path))
		return read_counts(buf, size, off);
	n = pread((int)fi->fh, buf, size, off);
	if (n < 0)
		return -errno;
	take_time(READ);
	return (int)n;
}

static int slow_release(const char *path, struct fuse_file_info *fi)
{
	if (is_counts(path))
		return 0;
	take_time(RELEASE);
	return close((int)fi->fh) < 0 ? -errno : 0;
}

static const struct fuse_operations operations = {
	.init = slow_init,
	.getattr = slow_getattr,
	.readdir = slow_readdir,
	.open = slow_open,
	.read = slow_read,
	.release = slow_release,
};

static int serve(struct slow_fs *fs, const char *mountpoint)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	struct fuse *fuse;
	int rc;

	if (!loop)
		return EXIT_FAILURE;
	fuse_loop_cfg_set_max_threads(loop, THREADS);
	fuse_loop_cfg_set_idle_threads(loop, THREADS);

	if (fuse_opt_add_arg(&args, "slow-fs") < 0 ||
		fuse_opt_add_arg(&args, "-oro,fsname=slow,subtype=slow") < 0)
		return EXIT_FAILURE;
	fuse = fuse_new(&args, &operations, sizeof(operations), fs);
	fuse_opt_free_args(&args);
	if (!fuse || fuse_mount(fuse, mountpoint) != 0)
		return EXIT_FAILURE; /* libfuse has printed the error */
	rc = fuse_loop_mt(fuse, loop);
	fuse_loop_cfg_destroy(loop);
	fuse_unmount(fuse);
	fuse_destroy(fuse);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Parse the options, which precede the operands. Returns the index of the first
 * operand, or -EINVAL. */
static int parse(struct slow_fs *fs, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "as:")) != -1) {
		if (c == 'a')
			fs->all = true;
		else if (c == 's')
			fs->slots = (unsigned)strtoul(optarg, NULL, 10);
		else
			return -EINVAL;
	}
	return argc - optind == 3 ? optind : -EINVAL;
}

int main(int argc, char **argv)
{
	struct slow_fs fs = {.top_fd = -1};
	int at = parse(&fs, argc, argv);
	int status;

	if (at < 0) {
		fprintf(stderr,
			"usage: slow-fs [-a] [-s SLOTS] DIR MOUNTPOINT MS\n");
		return 2;
	}
	argv += at;
	fs.delay_ns = (long)(strtod(argv[2], NULL) * (double)NS_PER_MS);
	fs.top_fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs.top_fd < 0 || sem_init(&fs.free, 0, fs.slots) < 0) {
		fprintf(stderr, "slow-fs: cannot open '%s'\n", argv[0]);
		return EXIT_FAILURE;
	}
	status = serve(&fs, argv[1]);
	(void)close(fs.top_fd);
	return status;
}
