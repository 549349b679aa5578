/* SPDX-License-Identifier: MIT */
/*
 * Tests of the store against a model of it in memory: long random sequences of
 * everything that may happen to a cache, including kill -9. After each step the
 * counts of store and model must be equal, and no wrong byte may ever be
 * returned.
 *
 * REFRAIN_TEST_SEED repeats a run (except for the moments of kills),
 * REFRAIN_TEST_STEPS makes it longer, and TMPDIR puts it on a disk.
 */
#include "store_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/format/entry.h"
#include "suite.h"

#define KEYS 40
#define TIERS 2
#define HELD_MAX 3

static const char *const tier_sizes[TIERS] = {"300K", "1M"};

struct model_entry {
	struct hash128 key;
	uint64_t size;
	bool resident; /* the store counts the entry as resident */
	/* the entry was deleted outside the store, which has not noticed it yet
	 */
	bool deleted;
	bool ruined;  /* no read of the entry can succeed */
	bool flipped; /* one block of the entry's content is wrong */
	uint64_t block;
	size_t tier;
};

struct model {
	struct fixture fx;
	struct model_entry entries[KEYS];
	struct reservation held[HELD_MAX];
	size_t nheld;
	uint64_t held_size[HELD_MAX];
	uint64_t capacity[TIERS];
	uint64_t block_bytes;
	uint64_t lost, damaged, invalidated, kills;
	uint64_t random;
};

static struct model m;

static uint64_t pick(uint64_t n)
{
	m.random = hash64(&m.random, sizeof(m.random), 1);
	return m.random % n;
}

static uint64_t charge_of(uint64_t size)
{
	uint64_t n = size + (size + 65535) / 65536 * 8 + 48;

	return (n + m.block_bytes - 1) / m.block_bytes * m.block_bytes;
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void open_model(void)
{
	int rc = fixture_open(&m.fx, TIERS, tier_sizes);

	ck_assert_msg(rc == 0, "%s", m.fx.err.msg);
}

static void setup(void)
{
	struct tier_status st;
	struct statvfs fs;

	memset(&m, 0, sizeof(m));
	fixture_init(&m.fx);
	ck_assert_int_eq(statvfs(m.fx.root, &fs), 0);
	m.block_bytes = fs.f_frsize;
	m.random = env_number("REFRAIN_TEST_SEED", clock_now_ns());
	printf("seed %" PRIu64 "\n", m.random);
	(void)fflush(stdout);
	for (size_t i = 0; i < KEYS; i++) {
		static const uint64_t bounds[] = {
			1, 5000, 65536, 65537, 150000, 200000};
		uint64_t bound = bounds[pick(6)];

		m.entries[i].key = fixture_key(i);
		m.entries[i].size = bound - pick(bound < 3 ? bound : 3);
	}
	open_model();
	store_wait_ready(m.fx.store);
	for (size_t t = 0; t < TIERS; t++) {
		store_tier_status(m.fx.store, t, &st);
		m.capacity[t] = st.capacity_bytes;
	}
}

static void teardown(void)
{
	fixture_release(&m.fx);
}

static const char *path_of(const struct model_entry *e, char buf[256])
{
	return fixture_path(&m.fx, e->tier, e->key, e->size, buf);
}

/* -- what must hold -- */

static void check_tier(size_t t)
{
	uint64_t used = 0, reserved = 0, resident = 0, entries = 0;
	struct tier_status st;

	for (const struct model_entry *e = m.entries; e < m.entries + KEYS;
		e++) {
		if (!e->resident || e->tier != t)
			continue;
		used += charge_of(e->size);
		resident += e->size;
		entries++;
	}
	for (size_t i = 0; i < m.nheld; i++)
		if (m.held[i].tier == t)
			reserved += m.held[i].charged_bytes;
	store_tier_status(m.fx.store, t, &st);
	ck_assert_uint_eq(st.used_bytes, used);
	ck_assert_uint_eq(st.reserved_bytes, reserved);
	ck_assert_uint_eq(st.resident_bytes, resident);
	ck_assert_uint_eq(st.entries, entries);
	ck_assert_uint_le(st.used_bytes + st.reserved_bytes, m.capacity[t]);
}

static void check_state(void)
{
	for (size_t t = 0; t < TIERS; t++)
		check_tier(t);
	ck_assert_uint_eq(fixture_count(&m.fx.counters.evictions), 0);
	ck_assert_uint_eq(fixture_count(&m.fx.counters.tier_errors), 0);
	ck_assert_uint_eq(fixture_count(&m.fx.counters.entries_lost), m.lost);
	ck_assert_uint_eq(
		fixture_count(&m.fx.counters.checksum_errors), m.damaged);
	ck_assert_uint_eq(
		fixture_count(&m.fx.counters.invalidated), m.invalidated);
}

/* Find the model's entry with this name. */
static const struct model_entry *find_name(
	size_t t, unsigned int sub, const char *name)
{
	struct hash128 key;
	uint64_t size;

	if (!entry_parse_name(name, sub, &key, &size))
		return NULL;
	for (const struct model_entry *e = m.entries; e < m.entries + KEYS; e++)
		if (e->resident && !e->deleted && e->tier == t &&
			e->size == size && e->key.hi == key.hi &&
			e->key.lo == key.lo)
			return e;
	return NULL;
}

/* Check the files in a sub-directory; each file must be an entry of the model.
 * Returns their number. */
static uint64_t check_subdir(size_t t, const char *name, unsigned int sub)
{
	char path[200];
	CLEANUP_DIR DIR *dir = NULL;
	const struct dirent *e;
	uint64_t n = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", m.fx.dirs[t], name);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		ck_assert_msg(find_name(t, sub, e->d_name) != NULL,
			"orphan %s/%s", path, e->d_name);
		n++;
	}
	return n;
}

static void check_disk(void)
{
	for (size_t t = 0; t < TIERS; t++) {
		uint64_t files = 0, want = 0;
		char name[3];

		for (unsigned int sub = 0; sub < 256; sub++) {
			(void)snprintf(name, sizeof(name), "%02x", sub & 0xff);
			files += check_subdir(t, name, sub);
		}
		ck_assert_uint_eq(check_subdir(t, "tmp", 256), 0);
		for (size_t i = 0; i < KEYS; i++)
			want += m.entries[i].resident &&
				!m.entries[i].deleted && m.entries[i].tier == t;
		ck_assert_uint_eq(files, want);
	}
}

/* -- steps -- */

static void model_drop(struct model_entry *e)
{
	e->resident = e->deleted = e->ruined = e->flipped = false;
}

static struct model_entry *any_entry(void)
{
	return &m.entries[pick(KEYS)];
}

/* Returns any entry that is on disk and undamaged, or NULL. */
static struct model_entry *any_sound(void)
{
	for (int tries = 0; tries < 20; tries++) {
		struct model_entry *e = any_entry();

		if (e->resident && !e->deleted && !e->ruined && !e->flipped)
			return e;
	}
	return NULL;
}

/* Reserve, and check that the tier or the error is that of the model. */
static int reserve(uint64_t size, struct reservation *r)
{
	uint64_t held[TIERS] = {0};
	size_t t = 0;
	int rc = store_reserve(m.fx.store, size, r);

	for (size_t i = 0; i < KEYS; i++)
		if (m.entries[i].resident)
			held[m.entries[i].tier] += charge_of(m.entries[i].size);
	for (size_t i = 0; i < m.nheld; i++)
		held[m.held[i].tier] += m.held[i].charged_bytes;
	while (t < TIERS && held[t] + charge_of(size) > m.capacity[t])
		t++;
	ck_assert_int_eq(rc, t < TIERS ? 0 : -ENOSPC);
	if (rc == 0)
		ck_assert_uint_eq(r->tier, t);
	return rc;
}

static void publish(struct model_entry *e, struct reservation *r)
{
	unsigned char *p = fixture_bytes(e->key, e->size);

	ck_assert_int_eq(store_publish(m.fx.store, r, e->key, p, e->size),
		e->resident ? -EEXIST : 0);
	free(p);
	if (e->resident)
		return;
	model_drop(e);
	e->resident = true;
	e->tier = r->tier;
}

static void step_publish(void)
{
	struct model_entry *e = any_entry();
	struct reservation r;

	if (reserve(e->size, &r) == 0)
		publish(e, &r);
}

/* Hold a reservation for a while. */
static void step_hold(void)
{
	struct model_entry *e = any_entry();

	if (m.nheld == HELD_MAX)
		return;
	if (reserve(e->size, &m.held[m.nheld]) == 0)
		m.held_size[m.nheld++] = e->size;
}

static void step_end_hold(void)
{
	struct reservation r;
	uint64_t size;

	if (!m.nheld)
		return;
	r = m.held[--m.nheld];
	size = m.held_size[m.nheld];
	for (size_t i = 0; i < KEYS; i++) {
		if (m.entries[i].size != size || pick(2))
			continue;
		publish(&m.entries[i], &r);
		return;
	}
	store_unreserve(m.fx.store, &r);
}

static void step_read(void)
{
	struct model_entry *e = any_entry();
	uint64_t off = pick(e->size), len = 1 + pick(e->size - off);
	bool bad = e->ruined ||
		(e->flipped && off / 65536 <= e->block &&
			(off + len - 1) / 65536 >= e->block);
	int rc = fixture_get(&m.fx, e->key, e->size, off, (size_t)len);

	ck_assert_int_eq(rc, e->resident && !e->deleted && !bad ? 0 : -ENOENT);
	if (rc == 0 || !e->resident)
		return;
	if (e->deleted)
		m.lost++;
	else
		m.damaged++;
	model_drop(e);
}

static void step_has(void)
{
	struct model_entry *e = any_entry();

	ck_assert_int_eq(store_has(m.fx.store, e->key, e->size), e->resident);
	ck_assert(!store_has(m.fx.store, e->key, e->size + 1));
}

static void step_invalidate(void)
{
	struct model_entry *e = any_entry();

	store_invalidate(m.fx.store, e->key, e->size);
	m.invalidated += e->resident;
	model_drop(e);
}

static void step_flip(void)
{
	struct model_entry *e = any_sound();
	char path[256];
	uint64_t off;

	if (!e)
		return;
	off = pick(e->size + entry_trailer_bytes(e->size));
	fixture_flip(path_of(e, path), (off_t)off, (unsigned int)pick(8));
	e->flipped = off < e->size;
	e->ruined = !e->flipped;
	e->block = off / 65536;
}

static void step_resize(void)
{
	struct model_entry *e = any_sound();
	uint64_t whole, size;
	char path[256];

	if (!e)
		return;
	whole = e->size + entry_trailer_bytes(e->size);
	size = pick(2) ? pick(whole) : whole + 1 + pick(5000);
	ck_assert_int_eq(truncate(path_of(e, path), (off_t)size), 0);
	e->ruined = true;
}

static void step_swap(void)
{
	struct model_entry *a = any_sound(), *b = any_sound();
	char path_a[256], path_b[256], tmp[300];

	if (!a || !b || a == b)
		return;
	(void)snprintf(tmp, sizeof(tmp), "%s/swap", m.fx.root);
	ck_assert_int_eq(rename(path_of(a, path_a), tmp), 0);
	ck_assert_int_eq(rename(path_of(b, path_b), path_a), 0);
	ck_assert_int_eq(rename(tmp, path_b), 0);
	a->ruined = b->ruined = true;
}

static void step_delete(void)
{
	struct model_entry *e = any_entry();
	char path[256];

	if (!e->resident || e->deleted)
		return;
	ck_assert_int_eq(unlink(path_of(e, path)), 0);
	e->deleted = true;
}

/* Keep most entries. Entries published between mark and sweep stay, too. */
static void step_sweep(void)
{
	bool swept[KEYS];
	uint64_t want = 0;

	store_unmark_all(m.fx.store);
	for (size_t i = 0; i < KEYS; i++) {
		struct model_entry *e = &m.entries[i];
		bool kept = pick(4) != 0;
		struct reservation r;

		if (kept)
			store_mark(m.fx.store, e->key);
		else if (!e->resident && pick(4) == 0 &&
			reserve(e->size, &r) == 0) {
			publish(e, &r);
			kept = true;
		}
		swept[i] = e->resident && !kept;
		want += swept[i];
	}
	ck_assert_uint_eq(store_sweep(m.fx.store), want);
	m.invalidated += want;
	for (size_t i = 0; i < KEYS; i++)
		if (swept[i])
			model_drop(&m.entries[i]);
}

static void close_model(void)
{
	while (m.nheld)
		store_unreserve(m.fx.store, &m.held[--m.nheld]);
	fixture_close(&m.fx);
	for (size_t i = 0; i < KEYS; i++)
		if (m.entries[i].deleted)
			model_drop(&m.entries[i]);
}

/* Reopen the store. Some steps run before the directories have been read. */
static void step_reopen(void)
{
	close_model();
	open_model();
	for (uint64_t n = pick(30); n; n--) {
		switch (pick(8)) {
		case 0:
			step_invalidate();
			break;
		case 1:
			step_has();
			break;
		default:
			step_read();
			break;
		}
	}
	store_wait_ready(m.fx.store);
	check_disk();
}

/* Runs in the child: publish and delete entries that the model does not have,
 * until the child is killed. */
static void run_to_be_killed(void)
{
	m.fx.store = NULL;
	if (fixture_open(&m.fx, TIERS, tier_sizes))
		_exit(1);
	store_wait_ready(m.fx.store);
	for (;;) {
		struct model_entry *e = any_entry();

		if (e->resident)
			continue;
		if (pick(4))
			(void)fixture_put(&m.fx, e->key, e->size);
		else
			store_invalidate(m.fx.store, e->key, e->size);
	}
}

static void kill_after(uint64_t ns)
{
	struct timespec ts = {0, (long)ns};
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		run_to_be_killed();
	/* This does not wait for a condition: the moment of the kill is random.
	 */
	(void)nanosleep(&ts, NULL);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

static void step_kill(void)
{
	char path[256];

	close_model();
	kill_after(pick(9) * 1000000 + pick(1000000));
	m.kills++;
	open_model();
	for (size_t i = 0; i < KEYS; i++) {
		struct model_entry *e = &m.entries[i];

		if (e->resident)
			continue;
		e->resident = store_has(m.fx.store, e->key, e->size);
		e->tier = 0;
		if (e->resident && access(path_of(e, path), F_OK) != 0)
			e->tier = 1;
		ck_assert_int_eq(
			fixture_get(&m.fx, e->key, e->size, 0, (size_t)e->size),
			e->resident ? 0 : -ENOENT);
	}
	store_wait_ready(m.fx.store);
	check_disk();
}

static void any_step(void)
{
	static void (*const steps[])(void) = {step_publish, step_publish,
		step_publish, step_publish, step_publish, step_read, step_read,
		step_read, step_read, step_read, step_has, step_hold,
		step_end_hold, step_invalidate, step_flip, step_resize,
		step_swap, step_delete};
	uint64_t n = pick(400);

	if (n < 4)
		step_sweep();
	else if (n < 10)
		step_reopen();
	else if (n < 20)
		step_kill();
	else
		steps[pick(sizeof(steps) / sizeof(steps[0]))]();
}

static void run_model(void)
{
	uint64_t steps = env_number("REFRAIN_TEST_STEPS", 2000);

	for (uint64_t i = 0; i < steps; i++) {
		any_step();
		check_state();
		if (i % 100 == 0)
			check_disk();
	}
	printf("%" PRIu64 " steps, %" PRIu64 " kills, %" PRIu64
	       " damaged, %" PRIu64 " lost, %" PRIu64 " invalidated\n",
		steps, m.kills, m.damaged, m.lost, m.invalidated);
}

START_TEST(test_store_agrees_with_its_model)
{
	run_model();
}
END_TEST

START_TEST(test_store_agrees_with_its_model_without_unnamed_files)
{
	close_model();
	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "all", 1), 0);
	open_model();
	store_wait_ready(m.fx.store);
	run_model();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store_model");
	TCase *tc = case_with(suite, "model", setup, teardown);

	tcase_add_test(tc, test_store_agrees_with_its_model);
	tcase_add_test(
		tc, test_store_agrees_with_its_model_without_unnamed_files);
	return run_suite(suite);
}
