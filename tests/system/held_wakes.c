/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD. It counts the mutexes that each thread holds. If a
 * thread writes to an eventfd while it holds a mutex, the library appends a
 * line to the file named by HELD_WAKES, with the code addresses of the write
 * and of the lock. With HELD_CLOSES it does so for shutdown() and close() of
 * sockets, too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELD_MAX 16

static __thread int held __attribute__((tls_model("initial-exec")));
static __thread void *place[HELD_MAX]
	__attribute__((tls_model("initial-exec")));

static int (*real_lock)(pthread_mutex_t *);
static int (*real_trylock)(pthread_mutex_t *);
static int (*real_timedlock)(pthread_mutex_t *, const struct timespec *);
static int (*real_clocklock)(
	pthread_mutex_t *, clockid_t, const struct timespec *);
static int (*real_unlock)(pthread_mutex_t *);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_close)(int);
static int (*real_shutdown)(int, int);

/* Look up the library's function at its first call, because other libraries may
 * call it before this library's constructor runs. */
#define FIND(real, name)                                                       \
	do {                                                                   \
		if (!(real))                                                   \
			*(void **)&(real) = dlsym(RTLD_NEXT, name);            \
	} while (0)

static int taken(int rc, void *from)
{
	if (rc == 0) {
		if (held >= 0 && held < HELD_MAX)
			place[held] = from;
		held++;
	}
	return rc;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	FIND(real_lock, "pthread_mutex_lock");
	return taken(real_lock(mutex), __builtin_return_address(0));
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	FIND(real_trylock, "pthread_mutex_trylock");
	return taken(real_trylock(mutex), __builtin_return_address(0));
}

int pthread_mutex_timedlock(
	pthread_mutex_t *mutex, const struct timespec *until)
{
	FIND(real_timedlock, "pthread_mutex_timedlock");
	return taken(real_timedlock(mutex, until), __builtin_return_address(0));
}

int pthread_mutex_clocklock(
	pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	FIND(real_clocklock, "pthread_mutex_clocklock");
	return taken(real_clocklock(mutex, clock, until),
		__builtin_return_address(0));
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	FIND(real_unlock, "pthread_mutex_unlock");
	held--;
	return real_unlock(mutex);
}

static int is_eventfd(int fd)
{
	char path[64], target[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	return strstr(target, "[eventfd]") != NULL;
}

/* Print a code address for addr2line -e FILE OFFSET. */
static size_t print_place(char *to, size_t room, const char *what, void *at)
{
	Dl_info i;
	int n;

	if (!dladdr(at, &i))
		return 0;
	n = snprintf(to, room, " %s %s %#zx", what, i.dli_fname,
		(size_t)((char *)at - (char *)i.dli_fbase));
	return n < 0 || (size_t)n >= room ? 0 : (size_t)n;
}

static void check(const char *what, void *from)
{
	const char *log = getenv("HELD_WAKES");
	int saved = errno, out;
	char line[1024];
	size_t n;

	if (held <= 0 || !log)
		return;
	FIND(real_write, "write");
	FIND(real_close, "close");
	n = print_place(line, sizeof(line) - 1, what, from);
	if (held <= HELD_MAX)
		n += print_place(line + n, sizeof(line) - 1 - n, "lock",
			place[held - 1]);
	line[n++] = '\n';
	out = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (out >= 0) {
		(void)!real_write(out, line, n);
		(void)real_close(out);
	}
	errno = saved;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	FIND(real_write, "write");
	if (held > 0 && is_eventfd(fd))
		check("write", __builtin_return_address(0));
	return real_write(fd, data, bytes);
}

int eventfd_write(int fd, eventfd_t value)
{
	FIND(real_write, "write");
	if (held > 0)
		check("write", __builtin_return_address(0));
	return real_write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

int close(int fd)
{
	FIND(real_close, "close");
	if (getenv("HELD_CLOSES"))
		check("close", __builtin_return_address(0));
	return real_close(fd);
}

int shutdown(int fd, int how)
{
	FIND(real_shutdown, "shutdown");
	if (getenv("HELD_CLOSES"))
		check("shutdown", __builtin_return_address(0));
	return real_shutdown(fd, how);
}
