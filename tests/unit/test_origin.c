/* SPDX-License-Identifier: MIT */
/*
 * One suite for all origins: each test runs on every row of `setups`, which
 * all show the same tree. Tests of what only the posix origin can show run on
 * the rows that end in one.
 */
#include "origin_fixture.h"

#include <sched.h>
#include <sys/mount.h>

#define POSIX 1u
#define DIRECT 2u

static const struct setup {
	const char *name;
	const char *disable; /* features */
	unsigned flags;
	int retry;	   /* put a retry on top */
	const char *fault; /* and a fault below that, or NULL */
} setups[] = {
	{"posix", "", POSIX | DIRECT, 0, NULL},
	{"posix buffered", "direct_io", POSIX, 0, NULL},
	{"posix threads", "io_uring", POSIX | DIRECT, 0, NULL},
	{"posix plain", "all", POSIX, 0, NULL},
	{"retry of posix", "", POSIX, 1, NULL},
	{"fault of posix", "", POSIX, 0, ""},
	{"retry of faulty posix", "", POSIX, 1,
		"error=0.2,short=0.2,delay=2ms,seed=3"},
	{"retry of faulty posix plain", "all", POSIX, 1,
		"error=0.2,short=0.2,meta=1,seed=4"},
	{"synthetic", "", 0, 0, NULL},
	{"retry of slow synthetic", "", 0, 1, "rate=1G,delay=1ms,meta=1"},
};
#define SETUPS ((int)(sizeof(setups) / sizeof(setups[0])))

static struct origin *o;
static struct timers *timers;
static struct counters counters;
/* So many that a request that gives up is a failure of the test. */
static const struct retry_config tries = {
	.attempts = 40, .pause_ns = NS_PER_MS};

static void setup_source(void)
{
	make_source();
	ck_assert_int_eq(timers_new(&timers), 0);
}

static void teardown_source(void)
{
	timers_free(timers);
	remove_source();
}

static void open_row(int row)
{
	const struct setup *s = &setups[row];
	struct error err = {""};
	int rc;

	setenv("REFRAIN_DISABLE", s->disable, 1);
	if (s->flags & POSIX)
		rc = origin_posix_new(&o, source, &err);
	else
		rc = origin_synthetic_new(&o, SPEC, &err);
	ck_assert_msg(rc == 0, "%s: %s", s->name, err.msg);
	if (s->fault)
		ck_assert_msg(
			origin_fault_new(&o, o, s->fault, timers, &err) == 0,
			"%s", err.msg);
	if (s->retry)
		ck_assert_int_eq(origin_retry_new(&o, o, &tries, timers,
					 &counters, &err),
			0);
}

/* The rows over the posix origin come before the others. */
static bool is_posix(int row)
{
	return setups[row].flags & POSIX;
}

static void close_row(void)
{
	origin_free(o);
	o = NULL;
}

/* -- What every origin does -- */

START_TEST(test_origin_reads_a_whole_file)
{
	open_row(_i);
	for (unsigned i = 0; i < FILES; i++) {
		unsigned char *data;

		ck_assert_int_eq(read_once(o, file_path(i), version, 0,
					 SIZE_BYTES, &data),
			SIZE_BYTES);
		check_bytes(file_path(i), 0, SIZE_BYTES, data);
		free(data);
	}
	close_row();
}
END_TEST

static const struct {
	uint64_t off;
	size_t len;
} ranges[] = {{0, 1}, {1, 1}, {511, 2}, {4095, 2}, {4096, 4096}, {4097, 4095},
	{0, 4097}, {12345, 54321}, {65535, 65538}, {299999, 2}, {300000, 1},
	{294912, 5089}, {1, 300000}, {7, 9}, {262144, 37857}};

START_TEST(test_origin_reads_any_odd_range)
{
	struct origin_file *f;

	open_row(_i);
	f = origin_file_new(o, file_path(4));
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct read_wait w;

		read_begin(o, &w, f, version, ranges[i].off, ranges[i].len);
		ck_assert_int_eq(read_end(&w), (int)ranges[i].len);
		check_bytes(file_path(4), ranges[i].off, ranges[i].len, w.data);
		free(w.data);
	}
	origin_file_free(o, f);
	close_row();
}
END_TEST

#define PARALLEL 300

START_TEST(test_origin_answers_many_parallel_reads_once_each)
{
	struct read_wait *w = calloc(PARALLEL, sizeof(*w));
	struct origin_file *f[FILES];

	open_row(_i);
	for (unsigned i = 0; i < FILES; i++)
		f[i] = origin_file_new(o, file_path(i));
	for (unsigned i = 0; i < PARALLEL; i++)
		read_begin(o, &w[i], f[i % FILES], version, i * 731, 40000);
	for (unsigned i = 0; i < PARALLEL; i++) {
		ck_assert_int_eq(read_end(&w[i]), 40000);
		check_bytes(file_path(i % FILES), i * 731, 40000, w[i].data);
		free(w[i].data);
	}
	for (unsigned i = 0; i < FILES; i++)
		origin_file_free(o, f[i]);
	close_row();
	for (unsigned i = 0; i < PARALLEL; i++)
		ck_assert_uint_eq(w[i].done, 1);
	free(w);
}
END_TEST

START_TEST(test_origin_refuses_another_version)
{
	struct file_version larger = {SIZE_BYTES + 1, MTIME_NS};
	struct file_version newer = {SIZE_BYTES, MTIME_NS + 1};

	open_row(_i);
	ck_assert_int_eq(
		read_once(o, file_path(0), larger, 0, 100, NULL), -ESTALE);
	ck_assert_int_eq(
		read_once(o, file_path(0), newer, 0, 100, NULL), -ESTALE);
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 100, NULL), 100);
	close_row();
}
END_TEST

START_TEST(test_origin_tells_missing_names)
{
	struct stat_wait s;
	struct list_wait l;

	open_row(_i);
	ck_assert_int_eq(stat_once(o, "nothing", &s), -ENOENT);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -ENOENT);
	ck_assert_int_eq(list_once(o, "nothing", &l), -ENOENT);
	list_forget(&l);
	ck_assert_int_eq(list_once(o, file_path(0), &l), -ENOTDIR);
	list_forget(&l);
	ck_assert_int_eq(
		read_once(o, "d0000/nothing", version, 0, 1, NULL), -ESTALE);
	close_row();
}
END_TEST

static unsigned walk(const char *dir)
{
	struct list_wait l;
	unsigned files = 0;

	ck_assert_int_eq(list_once(o, dir, &l), 0);
	for (size_t i = 0; i < l.n; i++) {
		struct stat_wait s;
		char path[256];

		(void)snprintf(path, sizeof(path), "%s%s%s", dir,
			*dir ? "/" : "", l.seen[i].name);
		ck_assert_int_eq(stat_once(o, path, &s), 0);
		ck_assert(s.attr.kind == l.seen[i].attr.kind);
		ck_assert(
			version_equal(s.attr.version, l.seen[i].attr.version));
		ck_assert_uint_eq(s.attr.mode, l.seen[i].attr.mode);
		ck_assert_uint_eq(s.attr.uid, l.seen[i].attr.uid);
		ck_assert_uint_eq(s.attr.gid, l.seen[i].attr.gid);
		if (s.attr.kind == KIND_DIR)
			files += walk(path);
		else
			ck_assert(version_equal(s.attr.version, version));
		files += s.attr.kind == KIND_FILE;
	}
	list_forget(&l);
	return files;
}

START_TEST(test_origin_lists_what_its_stats_say)
{
	struct stat_wait s;

	open_row(_i);
	ck_assert_uint_eq(walk(""), FILES);
	ck_assert_int_eq(stat_once(o, "", &s), 0);
	ck_assert(s.attr.kind == KIND_DIR);
	close_row();
}
END_TEST

static const char *const escapes[] = {"..", "../x", "d0000/../../x", "/",
	"/etc/passwd", "d0000/..", "./d0000", "d0000//f000000.bin", "d0000/",
	"."};

START_TEST(test_origin_names_nothing_outside_its_source)
{
	open_row(_i);
	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
		struct stat_wait s;
		struct list_wait l;

		ck_assert_int_lt(stat_once(o, escapes[i], &s), 0);
		ck_assert_int_lt(list_once(o, escapes[i], &l), 0);
		ck_assert_uint_eq(l.n, 0);
		ck_assert_int_lt(
			read_once(o, escapes[i], version, 0, 1, NULL), 0);
	}
	close_row();
}
END_TEST

START_TEST(test_origin_answers_abandoned_reads_once)
{
	struct read_wait *w = calloc(PARALLEL, sizeof(*w));
	struct origin_file *f;

	open_row(_i);
	f = origin_file_new(o, file_path(1));
	for (unsigned i = 0; i < PARALLEL; i++) {
		read_begin(o, &w[i], f, version, i, 70000);
		if (i % 2)
			origin_read_abandon(o, &w[i].r);
	}
	for (unsigned i = 0; i < PARALLEL; i++)
		origin_read_abandon(o, &w[i].r);
	for (unsigned i = 0; i < PARALLEL; i++) {
		int status = read_end(&w[i]);

		ck_assert(status == -ECANCELED || status == 70000);
		if (status > 0)
			check_bytes(file_path(1), i, 70000, w[i].data);
		free(w[i].data);
	}
	origin_file_free(o, f);
	close_row();
	for (unsigned i = 0; i < PARALLEL; i++)
		ck_assert_uint_eq(w[i].done, 1);
	free(w);
}
END_TEST

/* -- What only a directory can show -- */

START_TEST(test_posix_lists_an_empty_directory)
{
	struct list_wait l;

	if (!is_posix(_i))
		return;
	ck_assert_int_eq(mkdir(in_source("empty"), 0755), 0);
	open_row(_i);
	ck_assert_int_eq(list_once(o, "empty", &l), 0);
	ck_assert_uint_eq(l.n, 0);
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_takes_any_bytes_as_names)
{
	char longest[NAME_MAX + 1];
	const char *names[] = {"\xff\xfe \n*", "-rf", longest, "..."};
	struct list_wait l;

	if (!is_posix(_i))
		return;
	memset(longest, 'x', NAME_MAX);
	longest[NAME_MAX] = '\0';
	ck_assert_int_eq(mkdir(in_source("odd"), 0755), 0);
	open_row(_i);
	for (size_t i = 0; i < 4; i++) {
		char path[NAME_MAX + 8];
		unsigned char *data;

		(void)snprintf(path, sizeof(path), "odd/%s", names[i]);
		put_file(path, "any", SEED, SIZE_BYTES, MTIME_NS);
		ck_assert_int_eq(
			read_once(o, path, version, 5, 7000, &data), 7000);
		check_bytes("any", 5, 7000, data);
		free(data);
	}
	ck_assert_int_eq(list_once(o, "odd", &l), 0);
	ck_assert_uint_eq(l.n, 4);
	ck_assert_str_eq(l.seen[3].name, names[0]);
	ck_assert_str_eq(l.seen[2].name, longest);
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_reads_deep_paths)
{
	char path[4000] = "";
	unsigned char *data;

	if (!is_posix(_i))
		return;
	for (unsigned i = 0; i < 300; i++) {
		strcat(path, i ? "/deepdeep" : "deepdeep");
		ck_assert_int_eq(mkdir(in_source(path), 0755), 0);
	}
	strcat(path, "/file");
	put_file(path, "any", SEED, SIZE_BYTES, MTIME_NS);
	open_row(_i);
	ck_assert_int_eq(
		read_once(o, path, version, 0, SIZE_BYTES, &data), SIZE_BYTES);
	check_bytes("any", 0, SIZE_BYTES, data);
	free(data);
	close_row();
}
END_TEST

START_TEST(test_posix_shows_links_and_never_follows_them)
{
	struct stat_wait s;
	struct list_wait l;

	if (!is_posix(_i))
		return;
	ck_assert_int_eq(symlink("/etc", in_source("out")), 0);
	ck_assert_int_eq(symlink("d0000", in_source("in")), 0);
	ck_assert_int_eq(symlink("/etc/passwd", in_source("passwd")), 0);
	ck_assert_int_eq(mkfifo(in_source("fifo"), 0644), 0);
	open_row(_i);
	ck_assert_int_eq(stat_once(o, "out", &s), 0);
	ck_assert(s.attr.kind == KIND_LINK);
	ck_assert_str_eq(s.target, "/etc");
	ck_assert_int_lt(stat_once(o, "out/passwd", &s), 0);
	ck_assert_int_lt(stat_once(o, "in/f000000.bin", &s), 0);
	ck_assert_int_eq(stat_once(o, "fifo", &s), -ENOENT);
	ck_assert_int_lt(list_once(o, "out", &l), 0);
	ck_assert_uint_eq(l.n, 0);
	ck_assert_int_lt(read_once(o, "out/passwd", version, 0, 1, NULL), 0);
	ck_assert_int_lt(read_once(o, "passwd", version, 0, 1, NULL), 0);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 5); /* without the fifo */
	ck_assert_str_eq(l.seen[2].name, "in");
	ck_assert_str_eq(l.seen[2].target, "d0000");
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_lists_a_large_directory_whole)
{
	struct list_wait l;

	if (!is_posix(_i))
		return;
	ck_assert_int_eq(mkdir(in_source("large"), 0755), 0);
	for (unsigned i = 0; i < 5000; i++) {
		char name[64];
		int fd;

		(void)snprintf(name, sizeof(name), "large/%05u", i);
		fd = open(in_source(name), O_WRONLY | O_CREAT, 0640);
		ck_assert_int_ge(fd, 0);
		close(fd);
	}
	open_row(_i);
	ck_assert_int_eq(list_once(o, "large", &l), 0);
	ck_assert_uint_eq(l.n, 5000);
	for (unsigned i = 0; i < 5000; i++) {
		ck_assert_int_eq(atoi(l.seen[i].name), (int)i);
		ck_assert(l.seen[i].attr.kind == KIND_FILE);
		ck_assert_uint_eq(l.seen[i].attr.mode, 0640);
	}
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_never_delivers_a_changed_file)
{
	struct file_version newer = {SIZE_BYTES, MTIME_NS + 1};
	const char *path = file_path(0);
	struct origin_file *f;
	struct read_wait w;

	if (!is_posix(_i))
		return;
	open_row(_i);
	f = origin_file_new(o, path);
	read_begin(o, &w, f, version, 0, 1000); /* opens the file */
	ck_assert_int_eq(read_end(&w), 1000);
	free(w.data);

	/* Replaced: the open one still has its bytes; the new one is read. */
	put_file(path, "other", SEED, SIZE_BYTES, MTIME_NS + 1);
	read_begin(o, &w, f, version, 1000, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes(path, 1000, 1000, w.data);
	free(w.data);
	read_begin(o, &w, f, newer, 0, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes("other", 0, 1000, w.data);
	free(w.data);
	read_begin(o, &w, f, version, 0, 1000);
	ck_assert_int_eq(read_end(&w), -ESTALE);

	/* Truncated in place, and gone. */
	ck_assert_int_eq(truncate(in_source(path), 10), 0);
	read_begin(o, &w, f, newer, 0, 1000);
	ck_assert_int_eq(read_end(&w), -ESTALE);
	ck_assert_int_eq(unlink(in_source(path)), 0);
	read_begin(o, &w, f, newer, 0, 1000);
	ck_assert_int_eq(read_end(&w), -ESTALE);
	origin_file_free(o, f);
	close_row();
}
END_TEST

static int64_t wall_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

struct rewriter {
	_Atomic bool stop;
	_Atomic unsigned rounds;
	int64_t slowest_ns; /* the writer's, until it is joined */
	const char *path;   /* set once, as fd */
	int fd;
};

/*
 * Round i leaves nothing but bytes of value i; every second one gets an mtime
 * that says so, the others keep that of their write.
 */
static void *rewrite(void *arg)
{
	struct rewriter *rw = arg;
	unsigned char *bytes = malloc(SIZE_BYTES);

	for (unsigned i = 1; !rw->stop; i++) {
		struct timespec ts[2] = {
			{0, UTIME_OMIT}, {MTIME_NS / 1000000000, i}};
		int64_t took_ns = -wall_now_ns();

		memset(bytes, (int)(i & 0xff), SIZE_BYTES);
		(void)!pwrite(rw->fd, bytes, SIZE_BYTES, 0);
		took_ns += wall_now_ns();
		if (took_ns > rw->slowest_ns)
			rw->slowest_ns = took_ns;
		if (i % 2)
			(void)futimens(rw->fd, ts);
		rw->rounds = i;
	}
	free(bytes);
	return NULL;
}

/* Whether the origin delivered that version of the file and nothing else. */
static bool is_one_version(
	const char *path, struct file_version v, const unsigned char *data)
{
	uint64_t round = (uint64_t)(v.mtime_ns - MTIME_NS);

	if (round == 0) {
		check_bytes(path, 0, SIZE_BYTES, data);
		return true;
	}
	return memcmp(data, data + 1, SIZE_BYTES - 1) == 0 &&
		(round > UINT32_MAX || data[0] == (round & 0xff));
}

#define LOOKS 32

/* Look and read, many times; how many were delivered, and how many mixed. */
static unsigned read_versions(const char *path, unsigned *mixed)
{
	struct read_wait w[LOOKS];
	struct origin_file *f = origin_file_new(o, path);
	unsigned delivered = 0;

	for (unsigned i = 0; i < LOOKS; i++) {
		struct stat_wait s;

		ck_assert_int_eq(stat_once(o, path, &s), 0);
		read_begin(o, &w[i], f, s.attr.version, 0, SIZE_BYTES);
	}
	for (unsigned i = 0; i < LOOKS; i++) {
		int status = read_end(&w[i]);

		ck_assert(status == -ESTALE || status == SIZE_BYTES);
		if (status > 0) {
			delivered++;
			*mixed += !is_one_version(path, w[i].r.want, w[i].data);
		}
		free(w[i].data);
	}
	origin_file_free(o, f);
	return delivered;
}

START_TEST(test_posix_never_mixes_versions_in_mid_read)
{
	struct rewriter rw = {.path = file_path(0)};
	unsigned mixed = 0;
	pthread_t writer;

	if (!is_posix(_i))
		return;
	open_row(_i);
	rw.fd = open(in_source(rw.path), O_WRONLY);
	ck_assert_int_ge(rw.fd, 0);
	ck_assert_int_eq(pthread_create(&writer, NULL, rewrite, &rw), 0);
	for (unsigned i = 0; i < 2 || rw.rounds < 20; i++)
		(void)read_versions(rw.path, &mixed);
	rw.stop = true;
	pthread_join(writer, NULL);
	close(rw.fd);
	/* A write that takes longer than a version has to settle is a limit. */
	ck_assert(mixed == 0 || rw.slowest_ns > 90 * 1000000);
	/* The last version stays, however young it is. */
	mixed = 0;
	ck_assert_uint_eq(read_versions(rw.path, &mixed), LOOKS);
	ck_assert_uint_eq(mixed, 0);
	close_row();
}
END_TEST

START_TEST(test_posix_lets_a_young_version_settle)
{
	struct file_version young = {SIZE_BYTES, wall_now_ns()};

	if (!is_posix(_i))
		return;
	put_file("young", "any", SEED, SIZE_BYTES, young.mtime_ns);
	open_row(_i);
	ck_assert_int_eq(read_once(o, "young", young, 0, 100, NULL), 100);
	ck_assert_int_ge(wall_now_ns() - young.mtime_ns, 100 * 1000000);
	close_row();
}
END_TEST

START_TEST(test_posix_abandons_reads_of_young_versions)
{
	struct read_wait *w = calloc(PARALLEL, sizeof(*w));
	struct file_version young;
	struct origin_file *f;

	if (!is_posix(_i)) {
		free(w);
		return;
	}
	open_row(_i);
	young = (struct file_version){SIZE_BYTES, wall_now_ns()};
	put_file("young", "any", SEED, SIZE_BYTES, young.mtime_ns);
	f = origin_file_new(o, "young");
	for (unsigned i = 0; i < PARALLEL; i++)
		read_begin(o, &w[i], f, young, i, 1000);
	/* Before they begin, and again when those that are left do. */
	for (unsigned i = 0; i < PARALLEL; i += 2)
		origin_read_abandon(o, &w[i].r);
	ck_assert_int_eq(read_end(&w[1]), 1000);
	for (unsigned i = 3; i < PARALLEL; i += 4)
		origin_read_abandon(o, &w[i].r);
	for (unsigned i = 0; i < PARALLEL; i++) {
		int status = read_end(&w[i]);

		ck_assert(status == -ECANCELED || status == 1000);
		free(w[i].data);
	}
	origin_file_free(o, f);
	close_row();
	for (unsigned i = 0; i < PARALLEL; i++)
		ck_assert_uint_eq(w[i].done, 1);
	free(w);
}
END_TEST

START_TEST(test_posix_does_not_wait_for_a_far_future)
{
	struct file_version v = {
		SIZE_BYTES, wall_now_ns() + INT64_C(3600000000000)};
	struct file_version last = {SIZE_BYTES, INT64_MAX};

	if (!is_posix(_i))
		return;
	put_file("future", "any", SEED, SIZE_BYTES, v.mtime_ns);
	open_row(_i);
	ck_assert_int_eq(read_once(o, "future", v, 0, 100, NULL), 100);
	ck_assert_int_eq(read_once(o, "future", last, 0, 1, NULL), -ESTALE);
	close_row();
}
END_TEST

START_TEST(test_posix_says_io_error_when_its_source_went_away)
{
	struct stat_wait s;
	struct list_wait l;
	char away[sizeof(source) + 8];

	if (!is_posix(_i))
		return;
	open_row(_i);
	(void)snprintf(away, sizeof(away), "%s.away", source);
	ck_assert_int_eq(rename(source, away), 0);
	ck_assert_int_eq(mkdir(source, 0755), 0);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -EIO);
	ck_assert_int_eq(list_once(o, "nothing", &l), -EIO);
	ck_assert_int_eq(list_once(o, "", &l), -EIO);
	list_forget(&l);
	ck_assert_int_eq(
		read_once(o, "d0000/nothing", version, 0, 1, NULL), -EIO);
	ck_assert_int_eq(rmdir(source), 0);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -EIO);
	ck_assert_int_eq(rename(away, source), 0);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -ENOENT);
	close_row();
}
END_TEST

/* Mounts of this thread, and of those that it starts, are its own now. */
static bool own_mounts(void)
{
	if (unshare(CLONE_NEWNS) == 0 &&
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		return true;
	(void)fprintf(stderr, "skipped: mounting takes root\n");
	return false;
}

/* The fixture's source is the directory m in it, for a while. */
static void enter_storage(void)
{
	strcat(source, "/m");
}

static void leave_storage(void)
{
	*strrchr(source, '/') = '\0';
}

/* Storage with one file. */
static void mount_storage(const char *file, const char *like)
{
	enter_storage();
	ck_assert_int_eq(mount("refrain", source, "tmpfs", 0, "size=4m"), 0);
	put_file(file, like, SEED, SIZE_BYTES, MTIME_NS);
	leave_storage();
}

static void unmount_storage(void)
{
	ck_assert_int_eq(umount2(in_source("m"), MNT_DETACH), 0);
}

static void open_storage(int row)
{
	enter_storage();
	open_row(row);
	leave_storage();
}

/* What a stat says in the end, when it says -EIO at first. */
static int stat_again(const char *path)
{
	struct stat_wait s;

	if (stat_once(o, path, &s) != -EIO)
		return s.status;
	return stat_once(o, path, &s);
}

START_TEST(test_posix_goes_on_when_its_source_is_mounted_again)
{
	struct origin_file *f;
	struct stat_wait s;
	struct list_wait l;
	struct read_wait w;

	ck_assert_int_eq(mkdir(in_source("m"), 0755), 0);
	if (!own_mounts())
		return;
	mount_storage("f", "before");
	open_storage(_i);
	f = origin_file_new(o, "f");
	read_begin(o, &w, f, version, 0, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes("before", 0, 1000, w.data);
	free(w.data);

	/* The bare directory is no empty dataset. */
	unmount_storage();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(stat_once(o, "nothing", &s), -EIO);
		ck_assert_int_eq(list_once(o, "", &l), -EIO);
		list_forget(&l);
		ck_assert_int_eq(
			read_once(o, "nothing", version, 0, 1, NULL), -EIO);
	}

	mount_storage("f", "after");
	ck_assert_int_eq(stat_again("nothing"), -ENOENT);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 1);
	list_forget(&l);
	/* An open file is of the old storage, whatever it looks like. */
	read_begin(o, &w, f, version, 0, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes("after", 0, 1000, w.data);
	free(w.data);
	origin_file_free(o, f);
	close_row();
	unmount_storage();
}
END_TEST

START_TEST(test_posix_takes_no_other_directory_for_its_source)
{
	struct stat_wait s;
	struct list_wait l;

	ck_assert_int_eq(mkdir(in_source("m"), 0755), 0);
	ck_assert_int_eq(mkdir(in_source("other"), 0755), 0);
	if (!own_mounts())
		return;
	mount_storage("f", "before");
	open_storage(_i);
	unmount_storage();
	/* Another inode, then another type of file system. */
	for (unsigned i = 0; i < 2; i++) {
		const char *type = i ? "ramfs" : NULL;
		char other[128];

		(void)snprintf(other, sizeof(other), "%s/other", source);
		ck_assert_int_eq(mount(other, in_source("m"), type,
					 type ? 0 : MS_BIND, NULL),
			0);
		ck_assert_int_eq(stat_once(o, "f.no", &s), -EIO);
		ck_assert_int_eq(stat_once(o, "f.no", &s), -EIO);
		ck_assert_int_eq(list_once(o, "", &l), -EIO);
		list_forget(&l);
		unmount_storage();
	}
	close_row();
}
END_TEST

/* -- The rest -- */

START_TEST(test_posix_refuses_what_is_no_directory)
{
	struct error err = {""};

	ck_assert_int_eq(origin_posix_new(&o, in_source("no"), &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "mounted"));
	ck_assert_int_eq(
		origin_posix_new(&o, in_source(file_path(0)), &err), -ENOTDIR);
}
END_TEST

START_TEST(test_synthetic_makes_names_without_keeping_them)
{
	struct stat_wait s;
	struct list_wait l;

	ck_assert_int_eq(
		origin_synthetic_new(&o, "files=1300000,size=110K", NULL), 0);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 1300);
	list_forget(&l);
	ck_assert_int_eq(list_once(o, "d1299", &l), 0);
	ck_assert_uint_eq(l.n, 1000);
	ck_assert_str_eq(l.seen[999].name, "f1299999.bin");
	list_forget(&l);
	ck_assert_int_eq(stat_once(o, "d1299/f1299999.bin", &s), 0);
	ck_assert_uint_eq(s.attr.version.size_bytes, 110 * 1024);
	ck_assert_int_eq(stat_once(o, "d1299/f1300000.bin", &s), -ENOENT);
	ck_assert_int_eq(stat_once(o, "d1298/f1299999.bin", &s), -ENOENT);
	origin_free(o);
}
END_TEST

static const char *const bad_specs[] = {"", "files=1", "size=1", "files",
	"files=x,size=1", "files=1,size=1,colour=red",
	"files=1,size=1,seed=", "files=999999999999999,size=1"};

START_TEST(test_synthetic_refuses_bad_specifications)
{
	struct error err = {""};

	ck_assert_int_lt(origin_synthetic_new(&o, bad_specs[_i], &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "synthetic:"));
}
END_TEST

static void add_all_rows(TCase *tc)
{
	tcase_add_loop_test(tc, test_origin_reads_a_whole_file, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_reads_any_odd_range, 0, SETUPS);
	tcase_add_loop_test(tc,
		test_origin_answers_many_parallel_reads_once_each, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_refuses_another_version, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_tells_missing_names, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_lists_what_its_stats_say, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_names_nothing_outside_its_source, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_answers_abandoned_reads_once, 0, SETUPS);
}

static void add_posix_rows(TCase *tc)
{
	tcase_add_loop_test(tc, test_posix_lists_an_empty_directory, 0, SETUPS);
	tcase_add_loop_test(tc, test_posix_takes_any_bytes_as_names, 0, SETUPS);
	tcase_add_loop_test(tc, test_posix_reads_deep_paths, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_posix_shows_links_and_never_follows_them, 0, SETUPS);
	tcase_add_loop_test(tc, test_posix_lists_a_large_directory_whole, 0, 4);
}

static TCase *away_case(void)
{
	TCase *tc = tcase_create("away");

	tcase_add_checked_fixture(tc, setup_source, teardown_source);
	tcase_add_loop_test(
		tc, test_posix_says_io_error_when_its_source_went_away, 0, 4);
	tcase_add_loop_test(
		tc, test_posix_goes_on_when_its_source_is_mounted_again, 0, 4);
	tcase_add_loop_test(
		tc, test_posix_takes_no_other_directory_for_its_source, 0, 4);
	return tc;
}

static TCase *versions_case(void)
{
	TCase *tc = tcase_create("versions");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_source, teardown_source);
	tcase_add_loop_test(
		tc, test_posix_never_delivers_a_changed_file, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_posix_never_mixes_versions_in_mid_read, 0, 4);
	tcase_add_loop_test(tc, test_posix_lets_a_young_version_settle, 0, 5);
	tcase_add_loop_test(
		tc, test_posix_abandons_reads_of_young_versions, 0, 5);
	tcase_add_loop_test(
		tc, test_posix_does_not_wait_for_a_far_future, 0, 5);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("origin");
	TCase *tc = tcase_create("origin");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_source, teardown_source);
	add_all_rows(tc);
	add_posix_rows(tc);
	tcase_add_test(tc, test_posix_refuses_what_is_no_directory);
	tcase_add_test(tc, test_synthetic_makes_names_without_keeping_them);
	tcase_add_loop_test(tc, test_synthetic_refuses_bad_specifications, 0,
		(int)(sizeof(bad_specs) / sizeof(bad_specs[0])));
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, versions_case());
	suite_add_tcase(suite, away_case());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
