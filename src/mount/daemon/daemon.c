/* SPDX-License-Identifier: MIT */
/* The daemon: builds the parts from the bottom up, serves, and takes the parts
 * down in reverse order. All this runs on the main thread; daemon_process.c has
 * the signal thread. */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cgroup.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/format/key.h"

/* Time limit for a control request after its first byte, and for a peer to read
 * an answer. */
#define PATIENCE_MS 10000

/* -- Functions that parts call ------------------------------------------ */

static int file_path(void *arg, uint64_t cookie, char *buf, size_t size)
{
	const struct mount *m = OBJECT(mount, arg);
	struct node_info info;

	/* Fail for a version that was replaced, because the origin does not
	 * have it any more. */
	if (manifest_get(m->manifest, (node_id)cookie, &info) < 0 ||
		info.retired)
		return -ESTALE;
	return manifest_path(m->manifest, (node_id)cookie, buf, size);
}

static void file_stale(void *arg, uint64_t cookie)
{
	const struct mount *m = OBJECT(mount, arg);

	tree_recheck(m->tree, (node_id)cookie);
}

static void item_passed(void *arg, const struct cache_item *item)
{
	const struct mount *m = OBJECT(mount, arg);

	if (m->pages)
		pages_passed(m->pages, item);
}

static bool planned_file(void *arg, uint64_t cookie, struct cache_item *file)
{
	const struct mount *m = OBJECT(mount, arg);
	struct node_info info;

	if (manifest_get(m->manifest, (node_id)cookie, &info) < 0 ||
		info.retired || info.attr.kind != KIND_FILE)
		return false;
	*file = (struct cache_item){
		.digest = info.digest,
		.version = info.attr.version,
		.cookie = cookie,
	};
	return true;
}

static bool invalidate_item(void *arg, const struct cache_item *item)
{
	struct mount *m = OBJECT(mount, arg);

	cache_invalidate(m->cache, item);
	return true;
}

static void version_ceased(void *arg, const struct node_info *old)
{
	struct mount *m = OBJECT(mount, arg);
	struct node_info now;

	/* If the node has a new version, keep its positions in plans, because
	 * the reader will read the new version. */
	if (manifest_get(m->manifest, old->id, &now) < 0 || now.retired ||
		now.ino == old->ino)
		plans_forget(m->plans, old->id);
	/* The entries of a huge file are too many to delete here. They stay
	 * until a sweep at which the dataset has no huge file. */
	if (!scan_is_huge(m->scan, old))
		(void)scan_items(m->scan, old, invalidate_item, m);
}

static void name_changed(void *arg, node_id dir, const char *name)
{
	const struct mount *m = OBJECT(mount, arg);

	if (m->fs)
		fs_forget_name(m->fs, dir, name);
}

static void attr_changed(void *arg, node_id id)
{
	const struct mount *m = OBJECT(mount, arg);

	if (m->fs)
		fs_forget_attr(m->fs, id);
}

/* Note whether the main thread is waiting for the origin. During such a wait, a
 * signal ends the process at once. */
static void set_asking(struct mount *m, bool asking)
{
	pthread_mutex_lock(&m->life.lock);
	m->life.asking = asking;
	pthread_cond_broadcast(&m->life.cond);
	pthread_mutex_unlock(&m->life.lock);
}

/* -- Building ------------------------------------------------------------ */

static int build_store(struct mount *m, struct error *err)
{
	struct store_config config = {
		.dataset = stack_dataset(m->stack),
		.ntiers = m->options.ntiers,
		/* An analysis reads items that it has cached a minute ago. It
		 * should read them at the speed of memory, so they are not
		 * verified. */
		.verify = m->options.verify && !m->options.hooks,
		.group = m->options.group,
		.write_out = memory_limit() < CGROUP_NO_LIMIT,
		.events = m->events,
	};

	memcpy(config.tiers, m->options.tiers, sizeof(config.tiers));
	for (size_t i = 0; i < config.ntiers; i++)
		config.tiers[i].keep_free = m->options.keep_free;
	return store_open(&m->store, &config, &m->counters, err);
}

/* Returns the tier in which the manifest is saved: the last one. */
static struct saved_manifest saved_in(struct mount *m)
{
	size_t last = m->options.ntiers - 1;

	return (struct saved_manifest){
		.store = m->store,
		.tier = last,
		.dir = m->tier_dir[last],
		.counters = &m->counters,
		.events = m->events,
	};
}

/* Recover the manifest that the previous daemon has passed on with its session.
 */
static int recover_names(struct mount *m, struct error *err)
{
	struct hash128 dataset = key_digest(stack_dataset(m->stack));
	struct saved_manifest saved = saved_in(m);
	int rc;

	if (m->given.requests >= 0 && !fs_journal_valid(m->given.requests))
		return error_set(
			err, -EBADMSG, "its record of requests is damaged");
	rc = session_open(&m->session, &m->given, dataset, err);
	if (rc < 0) {
		m->given.session = -1;
		return rc;
	}
	m->given.session = -1;
	m->names_fd = m->given.names;
	m->given.names = -1;
	rc = saved_recover(&saved, stack_dataset(m->stack),
		session_id(m->session), m->names_fd, &m->manifest, err);
	if (rc == 0)
		return 0;
	session_free(m->session);
	m->session = NULL;
	m->names_fd = -1;
	return rc;
}

static int build_manifest(struct mount *m, struct error *err)
{
	struct saved_manifest saved = saved_in(m);
	struct error why;
	int rc;

	if (m->given.fuse >= 0) {
		if (recover_names(m, &why) == 0)
			return 0;
		held_refuse(m, why.msg);
	}
	rc = saved_load(&saved, m->stack, &m->manifest, err);
	if (rc < 0)
		return rc;
	m->session = session_new(manifest_dataset(m->manifest));
	if (!m->session)
		return error_set(err, -ENOMEM, "cannot mount: %m");
	m->names_fd = manifest_record(m->manifest, session_id(m->session));
	/* without a record of changes, the mount ends when this process ends */
	return 0;
}

static int build_tree(struct mount *m, struct error *err)
{
	struct tree_config config = {
		.revalidate_s = m->options.revalidate_s,
		.ceased = version_ceased,
		.renamed = name_changed,
		.changed = attr_changed,
		.arg = m,
		.events = m->events,
	};
	int rc = build_manifest(m, err);

	if (rc < 0)
		return rc;
	config.origin = stack_origin(m->stack);
	config.manifest = m->manifest;
	config.timers = m->timers;
	/* Do not notify the kernel before the handshake, because libfuse would
	 * drop the notifications. */
	config.paused = session_connection(m->session) >= 0;
	rc = tree_new(&m->tree, &config, err);
	if (rc < 0)
		return rc;
	if (config.paused)
		manifest_untold(m->manifest, tree_on_event, m->tree);
	set_asking(m, true);
	/* If this daemon continues the mount of another one, programs are
	 * waiting for it already, so do not make them wait for the source. */
	if (session_connection(m->session) < 0) {
		rc = scan_probe(m->stack, m->manifest, err);
		if (rc == 0)
			rc = tree_open_root(m->tree, err);
	}
	set_asking(m, false);
	return rc;
}

static int build_peers(struct mount *m, struct error *err)
{
	struct peering_config config = {
		.peers = m->options.peers,
		.origin = stack_origin(m->stack),
		.manifest = m->manifest,
		.tree = m->tree,
	};
	int rc;

	if (config.peers.nhosts == 0)
		return 0;
	if (!config.peers.dataset)
		config.peers.dataset = stack_dataset(m->stack);
	config.peers.counters = &m->counters;
	config.peers.events = m->events;
	rc = peering_new(&m->peering, &config, err);
	if (rc == 0)
		peering_limits(m->peering, limit_report, m->log);
	return rc;
}

static uint64_t chunk_of(const struct mount *m)
{
	return m->options.chunk_bytes
		? m->options.chunk_bytes
		: origin_traits(stack_origin(m->stack))->chunk_bytes;
}

/* Compute the sizes of items and of staging, and report if memory may be too
 * small for it. */
static void build_memory(struct mount *m)
{
	struct mount_options *o = &m->options;
	uint64_t chunk = chunk_of(m);
	struct manifest_totals totals;

	manifest_totals(m->manifest, &totals);
	if (o->limit_bytes == 0)
		o->limit_bytes = o->staging_bytes
			? MOUNT_LIMIT_BYTES
			: memory_default_limit(m->store, chunk);
	if (o->staging_bytes == 0)
		o->staging_bytes = memory_default_staging(m->store,
			o->limit_bytes > chunk ? o->limit_bytes : chunk);
	m->memory_short = limits_of_memory(
		m->store, o->staging_bytes, totals.files, limit_report, m->log);
}

/* Create the part that limits the kernel's pages. In an analysis, this part has
 * the kernel keep no page, because the analysis must see every read. */
static int build_pages(struct mount *m, struct error *err)
{
	struct pages_config config = {.manifest = m->manifest,
		.mountpoint = m->mountpoint,
		.counters = &m->counters,
		.max_bytes = m->options.pages_bytes,
		.agent = m->notifier[NOTIFIER_PAGES].agent};
	const struct mount_hooks *hooks = m->options.hooks;
	int rc = 0;

	if (hooks) {
		m->parts = (struct mount_parts){.mountpoint = m->mountpoint,
			.counters = &m->counters,
			.store = m->store,
			.manifest = m->manifest};
		rc = hooks->begin(hooks->arg, &m->parts, err);
		config.keeper = hooks->keeper;
		config.whole_max_bytes = hooks->whole_max_bytes;
		config.each_epoch = true;
	}
	if (rc == 0 && (hooks || config.max_bytes > 0))
		rc = pages_new(&m->pages, &config, err);
	return rc;
}

static int build_cache(struct mount *m, struct error *err)
{
	struct origin *origin = stack_origin(m->stack);
	struct cache_config config = {
		.store = m->store,
		.origin = origin,
		.timers = m->timers,
		.counters = &m->counters,
		.dataset = manifest_dataset(m->manifest),
		.limit_bytes = m->options.limit_bytes,
		.chunk_bytes = chunk_of(m),
		.staging_bytes = m->options.staging_bytes,
		.inflight_bytes =
			memory_inflight_bytes(m->options.staging_bytes),
		.path = file_path,
		.stale = file_stale,
		.passed = item_passed,
		.arg = m,
		.events = m->events,
	};
	struct plans_config plans = {
		.file = planned_file, .arg = m, .counters = &m->counters};
	const struct mount_hooks *hooks = m->options.hooks;
	int rc = build_pages(m, err);

	if (m->peering)
		config.provider[config.nproviders++] =
			peering_provider(m->peering);
	if (hooks)
		config.mask = hooks->mask;
	if (rc == 0 &&
		mount_count_epochs(&m->epochs, &config,
			hooks ? 1 : m->options.pages_bytes) < 0)
		rc = error_set(err, -ENOMEM, "cannot make the cache: %m");
	if (rc == 0)
		rc = cache_new(&m->cache, &config, err);
	if (rc < 0)
		return rc;
	m->parts.cache = m->cache;
	m->parts.pages = m->pages;
	plans.cache = m->cache;
	m->prefetch = prefetch_new(m->cache);
	if (!m->prefetch || plans_new(&m->plans, &plans) < 0)
		return error_set(err, -ENOMEM, "cannot make the cache: %m");
	return 0;
}

static int build_scan(struct mount *m, struct error *err)
{
	struct scan_config config = {
		.saved = saved_in(m),
		.stack = m->stack,
		.manifest = m->manifest,
		.tree = m->tree,
		.cache = m->cache,
		.log = m->log,
		.recovered = session_connection(m->session) >= 0,
		.staging_bytes = m->options.staging_bytes,
		.memory_short = m->memory_short,
	};
	int rc = scan_new(&m->scan, &config);

	return rc < 0 ? error_set(err, rc, "cannot scan the source: %m") : 0;
}

static int build_fs(struct mount *m, struct error *err)
{
	struct fs_config config = {
		.manifest = m->manifest,
		.tree = m->tree,
		.cache = m->cache,
		.prefetch = m->prefetch,
		.plans = m->plans,
		.session = m->session,
		.journal = m->given.requests,
		.notifier = m->notifier[NOTIFIER_NAMES].agent,
		.source = stack_name(m->stack),
		.mountpoint = m->mountpoint,
		.allow_other = m->options.allow_other,
		.contexts = m->options.contexts,
		.gather_bytes = memory_gather_bytes(m->options.staging_bytes),
		.revalidate_s = m->options.revalidate_s,
		.counters = &m->counters,
		.events = m->events,
		.read_hook =
			m->options.hooks ? m->options.hooks->read_hook : NULL,
	};
	int rc;

	commands_build(m);
	rc = ctl_server_start(&m->ctl, m->mountpoint, m->options.group,
		m->commands, PATIENCE_MS, err);
	if (rc < 0)
		return rc;
	config.control = ctl_server_path(m->ctl);
	return fs_mount(&m->fs, &config, err);
}

static int build(struct mount *m, struct error *err)
{
	int rc = timers_new(&m->timers);

	if (rc < 0)
		return error_set(err, rc, "cannot start a thread: %m");
	set_asking(m, true);
	rc = stack_open(m->stack, m->timers, &m->counters, m->events, err);
	set_asking(m, false);
	if (rc == 0)
		rc = build_store(m, err);
	if (rc == 0)
		rc = build_tree(m, err);
	if (rc == 0) {
		build_memory(m);
		rc = build_peers(m, err);
	}
	if (rc == 0)
		rc = build_cache(m, err);
	if (rc == 0)
		rc = build_scan(m, err);
	if (rc == 0)
		rc = build_fs(m, err);
	return rc;
}

/* -- Serving ------------------------------------------------------------- */

/* End all operations for which handlers wait, and all that wait for the kernel.
 * Handlers must still be running: a look-up without an answer would hold a lock
 * in the kernel, and a notification needs this lock. */
void mount_quiesce(struct mount *m)
{
	uint64_t dropped = m->counters.partial_dropped;

	if (m->life.quiesced)
		return;
	m->life.quiesced = m->life.quiet = true;
	/* Stop the cache first, because parked readers can be answered only
	 * while the session exists. */
	if (m->cache)
		cache_stop(m->cache);
	events_stopped(m, dropped);
	if (m->tree)
		m->life.quiet = tree_stop(m->tree);
	pages_stop(m->pages);
}

void mount_set_stopping(struct mount *m)
{
	pthread_mutex_lock(&m->life.lock);
	m->life.stopping = true;
	pthread_cond_broadcast(&m->life.cond);
	pthread_mutex_unlock(&m->life.lock);
	if (m->scan)
		scan_quit(m->scan);
}

static void kernel_greeted(void *arg)
{
	struct mount *m = OBJECT(mount, arg);

	tree_resume(m->tree);
	held_store(m);
	atomic_store(
		&m->can_upgrade, m->names_fd >= 0 && fs_can_be_held(m->fs));
	process_ready(m);
	events_mounted(m);
}

static int daemon_serve(struct mount *m, struct error *err)
{
	int rc;

	pthread_mutex_lock(&m->life.lock);
	m->life.serving = true;
	pthread_cond_broadcast(&m->life.cond);
	pthread_mutex_unlock(&m->life.lock);
	rc = scan_start(m->scan, err);
	if (rc == 0 && m->peering)
		rc = peering_start(m->peering, m->scan, err);
	return rc < 0 ? rc : fs_run(m->fs, kernel_greeted, m, err);
}

/* -- Taking down --------------------------------------------------------- */

/* Take the mount down. `why` is the reason if the mount has failed, otherwise
 * NULL. */
static void take_down(struct mount *m, const struct error *why)
{
	mount_set_stopping(m);
	process_leave_signals(m);
	mount_quiesce(m);
	fs_unmount(m->fs);
	held_drop(m);
	events_ended(m, why);
	if (!m->life.quiet)
		process_leave_at_once(m, why);
	scan_join(m->scan);
	peering_quit(m->peering);
	/* no command runs after this call */
	ctl_server_stop(steal_ptr(&m->ctl));
	fs_free(m->fs);
	pages_free(m->pages);
	notifiers_end(m);
	if (m->scan)
		scan_save(m->scan);
	plans_free(m->plans);
	prefetch_free(m->prefetch);
	cache_free(m->cache);
	peering_free(m->peering);
	epochs_free(m->epochs.epochs);
	tree_free(m->tree);
	scan_free(m->scan);
	manifest_free(m->manifest);
	session_free(m->session);
	if (m->store)
		store_close(m->store);
	if (why)
		process_leave_no_tier(m);
	if (!stack_close(m->stack))
		process_leave_at_once(m, why);
	timers_free(m->timers);
}

static void mount_free(struct mount *m)
{
	for (size_t i = 0; i < STORE_TIERS_MAX; i++)
		free(m->tier_dir[i]);
	free(m->root);
	free(m->root_dir);
	/* No thread waits any more */
	(void)pthread_cond_destroy(&m->life.cond);
	(void)pthread_mutex_destroy(&m->life.lock);
	log_free(m->log);
	free(m->mountpoint);
	free(m->refused);
	free(m->cwd);
	stack_free(m->stack);
	latency_free(m->counters.latency);
	read_trace_free(m->tracing.trace);
	MAGIC_END(m);
	free(m);
}

static struct mount *mount_new(const struct mount_options *options)
{
	struct mount *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	MAGIC_BEGIN(m, mount);
	if (latency_new(&m->counters.latency) < 0 ||
		read_trace_new(&m->tracing.trace) < 0) {
		latency_free(m->counters.latency);
		free(m);
		return NULL;
	}
	m->options = *options;
	m->started_ns = clock_now_ns();
	m->ready_fd = m->names_fd = -1;
	m->given = (struct session_fds){-1, -1, -1, -1};
	m->holder = getppid();
	m->cwd = getcwd(NULL, 0);
	lock_init(&m->life.lock, RANK_LIFE);
	cond_init(&m->life.cond);
	return m;
}

static int build_and_serve(struct mount *m, struct error *err)
{
	int rc;

	/* notifiers_start() may fork, so call it before there are threads */
	notifiers_start(m);
	process_prepare();
	rc = log_start(m->log, err);
	/* If a holder has started this daemon again, nobody reads its standard
	 * error. */
	if (rc == 0 && m->options.held && !m->options.foreground &&
		held_again())
		log_detach(m->log);
	if (rc == 0)
		rc = process_take_signals(m, err);
	if (rc == 0)
		rc = notifiers_connect(m, err);
	if (rc == 0)
		rc = build(m, err);
	if (rc == 0)
		rc = daemon_serve(m, err);
	if (rc == 0 && m->ready_fd >= 0)
		rc = error_set(err, -EIO,
			"cannot serve '%s': it was unmounted, or memory ran "
			"out, before it was ready; try again",
			m->mountpoint);
	take_down(m, rc < 0 ? err : NULL);
	return rc;
}

/* Check whether this program could take over the mount. The program that
 * requested this check continues to serve. */
static int check_takeover(struct mount *m, struct error *err)
{
	struct hash128 dataset = key_digest(stack_dataset(m->stack));
	int rc = 0;

	if (m->given.requests >= 0 && !fs_journal_known(m->given.requests))
		rc = error_set(err, -EBADMSG,
			"this program cannot read its record of requests");
	if (rc == 0)
		rc = session_check(&m->given, dataset, err);

	return rc < 0 ? rc : manifest_check(m->given.names, err);
}

int daemon_run(const struct mount_options *options, struct error *err)
{
	struct mount *m = mount_new(options);
	bool parent = false;
	int rc;

	if (!m)
		return error_set(err, -ENOMEM, "cannot mount: %m");
	held_take(m);
	rc = mount_resolve(m, err);
	if (options->check) {
		if (rc == 0)
			rc = check_takeover(m, err);
		mount_free(m);
		return rc;
	}
	if (rc == 0)
		rc = events_open(m, err);
	if (rc == 0)
		rc = process_fork(m, err, &parent);
	if (rc < 0 || parent) {
		mount_free(m);
		return rc;
	}
	rc = build_and_serve(m, err);
	if (rc < 0 && m->ready_fd >= 0)
		process_failed(m, rc, err);
	if (!options->foreground && !options->held) {
		mount_free(m);
		exit(rc < 0);
	}
	mount_free(m);
	return rc;
}
