/* SPDX-License-Identifier: MIT */
/* Starts, watches and ends the command; see trainer_impl.h. */
#include "analysis/study/trainer_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/study/cover_impl.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* After SIGTERM the command has this time to end. When it has ended, the
 * processes that it has left get SIGKILL. */
#define END_NS (3 * NS_PER_S)
#define LOOK_NS (20 * NS_PER_MS)

/* A message to the parent: the reason why the command was not started. */
struct trainer_failure {
	int rc;
	bool covering; /* cover_source() has failed; false: exec() has failed */
};

/* -- In the child ---------------------------------------------------------- */

static void run_command(const struct analyze_config *c, int fd)
{
	struct trainer_failure f = {0};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	(void)setsid(); /* cannot fail: a child does not lead a process group */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	if (c->source) {
		f.rc = cover_source(c);
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

/* Read the process's line in /proc. *fields gets the part that begins with its
 * state, and *parent its parent. Returns false if there is no such process. */
static bool look_at_process(
	pid_t pid, char text[1024], const char **fields, int *parent)
{
	char path[32];
	CLEANUP_FD int fd = -1;
	const char *name_end;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, 1023);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* NAME may contain any character, even ')', so find the last one */
	name_end = strrchr(text, ')');
	if (!name_end || sscanf(name_end + 2, "%*c %d", parent) != 1)
		return false;
	*fields = name_end + 2;
	return true;
}

/* Returns the time at which a process was started, in clock ticks; 0: unknown.
 */
static unsigned long long started_at(const char *fields)
{
	unsigned long long ticks;

	return sscanf(fields,
		       "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		       "%*s %*s %*s %*s %*s %*s %llu",
		       &ticks) == 1
		? ticks
		: 0;
}

static void note_start(struct trainer *t)
{
	char text[1024];
	const char *fields;
	int parent;

	t->started = look_at_process(t->pid, text, &fields, &parent)
		? started_at(fields)
		: 0;
}

static int session_of(const char *fields)
{
	int session;

	return sscanf(fields, "%*c %*d %*d %d", &session) == 1 ? session : 0;
}

/*
 * Note the sessions of older children. A shell that has executed this program
 * may have left children to this process. Such a child may start processes and
 * leave them, and this process then adopts them, just like those of the
 * command. They can be told apart by their session, because the command is
 * never in a session of such a child.
 */
static void note_older(struct trainer *t)
{
	CLEANUP_DIR DIR *dir = opendir("/proc");
	const struct dirent *d;

	t->older[0] = getsid(0);
	t->nolder = 1;
	while (dir && t->nolder < TRAINER_OLDER_MAX && (d = readdir(dir))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		const char *fields;
		char text[1024];
		int parent;

		if (pid > 0 && look_at_process(pid, text, &fields, &parent) &&
			parent == getpid())
			t->older[t->nolder++] = session_of(fields);
	}
}

int trainer_start(struct trainer *t, const struct analyze_config *config,
	struct error *err)
{
	struct trainer_failure f;
	int fd[2];
	ssize_t n;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot start the command: %m");
	note_older(t);
	/* When a parent in the command ends, this process becomes the parent of
	 * its children. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
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
	note_start(t);
	do
		n = read(fd[0], &f, sizeof(f));
	while (n < 0 && errno == EINTR && !*config->stop);
	(void)close(fd[0]);
	return n == sizeof(f) ? start_failed(&f, config, err) : 0;
}

/* Is the process younger than the command, and not started by an older child?
 */
static bool is_younger(const struct trainer *t, const char *fields)
{
	int session = session_of(fields);

	for (unsigned i = 0; i < t->nolder; i++)
		if (session == t->older[i])
			return false;
	return started_at(fields) >= t->started;
}

/* Does the process belong to the command? */
static bool is_descendant(
	const struct trainer *t, const char *fields, int parent)
{
	const pid_t self = getpid();
	char text[1024];

	while (parent > 1 && parent != self && parent != t->daemon)
		if (!look_at_process(parent, text, &fields, &parent))
			return false;
	return parent == self && is_younger(t, fields);
}

static bool is_of_command(const struct trainer *t, pid_t pid)
{
	const char *fields;
	char text[1024];
	int parent;

	return look_at_process(pid, text, &fields, &parent) &&
		is_descendant(t, fields, parent);
}

static double seconds_of(struct timeval v)
{
	return (double)v.tv_sec + (double)v.tv_usec / 1e6;
}

static void reap_process(struct trainer *t, pid_t pid)
{
	bool ours = is_of_command(t, pid);
	struct rusage used;

	if (wait4(pid, NULL, WNOHANG, &used) == pid && ours)
		t->reaped_s +=
			seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

/* Reap processes that the command has left, which are children of this process
 * now. */
static void reap_adopted(struct trainer *t)
{
	siginfo_t info = {.si_pid = 0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid > 0 && info.si_pid != t->pid &&
		info.si_pid != t->daemon)
		reap_process(t, info.si_pid);
}

bool trainer_ended(struct trainer *t)
{
	reap_adopted(t);
	if (t->pid > 0 && waitpid(t->pid, &t->status, WNOHANG) == t->pid) {
		/* When the command has ended, its other processes must end,
		 * too. */
		trainer_stop(t);
	}
	return t->pid == 0;
}

void trainer_each(const struct trainer *t,
	void (*fn)(void *arg, pid_t pid, const char *fields), void *arg)
{
	CLEANUP_DIR DIR *dir = opendir("/proc");
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		const char *fields;
		char text[1024];
		int parent;

		if (pid > 0 && pid != t->daemon &&
			look_at_process(pid, text, &fields, &parent) &&
			is_descendant(t, fields, parent))
			fn(arg, pid, fields);
	}
}

static bool has_ended(const char *fields)
{
	return *fields == 'Z';
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
	double s = t->reaped_s;

	if (t->pid > 0)
		trainer_each(t, add_cpu, &s);
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

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = m->found || has_ended(fields) ? NULL : fopen(path, "re");
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
		trainer_each(t, find_mapping, &m);
	return m.found;
}

struct killing {
	int number;
	unsigned n; /* number of processes that got the signal */
};

static void kill_process(void *arg, pid_t pid, const char *fields)
{
	struct killing *k = arg;

	if (has_ended(fields))
		return;
	(void)kill(pid, k->number); /* fails if the process has ended since */
	k->n++;
}

/* Send a signal to all processes of the command. Returns false if there are
 * none. */
static bool kill_all(const struct trainer *t, int number)
{
	struct killing k = {.number = number};

	trainer_each(t, kill_process, &k);
	return k.n > 0;
}

static void stop_look(void)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};

	(void)nanosleep(&look, NULL);
}

/* Kill all processes, again and again: some may just be starting others, and
 * some take a while to end. */
static void kill_rest(struct trainer *t)
{
	uint64_t until_ns = clock_now_ns() + END_NS;

	while (kill_all(t, SIGKILL) && clock_now_ns() < until_ns) {
		stop_look();
		reap_adopted(t);
	}
}

void trainer_stop(struct trainer *t)
{
	uint64_t until_ns = clock_now_ns() + END_NS;
	bool waited;

	if (t->pid <= 0)
		return;
	waited = waitpid(t->pid, &t->status, WNOHANG) != 0;
	(void)kill_all(t, SIGTERM);
	while (!waited && clock_now_ns() < until_ns) {
		stop_look();
		waited = waitpid(t->pid, &t->status, WNOHANG) != 0;
	}
	kill_rest(t);
	if (!waited)
		(void)waitpid(t->pid, &t->status, 0);
	t->pid = 0;
}
