/* SPDX-License-Identifier: MIT */
/* Starts, watches and ends the command; see trainer_impl.h. */
#include "analyze/trainer_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* The time between SIGTERM and SIGKILL. */
#define END_NS (3 * NS_PER_S)
#define LOOK_NS (20 * NS_PER_MS)

/* The reason why the command was not started, for the parent. */
struct trainer_failure {
	int rc;
	bool covering; /* else execution */
};

/* -- In the child ---------------------------------------------------------- */

static int write_proc(const char *path, const char *text)
{
	CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -errno;
}

/* A user namespace in which we are who we are. */
static int own_users(uid_t uid, gid_t gid)
{
	char map[64];

	/* Old kernels have no such file, and do not need it. */
	(void)write_proc("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (write_proc("/proc/self/uid_map", map) < 0)
		return -errno;
	(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return write_proc("/proc/self/gid_map", map);
}

/* The mount takes the place of the source, for this process and its own. */
static int cover(const struct analyze_config *c)
{
	char cwd[PATH_MAX];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (!getcwd(cwd, sizeof(cwd)))
		cwd[0] = '\0';
	if (unshare(CLONE_NEWNS) < 0) {
		int rc;

		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
			return -errno;
		rc = own_users(uid, gid);
		if (rc < 0)
			return rc;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(c->mountpoint, c->source, NULL, MS_BIND, NULL) < 0)
		return -errno;
	/* It may be in the source. */
	return cwd[0] && chdir(cwd) < 0 ? -errno : 0;
}

static void run_command(const struct analyze_config *c, int fd)
{
	struct trainer_failure f = {0};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	(void)setsid(); /* a child is no group leader, so this works */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	if (c->source) {
		f.rc = cover(c);
		f.covering = f.rc < 0;
	}
	if (f.rc == 0) {
		(void)execvp(c->command[0], c->command);
		f.rc = -errno;
	}
	(void)!write(fd, &f, sizeof(f));
	_exit(127);
}

/* -- In the parent --------------------------------------------------------- */

static int start_failed(const struct trainer_failure *f,
	const struct analyze_config *c, struct error *err)
{
	errno = -f->rc;
	if (f->covering)
		return error_set(err, f->rc,
			"cannot mount over '%s' for the command: %m; write {} "
			"in the command instead of that path",
			c->source);
	return error_set(err, f->rc, "cannot run '%s': %m", c->command[0]);
}

int trainer_start(struct trainer *t, const struct analyze_config *config,
	struct error *err)
{
	struct trainer_failure f;
	int fd[2];
	ssize_t n;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot start the command: %m");
	t->pid = fork();
	if (t->pid == 0)
		run_command(config, fd[1]);
	(void)close(fd[1]);
	if (t->pid < 0) {
		int rc = error_set(err, -errno, "cannot start the command: %m");

		t->pid = 0;
		(void)close(fd[0]);
		return rc;
	}
	do
		n = read(fd[0], &f, sizeof(f));
	while (n < 0 && errno == EINTR && !*config->stop);
	(void)close(fd[0]);
	return n == sizeof(f) ? start_failed(&f, config, err) : 0;
}

bool trainer_ended(struct trainer *t)
{
	if (t->pid > 0 && waitpid(t->pid, &t->status, WNOHANG) == t->pid) {
		/* Its other processes must end, too. */
		trainer_stop(t);
	}
	return t->pid == 0;
}

/* Calls fn for each process of the session; `fields` begin with its state. */
static void each_process(pid_t session,
	void (*fn)(void *arg, pid_t pid, const char *fields), void *arg)
{
	CLEANUP_DIR DIR *dir = opendir("/proc");
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[sizeof(d->d_name) + 16], text[1024];
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		const char *fields;
		int of = 0;
		ssize_t n;
		CLEANUP_FD int fd = -1;

		if (pid <= 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (n <= 0)
			continue;
		text[n] = '\0';
		fields = strrchr(text, ')'); /* the name may hold anything */
		if (fields && sscanf(fields + 2, "%*c %*d %*d %d", &of) == 1 &&
			of == session)
			fn(arg, pid, fields + 2);
	}
}

static void add_cpu(void *arg, pid_t pid, const char *fields)
{
	unsigned long user, system, child_user, child_system;

	(void)pid;
	if (sscanf(fields,
		    "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu "
		    "%lu",
		    &user, &system, &child_user, &child_system) == 4)
		*(double *)arg +=
			(double)(user + system + child_user + child_system) /
			(double)sysconf(_SC_CLK_TCK);
}

double trainer_cpu_s(const struct trainer *t)
{
	double s = 0;

	if (t->pid > 0)
		each_process(t->pid, add_cpu, &s);
	return s;
}

struct mapping {
	unsigned major, minor;
	bool found;
};

static void find_mapping(void *arg, pid_t pid, const char *fields)
{
	struct mapping *m = arg;
	char path[32], line[PATH_MAX + 128];
	unsigned major, minor;
	FILE *f;

	(void)fields;
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = m->found ? NULL : fopen(path, "re");
	while (f && !m->found && fgets(line, sizeof(line), f))
		m->found = sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) ==
				2 &&
			major == m->major && minor == m->minor;
	if (f)
		(void)fclose(f);
}

bool trainer_maps(const struct trainer *t, dev_t device)
{
	struct mapping m = {.major = major(device), .minor = minor(device)};

	if (t->pid > 0)
		each_process(t->pid, find_mapping, &m);
	return m.found;
}

static void kill_process(void *arg, pid_t pid, const char *fields)
{
	(void)fields;
	(void)kill(pid, *(int *)arg); /* it may have ended */
}

static bool is_left(struct trainer *t, bool waited)
{
	return !waited && waitpid(t->pid, &t->status, WNOHANG) == 0;
}

void trainer_stop(struct trainer *t)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	uint64_t until_ns = clock_now_ns() + END_NS;
	int number = SIGTERM;
	bool waited;

	if (t->pid <= 0)
		return;
	waited = waitpid(t->pid, &t->status, WNOHANG) != 0;
	each_process(t->pid, kill_process, &number);
	while (is_left(t, waited) && clock_now_ns() < until_ns)
		(void)nanosleep(&look, NULL);
	number = SIGKILL;
	each_process(t->pid, kill_process, &number);
	/* -ECHILD if it was waited for above. */
	(void)waitpid(t->pid, waited ? &(int){0} : &t->status, 0);
	t->pid = 0;
}
